"""Five kinds of models in one, for profile-model; with an argument DeepSpeed writes its text of them there."""
import sys

import torch
from torch import nn
from torch.nn import functional


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 8))
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        return functional.softmax(self.norm(self.net(x)), -1)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.pool, self.act = nn.MaxPool2d(2), nn.SiLU()
        self.grouped, self.up = nn.Conv2d(8, 16, 3, groups=2, bias=False), nn.ConvTranspose2d(16, 4, 2, stride=2)
        self.mean, self.last = nn.AdaptiveAvgPool2d(1), nn.Linear(4, 10)

    def forward(self, x):
        x = self.act(self.pool(self.norm(self.first(x))))
        return self.last(self.mean(self.up(self.grouped(x))).flatten(1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.feed = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))

    def forward(self, x):
        q, k, v = (part.view(*x.shape[:2], 4, 8).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        return x + self.feed(x)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(100, 32), nn.Embedding(16, 32)
        self.blocks, self.head = nn.ModuleList([Block(), Block()]), nn.Linear(32, 100, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.lstm = nn.Embedding(100, 16), nn.LSTM(16, 24, 2, batch_first=True, bidirectional=True)
        self.gru, self.out = nn.GRU(48, 12, batch_first=True), nn.Linear(12, 5)

    def forward(self, tokens):
        return self.out(self.gru(self.lstm(self.tokens(tokens))[0])[0])


class Products(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(5, 5))

    def forward(self, x):
        return torch.einsum('bij,jk->bik', x, self.weight) @ self.weight


class Five(nn.Module):
    def __init__(self):
        super().__init__()
        self.perceptron, self.convolutions, self.transformer = Perceptron(), Convolutions(), Transformer()
        self.recurrent, self.products = Recurrent(), Products()

    def forward(self, rows, image, tokens):
        return (self.perceptron(rows), self.convolutions(image), self.transformer(tokens),
                self.products(self.recurrent(tokens)))


def make():
    return Five(), [torch.ones(4, 32), torch.ones(2, 3, 32, 32), torch.zeros(2, 16, dtype=torch.int64)]


if __name__ == '__main__':
    from deepspeed.profiling.flops_profiler import get_model_profile
    model, inputs = make()
    with torch.no_grad():
        get_model_profile(model.eval(), args=inputs, warm_up=1, top_modules=3, output_file=sys.argv[1])
