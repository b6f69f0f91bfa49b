"""Programs that only infer: the forwards of their root modules take the place of steps.

The collector makes the steps of the ranges that modules have anyway (collector/facts/steps.cc). Here
is what an optimizer's step does else: the model is told, and the schedule's window opens and closes.

`agent`: agent.pyi; `load`: loader.py.
"""
import threading

guarded = load('guard').guarded

# Forwards that could be of training, without an optimizer's step: more than anybody accumulates over.
MOST_WITHOUT_STEP = 32


class Forwards:
    """Counts forwards of roots until an optimizer steps: those that cannot train, since no gradient is
    wanted or the module evaluates."""

    def __init__(self, torch, trees, on_forward):
        """on_forward: called, in this order, with the number of the forward that begins, from 1 on."""
        self._wants_gradients = torch.is_grad_enabled
        self._trees = trees
        self._on_first = guarded(trees.on_step)
        self._on_forward = [guarded(listener) for listener in on_forward]
        self._thread = None  # of the first: operators are recorded on one
        self._undecided = 0
        self._number = -1

    def install(self):
        agent.watch_roots(guarded(self.on_root))

    def on_root(self, root):
        thread = threading.get_ident()
        if self._thread not in (None, thread):
            return
        self._thread = thread
        if root.training and self._wants_gradients():
            self._undecided += 1
            if self._undecided < MOST_WITHOUT_STEP:
                return
        self._number += 1
        if self._number == 0:  # there may be no other
            self._on_first(0)
            return
        for listener in self._on_forward:
            listener(self._number)

    def end(self):
        """An optimizer steps: it says from now on where a step ends."""
        agent.watch_roots(None)
        self._trees.on_first_optimizer()
