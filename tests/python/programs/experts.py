"""A mixture whose experts four ranks would share, marked as DeepSpeed marks them, after a layer that ZeRO-3 would
leave empty between its forwards, with a quarter of it on this rank."""
import types

import torch
from torch import nn

WIDTH, EXPERTS, RANKS = 8, 2, 4


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.gate = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS))
        for parameter in self.experts.parameters():
            parameter.group_name = f'ep_size_{RANKS}'

    def forward(self, x):
        x = self.first(x)
        shares = self.gate(x).softmax(-1)
        return sum(shares[:, i:i + 1] * expert(x) for i, expert in enumerate(self.experts))


def leave_empty(layer):
    """Whole in its forwards alone, as parameters are that ZeRO-3 splits."""
    weight, whole = layer.weight.requires_grad_(False), layer.weight.data
    weight.ds_numel = whole.numel()
    weight.data = torch.empty(0)
    weight.ds_tensor = whole.flatten()[:whole.numel() // RANKS].bfloat16()
    # DeepSpeed's are longer: they hold many parameters. Their types and names are what counts.
    flat = weight.ds_tensor.float()
    adam = {'step': torch.tensor(1.0), 'exp_avg': flat, 'exp_avg_sq': flat}
    weight._z3_optimizer = types.SimpleNamespace(
        grad_partitions_flat_buffer=weight.ds_tensor, fp32_partitioned_groups_flat=[flat],
        optimizer=types.SimpleNamespace(state={flat: adam}))

    def fill(*_):
        weight.data = whole

    def drop(*_):
        weight.data = torch.empty(0)

    layer.register_forward_pre_hook(fill)
    layer.register_forward_hook(drop)


def main():
    torch.manual_seed(0)
    model = Mixture()
    leave_empty(model.first)
    # As ZeRO-1 and -2 do it: this rank keeps the master copy of the first half of the gate's weight.
    half = model.gate.weight.data.flatten()[:WIDTH * EXPERTS // 2].clone()
    model.gate.weight._hp_mapping = types.SimpleNamespace(hp_fragment=half)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    for _ in range(4):
        model(torch.randn(5, WIDTH)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == '__main__':
    main()
