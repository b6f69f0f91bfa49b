"""Two steps of a small model under torch.profiler with all that it can record; what it writes lies in tests/data.

  profiles_itself.py TRACE [MEMORY [EXECUTION]]    TRACE.json.gz, MEMORY.raw.json.gz of export_memory_timeline, and the
                                                   file of an ExecutionTraceObserver
"""
import sys

import torch
from torch import nn
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function


class Net(nn.Module):

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.first(x))))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)

    def step():
        with record_function('batch'):
            data = torch.randn(3, 6)
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()

    step()
    observer = ExecutionTraceObserver()
    if len(sys.argv) > 3:
        observer.register_callback(sys.argv[3])
        observer.start()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=True,
                 with_flops=True, with_modules=True) as profiler:
        for _ in range(2):
            step()
            profiler.step()
    if len(sys.argv) > 3:
        observer.stop()
    profiler.export_chrome_trace(sys.argv[1])
    if len(sys.argv) > 2:
        profiler.export_memory_timeline(sys.argv[2], device='cpu')


if __name__ == '__main__':
    main()
