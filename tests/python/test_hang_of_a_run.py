"""report hang about a run that still hangs, and after it was killed."""
import json
import os
import signal
import subprocess
import time
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'waits_for_one.py'
WORLD = 4
DEADLINE_S = 120


@harness.needs_torch
class HangOfARunTest(harness.TracedTest):

    def hang(self, run):
        done = self._run([harness.RANKTAP, 'report', run, 'hang', '--format', 'json'], {})
        return json.loads(done.stdout) if done.returncode == 0 else {'title': done.stderr, 'rows': []}

    def until_they_wait(self, run, guilty):
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            table = self.hang(run)
            # Each earlier call is waited for, too, for a moment.
            if (table['title'].startswith(f'Rank {guilty} did not enter Allreduce #4 (64 B, group default_pg)') and
                    [(row['ranks'], row['waiting']) for row in table['rows']] == [(f'rank {guilty}', WORLD - 1)]):
                return table
            time.sleep(0.2)
        self.fail(f'not named within {DEADLINE_S} s: {table}')

    def test_the_rank_that_the_others_wait_for_is_named_while_it_hangs_and_afterwards(self):
        for guilty in (0, 2):
            run = self.scratch / f'run-{guilty}'
            torchrun = harness.TORCH_PYTHON.parent / 'torchrun'
            job = subprocess.Popen([harness.RANKTAP, 'run', '-o', run, '--level', 'full', '--', torchrun, '--standalone',
                                    f'--nproc-per-node={WORLD}', PROGRAM], env={**os.environ, 'GUILTY': str(guilty)},
                                   stderr=subprocess.DEVNULL, start_new_session=True)
            try:
                table = self.until_they_wait(run, guilty)
            finally:
                os.killpg(job.pid, signal.SIGTERM)
                job.wait(timeout=DEADLINE_S)
            said = f'Rank {guilty} did not enter Allreduce #4 (64 B, group default_pg); 3 of 4 wait since '
            self.assertTrue(table['title'].startswith(said), table['title'])
            self.assertTrue(self.hang(run)['title'].startswith(said), self.hang(run)['title'])


if __name__ == '__main__':
    unittest.main()
