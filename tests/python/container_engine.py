"""Podman for tests, with a store of its own; its images are made of the Debian roots that scripts/setup --packages
installs: no registry is asked."""
import os
import pathlib
import shutil
import subprocess
import time
import unittest

import harness
import old_root
from nvtx_program import why_no_program

PROGRAM_STATUS = 7
NETWORK = ('--network', 'none')
# What the kernel of a virtual machine may lack: limits above its own, cgroups of version 2 alone.
CONFIGURATION = '''[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
'''


def why_not(suite):
    missing = [tool for tool in ('podman', 'runc', 'catatonit') if not shutil.which(tool)]
    if missing:
        return f'no {" and no ".join(missing)}; scripts/setup --packages installs them'
    return old_root.why_not(suite) or why_no_program()


def skip(reason):
    print(f'SKIPPED, NOT TESTED: {reason}')
    raise unittest.SkipTest(reason)

class Engine:
    """Podman with a store of its own, so that the machine's images stay as they are."""

    def __init__(self, scratch):
        self.folder = scratch
        (scratch / 'containers.conf').write_text(CONFIGURATION)
        self.environment = {**os.environ, 'CONTAINERS_CONF': str(scratch / 'containers.conf')}
        self.command = ['podman', '--root', str(scratch / 'store'), '--runroot', str(scratch / 'running'), '--tmpdir',
                        str(scratch / 'engine')]

    def ask(self, *words, **options):
        return subprocess.run([*self.command, *(str(word) for word in words)], capture_output=True, text=True,
                              timeout=harness.TIMEOUT_S, env=self.environment, **options)

    def must(self, *words, **options):
        done = self.ask(*words, **options)
        assert done.returncode == 0, f'podman {words}: {done.stdout}{done.stderr}'
        return done.stdout

    def import_root(self, root, name):
        parts = ['--exclude=./proc/*', '--exclude=./sys/*', '--exclude=./dev/*', '-c', '.']
        with subprocess.Popen(['tar', '-C', str(root), *parts], stdout=subprocess.PIPE) as tar:
            self.must('import', '-q', '-', name, stdin=tar.stdout)

    def build(self, name, folder, recipe):
        self.must('build', '--network', 'host', '-f', recipe, '-t', name, folder)

    def skip_where_no_container_starts(self, image):
        done = self.ask('run', '--rm', *NETWORK, image, 'true')
        if done.returncode != 0:
            skip(f'no container starts here: {done.stderr}')

    def close(self):
        self.ask('pod', 'rm', '-fa', '-t', '0')
        self.ask('rm', '-fa', '-t', '0')
        self.wait_for_monitors()
        with open('/proc/self/mounts') as mounts:
            places = [line.split()[1] for line in mounts]
        for place in reversed(places):
            if place.startswith(f'{self.folder}/'):
                subprocess.run(['umount', '-l', place], capture_output=True)

    def wait_for_monitors(self):
        """Each container's monitor ends after it, and calls the engine once more."""
        until = time.monotonic() + 60
        while any(str(self.folder) in words for words in command_lines()) and time.monotonic() < until:
            time.sleep(0.02)


def command_lines():
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            yield path.read_bytes().decode(errors='replace')
        except OSError:
            pass  # it has ended
