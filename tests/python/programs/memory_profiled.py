"""memory_model.py's training under torch.profiler: what its memory timeline says was held at the peak of steps 1
and 2, by category, as JSON."""
import json

import memory_model
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.profiler._memory_profiler import _CATEGORY_TO_INDEX, MemoryProfileTimeline


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = memory_model.Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        data = torch.randn(memory_model.BATCH, memory_model.INPUT)
        target = torch.randn(memory_model.BATCH, memory_model.OUTPUT)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(data), target).backward()
        optimizer.step()

    step()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=True) as profiler:
        step()
        step()
    _, sizes = MemoryProfileTimeline(profiler._memory_profile())._coalesce_timeline('cpu')
    peak = max(sizes, key=sum)
    print(json.dumps({'UNKNOWN' if category is None else category.name: peak[index + 1]
                      for category, index in _CATEGORY_TO_INDEX.items()}))


if __name__ == '__main__':
    main()
