"""steps.py, schedule.py, phases.py: when a step ends, which are recorded, what has a range."""
import sys
import types
import unittest
from unittest import mock

from fake_agent import Agent, Sources


class Optimizer:
    """What a program's optimizer is to us: something that can be referenced weakly and has parameters."""

    def __init__(self, *parameters):
        self.param_groups = [{'params': list(parameters)}]


class Process:
    def __init__(self, agent, records=True):
        self.state = records
        self.domains = {name: agent.domain(name) for name in (agent.PHASE_DOMAIN, agent.STEP_DOMAIN)}

    def records(self):
        return self.state


class StepsTest(unittest.TestCase):
    def make(self, records=True, on_step=(), **answers):
        self.closed = 0
        self.agent = Agent(**{'ends_step': 1, 'close_step': self._close, 'step_number': lambda: self.closed, **answers})
        sources = Sources(self.agent)
        module = sources.load('steps')
        self.modules = mock.Mock()
        self.first, self.before = mock.Mock(), mock.Mock()
        self.steps = module.Steps(Process(self.agent, records), self.modules, module.Optimizers(), on_step, self.first,
                                  self.before, lambda number: (number + 8, {}, None, {}))
        self.steps.begin()
        self.agent.told.clear()

    def _close(self):
        self.closed += 1
        return self.closed - 1

    def step(self, *optimizers):
        for optimizer in optimizers:
            self.steps._before(optimizer)
            self.steps._after(optimizer)

    def opened(self):
        return [number for _, number in self.agent.calls('open_step')]

    def test_a_step_of_the_only_optimizer_ends_a_step(self):
        self.make()
        optimizer = Optimizer()
        self.step(optimizer)
        self.step(optimizer)
        self.assertEqual(self.opened(), [1, 2])

    def test_of_two_optimizers_the_one_that_came_last_ends_the_step(self):
        self.make()
        generator, critic = Optimizer(), Optimizer()
        self.step(generator, critic)  # the critic's first step is a part of step 1
        self.assertEqual(self.opened(), [1])
        self.step(generator)
        self.assertEqual(self.opened(), [1])
        self.step(critic)
        self.assertEqual(self.opened(), [1, 2])

    def test_three_optimizers_make_as_many_steps_as_iterations(self):
        self.make()
        three = [Optimizer(object()) for _ in range(3)]
        for _ in range(10):
            self.step(*three)
        self.assertEqual(self.opened(), list(range(1, 11)))

    def test_an_optimizer_of_another_model_that_comes_after_some_steps_begins_with_one(self):
        self.make()
        self.step(*[Optimizer(object())] * 5)
        self.step(*[Optimizer(object())] * 5)
        self.assertEqual(self.opened(), list(range(1, 11)))

    def test_optimizers_that_train_one_model_in_turn_lose_no_step(self):
        self.make()
        weight, bias = object(), object()
        first, second = Optimizer(weight, bias), Optimizer(weight)
        for optimizer in (first, second, first, second):
            self.step(*[optimizer] * 10)
        self.assertEqual(self.opened(), list(range(1, 41)))

    def test_optimizers_made_anew_one_after_the_other_lose_no_step(self):
        self.make()
        weight = object()
        for _ in range(4):
            self.step(*[Optimizer(weight)] * 8)  # the next one may have the address of the last
        self.step(*[Optimizer(weight)] * 20)
        self.assertEqual(self.opened(), list(range(1, 53)))

    def test_a_critic_that_steps_five_times_for_each_step_of_its_generator_ends_none(self):
        self.make()
        critic, generator = Optimizer(object()), Optimizer(object())
        self.step(critic, generator)
        for _ in range(10):
            self.step(*[critic] * 5, generator)
        self.assertEqual(self.opened(), list(range(1, 12)))

    def test_an_optimizer_that_goes_on_alone_ends_steps_again(self):
        self.make()
        head, body = Optimizer(object()), Optimizer(object())
        self.step(head, body)
        self.step(*[head] * 20)
        self.assertEqual(self.opened(), [1, 2, 3, 4, 5])

    def test_an_optimizer_without_a_forward_before_it_ends_no_step(self):
        self.make(ends_step=0)
        self.step(Optimizer())
        self.assertEqual(self.opened(), [])

    def test_steps_that_the_agent_took_alone_are_counted(self):
        self.make(skipped_steps=5)
        self.step(Optimizer())
        self.assertEqual(self.opened(), [6])

    def test_a_process_that_does_not_record_is_told_nothing(self):
        self.make(records=False)
        self.step(Optimizer())
        self.assertEqual(self.agent.told, [])

    def test_the_optimizers_work_is_a_range_of_its_phase(self):
        self.make()
        self.step(Optimizer())
        phase, name = self.agent.texts[self.agent.PHASE_DOMAIN], self.agent.texts['optimizer']
        self.assertEqual(self.agent.calls('push', 'pop'), [('push', phase, name), ('pop', phase)])

    def test_a_listener_that_raises_is_counted_and_the_others_are_called(self):
        seen = []

        def fails(_):
            raise RuntimeError('ours')

        self.make(on_step=[fails, seen.append])
        self.step(Optimizer())
        self.assertEqual(seen, [1])
        self.assertEqual(self.opened(), [1])
        self.assertEqual(len(self.agent.calls('contained')), 1)
        self.assertIn("RuntimeError('ours')", self.agent.calls('contained')[0][1])

    def test_modules_sleep_while_nothing_is_captured_and_wake_afterwards(self):
        self.make(capturing=0)
        optimizer = Optimizer()
        self.step(optimizer)
        self.modules.sleep.assert_called_once()
        self.agent.answers['capturing'] = 1
        self.step(optimizer)
        self.modules.wake.assert_called_once()

    def test_modules_do_not_sleep_once_an_optimizer_stepped_without_a_forward(self):
        self.make(capturing=0, ends_step=0)
        self.step(Optimizer())
        self.modules.sleep.assert_not_called()

    def test_plain_steps_are_left_to_the_agent_only_while_it_captures(self):
        self.make()
        self.step(Optimizer())
        self.assertEqual(self.agent.calls('plain_steps'), [('plain_steps', 9, {}, None, {})])
        self.make(capturing=0)
        self.step(Optimizer())
        self.assertEqual(self.agent.calls('plain_steps'), [])

    def test_the_first_optimizer_is_announced_once(self):
        self.make()
        optimizer = Optimizer()
        self.step(optimizer, optimizer)
        self.first.assert_called_once()
        self.assertEqual(self.before.call_count, 2)

    def install(self, **hooks):
        optim = types.ModuleType('made_up.optim')
        optimizer = type('Optimizer', (), {'__module__': 'made_up.optim'})
        vars(optim).update(hooks)
        with mock.patch.dict(sys.modules, {'made_up.optim': optim}):
            self.steps.install(types.SimpleNamespace(optim=types.SimpleNamespace(Optimizer=optimizer)))

    def test_a_pytorch_without_global_hooks_has_a_note_instead_of_steps(self):
        self.make()
        self.install()
        self.assertEqual([name for name, *_ in self.agent.told], ['note'])

    def test_the_agents_own_hooks_are_taken_where_it_has_them(self):
        for has_own in (1, 0):
            self.make(on_steps=has_own)
            hooks = []
            self.install(register_optimizer_step_pre_hook=hooks.append, register_optimizer_step_post_hook=hooks.append)
            for hook in hooks:
                hook(Optimizer(), (), {})
            self.assertEqual(len(self.agent.calls('before_step', 'after_step')), 2 * has_own)
            self.assertEqual(self.opened(), [] if has_own else [1])


