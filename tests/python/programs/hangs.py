"""CAUSE:GUILTY... starts a job of two ranks over gloo for each, all at once. They train until the rank GUILTY does CAUSE in step
5 instead of what the other does. The line that is to be named ends with the cause as a comment. Jobs of healthy causes end by
themselves; the program ends when they all have, or kills them at SIGTERM."""
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time


def launch(jobs):
    processes = []
    for job in jobs:
        cause, guilty = job.split(':')
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = str(free.getsockname()[1])
        for rank in range(2):
            processes.append(subprocess.Popen([sys.executable, __file__], env={
                **os.environ, 'CAUSE': cause, 'GUILTY': guilty, 'RANK': str(rank), 'WORLD_SIZE': '2',
                'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': port, 'OMP_NUM_THREADS': '1'}))

    def end(*_):
        for process in processes:
            process.kill()
        sys.exit(1)

    signal.signal(signal.SIGTERM, end)
    statuses = [process.wait() for process in processes]
    sys.exit(1 if any(statuses) else 0)


if 'RANK' not in os.environ:
    launch(sys.argv[1:])

# The launcher does without: an import takes seconds.
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

CAUSE = os.environ['CAUSE']
GUILTY = int(os.environ['GUILTY'])
HEALTHY_S = 15


def hold_the_lock_in_c():
    ctypes.PyDLL(None).sleep(100000)  # gil


def wait_for_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()  # lock


def read_slowly():
    end, _keep = socket.socketpair()
    end.recv(1)  # read


class Sleepy(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(100000)  # loader


def save_slowly(path):
    with open(path, 'wb') as file:
        end = time.monotonic() + HEALTHY_S
        while time.monotonic() < end:
            file.write(b'0' * 4096)
            file.flush()  # checkpoint
            time.sleep(0.05)


def evaluate_alone(model):
    end = time.monotonic() + HEALTHY_S
    while time.monotonic() < end:
        model(torch.ones(256, 16)).sum().item()  # eval


def do(cause, model, grad):
    """True: skip the collective."""
    if cause == 'sleep':
        time.sleep(100000)  # sleep
    elif cause == 'gil':
        hold_the_lock_in_c()
    elif cause == 'lock':
        wait_for_lock()
    elif cause == 'child':
        subprocess.run(['sleep', '100000'], check=False)  # child
    elif cause == 'join':
        thread = threading.Thread(target=time.sleep, args=(100000,), daemon=True)
        thread.start()
        thread.join()  # join
    elif cause == 'read':
        read_slowly()
    elif cause == 'spin-c':
        re.match('(a+)+$', 'a' * 64 + 'b')  # spin-c
    elif cause == 'stop':
        os.kill(os.getpid(), signal.SIGSTOP)  # stop
    elif cause == 'kill':
        os.kill(os.getpid(), signal.SIGKILL)
    elif cause == 'exit':
        os._exit(0)
    elif cause == 'loader':
        next(iter(torch.utils.data.DataLoader(Sleepy(), num_workers=1)))
    elif cause == 'missing':
        return True
    elif cause == 'barrier':
        dist.barrier()  # barrier
        return True
    elif cause == 'order':
        dist.broadcast(grad, 0)
        return True
    elif cause == 'checkpoint':
        save_slowly(f'checkpoint-{os.getpid()}')
    elif cause == 'eval':
        evaluate_alone(model)
    return False


def main():
    dist.init_process_group('gloo')
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(8):
        model(torch.ones(4, 16)).sum().backward()
        skip = step == 5 and dist.get_rank() == GUILTY and do(CAUSE, model, model.weight.grad)
        if step == 5 and dist.get_rank() != GUILTY:
            print(f'{CAUSE} {dist.get_rank()} {time.time()}', flush=True)
        if not skip:
            dist.all_reduce(model.weight.grad)
        optimizer.step()
    dist.barrier()  # missing
    print('done', flush=True)


main()
