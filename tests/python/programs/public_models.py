"""Trains public models with random weights, as their users do, and prints every loss with all its bits.

usage: public_models.py {resnet50,gpt2,bert} [--steps N]
       public_models.py MODEL --paths    what PyTorch itself says: [operator, module path, calls] of one
                                         forward, as JSON
"""
import argparse
import collections
import json

import torch


def resnet50():
    import torchvision
    model = torchvision.models.resnet50(weights=None)
    images, labels = torch.randn(2, 3, 64, 64), torch.tensor([1, 2])
    return model, lambda: torch.nn.functional.cross_entropy(model(images), labels)


def gpt2():
    """GPT-2's own 12 layers and heads, at a sixth of its width."""
    import transformers
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=1000, n_embd=120, n_positions=64))
    tokens = torch.randint(1000, (2, 32))
    return model, lambda: model(tokens, labels=tokens).loss


def bert():
    """BERT-base's 12 layers and heads, at a sixth of its width."""
    import transformers
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=1000, hidden_size=120, intermediate_size=480, max_position_embeddings=64))
    tokens, labels = torch.randint(1000, (2, 32)), torch.tensor([0, 1])
    return model, lambda: model(tokens, labels=labels).loss


MODELS = {'resnet50': resnet50, 'gpt2': gpt2, 'bert': bert}


def paths_of(model, forward):
    """Operators as torch.profiler sees them, modules as ModuleTracker, which is FlopCounterMode's, names them."""
    from torch.profiler import ProfilerActivity, profile, record_function
    from torch.utils.module_tracker import ModuleTracker
    tracker, open_ranges = ModuleTracker(), []
    with tracker:
        def enter(module, _):
            open_ranges.append(record_function('module ' + tracker._get_mod_name(module)))
            open_ranges[-1].__enter__()

        torch.nn.modules.module.register_module_forward_pre_hook(enter)
        torch.nn.modules.module.register_module_forward_hook(lambda *_: open_ranges.pop().__exit__(None, None, None))
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            forward()
    calls = collections.Counter()
    for event in profiler.events():
        parent = event.cpu_parent
        while parent is not None and not parent.name.startswith('module '):
            parent = parent.cpu_parent
        if event.name.startswith('aten::'):
            calls[event.name, '' if parent is None else parent.name.removeprefix('module ')] += 1
    return [[*key, count] for key, count in sorted(calls.items())]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('model', choices=MODELS)
    parser.add_argument('--steps', type=int, default=3)
    parser.add_argument('--paths', action='store_true')
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, forward = MODELS[options.model]()
    if options.paths:
        print(json.dumps(paths_of(model, forward)))
        return
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(options.steps):
        loss = forward()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item().hex(), flush=True)


if __name__ == '__main__':
    main()
