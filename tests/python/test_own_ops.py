"""`report ops` of our own capture against torch's profiler on the same program: counts, shapes, FLOPs."""
import collections
import json
import pathlib
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'own_ops.py'


def arrows_of_autograd(events):
    """How often a forward operator has an arrow to which operator of the backward pass."""
    starting = {(event['tid'], event['ts']): event['name'] for event in sorted(
        (event for event in events if event.get('cat') == 'cpu_op'), key=lambda event: -event['dur'])}
    ends = {phase: {event['id']: starting[event['tid'], event['ts']] for event in events
                    if event.get('cat') == 'fwdbwd' and event['ph'] == phase} for phase in 'sf'}
    assert ends['s'].keys() == ends['f'].keys()
    return collections.Counter((ends['s'][arrow], ends['f'][arrow]) for arrow in ends['s'])


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
        self.check_export(run, theirs.with_suffix('.trace.json'))

    def test_torchs_profiler_sees_beside_us_what_it_sees_alone(self):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'profile_ops.py']
        alone, beside = ((self.scratch / f'{name}.trace.json', self.scratch / f'{name}.rows.json')
                         for name in ('alone', 'beside'))
        done = self.run_bare([*command, *alone])
        self.assertEqual(done.returncode, 0, done.stderr)
        traced, _ = self.run_traced([*command, *beside], ['--level', 'full'])
        self.assertEqual(traced.returncode, 0, traced.stderr)
        expected, seen = ({way: sorted((row['name'], row['calls'], row['shapes'], row['flops']) for row in rows)
                           for way, rows in json.loads(path.read_text()).items() if isinstance(rows, list)}
                          for _, path in (alone, beside))
        self.assertGreater(len(expected['shapes']), 60)
        self.assertEqual(seen, expected)

    def check_export(self, run, reference):
        """What torch.profiler's JSON says of an operator; and in pieces, each event once."""
        def export(name, *options):
            done = self.run_bare([harness.RANKTAP, 'export', run, '-o', self.scratch / name, *options])
            self.assertEqual(done.returncode, 0, done.stderr)
            return [json.loads(pathlib.Path(path).read_text())['traceEvents'] for path in done.stdout.splitlines()]

        whole, = export('whole.json')
        operators = [event for event in whole if event.get('cat') == 'cpu_op']
        ids = [event['args']['External id'] for event in operators]
        self.assertEqual(len(set(ids)), len(ids))
        forward = {event['args']['Sequence number']: event for event in operators
                   if 'Sequence number' in event['args'] and 'Fwd thread id' not in event['args']}
        backward = [event['args'] for event in operators if 'Fwd thread id' in event['args']]
        self.assertGreater(len(backward), 10)
        for args in backward:
            self.assertIn(args['Sequence number'], forward)
        arrows = arrows_of_autograd(json.loads(reference.read_text())['traceEvents'])
        self.assertGreater(len(arrows), 5)
        self.assertEqual(arrows_of_autograd(whole), arrows)
        self.assertTrue(all('Input Dims' in event['args'] for event in operators if event['name'] == 'aten::mm'))

        def slices(events):
            return collections.Counter(json.dumps(event, sort_keys=True) for event in events if event['ph'] == 'X')

        pieces = export('pieces.json', '--split-mb', '1')
        self.assertEqual(sum(map(slices, pieces), collections.Counter()), slices(whole))
        self.assertGreater(len(pieces), 1 if len(json.dumps(whole)) > 2_000_000 else 0)

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
