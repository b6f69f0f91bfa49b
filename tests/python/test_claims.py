"""Each cross-check of each claim fires on a real file: as it is, or with the one fact edited that the check is about. The
check of busy devices against NVML fires in device_sampler_test, on a job that a device shares with another."""
import copy
import gzip
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ANSWERS = ROOT / 'build/release/tests/answers'
DATA, INPUTS, SHARED = ROOT / 'tests/data', ROOT / 'tests/golden/inputs', ROOT.parent / 'shared/data'


def read(path):
    return json.loads((gzip.decompress(path.read_bytes()) if path.suffix == '.gz' else path.read_bytes()))


def events(trace, category):
    return [event for event in trace['traceEvents'] if event.get('cat') == category]


def collectives(trace):
    return [event for event in events(trace, 'kernel') if event['name'].startswith('nccl')]


class Claims(unittest.TestCase):
    def doubts(self, *inputs):
        """{(claim, against): why} of the checks that an input does not pass"""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([ANSWERS, '--claims', folder, *inputs], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            claims = pathlib.Path(folder, 'tables/claims.json')
            rows = json.loads(claims.read_text())['rows'] if claims.exists() else []
        return {(row['claim'], row['against']): row['why'] for row in rows}

    def edited(self, paths, edit):
        """The same of copies that edit(ranks' files) changed"""
        traces = [read(path) for path in paths]
        edit(traces)
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for number, trace in enumerate(traces):
                files.append(pathlib.Path(folder, f'rank{number}.json'))
                files[-1].write_text(json.dumps(trace))
            return self.doubts(*files)

    def pair(self, edit):
        return self.edited([DATA / f'et/pair/device.{rank}.json.gz' for rank in (0, 1)], edit)

    def test_of_files_as_they_are(self):
        for check, inputs in {
                ('largest loss', 'missing'): [INPUTS / 'torch-flop-check'],
                ('late rank', 'steps'): [INPUTS / 'standin-windows'],
                ('transfer', 'members'): [DATA / 'et/linked.0.json.gz'],
                ('recoverable', 'launches'): [DATA / 'et/stock.0.et'],
                ('recoverable', 'path'): [DATA / 'et/linked.0.json.gz'],
                ('recoverable', 'cause'): [DATA / f'et/pair/device.{rank}.json.gz' for rank in (0, 1)],
        }.items():
            self.assertIn(check, self.doubts(*inputs))

    @unittest.skipUnless(SHARED.exists(), f'no real traces: {SHARED} is missing')
    def test_of_real_traces_as_they_are(self):
        self.assertIn(('busy', 'launches'), self.doubts(SHARED / 'kineto/cupti-counters-a100.json.gz'))
        self.assertIn(('FLOPs', 'kernels'), self.doubts(SHARED / 'kineto/cuda-graphs-vllm.json.gz'))

    def test_a_third_rank_in_a_group_of_two(self):
        def add(traces):
            traces.append(json.loads(json.dumps(traces[1])))
            traces[2]['distributedInfo']['rank'] = 2
        self.assertIn(('late rank', 'group'), self.pair(add))

    def test_a_wait_that_is_longer_than_the_steps(self):
        def lengthen(traces):
            for kernel in collectives(traces[0]):
                kernel['ts'] -= 5_000_000
                kernel['dur'] += 5_000_000
        self.assertIn(('late rank', 'bound'), self.pair(lengthen))

    def test_kernels_whose_work_is_gone_are_no_idle_device(self):
        def drop(traces):
            for trace in traces:
                trace['traceEvents'] = [event for event in trace['traceEvents'] if event.get('cat') != 'kernel' or
                                        event in collectives(trace)]
        self.assertIn(('busy', 'launches'), self.pair(drop))

    def test_a_root_that_leaves_its_broadcast_before_the_others_come(self):
        def leave(traces):
            for rank, trace in enumerate(traces):
                for kernel in collectives(trace):
                    if kernel['args']['Collective name'] in ('send', 'recv'):
                        kernel['name'] = 'ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)'
                        kernel['args']['Collective name'] = 'broadcast'
                        kernel['ts'] += 22 * rank
                        kernel['dur'] = 5 if rank == 0 else 18
        self.assertIn(('late rank', 'arrivals'), self.pair(leave))

    def test_ranks_that_go_apart_as_a_reduction_lets_them(self):
        def repeat(traces, later):
            """The two steps thrice; rank 1 comes to each call first, and `later` us more behind with each time."""
            for rank, trace in enumerate(traces):
                once, trace['traceEvents'] = trace['traceEvents'], []
                for time in range(3):
                    for event in copy.deepcopy(once):
                        event['ts'] += time * (1700 + later * rank)
                        for ids in (event, event.get('args', {})):
                            ids.update({key: ids[key] + 1000 * time for key in ('id', 'External id', 'correlation') if key in ids})
                        if step := re.fullmatch(r'ProfilerStep#(\d)', event['name']):
                            event['name'] = f'ProfilerStep#{int(step[1]) + 2 * time}'
                        trace['traceEvents'].append(event)
                for kernel in collectives(trace):
                    kernel['name'] = 'ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)'
                    kernel['args']['Collective name'] = 'reduce'
                    kernel['ts'] -= 20 * rank
                    kernel['dur'] += 20 * rank
        self.assertNotIn(('late rank', 'pace'), self.pair(lambda traces: repeat(traces, 0)))
        self.assertIn(('late rank', 'pace'), self.pair(lambda traces: repeat(traces, 1000)))

    @unittest.skipUnless(SHARED.exists(), f'no real traces: {SHARED} is missing')
    def test_a_device_whose_clock_is_half_a_step_behind_the_hosts(self):
        def shift(traces):
            for event in traces[0]['traceEvents']:
                if event.get('cat') in ('kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_user_annotation'):
                    event['ts'] -= 111_000
        path = SHARED / 'kineto/nccl-metadata.json.gz'
        self.assertNotIn(('largest loss', 'parts'), self.doubts(path))
        self.assertIn(('largest loss', 'parts'), self.edited([path], shift))

    @unittest.skipUnless(SHARED.exists(), f'no real traces: {SHARED} is missing')
    def test_shapes_that_would_be_over_the_peak(self):
        def enlarge(traces):
            for event in events(traces[0], 'cpu_op'):
                dims = event.get('args', {}).get('Input Dims')
                if dims and event['name'] in ('aten::mm', 'aten::addmm', 'aten::linear', 'aten::matmul', 'aten::bmm'):
                    event['args']['Input Dims'] = [[64 * n for n in d] if isinstance(d, list) and d and
                                                   isinstance(d[0], int) else d for d in dims]
        path = SHARED / 'kineto/qwen-0.5b-h100.json.gz'
        self.assertNotIn(('peak', 'bound'), self.doubts(path))
        self.assertIn(('peak', 'bound'), self.edited([path], enlarge))

    @unittest.skipUnless(SHARED.exists(), f'no real traces: {SHARED} is missing')
    def test_kernels_that_are_named_after_another_type(self):
        def rename(traces):
            for kernel in events(traces[0], 'kernel'):
                if 'gemm' in kernel['name']:
                    kernel['name'] = 'ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x1_tn'
        path = SHARED / 'kineto/sampled-rank0.json.gz'
        self.assertNotIn(('peak', 'types'), self.doubts(path))
        self.assertIn(('peak', 'types'), self.edited([path], rename))


if __name__ == '__main__':
    unittest.main()
