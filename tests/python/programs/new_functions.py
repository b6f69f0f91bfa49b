"""Runs ever new functions of ever new files, below one that stays, until the file STOP is there.

  new_functions.py STOP [FUNCTIONS_PER_SECOND]
"""
import pathlib
import sys
import time


def call_new(number, pause):
    text = (f'def inner_{number}(time):\n    time.sleep({pause})\n'
            f'def outer_{number}(time):\n    inner_{number}(time)\n')
    space = {}
    exec(compile(text, f'/job/generated/module_{number}.py', 'exec'), space)
    space[f'outer_{number}'](time)


def stay(stop, pause):
    number = 0
    while not stop.exists():
        call_new(number, pause)
        number += 1
    return number


print(stay(pathlib.Path(sys.argv[1]), 1 / float(sys.argv[2]) if len(sys.argv) > 2 else 0.01))
