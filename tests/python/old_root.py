"""Runs commands in the roots of other Debian releases that scripts/setup --packages installs."""
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import unittest

import harness

ROOTS = harness.CACHE / 'roots'
# suite: (glibc, Python)
SUITES = {'bullseye': ('2.31', '3.9'), 'trixie': ('2.41', '3.13'), 'forky': ('2.43', '3.14')}


def why_not(suite):
    if not (ROOTS / suite / 'usr/bin/python3').exists():
        return f'no root of Debian {suite} at {ROOTS / suite}; scripts/setup --packages (as root) installs it'
    if os.geteuid() != 0:
        return 'only root may chroot'
    return None


def run_in(suite, script, folders, timeout=harness.TIMEOUT_S):
    """Runs a shell script in the root; folders: {where it is seen: what it is}. What the script writes elsewhere than
    into these goes into a file system in memory, and with it."""
    reason = why_not(suite)
    if reason:
        print(f'SKIPPED, NOT TESTED: {reason}')
        raise unittest.SkipTest(reason)
    root, place = str(ROOTS / suite), str(ROOTS / f'{suite}.mounts')
    os.makedirs(place, exist_ok=True)
    at = f'{place}/root'
    steps = ['set -e', f'mount -t tmpfs none {place}', f'mkdir {place}/new {place}/work {at}',
             f'mount -t overlay none -o lowerdir={root},upperdir={place}/new,workdir={place}/work {at}',
             f'mount --rbind /proc {at}/proc', f'mount --rbind /dev {at}/dev']
    for seen, folder in folders.items():
        steps += [f'mkdir -p {at}{seen}', f'mount --bind {shlex.quote(str(folder))} {at}{seen}']
    steps.append(f'exec chroot {at} /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 '
                 f'sh -ec {shlex.quote(script)}')
    return subprocess.run(['unshare', '--mount', 'sh', '-c', '\n'.join(steps)], capture_output=True, text=True,
                          timeout=timeout)


def run_with_product(suite, program, command, folders={}, timeout=harness.TIMEOUT_S):
    """Runs a command in the root where /try holds the program and what `ranktap run` needs."""
    with tempfile.TemporaryDirectory(prefix='ranktap-test-') as folder:
        product = pathlib.Path(folder)
        product.chmod(0o755)
        for part in 'bin/ranktap', 'lib/libranktap.so', 'lib/libranktap_agent.so':
            (product / part).parent.mkdir(exist_ok=True)
            shutil.copy2(harness.BUILD / part, product / part)
        shutil.copy2(program, product)
        return run_in(suite, command, {'/try': product, **folders}, timeout)
