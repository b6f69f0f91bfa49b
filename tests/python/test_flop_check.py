"""ranktap run --flop-check: PyTorch's own counter beside our formulas, and nothing else changes."""
import unittest

import harness

MODELS = harness.PROGRAMS / 'flop_models.py'


@harness.needs_torch
class FlopCheckTest(harness.TracedTest):

    def check(self, command, *options):
        bare = self.run_bare(command)
        self.assertEqual(bare.returncode, 0, bare.stderr)
        traced, run = self.run_traced(command, ['--level', 'full', '--flop-check', *options])
        self.assert_same_to_the_user(bare, traced)  # every loss, bit by bit
        self.assert_verifies(run)
        return self.report(run, 'flop-check'), run

    def test_formulas_agree_operator_by_operator_forward_backward_and_recomputed(self):
        rows, run = self.check([harness.TORCH_PYTHON, MODELS, 'gpt-recompute'])
        self.assertEqual({row['verdict'] for row in rows}, {'agree'})
        operators = {row['operator'] for row in rows}
        self.assertLessEqual({'aten::addmm', 'aten::mm', 'aten::_scaled_dot_product_flash_attention_for_cpu',
                              'aten::_scaled_dot_product_flash_attention_for_cpu_backward'}, operators)
        for row in rows:
            self.assertEqual((row['calls'], row['flops']), (row['counter_calls'], row['counter_flops']))
        together = sum(row['flops'] for row in rows)
        root = min(self.report(run, 'modules'), key=lambda row: row['module'].count('.'))
        self.assertEqual(together, root['forward_flops'] + root['backward_flops'] + root['recompute_flops'])
        # The backward of fused attention computes the scores again: five products for two.
        flops = {row['operator']: row['flops'] for row in rows if 'flash' in row['operator']}
        forward, backward = sorted(flops)
        self.assertEqual(2 * flops[backward], 5 * flops[forward] // 2)  # recomputed: twice forward

    def test_convolutions_agree_by_shapes(self):
        rows, _ = self.check([harness.TORCH_PYTHON, MODELS, 'convolutions'])
        self.assertEqual({row['verdict'] for row in rows}, {'agree'})
        self.assertLessEqual({'aten::convolution', 'aten::convolution_backward'}, {row['operator'] for row in rows})

    def test_what_only_pytorch_has_a_formula_for_is_named_and_one_that_fails_does_no_harm(self):
        program = '''
import torch
from torch.utils.flop_counter import register_flop_formula
@register_flop_formula(torch.ops.aten.tanh)
def count(shape, **_):
    return 7
@register_flop_formula(torch.ops.aten.sigmoid)
def fail(*_, **__):
    raise ValueError('no such shape')
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Sigmoid())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
print(model[0].weight.sum().item().hex())
'''
        rows, _ = self.check([harness.TORCH_PYTHON, '-c', program])
        verdicts = {row['operator']: row['verdict'] for row in rows}
        self.assertEqual(verdicts['aten::tanh'], "only FlopCounterMode's")
        self.assertEqual(verdicts['aten::addmm'], 'agree')
        self.assertEqual(rows[0]['operator'], 'aten::tanh')  # what disagrees comes first

    def test_a_compiled_model_is_not_checked_and_it_says_so(self):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'train_cpu.py', '--compile']
        rows, _ = self.check(command)
        self.assertEqual(rows, [])

    def test_it_is_of_level_full(self):
        done, _ = self.run_traced(['true'], ['--flop-check'])
        self.assertEqual(done.returncode, 2)
        self.assertIn('--level full', done.stderr)


if __name__ == '__main__':
    unittest.main()
