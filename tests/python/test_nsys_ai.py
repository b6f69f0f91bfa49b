"""nsys-ai, which reads nsys' SQLite files, on ours: its skills answer what was planted."""
import json
import unittest

import harness

PYTHON = harness.CACHE / 'sql-venv/bin/python'
NSYS_AI = PYTHON.with_name('nsys-ai')

# DuckDB would wait for an extension from the network; without a home for it nsys-ai reads by Python's sqlite3.
NO_HOME = {'HOME': '/dev/null'}
H100_PEAK = 989e12  # operations a second in bf16, as nsys-ai has it of GH100
# (name, stream, launched, start, duration), in us: 20 ms of compute, 4 of them beside the 6 ms of NCCL.
KERNELS = [('gemm_of_the_model', 7, 1000, 2000, 12000), ('gemm_of_the_model', 7, 1100, 14000, 5000), ('gelu', 7, 1200, 19000, 3000),
           ('ncclDevKernel_AllReduce_Sum_bf16', 20, 1300, 18000, 6000)]
STEP = (500, 24000)


def planted():
    """A file of torch.profiler's: one step of the model on an H100."""
    events = [{'ph': 'X', 'cat': 'user_annotation', 'name': 'ProfilerStep#3', 'pid': 10, 'tid': 10, 'ts': STEP[0], 'dur': STEP[1]}]
    for number, (name, stream, launched, start, duration) in enumerate(KERNELS, 1):
        events.append({'ph': 'X', 'cat': 'cuda_runtime', 'name': 'cudaLaunchKernel', 'pid': 10, 'tid': 10, 'ts': launched, 'dur': 10,
                       'args': {'correlation': number}})
        events.append({'ph': 'X', 'cat': 'kernel', 'name': name, 'pid': 0, 'tid': stream, 'ts': start, 'dur': duration,
                       'args': {'correlation': number, 'device': 0, 'context': 1, 'stream': stream, 'grid': [1, 1, 1], 'block': [32, 1, 1]}})
    device = {'id': 0, 'name': 'NVIDIA H100 80GB HBM3', 'totalGlobalMem': 85 << 30, 'computeMajor': 9, 'computeMinor': 0, 'numSms': 132}
    return {'schemaVersion': 1, 'deviceProperties': [device], 'traceEvents': events}


@unittest.skipUnless(NSYS_AI.exists(), f'no nsys-ai at {NSYS_AI}; scripts/setup --tools installs it')
class NsysAiTest(harness.TracedTest):
    def export(self, source):
        target = self.scratch / 'exported.sqlite'
        done = self._run([harness.RANKTAP, 'export', source, '--format', 'sqlite', '-o', target], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        return target

    def skill(self, name, *parameters):
        done = self._run([NSYS_AI, 'skill', 'run', name, self.file, '--format', 'json', *parameters], NO_HOME)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


class PlantedTest(NsysAiTest):
    def setUp(self):
        super().setUp()
        source = self.scratch / 'planted.json'
        source.write_text(json.dumps(planted()))
        self.file = self.export(source)

    def test_the_gpu_is_named_with_its_processors(self):
        done = self._run([NSYS_AI, 'info', self.file], NO_HOME)
        self.assertRegex(done.stdout, r'GPU 0: NVIDIA H100 80GB HBM3 .*SMs=132 .*Kernels=4')

    def test_the_heaviest_kernel_comes_first_with_its_time(self):
        first = self.skill('top_kernels')[0]
        self.assertEqual((first['kernel_name'], first['invocations'], first['total_ms']), ('gemm_of_the_model', 2, 17.0))

    def test_compute_beside_nccl_is_what_overlaps(self):
        said = self.skill('overlap_breakdown')[0]
        self.assertEqual((said['compute_only_ms'], said['nccl_only_ms'], said['overlap_ms']), (16.0, 2.0, 4.0))

    def test_mfu_is_of_the_chips_peak(self):
        busy_s = 22e-3  # no moment of the 22 ms is without a kernel
        said = self.skill('arithmetic_intensity', '-p', 'theoretical_flops=5e12')[0]
        self.assertEqual((said['chip_name'], said['peak_fp16_tflops']), ('GH100', 989.0))
        self.assertAlmostEqual(said['mfu_pct'], 100 * 5e12 / busy_s / H100_PEAK, delta=0.1)

    def test_kernels_belong_to_the_label_that_launched_them(self):
        labels = {row['nvtx_text'] for row in self.skill('nvtx_kernel_map')}
        self.assertEqual(labels, {'ProfilerStep#3'})


class RecordedTest(NsysAiTest):
    def test_kernels_of_a_run_of_ours_are_those_of_the_report(self):
        run = harness.ROOT / 'tests/golden/inputs/standin-kernels'
        self.file = self.export(run)
        ours = {(row['name'].split('(')[0], row['calls']) for row in self.report(run, 'kernels')}
        theirs = {(row['kernel_name'].split('(')[0], row['invocations']) for row in self.skill('top_kernels')}
        self.assertEqual(len(theirs), len(ours))
        self.assertEqual(sum(calls for _, calls in theirs), sum(calls for _, calls in ours))


if __name__ == '__main__':
    unittest.main()
