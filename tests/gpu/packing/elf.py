"""The demands of a packed program or library on the machine that it comes to."""
import re
import subprocess

# libpthread, libdl and librt are glibc's too: what is linked for an old one names them.
NEEDED = {'libc.so.6', 'libm.so.6', 'libpthread.so.0', 'libdl.so.2', 'librt.so.1', 'libgcc_s.so.1', 'ld-linux-x86-64.so.2',
          'libcudart.so.13'}
# Ubuntu 24.04 has glibc 2.39. Ours is built on 2.36, whose arc4random libstdc++ takes: a bound below that would turn
# good files down, and Ubuntu 22.04 (2.35) has no PyTorch of ours to be checked with.
NEWEST_GLIBC = (2, 39)
RUN_PATHS = {'/usr/local/cuda/lib64'}


def readelf(path, *options):
    return subprocess.run(['readelf', '-W', *options, path], capture_output=True, text=True, check=True).stdout


def newest_glibc(path):
    versions = re.findall(r'GLIBC_(\d+)\.(\d+)', readelf(path, '-V'))
    return max(((int(major), int(minor)) for major, minor in versions), default=(0, 0))


def complaints(path):
    dynamic = readelf(path, '-d')
    needed = set(re.findall(r'\(NEEDED\).*\[(.*)\]', dynamic))
    run_paths = {part for found in re.findall(r'\((?:RUNPATH|RPATH)\).*\[(.*)\]', dynamic) for part in found.split(':')}
    newest = newest_glibc(path)
    found = [f'needs {name}' for name in sorted(needed - NEEDED)]
    found += [f'looks for libraries in {name}' for name in sorted(run_paths - RUN_PATHS)]
    if newest > NEWEST_GLIBC:
        found.append(f'needs GLIBC_{newest[0]}.{newest[1]}')
    if '.debug_info' in readelf(path, '-S'):
        found.append('is not stripped')
    return found
