"""What torch_bench.py times, in a process of its own: prints one line of JSON.

  torch_loop.py import | steps [--profiler [--memory] [--stacks] | --noop LIBRARY [--outputs]]
"""
import argparse
import ctypes
import json
import time

STEPS, WARM_UP = 60, 10


def time_import():
    start = time.perf_counter()
    import torch  # noqa: F401
    return {'import_s': time.perf_counter() - start}


def make_step(torch):
    """A step of a model so small that operators are all there is."""
    nn = torch.nn
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(*(layer for _ in range(10) for layer in (nn.Linear(16, 16), nn.ReLU())))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
    data = torch.randn(8, 16)

    def step():
        model(data).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def time_steps(profiler, memory, stacks, noop, outputs):
    """The least step, and what it takes to stop recording."""
    import torch
    run = make_step(torch)

    def step():
        start = time.perf_counter_ns()
        run()
        return time.perf_counter_ns() - start

    for _ in range(WARM_UP):
        step()
    result = {}
    if profiler:
        profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
                                         profile_memory=memory, with_stack=stacks)
        profile.start()
    if noop and not ctypes.CDLL(noop).Begin(True, True, outputs):
        raise SystemExit(f'{noop}: this PyTorch has no callbacks')
    times = [step() for _ in range(STEPS)]
    last = step()
    if profiler:
        start = time.perf_counter_ns()
        profile.stop()
        last += time.perf_counter_ns() - start
        result['operators'] = sum(event.count for event in profile.key_averages()) / (STEPS + 1)
    # ranktap's window ends in the last step.
    return {**result, 'step_ns': min(times), 'stop_ns': max(0, last - min(times))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('what', choices=['import', 'steps'])
    parser.add_argument('--profiler', action='store_true')
    parser.add_argument('--memory', action='store_true', help='torch.profiler with profile_memory')
    parser.add_argument('--stacks', action='store_true', help='torch.profiler with_stack')
    parser.add_argument('--noop', help='the library whose callbacks at operators do nothing')
    parser.add_argument('--outputs', action='store_true', help='they ask for outputs too')
    options = parser.parse_args()
    if options.what == 'import':
        print(json.dumps(time_import()))
    else:
        print(json.dumps(time_steps(options.profiler, options.memory, options.stacks, options.noop, options.outputs)))


if __name__ == '__main__':
    main()
