"""Our columns of a file in nsys' export schema against what SQL says of the same rows, as `nsys stats` asks it: its
reports are queries with these groups, and with a median and a sample standard deviation that it registers."""
import statistics

import nsys_file
from harness import RANKTAP, TracedTest
from nsys_file import COPIES


class Median:
    def __init__(self):
        self.values = []

    def step(self, value):
        self.values.append(value)

    def finalize(self):
        return statistics.median(self.values)


class Stdev(Median):
    def finalize(self):
        return statistics.stdev(self.values) if len(self.values) > 1 else 0


SUMS = 'SUM({0}), COUNT(*), AVG({0}), MEDIAN({0}), MIN({0}), MAX({0}), STDEV({0})'


class NsysParityTest(TracedTest):
    def setUp(self):
        super().setUp()
        self.path = self.scratch / 'nsys.sqlite'
        self.db = nsys_file.write(self.path)
        self.addCleanup(self.db.close)
        self.db.create_aggregate('MEDIAN', 1, Median)
        self.db.create_aggregate('STDEV', 1, Stdev)

    def sums(self, group, table, value='end - start', where='1', joins=''):
        """{group: (total, instances, avg, med, min, max, stddev)}"""
        rows = self.db.execute(f'SELECT {group}, {SUMS.format(value)} FROM {table} {joins} WHERE {where} GROUP BY {group}')
        return {row[:-7] if len(row) > 8 else row[0]: row[-7:] for row in rows}

    def compare(self, report, key, truth, unit='ns', options=()):
        rows = {key(row): row for row in self.report(self.path, report, *options)}
        self.assertEqual(set(rows), set(truth))
        whole = sum(row[0] for row in truth.values())
        for name, (total, instances, avg, med, least, most, stddev) in truth.items():
            row = rows[name]
            with self.subTest(report=report, name=name):
                self.assertEqual(row[f'total_{unit}'], total)
                self.assertEqual(row['calls'], instances)
                if unit == 'ns':  # "Time (%)"
                    self.assertAlmostEqual(row['share_percent'], 100 * total / whole)
                self.assertEqual(row[f'min_{unit}'], least)
                self.assertEqual(row[f'max_{unit}'], most)
                # Ours are whole numbers: a mean is cut off, the others are rounded.
                self.assertEqual(row[f'mean_{unit}'], int(avg))
                self.assertLessEqual(abs(row[f'median_{unit}'] - med), 0.5)
                self.assertLessEqual(abs(row[f'stddev_{unit}'] - stddev), 0.5001)

    def kernels(self, column, *more):
        return self.sums(', '.join(('value', *more)), 'CUPTI_ACTIVITY_KIND_KERNEL',
                         joins=f'JOIN StringIds ON id = {column}')

    def test_kernels_by_each_form_of_their_names(self):
        for report, column in (('cuda_gpu_kern_sum', 'demangledName'), ('cuda_gpu_kern_sum:base', 'shortName'),
                               ('cuda_gpu_kern_sum:mangled', 'mangledName')):
            truth = self.kernels(column)
            self.assertEqual(len(truth), 3 if column == 'shortName' else 4)
            self.compare(report, lambda row: row['name'], truth)

    def test_kernels_by_grid_and_block(self):
        for report, column in (('cuda_gpu_kern_gb_sum', 'demangledName'), ('cuda_gpu_kern_gb_sum:base', 'shortName')):
            truth = self.kernels(column, "gridX || 'x' || gridY || 'x' || gridZ", "blockX || 'x' || blockY || 'x' || blockZ")
            self.assertGreater(len(truth), 20)
            self.compare(report, lambda row: (row['name'], row['grid_xyz'], row['block_xyz']), truth)

    def test_calls(self):
        truth = self.sums("CASE WHEN instr(value, '_v') THEN substr(value, 1, instr(value, '_v') - 1) ELSE value END",
                          'CUPTI_ACTIVITY_KIND_RUNTIME', joins='JOIN StringIds ON id = nameId')
        self.assertEqual(len(truth), 4)
        self.compare('cuda_api_sum', lambda row: row['name'], truth)

    def test_copies_by_time_and_by_size(self):
        for report, unit, value in (('cuda_gpu_mem_time_sum', 'ns', 'end - start'),
                                    ('cuda_gpu_mem_size_sum', 'bytes', 'bytes')):
            truth = self.sums('copyKind', 'CUPTI_ACTIVITY_KIND_MEMCPY', value)
            named = {COPIES[kind]: row for kind, row in truth.items()}
            self.assertEqual(len(named), 3)
            self.compare(report, lambda row: row['name'], named, unit)

    def test_ranges(self):
        truth = self.sums("COALESCE(text, value), CASE domainId WHEN 1 THEN 'NCCL' ELSE '' END", 'NVTX_EVENTS',
                          where='eventType = 59', joins='LEFT JOIN StringIds ON id = textId')
        self.assertEqual(len(truth), 3)
        self.compare('nvtx_pushpop_sum', lambda row: (row['name'], row['domain'] or ''), truth)

    def test_the_columns_of_nsys_in_its_order_and_unit(self):
        """`nsys stats --timeunit usec`: Time %, Total, Instances, Avg, Med, Min, Max, StdDev, Name."""
        columns = 'share_percent,total_ns,calls,mean_ns,median_ns,min_ns,max_ns,stddev_ns,name'
        done = self._run([RANKTAP, 'report', self.path, 'cuda_gpu_kern_sum', '--format', 'csv', '--time-unit', 'us',
                          '--columns', columns, '--limit', '1'], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        head, row = done.stdout.splitlines()
        self.assertEqual(head, 'share_percent,total_us,calls,mean_us,median_us,min_us,max_us,stddev_us,name')
        longest = max(self.kernels('demangledName').values())
        self.assertEqual(row.split(',')[1], f'{longest[0] / 1e3:.3f}')
