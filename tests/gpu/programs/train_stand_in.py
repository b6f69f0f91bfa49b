"""What train_models.py is on a GPU, on the stand-in: the C++ training program, timed from outside.

Its figures mean nothing; that the checks work with them does.
"""
import argparse
import json
import pathlib
import subprocess
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('workloads', type=pathlib.Path)
    parser.add_argument('--model', required=True)
    parser.add_argument('--steps', type=int, required=True)
    parser.add_argument('--mode', default='bare')
    parser.add_argument('--count', action='store_true')
    options = parser.parse_args()
    command = [options.workloads / 'train_cuda', '--ranks', '1', '--steps', str(options.steps)]
    if options.mode == 'profiler':
        command = [options.workloads / 'profiles_itself', str(options.steps), '1', '0']
    start = time.perf_counter_ns()
    subprocess.run([str(part) for part in command], check=True, capture_output=True)
    spent = time.perf_counter_ns() - start
    print(json.dumps({'model': options.model, 'ns_per_step': spent / options.steps,
                      **({'launches_per_step': 10} if options.count else {})}))


if __name__ == '__main__':
    main()
