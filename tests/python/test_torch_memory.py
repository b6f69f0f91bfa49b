"""Memory of unmodified PyTorch programs on the CPU, against closed forms."""
import gzip
import json
import unittest
import xml.etree.ElementTree

import harness

PROGRAM = harness.PROGRAMS / 'memory_model.py'
# memory_model.py's
BATCH, INPUT, HIDDEN, OUTPUT = 32, 48, 64, 16
PARAMETERS = 4 * (INPUT * HIDDEN + HIDDEN + HIDDEN * OUTPUT + OUTPUT)
STATES = 2 * PARAMETERS + 4 * 4  # Adam's two moments, and a step count for each of 4 tensors
INPUTS = 4 * BATCH * (INPUT + OUTPUT)


@harness.needs_torch
class MemoryTest(harness.TracedTest):

    def trace(self, *options, schedule='wait=1,active=2,repeat=1'):
        command = [harness.TORCH_PYTHON, PROGRAM, *options]
        traced, run = self.run_traced(command, ['--level', 'full', '--schedule', schedule])
        self.assert_same_to_the_user(self.run_bare(command), traced)
        self.assert_verifies(run)
        return run

    def test_parameters_gradients_and_adams_states_are_exact(self):
        run = self.trace()
        held = {row['held_by']: row['bytes'] for row in self.report(run, 'memory-peak')}
        self.assertEqual(held['parameter'], PARAMETERS)
        self.assertEqual(held['gradient'], PARAMETERS)
        self.assertEqual(held['optimizer state'], STATES)
        self.assertEqual(held['input'], INPUTS)
        peak = self.report(run, 'memory')[0]['peak_bytes']
        self.assertEqual(sum(held.values()), peak)
        curve = self.report(run, 'memory-over-time')
        self.assertEqual(max(row['bytes'] for row in curve), peak)
        for row in curve:
            self.assertEqual(row['bytes'], sum(value for name, value in row.items()
                                               if name.endswith('_bytes')))
        modules = self.report(run, 'memory-modules')
        self.assertEqual(sum(row['bytes'] for row in modules), peak)
        self.check_exports(run, peak)
        first = next(row for row in modules if row['module'] == 'Net.first')
        weights = 4 * (INPUT * HIDDEN + HIDDEN)
        self.assertEqual((first['parameter_bytes'], first['gradient_bytes'], first['state_bytes']),
                         (weights, weights, 2 * weights + 8))

    def test_a_parameter_without_an_address_is_no_error_and_hides_no_other(self):
        traced, run = self.run_traced([harness.TORCH_PYTHON, harness.PROGRAMS / 'sparse_parameter.py'],
                                      ['--level', 'full', '--schedule', 'wait=1,active=2,repeat=1'])
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertEqual([row['lost'] for row in self.report(run, 'ranks')], [0])
        held = {row['held_by']: row['bytes'] for row in self.report(run, 'memory-peak')}
        self.assertEqual(held['parameter'], 4 * (16 * 16 + 16))

    def test_the_curve_sampled_by_operators_is_the_allocators(self):
        run = self.trace()
        every = [row['bytes'] for row in self.report(run, 'memory-over-time', '--sample-rate', '1')]
        third = [row['bytes'] for row in self.report(run, 'memory-over-time', '--sample-rate', '3')]
        self.assertEqual(third, every[2::3])
        with open(self.export(run, 'chrome', 'trace.json'), encoding='utf-8') as file:
            events = json.load(file)['traceEvents']

        def at(event):  # in nanoseconds, which is what the decimals are
            return round((event['ts'] + event.get('dur', 0)) * 1000)

        changes = sorted((at(event), event['args']['Bytes']) for event in events if event['name'] == '[memory]')
        expected, held, ends = [], 0, sorted(at(event) for event in events if event.get('cat') == 'cpu_op')
        for end in ends:
            while changes and changes[0][0] <= end:
                held += changes.pop(0)[1]
            expected.append(held)
        self.assertGreater(len(set(expected)), 10)
        self.assertEqual(every, expected)

    def check_exports(self, run, peak):
        """memory_flow.svg has one rectangle per tensor, and the heights of one moment reach the peak; so
        do the timelines, and ours can be read again."""
        tag = '{https://megengine.org.cn}'
        picture = xml.etree.ElementTree.parse(self.export(run, 'memory-flow', 'flow.svg')).getroot()
        tensors = [{name.replace(tag, ''): value for name, value in rectangle.items()}
                   for rectangle in picture if rectangle.get(f'{tag}type') == 'tensor']
        self.assertEqual(len(tensors), self.report(run, 'memory')[0]['allocations'])
        # At one moment what goes goes first.
        changes = [(int(tensor['produced']), int(tensor['size'])) for tensor in tensors]
        changes += [(int(tensor['erased']), -int(tensor['size'])) for tensor in tensors if tensor['erased']]
        now = highest = 0
        for _, size in sorted(changes):
            now += size
            highest = max(highest, now)
        self.assertEqual(highest, peak)
        for tensor in tensors:
            self.assertAlmostEqual(float(tensor['height']) * 1e6, int(tensor['size']), places=3)
        # What lives until the run's end does not stretch the picture beyond what was recorded.
        last = max(int(tensor['erased'] or tensor['produced']) for tensor in tensors)
        right = max(float(tensor['x']) + float(tensor['width']) for tensor in tensors)
        self.assertLessEqual(right * 100e3, 1.03 * last)
        for rectangle in picture.iter('{http://www.w3.org/2000/svg}rect'):
            self.assertIn(rectangle.get(f'{tag}category'), rectangle[0].text)
        words = [text.text for text in picture.iter('{http://www.w3.org/2000/svg}text')]
        self.assertLessEqual({'Time (ms)', 'Address (MiB)', 'parameter', 'gradient', 'activation'}, set(words))

        raw = self.export(run, 'memory-timeline', 'memory.raw.json.gz')
        self.assertEqual(len(json.loads(gzip.open(raw).read())) , len(changes))
        self.assertEqual(self.report(raw, 'memory')[0]['peak_bytes'], peak)
        times, sizes = json.loads(self.export(run, 'memory-timeline', 'memory.json').read_text())
        self.assertEqual(len(times), len(sizes))
        self.assertEqual({len(row) for row in sizes}, {9})

    def export(self, run, form, name):
        path = self.scratch / name
        done = self.run_bare([harness.RANKTAP, 'export', run, '--format', form, '-o', path])
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def test_what_is_saved_for_the_backward_is_the_relus_output_and_what_the_loss_needs(self):
        run = self.trace()
        saved = {row['module']: row['saved_bytes'] for row in self.report(run, 'memory-modules')}
        self.assertEqual(saved['Net.act'], 4 * BATCH * HIDDEN)
        self.assertEqual(saved.get('Net.first', 0), 0)  # its output is free once the ReLU has run
        steps = self.report(run, 'memory-steps')
        self.assertEqual([row['step'] for row in steps], [1, 2])
        for row in steps:
            self.assertEqual(row['saved_bytes'], sum(saved.values()))

    def test_what_a_step_leaves_behind_is_named(self):
        kept = self.report(self.trace(), 'memory-steps')
        (self.scratch / 'run').rename(self.scratch / 'kept')
        leaking = self.report(self.trace('--leak'), 'memory-steps')
        for step in range(2):
            self.assertEqual(leaking[step]['new_unfreed_bytes'], kept[step]['new_unfreed_bytes'] + 4000)
        self.assertEqual(leaking[1]['start_bytes'], kept[1]['start_bytes'] + 4000)


