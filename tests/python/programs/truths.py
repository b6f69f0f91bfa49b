"""Programs that know their own truth: each measures with its own clock what its time goes to.

  truths.py NAME     runs one and prints {name of a figure: ms or a count} in its last line
  truths.py --list   prints the names
"""
import copy
import gc
import json
import os
import sys
import threading
import time

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


class Clock:
    """What passes in parts of a program, in ms, each time that one runs."""

    def __init__(self):
        self.ms = {}

    class Part:
        def __init__(self, clock, name):
            self._clock, self._name = clock, name

        def __enter__(self):
            self._start = time.perf_counter()

        def __exit__(self, *_):
            clock, name = self._clock, self._name
            clock.ms.setdefault(name, []).append(1e3 * (time.perf_counter() - self._start))

    def part(self, name):
        return self.Part(self, name)

    def mean(self, name):
        """Without the first two, which also pay for what is done once."""
        times = self.ms[name][2:] or self.ms[name]
        return sum(times) / len(times)


def work(ms):
    """Pure Python, for so long."""
    end = time.perf_counter() + ms / 1e3
    while time.perf_counter() < end:
        pass


class Net:
    """A model with an optimizer, and one step of it in parts."""

    def __init__(self, clock, *layers, lr=0.01):
        import torch
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.torch, self.clock = torch, clock
        self.model = torch.nn.Sequential(*(layers or (torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.batch = torch.ones(8, 64)

    def forward(self, batch=None):
        with self.clock.part('forward'):
            return self.model(self.batch if batch is None else batch).sum()

    def backward(self, loss):
        with self.clock.part('backward'):
            loss.backward()

    def update(self):
        with self.clock.part('optimizer'):
            self.optimizer.step()
            self.optimizer.zero_grad()

    def step(self, batch=None):
        self.backward(self.forward(batch))
        self.update()


def steps_of(clock, count, step):
    """Runs step(number) so often, each timed as a whole."""
    for number in range(count):
        with clock.part('step'):
            step(number)
    return {'steps': count, 'step_ms': clock.mean('step')}


# Steps.

@program
def alternating():
    """Two optimizers in turn over one model: ten steps of each, twice."""
    import torch
    net = Net(Clock())
    other = torch.optim.Adam(net.model.parameters(), lr=1e-3)
    first = net.optimizer
    for turn in range(4):
        net.optimizer = (first, other)[turn % 2]
        for _ in range(10):
            net.step()
    return {'steps': 40}


@program
def finder():
    """A search of learning rates: five optimizers one after another."""
    import torch
    net = Net(Clock())
    for rate in (1e-3, 1e-2, 1e-1, 1):
        net.optimizer = torch.optim.SGD(net.model.parameters(), lr=rate)
        for _ in range(8):
            net.step()
    net.optimizer = torch.optim.Adam(net.model.parameters())
    for _ in range(20):
        net.step()
    return {'steps': 52}


@program
def epochs():
    """A first epoch that is ten times slower than the rest."""
    clock = Clock()
    net = Net(clock)

    def step(number):
        work(40 if number < 10 else 4)
        net.step()
    slow = steps_of(clock, 10, step)
    clock.ms.pop('step')
    fast = steps_of(clock, 40, lambda number: step(10 + number))
    return {'slow': 10, 'slow_ms': slow['step_ms'], 'fast_ms': fast['step_ms']}


@program
def stall():
    """Three of 60 steps wait for a file; the rest do not."""
    clock = Clock()
    net = Net(clock)

    class Rows(net.torch.utils.data.Dataset):
        def __len__(self):
            return 60

        def __getitem__(self, row):
            if row in (15, 35, 55):
                time.sleep(0.2)
            return net.batch[0]
    batches = iter(net.torch.utils.data.DataLoader(Rows(), batch_size=1))

    def step(_):
        with clock.part('data'):
            batch = next(batches)
        work(5)
        net.step(batch)
    return {**steps_of(clock, 60, step), 'lost_ms': 600}


@program
def evals():
    """Evaluation after each fifth step, three times as long as a step."""
    clock = Clock()
    net = Net(clock)

    def step(_):
        work(6)
        net.step()
    for _ in range(6):
        steps_of(clock, 5, step)
        net.model.eval()
        with net.torch.no_grad(), clock.part('evaluation'):
            for _ in range(10):
                work(6)
                net.model(net.batch)
        net.model.train()
    return {'steps': 30, 'step_ms': clock.mean('step'), 'evaluation_ms': sum(clock.ms['evaluation'])}


@program
def gan():
    """Two backward passes a step, of two models with an optimizer each."""
    import torch
    clock = Clock()
    generator, critic = Net(clock, torch.nn.Linear(64, 64)), Net(clock, torch.nn.Linear(64, 1))

    def step(_):
        critic.step(generator.model(generator.batch).detach())
        work(5)
        loss = critic.model(generator.model(generator.batch)).sum()
        generator.backward(loss)
        generator.update()
    return steps_of(clock, 30, step)


@program
def accumulation():
    """Four forwards and backwards for each step of the optimizer."""
    clock = Clock()
    net = Net(clock)

    def step(_):
        for _ in range(4):
            work(3)
            net.backward(net.forward())
        net.update()
    return steps_of(clock, 20, step)


@program
def warm_up():
    """Two slow steps at first."""
    clock = Clock()
    net = Net(clock)

    def step(number):
        work(60 if number < 2 else 6)
        net.step()
    steps_of(clock, 2, step)
    clock.ms.pop('step')
    return {**steps_of(clock, 30, lambda number: step(number + 2)), 'steps': 32}


@program
def slows_down():
    """The last steps are slower than the first."""
    clock = Clock()
    net = Net(clock)

    def step(number):
        work(4 if number < 30 else 30)
        net.step()
    return steps_of(clock, 50, step)


# Place.

def with_work_between(place, count=20, ms=30):
    clock = Clock()
    net = Net(clock)

    def step(_):
        if place == 'before the forward':
            work(ms)
        loss = net.forward()
        if place == 'between forward and backward':
            work(ms)
        net.backward(loss)
        if place == 'before the optimizer':
            work(ms)
        net.update()
    return {**steps_of(clock, count, step), 'place_ms': ms}


@program
def logs():
    """A log line with fsync after each step."""
    import tempfile
    clock = Clock()
    net = Net(clock)
    with tempfile.TemporaryFile('w') as log:
        def step(number):
            net.step()
            with clock.part('log'):
                work(20)
                print('step', number, file=log, flush=True)
                os.fsync(log.fileno())
        figures = steps_of(clock, 20, step)
    return {**figures, 'place_ms': clock.mean('log')}


@program
def losses():
    """A loss that Python works out between forward and backward."""
    return with_work_between('between forward and backward')


@program
def clips():
    """Python between the backward pass and the optimizer."""
    return with_work_between('before the optimizer')


@program
def generator():
    """A batch generator in pure Python."""
    return with_work_between('before the forward')


@program
def pool():
    """Batches from a multiprocessing.Pool."""
    import multiprocessing
    clock = Clock()
    net = Net(clock)
    with multiprocessing.get_context('fork').Pool(2) as workers:
        def step(_):
            with clock.part('pool'):
                workers.map(work, [25, 25])
            net.step()
        return {**steps_of(clock, 15, step), 'place_ms': clock.mean('pool')}


@program
def rl():
    """An environment that is stepped by hand: forwards that choose, then one that trains."""
    clock = Clock()
    net = Net(clock)

    def step(_):
        with clock.part('environment'):
            for _ in range(4):
                with net.torch.no_grad():
                    net.model(net.batch)
                work(5)
        net.step()
    return {**steps_of(clock, 20, step), 'place_ms': clock.mean('environment')}


@program
def ema():
    """A copy of the weights, averaged by hand after each step."""
    import torch
    clock = Clock()
    net = Net(clock, *(torch.nn.Linear(64, 64) for _ in range(30)))
    average = copy.deepcopy(net.model)

    def step(_):
        net.step()
        with clock.part('ema'), torch.no_grad():
            for _ in range(20):
                for kept, new in zip(average.parameters(), net.model.parameters()):
                    kept.mul_(0.99).add_(new, alpha=0.01)
    return {**steps_of(clock, 20, step), 'place_ms': clock.mean('ema')}


@program
def items():
    """.item() over all norms before the optimizer."""
    import torch
    clock = Clock()
    net = Net(clock, *(torch.nn.Linear(64, 64) for _ in range(40)))

    def step(_):
        net.backward(net.forward())
        with clock.part('items'):
            for _ in range(20):
                for parameter in net.model.parameters():
                    parameter.grad.norm().item()
        net.update()
    return {**steps_of(clock, 20, step), 'place_ms': clock.mean('items')}


@program
def byhand():
    """An update of weights by hand: no optimizer."""
    clock = Clock()
    net = Net(clock)

    def step(_):
        net.backward(net.forward())
        with clock.part('update'), net.torch.no_grad():
            work(10)
            for parameter in net.model.parameters():
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
    return {**steps_of(clock, 20, step), 'place_ms': clock.mean('update')}


@program
def tokens():
    """A loader with 0 workers that tokenizes."""
    clock = Clock()
    net = Net(clock)

    class Texts(net.torch.utils.data.Dataset):
        def __len__(self):
            return 160

        def __getitem__(self, _):
            work(4)
            return net.batch[0]
    batches = iter(net.torch.utils.data.DataLoader(Texts(), batch_size=8))

    def step(_):
        with clock.part('data'):
            batch = next(batches)
        net.step(batch)
    return {**steps_of(clock, 20, step), 'data_ms': clock.mean('data')}


# Modules.

def with_slow_module(slow):
    import torch
    clock = Clock()

    class Router(torch.nn.Module):
        def forward(self, batch):
            work(20)
            return batch

    class Slow(torch.autograd.Function):
        @staticmethod
        def forward(_, batch):
            return batch.clone()

        @staticmethod
        def backward(_, gradient):
            work(20)
            return gradient

    class Memory(torch.nn.Module):
        def forward(self, batch):
            return Slow.apply(batch)
    net = Net(clock, torch.nn.Linear(64, 64), {'router': Router, 'memory': Memory}[slow](), torch.nn.Linear(64, 8))
    return {**steps_of(clock, 20, lambda _: net.step()), 'place_ms': 20}


@program
def router():
    """A submodule in pure Python takes most of the forward pass."""
    return with_slow_module('router')


@program
def memory():
    """A function of autograd in pure Python takes most of the backward pass."""
    return with_slow_module('memory')


@program
def distil():
    """A teacher's forward in each step."""
    import torch
    clock = Clock()
    net = Net(clock)

    class Teacher(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.wide = torch.nn.Linear(64, 3000)
            self.deep = torch.nn.Linear(3000, 3000)

        def forward(self, batch):
            return self.deep(self.deep(self.wide(batch))).mean()
    teacher = Teacher().eval()

    def step(_):
        with torch.no_grad(), clock.part('teacher'):
            goal = teacher(net.batch)
        net.backward((net.forward() - goal) ** 2)
        net.update()
    return {**steps_of(clock, 20, step), 'place_ms': clock.mean('teacher')}


# Threads.

@program
def saver():
    """A checkpoint that a thread writes while training goes on."""
    clock = Clock()
    net = Net(clock)

    class Slowly:
        def write(self, data):
            time.sleep(0.05)
            return len(data)

        def flush(self):
            pass
    threads = []

    def step(number):
        work(6)
        net.step()
        if number == 20:
            threads.append(threading.Thread(target=net.torch.save, args=(copy.deepcopy(net.model.state_dict()), Slowly())))
            threads[0].start()
    figures = steps_of(clock, 60, step)
    threads[0].join()
    return figures


@program
def fetcher():
    """A thread takes batches from the loader ahead."""
    import queue
    clock = Clock()
    net = Net(clock)
    rows = [net.batch[0]] * 40

    class Rows(net.torch.utils.data.Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, row):
            time.sleep(0.005)
            return rows[row]
    ready = queue.Queue()

    def fetch():
        for batch in net.torch.utils.data.DataLoader(Rows(), batch_size=1):
            ready.put(batch)
    fetching = threading.Thread(target=fetch)
    fetching.start()
    time.sleep(0.3)

    def step(_):
        work(10)
        net.step(ready.get())
    figures = steps_of(clock, 40, step)
    fetching.join()
    return figures


@program
def hog():
    """Another thread holds the interpreter's lock half of the time."""
    clock = Clock()
    net = Net(clock)
    done = threading.Event()

    def burn():
        while not done.is_set():
            sum(range(1000))
    burning = threading.Thread(target=burn)
    burning.start()
    figures = steps_of(clock, 20, lambda _: net.step())
    done.set()
    burning.join()
    return figures


# Inference.

@program
def server():
    """A model that answers requests and waits between them."""
    import torch
    clock = Clock()
    net = Net(clock)
    net.model.eval()
    with torch.no_grad():
        for _ in range(30):
            time.sleep(0.015)
            with clock.part('call'):
                net.model(net.batch)
    return {'calls': 30, 'idle_ms': 15, 'call_ms': clock.mean('call')}


@program
def kv():
    """Token generation with a cache: a prompt, then a token at a time."""
    import torch
    clock = Clock()
    net = Net(clock, torch.nn.Linear(64, 2000), torch.nn.Linear(2000, 64))
    net.model.eval()
    with torch.inference_mode():
        for _ in range(5):
            with clock.part('prompt'):
                net.model(torch.ones(512, 64))
            for _ in range(20):
                with clock.part('token'):
                    net.model(torch.ones(1, 64))
    return {'calls': 105, 'prompt_ms': clock.mean('prompt'), 'token_ms': clock.mean('token')}


# Settings.

@program
def anomaly():
    """Autograd's anomaly mode."""
    import torch
    clock = Clock()
    torch.autograd.set_detect_anomaly(True)
    # A larger rate makes the loss NaN, which ends a program in this mode.
    net = Net(clock, *(torch.nn.Linear(64, 64) for _ in range(30)), lr=1e-6)
    return steps_of(clock, 20, lambda _: net.step())


@program
def threads():
    """Far more intra-op threads than CPUs."""
    import torch
    clock = Clock()
    net = Net(clock, torch.nn.Linear(64, 2000), torch.nn.Linear(2000, 64))
    torch.set_num_threads(32)
    return steps_of(clock, 20, lambda _: net.step(torch.ones(256, 64)))


@program
def doubles():
    """float64 by mistake."""
    import torch
    clock = Clock()
    net = Net(clock, torch.nn.Linear(64, 2000), torch.nn.Linear(2000, 64))
    net.model.double()
    return steps_of(clock, 20, lambda _: net.step(torch.ones(256, 64, dtype=torch.float64)))


@program
def kept():
    """A list keeps each step's output."""
    import torch
    clock = Clock()
    net = Net(clock, torch.nn.Linear(64, 1024))
    outputs = []

    def step(_):
        output = net.model(torch.ones(1024, 64))
        outputs.append(output)
        net.backward(output.sum())
        net.update()
    return {**steps_of(clock, 20, step), 'grown_bytes': 4 << 20}


@program
def collector():
    """A program that collects garbage by hand in each step."""
    clock = Clock()
    net = Net(clock)
    graph = [[number] for number in range(300000)]

    def step(_):
        net.step()
        with clock.part('gc'):
            gc.collect()
    return {**steps_of(clock, 20, step), 'place_ms': clock.mean('gc'), 'kept': len(graph)}


@program
def transposed():
    """Copies that make tensors contiguous."""
    import torch
    clock = Clock()

    class Turn(torch.nn.Module):
        def forward(self, batch):
            for _ in range(6):
                batch = batch.t().contiguous()
            return batch
    net = Net(clock, torch.nn.Linear(64, 1024), Turn(), torch.nn.Linear(1024, 8))
    return steps_of(clock, 20, lambda _: net.step(torch.ones(1024, 64)))


# Compilation.

@program
def recompiles():
    """torch.compile, whose guard fails each step."""
    import torch
    clock = Clock()

    class Level(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.level = torch.nn.Linear(64, 64), 0.5

        def forward(self, batch):
            return self.inner(batch) * self.level
    torch._dynamo.config.cache_size_limit = 100
    level = Level()
    net = Net(clock, torch.nn.Linear(64, 64))
    net.model = torch.compile(level, backend='eager', dynamic=False)
    net.optimizer = torch.optim.SGD(level.parameters(), lr=0.1)

    def step(number):
        level.level = 0.5 + number
        net.step()
    return steps_of(clock, 12, step)


# Ends.

@program
def ends_exception():
    net = Net(Clock())
    for _ in range(5):
        net.step()
    raise ValueError('the labels do not fit')


@program
def ends_3():
    net = Net(Clock())
    for _ in range(5):
        net.step()
    sys.exit(3)


@program
def ends_kill():
    net = Net(Clock())
    for _ in range(5):
        net.step()
    os.kill(os.getpid(), 9)


@program
def ends_segv():
    import ctypes
    net = Net(Clock())
    for _ in range(5):
        net.step()
    ctypes.string_at(8)


@program
def ends_memory():
    import torch
    net = Net(Clock())
    for _ in range(5):
        net.step()
    torch.empty(1 << 50)


@program
def ends_shape():
    net = Net(Clock())
    for _ in range(5):
        net.step()
    net.step(net.torch.ones(8, 63))


@program
def ends_caught():
    """The program handles an exception and goes on."""
    net = Net(Clock())
    for _ in range(5):
        try:
            net.step(net.torch.ones(8, 63))
        except RuntimeError:
            net.step()
    return {'steps': 5}


@program
def ends_thread():
    """An exception that ends a thread does not end the program."""
    net = Net(Clock())
    lost = threading.Thread(target=lambda: {}["none"])
    lost.start()
    lost.join()
    for _ in range(5):
        net.step()
    return {'steps': 5}


@program
def ends_interrupt():
    net = Net(Clock())
    for _ in range(5):
        net.step()
    raise KeyboardInterrupt


@program
def ends_own_text():
    """An exception whose text the program itself makes."""
    class Unfit(Exception):
        def __str__(self):
            return 'never the same twice'
    net = Net(Clock())
    for _ in range(5):
        net.step()
    raise Unfit


@program
def arrays():
    """NumPy alone."""
    import numpy
    matrix = numpy.ones((300, 300))
    start = time.perf_counter()
    for _ in range(50):
        matrix = matrix @ matrix / 300
    return {'total_ms': 1e3 * (time.perf_counter() - start)}


# Ranks.

def ranks(world):
    def of(function):
        def launch():
            import socket
            import subprocess
            with socket.socket() as free:
                free.bind(('127.0.0.1', 0))
                port = free.getsockname()[1]
            environment = {**os.environ, 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(port), 'WORLD_SIZE': str(world),
                           'OMP_NUM_THREADS': '1'}
            processes = [subprocess.Popen([sys.executable, __file__, function.__name__],
                                          env={**environment, 'RANK': str(rank), 'LOCAL_RANK': str(rank)}, text=True)
                         for rank in range(world)]
            sys.exit(max(process.wait() for process in processes))

        def run():
            if 'RANK' not in os.environ:
                return launch()
            import torch.distributed as dist
            dist.init_process_group('gloo')
            try:
                return {'rank': dist.get_rank(), **function(dist.get_rank())}
            finally:
                dist.destroy_process_group()
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        return program(run)
    return of


@ranks(4)
def groups(rank):
    """Two process groups of two ranks; rank 3 is 30 ms late, rank 2 waits for it."""
    import torch.distributed as dist
    clock = Clock()
    net = Net(clock)
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]

    def step(_):
        if rank == 3:
            work(30)
        net.backward(net.forward())
        with clock.part('reduce'):
            for parameter in net.model.parameters():
                dist.all_reduce(parameter.grad, group=pairs[rank // 2])
        net.update()
    return {**steps_of(clock, 15, step), 'wait_ms': clock.mean('reduce')}


@ranks(2)
def uneven(rank):
    """Rank 0 has 10 batches, rank 1 has 30 (Join)."""
    import torch
    from torch.distributed.algorithms.join import Join
    from torch.nn.parallel import DistributedDataParallel
    clock = Clock()
    net = Net(clock)
    net.model = DistributedDataParallel(net.model)
    net.optimizer = torch.optim.SGD(net.model.parameters(), lr=0.1)

    def step(_):
        work(10)
        net.step()
    with Join([net.model]):
        return steps_of(clock, (10, 30)[rank], step)


@ranks(2)
def late(rank):
    """Rank 1 is 20 ms late before its forward."""
    from torch.nn.parallel import DistributedDataParallel
    clock = Clock()
    net = Net(clock)
    net.model = DistributedDataParallel(net.model)

    def step(_):
        if rank == 1:
            work(20)
        net.step()
    return steps_of(clock, 20, step)


@ranks(2)
def stages(rank):
    """Two pipeline stages with send and recv; rank 1 waits for rank 0's forward."""
    import torch
    import torch.distributed as dist
    clock = Clock()

    class Stage(torch.nn.Module):
        def __init__(self, ms):
            super().__init__()
            self.ms, self.inner = ms, torch.nn.Linear(64, 64)

        def forward(self, batch):
            work(self.ms)
            return self.inner(batch)
    net = Net(clock, Stage((25, 2)[rank]))

    def step(_):
        if rank == 0:
            with clock.part('forward'):
                output = net.model(net.batch)
            dist.send(output.detach(), 1)
            gradient = torch.empty(8, 64)
            with clock.part('recv'):
                dist.recv(gradient, 1)
            output.backward(gradient)
        else:
            batch = torch.empty(8, 64)
            with clock.part('recv'):
                dist.recv(batch, 0)
            batch.requires_grad_()
            net.backward(net.forward(batch))
            dist.send(batch.grad, 0)
        net.update()
    return {**steps_of(clock, 15, step), 'wait_ms': clock.mean('recv')}


@ranks(3)
def chain(rank):
    """Three stages hand a large tensor on. Rank 1 is slow: rank 0 waits to send to it, rank 2 to receive from it."""
    import torch
    import torch.distributed as dist
    clock = Clock()

    class Stage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(64, 64)

        def forward(self, batch):
            work((1, 30, 1)[rank])
            return self.inner(batch)
    net = Net(clock, Stage())
    tensor = torch.ones(1 << 21)

    def step(_):
        if rank > 0:
            dist.recv(tensor, rank - 1)
        net.step()
        if rank < 2:
            dist.send(tensor, rank + 1)
    return steps_of(clock, 15, step)


@program
def pipeline():
    """Two different programs that train, one after another."""
    import subprocess
    for name in ('losses', 'router'):
        subprocess.run([sys.executable, __file__, name], check=True)


def main():
    if sys.argv[1] == '--list':
        print(*PROGRAMS)
        return
    figures = PROGRAMS[sys.argv[1]]()
    if figures is not None:
        os.write(1, f'{json.dumps(figures)}\n'.encode())  # at once: ranks share a pipe


if __name__ == '__main__':
    main()
