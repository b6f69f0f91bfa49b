"""Trains a model that torch.compile has compiled to machine code, and prints every loss with all its bits."""
import torch
from torch import nn

STEPS = 5


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    data = torch.randn(4, 8)
    for _ in range(STEPS):
        loss = compiled(data).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item().hex(), flush=True)


if __name__ == '__main__':
    main()
