"""CAUSE:GUILTY[:RANKS[:HOW]]... starts a job over gloo for each, all at once; of two ranks, if the job does not say how many. HOW is
env (a process for each rank), torchrun or spawn (torch.multiprocessing.spawn). They train until the rank GUILTY does CAUSE in step 5
instead of what the others do. The line that is to be named ends with the cause as a comment. Jobs of healthy causes end by
themselves; the program ends when they all have, or kills them at SIGTERM."""
import ctypes
import os
import pathlib
import pdb
import re
import signal
import socket
import subprocess
import sys
import threading
import time


def free_port():
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return str(free.getsockname()[1])


def below(processes):
    """These and all that they started, also a rank that torchrun put into a session of its own."""
    children = {}
    for stat in pathlib.Path('/proc').glob('[0-9]*/stat'):
        try:
            children.setdefault(int(stat.read_text().rpartition(')')[2].split()[1]), []).append(int(stat.parent.name))
        except OSError:
            pass
    found = list(processes)
    for process in found:
        found += children.get(process, [])
    return found


def launch(jobs):
    processes = []
    for job in jobs:
        cause, guilty, ranks, how = job.split(':') + ['2', 'env'][job.count(':') - 1:]
        port = free_port()
        env = {**os.environ, 'CAUSE': cause, 'GUILTY': guilty, 'HOW': how, 'RANKS': ranks, 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': port,
               'OMP_NUM_THREADS': '1', 'WATCHER': str(os.getppid()), 'NCCL_RAS_ADDR': os.environ.get(f'RAS_{cause}', '127.0.0.1:1')}
        if how == 'env':
            processes += [subprocess.Popen([sys.executable, __file__], env={**env, 'RANK': str(rank), 'WORLD_SIZE': ranks})
                          for rank in range(int(ranks))]
        elif how == 'torchrun':
            processes.append(subprocess.Popen([sys.executable, '-m', 'torch.distributed.run', '--nproc-per-node', ranks, '--master-port', port,
                                               __file__], env=env))
        else:
            processes.append(subprocess.Popen([sys.executable, __file__], env=env))

    def end(*_):
        for process in below(process.pid for process in processes):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os._exit(1)

    signal.signal(signal.SIGTERM, end)
    statuses = [process.wait() for process in processes]
    sys.exit(1 if any(statuses) else 0)


if 'CAUSE' not in os.environ:
    launch(sys.argv[1:])


def wait_until_watched():
    """A pidfd of ours is open in `ranktap run`."""
    pid = re.compile(rf'^Pid:\t{os.getpid()}$', re.M)
    folder = pathlib.Path(f'/proc/{os.environ["WATCHER"]}/fdinfo')
    while True:
        for info in folder.iterdir():
            try:
                if pid.search(info.read_text()):
                    return
            except OSError:
                pass


# The last stack is told of a rank that ends by itself. However quick the processor is, the watch has to have read one: it does so
# right after it found the rank, and the imports take longer than that.
if os.environ['CAUSE'] in ('kill', 'raise') and os.environ['HOW'] != 'spawn':
    wait_until_watched()

# The launcher does without: an import takes seconds.
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.elastic.multiprocessing.errors  # noqa: E402

CAUSE = os.environ['CAUSE']
GUILTY = int(os.environ['GUILTY'])
RANKS = int(os.environ['RANKS'])
HEALTHY_S = int(os.environ.get('HEALTHY_S', '15'))
PIDS = [0] * RANKS


def hold_the_lock_in_c():
    ctypes.PyDLL(None).sleep(100000)  # gil


def wait_for_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()  # lock


def wait_for_each_other():
    one, other, has_both = threading.Lock(), threading.Lock(), threading.Barrier(2)

    def take_other_first():
        with other:
            has_both.wait()
            with one:
                pass

    threading.Thread(target=take_other_first, daemon=True).start()
    with one:
        has_both.wait()
        with other:  # two-locks
            pass


def read_slowly():
    end, _keep = socket.socketpair()
    end.recv(1)  # read


def read_file_that_stops():
    path = f'data-{os.getpid()}'
    os.mkfifo(path)
    with open(path, 'r+b', buffering=0) as file:
        file.read(1)  # fifo


def read_fuse_that_stops():
    """In a mount namespace of its own, so that nothing is left to be unmounted."""
    libc, folder = ctypes.CDLL(None, use_errno=True), f'fuse-{os.getpid()}'
    os.mkdir(folder)
    device = os.open('/dev/fuse', os.O_RDWR)
    private, namespace = 1 << 18 | 1 << 14, 0x20000  # MS_PRIVATE | MS_REC, CLONE_NEWNS
    options = f'fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}'
    if libc.unshare(namespace) or libc.mount(None, b'/', None, private, None) or libc.mount(b'planted', folder.encode(), b'fuse', 0,
                                                                                           options.encode()):
        raise OSError(ctypes.get_errno(), 'no FUSE can be mounted')
    subprocess.Popen([sys.executable, pathlib.Path(__file__).with_name('fuse_that_stops.py'), str(device)], pass_fds=[device])
    os.close(device)  # the last one that is closed ends the wait: a rank with one of its own could not be killed
    with open(f'{folder}/data', 'rb', buffering=0) as file:
        file.read(1)  # fuse


def end_as_worker(_):
    wait_until_watched()
    os._exit(3)


def wait_for_dead_worker():
    """Pool starts another one, and waits for the first one's answer for ever."""
    with torch.multiprocessing.get_context('fork').Pool(1) as pool:
        pool.map(end_as_worker, range(1))  # pool-dead


def loop():
    count = 0
    while True:
        count += 1  # spin-py


