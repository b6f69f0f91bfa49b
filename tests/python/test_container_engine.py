"""Real container engines, Podman and Docker: the image recipe builds, and the lines of docs/containers.md trace."""
import functools
import os
import pathlib
import re
import subprocess
import tempfile
import textwrap
import time
import unittest

import container_engine
import harness
import old_root
from container_engine import NETWORK, PROGRAM_STATUS, Docker, Podman
from nvtx_program import build_program

DOCS = harness.ROOT / 'docs/containers.md'
SUITE = 'trixie'
PYTHON_IMAGE = 'docker.io/library/python:3.12-slim-bookworm'  # what the recipe begins with; stood in for
JOB_IMAGE = 'localhost/job'
PYTHON_RECIPE = '''FROM localhost/debian
RUN python3 -m venv /usr/local && ln -sf python3 /usr/local/bin/python
ENV PATH=/usr/local/bin:/usr/bin:/bin
'''
JOB_RECIPE = '''FROM localhost/debian
COPY program /program
'''


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=harness.TIMEOUT_S,
                          **options)
    assert done.returncode == 0, f'{command}: {done.stdout}{done.stderr}'
    return done.stdout


def code_blocks(language=''):
    return re.findall(rf'^```{language}\n(.*?)^```$', DOCS.read_text(), re.M | re.S)


def code_block(part, language=''):
    """The one block of the page with these words."""
    found = [block for block in code_blocks(language) if part in block]
    assert len(found) == 1, f'{len(found)} blocks with {part!r} in {DOCS}'
    return found[0]


@functools.cache
def images():
    made = Images()
    unittest.addModuleCleanup(made.folder.cleanup)
    return made


class Images:
    """What the images of each engine are made of."""

    def __init__(self):
        reason = container_engine.why_no_images(SUITE)
        if reason:
            container_engine.skip(reason)
        self.folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        self.path = pathlib.Path(self.folder.name)
        self.path.chmod(0o755)
        self.dist, self.job, self.ranktap = self.path / 'dist', self.path / 'job', self.path / 'ranktap'
        run(harness.ROOT / 'scripts/package', 'wheel', '--build', harness.BUILD, '--out', self.dist)
        run('cmake', '--install', harness.BUILD, '--prefix', self.ranktap, '--strip')
        self.job.mkdir()
        build_program(self.job / 'program')
        (self.path / 'python').write_text(PYTHON_RECIPE)
        (self.path / 'job.recipe').write_text(JOB_RECIPE)

    def build(self, engine):
        engine.import_root(old_root.ROOTS / SUITE, 'localhost/debian')
        engine.skip_where_no_container_starts('localhost/debian')
        engine.build(PYTHON_IMAGE, self.job, self.path / 'python')
        engine.build(JOB_IMAGE, self.job, self.path / 'job.recipe')
        engine.build('localhost/ranktap', self.dist, harness.ROOT / 'scripts/container/Dockerfile')


