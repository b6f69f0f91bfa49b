"""Steps, modules and phases of unmodified PyTorch programs at level full, on the CPU."""
import fcntl
import os
import shutil
import subprocess
import termios
import unittest

import harness

PROGRAM = [harness.TORCH_PYTHON, harness.PROGRAMS / 'train_cpu.py']
STEPS = 6


@harness.needs_torch
class TrainingTest(harness.TracedTest):

    def trace(self, *options, level='full', **environment):
        """Bare and traced; the program must not notice. The rows of `modules` and `steps`."""
        command = [*PROGRAM, *options]
        bare = self.run_bare(command, **environment)
        self.assertEqual(bare.returncode, 0, bare.stderr)
        traced, run = self.run_traced(command, ['--level', level], **environment)
        self.assertEqual(traced.stdout, bare.stdout)  # every loss, bit by bit
        self.assert_same_to_the_user(bare, traced)
        return run

    def calls(self, run):
        """A forward that no backward follows is an evaluation: one that raises, too."""
        return {row['module']: row['calls'] + row['evaluation_calls'] for row in self.report(run, 'modules')}

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
            parts = ('forward_ns', 'backward_ns', 'optimizer_ns', 'data_ns', 'other_ns')
            self.assertGreaterEqual(sum(row[part] for part in parts), row['total_ns'])
            self.assertLess(row['forward_ns'] + row['optimizer_ns'] + row['other_ns'], row['total_ns'])

    def test_the_call_is_named_as_pytorchs_own(self):
        command = [harness.TORCH_PYTHON, '-c', '''
import torch
print(torch.nn.Module.__call__.__name__, torch.nn.Module.__call__.__qualname__)
torch.nn.Linear(1, 1)(torch.ones(1))''']
        bare = self.run_bare(command)
        traced, run = self.run_traced(command, ['--level', 'full'])
        self.assert_same_to_the_user(bare, traced)
        self.assertEqual([row['module'] for row in self.report(run, 'modules')], ['Linear'])

    def test_a_forward_that_raises_ends_its_ranges_and_the_exception_is_the_programs(self):
        run = self.trace('--fail')
        calls = self.calls(run)
        self.assertEqual(calls['Net'], STEPS + 1)
        self.assertEqual(calls['Net.head'], STEPS)
        unfinished = {row['name']: row['unfinished'] for row in self.report(run, 'ranges')}
        self.assertEqual(unfinished['Net'], 0)

    def test_ctrl_c_in_a_forward_is_the_programs_and_ends_its_ranges(self):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'interrupted.py', '2']
        for options in ([], ['--raise']):
            with self.subTest(options=options):
                bare = self.run_bare([*command, *options])
                self.assertIn('caught at 1', bare.stdout)
                traced, run = self.run_traced([*command, *options], ['--level', 'full'])
                self.check_interrupted(bare, traced, run, caught=not options)
                self._clean_run(run)

    def test_ctrl_c_at_the_terminal_ends_the_job_as_without_ranktap_and_the_trace_is_whole(self):
        """The terminal sends it to every process of the job, `ranktap run` among them."""
        program = [harness.TORCH_PYTHON, harness.PROGRAMS / 'interrupted.py', '2', '--raise', '--wait']
        run = self.scratch / 'run'
        bare = self.interrupt(program)
        traced = self.interrupt([harness.RANKTAP, 'run', '-o', run, '--level', 'full', '--', *program])
        self.assertIn('KeyboardInterrupt', bare.stderr)
        self.check_interrupted(bare, traced, run, caught=False)

    def interrupt(self, command):
        keyboard, terminal = os.openpty()
        self.addCleanup(os.close, keyboard)
        process = subprocess.Popen([str(part) for part in command], stdin=terminal, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=self.scratch, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(terminal)
        first = ''
        while 'in forward' not in first:
            line = process.stdout.readline()
            self.assertTrue(line, 'the program never came to its forward')
            first += line
        os.write(keyboard, b'\x03')
        rest, errors = process.communicate(timeout=harness.TIMEOUT_S)
        return subprocess.CompletedProcess(command, process.returncode, first + rest, errors)

    def check_interrupted(self, bare, traced, run, caught):
        def shell_status(done):  # a signal's death, as a shell tells it
            return done.returncode if done.returncode >= 0 else 128 - done.returncode

        self.assertEqual(traced.stdout, bare.stdout)
        self.assertEqual(shell_status(traced), shell_status(bare))
        # The innermost frame is where the signal found the program.
        theirs, _, _ = traced.stderr.partition('ranktap: ')
        self.assertEqual(theirs.rpartition('  File ')[0], bare.stderr.rpartition('  File ')[0])
        self.assertIn('KeyboardInterrupt' if not caught else '', traced.stderr)
        self.assert_verifies(run)
        calls = self.calls(run)
        self.assertEqual(calls['Sequential'], 4 if caught else 2)
        self.assertEqual(calls['Sequential.1.inner'], 3 if caught else 1)
        self.assertEqual(calls['Sequential.2'], 3 if caught else 1)
        unfinished = {row['name']: row['unfinished'] for row in self.report(run, 'ranges')}
        self.assertEqual((unfinished['Sequential'], unfinished['Sequential.1']), (0, 0))

    def test_accumulation_and_several_optimizers_make_one_step(self):
        run = self.trace('--accumulate', '3', '--optimizers', '2')
        self.assertEqual(self.calls(run)['Net'], 3 * STEPS)
        self.assertEqual(len(self.report(run, 'steps')), STEPS)

    def test_data_loader_workers_leave_no_trace(self):
        for how in ([], ['--spawn']):
            with self.subTest(how=how):
                # Python's own tracker warns of spawned workers' semaphores in some bare runs.
                run = self.trace('--workers', '2', '--steps', '2', *how,
                                 PYTHONWARNINGS='ignore::UserWarning:multiprocessing.resource_tracker')
                self.assertEqual(len(list(run.glob('*.trace'))), 1)
                self.assertNotIn('Identity', self.calls(run))
                self._clean_run(run)

    def _clean_run(self, run):
        run.rename(run.with_name(f'run-{len(list(self.scratch.iterdir()))}'))

    def test_a_compiled_model_compiles_whole_and_warns_of_nothing(self):
        run = self.trace('--compile')
        self.assertEqual(self.calls(run)['OptimizedModule'], STEPS)
        self.assertEqual(len(self.report(run, 'steps')), STEPS)

    def test_dynamo_compiles_and_recompiles_as_many_frames_as_without_ranktap(self):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'compiles.py']
        bare = self.run_bare(command)
        traced, _ = self.run_traced(command, ['--level', 'full'])
        self.assertIn('"frames": 1, ', bare.stdout)
        self.assertEqual(traced.stdout, bare.stdout)

    def test_plain_steps_run_no_python_of_ours_and_are_all_there_with_their_phases(self):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'plain_steps.py', '150']
        done, run = self.run_traced(command, ['--level', 'full', '--schedule', 'wait=100,active=1,repeat=1'])
        calls = [int(word) for word in done.stdout.split()]
        self.assertEqual(set(calls[10:60]), {0}, calls)
        self.assertLess(sum(map(bool, calls)), 20, calls)
        rows = self.report(run, 'steps')
        self.assertEqual([row['step'] for row in rows], list(range(150)))
        for row in rows:
            self.assertGreater(min(row['forward_ns'], row['backward_ns'], row['optimizer_ns']), 0, row)
        self.assertEqual(self.calls(run)['Sequential'], 150)
        operators = {row['name']: row['calls'] for row in self.report(run, 'ops')}
        self.assertEqual(operators['aten::linear'], 2)

    def test_forward_and_backward_of_an_optimizers_closure_are_not_the_optimizers(self):
        done, run = self.run_traced([harness.TORCH_PYTHON, harness.PROGRAMS / 'closure.py'], ['--level', 'full'])
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.report(run, 'steps')[1:]
        self.assertGreater(len(rows), 3)
        for row in rows:
            self.assertGreater(row['forward_ns'], 20_000_000, row)
            self.assertLess(row['optimizer_ns'], 20_000_000, row)
            parts = row['forward_ns'] + row['backward_ns'] + row['optimizer_ns']
            self.assertLessEqual(parts, row['total_ns'], row)

    def test_below_full_the_program_is_not_hooked(self):
        run = self.trace('--steps', '1', level='ranges')
        self.assertEqual(len(list(run.glob('*.trace'))), 0)

    def test_modules_are_called_though_the_agent_gets_no_memory(self):
        """New modules, so that each has to be named, with more arguments than Python passes in registers."""
        program = ('import torch\nclass Count(torch.nn.Module):\n  def forward(self, *all): return len(all)\n'
                   'print(sum(Count()(*range(40)) for _ in range(3000)))')
        asked = self.scratch / 'asked'
        refuse = {'LD_PRELOAD': str(harness.BUILD / 'workloads/refuse_memory.so'), 'REFUSE_PROGRAM': 'python', 'REFUSE_REPORT': str(asked)}
        first = 0
        for _ in range(2):  # one run counts; to the next the later half of them is refused
            done, run = self.run_traced([harness.TORCH_PYTHON, '-c', program], ['--level', 'full'], **refuse,
                                        REFUSE_FIRST=str(first), REFUSE_EVERY='1')
            self.assertEqual((done.returncode, done.stdout), (0, '120000\n'), done.stderr)
            self.assert_verifies(run)
            shutil.rmtree(run)
            first = int(asked.read_text().split()[0]) // 2
            self.assertGreater(first, 100)

    def test_python_without_torch_is_left_alone(self):
        done, run = self.run_traced([harness.TORCH_PYTHON, '-c', 'import json, sys; print([name for name in sys.modules if "ranktap" in name])'],
                                    ['--level', 'full'])
        self.assertEqual(done.stdout, '[]\n')
        self.assertEqual(len(list(run.glob('*.trace'))), 0)


if __name__ == '__main__':
    unittest.main()
