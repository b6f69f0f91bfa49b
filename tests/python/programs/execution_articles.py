"""The articles' data-parallel program: N processes, gloo, PyTorch's own ExecutionTraceObserver in each, which writes
FOLDER/host.R.json. With a LIBRARY, of recorded_collectives.cc, each step also records collectives as NCCL does.

  execution_articles.py RANKS PORT FOLDER [LIBRARY]
"""
import ctypes
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ExecutionTraceObserver, record_function
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS = 3


def step(model, optimizer, inputs, targets):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()


def train(rank, ranks, port, folder, library):
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=port)
    torch.set_num_threads(1)
    dist.init_process_group('gloo', rank=rank, world_size=ranks)
    recorded = ctypes.CDLL(library) if library else None
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 10), torch.randint(0, 2, (64, 1)).float())
    sampler = DistributedSampler(data, num_replicas=ranks, rank=rank, shuffle=True)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 5), nn.ReLU(), nn.Linear(5, 1), nn.Sigmoid()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    observer = ExecutionTraceObserver().register_callback(f'{folder}/host.{rank}.json')
    observer.start()
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        with record_function(f'epoch_{epoch}'):
            for inputs, targets in loader:
                if recorded:
                    recorded.RecordCollectives(rank, ranks)
                message = torch.full((256,), float(rank))
                if rank % 2 == 0:  # to the next, of pairs
                    dist.send(message, rank + 1, tag=epoch)
                else:
                    dist.recv(message, rank - 1, tag=epoch)
                step(model, optimizer, inputs, targets)
    observer.stop()
    observer.unregister_callback()
    dist.barrier()
    # PyTorch's gloo now and then calls std::terminate when the interpreter shuts down, without us too.
    os._exit(0)


if __name__ == '__main__':
    RANKS = int(sys.argv[1])
    mp.spawn(train, args=(RANKS, sys.argv[2], sys.argv[3], (sys.argv[4:] or [None])[0]), nprocs=RANKS)
