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
        caches = {'TORCHINDUCTOR_CACHE_DIR': self.scratch / 'cache'}
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


if __name__ == '__main__':
    unittest.main()
