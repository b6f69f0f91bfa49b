"""What operators return and whose tensors they take (ranktap run --tensors), against PyTorch's
ExecutionTraceObserver."""
import collections
import json
import unittest
import xml.etree.ElementTree

import harness
import test_exports

PROGRAM = harness.PROGRAMS / 'tensor_flow.py'
OPTIONS = ['--level', 'full', '--schedule', 'wait=1,active=1,repeat=1']
Input = collections.namedtuple('Input', 'place element tensor storage bytes')


def tensors_of(side):
    found = []
    for place, (value, shape, stride) in enumerate(zip(side['values'], side['shapes'], side['strides'])):
        is_list = isinstance(value, list) and value and isinstance(value[0], list)
        rows = zip(value, shape, stride) if is_list else [(value, shape, stride)]
        for element, (entry, sizes, steps) in enumerate(rows):
            if isinstance(entry, list) and len(entry) == 6 and isinstance(entry[5], str):
                extent = 1 + sum((size - 1) * step for size, step in zip(sizes, steps))
                found.append(Input(place, element, entry[0], entry[1], extent * entry[4]))
    return found


class Observed:
    """The operators of an execution trace, as they began, and which took what from which."""

    def __init__(self, trace):
        nodes = sorted((node for node in trace['nodes'] if node['id'] > 2), key=lambda node: node['id'])
        rows = {node['id']: row for row, node in enumerate(nodes)}
        self.nodes = nodes
        self.names = [node['name'] for node in nodes]
        self.parents = [rows.get(node['ctrl_deps']) for node in nodes]
        self.inputs = [tensors_of(node['inputs']) for node in nodes]
        self.outputs = [tensors_of(node['outputs']) for node in nodes]
        self.arrows = {}  # (operator, place, element): producer
        self._returned, self._made, self._taken, self._time = {}, {}, collections.defaultdict(list), 0
        self._bytes, self._lives = {}, collections.Counter()
        children = collections.defaultdict(list)
        for row, parent in enumerate(self.parents):
            children[parent].append(row)
        self._visit(children, None)

    def around(self, row):
        while (row := self.parents[row]) is not None:
            yield row

    def shared_bytes(self, source, row):
        """Of the largest input that is in memory which the source had; 0: none is."""
        had = {entry.storage for entry in (*self.outputs[source], *self.inputs[source])}
        return max((entry.bytes for entry in self.inputs[row] if entry.storage in had), default=0)

    def _visit(self, children, parent):
        for row in children[parent]:
            self._start(row)
            self._visit(children, row)
            self._end(row)

    def _storage(self, entry):
        """Which storage. PyTorch's number of one that was freed is that of the next at its address, where an
        operator made it inside: it is another where there is more in it than there was before."""
        if entry.bytes > self._bytes.setdefault(entry.storage, entry.bytes):
            self._bytes[entry.storage] = entry.bytes
            self._lives[entry.storage] += 1
        return entry._replace(storage=(entry.storage, self._lives[entry.storage]))

    def _start(self, row):
        self.inputs[row] = [self._storage(entry) for entry in self.inputs[row]]
        for entry in self.inputs[row]:
            made = max(self._returned.get((entry.tensor, entry.storage), (0, None)),
                       self._made.get(entry.storage, (0, None)), key=lambda made: made[0])
            source = made[1], entry.storage
            if made[0] and not any(source in self._taken[other] for other in self.around(row)):
                self.arrows[row, entry.place, entry.element] = made[1]
            self._taken[row].append(source)

    def _end(self, row):
        self._time += 1
        made = self._time, row
        self.outputs[row] = [self._storage(entry) for entry in self.outputs[row]]
        for entry in self.outputs[row]:
            self._returned[entry.tensor, entry.storage] = made
            if all(storage != entry.storage for _, storage in self._taken[row]):
                self._made[entry.storage] = made  # and no view of what it was given
        if self.names[row].endswith('_'):
            for entry in self.inputs[row]:
                if entry.place == 0:
                    self._returned[entry.tensor, entry.storage] = self._made[entry.storage] = made


