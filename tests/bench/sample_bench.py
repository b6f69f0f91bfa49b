"""What it costs to ask eight threads of Python a hundred times a second where they are: ranktap, py-spy and austin in
turn with nobody. The samplers' CPU is read while the program works, so that no start counts.

  sample_bench.py RANKTAP PYTHON SCRATCH [FOLDER of py-spy and austin]
"""
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch_turns

ROUNDS, BLOCKS = 10, 250
PROGRAM = pathlib.Path(__file__).with_name('sampled_loop.py')


def cpu_ns(pid, named=lambda name: True):
    tasks = pathlib.Path(f'/proc/{pid}/task').glob('*')
    return sum(int((task / 'schedstat').read_text().split()[0]) for task in tasks
               if named((task / 'comm').read_text().strip()))


def ours(name):
    return name.startswith('ranktap')


class Sampled:
    """One run of the program beside one sampler: the least CPU ns of a block, and the sampler's share of a core."""

    def __init__(self, command, beside=None):
        program = subprocess.Popen([*map(str, command), str(BLOCKS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        child = self.child_of(program.pid) if command[0].name == 'ranktap' else program.pid
        tool = beside and subprocess.Popen([*beside, str(child)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        samplers = [(child, ours), (program.pid, None)] if command[0].name == 'ranktap' else [(tool.pid, None)] if tool else []
        time.sleep(1.5 if beside else 0.5)  # py-spy and austin read symbols first
        program.stdin.write('\n')
        program.stdin.flush()
        assert program.stdout.readline() == 'begin\n'
        begin, cpu = time.perf_counter_ns(), self.sampled_cpu(samplers)
        blocks = json.loads(program.stdout.readline())
        self.share = 100 * (self.sampled_cpu(samplers) - cpu) / (time.perf_counter_ns() - begin)
        self.block = statistics.median(blocks)
        program.communicate('\n')
        if tool:
            tool.terminate()
            tool.wait()

    @staticmethod
    def sampled_cpu(samplers):
        return sum(cpu_ns(pid, named) if named else cpu_ns(pid) for pid, named in samplers)

    @staticmethod
    def child_of(pid):
        while True:
            children = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
            if children:
                return int(children[0])


def main():
    ranktap, python, scratch, *tools = map(pathlib.Path, sys.argv[1:])
    program = [python, PROGRAM]
    run = [ranktap, 'run', '--quiet', '--level', 'kernels', '-o']
    ways = {'bare': lambda i: Sampled(program),
            'off': lambda i: Sampled([*run, scratch / f'off-{i}', '--sample', 'off', '--', *program]),
            'ranktap': lambda i: Sampled([*run, scratch / f'on-{i}', '--sample', '10ms', '--', *program])}
    for folder in tools:
        ways['py-spy'] = lambda i: Sampled(program, [folder / 'py-spy', 'record', '--rate', '100', '--format', 'raw', '-o',
                                                     scratch / f'spy-{i}', '--pid'])
        ways['austin'] = lambda i: Sampled(program, [folder / 'austin', '-i', '10ms', '-o', scratch / f'austin-{i}', '-p'])
    rounds = [{name: way(i) for name, way in ways.items()} for i in range(ROUNDS)]
    interval = torch_turns.median_with_interval
    for name in ways:
        if name == 'bare':
            continue
        share = interval([each[name].share for each in rounds])
        slower = interval([100 * (each[name].block / each['bare'].block - 1) for each in rounds])
        print(json.dumps({'name': f'sampling 8 threads at 100 Hz: {name}' if name != 'off' else 'the same without samples',
                          'value': share[0], 'unit': '% of a core', 'floor_name': '', 'floor': 0,
                          'target': 1.0 if name == 'ranktap' else 0, 'at_least': False,
                          'note': f'from {share[1]:.2f} to {share[2]:.2f}; the program\'s CPU '
                                  f'{slower[0]:+.2f} % (from {slower[1]:+.2f} to {slower[2]:+.2f})'}))


if __name__ == '__main__':
    main()
