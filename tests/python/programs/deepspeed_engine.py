"""DeepSpeed's engine on the CPU: `experts` trains a mixture of four whose ranks have two each, with DeepSpeed's own
Flops Profiler, whose text goes to FOLDER/RANK; `zero3` a model that ZeRO-3 splits between the ranks.

  deepspeed --num_gpus 2 deepspeed_engine.py experts|zero3 FOLDER
"""
import os
import sys

import deepspeed
import torch
from deepspeed.moe.layer import MoE
from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer
from torch import nn

WIDTH = 16
ADAM = {'type': 'Adam', 'params': {'lr': 1e-3, 'torch_adam': True}}


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        expert = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, WIDTH))
        self.moe = MoE(WIDTH, expert, num_experts=4, ep_size=2, k=1)
        self.last = nn.Linear(WIDTH, 4)

    def forward(self, x):
        x, loss, _ = self.moe(self.first(x))
        return self.last(x).sum() + loss


def experts(folder):
    model = Mixture()
    parameters = split_params_into_different_moe_groups_for_optimizer({'params': list(model.parameters()), 'name': 'all'})
    profiler = {'enabled': True, 'profile_step': 1, 'output_file': f'{folder}/{os.environ["RANK"]}'}
    return model, parameters, {'flops_profiler': profiler}, torch.float32


def zero3(_):
    model = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, 8))
    splitting = {'stage': 3, 'stage3_param_persistence_threshold': 0}
    config = {'bf16': {'enabled': True}, 'zero_optimization': splitting, 'zero_allow_untested_optimizer': True}
    return model, model.parameters(), config, torch.bfloat16


def main():
    which, folder = [word for word in sys.argv[1:] if not word.startswith('--')]
    deepspeed.init_distributed('gloo')
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, parameters, config, dtype = {'experts': experts, 'zero3': zero3}[which](folder)
    engine, *_ = deepspeed.initialize(model=model, model_parameters=parameters, config={
        'train_micro_batch_size_per_gpu': 8, 'optimizer': ADAM, **config})
    for _ in range(4):
        loss = engine(torch.randn(8, WIDTH, dtype=dtype)).sum()
        engine.backward(loss)
        engine.step()
    torch.distributed.barrier()
    # PyTorch's gloo now and then calls std::terminate when the interpreter shuts down, without us too.
    os._exit(0)


if __name__ == '__main__':
    main()
