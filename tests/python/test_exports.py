"""What `ranktap export` writes, read by others: Python's sqlite3 and json, and Perfetto's whole schema."""
import collections
import csv
import gzip
import json
import socket
import sqlite3
import subprocess
import tarfile
import unittest

from harness import BUILD, CACHE, RANKTAP, ROOT, TracedTest

TOOLS_PYTHON = CACHE / 'hta-venv/bin/python'
TRAIN = BUILD / 'workloads/train_cuda'
KINETO = ROOT.parent / 'shared/data/kineto'


class SimulatedTraining(TracedTest):
    """One run of four ranks on the stand-in for CUDA, exported in each format."""

    def setUp(self):
        super().setUp()
        if not TRAIN.exists():
            self.skipTest(f'{TRAIN} was not built: no nvcc')
        self.run_directory = self.scratch / 'run'
        done = self._run([ROOT / 'scripts/with-simulated-gpu', RANKTAP, 'run', '-o', self.run_directory, '--',
                          TRAIN, '--ranks', '4', '--steps', '5'], {'RANKTAP_BUILD': str(BUILD)})
        self.assertEqual(done.returncode, 0, done.stderr)

    def export(self, form, name, *options):
        output = self.scratch / name
        done = self._run([RANKTAP, 'export', self.run_directory, '--format', form, '-o', output, *options], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        return output

    def chrome_events(self, category):
        """Of all ranks; without steps, which are annotations there alone."""
        for path in sorted(self.export('chrome', 'json').iterdir()):
            for event in json.loads(path.read_text())['traceEvents']:
                if event.get('cat') == category and event['ph'] == 'X' and not event['name'].startswith('ProfilerStep#'):
                    yield event


class SqliteTest(SimulatedTraining):
    def setUp(self):
        super().setUp()
        self.database = sqlite3.connect(self.export('sqlite', 'run.sqlite'))
        self.addCleanup(self.database.close)

    def query(self, text):
        return self.database.execute(text).fetchall()

    def test_kernel_summary_of_nsys_stats_equals_the_json_export(self):
        """The query of nsys stats cuda_gpu_kern_sum, shortened."""
        rows = self.query('''
            SELECT str.value, count(*), sum(end - start) AS total, min(end - start), max(end - start)
            FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS str ON str.id = k.demangledName
            WHERE k.graphNodeId IS NULL OR k.graphNodeId >= 0
            GROUP BY str.value ORDER BY total DESC''')
        durations = collections.defaultdict(list)
        for event in self.chrome_events('kernel'):
            if not event['name'].startswith('CUDA graph'):
                durations[event['name']].append(round(event['dur'] * 1000))
        self.assertTrue(durations)
        self.assertEqual({row[0]: row[1:] for row in rows},
                         {name: (len(all_), sum(all_), min(all_), max(all_)) for name, all_ in durations.items()})

    def test_launches_join_kernels_by_correlation_and_process(self):
        """The join that nsys users write, over all ranks at once: correlation ids repeat between them."""
        kernels, = self.query('SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL')[0]
        rows = self.query('''
            SELECT k.start, r.start, k.globalPid, s.value
            FROM CUPTI_ACTIVITY_KIND_KERNEL AS k
            JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r
              ON k.correlationId = r.correlationId AND k.globalPid = r.globalTid / 0x1000000 * 0x1000000
            JOIN StringIds AS s ON s.id = r.nameId''')
        self.assertEqual(len(rows), kernels)
        self.assertEqual(len({row[2] for row in rows}), 4)
        self.assertTrue(all(start >= launched for start, launched, _, _ in rows))
        self.assertTrue(all('Launch' in name for _, _, _, name in rows))

    def test_ranges_by_text_and_by_text_id(self):
        rows = self.query('''
            SELECT n.text, s.value, count(*), sum(n.end - n.start)
            FROM NVTX_EVENTS AS n LEFT JOIN StringIds AS s ON s.id = n.textId
            WHERE n.eventType = 59 GROUP BY n.text''')
        totals = collections.Counter()
        for event in self.chrome_events('user_annotation'):
            totals[event['name']] += round(event['dur'] * 1000)
        self.assertEqual({row[0]: row[3] for row in rows}, dict(totals))
        self.assertTrue(all(text == by_id for text, by_id, _, _ in rows))
        self.assertEqual({row[0]: row[2] for row in rows}['step'], 4 * 5)

    def test_each_step_is_an_annotation_of_torchs_name_in_the_chrome_export(self):
        steps = [event['name'] for path in self.export('chrome', 'json').iterdir()
                 for event in json.loads(path.read_text())['traceEvents'] if event['name'].startswith('ProfilerStep#')]
        self.assertEqual(sorted(steps), sorted([f'ProfilerStep#{i}' for i in range(5)] * 4))

    def test_copies_by_direction(self):
        """As nsys stats cuda_gpu_mem_size_sum asks."""
        rows = self.query('''
            SELECT oper.label, count(*), sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY AS c
            JOIN ENUM_CUDA_MEMCPY_OPER AS oper ON oper.id = c.copyKind GROUP BY oper.label''')
        bytes_ = collections.Counter()
        for event in self.chrome_events('gpu_memcpy'):
            bytes_[event['name'].split()[1]] += event['args']['bytes']
        self.assertEqual({row[0]: row[2] for row in rows}, dict(bytes_))

    def test_ranks_processes_and_devices(self):
        self.assertEqual([row[0] for row in self.query('SELECT rank FROM RANKTAP_RANKS ORDER BY rank')], [0, 1, 2, 3])
        pids = {row[0] for row in self.query(
            'SELECT DISTINCT globalTid / 0x1000000 % 0x1000000 FROM CUPTI_ACTIVITY_KIND_RUNTIME')}
        self.assertEqual(pids, {row[0] for row in self.query('SELECT pid FROM PROCESSES')})
        self.assertEqual(self.query('SELECT count(*) FROM TARGET_INFO_GPU')[0][0], 4)
        start, = self.query('SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME')[0]
        self.assertGreater(start, 1_600_000_000_000_000_000)


    def test_reports_on_the_exported_file_are_those_on_the_run(self):
        """The importer of nsys' files reads what the exporter wrote, table by table."""
        for name in ('kernels', 'apis', 'ranges', 'launches', 'queue', 'idle', 'overlap', 'steps',
                     'waterfall-by-rank', 'bandwidth', 'temporal', 'verdict'):
            with self.subTest(name):
                self.assertEqual(self.report(self.scratch / 'run.sqlite', name),
                                 self.report(self.run_directory, name))

    def test_merge_takes_the_exported_file(self):
        output = self.scratch / 'merged.json'
        done = self._run([RANKTAP, 'merge', self.scratch / 'run.sqlite', '-o', output], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        kernels = sum(event.get('cat') == 'kernel' and event['ph'] == 'X'
                      for event in json.loads(output.read_text())['traceEvents'])
        self.assertEqual(kernels, sum(1 for _ in self.chrome_events('kernel')))


class CsvTest(SimulatedTraining):
    def test_a_line_for_every_event_with_its_numbers(self):
        with open(self.export('csv', 'run.csv'), newline='') as file:
            rows = list(csv.DictReader(file))
        for rank in range(4):
            kernels = sorted(int(row['duration_ns']) for row in rows
                             if row['kind'] in ('kernel', 'graph') and row['rank'] == str(rank))
            events = json.loads((self.export('chrome', 'json') / f'rank-0000{rank}.pt.trace.json').read_text())['traceEvents']
            self.assertEqual(kernels, sorted(round(event['dur'] * 1000) for event in events
                                             if event.get('cat') == 'kernel' and event['ph'] == 'X'))
        self.assertEqual(min(int(row['start_ns']) for row in rows), 0)
        self.assertEqual(sum(int(row['bytes'] or 0) for row in rows if row['kind'] == 'memcpy'),
                         sum(event['args']['bytes'] for event in self.chrome_events('gpu_memcpy')))


class WindowTest(SimulatedTraining):
    def first_event(self):
        return min(event['ts'] for path in self.export('chrome', 'json').iterdir()
                   for event in json.loads(path.read_text())['traceEvents'] if 'dur' in event)

    def test_formats_keep_the_same_kernels_of_a_window(self):
        kernels = sorted(event['ts'] for event in self.chrome_events('kernel'))
        # A quarter of the run's kernels, wherever they lie: when the first starts is up to the machine's load.
        first, last = (kernels[len(kernels) * quarter // 4] - self.first_event() for quarter in (1, 2))
        options = ['--window', f'{first:.0f}us:{last:.0f}us', '--min-duration', '2us']
        database = sqlite3.connect(self.export('sqlite', 'some.sqlite', *options))
        kept = database.execute('SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL').fetchone()[0]
        database.close()
        events = [event for path in self.export('chrome', 'some', *options).iterdir()
                  for event in json.loads(path.read_text())['traceEvents']]
        self.assertEqual(kept, sum(event.get('cat') == 'kernel' and 'grid' in event['args'] for event in events))
        self.assertGreater(kept, 0)
        self.assertLess(kept, len(kernels))

    def test_a_window_that_is_none_is_wrong_usage(self):
        done = self._run([RANKTAP, 'export', self.run_directory, '--window', '5', '-o', self.scratch / 'x'], {})
        self.assertEqual(done.returncode, 2)
        self.assertIn('FROM:TO', done.stderr)


PERFETTO_COUNTS = '''
import collections, json, sys
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
def unknown(message):
    found = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            found += sum(map(unknown, [value] if hasattr(value, 'ListFields') else value))
    return found
trace = Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
counts = collections.Counter(unknown=sum(map(unknown, trace.packet)))
names = {}
for packet in trace.packet:
    sequence = packet.trusted_packet_sequence_id
    for entry in packet.interned_data.event_categories:
        names[sequence, entry.iid] = entry.name
    if packet.HasField('track_event'):
        event = packet.track_event
        counts[TrackEvent.Type.Name(event.type)] += 1
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            category = names[sequence, event.category_iids[0]]
            counts[category] += 1
            counts['arrows from ' + category] += len(event.flow_ids)
        counts['arrows'] += len(event.flow_ids)
        counts['arrow ends'] += len(event.terminating_flow_ids)
print(json.dumps(counts))
'''


PERFETTO_TRACKS = '''
import json, sys
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
trace = Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
print(json.dumps([packet.track_descriptor.uuid for packet in trace.packet if packet.HasField('track_descriptor')]))
'''


def perfetto_tracks(path):
    done = subprocess.run([TOOLS_PYTHON, '-c', PERFETTO_TRACKS, path], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def perfetto_counts(path):
    done = subprocess.run([TOOLS_PYTHON, '-c', PERFETTO_COUNTS, path], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


@unittest.skipUnless(TOOLS_PYTHON.exists(), f'no Perfetto schema: {TOOLS_PYTHON} is missing; scripts/setup --tools')
class PerfettoTest(SimulatedTraining):
    def test_perfettos_own_schema_knows_every_field_and_slice(self):
        path = self.export('perfetto', 'run.pftrace')
        counts = perfetto_counts(path)
        self.assertEqual(counts['unknown'], 0)
        self.assertEqual(counts['TYPE_SLICE_BEGIN'], counts['TYPE_SLICE_END'])
        self.assertEqual(counts['arrows'], counts['arrow ends'])
        arrows = 0
        for category in ('kernel', 'gpu_memcpy', 'gpu_memset', 'user_annotation', 'cuda_runtime'):
            self.assertEqual(counts.get(category, 0), sum(1 for _ in self.chrome_events(category)), category)
        for path in (self.scratch / 'json').iterdir():
            arrows += sum(event.get('cat') == 'ac2g' and event['ph'] == 'f'
                          for event in json.loads(path.read_text())['traceEvents'])
        self.assertEqual(counts['arrows'], arrows)
        self.assertGreater(counts['TYPE_COUNTER'], 0)


    def test_a_tar_has_a_file_for_each_rank_and_says_where_it_ran(self):
        whole = collections.Counter(perfetto_counts(self.export('perfetto', 'run.pftrace')))
        parts, tracks = collections.Counter(), []
        with tarfile.open(self.export('perfetto', 'run.tar')) as archive:
            archive.extractall(self.scratch / 'tar')
            names = archive.getnames()
        self.assertEqual(names, [f'rank-0000{rank}.pftrace' for rank in range(4)] + ['perfetto_manifest.json'])
        text = (self.scratch / 'tar/perfetto_manifest.json').read_text()
        self.assertTrue(text.startswith('{"perfetto_manifest"'), 'it is told by its first bytes')
        manifest = json.loads(text)['perfetto_manifest']
        self.assertEqual((manifest['version'], manifest['trace_time']), (1, {'clock': 'REALTIME'}))
        self.assertEqual([entry['path'] for entry in manifest['files']], names[:4])
        self.assertEqual([entry['machine'] for entry in manifest['files']], [{'name': socket.gethostname()}] * 4)
        for name in names[:4]:
            parts.update(perfetto_counts(self.scratch / 'tar' / name))
            tracks += perfetto_tracks(self.scratch / 'tar' / name)
        self.assertEqual(parts, whole)
        self.assertEqual(len(tracks), len(set(tracks)), 'a track of one rank is taken for one of another')


class EightRanksTest(TracedTest):
    """torch.profiler's file and the execution trace of each of eight ranks, in containers: each is process 1."""

    def test_they_are_eight_files_of_chakra(self):
        for rank in range(8):
            device, host = (json.loads(gzip.decompress((ROOT / f'tests/data/et/pair/{part}.{rank % 2}.json.gz').read_bytes()))
                            for part in ('device', 'host'))
            device['distributedInfo'].update(rank=rank, world_size=8)
            for event in device['traceEvents']:
                if event['pid'] == host['pid']:
                    event['pid'] = event['tid'] = 1
            host['pid'] = 1
            for part, text in (('device', device), ('host', host)):
                (self.scratch / f'{part}.{rank}.json').write_text(json.dumps(text))
        for pattern in ('device.*.json', '*.json'):
            files = sorted(self.scratch.glob(pattern))
            rows = self._run([RANKTAP, 'report', *files, 'ranks', '--format', 'json'], {})
            self.assertEqual([row['rank'] for row in json.loads(rows.stdout)['rows']], list(range(8)), pattern)
            output = self.scratch / f'chakra-{len(files)}'
            done = self._run([RANKTAP, 'export', *files, '--format', 'chakra', '-o', output], {})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(path.name for path in output.iterdir()),
                             ['comm_group.json', *(f'rank.{rank}.et' for rank in range(8))])


@unittest.skipUnless(TOOLS_PYTHON.exists(), f'no Perfetto schema: {TOOLS_PYTHON} is missing; scripts/setup --tools')
@unittest.skipUnless(KINETO.exists(), f'no real traces: {KINETO} is missing')
class ImportedPerfettoTest(TracedTest):
    """What torch.profiler recorded of the framework is in the Perfetto file too, kind by kind."""

    def check(self, name, *kinds):
        original = KINETO / name
        with (gzip.open if name.endswith('.gz') else open)(original, 'rt') as file:
            events = json.load(file)['traceEvents']
        output = self.scratch / 'run.pftrace'
        done = self._run([RANKTAP, 'export', original, '--format', 'perfetto', '-o', output], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        counts = perfetto_counts(output)
        self.assertEqual(counts['unknown'], 0)
        self.assertEqual(counts['TYPE_SLICE_BEGIN'], counts['TYPE_SLICE_END'])
        truth = collections.Counter(event.get('cat') for event in events if event['ph'] == 'X')
        for kind in ('cpu_op', 'python_function', 'user_annotation', 'gpu_user_annotation', 'kernel'):
            self.assertEqual(counts.get(kind, 0), truth[kind], kind)
        for kind in kinds:
            self.assertGreater(counts[kind], 0)
        return counts, events

    def test_operators_collectives_annotations_and_arrows_of_autograd(self):
        counts, events = self.check('nccl-metadata.json.gz', 'cpu_op', 'user_annotation', 'gpu_user_annotation',
                                    'kernel')
        self.assertEqual(counts['arrows from cpu_op'],
                         sum(event['ph'] == 's' and event.get('cat') == 'fwdbwd' for event in events))
        self.assertEqual(counts['arrow ends'], counts['arrows'])

    def test_python_functions_and_what_the_allocator_holds(self):
        counts, events = self.check('qwen-0.5b-h100.json.gz', 'cpu_op', 'python_function', 'kernel')
        samples = [event['args'] for event in events if event['name'] == '[memory]']
        self.assertEqual(counts['TYPE_COUNTER'], 2 * len(samples))

    def test_some_steps_of_an_imported_file_are_not_a_copy_of_all_of_it(self):
        kernels = []
        for options in ([], ['--steps', '5']):
            output = self.scratch / f'some{len(options)}.json'
            done = self._run([RANKTAP, 'export', KINETO / 'nccl-metadata.json.gz', '-o', output, *options], {})
            self.assertEqual(done.returncode, 0, done.stderr)
            events = json.loads(output.read_text())['traceEvents']
            kernels.append(sum(event.get('cat') == 'kernel' for event in events))
        self.assertGreater(kernels[1], 0)
        self.assertLess(kernels[1], kernels[0])


if __name__ == '__main__':
    unittest.main()
