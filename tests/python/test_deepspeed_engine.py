"""Mixtures of experts and ZeRO-3 by DeepSpeed's own engine, on two ranks."""
import os
import unittest

import harness

BINARIES = harness.CACHE / 'deepspeed-venv/bin'
# Everything that depends neither on time nor on what DeepSpeed does not count.
COUNTED = ('world size: ', 'expert tensor parallelism enabled: ', 'params per GPU: ', 'params of model: ',
           '   non-expert params of model: ', '   expert params of model: ', 'fwd MACs per GPU: ', 'fwd flops per GPU: ')


def counted(text):
    lines = [line for line in text.splitlines() if line.startswith(COUNTED)]
    return [line.split(':')[0] + ':' + line.split(':')[1].rstrip() for line in lines]


@unittest.skipUnless((BINARIES / 'deepspeed').exists(), 'no DeepSpeed; scripts/setup --torch --tools installs it')
class DeepSpeedEngineTest(harness.TracedTest):

    def train(self, which):
        done, run = self.run_traced(
            [BINARIES / 'deepspeed', '--num_gpus', '2', harness.PROGRAMS / 'deepspeed_engine.py', which, self.scratch],
            ['--level', 'full', '--schedule', 'wait=2,active=1'], DS_ACCELERATOR='cpu',
            PATH=f'{BINARIES}:{os.environ["PATH"]}')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_verifies(run)
        return run

    def test_a_mixtures_experts_are_counted_as_deepspeeds_own_profiler_counts_them(self):
        run = self.train('experts')
        theirs = counted((self.scratch / '0').read_text())
        self.assertEqual(len(theirs), len(COUNTED), theirs)
        for rank in '01':
            done = self.run_bare([harness.RANKTAP, 'report', run, 'modules', '--format', 'deepspeed', '--ranks', rank])
            self.assertEqual(counted(done.stdout), theirs)

    def test_zero_3_leaves_each_rank_half_of_everything_and_every_parameter_counts(self):
        run = self.train('zero3')
        parameters = 16 * 64 + 64 + 64 * 8 + 8
        for rank in '01':
            rows = self.report(run, 'parameters', '--ranks', rank)
            model = next(row for row in rows if row['module'] == 'DeepSpeedEngine.module')
            self.assertEqual(model['parameters'], parameters)
            half = parameters // 2
            # bfloat16 weights and gradients; master copies and Adam's two moments in float32.
            self.assertEqual([model[f'{part}_bytes'] for part in ('parameter', 'gradient', 'state')],
                             [2 * half, 2 * half, 12 * half])


if __name__ == '__main__':
    unittest.main()
