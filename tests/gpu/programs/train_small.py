"""A short training on one GPU; prints what its last line says as JSON. Modes: bare, profiler."""
import argparse
import json
import re
import sys

import torch


def libcuptis():
    with open('/proc/self/maps') as maps:
        return sorted(set(re.findall(r'/\S*libcupti\.so\S*', maps.read())))


def make(model_name):
    torch.manual_seed(0)
    if model_name == 'mlp':
        model = torch.nn.Sequential(*[layer for _ in range(8)
                                      for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())])
        return model.cuda(), torch.randn(64, 256, device='cuda')
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(inplace=True),
        torch.nn.Conv2d(32, 64, 3, padding=1, stride=2), torch.nn.BatchNorm2d(64),
        torch.nn.ReLU(inplace=True), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(64, 10))
    return model.cuda(), torch.randn(16, 3, 64, 64, device='cuda')


def train(model_name, steps):
    model, data = make(model_name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        torch.cuda.nvtx.range_push(f'step_{step}')
        loss = model(data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
    return losses


def profiled(model_name, steps):
    """Kernel names and counts as torch.profiler sees them, of everything since the first kernel."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        losses = train(model_name, steps)
    profiler.export_chrome_trace('kineto.json')
    with open('kineto.json') as trace:
        events = json.load(trace)['traceEvents']
    counts = {}
    for event in events:
        if event.get('cat') == 'kernel':
            counts[event['name']] = counts.get(event['name'], 0) + 1
    return losses, counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--model', default='mlp')
    parser.add_argument('--steps', type=int, default=20)
    parser.add_argument('--mode', default='bare')
    options = parser.parse_args()
    torch.use_deterministic_algorithms(True, warn_only=True)
    counts = None
    if options.mode == 'profiler':
        losses, counts = profiled(options.model, options.steps)
    else:
        losses = train(options.model, options.steps)
    print(json.dumps({'losses': losses, 'kernels': counts, 'libcupti': libcuptis(),
                      'torch': torch.__version__, 'device': torch.cuda.get_device_name(0)}))


if __name__ == '__main__':
    sys.exit(main())
