"""`report ops` of our own capture against torch's profiler on the same program: counts, shapes, FLOPs."""
import collections
import json
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'own_ops.py'


@harness.needs_torch
class OwnOpsTest(harness.TracedTest):

    def test_operators_have_the_counts_shapes_and_flops_of_torchs_profiler(self):
        theirs = self.scratch / 'theirs.json'
        done = self.run_bare([harness.TORCH_PYTHON, PROGRAM, theirs])
        self.assertEqual(done.returncode, 0, done.stderr)
        traced, run = self.run_traced([harness.TORCH_PYTHON, PROGRAM], ['--level', 'full'])
        self.assertEqual(traced.returncode, 0, traced.stderr)

        expected = collections.Counter()
        flops = collections.Counter()
        for name, shapes, calls, counted in json.loads(theirs.read_text()):
            if self.is_compared(name):
                expected[name, shapes] += calls
                flops[name, shapes] += counted
        ours, our_flops = collections.Counter(), collections.Counter()
        for row in self.report(run, 'ops', '--group-by-shape'):
            if self.is_compared(row['name']):
                ours[row['name'], row['input_shapes']] += row['calls']
                our_flops[row['name'], row['input_shapes']] += row['flops'] or 0
        self.assertGreater(len(expected), 60)
        self.assertEqual(ours, expected)
        self.assertEqual(+our_flops, +flops)

    def test_an_operator_without_room_for_its_shapes_keeps_its_time_and_is_noted(self):
        done, run = self.run_traced([harness.TORCH_PYTHON, harness.PROGRAMS / 'many_inputs.py'], ['--level', 'full'])
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [row for row in self.report(run, 'ops', '--group-by-shape') if row['name'] == 'aten::cat']
        self.assertEqual(sum(row['calls'] for row in rows), 1)
        notes = [note for trace in json.loads((run / 'run.json').read_text())['traces'] for note in trace['notes']]
        self.assertTrue(any(note.startswith('shapes are missing in a window') for note in notes), notes)

    @staticmethod
    def is_compared(name):
        return name.startswith('aten::') or name.endswith('Backward0') or 'AccumulateGrad' in name


if __name__ == '__main__':
    unittest.main()
