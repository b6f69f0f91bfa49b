"""Models from torch alone: trains three steps; or, with --reference, prints what others count in one
step, as JSON: torch.utils.flop_counter, and DeepSpeed's profiler where it is installed."""
import argparse
import contextlib
import io
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


class Functions(nn.Module):
    """What DeepSpeed counts beside layers: sums over named indices, other sizes of an image, recurrent layers."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(20, 32, 2, batch_first=True, bidirectional=True)
        self.projected, self.gru, self.rnn = nn.LSTM(64, 40, proj_size=24), nn.GRU(24, 16), nn.RNN(16, 8, bias=False)
        self.cells = nn.ModuleList([nn.LSTMCell(8, 12), nn.GRUCell(12, 6), nn.RNNCell(6, 5, nonlinearity='relu')])
        self.larger, self.other = nn.Upsample(scale_factor=2.5), nn.Upsample(size=(9, 7), mode='bilinear')
        self.weight = nn.Parameter(torch.randn(20, 20))

    def forward(self, x):
        x = torch.einsum('bij,jk->bik', x, self.weight) + torch.einsum('bij,b->bij', x, x[:, 0, 0])
        y = self.rnn(self.gru(self.projected(self.lstm(x)[0])[0])[0])[0]
        h = self.cells[2](self.cells[1](self.cells[0](y[0])[0]))
        return h.mean() + self.other(self.larger(y[None])).mean() + torch.einsum('ii', self.weight)


def functions():
    return Functions(), torch.randn(4, 6, 20)


def mlp():
    return nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(inplace=True), nn.Dropout(0.1),
                         nn.Linear(64, 48, bias=False), nn.LayerNorm(48), nn.GELU(),
                         nn.Linear(48, 10), nn.Softmax(-1)), torch.randn(32, 20)


def convolutions():
    """What a convolution can be: strided, padded, dilated, grouped, transposed."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.GroupNorm(4, 16), nn.SiLU(),
        nn.Conv2d(16, 32, (3, 5), padding=(1, 2), dilation=2, groups=4, bias=False), nn.BatchNorm2d(32),
        nn.LeakyReLU(inplace=True), nn.MaxPool2d(2),
        nn.ConvTranspose2d(32, 8, 3, stride=2, padding=1, output_padding=1), nn.ReLU6(), nn.AvgPool2d(2),
        nn.Flatten(2), nn.Conv1d(8, 6, 4, stride=3), nn.ELU(), nn.AdaptiveAvgPool1d(5)), torch.randn(2, 3, 40, 36)


def resnet50():
    return ResNet(), torch.randn(1, 3, 224, 224)


def gpt(recompute=False):
    return GPT(recompute), torch.randint(500, (2, 32))


MODELS = {'mlp': mlp, 'functions': functions, 'convolutions': convolutions, 'resnet50': resnet50, 'gpt': gpt,
          'gpt-recompute': lambda: gpt(recompute=True)}


def count(model, data):
    from torch.utils.flop_counter import FlopCounterMode
    root = type(model).__name__
    with FlopCounterMode(display=False) as forward:
        model(data)
    modules = {name: sum(by_operator.values()) for name, by_operator in forward.get_flop_counts().items()}
    with FlopCounterMode(display=False) as both:
        model(data).float().square().mean().backward()
    try:
        from deepspeed.profiling.flops_profiler import profiler
    except ImportError:
        return {'forward': modules, 'total': both.get_total_flops()}
    profile = profiler.FlopsProfiler(model)
    profile.start_profile()
    model(data)
    profile.stop_profile()
    deepspeed = {f'{root}.{name}' if name else root: [profiler.get_module_flops(module), profiler.get_module_macs(module),
                                                      module.__params__]
                 for name, module in model.named_modules()}
    with contextlib.redirect_stdout(io.StringIO()) as text:
        profile.print_model_profile()
    profile.end_profile()
    return {'forward': modules, 'total': both.get_total_flops(), 'deepspeed': deepspeed, 'text': text.getvalue()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('model', choices=MODELS, nargs='*')
    parser.add_argument('--reference', action='store_true')
    options = parser.parse_args()
    if options.reference:
        print(json.dumps({name: count(*MODELS[name]()) for name in options.model}))
        return
    for name in options.model:
        torch.manual_seed(0)
        model, data = MODELS[name]()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        for _ in range(3):
            loss = model(data).float().square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            print(loss.item().hex())


if __name__ == '__main__':
    main()
