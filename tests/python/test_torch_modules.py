"""Steps, modules and phases of unmodified PyTorch programs at level full, on the CPU."""
import unittest

import harness

PROGRAM = [harness.TORCH_PYTHON, harness.PROGRAMS / 'train_cpu.py']
STEPS = 6


@harness.needs_torch
class TrainingTest(harness.TracedTest):

    def trace(self, *options, level='full'):
        """Bare and traced; the program must not notice. The rows of `modules` and `steps`."""
        command = [*PROGRAM, *options]
        bare = self.run_bare(command)
        self.assertEqual(bare.returncode, 0, bare.stderr)
        traced, run = self.run_traced(command, ['--level', level])
        self.assertEqual(traced.stdout, bare.stdout)  # every loss, bit by bit
        self.assert_same_to_the_user(bare, traced)
        return run

    def calls(self, run):
        return {row['module']: row['calls'] for row in self.report(run, 'modules')}

    def test_every_step_and_every_forward_is_there_and_the_losses_are_the_same_bit_by_bit(self):
        run = self.trace()
        self.assert_verifies(run)
        self.assertEqual([row['step'] for row in self.report(run, 'steps')], list(range(STEPS)))
        calls = self.calls(run)
        for name in ('Net', 'Net.stem', 'Net.blocks', 'Net.blocks.0', 'Net.blocks.0.conv', 'Net.blocks.0.norm',
                     'Net.blocks.0.relu', 'Net.blocks.1.relu', 'Net.head'):
            self.assertEqual(calls[name], STEPS, name)
        for row in self.report(run, 'steps'):
            self.assertGreater(row['forward_ns'], 0)
            self.assertGreater(row['optimizer_ns'], 0)
            self.assertLess(row['forward_ns'] + row['optimizer_ns'], row['total_ns'])

    def test_a_forward_that_raises_ends_its_ranges_and_the_exception_is_the_programs(self):
        run = self.trace('--fail')
        calls = self.calls(run)
        self.assertEqual(calls['Net'], STEPS + 1)
        self.assertEqual(calls['Net.head'], STEPS)
        unfinished = {row['name']: row['unfinished'] for row in self.report(run, 'ranges')}
        self.assertEqual(unfinished['Net'], 0)

    def test_accumulation_and_several_optimizers_make_one_step(self):
        run = self.trace('--accumulate', '3', '--optimizers', '2')
        self.assertEqual(self.calls(run)['Net'], 3 * STEPS)
        self.assertEqual(len(self.report(run, 'steps')), STEPS)

    def test_data_loader_workers_leave_no_trace(self):
        for how in ([], ['--spawn']):
            with self.subTest(how=how):
                run = self.trace('--workers', '2', '--steps', '2', *how)
                self.assertEqual(len(list(run.glob('*.trace'))), 1)
                self.assertNotIn('Identity', self.calls(run))
                self._clean_run(run)

    def _clean_run(self, run):
        run.rename(run.with_name(f'run-{len(list(self.scratch.iterdir()))}'))

    def test_a_compiled_model_compiles_whole_and_warns_of_nothing(self):
        run = self.trace('--compile')
        self.assertEqual(self.calls(run)['OptimizedModule'], STEPS)
        self.assertEqual(len(self.report(run, 'steps')), STEPS)

    def test_below_full_the_program_is_not_hooked(self):
        run = self.trace('--steps', '1', level='ranges')
        self.assertEqual(len(list(run.glob('*.trace'))), 0)

    def test_python_without_torch_is_left_alone(self):
        done, run = self.run_traced([harness.TORCH_PYTHON, '-c', 'import json, sys; print([name for name in sys.modules if "ranktap" in name])'],
                                    ['--level', 'full'])
        self.assertEqual(done.stdout, '[]\n')
        self.assertEqual(len(list(run.glob('*.trace'))), 0)


if __name__ == '__main__':
    unittest.main()
