"""Training steps, from the global hooks of torch.optim.

`agent`: agent.pyi; `load`: loader.py.
"""
import sys
import threading
import weakref

guarded = load('guard').guarded


class Optimizers:
    """Those that have stepped, in the order of their first step."""

    MOST_IN_A_ROW = 16  # a critic steps five times for each step of its generator, seldom more

    def __init__(self):
        self._references = []  # weak
        self._last = lambda: None
        self._shared = {}  # {(id, id): whether the two have a parameter in common}, of the living
        self._in_a_row = (None, 0)

    def living(self):
        return [stepped for reference in self._references if (stepped := reference()) is not None]

    def is_last(self, stepped):
        """Whether it ends an iteration: of several the one that came last does.

        An optimizer that comes back, and updates what the last one does, takes its place: two that train
        one model in turn are never in one iteration. So does one that steps alone for long. One that is new
        once another has stepped, and shares nothing with it, is of the same first iteration.
        """
        last = self._last()
        if stepped is last:
            self._in_a_row = (None, 0)
            return True
        living = self.living()
        is_new = not any(known is stepped for known in living)
        if not is_new and last is not None and not self._share(stepped, last) and not self._is_alone(stepped):
            return False
        if is_new:
            self._references = [weakref.ref(known) for known in (*living, stepped)]
            self._shared.clear()  # an id may be that of one that is gone
        goes_on = is_new and last is not None and agent.step_number() == 1 and not self._share(stepped, last)
        self._last, self._in_a_row = weakref.ref(stepped), (None, 0)
        agent.last_optimizer(id(stepped))
        return not goes_on

    def _share(self, stepped, last):
        key = id(stepped), id(last)
        if key not in self._shared:
            self._shared[key] = not self._parameters(stepped).isdisjoint(self._parameters(last))
        return self._shared[key]

    def _parameters(self, optimizer):
        return {id(parameter) for group in optimizer.param_groups for parameter in group['params']}

    def _is_alone(self, stepped):
        before, count = self._in_a_row
        count = count + 1 if before == id(stepped) else 1
        self._in_a_row = id(stepped), count
        return count > self.MOST_IN_A_ROW


class Steps:
    """Numbers the training steps: one ends with the last optimizer of an iteration.

    Accumulation needs no care: its micro-batches run no optimizer. An optimizer that steps several
    times without a forward between (ZeRO and Megatron step theirs group by group) ends one step. Of
    several optimizers the one that came last ends it (Optimizers.is_last). Of the first iteration the first one
    does, as nobody knows the others yet: what follows is a part of step 1.
    """

    def __init__(self, process, modules, optimizers, on_step, on_first_optimizer, before_optimizer,
                 plain_steps):
        """on_step: called, in this order, with the number of the step that begins. plain_steps: says of it
        what agent.plain_steps() takes."""
        self._process, self._modules, self._optimizers = process, modules, optimizers
        self._on_step = [guarded(listener) for listener in on_step]
        self._on_first_optimizer = guarded(on_first_optimizer)
        self._before_optimizer = guarded(before_optimizer)
        self._plain_steps = guarded(lambda number: agent.plain_steps(*plain_steps(number)))
        self._lock = threading.Lock()
        self._has_stepped = False
        self._is_regular = True  # each step of the last optimizer has a forward before it

    def install(self, torch):
        # torch.optim hides its own submodule.
        optimizer = sys.modules[torch.optim.Optimizer.__module__]
        if not hasattr(optimizer, 'register_optimizer_step_pre_hook'):
            agent.note('this PyTorch (before 2.0) has no global optimizer hooks: no steps')
            return
        before, after = guarded(self._before), guarded(self._after)
        if agent.on_steps(before, after):
            before, after = agent.before_step, agent.after_step
        else:
            before, after = (lambda stepped, *_, call=call: call(stepped) for call in (before, after))
        optimizer.register_optimizer_step_pre_hook(before)
        optimizer.register_optimizer_step_post_hook(after)

    def begin(self):
        """The first step starts with the first thing that is seen."""
        self._phase = self._process.domains[agent.PHASE_DOMAIN]
        self._optimizer = agent.name(agent.OPTIMIZER_PHASE)
        agent.begin_steps(self._process.domains[agent.STEP_DOMAIN], agent.name(agent.STEP_RANGE), self._phase,
                          self._optimizer)
        agent.open_step(0)

    def _before(self, _):
        if self._process.state or self._process.records():
            if not self._has_stepped:
                self._has_stepped = True
                self._on_first_optimizer()
            self._before_optimizer()
            agent.push(self._phase, self._optimizer)

    def _after(self, stepped):
        if not self._process.state and not self._process.records():
            return
        agent.pop(self._phase)
        if not self._optimizers.is_last(stepped):
            return
        if agent.ends_step():
            self._next()
        else:
            self._is_regular = False
        if agent.capturing():
            self._modules.wake()
        elif self._is_regular:
            self._modules.sleep()

    def _next(self):
        with self._lock:
            number = agent.close_step() + 1 + agent.skipped_steps()
            for listener in self._on_step:
                listener(number)
            agent.open_step(number)
            if agent.capturing() and self._is_regular:
                self._plain_steps(number)
