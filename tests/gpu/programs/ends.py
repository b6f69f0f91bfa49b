"""A short CUDA process that ends in the way its argument names."""
import os
import signal
import sys

import torch


def work():
    a = torch.ones(64, 64, device='cuda')
    for _ in range(10):
        a = a @ a / 64
    torch.cuda.synchronize()
    print(float(a.sum()), flush=True)


def with_workers():
    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 16

        def __getitem__(self, index):
            return torch.tensor(float(index))

    loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2)
    print(sum(float(batch.cuda().sum()) for batch in loader), flush=True)


def main():
    how = sys.argv[1]
    work()
    if how == 'exit':
        sys.exit(3)
    if how == 'exception':
        raise RuntimeError('planned')
    if how == '_exit':
        os._exit(4)
    if how == 'sigterm':
        os.kill(os.getpid(), signal.SIGTERM)
    if how == 'workers':
        with_workers()


if __name__ == '__main__':
    main()
