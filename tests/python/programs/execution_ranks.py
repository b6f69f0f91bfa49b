"""Two ranks with gloo: data parallel training, a point-to-point message and a collective a step, beside PyTorch's
own ExecutionTraceObserver, which writes FOLDER/host.R.json.

  execution_ranks.py PORT FOLDER
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.profiler import ExecutionTraceObserver

RANKS, STEPS = 2, 3


def step(rank, number, model, optimizer, group):
    loss = model(torch.randn(16, 64)).sum()
    optimizer.zero_grad()
    loss.backward()
    message = torch.full((256,), float(rank))
    if rank == 0:
        dist.send(message, 1, tag=number)
    else:
        dist.recv(message, 0, tag=number)
    dist.all_gather([torch.zeros(256) for _ in range(RANKS)], message, group=group)
    optimizer.step()


def train(rank, port, folder):
    os.environ['MASTER_ADDR'], os.environ['MASTER_PORT'] = '127.0.0.1', port
    torch.set_num_threads(1)
    dist.init_process_group('gloo', rank=rank, world_size=RANKS)
    dist.new_group([0], backend='gloo')
    group = dist.new_group(list(range(RANKS)), backend='gloo')  # of the size of the first
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=.01)
    observer = ExecutionTraceObserver().register_callback(f'{folder}/host.{rank}.json')
    observer.start()
    for number in range(STEPS):
        step(rank, number, model, optimizer, group)
    observer.stop()
    observer.unregister_callback()
    dist.destroy_process_group()


if __name__ == '__main__':
    mp.spawn(train, args=(sys.argv[1], sys.argv[2]), nprocs=RANKS)
