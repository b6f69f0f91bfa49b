"""Two ranks of DDP on gloo: `guilty.py NAME [RANK [MS]]`. What costs so much time a step lies on the
line that ends with `# NAME`, on that rank (1), or on both for `both-NAME`. `none`, `spread-waits` and
`spread-work` have no guilty line. `quota` joins the control group GROUP, where that is set: before the agent begins."""
import gc
import logging
import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time

NAME = sys.argv[1]
LATE = int(sys.argv[2]) if len(sys.argv) > 2 else 1
COST = float(sys.argv[3]) / 1000 if len(sys.argv) > 3 else 0.06
if NAME == 'quota' and os.environ['RANK'] == str(LATE):
    with open(os.path.join(os.environ['GROUP'], 'cgroup.procs'), 'w') as procs:
        procs.write(str(os.getpid()))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402


def slow_batches(name, is_late):
    while True:
        if name == 'loader' and is_late:
            time.sleep(COST)  # loader
        yield torch.randn(16, 32)


class Slow(torch.nn.Module):
    def __init__(self, late):
        super().__init__()
        self.late = late

    def forward(self, x):
        if self.late:
            time.sleep(COST)  # forward
        return x


class Optimizer(torch.optim.SGD):
    late = False

    def step(self, closure=None):
        if self.late:
            time.sleep(COST)  # optimizer
        return super().step(closure)


def read_from_disk(path):
    """Nothing of it lies in memory afterwards."""
    until = time.monotonic() + COST
    while time.monotonic() < until:
        with open(path, 'rb', buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.read()  # read


def touch(path):
    """Pages of a file that lie in memory no more."""
    until = time.monotonic() + COST
    while time.monotonic() < until:
        with open(path, 'rb') as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            mapped.madvise(mmap.MADV_RANDOM)
            for at in range(0, 1 << 20, mmap.PAGESIZE):
                mapped[at]  # faults
        with open(path, 'rb') as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def share_a_cpu():
    """With a process that always runs."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return subprocess.Popen([sys.executable, '-c', 'while True: pass'], env={})


def limit(group):
    """To a tenth of a CPU."""
    for name, text in ('cpu.cfs_quota_us', '10000'), ('cpu.max', '10000 100000'):
        path = os.path.join(group, name)
        if os.path.exists(path):
            with open(path, 'w') as file:
                file.write(text)


def hog():
    while True:
        [x for x in range(100_000)]  # gil


def evaluate(model):
    model.eval()
    with torch.no_grad():
        for _ in range(20):
            model(torch.randn(16, 32))
            time.sleep(COST / 4)  # evaluation
    model.train()


class Held:
    """A lock that another thread holds most of the time."""

    def __init__(self):
        self.lock = threading.Lock()
        threading.Thread(target=self.hold, daemon=True).start()

    def hold(self):
        while True:
            with self.lock:
                time.sleep(COST)
            time.sleep(0.001)


class Flushes:
    def write(self, text):
        time.sleep(COST)  # log

    def flush(self):
        pass


def main():
    name = NAME
    dist.init_process_group('gloo')
    rank = dist.get_rank()
    is_late = rank == LATE or name.startswith('both-')
    name = name.removeprefix('both-')
    logger = logging.getLogger('job')
    logger.addHandler(logging.StreamHandler(Flushes()))
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), Slow(name == 'forward' and is_late), torch.nn.Linear(32, 1))
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = Optimizer(parallel.parameters(), lr=0.01)
    optimizer.late = name == 'optimizer' and is_late
    batches = slow_batches(name, is_late)
    held = Held() if name == 'lock' else None
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, 'file')
    kept = [[i] for i in range(300_000 if name == 'collect' else 0)]
    neighbour = share_a_cpu() if name == 'neighbour' and is_late else None
    if name == 'gil' and is_late:
        threading.Thread(target=hog, daemon=True).start()
    if name == 'threads':
        torch.set_num_threads(16)
        square = torch.randn(600, 600)
    if name in ('read', 'faults'):
        with open(path, 'wb') as file:
            file.write(os.urandom(64 << 20))
            os.fsync(file.fileno())
    if name == 'quota' and is_late:
        limit(os.environ['GROUP'])
    for step in range(25):
        optimizer.zero_grad()
        parallel(next(batches)).sum().backward()
        optimizer.step()
        if name == 'spread-waits':
            time.sleep(COST / 4)  # spread
            time.sleep(COST / 4)  # spread
            time.sleep(COST / 4)  # spread
            time.sleep(COST / 4)  # spread
        if name == 'spread-work':
            sum(range(int(COST * 5e6)))  # spread
            sorted(range(int(COST * 5e6)), reverse=True)  # spread
            [x for x in range(int(COST * 5e6))]  # spread
            max(range(int(COST * 5e6)))  # spread
        if name in ('neighbour', 'quota'):
            sum(range(int(COST * 2e7)))  # neighbour, quota
        if name == 'threads':
            torch.linalg.multi_dot([square] * 6)  # threads
        if name == 'evaluation' and step % 5 == 4:
            evaluate(model)
        if not is_late:
            continue
        if name == 'log':
            logger.error('step %s', step)
        if name == 'sleep':
            time.sleep(COST)  # sleep
        if name == 'checkpoint':
            torch.save({'model': model.state_dict(), 'more': torch.zeros(8 << 20)}, path)  # checkpoint
        if name == 'read':
            read_from_disk(path)
        if name == 'faults':
            touch(path)
        if name == 'collect':
            gc.collect()  # collect
        if name == 'lock':
            with held.lock:  # lock
                pass
    dist.destroy_process_group()
    folder.cleanup()
    if neighbour:
        neighbour.kill()
    return kept


main()
