"""Four ranks by torch.multiprocessing.spawn: each is told its rank by an argument, no variable says it."""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, world_size, store):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{store}', rank=rank, world_size=world_size)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.ones(2, 4)).sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
    dist.barrier()
    os._exit(0)  # PyTorch 2.15's gloo sometimes calls std::terminate in the interpreter's shutdown


if __name__ == '__main__':
    mp.spawn(work, args=(4, sys.argv[1]), nprocs=4)
