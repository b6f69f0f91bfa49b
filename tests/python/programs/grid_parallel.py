"""Four ranks as a grid of 2 x 2: data parallel by tensor parallel, with gradients of 4 micro-batches
accumulated. Prints nothing but what it multiplies."""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.nn.functional import all_reduce

STEPS, MICRO_BATCHES, BATCH, WIDTH = 6, 4, 8, 16
RANKS = 4


class Sharded(nn.Module):
    """Two linear layers, the first split by columns, the second by rows."""

    def __init__(self, group):
        super().__init__()
        self.group = group
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return all_reduce(self.down(torch.relu(self.up(x))), group=self.group)


def train(rank, port, named):
    os.environ['MASTER_ADDR'], os.environ['MASTER_PORT'] = '127.0.0.1', port
    dist.init_process_group('gloo', rank=rank, world_size=RANKS)
    torch.set_num_threads(1)
    if named:
        mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('dp', 'tp'))
        data, tensor = mesh['dp'].get_group(), mesh['tp'].get_group()
    else:
        columns, rows = ([dist.new_group(ranks) for ranks in groups]
                         for groups in (((0, 2), (1, 3)), ((0, 1), (2, 3))))
        data, tensor = columns[rank % 2], rows[rank // 2]
    model = nn.parallel.DistributedDataParallel(Sharded(tensor), process_group=data)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        for micro in range(MICRO_BATCHES):
            model.require_backward_grad_sync = micro == MICRO_BATCHES - 1
            model(torch.ones(BATCH, WIDTH)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == '__main__':
    mp.spawn(train, args=(sys.argv[1], '--named' in sys.argv), nprocs=RANKS)
