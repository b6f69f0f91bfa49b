"""A small language model that trains on the CPU, alone or under torchrun. Its options plant what a tutorial looks for."""
import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

VOCABULARY, LENGTH = 512, 32


class Sentences(Dataset):
    """Random tokens; each sentence takes `decode_s` to read."""

    def __init__(self, decode_s):
        self.decode_s = decode_s

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        time.sleep(self.decode_s)
        generator = torch.Generator().manual_seed(index)
        return torch.randint(VOCABULARY, (LENGTH,), generator=generator)


class Block(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(x)


class Model(nn.Module):
    def __init__(self, width, wide_block):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(
            Block(width, width * (32 if i == wide_block else 4)) for i in range(4))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--steps', type=int, default=12)
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--width', type=int, default=64)
    parser.add_argument('--wide-block', type=int, default=-1, help='this block is eight times as wide')
    parser.add_argument('--slow-rank', type=int, default=-1, help='this rank sleeps in each forward pass')
    parser.add_argument('--decode-ms', type=float, default=0, help='reading one sentence takes so long')
    parser.add_argument('--workers', type=int, default=0, help='of the DataLoader')
    parser.add_argument('--leak', action='store_true', help='keep the logits of every step')
    parser.add_argument('--die-at', type=int, default=-1, help='rank 1 kills itself in this step')
    parser.add_argument('--hang-at', type=int, default=-1, help='rank 1 reads in this step what nobody writes')
    return parser.parse_args()


def main():
    args = arguments()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rank = int(os.environ.get('RANK', 0))
    model = Model(args.width, args.wide_block)
    if 'RANK' in os.environ:
        dist.init_process_group('gloo')
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    loader = DataLoader(Sentences(args.decode_ms / 1e3), args.batch, num_workers=args.workers)
    kept = []
    for step, tokens in zip(range(args.steps), loader):
        if step == args.die_at and rank == 1:
            os.kill(os.getpid(), 9)
        if step == args.hang_at and rank == 1:
            os.read(os.pipe()[0], 1)
        if rank == args.slow_rank:
            time.sleep(0.05)
        logits = model(tokens)
        if args.leak:
            kept.append(logits)
        loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if rank == 0:
        print(f'loss {loss.item():.3f} after {args.steps} steps')


if __name__ == '__main__':
    main()
