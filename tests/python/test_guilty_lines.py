"""Ranks with a planted guilty line: the verdict's sentence names file and line."""
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'guilty.py'
LINES = {line.rsplit('# ', 1)[1]: number
         for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if '  # ' in line}
TORCHRUN = [harness.TORCH_PYTHON, '-m', 'torch.distributed.run', '--nproc-per-node', '2', '--master-port', '0', '--standalone']


@harness.needs_torch
class GuiltyLinesTest(harness.TracedTest):

    def verdict(self, name):
        done, run = self.run_traced([*TORCHRUN, PROGRAM, name], ['--level', 'full', '--sample', '5ms', '--quiet'],
                                    OMP_NUM_THREADS='1')
        self.assertEqual(done.returncode, 0, done.stderr)
        table = self._run([harness.RANKTAP, 'report', run, 'verdict', '--format', 'json'], {})
        self.assertEqual(table.returncode, 0, table.stderr)
        # The launcher gave samples alone, and is no rank.
        self.assertEqual(len(self.report(run, 'ranks')), 2)
        return table.stdout

    def check(self, name):
        self.assertIn(f'guilty.py:{LINES[name]} (', self.verdict(name))

    def test_a_rank_that_sleeps_in_its_loop(self):
        self.check('sleep')

    def test_a_rank_with_a_slow_hand_written_generator_of_batches(self):
        self.check('loader')

    def test_a_rank_that_is_late_in_a_module_of_pure_python(self):
        self.check('forward')

    def test_a_rank_that_logs_to_something_slow(self):
        self.check('log')


if __name__ == '__main__':
    unittest.main()
