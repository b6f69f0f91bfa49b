"""Steps whose operators take values of all kinds, for PyTorch's ExecutionTraceObserver and ours. The second
step is what is recorded.

  execution_trace.py [--reference FILE | --own FILE TRACE]
    --reference  FILE: what PyTorch's observer saw of the second step
    --own        the program's own observer (FILE) and profiler (TRACE) are on all along
"""
import argparse

import torch
from torch import nn
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function


class Net(nn.Module):

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x):
        hidden = torch.nn.functional.gelu(self.norm(self.first(x)), approximate='tanh')
        left, right = hidden.split(4, dim=1)
        return self.last(torch.cat([right, left], dim=1))


def by_hand(generator):
    with torch.no_grad(), record_function('by hand'):
        base = torch.ones(4, 4)
        part = base.t()[1:3]
        part.mul_(3.5)
        other = torch.full((5,), float('inf'), dtype=torch.float64)
        torch._foreach_add_([base, part.contiguous()], 1.0)
        torch.div(base, 3, rounding_mode='floor')
        noise = torch.rand(2, 3, generator=generator, device='cpu')
        deep = torch.zeros(2, 1, 3, 1, 2, 7).permute(5, 4, 3, 2, 1, 0)[3:].to(torch.bfloat16)
        many = torch.cat([noise] * 200)  # of more than one part
        torch.empty(0).sum()
        torch.empty(3, device='meta').add(1)
        return (base.sum() + noise.sum() + deep.float().sum() + many.sum()) * 0 + other.isinf().sum()


def step(net, optimizer, data, generator):
    loss = net(data).square().mean() + by_hand(generator)
    value = loss.item()
    loss.backward()
    optimizer.step()  # a step ends here
    optimizer.zero_grad()
    return value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--reference')
    parser.add_argument('--own', nargs=2)
    parser.add_argument('--steps', type=int, default=3)
    options = parser.parse_args()
    torch.manual_seed(7)
    torch.set_num_threads(1)
    net, generator = Net(), torch.Generator().manual_seed(3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, foreach=False)
    data = torch.randn(3, 6)
    observer = ExecutionTraceObserver()
    losses = []
    if options.own:
        observer.register_callback(options.own[0])
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, execution_trace_observer=observer) as own:
            with record_function('epoch_0'):
                losses += [step(net, optimizer, data, generator) for _ in range(options.steps)]
        own.export_chrome_trace(options.own[1])
    else:
        with record_function('epoch_0'):
            losses.append(step(net, optimizer, data, generator))
            if options.reference:
                observer.register_callback(options.reference)
                observer.start()
                losses.append(step(net, optimizer, data, generator))
                observer.stop()
                observer.unregister_callback()
            while len(losses) < options.steps:
                losses.append(step(net, optimizer, data, generator))
    print(losses)


if __name__ == '__main__':
    main()
