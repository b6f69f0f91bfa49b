"""Public models at their published sizes, on the meta device: everything is dispatched and nothing computed.
Trains three steps; or, with --infer, runs forwards in eval mode and nothing else; or, with --reference, prints
what others count in a forward, as JSON."""
import argparse
import json
import math

import torch
from torch import nn


def resnet18():
    import torchvision
    return torchvision.models.resnet18, lambda batch: torch.zeros(batch, 3, 224, 224), 1


def alexnet():
    import torchvision
    return torchvision.models.alexnet, lambda batch: torch.zeros(batch, 3, 224, 224), 256


def tokens(length):
    return lambda batch: torch.zeros(batch, length, dtype=torch.long)


def bert_base():
    import transformers
    return lambda: transformers.BertForSequenceClassification(transformers.BertConfig()), tokens(128), 4


def gpt2(batch=8):
    import transformers
    return lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config()), tokens(1024), batch


def gpt2_fused():
    """Small, as it runs on the CPU, where attention is fused."""
    import transformers
    config = transformers.GPT2Config(vocab_size=1000, n_embd=120, n_positions=64)
    return lambda: transformers.GPT2LMHeadModel(config), tokens(64), 2


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        return self.out(torch.matmul(nn.functional.softmax(scores, -1), v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.down(torch.tanh(self.up(x)))


class Sample(nn.Module):
    """What DeepSpeed's documentation profiles: layers, and heads on some of the positions."""

    def __init__(self, layers, width, heads, words, pooled, transformed, predicted):
        super().__init__()
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.pooler, self.transform = nn.Linear(width, width), nn.Linear(width, width)
        self.decoder = nn.Linear(width, words, bias=False)
        self.pooled, self.transformed, self.predicted = pooled, transformed, predicted

    def forward(self, x):
        x = self.layers(x)
        y = self.decoder(x.flatten(0, 1)[:self.predicted]).sum()
        if self.pooled:
            y = y + self.pooler(x[:, 0]).sum()
        if self.transformed:
            y = y + self.transform(x).sum()
        return y


def article_bert():
    """BERT-Large, 80 sequences of 128; 1159 masked positions are decoded."""
    return lambda: Sample(24, 1024, 16, 30528, True, True, 1159), lambda batch: torch.zeros(batch, 128, 1024), 80


def article_megatron():
    """12 layers of width 8192, 4 sequences of 1024."""
    return lambda: Sample(12, 8192, 32, 50304, False, False, 4096), lambda batch: torch.zeros(batch, 1024, 8192), 4


MODELS = {'resnet18': resnet18, 'alexnet': alexnet, 'bert-base': bert_base, 'gpt2': gpt2,
          'gpt2-one': lambda: gpt2(batch=1), 'gpt2-fused': gpt2_fused, 'article-bert': article_bert, 'article-megatron': article_megatron}


def output_of(model, data):
    output = model(data)
    return getattr(output, 'logits', output)


def count(make, data, batch):
    """FlopCounterMode of all of it; DeepSpeed, whose functions count twice on meta, of one sample on the CPU,
    to be multiplied."""
    from torch.utils.flop_counter import FlopCounterMode
    with torch.device('meta'):
        model, whole = make().eval(), data(batch)
    with FlopCounterMode(display=False) as forward:
        output_of(model, whole)
    with FlopCounterMode(display=False) as both:
        output_of(model, whole).float().square().mean().backward()
    counts = {'forward': forward.get_total_flops(), 'total': both.get_total_flops()}
    if isinstance(model, Sample) or type(model).__name__.startswith('GPT2') and batch > 1:
        return counts  # DeepSpeed counts the additions of addmm once, whatever the batch
    try:
        from deepspeed.profiling.flops_profiler import get_model_profile
    except ImportError:
        return counts
    flops, macs, parameters = get_model_profile(make(), args=[data(1)], print_profile=False, warm_up=0, as_string=False)
    return {**counts, 'deepspeed': [flops * batch, macs * batch, parameters]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('model', choices=MODELS, nargs='+')
    parser.add_argument('--reference', action='store_true')
    parser.add_argument('--infer', type=int, metavar='FORWARDS')
    options = parser.parse_args()
    if options.reference:
        print(json.dumps({name: count(*MODELS[name]()) for name in options.model}))
        return
    make, data, batch = MODELS[options.model[0]]()
    with torch.device('cpu' if options.model[0] == 'gpt2-fused' else 'meta'):
        model, whole = make().eval(), data(batch)
        for _ in range(options.infer or 0):
            output_of(model, whole)
        if options.infer:
            return
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            output_of(model, whole).float().square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == '__main__':
    main()
