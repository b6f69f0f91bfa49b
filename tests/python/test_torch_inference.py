"""Programs without an optimizer: the forwards of their root module are the steps."""
import json
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'flop_sizes.py'
GELU_MISSED = 12 * 4 * 128 * 3072  # by DeepSpeed, of BERT: see test_flop_sizes.py


@harness.needs_torch
class InferenceTest(harness.TracedTest):

    @classmethod
    def setUpClass(cls):
        cls.expected = harness.counted_by_others(PROGRAM, ['alexnet', 'bert-base'])

    def infer(self, model, forwards, *options):
        command = [harness.TORCH_PYTHON, PROGRAM, model, '--infer', forwards]
        traced, run = self.run_traced(command, ['--level', 'full', *options])
        self.assert_same_to_the_user(self.run_bare(command), traced)
        self.assert_verifies(run)
        return run

    def check_counts(self, model, run, missed=0):
        """As get_model_profile of DeepSpeed and FlopCounterMode count one forward."""
        expected = self.expected[model]
        row = min(self.report(run, 'modules'), key=lambda row: row['module'].count('.'))
        self.assertEqual(row['forward_flops'], expected['forward'])
        self.assertEqual((row['backward_flops'], row['recompute_flops']), (0, 0))
        if 'deepspeed' in expected:
            parameters = self.report(run, 'parameters')[0]['parameters']
            self.assertEqual([row['deepspeed_flops'] - missed, row['deepspeed_macs'], parameters],
                             expected['deepspeed'])

    def test_alexnet_is_counted_as_get_model_profile_counts_it_and_each_forward_is_a_step(self):
        run = self.infer('alexnet', 6)
        self.check_counts('alexnet', run)
        self.assertEqual([row['step'] for row in self.report(run, 'steps')], list(range(6)))
        self.assertEqual(sum(row['calls'] for row in self.report(run, 'ops') if row['name'] == 'aten::addmm'), 3)
        text = self.run_bare([harness.RANKTAP, 'report', run, 'modules', '--format', 'deepspeed']).stdout
        self.assertIn("depth 0:\n    params      - {'AlexNet': '61.1 M'}", text)
        verdict = self.run_bare([harness.RANKTAP, 'report', run, 'verdict']).stdout
        self.assertIn('The model is called 6 times: a call takes', verdict)

    def test_bert_is_counted_as_get_model_profile_counts_it(self):
        self.check_counts('bert-base', self.infer('bert-base', 4), GELU_MISSED)

    def test_a_server_that_sleeps_has_every_token_of_a_window_from_its_own_thread(self):
        self.scratch.mkdir(exist_ok=True)
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'serves.py', harness.RANKTAP, self.scratch / 'run']
        done, run = self.run_traced(command, ['--level', 'full', '--dormant', '--schedule', 'active=1', '--quiet'])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '20 200 20\n', ''))
        self.assert_verifies(run)
        rows = {row['module']: row for row in self.report(run, 'modules')}
        self.assertEqual(rows['Model']['calls'], 200)
        self.assertEqual(rows['Model.head']['forward_flops'], 2 * 16 * 32)
        self.assertGreaterEqual(len(self.report(run, 'steps')), 199)
        calls = {row['name']: row['calls'] for row in self.report(run, 'ops')}
        self.assertGreaterEqual(calls['aten::addmm'], 199)  # a window opens at the forward after

    def test_means_are_over_the_forwards_that_were_recorded(self):
        self.check_counts('alexnet', self.infer('alexnet', 8, '--schedule', 'wait=1,active=3'))

    def test_a_single_forward_has_its_model_and_with_a_schedule_its_operators(self):
        self.check_counts('alexnet', self.infer('alexnet', 1, '--schedule', 'active=1'))

    def test_a_program_that_evaluates_first_is_one_that_trains(self):
        program = '''
import torch
model = torch.nn.Linear(8, 4)
with torch.no_grad():
    for _ in range(5):
        model.eval()(torch.ones(2, 8))
model.train()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
'''
        command = [harness.TORCH_PYTHON, '-c', program]
        traced, run = self.run_traced(command, ['--level', 'full'])
        self.assert_same_to_the_user(self.run_bare(command), traced)
        self.assertEqual([row['step'] for row in self.report(run, 'steps')], list(range(4)))
        row, = self.report(run, 'parameters')
        self.assertEqual((row['parameters'], row['gradient_bytes']), (36, 4 * 36))
        self.assertGreaterEqual(row['state_bytes'], 2 * 4 * 36)

    def test_profile_model_needs_no_program_and_says_what_get_model_profile_says(self):
        command = [harness.RANKTAP, 'profile-model', '--python', harness.TORCH_PYTHON, 'torchvision.models:alexnet',
                   '--input-shape', '1,3,224,224', '--format', 'json', '--forwards', 1]
        done = self.run_bare(command)
        self.assertEqual(done.returncode, 0, done.stderr)
        row = min(json.loads(done.stdout)['rows'], key=lambda row: row['module'].count('.'))
        self.assertEqual((row['calls'], row['deepspeed_macs']), (3, 714_188_480))
        self.assertFalse(list(self.scratch.iterdir()))

    def test_profile_model_takes_the_active_environment_and_says_where_torch_is_missing(self):
        command = [harness.RANKTAP, 'profile-model', 'torch.nn:Linear', '--input-shape', '2', '--kwargs',
                   '{"in_features": 2, "out_features": 3}']
        done = self.run_bare([*command, '--top-modules', '3', '--module-depth', '0'],
                             VIRTUAL_ENV=str(harness.TORCH_PYTHON.parents[1]))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('Top 3 modules in terms of params', done.stdout)
        without = self.scratch / 'python3'
        without.write_text(f'#!/bin/sh\nexec {harness.TORCH_PYTHON} -S "$@"\n')
        without.chmod(0o755)
        done = self.run_bare([*command, '--python', without])
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "No module named 'torch'; name the interpreter that has torch with --python\n$")
        self.assertNotIn('Traceback', done.stderr)

    def test_a_model_that_cannot_be_made_is_said(self):
        done = self.run_bare([harness.RANKTAP, 'profile-model', '--python', harness.TORCH_PYTHON, 'torch.nn:Linear'])
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing 2 required positional arguments", done.stderr)
        self.assertNotIn('<string>', done.stderr)  # no line of a program that the user does not have
        done = self.run_bare([harness.RANKTAP, 'profile-model', 'Linear'])
        self.assertEqual(done.returncode, 2)
        self.assertIn("'Linear' is not MODULE:FACTORY", done.stderr)
        for option, text in (('--kwargs', '{bad'), ('--kwargs', '3'), ('--input-shape', 'a,3'), ('--input-shape', '1,,3')):
            done = self.run_bare([harness.RANKTAP, 'profile-model', 'torch.nn:Linear', option, text])
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, f"^ranktap: {option} '{text}' is no [^\n]*\n$")

    def test_each_token_that_a_model_writes_is_a_step(self):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'generates.py']
        traced, run = self.run_traced(command, ['--level', 'full'])
        self.assert_same_to_the_user(self.run_bare(command), traced)
        self.assertEqual(len(self.report(run, 'steps')), 12)
        # One token after the first forward's four, which is not the one recorded.
        flops = min(self.report(run, 'modules'), key=lambda row: row['module'].count('.'))['forward_flops']
        products = 2 * (12 * 48 * 48 * 2 + 48 * 100)
        self.assertGreaterEqual(flops, products)
        self.assertLess(flops, 1.2 * products)


if __name__ == '__main__':
    unittest.main()
