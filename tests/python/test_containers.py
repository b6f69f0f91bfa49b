"""A rank and a collector that do not share a world: users, user namespaces, roots, read-only and full file systems. The
namespaces are real; each test is skipped, with its reason, where this machine does not allow them."""
import json
import os
import subprocess
import time
import unittest

from harness import BUILD, PROGRAMS, RANKTAP, ROOT, TracedTest

NOBODY = 65534
FAKES = BUILD / 'fakes'
PROGRAM = [BUILD / 'workloads/train_cuda', '--ranks', '1', '--steps', '3']
ON_STANDIN = {'LD_LIBRARY_PATH': str(FAKES)}


def needs_root(test):
    return unittest.skipUnless(os.geteuid() == 0, 'only root may become another user or mount')(test)


def everybody_may_enter(path):
    return all(os.stat(folder).st_mode & 1 for folder in [path, *path.parents])


def needs_open_build(test):
    return unittest.skipUnless(everybody_may_enter(BUILD), f'other users may not enter {BUILD}')(test)


@needs_root
class OtherUser(TracedTest):
    """An entry point that gives up being root (gosu, setpriv)."""

    @needs_open_build
    def test_a_process_that_became_another_user_is_traced_by_roots_run(self):
        done, run = self.run_traced(['setpriv', '--reuid', NOBODY, '--regid', NOBODY, '--clear-groups', *PROGRAM],
                                    **ON_STANDIN)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_verifies(run)
        self.assertGreater(len(self.report(run, 'kernels')), 0)

    @needs_open_build
    def test_a_stranger_is_not_served_by_roots_run(self):
        """The same user, from outside the command: its socket is reachable, the run does not take it."""
        stop = self.scratch / 'stop'
        waiter = f'echo $RANKTAP_SOCKET > {self.scratch}/socket; read end < {stop}'
        os.mkfifo(stop)
        run = self.scratch / 'run'
        server = subprocess.Popen([str(RANKTAP), 'run', '-o', str(run), '--', 'sh', '-c', waiter],
                                  stderr=subprocess.DEVNULL, env={**os.environ, **ON_STANDIN})
        self.addCleanup(server.kill)
        socket = self.wait_for_text(self.scratch / 'socket')
        library = str(BUILD / 'lib/libranktap.so')
        done = self._run(['setpriv', '--reuid', NOBODY, '--regid', NOBODY, '--clear-groups', *PROGRAM],
                         {**ON_STANDIN, 'RANKTAP_SOCKET': socket, 'LD_PRELOAD': library,
                          'CUDA_INJECTION64_PATH': library, 'RANKTAP_SPOOL': str(self.scratch / 'no-spool')})
        self.assertEqual(done.returncode, 0, done.stderr)
        stop.write_text('now\n')
        server.wait()
        self.assertEqual(list(run.glob('*.trace*')), [])
        self.assertIn("another user's process", json.loads((run / 'run.json').read_text())['refused'])

    def wait_for_text(self, path):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if path.exists() and path.read_text().strip():
                return path.read_text().strip()
            time.sleep(0.01)
        self.fail(f'{path} was not written')


@needs_root
class UserNamespace(TracedTest):
    """A rootless container: its root is user 100,000 outside, and the machine's root has no number inside."""

    @needs_open_build
    def test_its_ranks_join_the_machines_collector_and_the_files_are_the_users(self):
        socket, runs = self.scratch / 'socket/collector.sock', self.scratch / 'runs'
        self.scratch.chmod(0o755)
        socket.parent.mkdir(mode=0o755)
        (self.scratch / 'spool').mkdir()
        collector = subprocess.Popen(
            [str(RANKTAP), 'collect', '--all-users', '--socket', str(socket), '-o', str(runs), '--spool',
             str(self.scratch / 'spool')], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(collector.wait)
        self.addCleanup(collector.kill)
        self.assertIn('collecting at', collector.stdout.readline())
        done = self._run(['python3', PROGRAMS / 'in_user_namespace.py', RANKTAP, 'run', '--', *PROGRAM],
                         {**ON_STANDIN, 'RANKTAP_SOCKET': str(socket)})
        if 'Operation not permitted' in done.stderr:
            self.skipTest(f'no user namespaces here: {done.stderr}')
        self.assertEqual(done.returncode, 0, done.stderr)
        collector.terminate()
        collector.wait()
        collector.stdout.close()
        traces = list(runs.glob('100000/*/*.trace'))
        self.assertEqual([trace.stat().st_uid for trace in traces], [100_000], list(runs.rglob('*')))
        self.assert_verifies(traces[0].parent)
        self.assertGreater(len(self.report(traces[0].parent, 'kernels')), 0)


@needs_root
class OtherRoot(TracedTest):
    """A read-only image with its own PIDs, network and mounts, and ranktap mounted where it is outside."""

    def test_a_rank_in_a_read_only_root_is_traced(self):
        image, run = self.scratch / 'image', self.scratch / 'run'
        image.mkdir()
        script = f'''
            mount --bind / {image} && mount -o remount,ro,bind {image} || exit 77
            mount --bind "$(dirname $RANKTAP_SOCKET)" "{image}$(dirname $RANKTAP_SOCKET)" || exit 77
            exec unshare -n -i -u -pf chroot {image} sh -c 'mount -t proc proc /proc; exec "$@"' sh "$@"'''
        done = self._run([RANKTAP, 'run', '-o', run, '--', 'unshare', '-m', 'sh', '-c', script, 'sh', *PROGRAM],
                         ON_STANDIN)
        if done.returncode == 77:
            self.skipTest(f'no mounts here: {done.stderr}')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_verifies(run)
        self.assertGreater(len(self.report(run, 'kernels')), 0)


@needs_root
class Places(TracedTest):
    """Where a run goes that cannot go where it was to."""

    def in_place(self, mount, *options):
        (self.scratch / 'place').mkdir()
        command = ' '.join(str(part) for part in [RANKTAP, 'run', *options, '--', *PROGRAM])
        script = f'{mount.format(self.scratch / "place")} || exit 77; cd {self.scratch}/place; {command}'
        done = self._run(['unshare', '-m', 'sh', '-c', script], {**ON_STANDIN, 'TMPDIR': str(self.scratch)})
        if done.returncode == 77:
            self.skipTest(f'no mounts here: {done.stderr}')
        return done

    def assert_is_elsewhere(self, done, why):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, f'ranktap: ranktap-train_cuda-.*: {why}; the run goes to {self.scratch}/ranktap-')
        self.assert_verifies(next(self.scratch.glob('ranktap-train_cuda-*')))

    def test_a_read_only_directory_sends_it_to_another_that_is_named(self):
        done = self.in_place('mount --bind {0} {0} && mount -o remount,ro,bind {0}')
        self.assert_is_elsewhere(done, 'could not create: Read-only file system')

    def test_a_full_disk_sends_it_to_another_that_is_named(self):
        done = self.in_place('mount -t tmpfs -o size=64k none {0}; head -c 65536 /dev/zero > {0}/big')
        self.assert_is_elsewhere(done, 'could not write there: No space left on device')

    def test_with_require_the_command_is_not_started(self):
        done = self.in_place('mount --bind {0} {0} && mount -o remount,ro,bind {0}', '--require')
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertEqual(done.stdout, '')
        self.assertIn('--require: the command was not started', done.stderr)


