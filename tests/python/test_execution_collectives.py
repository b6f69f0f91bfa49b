"""Collectives of the articles' data-parallel program: our execution trace against that of PyTorch's
ExecutionTraceObserver in the same processes, and Chakra's nodes as a strict reader takes them."""
import collections
import shutil
import subprocess
import unittest

import chakra_reader
import harness
import test_execution_trace
import test_torch_distributed
from test_execution_trace import Numbers, Trace, attributes

PROGRAM = harness.PROGRAMS / 'execution_articles.py'
OPTIONS = ['--level', 'full', '--schedule', 'wait=1,active=1,repeat=1', '--tensors=full']
RECORDED = 'record_param_comms'


def build_collectives(library):
    """Against the headers that PyTorch's package brings."""
    torch = next(harness.TORCH_PYTHON.parent.parent.glob('lib/python3*/site-packages/torch'))
    command = ['g++', '-std=c++20', '-O0', '-fPIC', '-shared', '-o', library, f'-I{torch}/include',
               f'-I{torch}/include/torch/csrc/api/include', harness.PROGRAMS / 'recorded_collectives.cc',
               f'-L{torch}/lib', '-ltorch_cpu', '-lc10']
    subprocess.run([str(part) for part in command], check=True)


@harness.needs_torch
class ExecutionCollectivesTest(harness.TracedTest):

    def record(self, ranks, *library):
        theirs = self.scratch / 'theirs'
        theirs.mkdir()
        done, run = self.run_traced(
            [harness.TORCH_PYTHON, PROGRAM, ranks, test_torch_distributed.free_port(), theirs, *library], OPTIONS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_verifies(run)
        return run, theirs

    def export(self, run, ranks):
        into = self.scratch / 'ours'
        done = self.run_bare([harness.RANKTAP, 'export', run, '--format', 'et', '-o', into, '--ranks',
                              ','.join(map(str, range(ranks)))])
        self.assertEqual(done.returncode, 0, done.stderr)
        return into

    def assert_same_nodes(self, own, other):
        """Of those that both have; how often each name is among them."""
        by_id = {attributes(node)['rf_id']: node for node in other.operators()}
        numbers, names = Numbers(), collections.Counter()
        for node in own.operators():
            theirs = by_id.get(attributes(node)['rf_id'])
            if theirs is None or theirs['name'] != node['name']:
                continue
            test_execution_trace.ExecutionTraceTest.assert_same_node(self, node, theirs, numbers)
            names[node['name']] += 1
            if node['name'] == RECORDED:
                constant = [[entry for entry in each['attrs'] if entry['name'] not in ('fw_parent', 'seq_id')]
                            for each in (node, theirs)]
                self.assertEqual(*constant)  # names, types, values and their order
        return names

    def assert_of_gloo(self, ranks):
        run, theirs = self.record(ranks)
        ours = self.export(run, ranks)
        for rank in range(ranks):
            names = self.assert_same_nodes(Trace(ours / f'host.{rank}.json'), Trace(theirs / f'host.{rank}.json'))
            message = 'send' if rank % 2 == 0 else 'recv'
            for name in ('c10d::allreduce_', 'gloo:all_reduce', f'gloo:{message}'):
                self.assertGreaterEqual(names[name], 1, f'{name} of rank {rank}')
            self.assertEqual(names[RECORDED], 0)  # PyTorch's gloo does not record any
        self.assert_chakra(run, ranks)

    def assert_chakra(self, run, ranks):
        """Every communication node of every rank with its group, size, type and peers."""
        into, parameters = self.scratch / 'chakra', 4 * (10 * 5 + 5 + 5 + 1)
        done = self.run_bare([harness.RANKTAP, 'export', run, '--format', 'chakra', '-o', into])
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(ranks):
            nodes = chakra_reader.read(into / f'rank.{rank}.et')
            communicate = [node for node in nodes if node.type != chakra_reader.COMPUTE]
            self.assertEqual({node['pg_name'] for node in communicate}, {'0'})
            reduced = [node for node in communicate if node.name == 'gloo:allreduce']
            self.assertTrue(reduced)
            self.assertEqual({(node['comm_type'], node['comm_size']) for node in reduced},
                             {(chakra_reader.ALL_REDUCE, parameters)})
            messages = [node for node in communicate if node.type in (chakra_reader.SEND, chakra_reader.RECEIVE)]
            first = rank - rank % 2
            self.assertEqual([(node.type == chakra_reader.SEND, node['comm_src'], node['comm_dst'], node['comm_size'],
                               node['comm_tag']) for node in messages],
                             [(rank == first, first, first + 1, 256 * 4, messages[0]['comm_tag'])] * len(messages))
            self.assertTrue(messages)

    def test_of_two_ranks_the_nodes_are_pytorchs_and_messages_have_peers(self):
        self.assert_of_gloo(2)

    def test_of_four_ranks_the_nodes_are_pytorchs_and_messages_have_peers(self):
        self.assert_of_gloo(4)

    @unittest.skipUnless(shutil.which('g++'), 'no g++')
    def test_what_nccls_process_group_records_has_pytorchs_attributes(self):
        library = self.scratch / 'librecorded.so'
        build_collectives(library)
        run, theirs = self.record(2, library)
        ours = self.export(run, 2)
        for rank in range(2):
            own = Trace(ours / f'host.{rank}.json')
            names = self.assert_same_nodes(own, Trace(theirs / f'host.{rank}.json'))
            self.assertGreaterEqual(names[RECORDED], 8)
            recorded = [node for node in own.operators() if node['name'] == RECORDED]
            self.assertEqual({attributes(node)['collective_name'] for node in recorded},
                             {'allreduce', 'all_gather', 'reduce_scatter', 'gather', 'scatter', 'all_to_allv', 'send',
                              'barrier'})
            self.assertEqual(recorded[0]['inputs']['types'][1:3], ['Tuple[Int,Bool]', 'Tuple[String,String]'])


if __name__ == '__main__':
    unittest.main()
