"""`report --hta-compat` answers for a ROCm trace as HTA (from PyPI) does.

HTA stops at the last ProfilerStep#N that it takes for the host's, and takes an annotation of the device for one where
it names no stream, as those of ROCm (and of CUDA with the annotation of steps on the device) do.
"""
import json
import subprocess
import tempfile
import unittest

import harness
from test_hta import HTA_PYTHON

STEPS = 4
KINDS = {'COMPUTATION': 'compute', 'COMMUNICATION': 'communication', 'MEMORY': 'memory'}


def rocm_trace():
    events = []

    def span(category, name, pid, tid, start, duration, args=None):
        events.append({'ph': 'X', 'cat': category, 'name': name, 'pid': pid, 'tid': tid, 'ts': start, 'dur': duration,
                       'args': args or {}})
    correlation = 0
    for step in range(STEPS):
        start = 1000 * step
        span('user_annotation', f'ProfilerStep#{step + 1}', 10, 10, start, 900, {'External id': step + 1})
        span('cpu_op', 'aten::mm', 10, 10, start + 10, 700, {'External id': 100 + step})
        for i in range(3):
            correlation += 1
            span('cuda_runtime', 'hipExtModuleLaunchKernel' if i == 1 else 'hipLaunchKernel', 10, 10,
                 start + 100 + 200 * i, 20 + i, {'correlation': correlation, 'cid': 7, 'grid': [1, 1, 1]})
            span('kernel', 'ncclDevKernel_Generic_1(x)' if i == 2 else 'Cijk_gemm', 0, 3,
                 1500 + start + 300 * i - 40 * step, 100 + 10 * i + step,
                 {'device': 0, 'stream': 3, 'correlation': correlation, 'kind': 'Dispatch Kernel'})
        correlation += 1
        span('cuda_runtime', 'hipMemcpyAsync', 10, 10, start + 750, 40, {'correlation': correlation, 'kind': '1'})
        span('gpu_memcpy', 'Memcpy HtoD (Host -> Device)', 0, 0, 1500 + start + 200, 9 + step,
             {'device': 0, 'stream': 0, 'correlation': correlation, 'kind': 'HtoD', 'bytes': 4096,
              'memory bandwidth (GB/s)': 4.0 + step})
        span('gpu_user_annotation', f'ProfilerStep#{step + 1}', 0, 3, 1499 + start, 800 + step)
        span('gpu_user_annotation', 'forward', 0, 3, 1500 + start, 300 + 10 * step)
    return {'schemaVersion': 1, 'distributedInfo': {'rank': 0}, 'traceEvents': events}


@unittest.skipUnless(HTA_PYTHON.exists(), f'no HTA: {HTA_PYTHON} is missing; scripts/setup --tools')
class HtaRocmTest(harness.TracedTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.trace = f'{folder.name}/rocm.json'
        with open(cls.trace, 'w') as out:
            json.dump(rocm_trace(), out)
        done = subprocess.run([HTA_PYTHON, harness.PROGRAMS / 'hta_answers.py', cls.trace], capture_output=True,
                              text=True, timeout=300, check=True)
        cls.theirs = json.loads(done.stdout.splitlines()[-1])

    def rows(self, analysis):
        done = self.run_bare([harness.RANKTAP, 'report', self.trace, analysis, '--hta-compat', '--format', 'json'])
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)['rows']

    def test_the_cut_off_counts_steps_that_the_device_annotates(self):
        (ours,), (theirs,) = self.rows('temporal'), self.theirs['temporal']
        self.assertEqual(
            [ours[name] for name in ('span_ns', 'compute_ns', 'non_compute_ns', 'idle_ns')],
            [1000 * theirs[name] for name in ('kernel_time(us)', 'compute_time(us)', 'non_compute_time(us)',
                                              'idle_time(us)')])

    def test_idle_time(self):
        ours = {(row['stream'], row['cause']): row['idle_ns'] for row in self.rows('idle')}
        self.assertEqual(ours, {(row['stream'], row['idle_category']): 1000 * row['idle_time']
                                for row in self.theirs['idle']})

    def test_kernels_and_their_kinds(self):
        ours = {(row['name'], row['type']): [row[of] for of in ('total_ns', 'max_ns', 'min_ns')]
                for row in self.rows('kernels')}
        self.assertEqual(ours, {(row['name'], KINDS[row['kernel_type']]):
                                [1000 * row[of] for of in ('sum (us)', 'max (us)', 'min (us)')]
                                for row in self.theirs['kernels']['names']})
        kinds = {row['type']: row['total_ns'] for row in self.rows('types')}
        self.assertEqual(kinds, {' overlapping '.join(KINDS[kind] for kind in row['kernel_type'].split(' overlapping ')):
                                 1000 * row['sum'] for row in self.theirs['kernels']['kinds']})

    def test_copies(self):
        ours = {row['name']: (row['count'], row['max_gb_per_s']) for row in self.rows('bandwidth')}
        self.assertEqual(ours, {row["('name', '')"]: (row["('memory_bw_gbps', 'count')"],
                                                      row["('memory_bw_gbps', 'max')"])
                                for row in self.theirs['bandwidth']})

    def test_annotations_on_the_device(self):
        ours = {row['name']: [row[of] for of in ('total_ns', 'max_ns', 'min_ns')] for row in self.rows('ranges')}
        self.assertEqual(ours, {row['name']: [1000 * row[of] for of in ('sum (us)', 'max (us)', 'min (us)')]
                                for row in self.theirs['annotations']})


if __name__ == '__main__':
    unittest.main()
