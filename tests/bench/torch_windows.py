"""What each part of a window costs a step of a training loop: one process, in which blocks of steps take
turns: bare, under callbacks that do nothing, with ranktap's window and parts of it, under torch.profiler.
Prints one line of JSON: {block: [median over the rounds of its least step less the bare one's, in ns, and the
median's 95 % interval]}.

  ranktap run --level full --schedule wait=1000000,active=1 --stacks all -- torch_windows.py NOOP_LIBRARY [BLOCK...]
"""
import ctypes
import gc
import json
import sys

import torch_loop
import torch_turns

ROUNDS = 60


def window_of_ours():
    """The Windows object of agent/sources/torch/python/windows.py, found from outside."""
    for found in gc.get_objects():
        if type(found).__name__ == 'Windows' and type(found).__module__ != '__main__' and hasattr(found, 'on_step'):
            return found
    raise SystemExit('torch_windows.py: not under ranktap --level full')


class Blocks:
    """Each sets what it measures up and returns the function that puts it away."""

    def __init__(self, torch, noop):
        self._torch = torch
        self._hooks = torch_turns.Hooks(torch)
        self._noop = ctypes.CDLL(noop)
        self._noop.Begin.argtypes = [ctypes.c_bool, ctypes.c_bool]
        self._windows = window_of_ours()
        self._windows._schedule = self
        self._wanted = False
        self._memory_class = None

    def records(self, number):
        return self._wanted

    def bare(self):
        self._hooks.set(False)
        return lambda: None

    def noop(self, inputs=True, backward=True):
        self._hooks.set(False)
        if not self._noop.Begin(inputs, backward, False):
            raise SystemExit('this PyTorch has no callbacks')
        return self._noop.End

    def noop_without_inputs(self):
        return self.noop(inputs=False)

    def noop_without_backward(self):
        return self.noop(backward=False)

    def noop_without_both(self):
        return self.noop(inputs=False, backward=False)

    def outside(self):
        self._hooks.set(True)
        return lambda: None

    def window(self, stacks=False):
        """All of a window."""
        self._hooks.set(True)
        self._windows._config['python_stacks'] = stacks
        self._wanted = True
        self._windows.on_step(0)

        def end():
            self._wanted = False
            self._windows.on_step(0)
        return end

    def window_with_stacks(self):
        return self.window(stacks=True)

    def operators(self, stacks=False):
        """The callbacks alone: no modules, phases, memory."""
        self._hooks.set(False)
        self._windows._config['python_stacks'] = stacks
        self._windows._window.open()
        return self._windows._window.close

    def operators_with_stacks(self):
        return self.operators(stacks=True)

    def same_content(self, stacks=False):
        """What torch.profiler has too: operators and allocations, no modules, phases and owners."""
        end, agent = self.operators(stacks), sys.modules['_ranktap.memory'].agent
        agent.watch_memory(self._windows._memory._domain)

        def put_back():
            agent.watch_memory(0)
            end()
        return put_back

    def same_content_with_stacks(self):
        return self.same_content(stacks=True)

    def window_without_memory(self):
        memory = self._windows._memory
        opened, memory.open = memory.open, lambda: None
        end = self.window()

        def put_back():
            memory.open = opened
            end()
        return put_back

    def window_without_owners(self):
        """Allocations, but nobody tells whose they are."""
        end = self.window()
        memory = self._windows._memory
        tell, memory.tell = memory.tell, lambda: None

        def put_back():
            memory.tell = tell
            end()
        return put_back

    def profiler(self, **options):
        self._hooks.set(False)
        profiler = self._torch.profiler
        profile = profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True,
                                   profile_memory=True, **options)
        profile.start()
        return profile.stop

    def profiler_with_stacks(self):
        return self.profiler(with_stack=True)


ALL = ['bare', 'noop', 'noop_without_inputs', 'noop_without_backward', 'noop_without_both', 'outside', 'window',
       'window_with_stacks', 'operators', 'operators_with_stacks', 'same_content', 'same_content_with_stacks',
       'window_without_memory', 'window_without_owners',
       'profiler', 'profiler_with_stacks']


def main():
    import torch
    noop, *names = sys.argv[1:]
    names = ['bare', *(name for name in names or ALL if name != 'bare')]
    step = torch_loop.make_step(torch)
    for _ in range(20):
        step()
    blocks = Blocks(torch, noop)
    blocks.window()()  # finds its way in this PyTorch
    gc.collect()
    gc.disable()  # its pauses fall where they like
    times = {name: [] for name in names}
    for turn in range(ROUNDS):
        for name in names if turn % 2 == 0 else reversed(names):
            end = getattr(blocks, name)()
            times[name].append(torch_turns.time_block(step))
            end()
        gc.collect()
    blocks.outside()
    beyond = {name: torch_turns.median_with_interval([ns - bare for ns, bare in zip(times[name], times['bare'])])
              for name in names}
    beyond['bare'] = torch_turns.median_with_interval(times['bare'])
    print(json.dumps(beyond))


if __name__ == '__main__':
    main()
