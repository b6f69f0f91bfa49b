"""Steps, modules and phases of a PyTorch program, from torch's own global hooks.

Every hook is a ladder of cheap exits; what can fail is in `guarded` functions. The program's modules
are never written to: what we know about one is kept by its id, and goes when it goes.
"""
import atexit
import os
import sys
import threading
import weakref

MODULE, STEP, PHASE, OPERATOR, MEMORY, COMM = DOMAINS = (
    'ranktap.module', 'ranktap.step', 'ranktap.phase', 'ranktap.op', 'ranktap.memory', 'ranktap.comm')


def guarded(function):
    """Failures of ours end here; KeyboardInterrupt and SystemExit are the program's."""

    def call(*arguments):
        try:
            return function(*arguments)
        except Exception as failure:
            agent.contained(f'{getattr(function, "__qualname__", function)}: {failure!r}')
            return None

    return call


class Process:
    """Whether this process records: settled at the first forward or optimizer step, since launchers
    and DataLoader workers import torch too and must leave no trace."""

    def __init__(self, torch):
        self._torch = torch
        self.state = None  # None: not settled; else whether we record
        self._knows_rank = False
        self.on_start = []

    def records(self):
        if self.state is None:
            worker = sys.modules.get('torch.utils.data')
            is_worker = worker is not None and worker.get_worker_info() is not None
            self.state = not is_worker and agent.start() == 1
            if self.state:
                self.domains = {name: agent.domain(name) for name in DOMAINS}
                agent.set_module_domain(self.domains[MODULE])
                agent.refresh_rank()
                self.learn_rank()
                for begin in self.on_start:
                    begin()
        return self.state

    @guarded
    def learn_rank(self, *_):
        """mp.spawn hands the rank to a function: no variable has it, torch.distributed does."""
        if self._knows_rank:
            return
        distributed = sys.modules.get('torch.distributed')
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            agent.tell_rank(distributed.get_rank(), distributed.get_world_size())
            self._knows_rank = True


class Steps:
    """Numbers the training steps: one ends with the last optimizer of an iteration.

    Accumulation needs no care: its micro-batches run no optimizer. An optimizer that steps several
    times without a forward between (ZeRO and Megatron step theirs group by group) ends one step. Of
    several optimizers the one that came last ends it, so the first iteration of a program with k
    optimizers counts as k steps.
    """

    def __init__(self, process):
        self._process = process
        process.on_start.append(self.begin)
        self._lock = threading.Lock()
        self._known = []       # ids of optimizers, in the order of their first step
        self._references = []  # to them, weak
        self.number = 0
        self._range = None
        self.listeners = []  # called with the number of the step that begins
        self.before_optimizer = []
        self.modules = None
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

    def optimizers(self):
        return [stepped for reference in self._references if (stepped := reference()) is not None]

    def begin(self):
        """The first step starts with the first thing that is seen."""
        domain = self._process.domains[STEP]
        self._name = agent.name('step')
        self._phase, self._optimizer = self._process.domains[PHASE], agent.name('optimizer')
        self._range = agent.open(domain, self._name, self.number)

    def _before(self, _):
        if self._process.state or self._process.records():
            for listener in self.before_optimizer:
                listener()
            agent.push(self._phase, self._optimizer)

    def _after(self, stepped):
        if not self._process.state and not self._process.records():
            return
        agent.pop(self._phase)
        key = id(stepped)
        if key not in self._known:
            self._known.append(key)
            self._references.append(weakref.ref(stepped))
            agent.last_optimizer(key)
        elif key != self._known[-1]:
            return
        if agent.ends_step():
            self._next()
        else:
            self._is_regular = False
        if agent.capturing():
            self.modules.wake()
        elif self._is_regular:
            self.modules.sleep()

    def _next(self):
        with self._lock:
            agent.close(self._range)
            self.number += 1 + agent.skipped_steps()
            for listener in self.listeners:
                listener(self.number)
            self._range = agent.open(self._process.domains[STEP], self._name, self.number)


class Trees:
    """Tells once what each root module is made of, after the first step that it ran in, when there are
    gradients and optimizer states."""

    def __init__(self, process, modules, steps):
        self._process, self._modules, self._steps = process, modules, steps
        self._told = set()  # ids of roots
        self._looked_at = 0  # how many of the roots
        steps.listeners.append(guarded(self._tell))

    def _tell(self, number):
        roots = self._modules.roots
        if len(roots) == self._looked_at or not agent.capturing():
            return
        self._looked_at = len(roots)
        states = {}
        for optimizer in self._steps.optimizers():
            states.update(optimizer.state)
        for reference in roots:
            root = reference()
            if root is None or id(root) in self._told or next(root.parameters(), None) is None:
                continue
            self._told.add(id(root))
            text = self._modules.texts.get(id(root), type(root).__name__)
            tree = load('model_tree')
            tree.send(self._process.domains[MODULE], agent.name('tree'), tree.rows_of(root, text, states))


