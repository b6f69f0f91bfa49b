"""Trains a small model on the CPU, alone or under torchrun, with costs planted that one option each takes away."""
import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

WIDTH, BATCH = 256, 32


class Rows(Dataset):
    def __init__(self, seconds):
        self.seconds = seconds

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        if self.seconds:  # sleep(0) gives the processor away
            time.sleep(self.seconds)
        return torch.full((WIDTH,), float(index % 7))


class Sleep(torch.autograd.Function):
    """Takes its time in both passes whoever else wants the processor."""

    @staticmethod
    def forward(ctx, x, seconds):
        ctx.seconds = seconds
        time.sleep(seconds)
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(2 * ctx.seconds)
        return gradient * 1.0, None


class Block(nn.Module):
    def __init__(self, hidden, asleep):
        super().__init__()
        self.seconds = hidden * 1.5e-6 if asleep else 0
        size = hidden // 32 if asleep else hidden
        self.up, self.down = nn.Linear(WIDTH, size), nn.Linear(size, WIDTH)

    def forward(self, x):
        if self.seconds:
            x = Sleep.apply(x, self.seconds)
        return x + self.down(torch.relu(self.up(x)))


class Router(nn.Module):
    """Stands for Python code that a module runs."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def forward(self, x):
        if self.seconds:
            time.sleep(self.seconds)
        return x * 1.0


class Model(nn.Module):
    def __init__(self, hidden, router_s, asleep):
        super().__init__()
        self.router = Router(router_s)
        self.blocks = nn.ModuleList(Block(size, asleep) for size in hidden)
        self.head = nn.Linear(WIDTH, 16)

    def forward(self, x):
        x = self.router(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--steps', type=int, default=50)
    parser.add_argument('--hidden', type=int, nargs='+', default=[2048, 2048, 2048, 2048])
    parser.add_argument('--asleep', action='store_true', help='blocks sleep where they would compute')
    parser.add_argument('--router-ms', type=float, default=0)
    parser.add_argument('--row-us', type=float, default=0, help='reading one row takes so long')
    parser.add_argument('--workers', type=int, default=0)
    parser.add_argument('--log-ms', type=float, default=0, help='of each rank')
    parser.add_argument('--note-ms', type=float, default=0, help='of rank 0 alone')
    parser.add_argument('--late-ms', type=float, default=0, help='of rank 1 alone, in each forward pass')
    parser.add_argument('--metric-mb', type=float, default=0, help='all-reduced each step, beside the gradients')
    return parser.parse_args()


def main():
    args = arguments()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rank = int(os.environ.get('RANK', 0))
    model = Model(args.hidden, args.router_ms / 1e3, args.asleep)
    if 'RANK' in os.environ:
        dist.init_process_group('gloo')
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    metric = torch.zeros(int(args.metric_mb * 250_000))
    loader = DataLoader(Rows(args.row_us / 1e6), BATCH, num_workers=args.workers)
    for _, rows in zip(range(args.steps), loader):
        if rank == 1 and args.late_ms:
            time.sleep(args.late_ms / 1e3)
        loss = model(rows.requires_grad_()).square().mean()  # so that the first block has a backward pass, too
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if metric.numel():
            dist.all_reduce(metric)  # line: metric
        if args.log_ms:
            time.sleep(args.log_ms / 1e3)  # line: log
        if args.note_ms and rank == 0:
            time.sleep(args.note_ms / 1e3)  # line: note


if __name__ == '__main__':
    main()
