"""What `ranktap export --format parquet` and `report --format parquet` write, read by DuckDB and pyarrow."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import unittest

from harness import CACHE, PROGRAMS, RANKTAP, ROOT, TracedTest

SQL_PYTHON = CACHE / 'sql-venv/bin/python'
INPUTS = ROOT / 'tests/golden/inputs'
TABLES = ('allocations', 'apis', 'collectives', 'copies', 'graph_launches', 'kernels', 'ops', 'ranges', 'ranks', 'samples',
          'steps')
ROW_GROUP = 1 << 20


@unittest.skipUnless(SQL_PYTHON.exists(), f'no DuckDB at {SQL_PYTHON}; scripts/setup --tools installs it')
class ParquetTest(TracedTest):
    def setUp(self):
        super().setUp()
        self.set = self.scratch / 'set'

    def export(self, run, *options, to=None):
        done = self.export_or_fail(run, *options, to=to)
        self.assertEqual(done.returncode, 0, done.stderr)

    def export_or_fail(self, run, *options, to=None, **popen):
        command = [RANKTAP, 'export', run, '--format', 'parquet', '-o', to or self.set, *options]
        return subprocess.run([str(part) for part in command], capture_output=True, text=True, **popen)

    def read(self, **wanted):
        done = subprocess.run([SQL_PYTHON, PROGRAMS / 'read_parquet.py'], input=json.dumps(wanted), capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def sql(self, *queries):
        """{kernels} in a query stands for the table."""
        tables = {table: f"read_parquet('{self.set}/{table}/*/*/*.parquet', hive_partitioning=true)"
                  for table in TABLES}
        return self.read(sql=[query.format(**tables) for query in queries])['sql']

    def metadata(self):
        paths = sorted(str(path) for path in self.set.rglob('*.parquet'))
        return dict(zip(paths, self.read(files=paths)['files']))

    def kineto(self, name, events):
        """A file as torch.profiler writes it."""
        path = self.scratch / name
        path.write_text(json.dumps({'schemaVersion': 1, 'distributedInfo': {'rank': 0}, 'traceEvents': events}))
        return path


def kernel(name, microseconds, **args):
    return {'ph': 'X', 'cat': 'kernel', 'name': name, 'pid': 0, 'tid': 7, 'ts': microseconds, 'dur': 1.5,
            'args': {'device': 0, 'context': 1, 'stream': 7, 'correlation': 1, **args}}


class GoldenRuns(ParquetTest):
    def test_counts_and_sums_equal_the_reports(self):
        self.export(INPUTS / 'standin-full')
        kernels, apis, copies, steps = self.sql(
            'select name, count(*), sum(duration_ns)::bigint from {kernels} group by 1',
            'select name, domain, count(*), sum(duration_ns)::bigint from {apis} group by 1, 2',
            'select name, count(*), sum(bytes)::bigint from {copies} group by 1',
            'select rank, step, duration_ns from {steps}')
        def rows(name, *columns):
            return sorted([row[column] for column in columns] for row in self.report(INPUTS / 'standin-full', name))
        self.assertEqual(sorted(kernels), rows('kernels', 'name', 'calls', 'total_ns'))
        self.assertEqual(sorted(apis), rows('apis', 'name', 'domain', 'calls', 'total_ns'))
        self.assertEqual(sorted(copies), rows('copies', 'name', 'calls', 'total_bytes'))
        self.assertEqual(sorted(steps), rows('steps', 'rank', 'step', 'total_ns'))

    def test_framework_and_collectives_equal_the_reports(self):
        run = INPUTS / 'torch-ddp'
        self.export(run)
        collectives, operators = self.sql(
            '''select "group", type, bytes, count(distinct call), (sum(duration_ns) // count(*))::bigint
               from {collectives} group by all''',
            "select rank, name, count(*) from {ops} where kind = 'operator' group by all")
        self.assertEqual(sorted(collectives, key=str), sorted(
            ([row[column] for column in ('group', 'type', 'bytes', 'calls', 'kernel_ns')]
             for row in self.report(run, 'comm')), key=str))
        reported = {}
        for row in self.report(run, 'ops'):
            key = (row['rank'], row['name'])
            reported[key] = reported.get(key, 0) + row['calls']
        ours = {(rank, name): calls for rank, name, calls in operators}
        # torch hides some names from key_averages, and shows annotations as operators.
        shared = [key for key in ours if key in reported]
        self.assertGreater(len(shared), 50)
        self.assertEqual({key: ours[key] for key in shared}, {key: reported[key] for key in shared})

    def test_pyarrow_finds_right_statistics_and_sorted_compressed_columns(self):
        self.export(INPUTS / 'standin-kernels')
        files = self.metadata()
        self.assertEqual(len(files), len(TABLES) * len(list((INPUTS / 'standin-kernels').glob('*.trace'))))
        for path, about in files.items():
            for group in about['groups']:
                self.assertEqual(group['sorted_by'], [[0, False]], path)
                for name, column in group['columns'].items():
                    self.assertEqual(column['compression'], 'ZSTD', (path, name))
                    self.assertTrue(column['nulls_right'] and column['bounds_right'], (path, name))
        kernels = next(about for path, about in files.items() if '/kernels/' in path)
        self.assertEqual(kernels['types']['start_ns'], 'int64')
        self.assertIn('RLE_DICTIONARY', kernels['groups'][0]['columns']['name']['encodings'])

    def test_several_runs_share_a_data_set_and_one_comes_once(self):
        self.export(INPUTS / 'standin-full')
        self.export(INPUTS / 'standin-kernels')
        counts = self.sql('select run, count(distinct rank) from {ranks} group by 1 order by 1')[0]
        self.assertEqual(counts, [['standin-full', 4], ['standin-kernels', 4]])
        again = self.export_or_fail(INPUTS / 'standin-full')
        self.assertEqual(again.returncode, 1)
        self.assertIn('--replace', again.stderr)
        self.export(INPUTS / 'standin-full', '--replace')
        self.export(INPUTS / 'standin-full', '--run-name', 'again')
        after = self.sql('select run, count(distinct rank) from {ranks} group by 1 order by 1')[0]
        self.assertEqual(after, [['again', 4], *counts])

    def test_a_window_and_ranks_leave_the_others_out(self):
        self.export(INPUTS / 'standin-full', '--ranks', '1,3', '--window', ':15ms')
        self.assertEqual(self.sql('select distinct rank from {kernels} order by 1')[0], [[1], [3]])
        self.export(INPUTS / 'standin-full', '--run-name', 'whole')
        counts = dict(self.sql("select run, count(*) from {kernels} where rank = 1 group by 1")[0])
        self.assertLess(counts['standin-full'], counts['whole'])

    def test_every_analysis_is_a_table_with_the_rows_of_its_json(self):
        run, folder = INPUTS / 'torch-ddp', self.scratch / 'reports'
        done = self._run([RANKTAP, 'report', run, '--format', 'parquet', '-o', folder], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        tables = sorted(path.name for path in folder.iterdir())
        self.assertGreater(len(tables), 30)
        names = [table.removeprefix('report_').replace('_', '-') for table in tables]
        answers = self.read(sql=[f"select count(*) from read_parquet('{folder}/{table}/*/*.parquet')"
                                 for table in tables])['sql']
        for name, [[count]] in zip(names, answers):
            self.assertEqual(count, len(self.report(run, name)), name)
        steps = self.read(sql=[f"select rank, step, total_ns from '{folder}/report_steps/*/*.parquet'"])['sql'][0]
        self.assertEqual(steps, [[row['rank'], row['step'], row['total_ns']] for row in self.report(run, 'steps')])

    def test_named_analyses_alone_are_written(self):
        folder = self.scratch / 'reports'
        done = self._run([RANKTAP, 'report', INPUTS / 'torch-ddp', 'steps', 'ops', '--format', 'parquet', '-o', folder],
                         {})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(path.name for path in folder.iterdir()), ['report_ops', 'report_steps'])


class OddValues(ParquetTest):
    def test_names_of_any_letters_come_back(self):
        names = ['gemm_größe', '矩阵乘法<float>', 'with "quotes", and\nlines', '\U0001f525']
        path = self.kineto('odd.json', [kernel(name, 10 * i) for i, name in enumerate(names)])
        self.export(path)
        self.assertEqual(self.sql('select name from {kernels} order by start_ns')[0], [[name] for name in names])

    def test_what_is_not_known_is_null(self):
        path = self.kineto('bare.json', [kernel('gemm', 10), {
            'ph': 'X', 'cat': 'gpu_memcpy', 'name': 'Memcpy HtoD (Pageable -> Device)', 'pid': 0, 'tid': 7, 'ts': 20,
            'dur': 2, 'args': {'device': 0, 'context': 1, 'stream': 7, 'correlation': 2}}])
        self.export(path)
        kernels, copies = self.sql('select op, module, launch_ns, step from {kernels}', 'select bytes from {copies}')
        self.assertEqual(kernels, [[None] * 4])
        self.assertEqual(copies, [[None]])

    def test_a_table_without_rows_has_its_columns(self):
        self.export(self.kineto('one.json', [kernel('gemm', 10)]))
        self.assertEqual(self.sql('select count(*), sum(bytes) from {copies}', 'select count(*) from {ops}'),
                         [[[0, None]], [[0]]])

    def test_a_process_without_a_rank_has_none(self):
        path = self.scratch / 'no-rank.json'
        path.write_text(json.dumps({'schemaVersion': 1, 'traceEvents': [kernel('gemm', 10)]}))
        self.export(path)
        self.assertEqual(self.sql('select rank, name from {kernels}')[0], [[None, 'gemm']])

    def test_more_than_a_million_rows_are_several_row_groups(self):
        count = ROW_GROUP + 1000
        path = self.scratch / 'many.json'
        with path.open('w') as file:
            file.write('{"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": [')
            event = ('{"ph":"X","cat":"kernel","name":"kernel_%d","pid":0,"tid":7,"ts":%d,"dur":%d,"args":'
                     '{"device":0,"context":1,"stream":7,"correlation":%d}}')
            for i in range(count):
                file.write((',' if i else '') + event % (i % 70, 10 * i, 1 + i % 7, i))
            file.write(']}')
        self.export(path)
        rows, total, names = self.sql('select count(*), sum(duration_ns)::bigint, count(distinct name) from {kernels}')[0][0]
        self.assertEqual((rows, total, names), (count, sum(1 + i % 7 for i in range(count)) * 1000, 70))
        kernels = next(about for file, about in self.metadata().items() if '/kernels/' in file)
        self.assertEqual([group['rows'] for group in kernels['groups']], [ROW_GROUP, 1000])
        for group in kernels['groups']:
            for name, column in group['columns'].items():
                self.assertTrue(column['nulls_right'] and column['bounds_right'], name)


class BadPlaces(ParquetTest):
    def assert_nothing_left(self):
        left = [str(path) for path in self.set.rglob('*') if path.is_file()] if self.set.exists() else []
        self.assertEqual(left, [])

    def test_a_folder_that_cannot_be_made_is_named(self):
        (self.scratch / 'file').write_text('')
        done = self.export_or_fail(INPUTS / 'standin-full', to=self.scratch / 'file/set')
        self.assertEqual(done.returncode, 1)
        self.assertIn(f'{self.scratch}/file/set', done.stderr)
        self.assertIn('name a folder that can be written to', done.stderr)

    def test_a_full_disk_leaves_no_half_table(self):
        def as_if_full():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
        done = self.export_or_fail(INPUTS / 'standin-full', preexec_fn=as_if_full)
        self.assertEqual(done.returncode, 1)
        self.assertIn('.parquet: could not write', done.stderr)
        self.assertIn('free some space', done.stderr)
        self.assert_nothing_left()

    def test_a_damaged_trace_gives_what_can_be_read_and_says_so(self):
        run = self.scratch / 'run'
        shutil.copytree(INPUTS / 'standin-full', run)
        trace = run / 'rank-00001.trace'
        os.truncate(trace, trace.stat().st_size // 2)
        done = self.export_or_fail(run)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('rank-00001.trace', done.stderr)
        self.assertIn('ranktap verify', done.stderr)
        self.assertEqual(self.sql('select rank from {ranks} where damaged')[0], [[1]])

    def test_a_run_that_is_not_there_makes_no_data_set(self):
        done = self.export_or_fail(self.scratch / 'missing')
        self.assertEqual(done.returncode, 1)
        self.assertFalse(self.set.exists())

    def test_a_name_that_engines_do_not_read_back_is_refused(self):
        done = self.export_or_fail(INPUTS / 'standin-full', '--run-name', 'a/b')
        self.assertEqual(done.returncode, 2)
        self.assertFalse(pathlib.Path(self.set).exists())


if __name__ == '__main__':
    unittest.main()
