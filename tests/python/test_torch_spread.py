"""The steps that are recorded operator by operator where the user names none."""
import unittest

import harness

# Numbers of steps, from 0: at distances of 8, 16, 32 and 64 from the third, then one in 100.
SPREAD = {2, 10, 26, 58, *range(122, 200_000, 100)}


@harness.needs_torch
class SpreadTest(harness.TracedTest):

    def test_a_later_step_is_recorded_too_once_recording_is_a_small_part_of_the_time(self):
        done, run = self.run_traced([harness.TORCH_PYTHON, harness.PROGRAMS / 'spread.py'], ['--level', 'full'])
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = map(int, done.stdout.split())
        self.assertEqual(first, 2)
        self.assertIn(second, SPREAD - {first})
        calls = {row['name']: row['calls'] for row in self.report(run, 'ops')}
        self.assertEqual(calls['aten::addmm'], 2 * 2)  # two layers, two steps
        self.assert_verifies(run)


if __name__ == '__main__':
    unittest.main()
