"""Phases of a step: the backward pass and waiting for data. That of the optimizer is in steps.py, what
stops the loop from outside in pauses.py.

`agent`: agent.pyi; `load`: loader.py.
"""
import sys

guarded = load('guard').guarded


class Replaced:
    """A function of PyTorch's that is ours while something is recorded, and its own else: sleep, wake. Who has
    replaced it after us calls ours, which stays."""

    def __init__(self):
        self._owner = None

    def replace(self, owner, name, ours):
        self._owner, self._name, self._original, self._ours = owner, name, vars(owner)[name], ours
        self.wake()

    def sleep(self):
        if self._owner is not None and vars(self._owner).get(self._name) is self._ours:
            setattr(self._owner, self._name, self._original)

    def wake(self):
        if self._owner is not None and vars(self._owner).get(self._name) is self._original:
            setattr(self._owner, self._name, self._ours)


class Backward(Replaced):
    """The backward pass: what runs autograd's engine, torch.autograd's own name of it, has a range around.

    Where this PyTorch (before 2.3) has no such name, from the gradient of a root module's output to the end
    of autograd's work. That is a hook at a node of the graph, which PyTorch takes 15 us a step for.
    """

    def __init__(self, torch, process):
        super().__init__()
        self._autograd = torch.autograd
        self._engine = torch.autograd.Variable._execution_engine
        self._process = process
        self._tensor = torch.Tensor
        self._range = None
        self._has_call = False
        self._on_first_node, self._on_end = guarded(self._open), guarded(self._close)

    def begin(self):
        self._phase = self._process.domains[agent.PHASE_DOMAIN]
        self._name = agent.name(agent.BACKWARD_PHASE)
        original = vars(self._autograd).get('_engine_run_backward')
        call = None if original is None else agent.backward_call(original, self._phase, self._name)
        if call is not None:
            self.replace(self._autograd, '_engine_run_backward', call)
            self._has_call = True

    def watch(self, output):
        if self._has_call:
            return
        node = self._node_of(output)
        if node is not None and hasattr(node, 'register_prehook'):
            node.register_prehook(self._on_first_node)

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

    def _open(self, _):
        if self._range is None:
            self._engine.queue_callback(self._on_end)
            self._range = agent.open(self._phase, self._name, 0)

    def _close(self):
        ended, self._range = self._range, None
        if ended is not None:
            agent.close(ended)


def ready_batches(iterator):
    """1 and the batches that its workers have ready; 0: nobody knows. No lock: the workers hold it while they send."""
    # Of a loader with workers: (worker,), with its batch where that came early.
    tasks = getattr(iterator, '_task_info', None)
    if tasks is None:
        return 0
    queue = iterator._data_queue
    pinned = getattr(queue, 'queue', None)  # where a thread pins memory
    return 1 + (queue.qsize() if pinned is None else len(pinned)) + sum(len(task) == 2 for task in tasks.values())


class Data(Replaced):
    """Waiting for the next batch."""

    def __init__(self, process):
        super().__init__()
        self._process = process

    def begin(self):
        loader = sys.modules.get('torch.utils.data.dataloader')
        iterator = getattr(loader, '_BaseDataLoaderIter', None)
        if iterator is None:
            return
        process, original, ready = self._process, iterator.__next__, guarded(ready_batches)

        def __next__(self):
            if not process.state:  # replaced by others after us, it stays while nothing is recorded
                return original(self)
            agent.push(process.domains[agent.PHASE_DOMAIN], agent.name(agent.DATA_PHASE), ready(self) or 0)
            try:
                return original(self)
            finally:
                agent.pop(process.domains[agent.PHASE_DOMAIN])

        self.replace(iterator, '__next__', __next__)
