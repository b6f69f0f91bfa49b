"""Public models and the articles' programs, unmodified: nothing changes, and every operator is where
PyTorch's own module tracker says."""
import collections
import json
import unittest

import harness

MODELS = harness.PROGRAMS / 'public_models.py'
STEPS = 3  # the default schedule records the last one operator by operator


@harness.needs_torch
class PublicModelsTest(harness.TracedTest):

    def check(self, model):
        command = [harness.TORCH_PYTHON, MODELS, model, '--steps', STEPS]
        bare = self.run_bare(command)
        self.assertEqual(bare.returncode, 0, bare.stderr)
        self.assertEqual(len(bare.stdout.split()), STEPS)
        traced, run = self.run_traced(command, ['--level', 'full'])
        self.assert_same_to_the_user(bare, traced)  # every loss, bit by bit
        self.assert_verifies(run)
        self.assertEqual([row['step'] for row in self.report(run, 'steps')], list(range(STEPS)))
        self.check_paths(model, run)
        return run

    def check_paths(self, model, run):
        """Of 100 operators that torch.profiler sees in a forward, 99 are here in the module that PyTorch's
        ModuleTracker says, and no module has others."""
        truth = self.run_bare([harness.TORCH_PYTHON, MODELS, model, '--paths'])
        self.assertEqual(truth.returncode, 0, truth.stderr)
        expected = collections.Counter({(name, path): calls for name, path, calls in json.loads(truth.stdout)})
        ours = collections.Counter()
        for row in self.report(run, 'ops', '--group-by-module'):
            # Outside of modules there is the optimizer too.
            if row['pass'] == 'forward' and (row['module'] or (row['name'], '') in expected):
                ours[row['name'], row['module']] += row['calls']
        elsewhere = expected - ours
        others = +collections.Counter({key: calls - expected[key] for key, calls in ours.items() if key[1]})
        self.assertGreater(expected.total(), 500)
        self.assertLessEqual(elsewhere.total(), expected.total() / 100, elsewhere)
        self.assertLessEqual(others.total(), expected.total() / 100, others)

    def test_resnet_50(self):
        run = self.check('resnet50')
        self.assertEqual(self.report(run, 'parameters')[0]['parameters'], 25_557_032)

    def test_gpt2(self):
        self.check('gpt2')

    def test_bert(self):
        self.check('bert')

    def test_the_articles_classifier(self):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'article_mlp.py']
        traced, run = self.run_traced(command, ['--level', 'full'])
        self.assert_same_to_the_user(self.run_bare(command), traced)
        self.assert_verifies(run)
        # Three epochs of a step each; the inference is a forward after the last.
        self.assertEqual([row['step'] for row in self.report(run, 'steps')], [0, 1, 2])
        calls = {row['module']: (row['calls'], row['evaluation_calls']) for row in self.report(run, 'modules')}
        self.assertEqual(calls, {'Sequential': (3, 1), **{f'Sequential.{layer}': (3, 1) for layer in range(4)},
                                 'MSELoss': (3, 0)})
        labels = {row['name']: row['calls'] for row in self.report(run, 'ranges') if row['domain'] == 'record_function'}
        self.assertEqual({f'epoch_{epoch}': labels.get(f'epoch_{epoch}') for epoch in range(3)},
                         {f'epoch_{epoch}': 1 for epoch in range(3)})
        placed = {(row['name'], row['module'], row['pass']): row['calls']
                  for row in self.report(run, 'ops', '--group-by-module')}
        for layer in (0, 2):
            self.assertEqual(placed['aten::addmm', f'Sequential.{layer}', 'forward'], 1)
        self.assertEqual(placed['aten::relu', 'Sequential.1', 'forward'], 1)
        self.assertEqual(placed['aten::sigmoid_backward', 'Sequential.3', 'backward'], 1)
        self.assertIn('epoch_2', {name for name, _, _ in placed})


if __name__ == '__main__':
    unittest.main()
