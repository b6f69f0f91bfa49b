"""Runs one interpreter in every way that changes its allocators, bare and under ranktap at each level, and prints
where status or output differ. usage: python_ways.py RANKTAP INTERPRETER"""
import os
import subprocess
import sys
import tempfile

LEVELS = ['ranges', 'kernels', 'full']
ALLOCATORS = [{'PYTHONMALLOC': name} for name in ('debug', 'malloc', 'pymalloc', 'malloc_debug')]
WAYS = [([], {}), (['-X', 'dev'], {}), ([], {'PYTHONDEVMODE': '1'}), (['-X', 'tracemalloc'], {'PYTHONMALLOC': 'debug'})]
WAYS += [([], environment) for environment in ALLOCATORS]
# torch's name, which the hook looks for; a thread that ends after the interpreter has begun to; and a fork, which
# before 3.10 dies of the debug allocator by itself.
PROGRAM = '''
import os, sys, threading
try:
    import torch
except ImportError:
    pass
if sys.version_info >= (3, 10):
    child = os.fork()
    if child == 0:
        sys.exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
threading.Thread(target=lambda: [bytes(1000) for _ in range(1000)]).start()
sys.exit(5)
'''


def outcome(command, environment):
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def main(ranktap, interpreter):
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for options, environment in WAYS:
            command = [interpreter, *options, '-c', PROGRAM]
            bare = outcome(command, environment)
            for number, level in enumerate([*LEVELS, 'dormant']):
                run = [ranktap, '--quiet', 'run', '-o', f'{folder}/{compared}-{number}', '--level', level]
                if level == 'dormant':
                    run = [*run[:-1], 'full', '--dormant']
                traced = outcome([*run, '--', *command], environment)
                compared += 1
                if traced != bare:
                    print(f'{environment} {options} {level}: {traced} instead of {bare}')
    print(f'compared {compared}, {sys.version_info[0]}.{sys.version_info[1]}')


main(*sys.argv[1:])
