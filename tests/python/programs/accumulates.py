"""Trains with gradient accumulation and prints at its end how many samples a second it did by its own clock:
those of the steps after the first, whose batches are known."""
import time

import torch
from torch import nn

STEPS, MICRO_BATCHES, BATCH = 12, 4, 32


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.randn(BATCH, 64)
    ends = []
    for _ in range(STEPS):
        for _ in range(MICRO_BATCHES):
            time.sleep(0.005)  # the data come from somewhere
            (model(data).square().mean() / MICRO_BATCHES).backward()
        optimizer.step()
        ends.append(time.perf_counter())
        optimizer.zero_grad()
    # Of each step, from the end of the one before to its own.
    print(' '.join(f'{end - start:.9f}' for start, end in zip(ends, ends[1:])))


if __name__ == '__main__':
    main()
