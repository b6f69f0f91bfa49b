"""What ranktap costs a PyTorch program, beside the program bare and under torch.profiler, in turn.

  torch_bench.py RANKTAP PYTHON SCRATCH
"""
import itertools
import json
import pathlib
import statistics
import subprocess
import sys

import torch_loop

ROUNDS, IMPORT_PAIRS = 3, 16
OUTSIDE = ('--schedule', 'wait=1000000,active=1')  # of windows
LOOP = pathlib.Path(__file__).with_name('torch_loop.py')
TURNS = pathlib.Path(__file__).with_name('torch_turns.py')
CPU_TURNS = pathlib.Path(__file__).with_name('torch_cpu_turns.py')
WINDOWS = pathlib.Path(__file__).with_name('torch_windows.py')


class Bench:
    def __init__(self, ranktap, python, scratch):
        self._ranktap, self._python, self._scratch = pathlib.Path(ranktap), python, pathlib.Path(scratch)
        self._runs = itertools.count()
        libraries = self._ranktap.parent.parent / 'bench'
        self.noop, self.least_hooks = libraries / 'noop_operators.so', libraries / 'least_hooks.so'

    def bare(self, *arguments):
        return self._measure([], arguments)

    def traced(self, *arguments, options=(), program=LOOP, level='full'):
        run = self._scratch / f'torch-{next(self._runs)}'
        return self._measure([self._ranktap, 'run', '--quiet', '-o', run, '--level', level, *options, '--'], arguments, program)

    def _measure(self, before, arguments, program=LOOP):
        command = [*before, self._python, program, *arguments]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])


def least(rounds, which, value):
    return min(measured[which][value] for measured in rounds)


def show(name, value, unit, floor_name='', floor=0, target=0, note=''):
    print(json.dumps({'name': name, 'value': value, 'unit': unit, 'floor_name': floor_name, 'floor': floor,
                      'target': target, 'at_least': False, 'note': note}), flush=True)


def imports(bench):
    """The median of pairs in turn: the bare import alone differs by hundreds of ms from one to the next."""
    bare, beyond = [], []
    for pair in range(IMPORT_PAIRS):
        measure = [lambda: bench.bare('import'), lambda: bench.traced('import')]
        first = pair % 2
        times = {which: measure[which]()['import_s'] * 1e3 for which in (first, 1 - first)}
        bare.append(times[0])
        beyond.append(times[1] - times[0])
    low, middle, high = statistics.quantiles(beyond, n=4)
    show('import torch, ranktap beside', middle, 'ms', 'the bare import', statistics.median(bare), target=30,
         note=f'half of {IMPORT_PAIRS} pairs: {low:+.0f} to {high:+.0f} ms; bare {statistics.median(bare):.0f} ms')


def cpu(bench):
    """In one process: a bare module call differs by 30 % from one to the next."""
    found = bench.traced(program=CPU_TURNS)
    ours, low, high = found['module_ns']
    empty = found['empty_hooks_ns'][0]
    show("module's range, CPU", ours, 'ns', 'a pair of empty global hooks', empty, empty / 10,
         f'95 %: {low:.0f} to {high:.0f} ns; bare {found["module_bare_ns"]:.0f} ns')
    share, low, high = found['step_share']
    thread, agent, collector = (found[name][0] / 1e3 for name in ('thread_ns', 'agent_ns', 'collector_ns'))
    show('tiny steps at level full, CPU with the collector', share, '%', target=5,
         note=f'95 %: {low:+.1f} to {high:+.1f} %; of {found["bare_ns"] / 1e3:.0f} us the thread {thread:.1f}, '
              f'the agent\'s {agent:.1f}, the collector {collector:.1f} us')


