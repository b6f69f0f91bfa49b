"""Trains a layer behind a sparse parameter, which has no one address."""
import torch
from torch import nn


class Behind(nn.Module):

    def __init__(self):
        super().__init__()
        self.sparse = nn.Parameter(torch.eye(16).to_sparse())
        self.dense = nn.Linear(16, 16)

    def forward(self, x):
        return torch.sparse.mm(self.sparse, self.dense(x))


def main():
    model = Behind()
    optimizer = torch.optim.SGD(model.dense.parameters(), 0.1)
    for _ in range(4):
        model(torch.ones(16, 16)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == '__main__':
    main()
