"""PyTorch Lightning, whose Strategy calls a LightningModule's steps past Module.__call__, or through a wrapper's."""
import subprocess
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'lightning_fit.py'
EPOCHS, BATCHES = 2, 4  # of the program
STEPS = EPOCHS * BATCHES
EVALUATIONS = 2 + STEPS + 2 * BATCHES  # of Lightning's sanity check, of each epoch, of test and of predict
LAYERS = ('encoder', 'encoder.0', 'encoder.1', 'decoder')
FORWARD_FLOPS = 2 * (2 * 8 * 16 + 2 * 16)
BACKWARD_FLOPS = 2 * (2 * 8 * 16 + 2 * 2 * 16)  # the input wants no gradient


def needs_lightning(test):
    found = harness.TORCH_PYTHON.exists() and subprocess.run(
        [harness.TORCH_PYTHON, '-c', 'import importlib.util as u, sys; '
         'sys.exit(not (u.find_spec("lightning") and u.find_spec("pytorch_lightning")))']).returncode == 0
    return unittest.skipUnless(found, 'no Lightning; scripts/setup --torch installs it')(test)


@needs_lightning
class LightningTest(harness.TracedTest):

    def trace(self, package, way, status=0):
        """Bare and traced, at the same time; the program must not notice."""
        command = [harness.TORCH_PYTHON, PROGRAM, package, way]
        bare = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.scratch)
        traced, run = self.run_traced(command, ['--level', 'full'])
        out, errors = bare.communicate(timeout=harness.TIMEOUT_S)
        self.assertEqual(bare.returncode, status, errors)
        bare = subprocess.CompletedProcess(command, bare.returncode, out, errors)
        if way == 'ddp':  # the ranks' lines come as they come
            for done in (bare, traced):
                done.stderr = '\n'.join(sorted(done.stderr.partition('ranktap: ')[0].splitlines()))
        self.assert_same_to_the_user(bare, traced)  # every loss, bit by bit
        self.assert_verifies(run)
        return run

    def calls(self, run):
        return {row['module']: (row['calls'], row['evaluation_calls']) for row in self.report(run, 'modules')}

    def check_model(self, run, root, forwards, evaluations, recorded=(1, 1)):
        """It is the root, and each of its layers runs once in each forward. recorded: forward and backward passes
        in the step that is recorded."""
        expected = {name: (forwards, evaluations) for name in (root, *(f'{root}.{layer}' for layer in LAYERS))}
        calls = self.calls(run)
        self.assertEqual({name: calls.get(name) for name in expected}, expected, calls)
        row = next(row for row in self.report(run, 'modules') if row['module'] == root)
        self.assertEqual((row['forward_flops'], row['backward_flops']), (recorded[0] * FORWARD_FLOPS, recorded[1] * BACKWARD_FLOPS))
        return calls

    def test_the_module_is_the_root_of_steps_that_call_its_layers_and_a_steps_exception_is_the_programs(self):
        run = self.trace('lightning.pytorch', 'layers', status=1)
        # Evaluations of the first model before the second one's two backward passes look like training.
        calls = self.check_model(run, 'LitModel', STEPS + 2, EVALUATIONS - 2)
        # Of the second model the step that raises has no backward pass, after the two of the sanity check.
        self.assertEqual((calls['FailingModel'], calls['FailingModel.decoder']), ((2, 3), (2, 2)))
        self.assertEqual({name.partition('.')[0] for name in calls}, {'LitModel', 'FailingModel'})
        parameters = {row['module']: row['parameters'] for row in self.report(run, 'parameters')}
        self.assertEqual((parameters['LitModel'], parameters['LitModel.encoder']), (8 * 16 + 16 + 16 + 1, 8 * 16 + 16))
        text = self.run_bare([harness.RANKTAP, 'report', run, 'modules', '--format', 'deepspeed']).stdout
        self.assertIn("depth 0:\n    params      - {'LitModel': '161'}", text)
        self.assertIn("depth 1:\n    params      - {'Sequential': '144'}", text)
        unfinished = {row['name']: row['unfinished'] for row in self.report(run, 'ranges')}
        self.assertEqual((unfinished['LitModel'], unfinished['FailingModel']), (0, 0))

    def test_a_step_that_calls_its_module_is_one_forward_under_the_other_name_and_with_accumulation(self):
        run = self.trace('pytorch_lightning', 'accumulate')
        # The first of an epoch: two micro-batches. The validation of the epoch before is no part of it.
        calls = self.check_model(run, 'LitModel', STEPS, EVALUATIONS, recorded=(2, 2))
        self.assertEqual(len(calls), 1 + len(LAYERS))
        self.assertEqual(len(self.report(run, 'steps')), STEPS // 2)

    def test_a_step_that_optimizes_by_hand_is_one_forward(self):
        run = self.trace('lightning.pytorch', 'manual')
        self.check_model(run, 'ManualModel', STEPS, EVALUATIONS)
        # Without the backward pass and the optimizer that run inside.
        for row in self.report(run, 'steps')[1:]:
            self.assertGreater(row['optimizer_ns'], 0, row)
            parts = row['forward_ns'] + row['backward_ns'] + row['optimizer_ns']
            self.assertLessEqual(parts, row['total_ns'], row)
        passes = {row['pass'] for row in self.report(run, 'ops', '--group-by-module') if row['name'] == 'aten::add_'}
        self.assertEqual(passes, {''})

    def test_a_compiled_module_compiles_as_bare_and_is_one_root(self):
        run = self.trace('lightning.pytorch', 'compile')
        calls = self.calls(run)
        self.assertEqual(calls['LitModel'], (STEPS, EVALUATIONS))
        self.assertFalse([name for name in calls if name.startswith('LitModel.')], calls)
        self.assertEqual(len(self.report(run, 'steps')), STEPS)

    def test_under_ddp_a_step_that_calls_its_module_counts_it_once(self):
        run = self.trace('lightning.pytorch', 'ddp')
        evaluations = 2 + STEPS + BATCHES
        calls = self.check_model(run, 'DistributedDataParallel.module', 2 * STEPS, 2 * evaluations)
        self.assertEqual(calls['DistributedDataParallel'][0], 2 * STEPS)
        self.assertEqual([row['rank'] for row in self.report(run, 'ranks')], [0, 1])

    def test_asleep_lightnings_own_methods_run_and_awake_its_module_is_the_root(self):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'lightning_asleep.py', harness.RANKTAP,
                   self.scratch / 'run']
        done, run = self.run_traced(command, ['--level', 'full', '--dormant'])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), ['asleep True 0', 'awake', 'asleep True 0'])
        calls = self.calls(run)
        self.assertEqual(set(calls), {'LitModel', 'LitModel.layer'})
        self.assertGreaterEqual(calls['LitModel'][0], 5)
        self.assert_verifies(run)

    def test_a_lightning_of_another_layout_is_left_alone_and_a_note_says_so(self):
        package = self.scratch / 'lightning/pytorch/strategies'
        package.mkdir(parents=True)
        for folder in (package, *list(package.parents)[:2]):
            (folder / '__init__.py').touch()
        (package / 'strategy.py').write_text('class Strategy:\n    def training_step(self):\n        return 1\n')
        program = ('import torch\nfrom lightning.pytorch.strategies.strategy import Strategy\n'
                   'print(Strategy().training_step(), Strategy.training_step.__code__.co_name)\n'
                   'torch.nn.Identity()(torch.ones(1))\n')
        traced, run = self.run_traced([harness.TORCH_PYTHON, '-c', program], ['--level', 'full'],
                                      PYTHONPATH=str(self.scratch))
        self.assertEqual(traced.stdout, '1 training_step\n', traced.stderr)
        notes = self.run_bare([harness.RANKTAP, 'report', run, 'ranks', '--format', 'json']).stdout
        self.assertIn('lightning.pytorch.strategies.strategy is not as we know it', notes)


if __name__ == '__main__':
    unittest.main()
