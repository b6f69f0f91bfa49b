"""Trains a small model whose memory is known in closed form; prints every loss with all its bits."""
import sys

import torch
from torch import nn

BATCH, INPUT, HIDDEN, OUTPUT = 32, 48, 64, 16


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(INPUT, HIDDEN)
        self.act = nn.ReLU()
        self.last = nn.Linear(HIDDEN, OUTPUT)

    def forward(self, x):
        return self.last(self.act(self.first(x)))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    kept = []
    for _ in range(5):
        data, target = torch.randn(BATCH, INPUT), torch.randn(BATCH, OUTPUT)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if '--leak' in sys.argv:
            kept.append(torch.zeros(1000))
        print(loss.item().hex())


if __name__ == '__main__':
    main()
