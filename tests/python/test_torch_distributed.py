"""Ranks that torch.multiprocessing.spawn made, gloo's collectives, pauses: an unmodified program."""
import socket
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'gloo_ddp.py'
EPOCHS, STEPS = 2, 2  # gloo_ddp.py: 64 rows, 4 ranks, batches of 8
PARAMETERS = 10 * 5 + 5 + 5 + 1


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return str(probe.getsockname()[1])


@harness.needs_torch
class SpawnedRanksTest(harness.TracedTest):

    def test_four_ranks_with_gloos_collectives_pauses_and_the_same_losses(self):
        bare = self.run_bare([harness.TORCH_PYTHON, PROGRAM, free_port()])
        self.assertEqual(bare.returncode, 0, bare.stderr)
        traced, run = self.run_traced([harness.TORCH_PYTHON, PROGRAM, free_port()], ['--level', 'full'])
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertEqual(traced.stdout, bare.stdout)  # every loss, bit by bit
        self.assert_verifies(run)
        self.check_ranks(run)
        self.check_collectives(run)
        self.check_passes(run)
        self.check_pauses(run)
        self.check_labels(run)

    def test_a_label_before_the_first_forward_is_there_on_each_rank_of_torchrun(self):
        command = [harness.TORCH_PYTHON.parent / 'torchrun', '--nproc-per-node=4', f'--master-port={free_port()}', PROGRAM]
        traced, run = self.run_traced(command, ['--level', 'full'], OMP_NUM_THREADS='1')
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.check_labels(run)

    def check_labels(self, run):
        """DDP's own collectives come before the first."""
        for rank in range(4):
            ranges = {row['name']: row['calls'] for row in self.report(run, 'ranges', '--ranks', str(rank))
                      if row['domain'] == 'record_function'}
            self.assertEqual([ranges.get(f'epoch_{epoch}') for epoch in range(EPOCHS)], [1] * EPOCHS, ranges)

    def check_ranks(self, run):
        ranks = self.report(run, 'ranks')
        self.assertEqual([row['rank'] for row in ranks], [0, 1, 2, 3])
        self.assertEqual({row['rank_origin'] for row in ranks}, {'torch.distributed'})
        groups = self.report(run, 'groups')
        for rank in range(4):
            world = [row for row in groups if row['rank'] == rank and row['size'] == 4]
            self.assertEqual([row['ranks'] for row in world], ['0,1,2,3'])
            self.assertIn('gloo', world[0]['backend'])
        pairs = [(row['rank'], row['ranks']) for row in groups if row['size'] == 2]
        self.assertEqual(pairs, [(0, '0,1'), (1, '0,1')])

    def check_collectives(self, run):
        calls = {(row['type'], row['bytes'], row['group_size']): row['calls'] for row in self.report(run, 'comm')}
        # One bucket of gradients a step.
        self.assertEqual(calls['allreduce', 4 * PARAMETERS, 4], EPOCHS * STEPS)
        self.assertEqual(calls['broadcast', 4000, 2], 1)
        for rank in range(4):
            ranges = {row['name']: row['calls'] for row in self.report(run, 'ranges', '--ranks', str(rank))
                      if row['domain'] == 'ranktap.comm'}
            self.assertEqual(ranges['gloo:allreduce'], EPOCHS * STEPS)

    def check_passes(self, run):
        """DDP's backward starts them, on gloo's threads too."""
        ops = self.report(run, 'ops', '--group-by-module', '--ranks', '0')
        places = {(row['name'], row['module'], row['pass']) for row in ops if 'reduce' in row['name'] and row['module']}
        module = 'DistributedDataParallel.module.0'  # the gradients of the first layer come last
        self.assertEqual(places, {(name, module, 'backward') for name in ('c10d::allreduce_', 'gloo:all_reduce')})

    def check_pauses(self, run):
        steps = self.report(run, 'steps')
        for rank in range(4):
            of_rank = [row for row in steps if row['rank'] == rank]
            self.assertGreater(sum(row['checkpoint_ns'] for row in of_rank), 0)
            self.assertGreater(sum(row['collection_ns'] for row in of_rank), 0)
            self.assertGreater(sum(row['data_ns'] for row in of_rank), 0)


if __name__ == '__main__':
    unittest.main()
