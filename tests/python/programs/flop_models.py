"""ResNet-50 and a small GPT, from torch alone: trains three steps; or, with --reference, prints what
torch.utils.flop_counter says of one step, as JSON."""
import argparse
import json

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        out = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inside != out:
            self.downsample = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        inside = 64
        for number, (width, blocks) in enumerate(zip((64, 128, 256, 512), (3, 4, 6, 3)), 1):
            layer = []
            for block in range(blocks):
                layer.append(Bottleneck(inside, width, 2 if block == 0 and number > 1 else 1))
                inside = 4 * width
            setattr(self, f'layer{number}', nn.Sequential(*layer))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(2048, 1000)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for number in range(1, 5):
            x = getattr(self, f'layer{number}')(x)
        return self.fc(self.avgpool(x).flatten(1))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.ln_1(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, recompute, width=64, heads=4, layers=3, words=500):
        super().__init__()
        self.recompute = recompute
        self.wte = nn.Embedding(words, width)
        self.h = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.wte.weight  # tied

    def forward(self, tokens):
        x = self.wte(tokens)
        for layer in self.h:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        return self.head(x)


def counts(model, data):
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as forward:
        output = model(data)
    modules = {name: sum(by_operator.values()) for name, by_operator in forward.get_flop_counts().items()}
    with FlopCounterMode(display=False) as both:
        model(data).float().square().mean().backward()
    return {'forward': modules, 'total': both.get_total_flops()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('model', choices=['resnet50', 'gpt', 'gpt-recompute'])
    parser.add_argument('--reference', action='store_true')
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.model == 'resnet50':
        model, data = ResNet(), torch.randn(1, 3, 224, 224)
    else:
        model, data = GPT(options.model == 'gpt-recompute'), torch.randint(500, (2, 32))
    if options.reference:
        print(json.dumps(counts(model, data)))
        return
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(3):
        loss = model(data).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item().hex())


if __name__ == '__main__':
    main()
