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

    def test_experts_stand_apart_and_what_zero_3_left_empty_counts_whole(self):
        done, run = self.run_traced([harness.TORCH_PYTHON, harness.PROGRAMS / 'experts.py'], ['--level', 'full'])
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row['module']: row for row in self.report(run, 'parameters')}
        linear, experts, gate = 8 * 8 + 8, 2 * (8 * 8 + 8), 8 * 2 + 2
        self.assertEqual(rows['Mixture.first']['parameters'], linear)
        bias, share = 8, 8 * 8 // 4  # float, and what this rank has of the weight, bfloat16
        first = rows['Mixture.first']
        self.assertEqual(first['parameter_bytes'], 4 * bias + 2 * share)
        self.assertEqual(first['gradient_bytes'], 4 * bias + 2 * share)
        self.assertEqual(first['state_bytes'], (4 + 4 + 4) * share)  # master, and Adam's two
        self.assertEqual(rows['Mixture.gate']['state_bytes'], 4 * 8 * 2 // 2)  # half a master copy; SGD has no state
        self.assertEqual({name: row['expert_parameters'] for name, row in rows.items()},
                         {'Mixture': experts, 'Mixture.first': 0, 'Mixture.gate': 0, 'Mixture.experts': experts,
                          'Mixture.experts.0': linear, 'Mixture.experts.1': linear})
        text = self.run_bare([harness.RANKTAP, 'report', run, 'modules', '--format', 'deepspeed']).stdout
        lines = [line.rstrip() for line in text.splitlines() if 'params' in line.split(':')[0] and 'of' not in line[:3]]
        dense = linear + gate
        # The labels, their order and the form of a line are DeepSpeed's: print_model_profile().
        expected = ['{:<70}  {:<8}'.format(label, value).rstrip() for label, value in (
            ('params per GPU: ', dense + experts), ('params of model: ', dense + 4 * experts),
            ('   non-expert params of model: ', dense), ('   expert params of model: ', 4 * experts))]
        at = lines.index(expected[0])
        self.assertEqual(lines[at:at + 4], expected)
        self.assertIn('expert tensor parallelism enabled: ', text)
        memory = self.run_bare([harness.RANKTAP, 'report', run, 'modules', '--format', 'deepspeed-memory']).stdout
        self.assertIn(f', {experts} = 100% Expert Params', memory)
        self.assertIn(f', {linear} = 50% Expert Params', memory)


if __name__ == '__main__':
    unittest.main()
