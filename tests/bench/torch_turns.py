"""What ranktap costs each step of a training loop in which it records no operators: one process, in which
blocks of steps without any function of ours and blocks with all of them take turns. Prints one line of JSON.

  ranktap run --level full ... -- torch_turns.py [LEAST_LIBRARY]

A round of each kind is four blocks: bare, ours, ours, bare. Kinds: `cost`; `floor`, where ours are bare too: what the
machine's moods make of nothing at all; with the library (least_hooks.cc) also `nothing`, functions in the places of ours
that only call what was there, and `least`, which write ranges too, where ours do.
"""
import ctypes
import gc
import importlib.util
import json
import pathlib
import statistics
import sys
import time

import torch_loop

ROUNDS = 400
STEPS = 10  # of a block
SETTLE = 4  # before them, while the interpreter's caches fill again
LABEL_METHODS = '__enter__', '__exit__'


class Hooks:
    """Everything of ours that a step runs through, found from outside, and put away and back."""

    def __init__(self, torch):
        self._module, self._autograd = torch.nn.Module, torch.autograd
        self._label = torch.autograd.profiler.record_function
        optimizer = sys.modules[torch.optim.Optimizer.__module__]
        self._tables = [vars(optimizer)[name] for name in
                        ('_global_optimizer_pre_hooks', '_global_optimizer_post_hooks')]
        own = vars(own_copy(torch.autograd.profiler).record_function)
        # Absent before PyTorch 2.1.
        call = getattr(self._module, '_wrapped_call_impl', None) or self._module._call_impl
        self._bare = {'call': call, 'backward': getattr(torch.autograd.graph, '_engine_run_backward', None),
                      'labels': [own[name] for name in LABEL_METHODS], 'tables': [{}, {}]}
        self._ours = {'call': vars(self._module)['__call__'],
                      'backward': vars(torch.autograd).get('_engine_run_backward'),
                      'labels': [vars(self._label)[name] for name in LABEL_METHODS],
                      'tables': [dict(table) for table in self._tables]}
        self.has_call = self._ours['call'] is not call
        self._least = None

    def set(self, there):
        """Writes in either case, so that either has the interpreter's caches to fill again."""
        self._put(self._ours if there else self._bare)

    def set_least(self, there, writes):
        self._library.SetWrites(writes)
        self._put(self._least if there else self._bare)

    def load_least(self, path):
        """False: none of ours are there."""
        self._library = library = ctypes.PyDLL(path)
        bare, ours, new = self._bare, self._ours, ctypes.py_object
        has_labels, has_steps = not hasattr(ours['labels'][0], '__code__'), any(ours['tables'])
        if not (has_labels or has_steps):
            return False
        if not library.Load():
            raise SystemExit('torch_turns.py: this CPython lacks what the least calls need')
        for name, count in (('ModuleCall', 2), ('BackwardCall', 1), ('EnterCall', 2), ('ExitCall', 2), ('BeforeStep', 0),
                            ('AfterStep', 0)):
            getattr(library, name).restype, getattr(library, name).argtypes = new, [new] * count
        enter, leave = bare['labels']
        self._least = dict(bare)
        if self.has_call:
            self._least['call'] = library.ModuleCall(self._module, bare['call'])
            self._least['backward'] = library.BackwardCall(bare['backward'])
        if has_labels:
            self._least['labels'] = [library.EnterCall(self._label, enter), library.ExitCall(self._label, leave)]
        if has_steps:
            self._least['tables'] = [{1: library.BeforeStep()}, {2: library.AfterStep()}]
        return True

    def _put(self, parts):
        self._module.__call__ = parts['call']
        self._autograd._engine_run_backward = parts['backward']
        for name, method in zip(LABEL_METHODS, parts['labels']):
            setattr(self._label, name, method)
        for table, entries in zip(self._tables, parts['tables']):
            table.clear()
            table.update(entries)


def own_copy(module):
    """The module once more, as its file has it."""
    spec = importlib.util.spec_from_file_location(module.__name__, module.__file__)
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


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


def time_rounds(step, kinds, rounds):
    """{kind: [(bare, ours)] in ns a step}; kinds: {kind: set(there)}."""
    def block(put, there):
        put(there)
        return time_block(step)

    times = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, put in kinds.items():
            first, second, third, fourth = (block(put, there) for there in (False, True, True, False))
            times[kind].append(((first + fourth) / 2, (second + third) / 2))
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
    kinds = {'cost': hooks.set, 'floor': lambda _: hooks.set(False)}
    if len(sys.argv) > 1 and hooks.load_least(sys.argv[1]):
        kinds['nothing'] = lambda there: hooks.set_least(there, False)
        if hooks.has_call:
            kinds['least'] = lambda there: hooks.set_least(there, True)
    for kind, times in time_rounds(step, kinds, ROUNDS).items():
        result[kind] = {'share': median_with_interval([100 * (ours / bare - 1) for bare, ours in times]),
                        'ns': median_with_interval([ours - bare for bare, ours in times]),
                        'bare_ns': statistics.median(bare for bare, _ in times)}
    hooks.set(True)
    print(json.dumps(result))


if __name__ == '__main__':
    main()
