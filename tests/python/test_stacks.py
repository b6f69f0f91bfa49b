"""`ranktap stacks` against what Python itself says of its threads, for every CPython that is installed."""
import glob
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

import harness


def pythons():
    """A program of each minor version from 3.9 on: /usr/bin, pyenv's folders and RANKTAP_PYTHONS."""
    named = os.environ.get('RANKTAP_PYTHONS', '').split()
    places = ['/usr/bin/python3*', str(pathlib.Path.home() / '.pyenv/versions/3.*/bin/python3*')]
    found = {}
    for program in [*named, *(name for place in places for name in sorted(glob.glob(place)))]:
        minor = re.fullmatch(r'python3\.(\d+)', pathlib.Path(program).name)
        if minor and 9 <= int(minor[1]) <= 15:
            found.setdefault(int(minor[1]), program)
    return found


def frames_in(text):
    return [[match[1], int(match[2]), match[3]] for match in re.finditer(r'([^;(]*)\((\d+)\): ([^;]*)', text)]


class StacksTest(harness.TracedTest):

    def start(self, python, program):
        process = subprocess.Popen([python, program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   env={**os.environ, 'PYTHONUTF8': '1', 'RANK': '3'})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, json.loads(process.stdout.readline())

    def stacks(self, target):
        done = self._run([harness.RANKTAP, 'stacks', str(target), '--format', 'json'], {})
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return json.loads(done.stdout)['rows']

    def wait_until(self, target, holds):
        """The rows, once the program has come to where it stays."""
        for _ in range(2000):
            rows = self.stacks(target)
            if holds(rows):
                return rows
        self.fail(f'not there: {rows}')

    def test_every_thread_is_where_python_says_it_is_while_another_one_holds_the_lock_in_c(self):
        self.assertTrue(pythons(), 'no CPython from 3.9 on')
        for minor, python in pythons().items():
            with self.subTest(python=python):
                process, known = self.start(python, harness.PROGRAMS / 'stacked.py')
                rows = self.wait_until(process.pid, lambda rows: any('hold_the_lock' in row['stack'] and
                                                                     row['does'].startswith('waits') for row in rows))
                found = {row['thread']: frames_in(row['stack']) for row in rows}
                for thread, frames in known.items():
                    self.assertEqual(found.get(thread), frames, f'3.{minor}')
                main = next(row for row in rows if row['thread'] == str(process.pid))
                self.assertEqual(main['holds_gil'], 'yes')
                self.assertEqual(main['does'], 'waits for a signal')
                text = (harness.PROGRAMS / 'stacked.py').read_text().splitlines()
                line = 1 + next(i for i, line in enumerate(text) if 'pause()' in line)
                self.assertEqual(frames_in(main['stack'])[0], [str(harness.PROGRAMS / 'stacked.py'), line, 'hold_the_lock'])
                self.assertEqual({row['does'] for row in rows if row is not main}, {'waits for a lock'})
                self.assertEqual({row['rank'] for row in rows}, {3})
                process.send_signal(signal.SIGSTOP)
                stopped = self.wait_until(process.pid, lambda rows: all('is stopped' in row['does'] for row in rows))
                self.assertEqual({row['thread']: row['stack'] for row in stopped},
                                 {row['thread']: row['stack'] for row in rows})

    def test_a_thread_that_is_inside_of_a_cuda_call_is_told_with_the_call_and_for_how_long(self):
        program = self.scratch / 'waits.py'
        program.write_text(f'import sys\nsys.path.append({str(harness.ROOT / "tests/gpu/programs")!r})\n'
                           'import stand_in_device\ndevice = stand_in_device.StandIn(kernel_ns=60e9)\n'
                           'device.launch()\ndevice.synchronize()\n')
        fakes = harness.BUILD / 'fakes'
        run = subprocess.Popen([harness.RANKTAP, 'run', '--quiet', '-o', self.scratch / 'run', '--', sys.executable, program],
                               env={**os.environ, 'LD_LIBRARY_PATH': str(fakes), 'RANKTAP_CUPTI': str(fakes / 'libcupti.so.13')})
        self.addCleanup(run.wait)
        self.addCleanup(run.terminate)
        for _ in range(2000):
            done = self._run([harness.RANKTAP, 'stacks', str(run.pid), '--format', 'json'], {})
            rows = [row for row in json.loads(done.stdout or '{"rows": []}')['rows'] if row['cuda_call_ns']]
            if rows:
                break
        self.assertEqual([row['cuda_call'] for row in rows], ['cuStreamSynchronize'])
        self.assertEqual([frames_in(row['stack'])[-1][:2] for row in rows], [[str(program), 6]])
        self.assertLess(rows[0]['cuda_call_ns'], 60e9)
        text = self._run([harness.RANKTAP, 'stacks', str(run.pid)], {}).stdout
        self.assertRegex(text, r', main thread: [^\n]*, in cuStreamSynchronize for \d+\.\d s\n')

    def test_equal_stacks_of_ranks_are_told_once_and_the_other_one_apart(self):
        program = self.scratch / 'ranks.py'
        program.write_text('import os, socket, subprocess, sys\n'
                           'def wait(end):\n    end.recv(1)\n'
                           'def other(end):\n    end.recv(1)\n'
                           'if "RANK" not in os.environ:\n'
                           '    for rank in range(8):\n'
                           '        subprocess.Popen([sys.executable, __file__], env={**os.environ, "RANK": str(rank)})\n'
                           '    print(0, flush=True)\n'
                           'a, b = socket.socketpair()\n'
                           '(other if os.environ.get("RANK") == "5" else wait)(a)\n')
        process, _ = self.start_alone(program)
        done = None
        for _ in range(2000):
            done = self._run([harness.RANKTAP, 'stacks', str(process.pid), '--ranks', '0-7'], {})
            if done.stdout.count(' receives from socket:') == 2 and '7 ranks' in done.stdout:
                break
        self.assertIn('7 ranks (0-4, 6, 7), main thread: receives from socket:', done.stdout)
        self.assertIn('rank 5, main thread: receives from socket:', done.stdout)
        self.assertEqual(done.stdout.count(f'{program}:3 wait'), 1)
        self.assertEqual(done.stdout.count(f'{program}:5 other'), 1)

    def start_alone(self, program):
        environment = {name: value for name, value in os.environ.items() if name != 'RANK'}
        process = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True, env=environment,
                                   start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(os.killpg, process.pid, signal.SIGKILL)
        return process, process.stdout.readline()

    def test_a_process_that_is_no_python_and_one_that_is_not_there_are_said_to_be(self):
        done = self._run([harness.RANKTAP, 'stacks', '999999999'], {})
        self.assertEqual((done.returncode, done.stdout),
                         (1, 'process 999999999: there is no such process\n'))
        with subprocess.Popen(['sleep', '60']) as process:
            done = self._run([harness.RANKTAP, 'stacks', str(process.pid)], {})
            process.kill()
        self.assertEqual((done.returncode, done.stdout), (1, f'process {process.pid}: it does not run Python\n'))


if __name__ == '__main__':
    unittest.main()
