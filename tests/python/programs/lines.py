"""Programs whose time lies on a known line: `lines.py NAME SECONDS`. The line ends with `# NAME`."""
import ctypes
import gc
import io
import logging
import multiprocessing
import pathlib
import subprocess
import sys
import threading
import time


def sleep(until):
    while time.monotonic() < until:
        time.sleep(0.03)  # sleep
        sum(range(100))


def batches(until):
    while time.monotonic() < until:
        yield [x * x for x in range(200_000)]  # generator


def generator(until):
    for batch in batches(until):
        len(batch)


class Slow(io.StringIO):
    def flush(self):
        time.sleep(0.01)


def log(until):
    logger = logging.getLogger('job')
    logger.addHandler(logging.StreamHandler(Slow()))
    while time.monotonic() < until:
        logger.error('loss %s', 0.5)  # log


def collect(until):
    kept = [[i] for i in range(100_000)]
    while time.monotonic() < until:
        gc.collect()  # collect
    return kept


def lock(until):
    held = threading.Lock()

    def hold():
        while time.monotonic() < until:
            with held:
                time.sleep(0.05)

    threading.Thread(target=hold).start()
    time.sleep(0.01)
    while time.monotonic() < until:
        with held:  # lock
            pass
        time.sleep(0.001)


def hog(until):
    """The main thread wants the GIL, which the other thread gives back every 5 ms alone."""
    def spin():
        while time.monotonic() < until:
            sum(i for i in range(10_000))

    for _ in range(3):
        threading.Thread(target=spin).start()
    while time.monotonic() < until:
        sum(i for i in range(1000))  # hog


def even(until):
    """Nothing is guilty: four lines with a quarter each, on a busy machine too."""
    while time.monotonic() < until:
        time.sleep(0.02)
        time.sleep(0.02)
        time.sleep(0.02)
        time.sleep(0.02)


def item(until):
    """The stand-in for CUDA: the host reads a number of each step as PyTorch's .item() does, and the device waits
    for its next work."""
    sys.path.append(str(pathlib.Path(__file__).parents[2] / 'gpu/programs'))
    import stand_in_device
    device = stand_in_device.StandIn(kernel_ns=5e6)
    cuda, stream, memory, loss = device.cuda, device.stream, ctypes.c_void_p(), ctypes.byref(ctypes.c_float())
    cuda.cuMemAlloc_v2(ctypes.byref(memory), 4)
    while time.monotonic() < until:
        device.step()
        cuda.cuMemcpyDtoHAsync_v2(loss, memory, 4, stream), cuda.cuStreamSynchronize(stream)  # item
        time.sleep(0.004)
        time.sleep(0.004)


def forked(until):
    while time.monotonic() < until:
        time.sleep(0.02)  # forked


def started(until):
    while time.monotonic() < until:
        time.sleep(0.02)  # started


def children(until):
    """Two processes of its own, one of which is a program of its own; a third becomes another program."""
    workers = [multiprocessing.get_context('fork').Process(target=forked, args=(until,)),
               multiprocessing.get_context('spawn').Process(target=started, args=(until,))]
    for worker in workers:
        worker.start()
    subprocess.run(['sleep', '0.3'], check=True)
    for worker in workers:
        worker.join()


def main():
    name, seconds = sys.argv[1], float(sys.argv[2])
    {'sleep': sleep, 'generator': generator, 'log': log, 'collect': collect, 'lock': lock, 'hog': hog,
     'even': even, 'children': children, 'item': item}[name](time.monotonic() + seconds)


if __name__ == '__main__':
    main()
