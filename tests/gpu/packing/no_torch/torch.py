"""Stands for PyTorch in gpu-check's preflight: the import itself does what GPU_CHECK_TORCH says, so that every
program that needs PyTorch does it."""
import json
import os
import signal
import subprocess
import sys
import time

WATCHED = any(name in os.environ for name in ('CUDA_INJECTION64_PATH', 'LD_PRELOAD'))
# Recognised by the preflight, which asks whether one is left.
LONG_SLEEP = ['sleep', '31536']


def end(status=0):
    sys.stdout.flush()
    os._exit(status)


def say(**wrong):
    print(json.dumps({'losses': [1.0], 'libcupti': ['/libcupti.so.13'], 'kernels': {'k': 1}, 'ns_per_step': 1e6,
                      'profiled_kernels': {'k': 1}, 'launches_per_step': 3, **wrong}))
    end()


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def hang():
    # With a grandchild that keeps its output open.
    subprocess.Popen(LONG_SLEEP)
    time.sleep(31536)


def nonsense():
    print('Segmentation fault? No.\n{"losses": [1.0, ')
    end()


HOW = {'nothing': end, 'crash': crash, 'hang': hang, 'nonsense': nonsense, 'well': say,
       'wrong types': lambda: say(losses=7, libcupti=None, kernels=5, ns_per_step='fast', profiled_kernels=[1],
                                  launches_per_step='many'),
       'crash when watched': lambda: crash() if WATCHED else say()}

HOW[os.environ['GPU_CHECK_TORCH']]()
