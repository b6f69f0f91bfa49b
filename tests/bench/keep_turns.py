"""What `--keep` adds to level *kernels*: CPU time of the training program and of the collector, and the program's time,
with it over without it. Pairs of runs on the stand-in for CUDA, without, with, with, without.

  keep_turns.py [PAIRS [STEPS]]    RANKTAP_BUILD is the build tree
"""
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get('RANKTAP_BUILD', pathlib.Path(__file__).resolve().parents[2] / 'build/release'))
TIMED = 'TIMEFORMAT="%U %S %R"; time "$0" --ranks 1 --steps "$1" > /dev/null'
# Student's t, 95 % on both sides.
T = {4: 3.18, 6: 2.57, 8: 2.36, 10: 2.26, 12: 2.20, 16: 2.13, 20: 2.09}


def one(keeps, steps, scratch):
    """Seconds of (the program's CPU, the collector's, the program's clock)."""
    options = ['--quiet', '--level', 'kernels', *(['--keep', '6s'] if keeps else []), '-o', scratch / 'run']
    program = ['bash', '-c', TIMED, BUILD / 'workloads/train_cuda', str(steps)]
    with subprocess.Popen([BUILD / 'bin/ranktap', 'run', *options, '--', *program], stderr=subprocess.PIPE, text=True,
                          env={**os.environ, 'LD_LIBRARY_PATH': str(BUILD / 'fakes')}) as job:
        told = job.stderr.read().split()
        _, status, usage = os.wait4(job.pid, 0)
        job.returncode = status
    assert status == 0, told
    shutil.rmtree(scratch / 'run')
    user, system, clock = map(float, told[-3:])
    return user + system, usage.ru_utime + usage.ru_stime - user - system, clock


def main():
    pairs, steps = (int(word) for word in (sys.argv[1:] + ['12', '60000'][len(sys.argv) - 1:])[:2])
    runs = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix='ranktap-bench-') as folder:
        for i in range(2 * pairs):
            keeps = i % 4 in (1, 2)
            runs[keeps].append(one(keeps, steps, pathlib.Path(folder)))
    for column, name in enumerate(("the program's CPU", "the collector's CPU", "the program's time")):
        logs = [math.log(with_[column] / without[column]) for with_, without in zip(runs[True], runs[False])]
        mean, error = statistics.mean(logs), statistics.stdev(logs) / math.sqrt(pairs) * T.get(pairs, 2.6)
        usual = statistics.median(run[column] for run in runs[False])
        print(f'{name}: {math.exp(mean):.3f} ({math.exp(mean - error):.3f} to {math.exp(mean + error):.3f}) of '
              f'{1e6 * usual / steps:.1f} us a step, {pairs} pairs')


main()
