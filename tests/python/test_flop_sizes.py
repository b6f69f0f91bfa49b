"""FLOPs of public models at their published sizes, against FlopCounterMode, a real DeepSpeed and the published
numbers."""
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'flop_sizes.py'
COMPARED = ('resnet18', 'alexnet', 'bert-base', 'gpt2', 'gpt2-one')
# Functions that transformers bound to names of its own before DeepSpeed replaced them: it does not count them.
MISSED = {'bert-base': 12 * 4 * 128 * 3072}  # GELU


@harness.needs_torch
class PublishedSizesTest(harness.TracedTest):

    @classmethod
    def setUpClass(cls):
        cls.expected = harness.counted_by_others(PROGRAM, COMPARED)

    def root(self, model, *options):
        """The row of the root module, with no difference to what others count."""
        traced, run = self.run_traced([harness.TORCH_PYTHON, PROGRAM, model], ['--level', 'full', *options])
        self.assertEqual(traced.returncode, 0, traced.stderr)
        row = min(self.report(run, 'modules'), key=lambda row: row['module'].count('.'))
        if model in self.expected:
            expected = self.expected[model]
            self.assertEqual(row['forward_flops'], expected['forward'])
            self.assertEqual(row['forward_flops'] + row['backward_flops'], expected['total'])
            self.assertEqual(row['recompute_flops'], 0)
            if 'deepspeed' in expected:
                parameters = self.report(run, 'parameters')[0]['parameters']
                self.assertEqual([row['deepspeed_flops'] - MISSED.get(model, 0), row['deepspeed_macs'], parameters], expected['deepspeed'])
        return row, run

    @harness.needs_deepspeed
    def test_deepspeed_took_part(self):
        for model in COMPARED:
            self.assertEqual('deepspeed' in self.expected[model], model != 'gpt2')

    def test_resnet_18(self):
        row, _ = self.root('resnet18')
        self.assertEqual(row['forward_flops'], 3_628_146_688)
        self.assertEqual(row['forward_flops'] + row['backward_flops'], 10_648_412_160)
        self.assertEqual(row['deepspeed_flops'], 3_636_250_112)

    def test_alexnet_with_256_images(self):
        row, _ = self.root('alexnet')
        self.assertEqual(row['deepspeed_macs'], 256 * 714_188_480)

    def test_bert_base(self):
        row, _ = self.root('bert-base')
        self.assertEqual(row['deepspeed_macs'], 44_696_868_864)
        self.assertEqual(row['forward_flops'], 89_393_737_728)
        self.assertEqual(row['backward_flops'], 2 * row['forward_flops'])  # attention is materialised

    def test_gpt_2_with_materialised_attention_and_the_check_of_the_formulas(self):
        row, run = self.root('gpt2', '--flop-check')
        self.assertEqual(row['forward_flops'], 2_333_186_457_600)
        self.assertEqual(row['forward_flops'] + row['backward_flops'], 6_999_559_372_800)
        checked = self.report(run, 'flop-check')
        self.assertEqual({check['verdict'] for check in checked}, {'agree'})
        self.assertEqual(sum(check['counter_flops'] for check in checked), 6_999_559_372_800)

    def test_gpt_2_as_deepspeed_counts_it(self):
        self.root('gpt2-one')

    def test_the_backward_of_gpt_2_with_fused_attention_computes_the_scores_again(self):
        row, run = self.root('gpt2-fused')
        fused = 'aten::_scaled_dot_product_flash_attention_for_cpu'
        attention = sum(op['counted_flops'] for op in self.report(run, 'ops') if op['name'] == fused)
        self.assertEqual(attention, 12 * 4 * 2 * 64 * 64 * 120)
        rest = row['forward_flops'] - attention
        self.assertEqual(row['backward_flops'], 2 * rest + 5 * attention // 2)
        # The same at the published size, where nothing but the sizes differs.
        forward, attention = 2_333_186_457_600, 12 * 4 * 8 * 1024 * 1024 * 768
        together = forward + 2 * (forward - attention) + 5 * attention // 2
        self.assertEqual(together, 7_154_178_195_456)
        self.assertAlmostEqual(together / forward - 1, 2.066, places=3)

    def test_the_old_rule_gives_the_published_samples(self):
        for model, published in (('article-bert', 3139.93), ('article-megatron', 41271.95)):
            with self.subTest(model):
                row, run = self.root(model)
                self.assertEqual(round(row['deepspeed_old_macs'] / 1e9, 2), published)
                # Attention's products, which it left out.
                self.assertGreater(row['deepspeed_macs'], 1.005 * row['deepspeed_old_macs'])
                run.rename(run.with_name(model))


if __name__ == '__main__':
    unittest.main()
