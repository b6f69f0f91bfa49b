"""A model of bfloat16 and float32 layers, trained by an Adam that keeps float32 copies of what is
bfloat16, as mixed precision training does: 2 + 2 + 4 + 4 + 4 bytes a parameter."""
import torch
from torch import nn

WIDTH, BATCH, STEPS = 24, 4, 6


class MasterAdam(torch.optim.Optimizer):
    def __init__(self, parameters, lr=1e-3):
        super().__init__(parameters, {'lr': lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group['params']:
                state = self.state[p]
                if not state:
                    if p.dtype != torch.float32:
                        state['master'] = p.float()
                    state['exp_avg'] = torch.zeros_like(p, dtype=torch.float32)
                    state['exp_avg_sq'] = torch.zeros_like(p, dtype=torch.float32)
                gradient = p.grad.float()
                state['exp_avg'].lerp_(gradient, 0.1)
                state['exp_avg_sq'].lerp_(gradient * gradient, 0.001)
                master = state.get('master', p)
                master.addcdiv_(state['exp_avg'], state['exp_avg_sq'].sqrt() + 1e-8, value=-group['lr'])
                if master is not p:
                    p.copy_(master)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(self.act(self.up(x)))


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block()).to(torch.bfloat16)
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x):
        return self.head(self.blocks(x.to(torch.bfloat16)).float())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Mixed()
    optimizer = MasterAdam(model.parameters())
    for _ in range(STEPS):
        loss = model(torch.randn(BATCH, WIDTH)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())


if __name__ == '__main__':
    main()
