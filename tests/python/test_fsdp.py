"""Models whose parameters are split over the ranks: whole in elements, this rank's share in bytes."""
import socket
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'sharded.py'
FIRST, LAST = 16 * 32 + 32, 32 * 8 + 8
RANKS = 2


@harness.needs_torch
class ShardedTest(harness.TracedTest):

    def test_parameters_count_whole_and_bytes_are_those_of_the_rank(self):
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            port = probe.getsockname()[1]
        done, run = self.run_traced([harness.TORCH_PYTHON, PROGRAM, str(port)], ['--level', 'full'])
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(RANKS):
            rows = {row['module']: row for row in self.report(run, 'parameters', '--ranks', str(rank))}
            root = next(iter(rows))
            for module, parameters in ((root, FIRST + LAST), (f'{root}.0', FIRST), (f'{root}.2', LAST)):
                row = rows[module]
                self.assertEqual(row['parameters'], parameters, (rank, module))
                self.assertEqual(row['parameter_bytes'], 4 * parameters // RANKS, (rank, module))
            steps = 4 * 4  # Adam counts the steps of each of 4 tensors
            self.assertEqual(rows[root]['state_bytes'], 2 * 4 * (FIRST + LAST) // RANKS + steps)
        row = self.report(run, 'throughput')[0]
        self.assertEqual((row['data_parallel'], row['batch']), (RANKS, 4))


if __name__ == '__main__':
    unittest.main()
