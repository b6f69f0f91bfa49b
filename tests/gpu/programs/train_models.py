"""Trains one of models.py for some steps; the last line is JSON: ns a step after a warm-up, and what was profiled.

Modes: bare; profiler (torch.profiler over all timed steps, CPU and CUDA); profiler-in-the-middle (over the
middle third, inside the NVTX range `session`, with a second's rest after it). --graph: the step is one CUDA graph. --device cpu only tries the program.
"""
import argparse
import collections
import contextlib
import json
import time

import torch
from torch.profiler import ProfilerActivity, profile

import models


def synchronize(device):
    if device == 'cuda':
        torch.cuda.synchronize()


@contextlib.contextmanager
def named(name, device):
    """An NVTX range where there is a GPU."""
    if device == 'cuda':
        torch.cuda.nvtx.range_push(name)
    yield
    if device == 'cuda':
        torch.cuda.nvtx.range_pop()


def make_step(options):
    model, loss = models.make(options.model, options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()

    if not options.graph:
        return step
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with named('capture', options.device), torch.cuda.graph(graph):
        step()
    return graph.replay


def profiler(options):
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if options.device == 'cuda' else [])
    return profile(activities=activities)


def train(step, count):
    for _ in range(count):
        step()


def kernels_of(profiled, device):
    """Names and counts of what ran: not their times, which no two runs share."""
    kind = torch.autograd.DeviceType.CUDA if device == 'cuda' else torch.autograd.DeviceType.CPU
    counts = collections.Counter(event.name for event in profiled.events() if event.device_type == kind)
    return dict(counts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--model', choices=['mlp', 'gpt2', 'resnet50'], required=True)
    parser.add_argument('--steps', type=int, required=True)
    parser.add_argument('--mode', choices=['bare', 'profiler', 'profiler-in-the-middle'], default='bare')
    parser.add_argument('--graph', action='store_true')
    parser.add_argument('--count', action='store_true', help='afterwards, count the launches of a step')
    parser.add_argument('--device', default='cuda')
    options = parser.parse_args()
    step = make_step(options)
    train(step, 5)
    synchronize(options.device)
    middle, profiled = options.steps // 3, None
    start = time.perf_counter_ns()
    if options.mode == 'profiler-in-the-middle':
        train(step, middle)
        # The work of before belongs to the trace of before.
        synchronize(options.device)
        with named('session', options.device):
            with profiler(options) as profiled:
                train(step, middle)
                synchronize(options.device)
        time.sleep(1.0)
        train(step, options.steps - 2 * middle)
    else:
        with profiler(options) if options.mode == 'profiler' else contextlib.nullcontext():
            train(step, options.steps)
            synchronize(options.device)
    synchronize(options.device)
    spent = time.perf_counter_ns() - start
    said = {'model': options.model, 'ns_per_step': spent / options.steps}
    if profiled is not None:
        said['profiled_kernels'] = kernels_of(profiled, options.device)
    if options.count:
        with profiler(options) as counted:
            step()
            synchronize(options.device)
        said['launches_per_step'] = sum(event.count for event in counted.key_averages() if 'LaunchKernel' in event.key)
    print(json.dumps(said))


if __name__ == '__main__':
    main()
