"""A forward of a public model of images on the CPU, as torchstat runs it, and what torchstat's own formulas say.

usage: layer_models.py {alexnet,resnet50,mobilenet_v2}            one step of inference
       layer_models.py MODEL --formulas                          {module: [madd, flops, read, written]} as JSON

torchstat (b52a3b0) calls np.long and DataFrame.append, which numpy and pandas no longer have: its formulas are
repeated here, from the modules and what they take and return, in the order of its compute_*.py. Of a module that
runs several times in a forward it keeps the last call; here they are added up.
"""
import argparse
import collections
import json
import math

import torch
import torchvision
from torch import nn

IMAGES = 2


def formulas(module, x, y):
    one, batch = math.prod(x.shape[1:]), x.shape[0]
    parameters = sum(p.numel() for p in module.parameters())
    def moved(read):
        return (4 * read, 4 * y.numel())

    if isinstance(module, nn.Conv2d):
        k_h, k_w = module.kernel_size
        multiply = k_h * k_w * (x.shape[1] // module.groups)
        add = multiply - 1 + (module.bias is not None)
        places = y.shape[2] * y.shape[3]
        flops = k_h * k_w * x.shape[1] * (y.shape[1] // module.groups) * batch * places
        flops += y.shape[1] * batch * places if module.bias is not None else 0
        return (multiply + add) * places * y.shape[1], flops, *moved(batch * (one + parameters))
    if isinstance(module, nn.BatchNorm2d):
        return 4 * one, 2 * x.numel(), *moved(batch * (one + 2 * x.shape[1]))
    if isinstance(module, nn.MaxPool2d):
        return (module.kernel_size**2 - 1) * math.prod(y.shape[1:]), x.numel(), *moved(x.numel())
    if isinstance(module, (nn.ReLU, nn.ReLU6)):
        return one, x.numel(), *moved(x.numel())
    if isinstance(module, nn.Linear):
        return y.shape[1] * (2 * x.shape[1] - 1), batch * x.shape[1] * y.shape[1], *moved(batch * (one + parameters))
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('model')
    parser.add_argument('--formulas', action='store_true')
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = getattr(torchvision.models, options.model)(weights=None).eval()
    images = torch.randn(IMAGES, 3, 224, 224)
    if not options.formulas:
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):  # the agent records the last one operator by operator
            optimizer.zero_grad()
            model(images).sum().backward()
            optimizer.step()
        return
    counts = collections.defaultdict(lambda: [0, 0, 0, 0])
    root = type(model).__name__
    for name, module in model.named_modules():
        if list(module.children()):
            continue

        def add(module, inputs, output, name=name):
            counted = formulas(module, inputs[0], output)
            for path in [root] + [f'{root}.{name[:i]}' for i in range(1, len(name) + 1)
                                  if i == len(name) or name[i] == '.'] if counted else []:
                counts[path] = [a + b for a, b in zip(counts[path], counted)]

        # In-place ReLUs are why shapes, not tensors, are kept.
        module.register_forward_hook(add)
    with torch.no_grad():
        model(images)
    print(json.dumps(counts))


main()
