"""Ctrl-C in the middle of a forward: caught, or not (--raise); sent by the program, or waited for (--wait)."""
import os
import signal
import sys
import time

import torch
from torch import nn


class Interrupted(nn.Module):
    """Sends SIGINT to its own process in the forwards that it is told."""

    def __init__(self, calls):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.calls = calls

    def forward(self, x):
        self.calls -= 1
        if self.calls == 0:
            if '--wait' in sys.argv:
                print('in forward', flush=True)
            else:
                os.kill(os.getpid(), signal.SIGINT)
            while True:
                time.sleep(0.01)
        return self.inner(x)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), Interrupted(int(sys.argv[1])), nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        try:
            loss = model(torch.ones(2, 4)).sum()
        except KeyboardInterrupt:
            print('caught at', step, flush=True)
            if '--raise' in sys.argv:
                raise
            continue
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex())


if __name__ == '__main__':
    main()
