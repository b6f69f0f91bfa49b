"""Judgements of scripts/gpu-check about its figures: a healthy GPU passes, and a failed run shifts no others."""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'gpu'))
from check import claims, clients, inside, joins, overhead, report  # noqa: E402
from check.base import Check, finished  # noqa: E402


def export(delays_us, spacing_us=500):
    """A Kineto export: kernels with their launches, so long after them."""
    events = []
    for index, delay in enumerate(delays_us):
        launch = 1000.0 + index * spacing_us
        events.append({'cat': 'cuda_runtime', 'name': 'cudaLaunchKernel', 'ts': launch, 'dur': 1, 'args': {'correlation': index + 1}})
        events.append({'cat': 'kernel', 'name': 'k', 'ts': launch + delay, 'dur': 1, 'args': {'correlation': index + 1}})
    return events


def facts_of(*files):
    with mock.patch.object(joins, 'events_of', return_value=iter(files)):
        return joins.kernel_facts(None, None)


class JoinsTest(unittest.TestCase):
    def test_kernels_that_begin_some_microseconds_before_their_launch_are_a_healthy_gpus(self):
        facts = facts_of(export([3.0, -5.0, 4.0]))
        self.assertTrue(joins.sound(facts))
        self.assertEqual((facts['early'], facts['start_minus_launch_ns']['min']), (1, -5000))

    def test_a_kernel_long_before_its_launch_or_without_one_is_not(self):
        self.assertFalse(joins.sound(facts_of(export([3.0, -25.0]))))
        self.assertFalse(joins.sound(facts_of(export([3.0])[1:])))
        self.assertFalse(joins.sound(facts_of([])), 'no kernels at all')

    def test_a_clock_that_drifts_is_told_from_a_queue_that_grows(self):
        steady = [3.0 if index % 20 == 0 else 300.0 * index / 2000 for index in range(2000)]
        self.assertTrue(joins.steady(facts_of(export(steady))), facts_of(export(steady))['drift_ns'])
        drifting = [3.0 + 0.05 * index for index in range(2000)]
        self.assertFalse(joins.steady(facts_of(export(drifting))))

    def test_kernels_after_the_session_are_counted_from_its_range(self):
        session = {'cat': 'user_annotation', 'name': 'session', 'ts': 900.0, 'dur': 700.0}
        with mock.patch.object(joins, 'events_of', side_effect=lambda *_: iter([[session, *export([3.0] * 3)]])):
            self.assertEqual(joins.kernels_after_session(None, None), 1)


class OverheadTest(unittest.TestCase):
    def test_a_run_that_failed_takes_no_other_rounds_partner(self):
        self.assertEqual(overhead.differences({0: 110.0, 2: 330.0}, {0: 100.0, 1: 200.0, 2: 300.0}), [10.0, 10.0])

    def test_a_goal_inside_the_interval_is_open_and_no_failure(self):
        def cost(percent, half):
            return {'wall': {'percent': percent, 'interval95': half, 'pairs': 40}, 'ns_per_step': 1e6}
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            check = Check(folder, folder, False, 60, [])
            overhead.judge(check, 'gpt2', {'floor': cost(0.5, 0.1), 'kernels': cost(0.7, 0.15),
                                           'torch.profiler CUDA': cost(9.0, 1.0)}, None)
            overhead.judge(check, 'mlp', {'floor': cost(2.0, 0.1), 'kernels': cost(2.5, 0.1)}, 10)
        self.assertEqual([finding['met'] for finding in check.findings], [None, True, True])
        self.assertIn('open', check.findings[0]['text'])
        self.assertIn('500 ns ± 141 a launch', check.findings[2]['text'])


class ClientsTest(unittest.TestCase):
    def test_what_differs_is_named_with_both_counts(self):
        self.assertEqual(clients.different({'a': 1, 'b': 2}, {'b': 3, 'c': 1}), {'a': [1, 0], 'b': [2, 3], 'c': [0, 1]})


