"""Measures itself: blocks of 20 steps with a cost and without it, in turn, until check/paired.py has enough.

The cost (--way): `window` that `ranktap start` and `stop` begin and end; `profiler-cuda`, `profiler`: torch.profiler,
timed between its start and its stop; `floor`: tests/gpu/cupti_floor.cc, whole or --kind of it alone; `planted`: kernels
1 % longer, on the stand-in alone; `nothing`. The last line is JSON: the pairs, by wall time and by the device's events.
"""
import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from check import paired  # noqa: E402

STEPS = 20
KERNEL_NS = 10_000
# Ours, which a command of ranktap's would take for its own process.
WATCHES = ('LD_PRELOAD', 'CUDA_INJECTION64_PATH', 'NVTX_INJECTION64_PATH')


class Torch:
    def __init__(self, model):
        import torch
        from train_models import make_step
        self.cuda = torch.cuda
        self.step = make_step(argparse.Namespace(model=model, device='cuda', graph=False))
        self.synchronize = torch.cuda.synchronize

    def event(self):
        event = self.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_ns(self, first, last):
        return first.elapsed_time(last) * 1e6


def make_device(options):
    if not options.stand_in:
        return Torch(options.model)
    from stand_in_device import StandIn
    return StandIn(KERNEL_NS)


class Window:
    """The steps go on while ranktap works: the device must not fall asleep, and the longest of them is told."""

    def __init__(self, device, options):
        self.device, self.options, self.longest_ns = device, options, 0

    def __call__(self, on):
        command = [self.options.ranktap, 'start' if on else 'stop', self.options.run, '--quiet']
        if on:
            command += ['--level', self.options.level]
        environment = {name: value for name, value in os.environ.items() if name not in WATCHES}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            begin = time.perf_counter_ns()
            self.device.step()
            self.device.synchronize()
            self.longest_ns = max(self.longest_ns, time.perf_counter_ns() - begin)
        if process.returncode != 0:
            sys.exit(f'blocks: {" ".join(command)}: exit {process.returncode}')


class Profiler:
    longest_ns = 0

    def __init__(self, with_cpu):
        self.with_cpu, self.profiler = with_cpu, None

    def __call__(self, on):
        from torch.profiler import ProfilerActivity, profile
        if on:
            self.profiler = profile(activities=[ProfilerActivity.CUDA] + [ProfilerActivity.CPU] * self.with_cpu)
            self.profiler.start()
        elif self.profiler is not None:
            self.profiler.stop()


class Floor:
    longest_ns = 0

    def __init__(self, kind):
        self.kind, self.library = kind, ctypes.CDLL(os.environ['CUDA_INJECTION64_PATH'])
        self.library.CuptiFloorSwitch(0, 0)

    def __call__(self, on):
        self.library.CuptiFloorSwitch(int(on), self.kind)


class Planted:
    longest_ns = 0

    def __init__(self, device, planted):
        self.device, self.planted = device, planted

    def __call__(self, on):
        if self.planted:
            self.device.set_kernel_ns(KERNEL_NS * (1.01 if on else 1))


def make_switch(device, options):
    if options.way == 'window':
        return Window(device, options)
    if options.way == 'floor':
        return Floor(options.kind)
    if options.way in ('nothing', 'planted'):
        return Planted(device, options.way == 'planted')
    return Profiler(with_cpu=options.way == 'profiler')


def block(device):
    """(ns by the wall, ns by the device), after one step that nobody counts."""
    device.step()
    device.synchronize()
    begin, first = time.perf_counter_ns(), device.event()
    for _ in range(STEPS):
        device.step()
    last = device.event()
    device.synchronize()
    wall = time.perf_counter_ns() - begin
    return wall, device.elapsed_ns(first, last)


def measure(device, switch, seconds):
    """{'wall': pairs, 'device': pairs}: two at least, however short the time is."""
    until, state, found = time.monotonic() + seconds, False, {'wall': [], 'device': []}
    while len(found['wall']) < 2 or (time.monotonic() < until and not all(map(paired.enough, found.values()))):
        taken = {}
        for on in paired.order(len(found['wall'])):
            if on != state:
                switch(on)
            state = on
            taken[on] = block(device)
        for index, clock in enumerate(found):
            found[clock].append((taken[False][index], taken[True][index]))
    if state:
        switch(False)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--way', required=True, choices=['window', 'profiler-cuda', 'profiler', 'floor', 'planted', 'nothing'])
    parser.add_argument('--model', default='mlp')
    parser.add_argument('--stand-in', action='store_true')
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--ranktap')
    parser.add_argument('--run', help="the run's folder")
    parser.add_argument('--level', default='kernels')
    parser.add_argument('--kind', type=int, default=0, help="the floor's one kind of records, as cupti_activity.h numbers them")
    options = parser.parse_args()
    device = make_device(options)
    for _ in range(5):
        device.step()
    device.synchronize()
    switch = make_switch(device, options)
    found = measure(device, switch, options.seconds)
    print(json.dumps({'steps': STEPS, 'longest_step_ns': switch.longest_ns, **found}))


if __name__ == '__main__':
    main()
