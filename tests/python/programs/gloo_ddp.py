"""Data parallel training on the CPU as tutorials do it: 4 processes by torch.multiprocessing.spawn or torchrun, gloo,
DistributedSampler, DistributedDataParallel. Rank 0 prints the loss of each epoch with all its bits."""
import gc
import io
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.profiler import record_function

EPOCHS, ROWS, BATCH, RANKS = 2, 64, 8, 4


def train(rank, port):
    os.environ['MASTER_ADDR'], os.environ['MASTER_PORT'] = '127.0.0.1', port
    dist.init_process_group('gloo', rank=rank, world_size=RANKS)
    pair = dist.new_group([0, 1])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = torch.utils.data.TensorDataset(torch.randn(ROWS, 10), torch.rand(ROWS, 1))
    sampler = torch.utils.data.distributed.DistributedSampler(data, shuffle=True)
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(10, 5), nn.ReLU(), nn.Linear(5, 1), nn.Sigmoid()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        with record_function(f'epoch_{epoch}'):
            for inputs, targets in loader:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(inputs), targets)
                loss.backward()
                optimizer.step()
        gc.collect()
        torch.save(model.state_dict(), io.BytesIO())
        if rank == 0:
            print(f'epoch {epoch} loss {loss.item().hex()}', flush=True)
    if rank < 2:
        dist.broadcast(torch.ones(1000), 0, group=pair)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == '__main__':
    if 'RANK' in os.environ:
        train(int(os.environ['RANK']), os.environ['MASTER_PORT'])
        os._exit(0)  # PyTorch 2.15's gloo sometimes calls std::terminate in the interpreter's shutdown
    mp.spawn(train, args=(sys.argv[1],), nprocs=RANKS)
