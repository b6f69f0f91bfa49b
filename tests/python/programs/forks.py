"""Forks, starts programs and threads, and ends in the midst of it: prints what each child did."""
import os
import subprocess
import sys
import threading
import time


def recurse(depth):
    return recurse(depth - 1) + 1 if depth else 0


def spin():
    while True:
        recurse(200)
        exec('def made(x):\n return [x * i for i in range(50)]', scope := {})
        scope['made'](2)


for _ in range(3):
    threading.Thread(target=spin, daemon=True).start()
for number in range(20):
    child = os.fork()
    if child == 0:
        names = {open(f'/proc/self/task/{thread}/comm').read().strip() for thread in os.listdir('/proc/self/task')}
        recurse(50)
        os._exit(1 if any(name.startswith('ranktap') for name in names) else 7)
    print(number, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(subprocess.run([sys.executable, '-c', 'print("here")'], capture_output=True, text=True, check=True).stdout)
sys.setrecursionlimit(20_000)
threading.stack_size(512 << 20)
deep = threading.Thread(target=recurse, args=(15_000,))
deep.start()
deep.join()
time.sleep(0.1)
sys.exit(3)
