"""Steps in which tensors go from operator to operator in the ways there are: views, lists, changes in place,
memory that is used again. The second is what is recorded.

  tensor_flow.py [--reference FILE | --compiled]     FILE: what PyTorch's ExecutionTraceObserver saw of it
"""
import argparse

import torch
from torch import nn


class Net(nn.Module):

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x):
        hidden = torch.relu_(self.norm(self.first(x)))
        left, right = hidden.split(4, dim=1)
        return self.last(torch.cat([right, left], dim=1))


def by_hand():
    with torch.no_grad():
        base = torch.ones(4, 4)
        part = base[1:3]
        part.mul_(3)            # changes base
        total = base.sum()      # from mul_, by the memory
        other = torch.zeros(5)
        torch._foreach_add_([base, other], 1.0)  # returns nothing
        torch.add(base, base, out=part.new_empty(4, 4))
        for _ in range(3):
            again = other + 1   # memory given back and used again
            again = again * total
            del again
        return other.neg()


def step(net, optimizer, data):
    loss = net(data).square().mean() + by_hand().sum()
    value = loss.item()
    loss.backward()
    optimizer.step()  # a step ends here
    optimizer.zero_grad()
    return value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--reference')
    parser.add_argument('--compiled', action='store_true')
    options = parser.parse_args()
    torch.manual_seed(7)
    torch.set_num_threads(1)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, foreach=False)
    if options.compiled:
        net = torch.compile(net, backend='aot_eager')
    data = torch.randn(3, 6)
    losses = [step(net, optimizer, data)]
    if options.reference:
        observer = torch.profiler.ExecutionTraceObserver()
        observer.register_callback(options.reference)
        observer.start()
        losses.append(step(net, optimizer, data))
        observer.stop()
        observer.unregister_callback()
    while len(losses) < 3:
        losses.append(step(net, optimizer, data))
    print(losses)


if __name__ == '__main__':
    main()
