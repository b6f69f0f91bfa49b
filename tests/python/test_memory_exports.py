"""Memory of an unmodified program in the formats of PyTorch's tools, read by these tools."""
import json
import unittest
import xml.etree.ElementTree

import harness

PROGRAM = harness.PROGRAMS / 'memory_model.py'
PROFILED = harness.PROGRAMS / 'memory_profiled.py'
# What torch.cuda._memory_viz makes of a snapshot; and the memory that its history says was held at most.
READ = '''
import json, pickle, sys
from torch.cuda import _memory_viz as viz
with open(sys.argv[1], 'rb') as file:
    snapshot = pickle.load(file)
summary, history = viz.segsum(snapshot), viz.trace(snapshot)
pages = viz.trace_plot(snapshot), viz.segment_plot(snapshot)
entries = [entry for device in snapshot['device_traces'] for entry in device]
at_end = {block['address']: block['size'] for segment in snapshot['segments'] for block in segment['blocks']
          if block['state'] == 'active_allocated'}
seen, start = set(), 0
for entry in entries:
    if entry['action'] == 'alloc':
        seen.add(entry['addr'])
    elif entry['action'] == 'free_completed' and entry['addr'] not in seen:
        start += entry['size']
    elif entry['action'] == 'free_completed':
        seen.discard(entry['addr'])
now = start + sum(size for address, size in at_end.items() if address not in seen)
peak = now
for entry in entries:
    now += {'alloc': entry['size'], 'free_completed': -entry['size']}.get(entry['action'], 0)
    peak = max(peak, now)
print(json.dumps({'peak': peak, 'end': now, 'alive': sum(at_end.values()), 'entries': len(entries),
                  'allocated': 'total_allocated' in summary, 'history': history.count('= '),
                  'plots': [len(page) > 1000 for page in pages],
                  'names': sorted({frame['name'] for entry in entries for frame in entry['frames']})}))
'''


@harness.needs_torch
class MemoryExportsTest(harness.TracedTest):

    @classmethod
    def setUpClass(cls):
        cls.trace = harness.trace_once(cls, PROGRAM, '--schedule', 'wait=1,active=2,repeat=1')

    def export(self, form, name):
        path = self.scratch / name
        done = self.run_bare([harness.RANKTAP, 'export', self.trace, '--format', form, '-o', path])
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def peak(self, path=None):
        return self.report(path or self.trace, 'memory')[0]['peak_bytes']

    def test_torchs_memory_viz_reads_the_snapshot_and_its_history_reaches_the_peak(self):
        snapshot = self.export('memory-snapshot', 'memory.pickle')
        done = self.run_bare([harness.TORCH_PYTHON, '-c', READ, snapshot])
        self.assertEqual(done.returncode, 0, done.stderr)
        read = json.loads(done.stdout)
        self.assertEqual(read['peak'], self.peak())
        self.assertEqual(read['end'], read['alive'])
        self.assertEqual(read['end'], self.report(self.trace, 'memory')[0]['at_end_bytes'])
        self.assertGreater(read['entries'], 100)
        self.assertTrue(read['allocated'])
        self.assertEqual(read['plots'], [True, True])
        self.assertIn('aten::addmm', read['names'])
        self.assertIn('Net.act', read['names'])
        self.assertIn('activation', read['names'])
        self.assertEqual(self.peak(snapshot), self.peak())  # and ours can be read again
        viz = self.run_bare([harness.TORCH_PYTHON, '-m', 'torch.cuda._memory_viz', 'stats', snapshot])
        self.assertEqual(viz.returncode, 0, viz.stderr)
        self.assertIn('total_allocated', viz.stdout)

    def test_the_timeline_as_a_page_is_well_formed_and_has_an_area_for_each_category_that_was_held(self):
        page = self.export('memory-timeline', 'memory.html').read_text()
        root = xml.etree.ElementTree.fromstring(page.partition('\n')[2])  # without the doctype
        areas = {area.get('fill') for area in root.iter('{http://www.w3.org/2000/svg}polygon')}
        self.assertLessEqual({'darkgreen', 'goldenrod', 'red', 'mediumblue'}, areas)
        # The highest point is the peak: the top of the picture.
        points = [point.split(',') for area in root.iter('{http://www.w3.org/2000/svg}polygon')
                  for point in area.get('points').split()]
        self.assertEqual(min(float(y) for _, y in points), 0)
        self.assertIn(f'{self.peak() / 2**20:.2f} MiB', page)
        self.assertRegex(page, r'<h1>Memory timeline of .+, CPU</h1>')
        self.assertIn('stroke-dasharray', page)  # the peak
        script = next(root.iter('script')).text
        moments = json.loads(script.partition('const moments = ')[2].partition(', names = ')[0])
        self.assertEqual(max(sum(moment[1:]) for moment in moments), self.peak())

    def test_categories_are_torchs_where_they_can_be_known(self):
        done = self.run_bare([harness.TORCH_PYTHON, PROFILED])
        self.assertEqual(done.returncode, 0, done.stderr)
        theirs = json.loads(done.stdout.splitlines()[-1])
        ours = {row['held_by']: row['bytes'] for row in self.report(self.trace, 'memory-peak')}
        self.assertEqual(ours['optimizer state'], theirs['OPTIMIZER_STATE'])
        self.assertEqual(ours['gradient'], theirs['GRADIENT'])
        # torch calls a parameter what Adam computes from one, too.
        self.assertLessEqual(ours['parameter'], theirs['PARAMETER'])


if __name__ == '__main__':
    unittest.main()
