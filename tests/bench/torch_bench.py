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

ROUNDS = 3
PAIRS = 9
LOOP = pathlib.Path(__file__).with_name('torch_loop.py')


class Bench:
    def __init__(self, ranktap, python, scratch):
        self._ranktap, self._python, self._scratch = ranktap, python, pathlib.Path(scratch)
        self._runs = itertools.count()

    def bare(self, *arguments):
        return self._measure([], arguments)

    def traced(self, *arguments, options=()):
        run = self._scratch / f'torch-{next(self._runs)}'
        return self._measure([self._ranktap, 'run', '--quiet', '-o', run, '--level', 'full', *options, '--'], arguments)

    def _measure(self, before, arguments):
        command = [*before, self._python, LOOP, *arguments]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])


def least(rounds, which, value):
    return min(measured[which][value] for measured in rounds)


def show(name, value, unit, floor_name='', floor=0, target=0, note=''):
    print(json.dumps({'name': name, 'value': value, 'unit': unit, 'floor_name': floor_name, 'floor': floor,
                      'target': target, 'at_least': False, 'note': note}), flush=True)


def imports(bench):
    rounds = [(bench.bare('import'), bench.traced('import')) for _ in range(ROUNDS)]
    bare, traced = (least(rounds, which, 'import_s') * 1e3 for which in range(2))
    show('import torch, ranktap beside', traced - bare, 'ms', target=30, note=f'bare {bare:.0f} ms')


def modules(bench):
    rounds = [(bench.bare('modules'), bench.bare('modules', '--empty-hooks'), bench.traced('modules'))
              for _ in range(ROUNDS)]
    bare, empty, traced = (least(rounds, which, 'module_ns') for which in range(3))
    show("module's range", traced - bare, 'ns', 'empty global hooks', empty - bare, 1000)


def operators(bench):
    window = ('--schedule', f'wait={torch_loop.WARM_UP},active={torch_loop.STEPS + 1},repeat=1')
    rounds = [(bench.bare('steps'), bench.traced('steps', options=('--schedule', 'wait=1000000,active=1')),
               bench.traced('steps', options=window), bench.bare('steps', '--profiler'),
               bench.bare('steps', '--profiler', '--memory')) for _ in range(ROUNDS)]
    bare, outside, inside, profiler, with_memory = (least(rounds, which, 'step_ns') for which in range(5))
    count = rounds[0][3]['operators']
    show('training step outside of windows', outside / 1e3, 'us', 'bare', bare / 1e3,
         note=f'{count:.0f} operators a step')
    show('operator in a window, shapes and memory', (inside - bare) / count, 'ns', 'torch.profiler, the same',
         (with_memory - bare) / count, note=f'bare {bare / count:.0f} ns an operator')
    show('the same, beside less', (inside - bare) / count, 'ns', 'torch.profiler, without memory',
         (profiler - bare) / count)
    steps = torch_loop.STEPS + 1
    show("a window's end, for each operator in it", least(rounds, 2, 'stop_ns') / count / steps, 'ns',
         "torch.profiler's stop", least(rounds, 3, 'stop_ns') / count / steps)


def dormant(bench):
    """In turn, each pair a reading: nothing else tells a cost of this size from the machine's moods."""
    pairs = [(bench.bare('steps'), bench.traced('steps', options=('--dormant',))) for _ in range(PAIRS)]
    shares = sorted(100 * (traced['step_ns'] / bare['step_ns'] - 1) for bare, traced in pairs)
    show('dormant in a training loop', statistics.median(shares), '%', target=0.3,
         note=f'{PAIRS} pairs: {shares[0]:+.2f} to {shares[-1]:+.2f} %')


def main():
    bench = Bench(*sys.argv[1:4])
    for measure in (imports, modules, operators, dormant):
        measure(bench)


if __name__ == '__main__':
    main()
