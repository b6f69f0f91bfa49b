"""A loader whose workers spend 80 % of their time on one line: `loads.py slow`; or a third on each of three: `loads.py even`."""
import sys
import time

import torch

SLOW = sys.argv[1] == 'slow'


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, i):
        if SLOW:
            time.sleep(0.008)  # slow
            time.sleep(0.002)
        else:
            time.sleep(0.004)
            time.sleep(0.004)
            time.sleep(0.004)
        return torch.ones(8) * i


def main():
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in torch.utils.data.DataLoader(Items(), batch_size=4, num_workers=2):
        optimizer.zero_grad()
        model(batch).sum().backward()
        time.sleep(0.008)
        optimizer.step()


if __name__ == '__main__':
    main()
