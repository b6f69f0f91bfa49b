"""`ranktap top` on a terminal: its keys, its size, and that the terminal is as it was at every end."""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest
import pathlib

import nvtx_program
from harness import RANKTAP

LEAVES = b'\x1b[?1049l'


class Terminal:
    """`ranktap top` with a terminal of its own; what its screen shows."""

    def __init__(self, run, rows=24, columns=80):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        environment = {**os.environ, 'LANG': 'C.UTF-8', 'TERM': 'xterm', 'NO_COLOR': '1'}
        self.process = subprocess.Popen([RANKTAP, 'top', run], stdin=self.slave, stdout=self.slave, stderr=self.slave, env=environment,
                                        start_new_session=True)
        self.output = b''

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.master, keys.encode())

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.output += os.read(self.master, 65536)

    def screen(self):
        """The lines of the last whole drawing."""
        drawings = self.output.split(b'\x1b[H')
        whole = drawings[-1] if drawings[-1].endswith(b'\x1b[0m') else drawings[-2] if len(drawings) > 1 else b''
        text = re.sub(rb'\x1b\[[?0-9;]*[A-Za-z]', b'', whole).decode(errors='replace')
        return [line.rstrip() for line in text.split('\r\n')]

    def await_screen(self, condition, timeout=60):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self.read(1)
            if condition(self.screen()):
                return self.screen()
        raise AssertionError('\n'.join(self.screen()))

    def end(self):
        status = self.process.wait(timeout=60)
        self.read(0.5)
        after = termios.tcgetattr(self.slave)
        os.close(self.master)
        os.close(self.slave)
        return status, after


class TopTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if nvtx_program.HEADERS is None:
            raise unittest.SkipTest('no NVTX headers; scripts/setup installs them')
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.run_path = pathlib.Path(folder.name) / 'run'
        steps = pathlib.Path(folder.name) / 'steps'
        nvtx_program.build_steps(steps)
        job = f'for rank in 0 1 2; do RANK=$rank {steps} 20000 1000000 & done; wait'
        cls.job = subprocess.Popen([RANKTAP, 'run', '--quiet', '--level', 'ranges', '--keep', '10s', '-o', cls.run_path, '--', 'sh', '-c', job],
                                   start_new_session=True)
        cls.addClassCleanup(cls.end_job)
        end = time.monotonic() + 60
        while cls.ranks() < 3 and time.monotonic() < end:
            time.sleep(0.1)

    @classmethod
    def ranks(cls):
        told = subprocess.run([RANKTAP, 'status', cls.run_path, '--format', 'json'], capture_output=True, text=True)
        return len(json.loads(told.stdout)['rows']) if told.returncode == 0 else 0

    @classmethod
    def end_job(cls):
        os.killpg(cls.job.pid, signal.SIGKILL)
        cls.job.wait()

    def test_a_screen_of_80_by_24_takes_keys_and_another_size_and_leaves_the_terminal_as_it_was(self):
        terminal = Terminal(self.run_path)
        ranks = re.compile(r'^ +(?:run +)?([012]) ')
        shown = terminal.await_screen(lambda lines: sum(bool(ranks.match(line)) for line in lines) == 3 and any('▄' in line for line in lines))
        self.assertLessEqual(len(shown), 24)
        self.assertLessEqual(max(map(len, shown)), 80)
        self.assertIn('q quit', shown[[i for i, line in enumerate(shown) if line][-1]])
        terminal.type('?')
        terminal.await_screen(lambda lines: any('Any key goes back' in line for line in lines))
        terminal.type('xr1\r')
        terminal.await_screen(lambda lines: [ranks.match(line)[1] for line in lines if ranks.match(line)] == ['1'])
        terminal.type('r\r')
        terminal.await_screen(lambda lines: sum(bool(ranks.match(line)) for line in lines) == 3)
        terminal.type('d')
        terminal.await_screen(lambda lines: any('/dump-' in line and '3 processes' in line for line in lines))
        self.assertTrue(list(self.run_path.glob('dump-*/run.json')))
        terminal.resize(6, 40)
        small = terminal.await_screen(lambda lines: len(lines) == 6 and any('below' in line for line in lines))
        self.assertTrue(all(len(line) <= 40 for line in small if ranks.match(line)))
        terminal.type('q')
        status, after = terminal.end()
        self.assertEqual(status, 0)
        self.assertEqual(after, terminal.before)
        self.assertIn(LEAVES, terminal.output)

    @unittest.skipIf(shutil.which('tmux') is None, 'no tmux here')
    def test_tmux_shows_80_by_24_after_a_resize_too_and_the_shell_comes_back(self):
        def tmux(*words):
            return subprocess.run(['tmux', '-L', server, '-f', '/dev/null', *words], capture_output=True, text=True, check=True).stdout

        def await_pane(condition):
            end = time.monotonic() + 60
            while time.monotonic() < end:
                lines = tmux('capture-pane', '-p').splitlines()
                if condition(lines):
                    return lines
                time.sleep(0.2)
            self.fail('\n'.join(lines))

        server = f'ranktap-test-{os.getpid()}'
        ranks = re.compile(r'^ +(?:run +)?[012] ')
        tmux('new-session', '-d', '-x', '80', '-y', '24', f'echo before; env LANG=C.UTF-8 {RANKTAP} top {self.run_path}; echo after; cat')
        try:
            shown = await_pane(lambda lines: sum(bool(ranks.match(line)) for line in lines) == 3 and any('▄' in line for line in lines))
            self.assertRegex([line for line in shown if line][-1], r'^q quit .* \? help$')
            tmux('resize-window', '-x', '60', '-y', '12')
            await_pane(lambda lines: len(lines) == 12 and any(line.startswith('q quit  ? all keys') for line in lines))
            tmux('send-keys', 'q')
            self.assertEqual(await_pane(lambda lines: 'after' in lines)[:2], ['before', 'after'])
        finally:
            tmux('kill-server')

    def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(self):
        terminal = Terminal(self.run_path)
        terminal.await_screen(lambda lines: any('q quit' in line for line in lines))
        terminal.process.terminate()
        status, after = terminal.end()
        self.assertEqual(status, -signal.SIGTERM)
        self.assertEqual(after, terminal.before)
        self.assertTrue(terminal.output.rstrip().endswith(LEAVES))


if __name__ == '__main__':
    unittest.main()
