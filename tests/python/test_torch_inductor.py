"""torch.compile with its default backend, which writes C++ and has a compiler make machine code of it."""
import shutil
import unittest

import harness

PROGRAM = [harness.TORCH_PYTHON, harness.PROGRAMS / 'inductor.py']
STEPS = 5  # inductor.py's


@harness.needs_torch
@unittest.skipUnless(shutil.which('g++'), 'no g++, which inductor compiles with; scripts/setup installs it')
class InductorTest(harness.TracedTest):

    def test_a_program_compiled_by_inductor_is_unharmed_and_its_steps_are_there(self):
        """Traced first, so that the compiler runs under ranktap too; bare takes what it made."""
        caches = {'TORCHINDUCTOR_CACHE_DIR': str(self.scratch / 'cache'), 'TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE': '1',
                  'INDUCTOR_PROVENANCE': '1', 'TORCH_TRACE': str(self.scratch / 'log')}
        traced, run = self.run_traced(PROGRAM, ['--level', 'full'], **caches)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        bare = self.run_bare(PROGRAM, **caches)
        self.assertEqual(bare.returncode, 0, bare.stderr)
        self.assertEqual(len(bare.stdout.splitlines()), STEPS)
        self.assertEqual(traced.stdout, bare.stdout)  # every loss, bit by bit
        self.assert_verifies(run)
        rows = self.report(run, 'steps')
        self.assertEqual([row['step'] for row in rows], list(range(STEPS)))
        for row in rows:
            self.assertGreater(row['optimizer_ns'], 0)
        self.assert_kernels_are_told(run)

    def assert_kernels_are_told(self, run):
        """The GELU: 3 products, an error function and a sum of 4 x 16 elements."""
        named = 'name~fused_gelu_0'
        (row,) = self.report(run, 'custom-flops', '--where', named)
        self.assertIsNone(row['flops'])  # never 0
        (row,) = self.report(run, 'custom-flops', '--where', named, '--compiled', self.scratch / 'log')
        self.assertEqual(row['flops'], 0)  # FlopCounterMode counts no elementwise operator
        self.assertEqual(row['elementwise_ops'], row['calls'] * 5 * 4 * 16)
        self.assertEqual(row['operators'], 'aten::add aten::erf aten::mul')


if __name__ == '__main__':
    unittest.main()
