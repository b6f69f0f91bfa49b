"""Podman and Docker for tests, with stores of their own; their images are made of the Debian roots that scripts/setup
--packages installs: no registry is asked."""
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


DOCKER = harness.CACHE / 'docker/usr'
CONTAINERD = pathlib.Path('/opt/containerd')  # Docker's containerd makes it wherever it runs


def why_no_images(suite):
    return old_root.why_not(suite) or why_no_program()


def skip(reason):
    print(f'SKIPPED, NOT TESTED: {reason}')
    raise unittest.SkipTest(reason)


class Engine:
    """What Podman and Docker have in common; a store below the folder, so that the machine's images stay as they are."""

    def __init__(self, scratch):
        self.folder = scratch
        self.environment = {**os.environ}
        self.command = []

    def ask(self, *words, **options):
        return subprocess.run([*self.command, *(str(word) for word in words)], capture_output=True, text=True,
                              timeout=harness.TIMEOUT_S, env=self.environment, **options)

    def must(self, *words, **options):
        done = self.ask(*words, **options)
        assert done.returncode == 0, f'{self.command[0]} {words}: {done.stdout}{done.stderr}'
        return done.stdout

    def import_root(self, root, name):
        parts = ['--exclude=./proc/*', '--exclude=./sys/*', '--exclude=./dev/*', '-c', '.']
        with subprocess.Popen(['tar', '-C', str(root), *parts], stdout=subprocess.PIPE) as tar:
            self.must('import', '-', name, stdin=tar.stdout)

    def build(self, name, folder, recipe):
        self.must('build', '--network', 'host', '-f', recipe, '-t', name, folder)

    def skip_where_no_container_starts(self, image):
        done = self.ask('run', '--rm', *NETWORK, image, 'true')
        if done.returncode != 0:
            skip(f'no container starts here: {done.stderr}')

    def unmount(self):
        with open('/proc/self/mounts') as mounts:
            places = [line.split()[1] for line in mounts]
        for place in reversed(places):
            if place.startswith(f'{self.folder}/'):
                subprocess.run(['umount', '-l', place], capture_output=True)


class Podman(Engine):
    NAME = 'podman'

    @staticmethod
    def why_not():
        missing = [tool for tool in ('podman', 'runc', 'catatonit') if not shutil.which(tool)]
        return f'no {" and no ".join(missing)}; scripts/setup --packages installs them' if missing else None

    def __init__(self, scratch):
        super().__init__(scratch)
        (scratch / 'containers.conf').write_text(CONFIGURATION)
        self.environment['CONTAINERS_CONF'] = str(scratch / 'containers.conf')
        self.command = ['podman', '--root', str(scratch / 'store'), '--runroot', str(scratch / 'running'), '--tmpdir',
                        str(scratch / 'engine')]

    def close(self):
        self.ask('pod', 'rm', '-fa', '-t', '0')
        self.ask('rm', '-fa', '-t', '0')
        self.wait_for_monitors()
        self.unmount()

    def wait_for_monitors(self):
        """Each container's monitor ends after it, and calls the engine once more."""
        until = time.monotonic() + 60
        while any(str(self.folder) in words for words in command_lines()) and time.monotonic() < until:
            time.sleep(0.02)


class Docker(Engine):
    """A daemon of its own, that leaves the machine's network alone."""
    NAME = 'docker'

    @staticmethod
    def why_not():
        if not (DOCKER / 'sbin/dockerd').exists():
            return f'no Docker at {DOCKER}; scripts/setup --packages installs it'
        return None if shutil.which('runc') else 'no runc; scripts/setup --packages installs it'

    def __init__(self, scratch):
        super().__init__(scratch)
        socket, self.log = scratch / 'docker.sock', scratch / 'docker.log'
        self.leaves_nothing = not CONTAINERD.exists()
        self.environment['PATH'] = f'{DOCKER}/sbin:{DOCKER}/bin:{os.environ["PATH"]}'
        self.environment['DOCKER_CONFIG'] = str(scratch / 'docker')
        self.command = [str(DOCKER / 'bin/docker'), '-H', f'unix://{socket}']
        with open(self.log, 'w') as log:
            self.daemon = subprocess.Popen(
                ['dockerd', '-H', f'unix://{socket}', '--data-root', scratch / 'store', '--exec-root', scratch / 'running',
                 '--pidfile', scratch / 'docker.pid', '--bridge=none', '--iptables=false', '--ip6tables=false',
                 '--ip-forward=false', '--ip-masq=false'],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)
        until = time.monotonic() + 60
        while self.ask('version').returncode != 0:
            if self.daemon.poll() is not None or time.monotonic() > until:
                self.close()
                skip(f'no daemon of Docker comes up here: {self.log.read_text()[-2000:]}')
            time.sleep(0.02)

    def close(self):
        if self.daemon.poll() is None:
            self.ask('rm', '-f', *self.ask('ps', '-aq').stdout.split())
        self.daemon.terminate()
        self.daemon.wait()
        self.unmount()
        if self.leaves_nothing:
            shutil.rmtree(CONTAINERD, ignore_errors=True)


def command_lines():
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            yield path.read_bytes().decode(errors='replace')
        except OSError:
            pass  # it has ended
