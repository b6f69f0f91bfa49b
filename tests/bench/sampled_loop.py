"""Eight threads of Python, one of them at work. It says when it begins, works the blocks that it is told and prints
the CPU nanoseconds of each: `begin`, then a list.

  sampled_loop.py BLOCKS
"""
import json
import sys
import threading
import time


def work():
    total = 0
    for number in range(60_000):
        total += number * number % 7
    return total


def wait(depth, lock):
    if depth:
        return wait(depth - 1, lock)
    lock.acquire()


never = threading.Lock()
never.acquire()
for depth in range(7):
    threading.Thread(target=wait, args=(5 * depth, never), daemon=True).start()
for _ in range(20):
    work()
sys.stdin.readline()
print('begin', flush=True)
taken = []
for _ in range(int(sys.argv[1])):
    start = time.thread_time_ns()
    work()
    taken.append(time.thread_time_ns() - start)
print(json.dumps(taken), flush=True)
sys.stdin.readline()
