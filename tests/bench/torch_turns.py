"""What ranktap costs each step of a training loop in which it records no operators: one process, in which
blocks of steps without any hook of ours and blocks with all of them take turns. Prints one line of JSON.

  ranktap run --level full ... -- torch_turns.py

A round is four blocks: bare, hooked, hooked, bare. The same again with hooked blocks that are bare is
the floor: what the machine's moods make of nothing at all.
"""
import ctypes
import gc
import json
import pathlib
import statistics
import sys
import time

import torch_loop

ROUNDS = 400
STEPS = 10  # of a block
SETTLE = 4  # before them, while the interpreter's caches fill again


class Hooks:
    """Everything of ours that a step runs through, found from outside, and put away and back."""

    def __init__(self, torch):
        self._module = torch.nn.Module
        self._optimizer = sys.modules[torch.optim.Optimizer.__module__]
        self._call = self._module.__dict__['__call__']
        self._tables = [vars(self._optimizer)[name] for name in
                        ('_global_optimizer_pre_hooks', '_global_optimizer_post_hooks')]
        self._entries = [dict(table) for table in self._tables]
        # Absent before PyTorch 2.1.
        self._bare = getattr(self._module, '_wrapped_call_impl', None) or self._module._call_impl
        self.has_call = self._call is not self._bare
        self._autograd = torch.autograd
        self._backward = (getattr(torch.autograd.graph, '_engine_run_backward', None),
                          vars(torch.autograd).get('_engine_run_backward'))

    def set(self, there):
        """Writes in either case, so that either has the interpreter's caches to fill again."""
        self._module.__call__ = self._call if there else self._bare
        self._autograd._engine_run_backward = self._backward[there]
        for table, entries in zip(self._tables, self._entries):
            table.clear()
            if there:
                table.update(entries)


def time_block(step):
    """The least step of a block in ns: one in which nothing else came between."""
    for _ in range(SETTLE):
        step()
    least = None
    for _ in range(STEPS):
        start = time.perf_counter_ns()
        step()
        taken = time.perf_counter_ns() - start
        least = taken if least is None else min(least, taken)
    return least


def time_rounds(step, hooks, rounds, with_hooks):
    """[(bare, hooked)] in ns a step."""
    def block(hooked):
        hooks.set(hooked and with_hooks)
        return time_block(step)

    times = []
    for _ in range(rounds):
        first, second, third, fourth = (block(hooked) for hooked in (False, True, True, False))
        times.append(((first + fourth) / 2, (second + third) / 2))
    return times


def median_with_interval(values):
    """The median and its interval of 95 % by order statistics, which assumes no distribution."""
    ordered = sorted(values)
    half = 0.98 * len(ordered) ** 0.5
    low = max(0, int(len(ordered) / 2 - half))
    high = min(len(ordered) - 1, int(len(ordered) / 2 + half))
    return [statistics.median(ordered), ordered[low], ordered[high]]


def calls_of_ours(step):
    """Python functions of ours that a step calls."""
    names = []

    def look(frame, event, _):
        if event == 'call' and frame.f_code.co_filename.startswith('<ranktap/'):
            names.append(frame.f_code.co_qualname if hasattr(frame.f_code, 'co_qualname') else frame.f_code.co_name)

    sys.setprofile(look)
    step()
    sys.setprofile(None)
    return names


def observes_operators(torch):
    library = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / 'lib/libtorch_cpu.so'))
    has = library['_ZN2at12hasCallbacksEv']
    has.restype = ctypes.c_bool
    return has()


def main():
    import torch
    step = torch_loop.make_step(torch)
    for _ in range(20):
        step()
    hooks = Hooks(torch)
    gc.collect()
    result = {'has_call': hooks.has_call, 'calls': calls_of_ours(step), 'operators': observes_operators(torch)}
    gc.disable()  # its pauses fall where they like
    for what, with_hooks in (('cost', True), ('floor', False)):
        times = time_rounds(step, hooks, ROUNDS, with_hooks)
        result[what] = {'share': median_with_interval([100 * (hooked / bare - 1) for bare, hooked in times]),
                        'ns': median_with_interval([hooked - bare for bare, hooked in times]),
                        'bare_ns': statistics.median(bare for bare, _ in times)}
    hooks.set(True)
    print(json.dumps(result))


if __name__ == '__main__':
    main()
