"""The articles' data-parallel program: 4 processes, gloo, torch.profiler in each; rankN.json in the folder named."""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS, EPOCHS = 4, 3


def train(rank, port, folder):
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=port)
    torch.set_num_threads(1)
    dist.init_process_group('gloo', rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(64, 10), torch.randint(0, 2, (64, 1)).float())
    sampler = DistributedSampler(data, num_replicas=RANKS, rank=rank, shuffle=True)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 5), nn.ReLU(), nn.Linear(5, 1), nn.Sigmoid()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        for epoch in range(EPOCHS):
            sampler.set_epoch(epoch)
            with record_function(f'epoch_{epoch}'):
                for inputs, targets in loader:
                    optimizer.zero_grad()
                    loss = nn.functional.mse_loss(model(inputs), targets)
                    loss.backward()
                    optimizer.step()
    profiler.export_chrome_trace(f'{folder}/rank{rank}.json')
    dist.barrier()
    # PyTorch's gloo now and then calls std::terminate when the interpreter shuts down, without us too.
    os._exit(0)


if __name__ == '__main__':
    mp.spawn(train, args=(sys.argv[2], sys.argv[1]), nprocs=RANKS)
