"""A loader whose workers spend 80 % of their time on one line, which sleeps (`loads.py slow`), computes (`loads.py computes`) or
reads a file that fills slowly (`loads.py reads FIFO`, 90 %); or a third on each of three: `loads.py even`. A busy machine adds to the
rest: each batch of `slow` and `computes` appends to the file `truth` the seconds of the marked line and those of the batch."""
import fcntl
import os
import sys
import threading
import time

import torch

KIND = sys.argv[1]
FIFO = sys.argv[2] if KIND == 'reads' else None


def terms_of(seconds):
    """How many terms this processor adds up in so many seconds of its time: the least of five."""
    least = float('inf')
    for _ in range(5):
        began = time.thread_time()
        sum(range(400_000))
        least = min(least, time.thread_time() - began)
    return int(400_000 * seconds / least)


TERMS = terms_of(0.008) if KIND == 'computes' else 0


class Items(torch.utils.data.Dataset):
    file = None
    at_line = 0.0
    batch_began = None

    def __len__(self):
        return 240

    def __getitem__(self, i):
        began = time.monotonic()
        self.batch_began = self.batch_began or began
        if KIND == 'slow':
            time.sleep(0.008)  # slow
            self.at_line += time.monotonic() - began
            time.sleep(0.002)
        elif KIND == 'computes':
            sum(range(TERMS))  # computes
            self.at_line += time.monotonic() - began
            time.sleep(0.002)
        elif KIND == 'reads':
            self.file = self.file or open(FIFO, 'rb', buffering=0)
            self.file.read(4096)  # reads
            time.sleep(0.002)
        else:
            time.sleep(0.004)
            time.sleep(0.004)
            time.sleep(0.004)
        return torch.ones(8) * i

    def collate(self, items):
        batch = torch.utils.data.default_collate(items)
        with open('truth', 'a', encoding='utf-8') as truth:
            truth.write(f'{self.at_line} {time.monotonic() - self.batch_began}\n')
        self.at_line, self.batch_began = 0.0, None
        return batch


def fill(fifo):
    """An item each 10 ms; the pipe holds one, so that none lies ready."""
    while True:
        time.sleep(0.010)
        os.write(fifo, bytes(4096))


def main():
    if KIND == 'reads':
        os.mkfifo(FIFO)
        fifo = os.open(FIFO, os.O_RDWR)
        fcntl.fcntl(fifo, 1031, 4096)  # F_SETPIPE_SZ, which Python 3.9 does not name
        threading.Thread(target=fill, args=(fifo,), daemon=True).start()
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    items = Items()
    for batch in torch.utils.data.DataLoader(items, batch_size=4, num_workers=2, collate_fn=items.collate):
        optimizer.zero_grad()
        model(batch).sum().backward()
        time.sleep(0.008)
        optimizer.step()


if __name__ == '__main__':
    main()
