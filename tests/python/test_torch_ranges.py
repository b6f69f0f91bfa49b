"""PyTorch programs with NVTX ranges, unmodified, on the CPU."""
import unittest

import harness

STEPS = 5


@harness.needs_torch
class GlooRangesTest(harness.TracedTest):
    """Four ranks by torchrun over gloo."""

    def setUp(self):
        super().setUp()
        self.command = [harness.TORCH_PYTHON.parent / 'torchrun', '--nproc-per-node=4',
                        harness.PROGRAMS / 'gloo_ranges.py']
        # Without it torchrun warns with the time and its pid on stderr.
        self.environment = {'OMP_NUM_THREADS': '1'}

    def test_every_rank_has_every_range_and_the_program_notices_nothing(self):
        bare = self.run_bare(self.command, **self.environment)
        self.assertEqual(bare.returncode, 0, bare.stderr)
        traced, run = self.run_traced(self.command, **self.environment)

        self.assert_same_to_the_user(bare, traced)
        self.assert_verifies(run)
        ranks = self.report(run, 'ranks')
        self.assertEqual([row['rank'] for row in ranks], [0, 1, 2, 3])
        for row in ranks:
            self.assertEqual(row['rank_origin'], 'RANK')
            self.assertEqual(row['loaded_by'], 'preload')
            self.assertEqual(row['lost'], 0)
            ranges = {found['name']: found['calls']
                      for found in self.report(run / row['file'], 'ranges')}
            expected = {f'step_{step}': 1 for step in range(STEPS)}
            expected.update({'forward': STEPS, 'backward': STEPS, 'all_reduce': STEPS})
            self.assertEqual(ranges, expected)

    def test_torchrun_itself_leaves_no_trace(self):
        _, run = self.run_traced(self.command, **self.environment)
        self.assertEqual(len(list(run.glob('*.trace'))), 4)

    def test_the_bare_door_gives_the_same_ranges(self):
        traced, run = self.run_traced(self.command, ['--no-preload'], **self.environment)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        ranks = self.report(run, 'ranks')
        self.assertEqual([row['ranges'] for row in ranks], [STEPS * 4] * 4)
        self.assertEqual({row['loaded_by'] for row in ranks}, {'environment'})

    def test_a_failing_rank_fails_the_job_as_without_ranktap(self):
        bare = self.run_bare(self.command, FAIL_RANK='2', **self.environment)
        traced, _ = self.run_traced(self.command, FAIL_RANK='2', **self.environment)
        self.assertNotEqual(bare.returncode, 0)
        self.assertEqual(traced.returncode, bare.returncode)


@harness.needs_torch
class LabelsTest(harness.TracedTest):
    """record_function, wherever it is."""
    PROGRAM = '''
import ctypes
import pathlib
import time
import torch
from torch.profiler import ProfilerActivity, profile, record_function
has_callbacks = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / 'lib/libtorch_cpu.so'))['_ZN2at12hasCallbacksEv']
has_callbacks.restype = ctypes.c_bool
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
begin = time.monotonic_ns()
with record_function('first epoch, before anything is known to record'):
    for _ in range(5):
        with record_function('step'):
            step()
print(time.monotonic_ns() - begin)
with profile(activities=[ProfilerActivity.CPU]):
    with record_function('profiled'):
        step()
with record_function('after'):
    try:
        with record_function('raises'):
            raise ValueError
    except ValueError:
        pass
try:
    record_function(7).__enter__()  # PyTorch wants a text
except RuntimeError:
    pass
@record_function('decorated')
def decorated():
    pass
class Label(record_function):
    pass
with Label('of a subclass'):
    decorated()
def nested(depth):
    with record_function('nested'):
        if depth > 1:
            nested(depth - 1)
nested(40)
by_hand = record_function('by hand')
by_hand.__enter__()
by_hand.__exit__(None, None, None)
print(has_callbacks())
def scripted(x: torch.Tensor):
    with torch.autograd.profiler.record_function('scripted'):
        return x + 1
with record_function('around a compilation'):
    scripted = torch.jit.script(scripted)
scripted(torch.ones(3))
with record_function('after a compilation'):
    pass
'''

    def test_every_label_is_a_range_once_in_windows_and_outside_and_beside_the_programs_profiler(self):
        program = self.scratch / 'labels.py'  # TorchScript reads it
        program.write_text(self.PROGRAM)
        traced, run = self.run_traced([harness.TORCH_PYTHON, program], ['--level', 'full'])
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assert_verifies(run)
        rows = {row['name']: row for row in self.report(run, 'ranges') if row['domain'] == 'record_function'}
        calls = {name: row['calls'] for name, row in rows.items() if not name.startswith('Optimizer.')}
        first = 'first epoch, before anything is known to record'
        self.assertEqual(calls, {first: 1, 'step': 5, 'profiled': 1, 'after': 1, 'raises': 1, 'decorated': 1,
                                 'of a subclass': 1, 'nested': 40, 'by hand': 1, 'around a compilation': 1, 'scripted': 1,
                                 'after a compilation': 1})
        self.assertEqual([row['unfinished'] for row in rows.values()], [0] * len(rows))
        took, has_callbacks = traced.stdout.split()
        self.assertLessEqual(rows[first]['total_ns'], int(took))
        self.assertGreater(rows[first]['total_ns'], 0.9 * int(took))
        # One would take 0.11 us of each node of the backward pass.
        self.assertEqual(has_callbacks, 'False')


class NcclTest(harness.TracedTest):
    """The real libnccl, as far as it goes without a GPU."""

    def test_the_domain_and_the_payloads_arrive(self):
        program = harness.BUILD / 'workloads/nccl_init'
        if not program.exists():
            self.skipTest(f'{program} was not built: no NCCL in the CUDA toolkit')
        bare = self.run_bare([program])
        traced, run = self.run_traced([program])
        self.assert_same_to_the_user(bare, traced)
        ranges = [row for row in self.report(run, 'ranges') if row['domain'] == 'NCCL']
        self.assertIn('ncclCommInitRank', [row['name'] for row in ranges])


if __name__ == '__main__':
    unittest.main()
