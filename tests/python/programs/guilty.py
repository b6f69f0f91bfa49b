"""Two ranks of DDP on gloo: `guilty.py NAME`. What costs the time lies on the line that ends with
`# NAME`, on rank 1."""
import logging
import sys
import time

import torch
import torch.distributed as dist


def slow_batches(name, rank):
    while True:
        if name == 'loader' and rank == 1:
            time.sleep(0.06)  # loader
        yield torch.randn(16, 32)


class Slow(torch.nn.Module):
    def __init__(self, late):
        super().__init__()
        self.late = late

    def forward(self, x):
        if self.late:
            time.sleep(0.06)  # forward
        return x


class Flushes:
    def write(self, text):
        time.sleep(0.06)  # log

    def flush(self):
        pass


def main():
    name = sys.argv[1]
    dist.init_process_group('gloo')
    rank = dist.get_rank()
    logger = logging.getLogger('job')
    logger.addHandler(logging.StreamHandler(Flushes()))
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), Slow(name == 'forward' and rank == 1), torch.nn.Linear(32, 1))
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
    batches = slow_batches(name, rank)
    for step in range(25):
        optimizer.zero_grad()
        parallel(next(batches)).sum().backward()
        optimizer.step()
        if name == 'log' and rank == 1:
            logger.error('step %s', step)
        if name == 'sleep' and rank == 1:
            time.sleep(0.06)  # sleep
    dist.destroy_process_group()


main()
