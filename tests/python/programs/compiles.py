"""Says, of each way to compile a model, how many frames Dynamo compiled and what each graph's size was.

  compiles.py
"""
import json

import torch
from torch import nn
from torch._dynamo.utils import counters

STEPS = 6
graphs = []


def backend(graph, _):
    graphs.append(len(graph.graph.nodes))
    return graph.forward


class Block(nn.Module):
    def __init__(self, breaks):
        super().__init__()
        self.linear, self.norm, self.breaks = nn.Linear(8, 8), nn.BatchNorm1d(8), breaks

    def forward(self, x):
        x = torch.relu(self.norm(self.linear(x)))
        if self.breaks:
            torch._dynamo.graph_break()
        return x


class Net(nn.Module):
    def __init__(self, breaks):
        super().__init__()
        self.body, self.head = nn.Sequential(Block(breaks), Block(False)), nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x))


def compile_whole(model, with_backend=backend):
    return torch.compile(model, backend=with_backend)


def compile_body(model):
    model.body = torch.compile(model.body, backend=backend)
    return model


def compile_in_place(model):
    model.compile(backend=backend)
    return model


def compile_after_a_forward(model):
    model(torch.randn(4, 8))
    return compile_whole(model)


def train(make, breaks, batches):
    torch._dynamo.reset()
    counters.clear()
    graphs.clear()
    model = Net(breaks)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    forward = make(model)
    for batch in batches:
        forward(torch.randn(batch, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return {'frames': counters['frames']['total'], 'ok': counters['frames']['ok'], 'graphs': list(graphs),
            'breaks': sum(counters['graph_break'].values())}


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    fixed, growing = [4] * STEPS, [4, 4, 5, 5, 6, 6]
    for name, *case in (('after a forward', compile_after_a_forward, False, fixed),
                        ('whole', compile_whole, False, fixed),
                        ('whole by AOTAutograd', lambda model: compile_whole(model, 'aot_eager'), False, fixed),
                        ('broken', compile_whole, True, fixed),
                        ('recompiled', compile_whole, True, growing),
                        ('body', compile_body, False, fixed),
                        ('in place', compile_in_place, False, fixed),
                        ('function', lambda model: torch.compile(lambda x: model(x), backend=backend), False, fixed)):
        print(json.dumps({'case': name, **train(*case)}))


if __name__ == '__main__':
    main()
