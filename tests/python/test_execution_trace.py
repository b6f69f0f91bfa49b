"""ranktap export --format et against PyTorch's ExecutionTraceObserver: in a run of its own, and in the same
process, node by node."""
import ast
import collections
import json
import unittest

import harness
import test_torch_distributed

PROGRAM = harness.PROGRAMS / 'execution_trace.py'
RANKS_PROGRAM = harness.PROGRAMS / 'execution_ranks.py'
OPTIONS = ['--level', 'full', '--schedule', 'wait=1,active=1,repeat=1', '--tensors=full']
ATTRIBUTES = ['rf_id', 'fw_parent', 'seq_id', 'scope', 'tid', 'fw_tid', 'op_schema', 'kernel_backend', 'kernel_file',
              'tensor_range']
FRAME = ('[pytorch|', '## process_group')  # names of nodes that are no operators
HTA_PYTHON = harness.CACHE / 'hta-venv/bin/python'
# What HTA knows of collectives, from the arguments that it reads in torch.profiler's files.
HTA_COLLECTIVES = """
import json, sys
from hta.common.trace import Trace
from hta.configs.parser_config import ParserConfig
ParserConfig.enable_communication_args()
trace = Trace(trace_files=dict(enumerate(sys.argv[1:])), trace_dir='.')
trace.parse_traces()
trace.decode_symbol_ids()
columns = ['s_name', 'collective_name', 'in_msg_nelems', 'out_msg_nelems', 'msg_dtype', 'group_size']
print(json.dumps([trace.get_trace(rank)[columns].values.tolist() for rank in range(len(sys.argv) - 1)]))
"""


def attributes(node):
    return {entry['name']: entry['value'] for entry in node['attrs']}


def is_tensor(value):
    return (isinstance(value, list) and len(value) == 6 and isinstance(value[5], str) and
            all(type(number) is int for number in value[:5]))


class Numbers:
    """Two traces' numbers of tensors and storages: which stands for which, one for one."""

    def __init__(self):
        self.ours, self.theirs = {}, {}

    def same(self, ours, theirs):
        if ours == 0 or theirs == 0:
            return ours == theirs
        return self.ours.setdefault(ours, theirs) == theirs and self.theirs.setdefault(theirs, ours) == ours

    def same_value(self, ours, theirs):
        if is_tensor(ours) and is_tensor(theirs):
            return self.same(ours[0], theirs[0]) and self.same(ours[1], theirs[1]) and ours[2:] == theirs[2:]
        if isinstance(ours, list) and isinstance(theirs, list):
            return len(ours) == len(theirs) and all(map(self.same_value, ours, theirs))
        return ours == theirs and isinstance(ours, type(theirs))


class Trace:

    def __init__(self, path, without=()):
        self.file = json.loads(path.read_text())
        self.nodes = {node['id']: node for node in self.file['nodes']}
        self.without = without

    def operators(self):
        """As they began."""
        return [node for _, node in sorted(self.nodes.items()) if not node['name'].startswith((*FRAME, *self.without))]

    def parent(self, node):
        """The nearest that is an operator; None: a thread is."""
        above = self.nodes[node['ctrl_deps']]
        while above['name'].startswith(self.without) and self.without:
            above = self.nodes[above['ctrl_deps']]
        return None if above['name'].startswith(FRAME) else above


