"""HTA (from PyPI) loads our JSON of an imported torch.profiler trace and answers as on the original."""
import gzip
import json
import math
import subprocess
import unittest

from harness import BUILD, CACHE, PROGRAMS, RANKTAP, ROOT, TracedTest

HTA_PYTHON = CACHE / 'hta-venv/bin/python'
KINETO = ROOT.parent / 'shared/data/kineto'
# Microseconds: originals with ts of 1.7e15 are held in doubles that are 0.25 us apart.
ABSOLUTE, RELATIVE = 1.0, 1e-3


def answers(trace):
    done = subprocess.run([HTA_PYTHON, PROGRAMS / 'hta_answers.py', trace], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f'HTA could not read {trace}:\n{done.stderr[-2000:]}')
    return json.loads(done.stdout.splitlines()[-1])


def split_idle(found):
    """The idle rows as streams' totals, and each category's share of its total.

    HTA takes a kernel without a launch for one launched by the first event of the file, whatever that is (ours is
    metadata), and calls a gap host_wait or kernel_wait by comparing times that the originals' doubles round to
    0.25 us: single gaps change their category, the total does not.
    """
    totals, shares = {}, {}
    for row in found.pop('idle'):
        stream = str(row['stream'])
        totals[stream] = totals.get(stream, 0) + row['idle_time']
        shares.setdefault(stream, {})[row['idle_category']] = row['idle_time']
    found['idle'] = totals
    found['idle shares'] = {stream: {category: round(time / totals[stream] / 0.02) if totals[stream] else 0
                                     for category, time in of.items()} for stream, of in shares.items()}
    return found


def differences(ours, theirs, where=''):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            yield from differences(ours.get(key), theirs.get(key), f'{where}/{key}')
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            yield f'{where}: {len(ours)} rows, {len(theirs)} of the original'
        for i, pair in enumerate(zip(ours, theirs)):
            yield from differences(*pair, f'{where}[{i}]')
    elif isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
        if not math.isclose(ours, theirs, rel_tol=RELATIVE, abs_tol=ABSOLUTE):
            yield f'{where}: {ours}, {theirs} of the original'
    elif ours != theirs:
        yield f'{where}: {ours!r}, {theirs!r} of the original'


@unittest.skipUnless(HTA_PYTHON.exists(), f'no HTA: {HTA_PYTHON} is missing; scripts/setup --tools')
@unittest.skipUnless(KINETO.exists(), f'no real traces: {KINETO} is missing')
class HtaTest(TracedTest):
    def check(self, name):
        original = KINETO / f'{name}.json.gz'
        ours = self.scratch / f'{name}.json'
        done = self._run([RANKTAP, 'export', original, '--format', 'chrome', '-o', ours], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        found = answers(ours)
        self.assertIsInstance(found['temporal'], list, 'HTA answered nothing')
        self.assertEqual(list(differences(split_idle(found), split_idle(answers(original)))), [])

    def test_v100_with_nanoseconds(self):
        self.check('ns-timestamps-rank0')

    def test_a100_with_nccl_metadata(self):
        self.check('nccl-metadata')

    def test_one_rank_of_128(self):
        self.check('sampled-rank0')

    def test_h100_with_python_stacks(self):
        self.check('qwen-0.5b-h100')

    def test_a100_with_syncs(self):
        self.check('alexnet-a100')


HTA_COUNTERS = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
frame = TraceAnalysis(trace_files={0: sys.argv[1]}).get_cupti_counter_data_with_operators(ranks=[0])[0]
flops = sum(frame[name] * (2 if 'fma' in name else 1) for name in frame.columns if '_op_' in name and 'pred_on' in name)
print(json.dumps([list(row) for row in zip(frame['name'], frame['bottom_level_op'], frame['top_level_op'], flops)]))
"""


@unittest.skipUnless(HTA_PYTHON.exists(), f'no HTA: {HTA_PYTHON} is missing; scripts/setup --tools')
@unittest.skipUnless(KINETO.exists(), f'no real traces: {KINETO} is missing')
class CountersTest(TracedTest):
    def test_each_launch_has_the_counters_and_operators_that_hta_gives_it(self):
        trace = KINETO / 'cupti-counters-a100.json.gz'
        done = subprocess.run([HTA_PYTHON, '-c', HTA_COUNTERS, trace], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        theirs = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(len(theirs), 77)
        ours = self._run([RANKTAP, 'report', trace, 'counters', '--by', 'launch', '--format', 'json'], {})
        rows = json.loads(ours.stdout)['rows']
        self.assertEqual([[row['bottom_operator'], row['top_operator'], row['flops']] for row in rows],
                         [[bottom, top, round(flops)] for _, bottom, top, flops in theirs])


HTA_OF_ALL_RANKS = """
import json, logging, os, sys
os.environ['HTA_DISABLE_NS_ROUNDING'] = '1'
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={rank: path for rank, path in enumerate(sys.argv[1:])})
def attempt(question):
    try:
        return question()
    except Exception as error:
        return type(error).__name__
def names(wanted):
    table = analysis.t.symbol_table.get_sym_table()
    return sorted({table[i] for i in analysis.t.get_trace(0)['name'] if table[i].startswith(wanted)})
print(json.dumps({
    'steps': names('ProfilerStep#'),
    'collectives': names('nccl'),
    'iterations': sorted(int(i) for i in analysis.t.get_iterations(0)),
    'stragglers': attempt(lambda: [int(rank) for rank in analysis.get_potential_stragglers(num_candidates=1)])}))
