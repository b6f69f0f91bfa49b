"""A short training on one GPU; prints what its last line says as JSON. Modes: bare, profiler. --threads: so many
trainings at once, each on a stream of its own. --device cpu only tries the program."""
import argparse
import json
import os
import re
import sys
import threading

# cuBLAS wants this for the same sums each time; before PyTorch loads it.
os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
import torch  # noqa: E402


def libcuptis():
    with open('/proc/self/maps') as maps:
        return sorted(set(re.findall(r'/\S*libcupti\.so\S*', maps.read())))


def make(model_name, device):
    torch.manual_seed(0)
    if model_name == 'mlp':
        model = torch.nn.Sequential(*[layer for _ in range(8)
                                      for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())])
        return model.to(device), torch.randn(64, 256, device=device)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(inplace=True),
        torch.nn.Conv2d(32, 64, 3, padding=1, stride=2), torch.nn.BatchNorm2d(64),
        torch.nn.ReLU(inplace=True), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(64, 10))
    return model.to(device), torch.randn(16, 3, 64, 64, device=device)


class Range:
    """An NVTX range where there is a GPU."""

    def __init__(self, name, device):
        self.name, self.on_gpu = name, device == 'cuda'

    def __enter__(self):
        if self.on_gpu:
            torch.cuda.nvtx.range_push(self.name)

    def __exit__(self, *unused):
        if self.on_gpu:
            torch.cuda.nvtx.range_pop()


def train(model_name, steps, device):
    model, data = make(model_name, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        with Range(f'step_{step}', device):
            loss = model(data).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    if device == 'cuda':
        torch.cuda.synchronize()
    return losses


def in_threads(count, model_name, steps, device):
    """The losses of all."""
    losses = [None] * count

    def one(index):
        if device != 'cuda':
            losses[index] = train(model_name, steps, device)
            return
        with torch.cuda.stream(torch.cuda.Stream()):
            losses[index] = train(model_name, steps, device)

    threads = [threading.Thread(target=one, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return losses


def profiled(model_name, steps, device):
    """Kernel names and counts as torch.profiler sees them, of everything since the first kernel."""
    from torch.profiler import ProfilerActivity, profile
    activity = ProfilerActivity.CUDA if device == 'cuda' else ProfilerActivity.CPU
    with profile(activities=[activity]) as profiler:
        losses = train(model_name, steps, device)
    profiler.export_chrome_trace('kineto.json')
    with open('kineto.json') as trace:
        events = json.load(trace)['traceEvents']
    counts = {}
    for event in events:
        if event.get('cat') == ('kernel' if device == 'cuda' else 'cpu_op'):
            counts[event['name']] = counts.get(event['name'], 0) + 1
    return losses, counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--model', default='mlp')
    parser.add_argument('--steps', type=int, default=20)
    parser.add_argument('--mode', default='bare')
    parser.add_argument('--threads', type=int, default=0)
    parser.add_argument('--device', default='cuda')
    options = parser.parse_args()
    torch.use_deterministic_algorithms(True, warn_only=True)
    counts = None
    if options.mode == 'profiler':
        losses, counts = profiled(options.model, options.steps, options.device)
    elif options.threads:
        losses = in_threads(options.threads, options.model, options.steps, options.device)
    else:
        losses = train(options.model, options.steps, options.device)
    name = torch.cuda.get_device_name(0) if options.device == 'cuda' else options.device
    memory = {}
    if options.device == 'cuda':
        free, whole = torch.cuda.mem_get_info()
        memory = {'peak_bytes': torch.cuda.max_memory_allocated(), 'used_bytes': whole - free}
    print(json.dumps({'losses': losses, 'kernels': counts, 'libcupti': libcuptis(), 'torch': torch.__version__,
                      'device': name, **memory}))


if __name__ == '__main__':
    sys.exit(main())
