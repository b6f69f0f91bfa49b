"""Profiles a small training loop on the CPU: writes torch.profiler's trace, and its own key_averages() of it.

usage: profile_ops.py TRACE.json ROWS.json [--stacks]
"""
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function

STACKS = (1, 3, 8)


def rows(averages):
    return [{'name': row.key, 'calls': row.count, 'self_cpu': row.self_cpu_time_total, 'cpu': row.cpu_time_total,
             'self_memory': row.self_cpu_memory_usage, 'memory': row.cpu_memory_usage, 'flops': row.flops or 0,
             'shapes': str(row.input_shapes), 'stack': '; '.join(row.stack or [])} for row in averages]


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = torch.randn(4, 3, 8, 8)
    with_stack = '--stacks' in sys.argv
    verbose = torch._C._profiler._ExperimentalConfig(verbose=with_stack)  # without it torch keeps no stacks of its own
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_flops=True,
                 with_stack=with_stack, experimental_config=verbose) as profiler:
        for _ in range(4):
            with record_function('forward'):
                loss = model(data).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            profiler.step()
    profiler.export_chrome_trace(sys.argv[1])
    with open(sys.argv[2], 'w') as file:
        json.dump({'plain': rows(profiler.key_averages()),
                   'shapes': rows(profiler.key_averages(group_by_input_shape=True)),
                   **{f'stack {n}': rows(profiler.key_averages(group_by_stack_n=n)) for n in STACKS if with_stack},
                   'shapes and stack': rows(profiler.key_averages(group_by_input_shape=True, group_by_stack_n=5)),
                   'table': profiler.key_averages().table(sort_by='self_cpu_time_total', row_limit=12),
                   'self_cpu_time_total': profiler.key_averages().self_cpu_time_total}, file)


if __name__ == '__main__':
    main()
