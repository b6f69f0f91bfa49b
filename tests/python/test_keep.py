"""`--keep` with a program whose code is ever new: what is kept names all that it has."""
import re
import subprocess
import time
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'new_functions.py'


class KeepTest(harness.TracedTest):
    def dropped(self, run):
        done = subprocess.run([harness.RANKTAP, 'verify', run], capture_output=True, text=True)
        found = re.search(r'--keep dropped ([\d,]+) earlier events', done.stdout)
        return int(found[1].replace(',', '')) if found else 0

    def test_samples_of_the_last_seconds_have_their_lines_also_those_that_were_told_long_before(self):
        run, stop = self.scratch / 'run', self.scratch / 'stop'
        with subprocess.Popen([harness.RANKTAP, 'run', '--quiet', '--sample', '2ms', '--keep', '2s', '-o', run, '--',
                               '/usr/bin/python3', PROGRAM, stop], stdout=subprocess.PIPE, text=True) as job:
            end = time.monotonic() + harness.TIMEOUT_S
            while self.dropped(run) < 20 and job.poll() is None and time.monotonic() < end:
                time.sleep(0.5)
            stop.touch()
            functions = int(job.communicate(timeout=harness.TIMEOUT_S)[0])
        self.assertEqual(job.returncode, 0)
        self.assert_verifies(run)
        rows = [row for row in self.report(run, 'host') if row['thread'] == 'main']
        new = [re.fullmatch(r'(?:inner|outer)_(\d+)', row['function']) for row in rows]
        self.assertLessEqual({'<module>', 'stay', 'call_new'}, {row['function'] for row in rows})
        numbers = {int(found[1]) for found in new if found}
        self.assertGreater(min(numbers), 0)
        self.assertLess(max(numbers), functions)
        # It is below all that runs, and was told when it began.
        stays = sum(row['total_ns'] for row in rows if row['function'] == 'stay')
        self.assertGreater(stays, 0.95 * sum(row['self_ns'] for row in rows))


if __name__ == '__main__':
    unittest.main()
