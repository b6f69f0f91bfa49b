"""A PyTorch program at level dormant, and woken."""
import unittest

import harness


@harness.needs_torch
class AsleepTest(harness.TracedTest):

    def test_asleep_a_step_runs_nothing_of_ours_and_awake_its_modules_and_number_are_there(self):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'asleep.py', harness.RANKTAP, self.scratch / 'run']
        done, run = self.run_traced(command, ['--level', 'full', '--dormant'])
        self.assertEqual(done.returncode, 0, done.stderr)
        before, awake, after, window = done.stdout.splitlines()
        # No PyTorch callback at operators, no Python function of ours, PyTorch's own Module.__call__.
        self.assertEqual(before, 'asleep True False 0')
        self.assertEqual(awake, 'awake True')
        self.assertEqual(after, 'asleep True False 0')
        _, first, last = window.split()
        steps = [row['step'] for row in self.report(run, 'steps')]
        self.assertEqual(steps, list(range(steps[0], steps[-1] + 1)))
        # The step in which it was woken has no beginning in the trace; 5 whole ones were asked for.
        self.assertGreaterEqual(steps[-1] - steps[0] + 1, 4)
        self.assertGreaterEqual(steps[0], int(first))
        self.assertIn(int(last) - 1, steps)
        calls = {row['module']: row['calls'] for row in self.report(run, 'modules')}
        for name in ('Sequential', 'Sequential.0', 'Sequential.1', 'Sequential.2'):
            self.assertGreaterEqual(calls.get(name, 0), 5, calls)
        self.assert_verifies(run)


if __name__ == '__main__':
    unittest.main()