class ReportTest(unittest.TestCase):
    def test_each_finding_is_on_disk_at_once(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            check = Check(folder, folder, False, 60, [])
            check.written = report.Report(check, []).write
            check.note('first', None, 'found', path=pathlib.Path('/what JSON cannot say'))
            said = json.loads((pathlib.Path(folder) / 'gpu-check.json').read_text())
        self.assertEqual([finding['name'] for finding in said['findings']], ['first'])

    def test_reports_that_came_back_one_by_one_become_one(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            folders = [pathlib.Path(folder) / name for name in 'ab']
            for number, out in enumerate(folders):
                check = Check(out, folder, False, 60, [])
                check.written = report.Report(check, [f'--only {number}']).write
                check.note('machine', None, f'of {number}')
                check.note(f'overhead {number}', None, 'cheap')
            self.assertTrue(report.join(folders, pathlib.Path(folder) / 'all'))
            self.assertFalse(report.join([pathlib.Path(folder) / 'none'], pathlib.Path(folder) / 'x'))
            said = json.loads((pathlib.Path(folder) / 'all/gpu-check.json').read_text())
        self.assertEqual([finding['text'] for finding in said['findings']], ['cheap', 'of 1', 'cheap'])
        self.assertEqual(len(said['runs']), 2)
        self.assertIn('overhead 1: cheap', next(one['answer'] for one in said['questions'] if one['question'].startswith('2.')))

    def test_what_a_machine_would_not_give_back_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            for number in range(report.MOST_FILES + 1):
                (out / f'{number}.rec.gz').touch()
            (out / 'a b').touch()
            wrong = ' '.join(report.unfit(out))
        self.assertIn('10 files', wrong)
        self.assertIn('a b', wrong)


class ShareTest(unittest.TestCase):
    def test_programs_that_all_hang_take_no_more_than_their_check_has(self):
        """By a clock of its own, which each program moves on by all that it is given."""
        now, spent = [0.0], []

        def hang(command, limit_s, *_):
            now[0] += limit_s
            spent.append(limit_s)
            return subprocess.CompletedProcess(command, 124, '', '')

        with tempfile.TemporaryDirectory() as folder, mock.patch('check.base.finished', hang), \
                mock.patch('check.base.time.monotonic', lambda: now[0]):
            check = Check(folder, folder, False, 100, [])
            with check.share(30):
                for _ in range(50):
                    self.assertEqual(check.run(['any'], limit_s=12).returncode, 124)
            self.assertEqual(sum(spent), 30)
            self.assertEqual(check.left_s(), 70)


class FakeCheck:
    """A machine on which every program says the same, and whose traces say what the test wants."""

    def __init__(self, output, rows=(), notes=()):
        self.done = subprocess.CompletedProcess([], 0, output, '')
        self.report = lambda run, name: list(rows)
        self.notes = lambda run, name: list(notes)
        self.found = {}

    def run(self, command):
        return self.done

    def traced(self, command, *options):
        return self.done, 'run'

    def note(self, name, met, text, **data):
        self.found[name] = (met, data)


class InsideTest(unittest.TestCase):
    ROWS = [{'allocator': 'framework', 'device': 'CPU', 'peak_bytes': 9000}, {'allocator': 'CUDA', 'device': 'GPU 0', 'peak_bytes': 8000},
            {'allocator': 'framework', 'device': 'GPU 0', 'peak_bytes': 700}]

    def peak(self, said, rows):
        check = FakeCheck(json.dumps({'peak_bytes': said, 'used_bytes': 5}), rows)
        inside.memory(check, 'mlp')
        return check.found['PyTorch mlp: peak memory'][0]

    def test_the_peak_is_of_pytorchs_allocator_on_the_gpu(self):
        self.assertTrue(self.peak(700, self.ROWS))
        self.assertFalse(self.peak(701, self.ROWS))
        self.assertFalse(self.peak(700, self.ROWS[:2]), 'a trace without it')

    def test_a_program_that_says_nothing_of_its_memory_is_not_judged(self):
        check = FakeCheck('{}')
        inside.memory(check, 'mlp')
        self.assertIsNone(check.found['PyTorch mlp: peak memory'][0])

    def test_memo_hits_are_read_from_the_note_of_the_stacks(self):
        check = FakeCheck('', notes=['1,480 of 1,600 calls carry a stack; 840 of 1,480 came from the memo, 138 addresses were looked up'])
        inside.memo(check, 'C++', [])
        self.assertEqual(check.found['stack memo, C++'][1], {'hits': 840, 'stacks': 1480})


class ClaimsTest(unittest.TestCase):
    def test_each_claim_of_the_page_names_the_finding_that_proves_it(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / 'docs/measurements/gpu.md').read_text()
        for claim, target, beginning in claims.CLAIMS:
            self.assertIn(f'| {claim} | {target} | `{beginning.strip()}` |', page)

    def test_a_report_says_of_each_claim_what_was_found(self):
        rows = claims.page([{'name': 'clocks', 'met': True, 'text': 'steady', 'data': {}}])
        self.assertIn('clocks: steady (met) |', next(row for row in rows if row.startswith('| the clock')))
        self.assertIn('not asked', next(row for row in rows if row.startswith('| short')))


class RunTest(unittest.TestCase):
    def test_a_grandchild_that_keeps_the_output_open_does_not_keep_us(self):
        done = finished(['sh', '-c', 'echo said; sleep 1000 & sleep 1000'], 0.5, '/', {'PATH': '/usr/bin:/bin'})
        self.assertEqual((done.returncode, done.stdout), (124, 'said\n'))
        self.assertIn('ran past', done.stderr)

    def test_a_program_that_is_not_there_is_an_answer(self):
        self.assertEqual(finished(['/nowhere/nsys'], 1, '/', {}).returncode, 127)


if __name__ == '__main__':
    unittest.main()