class Backward:
    """The backward pass, from the gradient of a root module's output to the end of autograd's work."""

    def __init__(self, torch, process):
        self._engine = torch.autograd.Variable._execution_engine
        self._process = process
        self._tensor = torch.Tensor
        self._range = None
        self._on_begin, self._on_end = guarded(self._begin), guarded(self._end)
        process.on_start.append(self._learn_name)

    def _learn_name(self):
        self._phase, self._name = self._process.domains[PHASE], agent.name('backward')

    def watch(self, output):
        node = self._node_of(output)
        if node is not None and hasattr(node, 'register_prehook'):
            node.register_prehook(self._on_begin)

    def _node_of(self, output, depth=2):
        if isinstance(output, self._tensor):
            return output.grad_fn
        if isinstance(output, dict):
            output = list(output.values())
        if depth and isinstance(output, (tuple, list)):
            for part in output:
                node = self._node_of(part, depth - 1)
                if node is not None:
                    return node
        return None

    def _begin(self, _):
        if self._range is None:
            self._engine.queue_callback(self._on_end)
            self._range = agent.open(self._phase, self._name, 0)

    def _end(self):
        ended, self._range = self._range, None
        if ended is not None:
            agent.close(ended)


class Data:
    """Waiting for the next batch."""

    def __init__(self, process):
        self._process = process

    def install(self):
        loader = sys.modules.get('torch.utils.data.dataloader')
        iterator = getattr(loader, '_BaseDataLoaderIter', None)
        if iterator is None:
            return
        process, original = self._process, iterator.__next__

        def __next__(self):
            if not process.state:
                return original(self)
            agent.push(process.domains[PHASE], agent.name('data'))
            try:
                return original(self)
            finally:
                agent.pop(process.domains[PHASE])

        iterator.__next__ = __next__


class Windows:
    """Opens and closes the window of operators and memory at step boundaries, by the schedule."""

    def __init__(self, torch, process, modules, steps):
        self._torch, self._process = torch, process
        self._modules, self._steps = modules, steps
        self._schedule = load('schedule').Schedule.parse(os.environ.get('RANKTAP_SCHEDULE', ''))
        self._checks_flops = os.environ.get('RANKTAP_FLOP_CHECK') == '1'
        self._window = self._memory = self._check = None
        steps.listeners.append(guarded(self._on_step))
        steps.before_optimizer.append(guarded(lambda: self._memory and self._memory.tell()))
        process.on_start.append(guarded(lambda: self._on_step(0)))
        atexit.register(guarded(self._close))

    def _on_step(self, number):
        wanted = self._schedule.records(number) and agent.capturing()
        if self._check is not None:
            guarded(self._check.end)()
        if not wanted and self._window is not None:
            guarded(self._memory.close)()
            self._window.close_soon()
        if wanted:
            if self._window is None:
                self._window = load('operators').Window(self._torch, self._process.domains[OPERATOR])
                guarded(self._window.prepare)()  # before memory is watched: it makes tensors
                self._memory = load('memory').Memory(self._torch, self._process.domains[MEMORY],
                                                     self._modules, self._steps)
            guarded(self._memory.open)()
            self._window.open()
            self._check_flops()

    def _check_flops(self):
        if not self._checks_flops or not self._window.is_open:
            return
        if self._check is None:
            self._check = load('flop_check').FlopCheck(self._torch, self._process.domains[OPERATOR])
        guarded(self._check.begin)(self._modules.compiles)

    def _close(self):
        if self._check is not None:
            guarded(self._check.end)()
        if self._window is not None:
            guarded(self._memory.close)()
            self._window.close()


class Changes:
    """What is looked for when recording begins, and again at the first step after something came that
    it could be in: modules, process groups, CUDA."""

    def __init__(self, torch, looks):
        self._cuda = vars(torch.cuda)
        self._looks = [guarded(look) for look in looks]
        self._seen = None

    def look(self, *_):
        c10d = sys.modules.get('torch.distributed.distributed_c10d')
        world = getattr(c10d, '_world', None)
        groups = None if world is None else tuple(map(id, world.pg_map))
        seen = len(sys.modules), groups, self._cuda.get('_initialized')
        if seen != self._seen:
            self._seen = seen
            for look in self._looks:
                look()


def install_others(torch, process, steps):
    pauses = load('pauses').Pauses(process, process.domains[PHASE])
    distributed = load('distributed').Distributed(process, process.domains[COMM])
    failures = load('memory').OutOfMemory(torch, process.domains[MEMORY])
    for part in (pauses, failures):
        guarded(part.start)()
    changes = Changes(torch, [process.learn_rank, pauses.look, distributed.look, failures.look])
    changes.look()
    steps.listeners.append(guarded(changes.look))


def install(torch):
    process = Process(torch)
    steps = Steps(process)
    modules = load('modules').Modules(torch, process, guarded)
    modules.on_root_output = Backward(torch, process).watch
    steps.modules = modules
    atexit.register(guarded(modules.wake))  # nobody is woken in an interpreter that is going
    for part in (modules, steps):
        guarded(part.install)(torch)
    process.on_start.append(guarded(Data(process).install))
    process.on_start.append(guarded(lambda: install_others(torch, process, steps)))
    guarded(lambda: Trees(process, modules, steps))()
    try:
        Windows(torch, process, modules, steps)
    except ValueError as failure:
        agent.note(f'no operators: RANKTAP_SCHEDULE: {failure}')
