"""The oldest PyTorch that is supported, with programs that the newest one runs as well."""
import unittest

import harness
import test_torch_asleep

OLD_PYTHON = harness.CACHE / 'torch-2.1-venv/bin/python'
STEPS = 6  # train_cpu.py's
needs_old_torch = unittest.skipUnless(
    OLD_PYTHON.exists(), f'no PyTorch 2.1 at {OLD_PYTHON}; scripts/setup --old-torch installs it')


@needs_old_torch
class OldTorchTest(harness.TracedTest):

    def test_steps_modules_and_operators_are_there_and_the_losses_are_the_same_bit_by_bit(self):
        program = [OLD_PYTHON, harness.PROGRAMS / 'train_cpu.py']
        bare = self.run_bare(program)
        self.assertEqual(bare.returncode, 0, bare.stderr)
        self.assertEqual(self.run_bare([OLD_PYTHON, '-c', 'import torch; print(torch.__version__)']).stdout[:4], '2.1.')
        traced, run = self.run_traced(program, ['--level', 'full'])
        self.assert_same_to_the_user(bare, traced)
        self.assertEqual(traced.stdout, bare.stdout)
        self.assert_verifies(run)
        steps = self.report(run, 'steps')
        self.assertEqual([row['step'] for row in steps], list(range(STEPS)))
        for row in steps:
            for phase in ('forward_ns', 'backward_ns', 'optimizer_ns'):
                self.assertGreater(row[phase], 0, row)
        calls = {row['module']: row['calls'] for row in self.report(run, 'modules')}
        for name in ('Net', 'Net.stem', 'Net.blocks.1.conv', 'Net.head'):
            self.assertEqual(calls[name], STEPS, name)
        operators = {row['name'] for row in self.report(run, 'ops')}
        self.assertIn('aten::convolution', operators)
        self.assertIn('aten::addmm', operators)

    def test_asleep_a_step_runs_one_function_of_ours(self):
        """Its optimizers make a context of dynamo's in each zero_grad, which is how compiling is noticed."""
        test_torch_asleep.check(self, OLD_PYTHON, calls_a_step=1)


if __name__ == '__main__':
    unittest.main()
