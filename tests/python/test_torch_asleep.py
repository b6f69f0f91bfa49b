"""A PyTorch program at level dormant, and woken."""
import unittest

import harness


def check(test, python, calls_a_step=0):
    """A `test` of a program that sleeps, is woken and sleeps again."""
    asleep = f'asleep True False {calls_a_step}'
    command = [python, harness.PROGRAMS / 'asleep.py', harness.RANKTAP, test.scratch / 'run']
    done, run = test.run_traced(command, ['--level', 'full', '--dormant'])
    test.assertEqual(done.returncode, 0, done.stderr)
    before, awake, after, window = done.stdout.splitlines()
    # No PyTorch callback at operators, no Python function of ours, PyTorch's own Module.__call__.
    test.assertEqual(before, asleep)
    test.assertEqual(awake, 'awake True')
    test.assertEqual(after, asleep)
    _, first, last = window.split()
    steps = [row['step'] for row in test.report(run, 'steps')]
    test.assertEqual(steps, list(range(steps[0], steps[-1] + 1)))
    # The step in which it was woken has no beginning in the trace; 5 whole ones were asked for.
    test.assertGreaterEqual(steps[-1] - steps[0] + 1, 4)
    test.assertGreaterEqual(steps[0], int(first))
    test.assertIn(int(last) - 1, steps)
    calls = {row['module']: row['calls'] for row in test.report(run, 'modules')}
    for name in ('Sequential', 'Sequential.0', 'Sequential.1', 'Sequential.2'):
        test.assertGreaterEqual(calls.get(name, 0), 5, calls)
    # A label that was open as the window began, and open as it ended.
    labels = [row['calls'] for row in test.report(run, 'ranges') if row['name'] == 'before the first forward']
    test.assertEqual(labels, [1])
    test.assert_verifies(run)


@harness.needs_torch
class AsleepTest(harness.TracedTest):

    def test_asleep_a_step_runs_nothing_of_ours_and_awake_its_modules_and_number_are_there(self):
        check(self, harness.TORCH_PYTHON)


if __name__ == '__main__':
    unittest.main()
