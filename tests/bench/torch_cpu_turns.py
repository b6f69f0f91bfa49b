"""What ranktap costs a loop of tiny steps in CPU time, its own threads and the collector's process included, and what
a module's range costs beside a pair of empty global hooks: one process, in which blocks with our hooks, with none and
with empty ones take turns. Prints one line of JSON.

  ranktap run --level full -- torch_cpu_turns.py [ROUNDS]
"""
import gc
import json
import os
import pathlib
import statistics
import sys
import time

import torch_loop
import torch_turns

STEPS = 400     # of a block
DRAIN_S = 0.3   # the sender and the collector come to the end of a block's events
MODULES = 100
CALLS = 40      # of the model of modules, in a block


def collector_cpu_ns():
    """Of `ranktap run`, whose child we are."""
    tasks = pathlib.Path(f'/proc/{os.getppid()}/task').glob('*/schedstat')
    return sum(int(task.read_text().split()[0]) for task in tasks)


def time_steps(step):
    """CPU ns a step of (the program's own thread, the agent's, the collector). Of the program's the least step: one in
    which nothing else came between. The others run when they like: their mean."""
    for _ in range(torch_turns.SETTLE):
        step()
    time.sleep(DRAIN_S)
    others, collector = time.process_time_ns() - time.thread_time_ns(), collector_cpu_ns()
    least = None
    for _ in range(STEPS):
        start = time.thread_time_ns()
        step()
        taken = time.thread_time_ns() - start
        least = taken if least is None else min(least, taken)
    time.sleep(DRAIN_S)
    others = time.process_time_ns() - time.thread_time_ns() - others
    return least, others / STEPS, (collector_cpu_ns() - collector) / STEPS


def turns(hooks, step, rounds):
    """[(bare, what the hooks add to the program's thread, to the agent's, to the collector)]"""
    gc_callbacks = list(gc.callbacks)
    found = []
    for _ in range(rounds):
        blocks = {False: [0, 0, 0], True: [0, 0, 0]}
        for there in (False, True, True, False):
            hooks.set(there)
            gc.callbacks[:] = gc_callbacks if there else []
            blocks[there] = [total + part / 2 for total, part in zip(blocks[there], time_steps(step))]
        # What threads and the collector do without events is their life, not the steps'.
        found.append((blocks[False][0], *(with_ - without for with_, without in zip(blocks[True], blocks[False]))))
    hooks.set(True)
    gc.callbacks[:] = gc_callbacks
    return found


class EmptyHooks:
    def __init__(self, torch):
        self._module = torch.nn.modules.module
        self._handles = []

    def set(self, there):
        for handle in self._handles:
            handle.remove()
        self._handles = [] if not there else [
            self._module.register_module_forward_pre_hook(lambda module, inputs: None),
            self._module.register_module_forward_hook(lambda module, inputs, output: None)]


def time_modules(torch, hooks, rounds):
    """[(bare, ours, empty hooks)] in CPU ns a call of a module that does nothing."""
    nn = torch.nn
    model, data = nn.Sequential(*(nn.Identity() for _ in range(MODULES))), torch.ones(1)
    empty = EmptyHooks(torch)

    def block(ours, theirs):
        hooks.set(ours)
        empty.set(theirs)
        for _ in range(torch_turns.SETTLE):
            model(data)
        least = None
        for _ in range(CALLS):
            start = time.thread_time_ns()
            model(data)
            taken = time.thread_time_ns() - start
            least = taken if least is None else min(least, taken)
        return least / (MODULES + 1)

    found = []
    for _ in range(rounds):
        order = ((False, False), (True, False), (False, True))
        forth = [block(*which) for which in order]
        back = [block(*which) for which in reversed(order)]
        found.append([(a + b) / 2 for a, b in zip(forth, reversed(back))])
    empty.set(False)
    hooks.set(True)
    return found


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    import torch
    step = torch_loop.make_step(torch)
    for _ in range(20):  # the default schedule's window among them
        step()
    hooks = torch_turns.Hooks(torch)
    modules = time_modules(torch, hooks, 10 * rounds)
    steps = turns(hooks, step, rounds)
    interval = torch_turns.median_with_interval
    bare = statistics.median(block[0] for block in steps)
    parts = {name: interval([block[which] for block in steps])
             for which, name in ((1, 'thread_ns'), (2, 'agent_ns'), (3, 'collector_ns'))}
    print(json.dumps({
        'bare_ns': bare, **parts,
        'step_share': interval([100 * sum(added) / alone for alone, *added in steps]),
        'module_bare_ns': statistics.median(bare for bare, _, _ in modules),
        'module_ns': interval([ours - bare for bare, ours, _ in modules]),
        'empty_hooks_ns': interval([empty - bare for bare, _, empty in modules]),
        'module_ratio': interval([(ours - bare) / (empty - bare) for bare, ours, empty in modules])}))


if __name__ == '__main__':
    main()