@harness.needs_torch
class CudaAllocatorTest(harness.TracedTest):
    """The history of the CUDA caching allocator, from a made-up allocator: no real one has been read yet."""

    def trace(self, *options, **environment):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'cuda_allocator.py', *options]
        bare = self.run_bare(command)
        done, run = self.run_traced(command, ['--level', 'full', '--schedule', 'wait=1,active=2,repeat=1'], **environment)
        self.assertEqual((done.returncode, done.stdout), (bare.returncode, bare.stdout), done.stderr)
        self.assert_verifies(run)
        return done, run

    def of_gpu(self, rows):
        return [row for row in rows if row['device'] not in ('CPU', 'cpu', 'host')]

    def test_blocks_and_segments_of_the_windows_steps(self):
        done, run = self.trace()
        self.assertIn('history all None\nhistory None', done.stderr)
        gpu, = self.of_gpu(self.report(run, 'memory'))
        # A block from before, one a step that goes after the optimizer, one inside; the window has two steps and
        # the rest of the one before. The second segment is the window's.
        self.assertEqual(gpu['peak_bytes'], 1024 + 500_224 + 100_352)
        self.assertEqual(gpu['peak_reserved_bytes'], (1 << 20) + (2 << 20))
        self.assertEqual(gpu['at_end_bytes'], 1024 + 500_224)
        self.assertEqual(gpu['allocations'], 2 + 2 * 2)

    def test_stacks_by_policy(self):
        done, run = self.trace(RANKTAP_STACKS='all')
        self.assertIn('history all alloc', done.stderr)
        peak = self.of_gpu(self.report(run, 'memory-peak', '--group-by-stack', '2'))
        self.assertEqual({row['held_by'] for row in peak}, {'train.py(12): forward'})
        self.assertEqual(sum(row['bytes'] for row in peak), 1024 + 500_224 + 100_352)
        self.assertEqual(peak[0]['stack'], 'train.py(12): forward; train.py(40): main')

    def test_a_program_that_records_the_history_keeps_it(self):
        done, run = self.trace('--own-history')
        self.assertEqual(done.stderr.count('history all'), 1)
        self.assertEqual(self.of_gpu(self.report(run, 'memory')), [])

    def test_allocations_that_fail_are_told_in_windows_and_outside(self):
        _, run = self.trace('--fail')
        summary = self.run_bare([harness.RANKTAP, 'report', run, 'ranks', '--format', 'json']).stdout
        self.assertIn(f'out of memory: {7 << 30} bytes were asked for of GPU 0; PyTorch held {3 << 20}, free were 4096', summary)
        self.assertIn(f'out of memory: {1 << 41} bytes were asked for"', summary)


if __name__ == '__main__':
    unittest.main()
