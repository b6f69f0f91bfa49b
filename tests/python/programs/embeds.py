"""Trains modules whose operators take a parameter first."""
import torch
from torch import nn


class Product(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(5, 7))

    def forward(self, inputs):
        return self.weight @ inputs


model = nn.Sequential(nn.Embedding(50, 3), nn.Flatten(0, 1), Product())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(4):
    model(torch.zeros(1, 7, dtype=torch.int64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
