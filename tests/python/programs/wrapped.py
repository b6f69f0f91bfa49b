"""Trains a model inside of two wrappers, as DistributedDataParallel and DeepSpeed's engine are."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.activation = nn.ReLU()

    def forward(self, x):
        for layer in self.layers:
            x = self.activation(layer(x))
        return x


def main():
    torch.set_num_threads(1)
    model = nn.DataParallel(nn.DataParallel(Model()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == '__main__':
    main()
