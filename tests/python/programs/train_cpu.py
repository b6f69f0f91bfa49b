"""A small training script that knows nothing of ranktap: prints every loss with all its bits."""
import argparse
import sys

import torch
from torch import nn


class Block(nn.Module):
    """A residual block whose ReLU works in place, as ResNet's do."""

    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.norm(self.conv(x)) + x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(8, 10)

    def forward(self, x, fail=False):
        x = self.blocks(torch.relu(self.stem(x)))
        if fail:
            raise ValueError('as asked')
        return self.head(x.mean((2, 3)))


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        # A module in a DataLoader worker: its process must leave no trace.
        with torch.no_grad():
            image = nn.Identity()(torch.full((3, 8, 8), index / 64.0))
        return image, index % 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--steps', type=int, default=6)
    parser.add_argument('--accumulate', type=int, default=1)
    parser.add_argument('--workers', type=int, default=0)
    parser.add_argument('--optimizers', type=int, default=1)
    parser.add_argument('--fail', action='store_true', help='one forward raises, and training goes on')
    parser.add_argument('--compile', action='store_true')
    parser.add_argument('--spawn', action='store_true', help='DataLoader workers by spawn')
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Net()
    if options.compile:
        model = torch.compile(model, backend='eager', fullgraph=True)
    parameters = list(model.parameters())
    optimizers = [torch.optim.Adam(parameters[i::options.optimizers], lr=1e-3) for i in range(options.optimizers)]
    loader = torch.utils.data.DataLoader(
        Images(), batch_size=8, num_workers=options.workers,
        multiprocessing_context='spawn' if options.spawn and options.workers else None)
    batches = iter(loader)
    for step in range(options.steps):
        for _ in range(options.accumulate):
            try:
                images, labels = next(batches)
            except StopIteration:
                batches = iter(loader)
                images, labels = next(batches)
            if options.fail and step == 1:
                try:
                    model(images, fail=True)
                except ValueError as failure:
                    print(f'caught {failure}')
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        print(f'step {step} loss {loss.item().hex()}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
