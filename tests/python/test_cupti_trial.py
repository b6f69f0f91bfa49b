"""NVIDIA's own CUPTI 13.2 under the stand-in's driver, which it does not like, and one that starts: tried by a
collector that did not launch the job."""
import json
import os
import pathlib
import signal
import subprocess
import unittest

import harness

REAL = harness.CACHE / 'cupti-13.2/lib/libcupti.so.13'
FAKES = harness.BUILD / 'fakes'
STARTS = FAKES / 'on-trial/libcupti_on_trial.so'
LAUNCHES = harness.BUILD / 'workloads/launches'
NOBODY = 65534


class CuptiTrialTest(harness.TracedTest):

    def setUp(self):
        super().setUp()
        for needed in REAL, STARTS, LAUNCHES:
            if not needed.exists():
                self.skipTest(f'{needed} is not there: run scripts/setup and build')
        self.scratch.chmod(0o755)
        self.socket = self.scratch / 'socket'

    def collect(self, *options):
        """A collector of its own, which knows of the job what the job's agents tell."""
        collector = subprocess.Popen([harness.RANKTAP, 'collect', '--socket', self.socket, '-o', self.scratch / 'runs',
                                      '--level', 'kernels', *options], stderr=subprocess.PIPE, text=True)
        self.assertIn('collecting at', collector.stderr.readline())
        return collector

    def run_job(self, cupti, user=None):
        """The bare job and the same with the collector's variables alone."""
        job = [str(part) for part in (LAUNCHES, '600', '100')]
        bare = {**os.environ, 'LD_LIBRARY_PATH': str(FAKES), 'RANKTAP_CUPTI': str(cupti)}
        printed = self.run_bare([harness.RANKTAP, 'collect', '--print-env', '--socket', self.socket]).stdout
        variables = dict(line.split('=', 1) for line in printed.split())
        both = [subprocess.run(job, env=environment, capture_output=True, text=True, user=user, group=user,
                               extra_groups=None if user is None else [], timeout=harness.TIMEOUT_S)
                for environment in (bare, {**bare, **variables})]
        for done in both:
            self.assertEqual((done.returncode, done.stdout), (0, 'counts launches=600 ranges=1 failed=0\n'), done.stderr)
            self.assertRegex(done.stderr, r'^\d+ launches per second, \d+ ns each$')

    def finish(self, collector):
        collector.send_signal(signal.SIGTERM)
        self.assertEqual(collector.wait(harness.TIMEOUT_S), 0, collector.stderr.read())
        collector.stderr.close()
        # What other programs of this user had left in spools has a directory of its own.
        run, = (path for path in (self.scratch / 'runs').glob('*/*/run.json') if not path.parent.name.startswith('spools-'))
        trace, = json.loads(run.read_text())['traces']
        return run.parent, trace.get('notes', [])

    def test_one_that_ends_its_process_is_not_called_in_a_job_that_the_collector_did_not_launch(self):
        collector = self.collect()
        self.run_job(REAL)
        run, notes = self.finish(collector)
        self.assertIn('does not start here and would end the program', ' '.join(notes))
        self.assert_verifies(run)
        said = self._run([harness.RANKTAP, 'doctor', '--run', run], {}).stdout
        self.assertIn('CUPTI 13.2 does not start here', said)

    def test_root_tries_it_as_the_jobs_user_and_remembers_the_answer_there(self):
        if os.geteuid() != 0:
            self.skipTest('only root may become another user')
        memory = pathlib.Path(f'/var/tmp/ranktap-spool-{NOBODY}/cupti-trials')
        memory.unlink(missing_ok=True)
        collector = self.collect('--all-users')
        self.run_job(STARTS, NOBODY)
        run, notes = self.finish(collector)
        self.assertNotIn('no kernels', ' '.join(notes))
        self.assertGreater(sum(row['calls'] for row in self.report(run, 'kernels')), 50)
        self.assertEqual(memory.stat().st_uid, NOBODY)
        self.assertTrue(memory.read_text().endswith(' 1'), memory.read_text())


if __name__ == '__main__':
    unittest.main()