class Docs(TracedTest):

    def test_the_pages_file_for_enroot_is_what_the_collector_prints(self):
        printed = self.run_bare([RANKTAP, 'collect', '--print-env', '--socket', '/run/ranktap/collector.sock']).stdout
        self.assertIn(printed.replace(str(BUILD), '/opt/ranktap'), (ROOT / 'docs/containers.md').read_text())


class NothingTraced(TracedTest):
    """The sentence names what of the command was captured."""

    def said(self, *options):
        done, _ = self.run_traced(['sleep', '0.2'], options)
        self.assertEqual(done.returncode, 0)
        return done.stderr

    def test_a_delay_that_the_command_did_not_last_is_the_reason(self):
        self.assertRegex(self.said('--delay', '20'), r'nothing was traced: the command ran [\d.]+ m?s, and capture was to '
                                                     r'begin after 20.00 s \(--delay\)')

    def test_a_window_of_the_command_is_named(self):
        self.assertRegex(self.said('--delay', '10ms', '--duration', '20ms'),
                         r'while capture was on, from 10.00 ms to 30.00 ms of the [\d.]+ m?s that it ran')

    def test_dormant_waits_for_a_window(self):
        self.assertIn('while a window of ranktap start was open', self.said('--dormant'))

    def test_level_full_is_advised_to_those_who_have_another(self):
        self.assertIn('recorded by --level full', self.said())
        self.assertNotIn('recorded by --level full', self.said('--level', 'full'))


class OutOfReach(TracedTest):
    """What cannot be traced is said in one sentence with the command that can."""

    def test_sudo_is_named_with_the_command_that_works(self):
        sudo = self.scratch / 'sudo'
        sudo.write_text('#!/bin/sh\nexec env -i "$@"\n')
        sudo.chmod(0o755)
        done, _ = self.run_traced([sudo, 'true'])
        self.assertIn('sudo clears the environment, which carries the agent. Put ranktap behind it', done.stderr)

    def said_of(self, name, *arguments, **environment):
        tool = self.scratch / name
        tool.write_text('#!/bin/sh\ntrue\n')
        tool.chmod(0o755)
        return self._run([RANKTAP, 'run', '-o', self.scratch / f'run-{name}', '--', tool, *arguments], environment).stderr

    def test_an_engine_and_systemd_are_named_with_where_ranktap_goes(self):
        for name, words in {'docker': 'docker gives the container an environment of its own. Run ranktap inside',
                            'systemd-run': 'systemd-run has a daemon start the processes. Put ranktap behind it'}.items():
            with self.subTest(tool=name):
                self.assertIn(words, self.said_of(name))

    def test_what_gives_the_container_files_of_its_own_is_named_with_what_to_mount(self):
        for name in ('apptainer', 'enroot', 'srun'):
            words = f'{name} starts a container, which sees the agent and this run\'s socket only where it mounts ' \
                f'{RANKTAP.parent.parent} and {self.scratch} '
            with self.subTest(tool=name):
                said = self.said_of(name, '--container-image=job.sqsh', TMPDIR=str(self.scratch))
                self.assertIn(words, ' '.join(said.split()))

    def test_srun_without_a_container_is_not_called_one(self):
        self.assertNotIn('container', self.said_of('srun', '-n2', 'true'))


if __name__ == '__main__':
    unittest.main()
