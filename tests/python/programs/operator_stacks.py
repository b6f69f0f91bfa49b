"""Operators called from several places. `--profiler FILE` writes how often torch.profiler(with_stack=True) sees each
operator below which functions of this file; --depth: of the deepest; --places: how many more ways lead to one."""
import argparse
import collections
import json
import os
import re

import torch
from torch import nn

STEPS = 3
HERE = os.path.basename(__file__)


def first_place(x):
    return torch.mm(x, x)


def second_place(x):
    return first_place(x) + torch.mm(x, x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return second_place(self.layer(x).sin())


def deep(depth, x):
    return x.cos() if depth == 0 else deep(depth - 1, x)


def turn_left(way, turns):
    return go(way, turns)


def turn_right(way, turns):
    return go(way, turns)


def go(way, turns):
    if turns == 0:
        return torch.zeros(1)
    return (turn_left if way & 1 else turn_right)(way >> 1, turns - 1)


def train_step(model, optimizer, data, depth, places):
    for way in range(places):
        go(way, 15)
    loss = model(data).square().mean() + deep(depth, data).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def functions_in(stack):
    """Of this file, the innermost first."""
    found = (re.match(r'(.*)\(\d+\): (\w+)$', frame) for frame in stack)
    return [frame[2] for frame in found if frame and os.path.basename(frame[1]) == HERE]


def in_backward(event):
    while event is not None and not event.name.startswith('autograd::engine::'):
        event = event.cpu_parent
    return event is not None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--profiler')
    parser.add_argument('--depth', type=int, default=40)
    parser.add_argument('--places', type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
    data = torch.randn(8, 8)
    train_step(model, optimizer, data, options.depth, options.places)
    if options.profiler is None:
        for _ in range(STEPS):
            print(train_step(model, optimizer, data, options.depth, options.places))
        return
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True,
                                experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True)) as profile:
        for _ in range(STEPS):
            train_step(model, optimizer, data, options.depth, options.places)
    counts = collections.Counter()
    for event in profile.events():
        if event.name.startswith('aten::') and event.stack and not in_backward(event):
            counts[' '.join([event.name, *functions_in(event.stack)])] += 1
    with open(options.profiler, 'w', encoding='utf-8') as file:
        json.dump(counts, file)


if __name__ == '__main__':
    main()
