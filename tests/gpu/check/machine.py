"""This machine, as the report has it. PyTorch is looked for and not imported: that may take a minute, or never end."""
import importlib.metadata
import os
import platform
import sys


def torch_version():
    try:
        return importlib.metadata.version('torch')
    except importlib.metadata.PackageNotFoundError:
        return ''


def run(check):
    smi = check.run(['nvidia-smi', '--query-gpu=name,driver_version,memory.total', '--format=csv,noheader'])
    gpu, torch = smi.stdout.strip(), torch_version()
    found = {'gpu': gpu, 'torch': torch, 'kernel': os.uname().release, 'cores': os.cpu_count(),
             'python': sys.version.split()[0], 'libc': ' '.join(platform.libc_ver()),
             'cupti': os.environ.get('RANKTAP_CUPTI', ''), 'libraries': os.environ.get('LD_LIBRARY_PATH', '')}
    check.note('machine', None, f'{gpu or "no nvidia-smi"}; torch {torch or "absent"}; ' +
               ', '.join(f'{key} {found[key] or "-"}' for key in ('kernel', 'cores', 'python', 'libc', 'cupti')), **found)
