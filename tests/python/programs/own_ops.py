"""Trains a small model for four steps. With a path: the third is under the program's own torch.profiler, whose
operators by input shapes are written there, its trace beside them."""
import json
import pathlib
import sys

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

WRITES = len(sys.argv) > 1


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Linear(8 * 36, 32), nn.GELU(), nn.Linear(32, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)

    def step():
        loss = nn.functional.cross_entropy(model(torch.randn(4, 3, 12, 12)), torch.randint(10, (4,)))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    step()
    if WRITES:
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as profiler:
            step()
        rows = [[event.key, str(event.input_shapes), event.count, event.flops]
                for event in profiler.key_averages(group_by_input_shape=True)]
        with open(sys.argv[1], 'w') as file:
            json.dump(rows, file)
        profiler.export_chrome_trace(str(pathlib.Path(sys.argv[1]).with_suffix('.trace.json')))
    else:
        step()
    step()


if __name__ == '__main__':
    main()