class ScheduleTest(unittest.TestCase):
    def setUp(self):
        self.module = Sources(Agent()).load('schedule')

    def actions(self, text, steps):
        schedule = self.module.Schedule.parse(text)
        return ''.join('.wrS'[schedule.action(step)] for step in range(steps))

    def test_without_a_text_distances_double_up_to_one_in_a_hundred(self):
        spread = self.module.Spread(2)
        self.assertEqual([step for step in range(450) if spread.records(step)], [2, 10, 26, 58, 122, 222, 322, 422])
        self.assertTrue(self.module.Spread(0).records(0))

    def test_a_cycle_is_wait_warmup_active_and_the_last_of_it_saves(self):
        self.assertEqual(self.actions('wait=1,warmup=1,active=2', 9), '.wrS.wrS.')

    def test_repeat_bounds_the_cycles_and_zero_does_not(self):
        self.assertEqual(self.actions('active=1,wait=1,repeat=2', 8), '.S.S....')
        self.assertEqual(self.actions('active=1,wait=1,repeat=0', 8), '.S.S.S.S')

    def test_skip_first_delays_and_skip_first_wait_drops_the_first_wait(self):
        self.assertEqual(self.actions('skip-first=2,wait=2,active=1', 9), '....S..S.')
        self.assertEqual(self.actions('skip_first=2,wait=2,active=1,skip_first_wait=1', 9), '..S..S..S')

    def test_a_text_that_is_no_schedule_is_refused_with_the_part_that_is_wrong(self):
        for text, wrong in (('wait', "'wait'"), ('wait=x', "'wait=x'"), ('often=1', "'often=1'"), ('wait=-1', "'wait=-1'")):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, wrong):
                self.module.Schedule.parse(text)
        with self.assertRaisesRegex(ValueError, 'active is at least 1'):
            self.module.Schedule.parse('active=0')