class Sleepy(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(100000)  # loader


class Dying(Sleepy):
    def __getitem__(self, index):
        wait_until_watched()
        os.kill(os.getpid(), signal.SIGKILL)


def save_slowly(path):
    with open(path, 'wb') as file:
        end = time.monotonic() + HEALTHY_S
        while time.monotonic() < end:
            file.write(b'0' * 4096)
            file.flush()  # checkpoint
            time.sleep(0.05)


def evaluate_alone(model):
    end = time.monotonic() + 2 * HEALTHY_S
    while time.monotonic() < end:
        model(torch.ones(256, 16)).sum().item()  # eval


def compile_slowly():
    """As a compiler does that runs as a child of one rank."""
    subprocess.run([sys.executable, '-c', f'import time\nend = time.monotonic() + {HEALTHY_S}\nwhile time.monotonic() < end: pass'],
                   check=True)  # compile


def watch_for_ever():
    time.sleep(100000)  # thread


def debug():
    """A person who looks around for a while."""
    reads, writes = os.pipe()
    threading.Timer(HEALTHY_S, os.write, (writes, b'continue\n')).start()
    pdb.Pdb(stdin=os.fdopen(reads), stdout=open(os.devnull, 'w', encoding='utf-8')).set_trace()  # pdb


def pause(pids):
    """As a scheduler or Ctrl-Z does with the whole job."""
    subprocess.Popen(['sh', '-c', f'kill -STOP {pids}; sleep {HEALTHY_S}; kill -CONT {pids}'], start_new_session=True)
    time.sleep(1)  # pause


def raise_beside_thread():
    threading.Thread(target=watch_for_ever).start()
    raise ValueError('no such label')  # thread-raise


def do(cause, model, grad, other_group):
    """True: skip the collective."""
    if cause == 'sleep':
        time.sleep(100000)  # sleep
    elif cause == 'gil':
        hold_the_lock_in_c()
    elif cause == 'lock':
        wait_for_lock()
    elif cause == 'two-locks':
        wait_for_each_other()
    elif cause == 'child':
        subprocess.run(['sleep', '100000'], check=False)  # child
    elif cause == 'join':
        thread = threading.Thread(target=time.sleep, args=(100000,), daemon=True)
        thread.start()
        thread.join()  # join
    elif cause == 'read':
        read_slowly()
    elif cause == 'fifo':
        read_file_that_stops()
    elif cause == 'fuse':
        read_fuse_that_stops()
    elif cause == 'pool-dead':
        wait_for_dead_worker()
    elif cause == 'silent':
        dist.all_reduce(torch.ones(1, 16, dtype=torch.int32))  # as many bytes: gloo takes it
        time.sleep(100000)  # silent
    elif cause == 'spin-c':
        re.match('(a+)+$', 'a' * 64 + 'b')  # spin-c
    elif cause == 'spin-py':
        loop()
    elif cause == 'stop':
        os.kill(os.getpid(), signal.SIGSTOP)  # stop
    elif cause == 'kill':
        os.kill(os.getpid(), signal.SIGKILL)  # kill
    elif cause == 'exit':
        os._exit(0)  # exit
    elif cause == 'raise':
        raise ValueError('no such label')  # raise
    elif cause == 'oom':
        torch.empty(1 << 60)  # oom
    elif cause == 'thread':
        raise_beside_thread()
    elif cause == 'loader':
        next(iter(torch.utils.data.DataLoader(Sleepy(), num_workers=1)))
    elif cause == 'loader-dead':
        next(iter(torch.utils.data.DataLoader(Dying(), num_workers=1)))  # loader-dead
    elif cause == 'swallow':
        try:
            raise ValueError('no such label')
        except ValueError:
            return True
    elif cause in ('missing', 'uneven'):
        return True
    elif cause == 'barrier':
        dist.barrier()  # barrier
        return True
    elif cause == 'order':
        dist.all_reduce(grad.clone(), group=other_group)  # order
    elif cause == 'wrong-group':
        dist.all_reduce(grad, group=other_group)  # wrong-group
        return True
    elif cause == 'shape':
        dist.all_reduce(torch.ones(5))  # shape
        return True
    elif cause == 'dtype':
        dist.all_reduce(grad.double())  # dtype
        return True
    elif cause == 'checkpoint':
        save_slowly(f'checkpoint-{os.getpid()}')
    elif cause == 'eval':
        evaluate_alone(model)
    elif cause == 'compile':
        compile_slowly()
    elif cause == 'pdb':
        debug()
    elif cause == 'pause':
        pause(' '.join(map(str, PIDS)))
    return False


def main(rank):
    dist.init_process_group('gloo', init_method=f'tcp://127.0.0.1:{os.environ["MASTER_PORT"]}' if os.environ['HOW'] == 'spawn' else None,
                            rank=rank, world_size=RANKS)
    other_group = dist.new_group(range(RANKS))
    if CAUSE == 'pause':
        dist.all_gather_object(PIDS, os.getpid())
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(8):
        model(torch.ones(4, 16)).sum().backward()
        grad = model.weight.grad
        skip = step == 5 and rank == GUILTY and do(CAUSE, model, grad, other_group)
        if step == 5 and rank != GUILTY:
            print(f'{CAUSE} {rank} {time.time()}', flush=True)
        if skip and CAUSE == 'uneven':
            break
        if not skip:
            dist.all_reduce(grad)
        dist.all_reduce(grad.clone(), group=other_group)  # other
        optimizer.step()
    dist.barrier()  # end
    print('done', flush=True)


if __name__ == '__main__':
    if os.environ['HOW'] == 'spawn':
        torch.multiprocessing.spawn(main, nprocs=RANKS)
    else:
        record = torch.distributed.elastic.multiprocessing.errors.record if os.environ['HOW'] == 'torchrun' else lambda same: same
        record(main)(int(os.environ['RANK']))