"""


@unittest.skipUnless(HTA_PYTHON.exists(), f'no HTA: {HTA_PYTHON} is missing; scripts/setup --tools')
class HtaCompatibleExportTest(TracedTest):
    """HTA knows the steps of programs without torch.profiler, and after `export --hta-compat` modern collectives."""

    def hta_of(self, *files):
        done = subprocess.run([HTA_PYTHON, '-c', HTA_OF_ALL_RANKS, *map(str, files)], capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return json.loads(done.stdout.splitlines()[-1])

    def export(self, source, name, *options):
        done = self._run([RANKTAP, 'export', source, '-o', self.scratch / name, *options], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.scratch / name

    @unittest.skipUnless(KINETO.exists(), f'no real traces: {KINETO} is missing')
    def test_collectives_have_the_names_that_hta_looks_for(self):
        """As NCCL names them since 2.19: HTA 0.6.1 asks for names that begin with ncclKernel."""
        originals = [KINETO / f'sampled-rank{rank}.json.gz' for rank in range(2)]
        modern = [self.scratch / f'modern-{rank}.json' for rank in range(2)]
        for original, path in zip(originals, modern):
            with gzip.open(original, 'rt') as file:
                path.write_text(file.read().replace('ncclKernel_', 'ncclDevKernel_'))
        plain = self.hta_of(*[self.export(path, f'plain-{path.name}') for path in modern])
        compatible = self.hta_of(*[self.export(path, f'compatible-{path.name}', '--hta-compat') for path in modern])
        self.assertTrue(any(name.startswith('ncclDevKernel') for name in plain['collectives']), plain['collectives'])
        self.assertEqual([name.replace('ncclDevKernel', 'ncclKernel') for name in plain['collectives']],
                         compatible['collectives'])
        self.assertEqual(plain['stragglers'], 'ValueError')
        self.assertEqual(compatible['stragglers'], self.hta_of(*originals)['stragglers'])
        self.assertEqual(len(compatible['stragglers']), 1)

    def test_hta_finds_the_steps_of_a_program_that_names_none(self):
        train = BUILD / 'workloads/train_cuda'
        if not train.exists():
            self.skipTest(f'{train} was not built: no nvcc')
        run = self.scratch / 'run'
        done = self._run([ROOT / 'scripts/with-simulated-gpu', RANKTAP, 'run', '-o', run, '--', train, '--ranks', '2',
                          '--steps', '6'], {'RANKTAP_BUILD': str(BUILD)})
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = {row['step'] for row in self.report(run, 'steps', '--ranks', '0', '--limit', '0')}
        ours.remove(max(ours))  # HTA leaves out the last step
        self.assertGreater(len(ours), 3)
        for name, options in (('default', ()), ('compatible', ('--hta-compat',))):
            with self.subTest(name):
                answer = self.hta_of(*sorted(self.export(run, name, *options).iterdir()))
                self.assertEqual(answer['steps'], sorted(f'ProfilerStep#{step}' for step in ours))
                self.assertEqual(answer['iterations'], sorted(ours))

    def test_the_options_are_of_one_format(self):
        done = self._run([RANKTAP, 'export', self.scratch, '--format', 'csv', '--hta-compat', '-o', 'x'], {})
        self.assertNotEqual(done.returncode, 0)


@unittest.skipUnless(HTA_PYTHON.exists(), f'no HTA: {HTA_PYTHON} is missing; scripts/setup --tools')
@unittest.skipUnless(KINETO.exists(), f'no real traces: {KINETO} is missing')
class HtaPatternsTest(TracedTest):
    """`patterns --operator NAME --hta-compat` is HTA's get_frequent_cuda_kernel_sequences."""

    def check(self, name, *operators):
        trace = KINETO / f'{name}.json.gz'
        command = [HTA_PYTHON, PROGRAMS / 'hta_patterns.py', trace, *operators]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        theirs = json.loads(done.stdout.splitlines()[-1])
        self.assertGreater(sum(len(rows) for rows in theirs.values()), 0, 'HTA found nothing: the test tests nothing')
        for operator, rows in theirs.items():
            command = [RANKTAP, 'report', trace, 'patterns', '--operator', operator, '--hta-compat', '--format', 'json']
            ours = self._run(command, {})
            self.assertEqual(ours.returncode, 0, ours.stderr)
            ours = {row['pattern']: row for row in json.loads(ours.stdout)['rows']}
            self.assertEqual(sorted(ours), sorted(row[0] for row in rows), operator)
            for pattern, count, gpu_us, cpu_us in rows:
                row = ours[pattern]
                self.assertEqual(row['count'], count, pattern)
                self.assertAlmostEqual(row['gpu_ns'] / 1e3, gpu_us, delta=1 + RELATIVE * gpu_us, msg=pattern)
                self.assertAlmostEqual(row['cpu_ns'] / 1e3, cpu_us, delta=count + RELATIVE * cpu_us, msg=pattern)

    def test_v100(self):
        self.check('ns-timestamps-rank0', 'aten::conv', 'ConvolutionBackward0')

    def test_a100_with_nccl(self):
        self.check('nccl-metadata', 'aten::', 'autograd::engine', 'no such operator')


if __name__ == '__main__':
    unittest.main()
