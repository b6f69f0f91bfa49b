"""What `ranktap export` writes for flame graphs: speedscope's JSON and pprof's profile.proto."""
import gzip
import json
import unittest

from harness import RANKTAP, ROOT, TracedTest

INPUTS = ROOT / 'tests/golden/inputs'


def fields(data):
    """Protobuf's wire: (number, value) of each field; a varint as a number, the rest as bytes."""
    at = 0
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            length = varint()
            at += length
            yield key >> 3, data[at - length:at]
        else:
            raise ValueError(f'wire type {key & 7}: profile.proto has none')


def packed(data):
    return [value for _, value in fields(b''.join(b'\x08' + part for part in _varints(data)))]


def _varints(data):
    begin = 0
    for i, byte in enumerate(data):
        if byte < 128:
            yield data[begin:i + 1]
            begin = i + 1


class StackExports(TracedTest):
    def export(self, run, form, name):
        path = self.scratch / name
        done = self._run([RANKTAP, 'export', INPUTS / run, '--format', form, '-o', path], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def device_ns(self, run):
        kernels = sum(row['total_ns'] for row in self.report(INPUTS / run, 'kernels'))
        return kernels + sum(row['total_ns'] for row in self.report(INPUTS / run, 'copies'))

    def labels(self, run):
        """{outermost frame: the labels of its samples, by key}."""
        self.pprof(run)
        return self.labels_of

    def pprof(self, run):
        """Stacks, the outermost first, with their values by type."""
        texts, samples, labels, functions, locations, types = [], [], [], {}, {}, []
        for number, value in fields(gzip.decompress(self.export(run, 'pprof', 'run.pb.gz').read_bytes())):
            if number == 6:
                texts.append(value.decode())
            elif number == 1:
                types.append(dict(fields(value))[1])
            elif number == 2:
                sample = dict(fields(value))
                samples.append((packed(sample[1]), packed(sample[2])))
                labels.append([dict(fields(label)) for field, label in fields(value) if field == 3])
            elif number == 4:
                location = dict(fields(value))
                locations[location[1]] = dict(fields(location[4]))[1]
            elif number == 5:
                function = dict(fields(value))
                functions[function[1]] = function[2]
        self.assertEqual(texts[0], '')
        names = [texts[index] for index in types]
        self.labels_of = {}
        for (stack, _), given in zip(samples, labels):
            said = {texts[one[1]]: texts[one[2]] if 2 in one else one.get(3, 0) for one in given}
            self.labels_of.setdefault(texts[functions[locations[stack[-1]]]], []).append(said)
        return [([texts[functions[locations[at]]] for at in reversed(stack)], dict(zip(names, values)))
                for stack, values in samples]

    def speedscope(self, run):
        """Profiles by name: stacks of names with weights."""
        document = json.loads(self.export(run, 'speedscope', 'run.speedscope.json').read_text())
        self.assertEqual(document['$schema'], 'https://www.speedscope.app/file-format-schema.json')
        self.assertLess(document['activeProfileIndex'], len(document['profiles']))
        frames = [frame['name'] for frame in document['shared']['frames']]
        profiles = {}
        for profile in document['profiles']:
            self.assertEqual((profile['type'], profile['unit'], profile['startValue']), ('sampled', 'nanoseconds', 0))
            self.assertEqual(len(profile['samples']), len(profile['weights']))
            self.assertEqual(sum(profile['weights']), profile['endValue'])
            profiles[profile['name']] = [([frames[i] for i in stack], weight)
                                         for stack, weight in zip(profile['samples'], profile['weights'])]
        return profiles

    def test_device_time_is_whole_and_below_the_rank_that_launched_it(self):
        stacks = self.speedscope('standin-full')['GPU time, by host stack']
        self.assertEqual(sum(weight for _, weight in stacks), self.device_ns('standin-full'))
        self.assertEqual({stack[0] for stack, _ in stacks}, {f'rank {rank}' for rank in range(4)})
        self.assertTrue(all(stack[-1].startswith('[') for stack, _ in stacks))

    def test_operators_hang_below_those_around_them_with_their_own_time(self):
        stacks = self.speedscope('torch-ddp')['host time in operators']
        self.assertTrue(any(stack[1:3] == ['aten::randn', 'aten::empty'] for stack, _ in stacks))
        own = sum(row['self_cpu_ns'] for row in self.report(INPUTS / 'torch-ddp', 'ops'))
        self.assertAlmostEqual(sum(weight for _, weight in stacks) / own, 1, delta=0.05)

    def test_pprof_has_the_same_stacks_and_sums(self):
        for run, profile, kind in (('standin-full', 'GPU time, by host stack', 'gpu'),
                                   ('torch-ddp', 'host time in operators', 'operators')):
            theirs = sorted((stack, values[kind]) for stack, values in self.pprof(run) if values[kind])
            self.assertEqual(theirs, sorted(self.speedscope(run)[profile]), run)

    def test_each_sample_of_pprof_is_labelled_with_its_process(self):
        pids = {row['rank']: row['pid'] for row in self.report(INPUTS / 'standin-full', 'ranks')}
        for frame, labels in self.labels('standin-full').items():
            rank = int(frame.removeprefix('rank '))
            self.assertEqual({(one['rank'], one['pid']) for one in labels}, {(rank, pids[rank])})
            self.assertTrue(all(one['host'] for one in labels))

    def test_a_run_without_stacks_is_still_a_profile(self):
        self.assertEqual(len(self.speedscope('standin-ranges')), 1)


if __name__ == '__main__':
    unittest.main()
