"""The optimizer calls the forward and the backward pass, as Lightning has it."""
import time

import torch
from torch import nn


class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 1)

    def forward(self, x):
        time.sleep(0.02)
        return self.linear(x)


def main():
    torch.set_num_threads(1)
    model = Slow()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).sum()
        loss.backward()
        return loss

    for _ in range(6):
        optimizer.step(closure)


if __name__ == '__main__':
    main()