class Tensor:
    def __init__(self, grad_fn=None):
        self.grad_fn = grad_fn


class PhasesTest(unittest.TestCase):
    def setUp(self):
        self.agent = Agent()
        self.phases = Sources(self.agent).load('phases')
        self.process = Process(self.agent)
        self.phase = self.agent.texts[self.agent.PHASE_DOMAIN]
        self.engine = mock.Mock()
        self.torch = types.SimpleNamespace(Tensor=Tensor, autograd=types.SimpleNamespace(
            Variable=types.SimpleNamespace(_execution_engine=self.engine)))

    def backward(self):
        backward = self.phases.Backward(self.torch, self.process)
        backward.begin()
        return backward

    def test_what_runs_autograds_engine_is_replaced_where_this_pytorch_has_its_name(self):
        self.torch.autograd._engine_run_backward = original = object()
        ours = object()
        self.agent.answers['backward_call'] = lambda *_: ours
        backward = self.backward()
        self.assertIs(self.torch.autograd._engine_run_backward, ours)
        self.assertIs(self.agent.calls('backward_call')[0][1], original)
        node = mock.Mock()
        backward.watch(Tensor(node))
        node.register_prehook.assert_not_called()

    def test_without_it_the_range_reaches_from_the_first_node_to_the_end_of_the_engines_work(self):
        self.agent.answers['open'] = 77
        node = mock.Mock()
        self.backward().watch({'loss': [None, Tensor(node)]})
        hook = node.register_prehook.call_args[0][0]
        hook(None)
        hook(None)  # of another output of the same backward
        self.assertEqual(self.agent.calls('open', 'close'), [('open', self.phase, self.agent.texts['backward'], 0)])
        self.engine.queue_callback.call_args[0][0]()
        self.assertEqual(self.agent.calls('close'), [('close', 77)])

    def test_an_output_without_a_graph_has_no_hook(self):
        self.backward().watch([Tensor(), 3, [[[Tensor(mock.Mock())]]]])  # too deep to be looked for
        self.assertEqual(self.agent.calls('open', 'contained'), [])

    def data(self, **members):
        class Iterator:
            def __init__(self):
                vars(self).update(members)

            def __next__(self):
                raise StopIteration

        module = types.SimpleNamespace(_BaseDataLoaderIter=Iterator)
        with mock.patch.dict(sys.modules, {'torch.utils.data.dataloader': module}):
            self.phases.Data(self.process).begin()
        return Iterator()

    def test_waiting_for_a_batch_is_a_range_that_ends_also_where_the_loader_does(self):
        with self.assertRaises(StopIteration):
            next(self.data())
        self.assertEqual(self.agent.calls('push', 'pop'),
                         [('push', self.phase, self.agent.texts['data'], 0), ('pop', self.phase)])

    def test_it_tells_how_many_batches_the_workers_have_ready(self):
        early = {0: (0,), 1: (1, 'a batch that came before its turn'), 2: (0,)}
        for queue, ready in ((types.SimpleNamespace(qsize=lambda: 2), 3), (types.SimpleNamespace(queue=[1]), 2)):
            with self.assertRaises(StopIteration):
                next(self.data(_task_info=early, _data_queue=queue))
            self.assertEqual(self.agent.calls('push')[-1][-1], 1 + ready)
        self.assertEqual(self.agent.calls('contained'), [])

    def test_a_process_that_does_not_record_only_has_its_batches(self):
        self.process.state = None
        with self.assertRaises(StopIteration):
            next(self.data())
        self.assertEqual(self.agent.calls('push', 'pop'), [])


