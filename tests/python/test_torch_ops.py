"""`report ops` on a trace that torch.profiler wrote says what torch's own key_averages() says of it."""
import collections
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'profile_ops.py'


@harness.needs_torch
class OpsParityTest(harness.TracedTest):

    @classmethod
    def setUpClass(cls):
        """One run each, with stacks and without, for all: most of its time goes into importing torch."""
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.trace, cls.torch = cls.profiled(pathlib.Path(folder.name) / 'trace.json')
        cls.stack_trace, cls.torch_with_stacks = cls.profiled(pathlib.Path(folder.name) / 'stacks.json', '--stacks')

    @classmethod
    def profiled(cls, trace, *options):
        rows = trace.with_suffix('.rows')
        subprocess.run([harness.TORCH_PYTHON, PROGRAM, trace, rows, *options], check=True, capture_output=True)
        return trace, json.loads(rows.read_text())

    def ours(self, *options, trace=None):
        command = [harness.RANKTAP, 'report', trace or self.trace, 'ops', '--format', 'json', *options]
        done = self.run_bare(command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)['rows']

    def assert_same_cells(self, ours, theirs, by_shape, by_stack=False):
        def cells_of_ours(row):
            return (row['name'], row['input_shapes'] if by_shape else '', row['calls'], row['self_cpu_ns'],
                    row['cpu_total_ns'], row['self_cpu_mem_bytes'], row['cpu_mem_bytes'], row['flops'] or 0,
                    row['source'] if by_stack else '')

        def cells_of_theirs(row):  # microseconds with three decimals
            return (row['name'], row['shapes'] if by_shape else '', row['calls'], round(row['self_cpu'] * 1000),
                    round(row['cpu'] * 1000), row['self_memory'], row['memory'], row['flops'],
                    row['stack'] if by_stack else '')

        self.assertGreater(len(theirs), 50)
        self.assertEqual(collections.Counter(map(cells_of_ours, ours)), collections.Counter(map(cells_of_theirs, theirs)))

    def test_every_cell_with_memory_and_flops(self):
        self.assert_same_cells(self.ours(), self.torch['plain'], by_shape=False)

    def test_every_cell_by_input_shape(self):
        self.assert_same_cells(self.ours('--group-by-shape'), self.torch['shapes'], by_shape=True)

    def test_every_cell_by_stack(self):
        for frames in (1, 3, 8):
            theirs = self.torch_with_stacks[f'stack {frames}']
            self.assertTrue(any(row['stack'] for row in theirs), 'torch recorded no stacks')
            ours = self.ours('--group-by-stack', str(frames), trace=self.stack_trace)
            self.assert_same_cells(ours, theirs, by_shape=False, by_stack=True)

    def test_every_cell_by_shape_and_stack(self):
        ours = self.ours('--group-by-shape', '--group-by-stack', '5', trace=self.stack_trace)
        self.assert_same_cells(ours, self.torch_with_stacks['shapes and stack'], by_shape=True, by_stack=True)

    def test_every_cell_where_stacks_were_recorded(self):
        self.assert_same_cells(self.ours(trace=self.stack_trace), self.torch_with_stacks['plain'], by_shape=False)

    def test_the_percentages_are_of_torchs_total(self):
        for row in self.ours():
            share = 100 * row['self_cpu_ns'] / (self.torch['self_cpu_time_total'] * 1000)
            self.assertAlmostEqual(row['self_cpu_percent'], share, places=3, msg=row['name'])

    def text(self, *options):
        """(headings, rows) of our table as a reader sees it; cells are two blanks apart."""
        done = self.run_bare([harness.RANKTAP, 'report', self.trace, 'ops', '--limit', '12', *options])
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [re.split(' {2,}', line.strip()) for line in done.stdout.splitlines() if line.startswith('  ')]
        self.longest = max(map(len, done.stdout.splitlines()))
        return lines[0], lines[1:13]

    def test_the_text_beside_torchs_table(self):
        # torch's rows: dashes, headings, dashes, rows, dashes, the total.
        theirs = [re.split(' {2,}', line.strip()) for line in self.torch['table'].splitlines()]
        headings, rows = theirs[1], theirs[3:15]
        self.assertEqual(headings[:6], ['Name', 'Self CPU %', 'Self CPU', 'CPU total %', 'CPU total', 'CPU time avg'])
        self.assertIn('# of Calls', headings)
        for options in (('--width', '200'), ()):  # and in a pipe
            ours, our_rows = self.text(*options)
            self.assertEqual(ours[:6], ['name', 'self cpu %', 'self cpu', 'cpu total %', 'cpu total', 'cpu avg'])
            self.assertLessEqual({'cpu mem', 'self cpu mem', 'calls', 'flops'}, set(ours))
            for mine, other in zip(our_rows, rows, strict=True):
                self.assertEqual(mine[0], other[0])
                self.assertAlmostEqual(float(mine[1].removesuffix(' %')), float(other[1].removesuffix('%')), delta=0.06)
                self.assertEqual(mine[ours.index('calls')], other[headings.index('# of Calls')])
        # torch's is 150 columns wide and wraps; ours leaves out what there is no room for, not the names.
        for width, least in ((80, {'self cpu', 'cpu total', 'calls'}), (110, {'self cpu %', 'self cpu', 'cpu total', 'calls'})):
            ours, our_rows = self.text('--width', str(width))
            self.assertLessEqual(self.longest, width)
            self.assertLessEqual(least, set(ours))
            for mine, other in zip(our_rows, rows, strict=True):
                if len(other[0]) <= 40:
                    self.assertEqual(mine[0], other[0])


if __name__ == '__main__':
    unittest.main()
