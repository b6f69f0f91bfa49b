"""A real container engine, Podman: the image recipe builds, and the lines of docs/containers.md trace."""
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

import container_engine
import harness
import old_root
from container_engine import NETWORK, PROGRAM_STATUS
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


class ContainerEngineTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        if container_engine.why_not(SUITE):
            container_engine.skip(container_engine.why_not(SUITE))
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.folder.chmod(0o755)
        dist, job = cls.folder / 'dist', cls.folder / 'job'
        run(harness.ROOT / 'scripts/package', 'wheel', '--build', harness.BUILD, '--out', dist)
        run('cmake', '--install', harness.BUILD, '--prefix', cls.folder / 'ranktap', '--strip')
        job.mkdir()
        build_program(job / 'program')
        (cls.folder / 'python').write_text(PYTHON_RECIPE)
        (cls.folder / 'job.recipe').write_text(JOB_RECIPE)
        cls.engine = container_engine.Engine(cls.folder)
        cls.addClassCleanup(cls.engine.close)
        cls.engine.import_root(old_root.ROOTS / SUITE, 'localhost/debian')
        cls.engine.skip_where_no_container_starts('localhost/debian')
        cls.engine.build(PYTHON_IMAGE, job, cls.folder / 'python')
        cls.engine.build(JOB_IMAGE, job, cls.folder / 'job.recipe')
        cls.engine.build('localhost/ranktap', dist, harness.ROOT / 'scripts/container/Dockerfile')

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
        line = code_block(part).replace('/opt/ranktap', str(self.folder / 'ranktap'))
        line = line.replace('/run/ranktap', str(self.socket)).replace('python train.py', '/program')
        line = line.replace('IMAGE', JOB_IMAGE)
        self.assertTrue(line.startswith('docker run --gpus all '), line)
        words = ' '.join([*self.engine.command, 'run', '--rm', *NETWORK, *options])
        line = line.replace('docker run --gpus all', words, 1)
        path = f'{self.folder / "ranktap/bin"}:{os.environ["PATH"]}'
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
        other_users = ('--uidmap', '0:100000:65536', '--gidmap', '0:100000:65536')
        kinds = {
            'plain': (),
            'read-only': ('--read-only',),
            'another user': ('--user', '1000:1000'),
            'nothing allowed': ('--read-only', '--user', '1000:1000', '--cap-drop', 'all', '--security-opt',
                                'no-new-privileges'),
            'users of its own': other_users,
            'another user of its own': (*other_users, '--user', '1000'),
            'the PIDs of the machine': ('--pid', 'host', '--ipc', 'host'),
            '64 MiB': ('--memory', '64m'),
        }
        for kind, options in kinds.items():
            with self.subTest(container=kind):
                done = self.run_docs_line('$(ranktap collect', *options)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (PROGRAM_STATUS, 'worked\n', ''))
        end()
        found = self.assert_traces(self.traces, len(kinds))
        owners = sorted(trace.stat().st_uid for trace in found)
        self.assertEqual(owners, [0, 0, 0, 0, 1000, 1000, 100_000, 101_000])

    def test_the_pod_of_the_page_is_traced(self):
        end = self.collect_outside()
        text = code_block('initContainers', 'yaml').replace('YOUR_REGISTRY/ranktap          #', 'localhost/ranktap  #')
        text = text.replace('- name: train\n', f'- name: train\n      image: {JOB_IMAGE}\n')
        text = text.replace('--, python, train.py', '--, /program').replace('{path: /run/ranktap', f'{{path: {self.socket}')
        pod = self.scratch / 'pod.yaml'
        pod.write_text('apiVersion: v1\nkind: Pod\nmetadata: {name: job}\n' +
                       text.replace('spec:\n', 'spec:\n  hostNetwork: true\n  restartPolicy: Never\n'))
        self.engine.must('play', 'kube', '--network', 'host', pod)
        status = self.engine.must('wait', 'job-train').strip()
        said = self.engine.must('logs', 'job-train')
        self.engine.must('pod', 'rm', '-f', 'job')
        self.assertEqual((status, said), (str(PROGRAM_STATUS), 'worked\n'))
        end()
        self.assert_traces(self.traces, 1)

    def test_run_around_the_engine_says_where_ranktap_belongs(self):
        done = subprocess.run([str(harness.RANKTAP), 'run', '-o', str(self.scratch / 'run'), '--', *self.engine.command,
                               'run', '--rm', *NETWORK, JOB_IMAGE, '/program'], capture_output=True, text=True,
                              env=self.engine.environment)
        self.assertEqual(done.returncode, PROGRAM_STATUS, done.stderr)
        self.assertIn('podman gives the container an environment of its own. Run ranktap inside the container',
                      done.stderr)


if __name__ == '__main__':
    unittest.main()