@harness.needs_torch
class TensorsTest(harness.TracedTest):

    def record(self, *options):
        done, run = self.run_traced([harness.TORCH_PYTHON, PROGRAM, *options], [*OPTIONS, '--tensors'])
        self.assert_same_to_the_user(self.run_bare([harness.TORCH_PYTHON, PROGRAM, *options]), done)
        self.assert_verifies(run)
        return run

    def export(self, run, *options, name='trace.json'):
        path = self.scratch / name
        done = self.run_bare([harness.RANKTAP, 'export', run, '-o', path, *options])
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def events(self, run, *options):
        return json.loads(self.export(run, *options).read_text())['traceEvents']

    def test_outputs_and_arrows_are_those_of_pytorchs_observer(self):
        reference = self.scratch / 'reference.json'
        done = self.run_bare([harness.TORCH_PYTHON, PROGRAM, '--reference', reference])
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = json.loads(reference.read_text())
        trace['nodes'] = [node for node in trace['nodes'] if not node['name'].startswith('Optimizer.')]
        observed = Observed(trace)
        run = self.record()
        events = self.events(run, '--arrows', 'tensors')
        operators = sorted((event for event in events if event.get('cat') == 'cpu_op'),
                           key=lambda event: event['args']['External id'])
        self.assertEqual([event['name'] for event in operators], observed.names)
        self.check_outputs(operators, observed)
        self.check_arrows(events, operators, observed)
        self.assertFalse([event for event in self.events(run) if event.get('cat') == 'tensor'])
        self.check_ids(operators)
        self.check_layouts(run)
        if test_exports.TOOLS_PYTHON.exists():
            arrows = sum(event.get('cat') == 'tensor' and event['ph'] == 's' for event in events)
            self.assertEqual(self.perfetto_arrows(run, '--arrows', 'tensors') - self.perfetto_arrows(run), arrows)

    def perfetto_arrows(self, run, *options):
        counts = test_exports.perfetto_counts(
            self.export(run, '--format', 'perfetto', *options, name='trace.pftrace'))
        self.assertEqual(counts['arrows'], counts['arrow ends'])
        return counts['arrows']

    def check_outputs(self, operators, observed):
        for event, node in zip(operators, observed.nodes):
            expected = [[list(sizes) for sizes in shape] if shape and isinstance(shape[0], list) else shape
                        for shape in node['outputs']['shapes']]
            self.assertEqual(event['args'].get('Output Dims', []), expected, node['name'])
            types = [text[len('Tensor('):-1] if text.startswith('Tensor(') else
                     'TensorList' if text.startswith('GenericList') else 'Scalar'
                     for text in node['outputs']['types']]
            self.assertEqual(event['args'].get('Output type', []), types, node['name'])

    def check_arrows(self, events, operators, observed):
        at = {(event['tid'], event['ts']): row for row, event in enumerate(operators)}
        ends = collections.defaultdict(dict)
        for event in events:
            if event.get('cat') == 'tensor':
                ends[event['id']][event['ph']] = at[event['tid'], event['ts']]
        ours = collections.Counter((pair['s'], pair['f']) for pair in ends.values())
        truth = collections.Counter((source, row) for (row, _, _), source in observed.arrows.items())
        every = set(ours)
        sizes = {pair: observed.shared_bytes(*pair) for pair in {*ours, *truth}}
        for pair in ours:
            self.assertGreater(sizes[pair], 0, [observed.names[row] for row in pair])
        # Numbers that an operator makes a tensor of inside are where others were: the observer takes them for these.
        ours, truth = ({pair: count for pair, count in arrows.items() if sizes[pair] > 8} for arrows in (ours, truth))
        self.assertGreater(len(truth), 60)
        backward = {row for row, name in enumerate(observed.names)
                    if any(observed.names[other].startswith('autograd::') for other in (row, *observed.around(row)))}

        def forward(arrows):
            return {pair: count for pair, count in arrows.items() if pair[1] not in backward}

        # Its numbers of storages are used again too, so it has a few arrows that are none, never fewer. Backward
        # what was saved comes as a new tensor where an old one was: there ours are held to the memory alone.
        ours, truth = set(forward(ours)), set(forward(truth))
        self.assertGreater(len(ours & truth), 30)
        self.assertGreaterEqual(len(ours & truth), 0.9 * max(len(ours), len(truth)))
        named = {(observed.names[source], observed.names[row]) for source, row in every}
        for pair in (('aten::mul_', 'aten::sum'), ('aten::_foreach_add_', 'aten::add'), ('aten::split', 'aten::cat'),
                     ('aten::relu_', 'aten::split'), ('aten::linear', 'aten::layer_norm')):
            self.assertIn(pair, named)

    def check_ids(self, operators):
        """PyTorch's numbers of record functions: each once, in the order in which operators began."""
        numbers = [event['args']['Record function id'] for event in operators if 'Output Dims' in event['args']]
        self.assertGreater(len(numbers), 60)
        self.assertEqual(numbers, sorted(set(numbers)))

    def check_layouts(self, run):
        """memory_flow.svg: each tensor that an operator returned, with its sizes and dtype."""
        tag = '{https://megengine.org.cn}'
        picture = xml.etree.ElementTree.parse(self.export(run, '--format', 'memory-flow', name='flow.svg')).getroot()
        blocks = [element for element in picture if element.get(f'{tag}type') == 'tensor']
        layouts = collections.Counter()
        for block in blocks:
            layout, size = block.get(f'{tag}layout'), int(block.get(f'{tag}size'))
            layouts[layout] += 1
            if layout.endswith('float'):
                numbers = [int(part) for part in layout[1:layout.index('}')].split(',') if part]
                elements = 1
                for number in numbers:
                    elements *= number
                self.assertEqual(4 * elements, size, layout)
        self.assertLessEqual(layouts[''], len(blocks) // 5, layouts)
        self.assertGreaterEqual(layouts['{5} float'], 7)   # zeros, what the loop made, and neg
        self.assertGreaterEqual(layouts['{8,6} float'], 1)  # a weight

    def test_without_the_option_there_are_none(self):
        done, run = self.run_traced([harness.TORCH_PYTHON, PROGRAM], OPTIONS)
        self.assertEqual(done.returncode, 0, done.stderr)
        events = self.events(run, '--arrows', 'tensors')
        self.assertTrue([event for event in events if event['name'] == 'aten::linear'])
        self.assertFalse([event for event in events if 'Output Dims' in event.get('args', {})])
        self.assertFalse([event for event in events if event.get('cat') == 'tensor'])

    def test_what_is_too_much_for_an_event_is_left_out_and_counted(self):
        program = '''
import torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
many = [torch.ones(1) for _ in range(600)]
for step in range(3):
    torch._foreach_add_(many, 1.0)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
'''
        done, run = self.run_traced([harness.TORCH_PYTHON, '-c', program], [*OPTIONS, '--tensors'])
        self.assertEqual(done.returncode, 0, done.stderr)
        notes = self.run_bare([harness.RANKTAP, 'report', run, 'ranks', '--format', 'json']).stdout
        self.assertIn('88 tensors of operators', notes)
        self.assertTrue([event for event in self.events(run, '--arrows', 'tensors') if event.get('cat') == 'tensor'])

    def test_a_compiled_model_runs_as_without(self):
        run = self.record('--compiled')
        events = self.events(run, '--arrows', 'tensors')
        self.assertTrue([event for event in events if event.get('cat') == 'tensor'])


if __name__ == '__main__':
    unittest.main()