@harness.needs_torch
class ExecutionTraceTest(harness.TracedTest):

    def record(self, *options):
        command = [harness.TORCH_PYTHON, PROGRAM, *options]
        _, run = self.run_traced(command, OPTIONS, RANKTAP_RANK='3')
        self.assert_verifies(run)
        return run

    def export(self, run):
        done = self.run_bare([harness.RANKTAP, 'export', run, '--format', 'et', '-o', self.scratch])
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.scratch / done.stdout.strip().rsplit('/', 1)[-1]

    def assert_same_node(self, ours, theirs, numbers):
        name = theirs['name']
        self.assertEqual(ours['name'], name)
        for side in ('inputs', 'outputs'):
            for part in ('shapes', 'types', 'strides'):
                self.assertEqual(ours[side][part], theirs[side][part], f'{side} {part} of {name}')
            self.assertTrue(numbers.same_value(ours[side]['values'], theirs[side]['values']),
                            f"{side} of {name}: {ours[side]['values']} {theirs[side]['values']}")
        known, expected = attributes(ours), attributes(theirs)
        for attribute in ('scope', 'tid', 'fw_tid', 'op_schema', 'kernel_backend', 'kernel_file', 'tensor_range'):
            self.assertEqual(known[attribute], expected[attribute], f'{attribute} of {name}')

    def test_nodes_are_those_of_pytorchs_observer_in_a_run_of_its_own(self):
        reference = self.scratch / 'reference.json'
        done = self.run_bare([harness.TORCH_PYTHON, PROGRAM, '--reference', reference])
        self.assertEqual(done.returncode, 0, done.stderr)
        theirs = Trace(reference, ('Optimizer.',))
        ours = Trace(self.export(self.record()), ('Optimizer.', 'epoch_0'))
        self.assertEqual([node['name'] for node in ours.operators()], [node['name'] for node in theirs.operators()])
        rows = [{id(node): row for row, node in enumerate(trace.operators())} for trace in (ours, theirs)]
        first = [attributes(trace.operators()[0])['rf_id'] for trace in (ours, theirs)]
        numbers = [Numbers() for _ in range(len(rows[0]))]  # addresses are used again as each process likes
        for own, other, each in zip(ours.operators(), theirs.operators(), numbers):
            self.assert_same_node(own, other, each)
            self.assertEqual(rows[0].get(id(ours.parent(own))), rows[1].get(id(theirs.parent(other))), own['name'])
            self.assertEqual(attributes(own)['rf_id'] - first[0] > 0, attributes(other)['rf_id'] - first[1] > 0)
        self.assertGreater(len(numbers), 150)

    def test_beside_the_programs_own_observer_and_profiler_every_node_joins_by_its_id(self):
        observed, profiled = self.scratch / 'own.json', self.scratch / 'profile.json'
        run = self.record('--own', observed, profiled)
        theirs, ours = Trace(observed), Trace(self.export(run))
        by_id = {attributes(node)['rf_id']: node for node in theirs.operators()}
        kineto = {event['args'].get('Record function id') for event in json.loads(profiled.read_text())['traceEvents']
                  if event.get('cat') in ('cpu_op', 'user_annotation')}
        numbers, seen = Numbers(), 0
        for node in ours.operators():
            known = attributes(node)
            if known['rf_id'] == 0:
                continue
            other = by_id[known['rf_id']]
            self.assertIn(known['rf_id'], kineto)
            self.assert_same_node(node, other, numbers)
            self.assertEqual(known['seq_id'], attributes(other)['seq_id'], node['name'])
            above, expected = ours.parent(node), theirs.parent(other)
            if above is not None and attributes(above)['rf_id']:
                self.assertEqual(attributes(above)['rf_id'], attributes(expected)['rf_id'], node['name'])
                if known['fw_parent']:
                    self.assertEqual(attributes(ours.nodes[known['fw_parent']])['rf_id'],
                                     attributes(theirs.nodes[attributes(other)['fw_parent']])['rf_id'], node['name'])
            seen += 1
        self.assertGreater(seen, 150)
        # Of one step: nothing of it is missing in ours.
        ids = [attributes(node)['rf_id'] for node in ours.operators()
               if attributes(node)['rf_id'] and not node['name'].startswith('Optimizer.')]
        inside = {number for number, node in by_id.items()
                  if min(ids) <= number <= max(ids) and not node['name'].startswith('Optimizer.')}
        self.assertEqual(set(ids), inside)
        labels = collections.Counter(node['name'] for node in ours.nodes.values())
        self.assertEqual(labels['epoch_0'], 1)  # open as the window began

    def test_of_two_ranks_collectives_messages_and_process_groups_are_nodes(self):
        theirs, ours = self.scratch / 'theirs', self.scratch / 'ours'
        theirs.mkdir()
        done, run = self.run_traced(
            [harness.TORCH_PYTHON, RANKS_PROGRAM, test_torch_distributed.free_port(), theirs], OPTIONS)
        self.assertEqual(done.returncode, 0, done.stderr)
        exported = self.run_bare([harness.RANKTAP, 'export', run, '--format', 'et', '-o', ours, '--ranks', '0,1'])
        self.assertEqual(exported.returncode, 0, exported.stderr)
        for rank in range(2):
            own, other = Trace(ours / f'host.{rank}.json'), Trace(theirs / f'host.{rank}.json')
            by_id = {attributes(node)['rf_id']: node for node in other.operators()}
            numbers, names = Numbers(), collections.Counter()
            for node in own.operators():
                if attributes(node)['rf_id'] in by_id:
                    self.assert_same_node(node, by_id[attributes(node)['rf_id']], numbers)
                    names[node['name']] += 1
                    if node['name'].startswith('gloo:'):  # PyTorch's own parents depend on who is faster
                        self.assertTrue(own.parent(node)['name'].startswith('c10d::'), node['name'])
            message = 'send' if rank == 0 else 'recv_'
            for name in ('c10d::allreduce_', 'gloo:all_reduce', 'c10d::allgather_', 'gloo:all_gather',
                         f'c10d::{message}', f"gloo:{message.strip('_')}"):
                self.assertGreaterEqual(names[name], 1, name)
            groups = [[json.loads(node['inputs']['values'][0]) for node in trace.nodes.values()
                       if node['name'] == '## process_group:init ##'][0] for trace in (own, other)]
            for mine, pytorchs in zip(*groups, strict=True):
                self.assertEqual(list(mine), list(pytorchs))
                for key in ('pg_name', 'pg_desc', 'ranks', 'group_size'):
                    self.assertEqual(mine[key], pytorchs[key])
        self.assert_described_as_kineto_does(run, 2)
        self.assert_replayed(run, 2)

    def assert_replay_has_each_value(self, run):
        """Of all operators, and of those of one name."""
        for options, names in (([], {'aten::native_layer_norm', 'aten::full', 'aten::mm'}),
                               (['--operator', 'aten::full'], {'aten::full', 'aten::fill_'})):
            script = self.scratch / 'values.py'
            done = self.run_bare([harness.RANKTAP, 'export', run, '--format', 'replay', *options, '-o', script])
            self.assertEqual(done.returncode, 0, done.stderr)
            text = script.read_text()
            data = ast.literal_eval(text[text.index('DATA = (') + len('DATA = '):text.index("if __name__ == '__main__'")])
            calls = {name: inputs for name, _, inputs in json.loads(data[0])['calls']}
            self.assertLessEqual(names, set(calls))
            self.assertEqual(calls['aten::full'][:2], [[5], float('inf')])
            if not options:
                self.assertEqual(calls['aten::native_layer_norm'][-1], 1e-05)
        done = self.run_bare([harness.RANKTAP, 'export', run, '--format', 'replay', '--operator', 'none', '-o', script])
        self.assertIn('--operator none: no such operator was recorded', done.stderr)

    def assert_described_as_kineto_does(self, run, ranks):
        """gloo's collectives in Chrome's export, of the default group and of another of its size."""
        into = self.scratch / 'chrome'
        done = self.run_bare([harness.RANKTAP, 'export', run, '-o', into])
        self.assertEqual(done.returncode, 0, done.stderr)
        files = sorted(into.iterdir())
        self.assertEqual(len(files), ranks)
        everybody = {'Group size': ranks, 'Process Group Ranks': str(list(range(ranks)))}
        reduced = 4 * (64 * 128 + 128 + 128 * 8 + 8) // 4
        for path in files:
            events = [event for event in json.loads(path.read_text())['traceEvents'] if event.get('ph') == 'X']
            for name, expected in (
                    ('gloo:all_reduce', {'Collective name': 'allreduce', 'In msg nelems': reduced,
                                         'Out msg nelems': reduced, 'Process Group Name': '0', **everybody}),
                    ('gloo:all_gather', {'Collective name': 'all_gather', 'In msg nelems': 256,
                                         'Out msg nelems': 256 * ranks, 'Process Group Name': '2', **everybody})):
                operators = [event for event in events if event['name'] == name and 'Input Dims' in event['args']]
                self.assertTrue(operators, name)
                for operator in operators:
                    expected['dtype'] = 'Float'
                    # gloo's own call, which the operator is around, says the same.
                    inside = [event for event in events if event['tid'] == operator['tid'] and
                              event['args'].get('domain') == 'ranktap.comm' and
                              operator['ts'] <= event['ts'] <= operator['ts'] + operator['dur']]
                    self.assertEqual(len(inside), 1, name)
                    for event in (operator, *inside):
                        self.assertEqual({key: event['args'].get(key) for key in expected}, expected, event)

        if HTA_PYTHON.exists():
            self.assert_hta_knows(files, reduced, ranks)

    def assert_hta_knows(self, files, reduced, ranks):
        done = self.run_bare([HTA_PYTHON, '-c', HTA_COLLECTIVES, *files])
        self.assertEqual(done.returncode, 0, done.stderr)
        for rows in json.loads(done.stdout.splitlines()[-1]):
            self.assertIn(['gloo:allreduce', 'allreduce', reduced, reduced, 'Float', ranks], rows)
            self.assertIn(['gloo:allgather', 'all_gather', 256, 256 * ranks, 'Float', ranks], rows)

    def assert_replayed(self, run, ranks):
        """The script alone, with PyTorch alone: the recorded operators, as often and of the same shapes."""
        script, answers = self.scratch / 'replay.py', self.scratch / 'replayed.json'
        done = self.run_bare([harness.RANKTAP, 'export', run, '--format', 'replay', '-o', script])
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_bare([harness.TORCH_PYTHON, script, '--repeat', '1', '--threads', '1', '--json', answers])
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(ranks):
            answer = json.loads((self.scratch / f'replayed.json.{rank}' if ranks > 1 else answers).read_text())
            self.assertEqual(answer['left_out'], [])
            rows = {row['operator']: row for row in answer['operators']}
            for name, row in rows.items():
                self.assertEqual((row['calls'], row['same_shapes']), (row['recorded_calls'],) * 2, name)
                self.assertGreater(row['ns'], 0, name)
            self.assertIn('aten::addmm', rows)
            if ranks > 1:
                self.assertIn('gloo:all_reduce', rows)

    def test_a_file_is_what_et_replay_loads(self):
        """The rules of et_replay's loader, and the fields and their order."""
        run = self.record()
        self.assert_replay_has_each_value(run)
        self.assert_replayed(run, 1)  # also on meta, of 200 tensors, and beside a number
        path = self.export(run)
        self.assertEqual(path.name, 'host.3.json')
        trace = json.loads(path.read_text())
        self.assertEqual(list(trace), ['schema', 'pid', 'time', 'start_ts', 'nodes', 'finish_ts'])
        self.assertEqual(trace['schema'], '1.1.1-chakra.0.0.4')
        self.assertLess(trace['start_ts'], trace['finish_ts'] + 1)
        ids, nodes = set(), trace['nodes']
        for node in nodes:
            self.assertEqual(list(node), ['id', 'name', 'ctrl_deps', 'inputs', 'outputs', 'attrs'])
            self.assertNotIn(node['id'], ids)
            ids.add(node['id'])
            for side in (node['inputs'], node['outputs']):
                self.assertEqual(list(side), ['values', 'shapes', 'types', 'strides'])
                self.assertEqual({len(part) for part in side.values()}, {len(side['values'])}, node['name'])
            self.assertEqual([entry['name'] for entry in node['attrs']], ATTRIBUTES)
        self.assertEqual(nodes[-1]['name'], '[pytorch|profiler|execution_trace|process]')
        self.assertEqual((nodes[-1]['id'], nodes[-1]['ctrl_deps']), (1, 1))
        for node in nodes[:-1]:
            self.assertLess(node['ctrl_deps'], node['id'])
            self.assertIn(node['ctrl_deps'], ids)
            is_thread = node['name'] == '[pytorch|profiler|execution_trace|thread]'
            self.assertEqual(is_thread, node['ctrl_deps'] == 1, node['name'])
        tensors = {value[0] for node in nodes for side in (node['inputs'], node['outputs'])
                   for value in side['values'] if is_tensor(value)}
        self.assertFalse(tensors & ids)

    def test_a_run_without_values_says_how_to_get_them(self):
        _, run = self.run_traced([harness.TORCH_PYTHON, PROGRAM], ['--level', 'full', '--tensors'])
        done = self.run_bare([harness.RANKTAP, 'export', run, '--format', 'et', '-o', self.scratch])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('--tensors=full', done.stderr)


if __name__ == '__main__':
    unittest.main()
