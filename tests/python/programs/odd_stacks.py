"""Stacks that are hard to read, each kind for half a second of CPU time (a busy machine gives as many looks): a
recursion 100,000 deep, interpreters in the interpreter, tasks, greenlets, made code whose file has no name or one that is
not UTF-8, a process whose memory nobody may read from outside, 3,000 threads. Prints that each was there."""
import asyncio
import ctypes
import sys
import threading
import time

KIND_S = 0.5


def for_a_while(work):
    until, rounds = time.process_time() + KIND_S, 0
    while time.process_time() < until:
        work()
        rounds += 1
    return rounds > 0


def many_threads():
    goes = threading.Event()
    threads = [threading.Thread(target=goes.wait) for _ in range(3000)]
    for thread in threads:
        thread.start()
    lives = for_a_while(lambda: sum(range(1000)))
    goes.set()
    for thread in threads:
        thread.join()
    return lives


def deep():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200_000)

    def dive(depth):
        return dive(depth - 1) + 1 if depth else for_a_while(lambda: None)
    reached = dive(100_000)
    sys.setrecursionlimit(limit)
    return reached


def interpreters():
    import _xxsubinterpreters as sub

    def one():
        inner = sub.create()
        sub.run_string(inner, 'def in_another(n):\n return sum(i for i in range(n))\nfor _ in range(1000): in_another(500)')
        sub.destroy(inner)
    return for_a_while(one)


def tasks():
    async def leaf(number):
        await asyncio.sleep(0)
        return number

    async def branch():
        return sum(await asyncio.gather(*(leaf(number) for number in range(50))))
    return for_a_while(lambda: asyncio.run(branch()))


def greenlets():
    from greenlet import greenlet

    def one():
        def inner():
            for number in range(20):
                back.switch(number)
        back = greenlet.getcurrent()
        other = greenlet(inner)
        while not other.dead:
            other.switch()
    return for_a_while(one)


def made_code():
    def one():
        for name in '', '<made>', 'b\udcff.py', 'ж' * 300:
            exec(compile('def made(x):\n return [x * i for i in range(50)]\nmade(3)', name, 'exec'), {})
    return for_a_while(one)


def unreadable():
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    return for_a_while(lambda: sum(range(1000)))


for kind in deep, interpreters, tasks, greenlets, made_code, unreadable, many_threads:
    try:
        print(kind.__name__, kind(), flush=True)
    except ImportError as missing:
        print(kind.__name__, missing, flush=True)
