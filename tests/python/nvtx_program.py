"""Builds programs/nvtx_program.c so that old loaders take it."""
import pathlib
import subprocess

import harness

STUBS = harness.BUILD / 'glibc_floor'
HEADERS = next((path for path in (pathlib.Path('/usr/local/cuda/include'), harness.CACHE / 'cuda-13.0/include')
                if (path / 'nvtx3/nvToolsExt.h').exists()), None)


def why_no_program():
    if not (STUBS / 'libc.so').exists():
        return f'{harness.BUILD} is built without RANKTAP_OLD_GLIBC'
    return None if HEADERS else 'no NVTX headers; scripts/setup installs them'


def build_program(target, is_library=False):
    """The program; as a library, for Python, a function `work`."""
    form = ['-shared', '-fPIC', '-D__PIC_LIBRARY__'] if is_library else []
    command = ['gcc', '-O1', '-pthread', '-I', HEADERS, *form, harness.PROGRAMS / 'nvtx_program.c', '-L', STUBS,
               '-ldl', '-o', target]
    if not is_library:
        command += ['-Wl,--wrap=__libc_start_main', STUBS / 'start.o']
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def build_steps(target):
    """programs/range_steps.c, for this machine's loader alone."""
    subprocess.run([str(part) for part in ('gcc', '-O1', '-I', HEADERS, harness.PROGRAMS / 'range_steps.c', '-ldl', '-o', target)],
                   check=True)