class Containers:
    """The tests of an engine: ENGINE says which."""

    @classmethod
    def setUpClass(cls):
        if cls.ENGINE.why_not():
            container_engine.skip(cls.ENGINE.why_not())
        cls.folder = images().path / cls.ENGINE.NAME
        cls.folder.mkdir(mode=0o755)
        cls.engine = cls.ENGINE(cls.folder)
        cls.addClassCleanup(cls.engine.close)
        images().build(cls.engine)

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix='case-', dir=self.folder))
        self.scratch.chmod(0o755)
        self.socket = self.scratch / 'socket'
        self.socket.mkdir(mode=0o755)
        self.traces = self.scratch / 'runs'

    def wait_for_socket(self):
        until = time.monotonic() + 60
        while not (self.socket / 'collector.sock').exists():
            self.assertLess(time.monotonic(), until, 'no collector came up')
            time.sleep(0.01)

    def collect_outside(self):
        """A collector on this machine; returns what ends it."""
        (self.scratch / 'spool').mkdir()
        collector = subprocess.Popen(
            [str(harness.RANKTAP), 'collect', '--all-users', '--socket', str(self.socket / 'collector.sock'),
             '-o', str(self.traces), '--spool', str(self.scratch / 'spool')],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(collector.wait)
        self.addCleanup(collector.kill)
        self.wait_for_socket()

        def end():
            collector.terminate()
            self.assertEqual(collector.wait(), 0)
        return end

    def run_docs_line(self, part, *options):
        """A command of the page with this machine's places, engine and program for the page's."""
        line = code_block(part).replace('/opt/ranktap', str(images().ranktap))
        line = line.replace('/run/ranktap', str(self.socket)).replace('python train.py', '/program')
        line = line.replace('IMAGE', JOB_IMAGE)
        self.assertTrue(line.startswith('docker run --gpus all '), line)
        words = ' '.join([*self.engine.command, 'run', '--rm', *NETWORK, *options])
        line = line.replace('docker run --gpus all', words, 1)
        path = f'{images().ranktap / "bin"}:{os.environ["PATH"]}'
        return subprocess.run(['sh', '-c', line], capture_output=True, text=True, cwd=self.scratch,
                              timeout=harness.TIMEOUT_S, env={**self.engine.environment, 'PATH': path})

    def assert_traces(self, folder, count):
        found = list(folder.rglob('*.trace'))
        self.assertEqual(len(found), count, found)
        for trace in found:
            self.assertRegex(run(harness.RANKTAP, 'verify', trace), 'ok, 12 events')
        return found

    def test_a_collector_of_the_image_serves_a_container_beside_it(self):
        name = self.engine.must('run', '-d', *NETWORK, '-v', f'{self.socket}:/run/ranktap', '-v',
                                f'{self.scratch}:/var/lib/ranktap', 'localhost/ranktap').strip()
        self.wait_for_socket()
        done = self.run_docs_line('$(ranktap collect')
        self.assertEqual(done.returncode, PROGRAM_STATUS, done.stderr)
        self.engine.must('stop', name)
        self.assert_traces(self.scratch, 1)

    def test_the_image_says_its_version(self):
        self.assertEqual(self.engine.must('run', '--rm', *NETWORK, 'localhost/ranktap', '--version'),
                         run(harness.RANKTAP, '--version'))

    def test_a_run_inside_the_container_lies_in_the_mounted_folder(self):
        (self.scratch / 'runs').mkdir()
        done = self.run_docs_line('ranktap run -o /runs/first')
        self.assertEqual(done.returncode, PROGRAM_STATUS, done.stderr)
        self.assert_traces(self.scratch / 'runs/first', 1)

    def test_containers_of_every_confinement_join_the_collector_outside(self):
        end = self.collect_outside()
        kinds = {
            'plain': (),
            'read-only': ('--read-only',),
            'another user': ('--user', '1000:1000'),
            'nothing allowed': ('--read-only', '--user', '1000:1000', '--cap-drop', 'all', '--security-opt',
                                'no-new-privileges'),
            'the PIDs of the machine': ('--pid', 'host', '--ipc', 'host'),
            '64 MiB': ('--memory', '64m'),
            **self.MORE_KINDS,
        }
        for kind, options in kinds.items():
            with self.subTest(container=kind):
                done = self.run_docs_line('$(ranktap collect', *options)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (PROGRAM_STATUS, 'worked\n', ''))
        end()
        found = self.assert_traces(self.traces, len(kinds))
        owners = sorted(trace.stat().st_uid for trace in found)
        self.assertEqual(owners, sorted([0, 0, 0, 0, 1000, 1000, *self.MORE_OWNERS]))

    def test_run_around_the_engine_says_where_ranktap_belongs(self):
        done = subprocess.run([str(harness.RANKTAP), 'run', '-o', str(self.scratch / 'run'), '--', *self.engine.command,
                               'run', '--rm', *NETWORK, JOB_IMAGE, '/program'], capture_output=True, text=True,
                              env=self.engine.environment)
        self.assertEqual(done.returncode, PROGRAM_STATUS, done.stderr)
        self.assertIn(f'{self.engine.NAME} gives the container an environment of its own. Run ranktap inside the container',
                      done.stderr)


OTHER_USERS = ('--uidmap', '0:100000:65536', '--gidmap', '0:100000:65536')


class PodmanTest(Containers, unittest.TestCase):
    ENGINE = Podman
    MORE_KINDS = {'users of its own': OTHER_USERS, 'another user of its own': (*OTHER_USERS, '--user', '1000')}
    MORE_OWNERS = (100_000, 101_000)

    def play(self, text):
        """Starts a pod of this text, with this machine's images and places for the page's."""
        text = text.replace('YOUR_REGISTRY/ranktap', 'localhost/ranktap').replace('path: /run/ranktap', f'path: {self.socket}')
        pod = self.scratch / 'pod.yaml'
        pod.write_text(text.replace('path: /var/lib/ranktap', f'path: {self.scratch}'))
        self.engine.must('play', 'kube', '--network', 'host', pod)

    def test_the_pods_of_the_page_trace(self):
        template = textwrap.dedent(code_block('kind: DaemonSet', 'yaml').split('  template:\n')[1])
        template = template.replace('metadata: {labels: {app: ranktap}}', 'metadata: {name: ranktap}')
        self.play('apiVersion: v1\nkind: Pod\n' + template.replace('spec:\n', 'spec:\n  hostNetwork: true\n'))
        self.wait_for_socket()
        text = code_block('initContainers', 'yaml')
        text = text.replace('- name: train\n', f'- name: train\n      image: {JOB_IMAGE}\n')
        text = text.replace('--, python, train.py', '--, /program')
        self.play('apiVersion: v1\nkind: Pod\nmetadata: {name: job}\n' +
                  text.replace('spec:\n', 'spec:\n  hostNetwork: true\n  restartPolicy: Never\n'))
        status = self.engine.must('wait', 'job-train').strip()
        said = self.engine.must('logs', 'job-train')
        self.engine.must('pod', 'rm', '-f', 'job')
        self.assertEqual((status, said), (str(PROGRAM_STATUS), 'worked\n'))
        self.engine.must('pod', 'stop', 'ranktap')
        self.engine.must('pod', 'rm', '-f', 'ranktap')
        self.assert_traces(self.scratch, 1)


class DockerTest(Containers, unittest.TestCase):
    ENGINE = Docker
    MORE_KINDS = {'with an init of its own': ('--init',)}
    MORE_OWNERS = (0,)


if __name__ == '__main__':
    unittest.main()