def operators(bench):
    window = ('--schedule', f'wait={torch_loop.WARM_UP},active={torch_loop.STEPS + 1},repeat=1')
    runs = {'bare': lambda: bench.bare('steps'),
            'noop': lambda: bench.bare('steps', '--noop', bench.noop),
            'noop, outputs': lambda: bench.bare('steps', '--noop', bench.noop, '--outputs'),
            'outside': lambda: bench.traced('steps', options=OUTSIDE),
            'inside': lambda: bench.traced('steps', options=window),
            'stacks': lambda: bench.traced('steps', options=(*window, '--stacks', 'all')),
            'tensors': lambda: bench.traced('steps', options=(*window, '--tensors')),
            'profiler': lambda: bench.bare('steps', '--profiler'),
            'its memory': lambda: bench.bare('steps', '--profiler', '--memory'),
            'its stacks': lambda: bench.bare('steps', '--profiler', '--memory', '--stacks')}
    rounds = [{name: run() for name, run in runs.items()} for _ in range(ROUNDS)]
    step = {name: least(rounds, name, 'step_ns') for name in runs}
    count = rounds[0]['profiler']['operators']
    beyond = {name: (step[name] - step['bare']) / count for name in runs}
    show('training step outside of windows', step['outside'] / 1e3, 'us', 'bare', step['bare'] / 1e3,
         note=f'{count:.0f} operators a step')
    show('recorded step, shapes and memory, beyond the bare one', (step['inside'] - step['bare']) / 1e3, 'us',
         'torch.profiler, the same', (step['its memory'] - step['bare']) / 1e3)
    show('operator under callbacks that do nothing', beyond['noop'], 'ns', 'bare', step['bare'] / count,
         note='what PyTorch itself takes for any profiler with shapes')
    show('the same, which ask for outputs', beyond['noop, outputs'], 'ns', 'bare', step['bare'] / count)
    show('operator in a window, tensors too', beyond['tensors'], 'ns', 'without (--tensors)', beyond['inside'],
         note=f"beyond callbacks that do nothing {beyond['tensors'] - beyond['noop, outputs']:.0f} ns")
    for name, ours, theirs, other in (
            ('operator in a window, shapes and memory', 'inside', 'its memory', 'torch.profiler, the same'),
            ('the same, beside less', 'inside', 'profiler', 'torch.profiler, without memory'),
            ('operator in a window, stacks too', 'stacks', 'its stacks', 'torch.profiler, the same')):
        more = [beyond[which] - beyond['noop'] for which in (ours, theirs)]
        show(name, beyond[ours], 'ns', other, beyond[theirs],
             note=f'beyond callbacks that do nothing {more[0]:.0f} and {more[1]:.0f} ns')
    steps = torch_loop.STEPS + 1
    show("a window's end, for each operator in it", least(rounds, 'inside', 'stop_ns') / count / steps, 'ns',
         "torch.profiler's stop", least(rounds, 'profiler', 'stop_ns') / count / steps)


def windows(bench):
    """In one process, beside torch.profiler, which has no modules, phases and owners of memory: without them."""
    names = ('same_content', 'same_content_with_stacks', 'profiler', 'profiler_with_stacks')
    found = bench.traced(bench.noop, *names, options=(*OUTSIDE, '--stacks', 'all'), program=WINDOWS)
    for name, ours, theirs in (('operator in a window, the same content', *names[::2]),
                               ('the same content, stacks too', *names[1::2])):
        (us, low, high), profiler = ((ns / 1e3 for ns in found[which]) for which in (ours, theirs))
        its = next(profiler)
        show(name, us, 'us/step', 'torch.profiler, shapes and memory', its, its / 2, f'95 %: {low:.0f} to {high:.0f} us')


def turns(bench):
    """In one process: two of them differ by far more than what is looked for."""
    for name, level, options, target in (
            ('dormant in a training loop', 'dormant', (), 0.2),
            ('dormant in a training loop, labels watched', 'full', ('--dormant',), 0.2),
            ('a training step outside of windows', 'full', OUTSIDE, 0.5)):
        found = bench.traced(bench.least_hooks, options=options, program=TURNS, level=level)
        calls, sees = len(found['calls']), 'observed' if found['operators'] else 'not observed'
        least = found.get('least')
        for kind, what in (('floor', ', floor: bare beside bare'), ('nothing', ', calls that do nothing'),
                           ('least', ', calls that write ranges and no more'), ('cost', '')):
            if kind not in found:
                continue
            share, low, high = found[kind]['share']
            beside = ('calls that write ranges', least['share'][0]) if least and not what else ()
            show(name + what, share, '%', *beside, target=0 if what else target,
                 note=f'95 %: {low:+.2f} to {high:+.2f} %, {found[kind]["ns"][0] / 1e3:+.1f} us of '
                      f'{found[kind]["bare_ns"] / 1e3:.0f}; {calls} Python functions of ours a step, operators {sees}')


def main():
    bench = Bench(*sys.argv[1:4])
    for measure in (imports, cpu, operators, windows, turns):
        measure(bench)


if __name__ == '__main__':
    main()