class WindowsTest(unittest.TestCase):
    """In which steps operators are recorded, `capturing` from some step on."""

    def recorded(self, schedule, captured, steps=12, cost_of_a_step=10, cost_of_the_first=0):
        """By a clock by which a step takes 1,000, and what a recorded one takes more."""
        number = clock = 0
        agent = Agent(config=lambda: {'schedule': schedule, 'flop_check': 0}, capturing=lambda: int(number in captured),
                      now=lambda: clock)
        sources = Sources(agent)
        opened = []

        def open_window():
            nonlocal clock
            clock += 0 if opened else cost_of_the_first
            opened.append(number)

        window = mock.Mock(is_open=False, open=open_window)
        sources._loaded['operators'] = mock.Mock(Window=lambda *_: window)
        sources._loaded['memory'] = mock.Mock()
        windows = sources.load('windows').Windows(mock.Mock(), mock.Mock(domains=mock.MagicMock()), mock.Mock(), mock.Mock())
        windows.begin()
        for number in range(1, steps):
            clock += 1000 + cost_of_a_step * (number - 1 in opened)
            windows.on_step(number)
        return opened

    def test_a_run_records_its_third_step_and_a_live_window_its_first(self):
        self.assertEqual(self.recorded('', range(10), 10), [2])
        self.assertEqual(self.recorded('', range(5, 12)), [5])
        self.assertEqual(self.recorded('', [*range(4), *range(7, 12)]), [2, 7])

    def test_later_steps_are_recorded_while_recording_takes_at_most_half_a_percent_of_the_time(self):
        steps = {'captured': range(400), 'steps': 400}
        self.assertEqual(self.recorded('', cost_of_a_step=20, **steps), [2, 10, 26, 58, 122, 222, 322])
        self.assertEqual(self.recorded('', cost_of_a_step=30, **steps), [2, 26, 58, 122, 222, 322])
        self.assertEqual(self.recorded('', cost_of_a_step=250, **steps), [2, 122, 222, 322])
        self.assertEqual(self.recorded('', cost_of_a_step=2000, **steps), [2])
        # It finds its way in this PyTorch once, which later ones do not cost.
        self.assertEqual(self.recorded('', cost_of_the_first=100_000, **steps), [2, 10, 26, 58, 122, 222, 322])
        self.assertEqual(self.recorded('', range(5, 40), 40), [5, 13, 29])

    def test_a_schedule_that_the_user_wrote_counts_from_the_window(self):
        self.assertEqual(self.recorded('wait=1,active=2,repeat=1', range(5, 12)), [6, 7])


if __name__ == '__main__':
    unittest.main()
