"""process.py, guard.py, lines.py and the parts of operators.py that need no PyTorch."""
import gc
import json
import sys
import types
import unittest
from unittest import mock

from fake_agent import Agent, Sources


class ProcessTest(unittest.TestCase):
    def make(self, **answers):
        self.agent = Agent(record_labels=1, **answers)
        self.process = Sources(self.agent).load('process').Process()

    def modules(self, **modules):
        names = {name.replace('__', '.'): module for name, module in modules.items()}
        patched = mock.patch.dict(sys.modules, names)
        patched.start()
        self.addCleanup(patched.stop)

    def test_a_worker_of_a_data_loader_never_starts_the_agent(self):
        self.make()
        self.modules(torch__utils__data=types.SimpleNamespace(get_worker_info=lambda: object()))
        self.assertFalse(self.process.records())
        self.assertEqual(self.agent.told, [])

    def test_the_agent_is_asked_once(self):
        for answer in (0, 1):
            self.make(start=answer)
            self.assertEqual([self.process.records() for _ in range(3)], [answer == 1] * 3)
            self.assertEqual(len(self.agent.calls('start')), 1)

    def test_where_recording_begins_those_who_wait_are_called_in_order_and_a_failure_stops_none(self):
        self.make()
        seen = []
        self.process.on_start += [lambda: seen.append(1), lambda: 1 / 0, lambda: seen.append(2)]
        self.process.records()
        self.assertEqual(seen, [1, 2])
        self.assertEqual(len(self.agent.calls('contained')), 1)

    def test_a_note_waits_until_there_is_a_trace(self):
        self.make()
        self.process.note('early')
        self.assertEqual(self.agent.calls('note'), [])
        self.process.records()
        self.process.note('late')
        self.assertEqual(self.agent.calls('note'), [('note', 'early'), ('note', 'late')])

    def test_the_rank_is_told_once_torch_distributed_knows_it(self):
        self.make()
        distributed = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: False,
                                            get_rank=lambda: 3, get_world_size=lambda: 8)
        self.modules(torch__distributed=distributed)
        self.process.learn_rank()
        self.assertEqual(self.agent.calls('tell_rank'), [])
        distributed.is_initialized = lambda: True
        self.process.learn_rank()
        self.process.learn_rank()
        self.assertEqual(self.agent.calls('tell_rank'), [('tell_rank', 3, 8)])


class GuardTest(unittest.TestCase):
    def setUp(self):
        self.agent = Agent()
        self.guarded = Sources(self.agent).load('guard').guarded

    def test_an_exception_of_ours_is_counted_with_its_function(self):
        def looks(_):
            raise KeyError('x')

        self.assertIsNone(self.guarded(looks)(1))
        self.assertRegex(self.agent.calls('contained')[0][1], r"looks: KeyError\('x'\)")

    def test_what_ends_the_program_ends_it(self):
        for ending in (KeyboardInterrupt, SystemExit):
            with self.assertRaises(ending):
                self.guarded(mock.Mock(side_effect=ending))()
        self.assertEqual(self.agent.told, [])


class LinesTest(unittest.TestCase):
    def send(self, rows):
        agent = Agent()
        lines = Sources(agent).load('lines')
        lines.send(5, 6, rows)
        marks = agent.calls('mark')
        self.assertTrue(all(mark[:3] == ('mark', 5, 6) and len(mark[3]) <= lines.MARK_BYTES for mark in marks))
        return [mark[3] for mark in marks]

    def test_no_rows_are_no_mark(self):
        self.assertEqual(self.send([]), [])

    def test_rows_share_marks_and_come_back_in_order(self):
        rows = [[number, 'x' * 1000] for number in range(200)]
        marks = self.send(iter(rows))
        self.assertEqual(len(marks), 4)
        self.assertEqual([json.loads(line) for mark in marks for line in mark.split(b'\n')], rows)

    def test_a_row_that_no_mark_holds_is_cut(self):
        self.assertEqual([len(mark) for mark in self.send([['x' * 70_000]])], [56_000])


class OperatorsTest(unittest.TestCase):
    def setUp(self):
        self.agent = Agent()
        self.operators = Sources(self.agent).load('operators')

    def test_a_program_that_looks_at_operators_itself_is_not_probed(self):
        for stack in ('_len_torch_dispatch_stack', '_len_torch_function_stack'):
            torch = types.SimpleNamespace(_C=types.SimpleNamespace(**{stack: lambda: 1}))
            self.assertFalse(self.operators.can_observe(torch))
        self.assertEqual(self.agent.told, [])

    def own_callback(self, enabled):
        profiler = {'enabled': enabled}
        torch = types.SimpleNamespace(autograd=types.SimpleNamespace(_profiler_enabled=lambda: profiler['enabled']))
        return profiler, self.operators.OwnCallback(torch)

    def test_nothing_is_probed_while_another_profiler_is_on(self):
        self.operators.can_observe = mock.Mock(return_value=True)
        profiler, callback = self.own_callback(True)
        self.assertFalse(callback.works())
        self.operators.can_observe.assert_not_called()
        profiler['enabled'] = False
        self.assertTrue(callback.works() and callback.works())
        self.operators.can_observe.assert_called_once()

    def test_a_probe_that_raises_means_no_and_is_noted(self):
        self.operators.can_observe = mock.Mock(side_effect=RuntimeError('new'))
        _, callback = self.own_callback(False)
        self.assertFalse(callback.works())
        self.assertFalse(callback.works())
        self.assertEqual(len(self.agent.calls('note')), 1)

    def test_tensors_are_probed_with_the_eight_numbers_that_the_agent_wants(self):
        def tensor(cdata, data):
            storage = types.SimpleNamespace(_cdata=cdata + 1, data_ptr=lambda: data)
            return types.SimpleNamespace(_cdata=cdata, untyped_storage=lambda: storage)

        torch = types.SimpleNamespace(frombuffer=lambda *_, **__: tensor(30, 0xb), float32=None)
        self.operators.probe_tensors(torch, [tensor(10, 0xa), tensor(20, 0xc)])
        self.assertEqual(self.agent.told, [('probed_tensors', 10, 20, 10, 11, 0xa, 30, 31, 0xb)])

    def test_a_pytorch_without_untyped_storages_has_operators_without_tensors(self):
        torch = types.SimpleNamespace(frombuffer=lambda *_, **__: object(), float32=None)
        self.assertEqual(self.operators.probe_tensors(torch, [object(), object()]), ())
        self.assertEqual(self.agent.told, [])

    def test_the_garbage_collector_is_left_as_it_was(self):
        for enabled in (True, False):
            (gc.enable if enabled else gc.disable)()
            try:
                with self.operators.CollectorPaused():
                    self.assertFalse(gc.isenabled())
                self.assertEqual(gc.isenabled(), enabled)
            finally:
                gc.enable()


if __name__ == '__main__':
    unittest.main()
