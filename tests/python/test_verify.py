"""`ranktap verify` of a run that still runs, and of the same run after its end."""
import json
import subprocess
import time
import unittest

from harness import BUILD, RANKTAP, ROOT, TracedTest


class VerifyTest(TracedTest):
    def verify(self, run, *options):
        return self.run_bare([RANKTAP, 'verify', run, *options])

    def test_a_run_that_runs_is_ok_so_far_and_whole_after_its_end(self):
        run = self.scratch / 'run'
        program = [BUILD / 'workloads/launches', '4000', '1000']  # four seconds
        command = [ROOT / 'scripts/with-simulated-gpu', RANKTAP, 'run', '-o', run, '--', *program]
        running = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(running.kill)
        deadline = time.monotonic() + 60
        seen = None
        while seen is None and time.monotonic() < deadline:
            if any(part.stat().st_size > 0 for part in run.glob('*.part')):
                now = json.loads(self.verify(run, '--format', 'json').stdout)
                if now['traces'] and now['traces'][0]['events'] > 0:
                    seen = now
            time.sleep(0.02)
        self.assertIsNotNone(seen, 'no trace in a minute')
        self.assertTrue(seen['ok'], seen)
        self.assertFalse(seen['traces'][0]['closed'])
        text = self.verify(run)
        self.assertEqual(text.returncode, 0, text.stdout)
        self.assertIn(': ok so far, ', text.stdout)
        self.assertIn('its process still runs', text.stdout)
        self.assertEqual(running.wait(), 0)
        whole = json.loads(self.verify(run, '--format', 'json').stdout)
        self.assertTrue(whole['ok'], whole)
        self.assertTrue(whole['traces'][0]['closed'])


if __name__ == '__main__':
    unittest.main()
