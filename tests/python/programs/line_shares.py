"""Spends its time in four lines for as many seconds as it is told, measures each of them by its own clock, and prints
{"file": its own, "seconds": {line: spent there}}. A second thread waits within a generator, a third one goes in and
out of a recursion all the time."""
import json
import sys
import threading
import time

spent = {}
ends = time.perf_counter() + float(sys.argv[1])


def busy(seconds):
    until, number = time.perf_counter() + seconds, 1
    while time.perf_counter() < until:
        for _ in range(200):
            number = number * 3 % 1000003
    return number


def measured(work, argument):
    begin = time.perf_counter()
    work(argument)
    line = sys._getframe(1).f_lineno
    spent[line] = spent.get(line, 0.0) + time.perf_counter() - begin


def waits():
    for pause in (pause for pause in [3600]):
        time.sleep(pause)


def dives():
    def dive(depth):
        return dive(depth - 1) if depth else time.sleep(0.0005)
    while True:
        dive(40)


for work in waits, dives:
    threading.Thread(target=work, daemon=True).start()
while time.perf_counter() < ends:
    measured(busy, 0.004)
    measured(busy, 0.008)
    measured(time.sleep, 0.012)
    measured(busy, 0.016)
print(json.dumps({'file': __file__, 'seconds': spent}), flush=True)
