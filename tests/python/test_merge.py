"""`ranktap merge` on the articles' example: four ranks on gloo, profiled by torch.profiler, joined."""
import collections
import gzip
import json
import socket
import unittest

from harness import PROGRAMS, RANKTAP, TORCH_PYTHON, TracedTest, needs_torch

RANKS = 4


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return str(probe.getsockname()[1])


def load(path):
    with (gzip.open if path.suffix == '.gz' else open)(path, 'rt') as file:
        return json.load(file)


def lane_names(events):
    """thread_name by (pid, tid)."""
    return {(event['pid'], event['tid']): event['args']['name'] for event in events
            if event['ph'] == 'M' and event['name'] == 'thread_name'}


def arrows(events):
    """Beginnings and ends by category and id."""
    ends = collections.defaultdict(lambda: collections.defaultdict(list))
    for event in events:
        if event['ph'] in 'sf':
            ends[event['cat'], event['id']][event['ph']].append((event['pid'], event['tid']))
    return ends


class MergeTest(TracedTest):
    def merge(self, inputs, name):
        output = self.scratch / name
        done = self._run([RANKTAP, 'merge', *inputs, '-o', output], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        return output, done.stderr

    def write(self, name, events, **head):
        path = self.scratch / name
        path.write_text(json.dumps({**head, 'traceEvents': events}))
        return path

    @needs_torch
    def test_four_gloo_ranks_keep_lanes_and_arrows(self):
        done = self._run([TORCH_PYTHON, PROGRAMS / 'gloo_profiled.py', self.scratch, free_port()], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        files = [self.scratch / f'rank{rank}.json' for rank in range(RANKS)]
        merged_path, _ = self.merge(files, 'merged.json.gz')
        merged = load(merged_path)
        ranks = [load(path) for path in files]
        events = merged['traceEvents']
        # Every event is there, and all_reduce of gloo on all ranks.
        self.assertEqual(len([e for e in events if e['ph'] == 'X']),
                         sum(len([e for e in rank['traceEvents'] if e['ph'] == 'X']) for rank in ranks))
        reducing = {event['pid'] // 5_000_000 for event in events
                    if event['ph'] == 'X' and 'all_reduce' in event['name']}
        self.assertEqual(reducing, set(range(RANKS)))
        # Lane names.
        self.assertEqual(sorted(lane_names(events).values()),
                         sorted(name for rank in ranks for name in lane_names(rank['traceEvents']).values()))
        processes = {event['args']['name'] for event in events if event['name'] == 'process_name'}
        for rank in range(RANKS):
            self.assertTrue(any(name.startswith(f'rank {rank}: ') for name in processes), processes)
        # Arrows: as many as before, each inside its rank.
        before = sum(len(arrows(rank['traceEvents'])) for rank in ranks)
        after = arrows(events)
        self.assertGreater(before, 0)
        self.assertEqual(len(after), before)
        for ends in after.values():
            places = {pid // 5_000_000 for side in ends.values() for pid, _ in side}
            self.assertEqual(len(places), 1)
        # Times: the same moment on the clock as in the rank's own file.
        for rank, own in enumerate(ranks):
            def epoch(document):
                base = document.get('baseTimeNanoseconds', 0)
                return [base + round(float(e['ts']) * 1000) for e in document['traceEvents']
                        if e['name'] == 'epoch_1' and e['ph'] == 'X'
                        and (document is own or e['pid'] // 5_000_000 == rank)]
            self.assertEqual(epoch(merged), epoch(own))

    def test_clocks_ids_and_unknown_members_of_two_files(self):
        def events(start):
            return [{'ph': 'M', 'name': 'process_name', 'pid': 7, 'tid': 0, 'args': {'name': 'py "x"'}},
                    {'ph': 'X', 'name': 'a', 'cat': 'c', 'pid': 7, 'tid': 7, 'ts': start, 'dur': 1.5,
                     'args': {'pid': 3, 'deep': [{'ts': 1}]}, 'new member': None},
                    {'ph': 's', 'id': 9, 'pid': 7, 'tid': 7, 'ts': start, 'cat': 'f', 'name': 'f'},
                    {'ph': 'f', 'id': 9, 'pid': 7, 'tid': 8, 'ts': start + 1, 'cat': 'f', 'name': 'f'},
                    {'ph': 'X', 'name': 'span', 'cat': 'Trace', 'pid': 'Spans', 'tid': 'P', 'ts': start, 'dur': 1}]
        a = self.write('rank1.json', events(10.25), baseTimeNanoseconds=2_000)
        b = self.write('rank0.json', events(1), baseTimeNanoseconds=5_000)
        merged, _ = self.merge([a, b], 'm.json')
        found = load(merged)
        self.assertEqual(found['baseTimeNanoseconds'], 2_000)
        slices = [event for event in found['traceEvents'] if event['name'] == 'a']
        self.assertEqual([(e['pid'], e['tid'], e['ts'], e['dur']) for e in slices],
                         [(7, 7, 4.0, 1.5), (5_000_007, 7, 10.25, 1.5)])
        self.assertEqual(slices[0]['args'], {'pid': 3, 'deep': [{'ts': 1}]})
        self.assertIn('new member', slices[0])
        names = [event['args']['name'] for event in found['traceEvents'] if event['name'] == 'process_name']
        self.assertIn('rank 0: py "x"', names)
        self.assertEqual(len(arrows(found['traceEvents'])), 2)
        self.assertEqual({e['pid'] for e in found['traceEvents'] if e['name'] == 'span'},
                         {'rank 0: Spans', 'rank 1: Spans'})

    def test_a_file_that_is_cut_off_is_read_to_there_and_named(self):
        whole = self.write('rank0.json', [{'ph': 'X', 'name': str(i), 'pid': 1, 'tid': 1, 'ts': i, 'dur': 1}
                                          for i in range(100)])
        cut = self.scratch / 'rank1.json'
        cut.write_bytes(whole.read_bytes()[:3000])
        merged, complaint = self.merge([whole, cut], 'm.json')
        self.assertIn('rank1.json: offset', complaint)
        self.assertGreater(len(load(merged)['traceEvents']), 130)

    def test_an_ending_that_names_no_format_is_wrong_usage(self):
        done = self._run([RANKTAP, 'merge', self.scratch, '-o', 'x.txt'], {})
        self.assertEqual(done.returncode, 2)
        self.assertIn('.pftrace', done.stderr)


if __name__ == '__main__':
    unittest.main()
