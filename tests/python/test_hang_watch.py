"""The hang watch of `ranktap run`, on gloo jobs in which one rank does something else than the rest. Without arguments the test;
with --runs N a measurement: N jobs with causes and guilty ranks that --seed chooses, and how long each took to be named; with
--healthy S, that nothing is said of jobs in which one rank is alone for S seconds."""
import argparse
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import harness
from test_stacks import pythons

PROGRAM = harness.PROGRAMS / 'hangs.py'
LINES = {match[2]: number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
         if (match := re.search(r'( {2}# )([a-z-]+)$', line))}
KERNEL = tuple(int(number) for number in os.uname().release.split('.')[:2])
DEADLINE_S = 360  # a machine at a load of 25 was at the imports after 240
T_S = 5
# Cause, and how its sentence names the guilty rank; {0} is that rank, {1} the marked line.
NAMED = {
    'sleep': r'Rank {0} did not enter AllReduce .* sleeps at hangs.py:{1} ',
    'silent': r'Rank {0} did not enter AllReduce .* sleeps at hangs.py:{1} ',
    'gil': r'Rank {0} did not enter AllReduce .* sleeps, with the GIL, at hangs.py:{1} ',
    'lock': r'Rank {0} did not enter AllReduce .* waits for a lock at hangs.py:{1} ',
    'two-locks': r'Rank {0} did not enter AllReduce .* waits for a lock at hangs.py:{1} ',
    'read': r'Rank {0} did not enter AllReduce .* receives from socket:\S+ \(descriptor \d+\) at hangs.py:{1} ',
    'fifo': r'Rank {0} did not enter AllReduce .* reads \S+ \(descriptor \d+\) at hangs.py:{1} ',
    'fuse': r'Rank {0} did not enter AllReduce .* reads \S+/data \(descriptor \d+\) at hangs.py:{1} ',
    'pool-dead': r'Rank {0} did not enter AllReduce .*hangs.py:{1} .*; its child process \d+ ended \S+ s ago, by exit status 3\.',
    'stop': r'Rank {0} did not enter AllReduce .* is stopped.* at hangs.py:{1} ',
    'child': r'Rank {0} did not enter AllReduce .* waits for a child process at .*hangs.py:{1} ',
    'join': r'Rank {0} did not enter AllReduce .* waits for a lock at .*hangs.py:{1} ',
    'spin-c': r'Rank {0} did not enter AllReduce .* runs, with the GIL, at .*hangs.py:{1} ',
    'spin-py': r'(for rank {0}, which runs|Rank {0} did not enter AllReduce .* at) hangs.py:{1} ',
    'loader': r'Rank {0} did not enter AllReduce .*; worker \d+ sleeps at hangs.py:{1}\b',
    'barrier': r'[Rr]ank {0} stands in Barrier \(hangs.py:{1}\)',
    'missing': r'[Rr]ank {0} stands in AllReduce \(hangs.py:{1}\)',
    'swallow': r'[Rr]ank {0} stands in AllReduce \(hangs.py:{1}\)',
    'uneven': r'[Rr]ank {0} stands in Barrier \(hangs.py:{1}\)',
    'order': r'[Rr]ank {0} stands in AllReduce \(hangs.py:{1}\)',
    'wrong-group': r'[Rr]ank {0} stands in AllReduce \(hangs.py:{1}\)',
    # torch.multiprocessing.spawn takes the exception itself, and ends the main thread by sys.exit.
    'thread': rf'Rank {{0}} did not enter AllReduce .* by (an exception|ValueError: no such label, at hangs.py:{LINES["thread-raise"]}), and '
              r'waits for a thread that sleeps at hangs.py:{1}\.',
}
# Causes of which the job ends, and how the last line on stderr names the rank.
ENDED = {
    'kill': r'[Rr]ank {0}(,| has ended,) by signal 9 \(SIGKILL\)',
    'exit': r'[Rr]ank {0}(,| has ended,) by exit status 0',
    'raise': r'rank {0}, by exit status 1',
    'oom': r'rank {0}, by exit status 1',
    'loader-dead': r'rank {0}, by exit status 1; .*its DataLoader worker \d+ ended \S+ s before it, by signal 9 \(SIGKILL\)',
}
# Causes of which the job ends, or goes on with wrong sums: `report hang` of a run at level full names the rank.
UNLIKE = {
    'shape': r'Rank {0} entered Allreduce #6 .* with 20 B, where the \d others had 64 B|Ranks 0 and 1 entered Allreduce #6 ',
    'dtype': r'Rank {0} entered Allreduce #6 .* with 128 B, where the \d others had 64 B|Ranks 0 and 1 entered Allreduce #6 ',
}
if os.geteuid() != 0 or not os.path.exists('/dev/fuse'):
    del NAMED['fuse']  # no file system can be mounted
# Where a rank stands whose cause has no line of its own.
STANDS = {'missing': 'other', 'swallow': 'other', 'uneven': 'end'}


def start(folder, jobs, *options, waits_after=f'{T_S}s', report=None, env=None):
    with open(folder / 'out', 'w', encoding='utf-8') as out, open(folder / 'err', 'w', encoding='utf-8') as err:
        return subprocess.Popen(
            [harness.RANKTAP, 'run', '-o', folder / 'run', '--waits-after', waits_after, '--hang-report',
             report or folder / 'told', *options, '--', harness.TORCH_PYTHON, PROGRAM, *[':'.join(map(str, job)) for job in jobs]],
            stdout=out, stderr=err, cwd=folder, start_new_session=True, env=env)


def text_of(path):
    return path.read_text(encoding='utf-8') if path.exists() else ''


def told_of(folder, cause, guilty):
    """The sentence that names it, with its time; None: there is none yet."""
    pattern = {**NAMED, **ENDED, **UNLIKE}[cause].format(guilty, LINES.get(STANDS.get(cause, cause), 0))
    text = text_of(folder / ('told' if cause in NAMED else 'err'))
    if cause in UNLIKE:
        text = subprocess.run([harness.RANKTAP, 'report', folder / 'run', 'hang'], capture_output=True, text=True, check=False).stdout
        text = text.replace('\n', ' ')
    return next((line for line in text.splitlines() if re.search(pattern, line)), None)


RAS_REPORT = 'NCCL version 2.30.7\nComm 0x5a: rank 1 is UNRESPONSIVE\n'


class Ras:
    """Stands on a port as NCCL's RAS does, or as something else."""

    def __init__(self, treat):
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.address = f'127.0.0.1:{self.socket.getsockname()[1]}'
        self.treat = treat
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        caller, _ = self.socket.accept()
        try:
            self.treat(caller, caller.makefile('r', encoding='utf-8'))
        except OSError:
            pass
        finally:
            caller.close()
            self.socket.close()

    @staticmethod
    def answer(caller, lines):
        for reply in 'SERVER PROTOCOL 2\n', 'OK\n', RAS_REPORT:
            lines.readline()
            caller.sendall(reply.encode())

    @staticmethod
    def rave(caller, _):
        while True:
            caller.sendall(bytes(range(256)) * 256)

    @staticmethod
    def say_nothing(_, lines):
        lines.read()


def end(job):
    os.killpg(job.pid, signal.SIGTERM)
    job.wait(timeout=60)


@harness.needs_torch
class HangWatchTest(harness.TracedTest):

    def wait_until(self, holds):
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            if holds():
                return
            time.sleep(0.2)
        self.fail(f'not within {DEADLINE_S} s: {text_of(self.scratch / "told")}{text_of(self.scratch / "err")}')

    def files_by_cause(self):
        """Of each hang whose directory is filled. By the line that is named; of `stop` by the state of the rank."""
        found = {}
        for told in (self.scratch / 'run').glob('hang-*/hang.json'):
            folder, verdict = told.parent, json.loads(told.read_text() or '{"ranks": []}')
            ranks = verdict['ranks']
            lines = {int(number) for rank in ranks for number in re.findall(r'hangs.py:(\d+)', rank['place'])}
            cause = 'stop' if any(rank['state'] == 'T' for rank in ranks) else next(
                (cause for cause in ('sleep', 'gil', 'barrier', 'two-locks', 'silent') if LINES[cause] in lines), None)
            is_filled = 'calls' in verdict and (cause not in ('sleep', 'gil', 'barrier') or (folder / 'ras.txt').exists())
            found[cause] = {file.name: file for file in folder.iterdir()} if is_filled else {}
        return found

    def check_directories(self, files):
        for cause, guilty in ('sleep', 0), ('gil', 1), ('two-locks', 1):
            told = json.loads(files[cause]['hang.json'].read_text())
            self.assertRegex(told['calls']['finding'], rf'^Rank {guilty} did not enter AllReduce #6 \(64 B, group default_pg\); ')
            for rank in 0, 1:
                dump = json.loads(files[cause][f'flight-rank-{rank:05}.json'].read_text())
                pending = [call for call in dump['entries'] if not call['retired']]
                self.assertEqual([(call['profiling_name'], call['collective_seq_id']) for call in pending],
                                 [] if rank == guilty else [('gloo:all_reduce', 6)], cause)
        self.assertIn('Barrier', json.loads(files['barrier']['hang.json'].read_text())['calls']['finding'])
        self.assertIn('flight-rank-00000.json', files['stop'])
        self.assertNotIn('flight-rank-00001.json', files['stop'])
        self.assertEqual(files['sleep']['ras.txt'].read_text(), RAS_REPORT)
        self.assertRegex(files['gil']['ras.txt'].read_text(), r"^127\.0\.0\.1:\d+ is not NCCL's RAS: it answers ")
        self.assertRegex(files['barrier']['ras.txt'].read_text(), r"^127\.0\.0\.1:\d+ is not NCCL's RAS: no line came\n$")
        self.assertNotIn('ras.txt', files['two-locks'])

    def stopped_rank(self):
        told = json.loads(self.files_by_cause()['stop']['hang.json'].read_text())
        return next(rank['pid'] for rank in told['ranks'] if rank['state'] == 'T')

    def test_guilty_ranks_are_named_with_their_lines_and_ranks_that_work_alone_are_no_hang(self):
        hung = [('sleep', 0), ('gil', 1), ('stop', 1, 2, 'spawn'), ('barrier', 0), ('two-locks', 1)]
        ras = {'sleep': Ras(Ras.answer), 'gil': Ras(Ras.rave), 'barrier': Ras(Ras.say_nothing)}
        # Dormant: the agent is there, and records nothing.
        job = start(self.scratch, [*hung, ('checkpoint', 0), ('eval', 1)], '--level', 'full', '--dormant', '--on-hang',
                    'echo "$1 $RANKTAP_HANG" > ran', env={**os.environ, **{f'RAS_{cause}': stub.address for cause, stub in ras.items()}})
        try:
            self.wait_until(lambda: all(told_of(self.scratch, *one[:2]) for one in hung))
            self.wait_until(lambda: all(self.files_by_cause().get(cause) for cause, *_ in hung))
            self.check_directories(self.files_by_cause())
            status = self._run([harness.RANKTAP, 'status', '--format', 'json'], {})
            table = self._run([harness.RANKTAP, 'report', self.scratch / 'run', 'hang', '--format', 'json'], {})
            self.wait_until(lambda: text_of(self.scratch / 'out').count('done') == 4)
            # One that was stopped goes on, and its job ends as if nothing had been asked of it.
            os.kill(self.stopped_rank(), signal.SIGCONT)
            self.wait_until(lambda: text_of(self.scratch / 'out').count('done') == 6)
        finally:
            end(job)
        for line in text_of(self.scratch / 'told').splitlines():
            self.assertNotRegex(line, 'save_slowly|evaluate_alone|:%d |:%d ' % (LINES['checkpoint'], LINES['eval']))
        self.assertEqual(len(text_of(self.scratch / 'told').splitlines()), len(hung), text_of(self.scratch / 'told'))
        ran = text_of(self.scratch / 'ran')
        self.assertRegex(ran, r'^\S*/run/hang-\S+Z\S* [Rr]ank')
        folder = pathlib.Path(ran.split()[0])
        self.assertLessEqual({'hang.json', 'stacks-1.txt', 'stacks-2.txt', 'stacks-3.txt', 'proc-rank-00000.txt'},
                             {file.name for file in folder.iterdir()})
        self.assertEqual(table.returncode, 0, table.stderr)
        told = json.loads(table.stdout)
        verdict, findings = json.loads((folder / 'hang.json').read_text()), [row['finding'] for row in told['rows']]
        self.assertIn(verdict['sentence'], findings)
        self.assertIn(verdict['calls']['finding'], findings)
        self.assertIn('did not enter AllReduce (hangs.py:', status.stdout)

    def test_a_hang_saves_what_keep_has_and_the_next_one_within_ten_minutes_is_counted(self):
        job = start(self.scratch, [('sleep', 0), ('gil', 1)], '--level', 'full', '--keep', '60s', '--on', 'hang')
        held = 'dumps of --on, held back in the ten minutes after another of the run'

        def dumps():
            return [path for path in (self.scratch / 'run').glob('dump-*') if not path.name.endswith('.part')]

        def status():
            return self._run([harness.RANKTAP, 'status', self.scratch / 'run'], {}).stdout.replace('\n', ' ')

        try:
            self.wait_until(lambda: len(text_of(self.scratch / 'told').splitlines()) == 2 and dumps() and held in status())
            self.assertRegex(status(), r'run: --keep holds the last \S+ \w+, \S+ \w+; ranktap dump saves it')
        finally:
            end(job)
        self.assertEqual(len(dumps()), 1)
        info = json.loads((dumps()[0] / 'run.json').read_text())
        self.assertRegex(info['metadata']['dump'], r'^hang: [Rr]ank \d did not enter AllReduce \(hangs.py:')
        self.assertEqual(len(info['traces']), 4)
        verified = self._run([harness.RANKTAP, 'verify', dumps()[0]], {})
        self.assertEqual(verified.returncode, 0, verified.stdout)
        self.assertEqual(json.loads((self.scratch / 'run/run.json').read_text())['refused'], {held: 1})

    def test_on_hang_kill_ends_a_job_whose_rank_hears_no_signal_with_the_sentence_as_its_last_words(self):
        job = start(self.scratch, [('gil', 0)], '--on-hang', 'kill', report='/dev/full')
        self.wait_until(lambda: job.poll() is not None)
        self.assertNotEqual(job.returncode, 0)
        self.assertIn('ranktap: --hang-report /dev/full: could not be written: No space left on device; hang: Rank 0 did not enter ',
                      text_of(self.scratch / 'err'))
        last = text_of(self.scratch / 'err').splitlines()[-1]
        self.assertRegex(last, rf'^ranktap: --on-hang kill: Rank 0 did not enter AllReduce .*hangs.py:{LINES["gil"]} ')

    @unittest.skipIf(KERNEL < (6, 15), f'Linux {KERNEL} does not tell how a process ended that is not our child')
    def test_workers_that_died_a_file_system_that_stops_and_another_dtype_of_as_many_bytes_are_told(self):
        hung = [('pool-dead', 1), ('silent', 1, 3), *[('fuse', 0)] * ('fuse' in NAMED)]
        ended = self.scratch / 'ended'  # what ends without a hang is told when the command ends
        ended.mkdir()
        job, ends = start(self.scratch, hung, '--level', 'full', '--dormant'), start(ended, [('loader-dead', 0)])
        self.addCleanup(ends.wait)
        try:
            self.wait_until(lambda: all(told_of(self.scratch, *one[:2]) for one in hung) and ends.poll() is not None)
            self.wait_until(lambda: self.files_by_cause().get('silent'))
            calls = self.report(self.files_by_cause()['silent']['hang.json'].parent, 'hang')
        finally:
            end(job)
        # The call ended with a wrong sum; the recorder has its dtype.
        self.assertRegex(calls[-1]['finding'], r'^Rank 1 entered AllReduce #6 .* with Int .*, where the 2 others had Float .*\. The call ended')
        self.assertIsNotNone(told_of(ended, 'loader-dead', 0), text_of(ended / 'err'))

    @unittest.skipIf(KERNEL < (6, 15), f'Linux {KERNEL} does not tell how a process ended that is not our child')
    def test_the_rank_that_ended_first_is_named_when_a_job_fails_with_the_exception_that_it_told_torchrun(self):
        folder = self.scratch / 'raise'
        folder.mkdir()
        job, other = start(self.scratch, [('kill', 1)]), start(folder, [('raise', 1, 2, 'torchrun')])
        self.wait_until(lambda: job.poll() is not None and other.poll() is not None)
        self.assertRegex(text_of(folder / 'err').splitlines()[-1],
                         rf'^ranktap: the first rank that ended badly is rank 1, by exit status 1 \(ValueError: no such label, at '
                         rf'hangs\.py:{LINES["raise"]}\); its last stack, ')
        self.assertRegex(text_of(self.scratch / 'err').splitlines()[-1],
                         r'^ranktap: the first rank that ended badly is rank 1, by signal 9 \(SIGKILL\)(, not for want of memory: a|: the '
                         r'kernel short of memory, a) scheduler, or kill -9; its last stack, \d+\.\d s before it was seen to have ended, is at ')


# A collective that never ends, in a file that lies where torch.distributed's does: no second goes into imports.
COLLECTIVE = """import threading
def all_reduce():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
"""
# `spawned` are ranks as torch.multiprocessing.spawn makes them: none in the environment, and a thread of a process group.
RANKS = """import ctypes, os, signal, subprocess, sys, threading, time
sys.path.insert(0, os.path.dirname(__file__))
if not sys.argv[1].isdigit():
    ranks = []
    for cause in sys.argv[1:]:
        for rank in '0', '1':
            told = {} if cause == 'spawned' else {'RANK': rank, 'WORLD_SIZE': '2', 'MASTER_ADDR': cause, 'MASTER_PORT': '1'}
            ranks.append(subprocess.Popen([sys.executable, __file__, rank, cause], env={**os.environ, **told}))
    signal.signal(signal.SIGTERM, lambda *_: [rank.kill() for rank in ranks])
    sys.exit(max(rank.wait() for rank in ranks))
rank, cause = sys.argv[1:]
from torch.distributed.distributed_c10d import all_reduce
import pdb
if cause == 'stopped':
    threading.Timer(2, os.kill, (os.getpid(), signal.SIGSTOP)).start()
if cause == 'spawned':
    def watch_group():
        ctypes.CDLL(None).prctl(15, b'pt_gloo_runloop')
        time.sleep(100000)
    threading.Thread(target=watch_group, daemon=True).start()
    time.sleep(8)
if rank == '0':
    all_reduce()
if cause == 'debugged':
    pdb.wait()
time.sleep(100000)
"""


# Two ranks that live until they are told how to end; `ranktap run` has a pidfd of each.
TOLD = '''import os, pathlib, re, signal, subprocess, sys, time
if 'RANK' in os.environ:
    sys.exit(int(sys.stdin.readline()))
ranks = [subprocess.Popen([sys.executable, __file__], env={**os.environ, 'RANK': str(rank)}, stdin=subprocess.PIPE, text=True)
         for rank in (0, 1)]
run = os.getppid()
def is_watched(rank):
    pid = re.compile(rf'^Pid:\\t{rank.pid}$', re.M)
    return any(pid.search(info.read_text()) for info in pathlib.Path(f'/proc/{run}/fdinfo').iterdir() if info.exists())
def ended(rank):
    os.waitid(os.P_PID, rank.pid, os.WEXITED | os.WNOWAIT)
while not all(map(is_watched, ranks)):
    time.sleep(0.1)
if sys.argv[1] == 'first':
    os.kill(run, signal.SIGSTOP)  # it is late
    ranks[1].terminate()
    ended(ranks[1])
    print(3, file=ranks[0].stdin, flush=True)
    ended(ranks[0])
    os.kill(run, signal.SIGCONT)
    sys.exit(max(abs(rank.wait()) for rank in ranks))
def end(*_):
    for rank in ranks:
        rank.terminate()
    sys.exit(max(abs(rank.wait()) for rank in ranks))
signal.signal(signal.SIGTERM, end)
os.kill(run, signal.SIGTERM)
time.sleep(100000)
'''


# One waits in a collective; an exception has ended the other's main thread, and another thread keeps it.
RAISES = """import os, subprocess, sys, threading, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
if 'RANK' not in os.environ:
    ranks = [subprocess.Popen([sys.executable, __file__], env={**os.environ, 'RANK': str(rank)}) for rank in (0, 1)]
    while not os.path.exists('told'):
        time.sleep(0.1)
    for rank in ranks:
        rank.kill()
        rank.wait()
    sys.exit()
if os.environ['RANK'] == '0':
    from torch.distributed.distributed_c10d import all_reduce
    all_reduce()
class Unfit(Exception):
    pass
threading.Thread(target=time.sleep, args=(100000,)).start()
def read():
    raise Unfit('no such l\u00e4bel')
read()
"""


# Rank 1 lets rank 0 wait until that was told, lets it go on, and fails: at once, or when both have worked for longer than that.
GOES_ON = """import os, pathlib, subprocess, sys, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
if 'RANK' not in os.environ:
    read, write = os.pipe()
    ranks = [subprocess.Popen([sys.executable, __file__, str(read), str(write), *sys.argv[1:]], env={**os.environ, 'RANK': str(rank)},
                              pass_fds=(read, write)) for rank in (0, 1)]
    sys.exit(max(rank.wait() for rank in ranks))
read, write, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
from torch.distributed.distributed_c10d import all_reduce
began = time.monotonic()
if os.environ['RANK'] == '0':
    all_reduce(read)
else:
    told = pathlib.Path('told')
    while not told.exists() or not told.read_text():
        time.sleep(0.1)
    os.write(write, b'1')
ends = time.monotonic() + (2 + 2 * (time.monotonic() - began) if how == 'later' else 0)
while time.monotonic() < ends:
    time.sleep(0.01)
sys.exit(3 * int(os.environ['RANK']))
"""


class WatchWithoutTorchTest(harness.TracedTest):

    @unittest.skipIf(KERNEL < (6, 15), f'Linux {KERNEL} does not tell how a process ended that is not our child')
    def test_a_job_that_worked_for_as_long_as_it_had_hung_did_not_fail_of_that(self):
        (self.scratch / 'torch/distributed').mkdir(parents=True)
        (self.scratch / 'torch/distributed/distributed_c10d.py').write_text('import os\ndef all_reduce(end):\n    os.read(end, 1)\n')
        (self.scratch / 'goes_on.py').write_text(GOES_ON)
        for how, last in ('at once', 'Rank 1 did not enter AllReduce '), ('later', 'the first rank that ended badly is rank 1, by exit status 3;'):
            with self.subTest(how):
                (self.scratch / 'told').unlink(missing_ok=True)
                done = self._run([harness.RANKTAP, 'run', '-o', self.scratch / how, '--waits-after', '3s', '--hang-report', 'told',
                                  '--', sys.executable, self.scratch / 'goes_on.py', how], {})
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn(f'ranktap: {last}', done.stderr.splitlines()[-1])

    def test_an_exception_that_ended_a_main_thread_while_another_thread_keeps_the_process_is_told(self):
        (self.scratch / 'torch/distributed').mkdir(parents=True)
        (self.scratch / 'torch/distributed/distributed_c10d.py').write_text(COLLECTIVE)
        (self.scratch / 'raises.py').write_text(RAISES)
        for minor, python in pythons().items():
            with self.subTest(python):
                told = self.scratch / 'told'
                told.unlink(missing_ok=True)
                done = self._run([harness.RANKTAP, 'run', '-o', self.scratch / f'run-{minor}', '--waits-after', '3s', '--hang-report', told,
                                  '--', python, self.scratch / 'raises.py'], {})
                self.assertEqual(done.returncode, 0, done.stderr)
                # Before 3.11 a traceback lies elsewhere, and is not read.
                by = r'by Unfit: no such läbel, at raises\.py:18' if minor >= 11 else 'at its end or by an exception'
                self.assertRegex(text_of(told), f'Its main thread has left the program, {by}, and waits for a thread that ')

    @unittest.skipIf(KERNEL < (6, 15), f'Linux {KERNEL} does not tell how a process ended that is not our child')
    def test_a_rank_that_got_sigterm_before_another_failed_is_the_first_although_both_are_seen_at_once(self):
        (self.scratch / 'told.py').write_text(TOLD)
        done, _ = self.run_traced([sys.executable, self.scratch / 'told.py', 'first'])
        self.assertEqual(done.returncode, 15)
        self.assertIn('the first rank that ended badly is rank 1, by signal 15 (SIGTERM): a scheduler, kill, or a launcher',
                      done.stderr.splitlines()[-1])

    def test_of_a_job_that_was_asked_to_end_no_rank_is_named(self):
        (self.scratch / 'told.py').write_text(TOLD)
        done, _ = self.run_traced([sys.executable, self.scratch / 'told.py', 'asked'])
        self.assertEqual(done.returncode, 15)
        self.assertNotIn('ended badly', done.stderr)

    @unittest.skipIf(KERNEL < (6, 15), f'Linux {KERNEL} does not tell how a process ended that is not our child')
    def test_a_rank_that_ended_with_0_before_another_failed_is_told(self):
        program = self.scratch / 'ranks.py'
        program.write_text('import os, subprocess, sys, time\n'
                           'if "RANK" not in os.environ:\n'
                           '    ranks = [subprocess.Popen([sys.executable, __file__], env={**os.environ, "RANK": str(rank)}) for rank in (0, 1)]\n'
                           '    sys.exit(max(rank.wait() for rank in ranks))\n'
                           'time.sleep(5 if os.environ["RANK"] == "1" else 8)\n'
                           'sys.exit(0 if os.environ["RANK"] == "1" else 3)\n')
        done, _ = self.run_traced([sys.executable, program])
        self.assertEqual(done.returncode, 3)
        stack = r'its last stack, \d+\.\d s before it was seen to have ended, is at ranks.py:5'
        self.assertRegex(done.stderr.splitlines()[-1], '^ranktap: the first rank that ended badly is rank 0, by exit status 3; '
                                                       rf'{stack}; before it ended rank 1, by exit status 0 \({stack}\)$')

    def test_ranks_that_no_environment_tells_are_watched_and_a_debugger_and_a_job_that_is_stopped_are_no_hang(self):
        (self.scratch / 'torch/distributed').mkdir(parents=True)
        (self.scratch / 'torch/distributed/distributed_c10d.py').write_text(COLLECTIVE)
        (self.scratch / 'pdb.py').write_text('import time\ndef wait():\n    time.sleep(100000)\n')
        (self.scratch / 'ranks.py').write_text(RANKS)
        socket, told = self.scratch / 'socket', self.scratch / 'told'
        collector = subprocess.Popen([harness.RANKTAP, 'collect', '--socket', socket, '-o', self.scratch / 'runs', '--waits-after', '5s',
                                      '--hang-report', told], stderr=subprocess.DEVNULL)
        self.addCleanup(collector.wait)
        self.addCleanup(collector.terminate)
        deadline = time.monotonic() + DEADLINE_S
        while not socket.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        job = subprocess.Popen([harness.RANKTAP, 'run', '--', sys.executable, self.scratch / 'ranks.py', 'debugged', 'stopped', 'spawned'],
                               env={**os.environ, 'RANKTAP_SOCKET': str(socket)}, stderr=subprocess.DEVNULL)
        self.addCleanup(job.wait)
        self.addCleanup(job.terminate)
        # The job that hangs 8 s after the others: by then these would have been told.
        while not text_of(told) and time.monotonic() < deadline:
            time.sleep(0.2)
        status = self._run([harness.RANKTAP, 'status', '--socket', socket, '--format', 'json'], {})
        self.assertRegex(text_of(told), r'^\S+ Rank 1 did not enter AllReduce \(ranks.py:\d+\); 1 of 2 waits since \d+ s\. '
                                        r'Its main thread sleeps at ranks.py:\d+\. ')
        self.assertEqual(len(text_of(told).splitlines()), 1)
        self.assertIn('for rank 1, which a debugger holds. Its main thread sleeps at pdb.py:3', status.stdout)


def drawn(runs, seed, causes):
    """Jobs with each cause as often as the others: guilty rank, number of ranks and launcher by the seed."""
    chosen = random.Random(seed)
    jobs = []
    for cause in (causes * runs)[:runs]:
        ranks = chosen.choice((2, 4))
        jobs.append((cause, chosen.randrange(ranks), ranks, chosen.choice(('env', 'torchrun', 'spawn'))))
    chosen.shuffle(jobs)
    return jobs


def batches_of(jobs, at_once):
    """So many at once, each with another cause; a job that ends is alone, as it is told when the command ends."""
    while jobs:
        batch = [jobs.pop(0)]
        while batch[0][0] in NAMED and len(batch) < at_once:
            fits = next((job for job in jobs if job[0] in NAMED and job[0] not in [other[0] for other in batch]), None)
            if fits is None:
                break
            jobs.remove(fits)
            batch.append(fits)
        yield batch


def measure(runs, seed, at_once, causes):
    """Prints a line for each job: cause, guilty rank, whether it was named right, seconds since the others' last progress."""
    right = 0
    for batch in batches_of(drawn(runs, seed, causes), at_once):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            job = start(folder, batch, *['--level', 'full'] * (batch[0][0] in UNLIKE))
            deadline = time.monotonic() + DEADLINE_S
            waits = {}  # a rank that works on is no hang: `status` names it
            while time.monotonic() < deadline and job.poll() is None:
                if 'spin-py' in [one[0] for one in batch] and 'spin-py' not in waits:
                    guilty = next(one[1] for one in batch if one[0] == 'spin-py')
                    status = subprocess.run([harness.RANKTAP, 'status'], capture_output=True, text=True, check=False).stdout
                    if re.search(NAMED['spin-py'].format(guilty, LINES['spin-py']), status.replace('\n', ' ')):
                        waits['spin-py'] = time.time()
                if batch[0][0] in NAMED and all(told_of(folder, *one[:2]) or one[0] in waits for one in batch):
                    break
                if batch[0][0] in ENDED and text_of(folder / 'told'):  # the others do not notice
                    break
                time.sleep(0.5)
            if job.poll() is None:
                end(job)
            for one in batch:
                cause, guilty = one[:2]
                line = told_of(folder, cause, guilty)
                entered = [float(at) for at in re.findall(rf'^{cause} \d+ (\S+)$', text_of(folder / 'out'), re.M)]
                took = 'not named'
                if cause not in NAMED and line:
                    took = 'named at the end'
                elif entered and (line or cause in waits):
                    at = waits.get(cause) or time.mktime(time.strptime(line.split('Z ')[0], '%Y-%m-%dT%H:%M:%S')) - time.timezone + 1
                    took = f'{at - max(entered):.0f} s at most'
                right += took != 'not named'
                print(f'{cause:11} rank {guilty} of {one[2]}, {one[3]:8}: {took}', flush=True)
                if took == 'not named':
                    print(text_of(folder / 'told'), text_of(folder / 'err')[-600:], sep='', flush=True)
    print(f'{right} of {runs} named right, with their lines; T is {T_S} s')
    return 0 if right >= 0.95 * runs else 1


HEALTHY = ('checkpoint', 'eval', 'compile', 'pdb', 'pause')


def measure_healthy(seconds, waits_after):
    """Jobs in which one rank works alone for so long, or a person holds it, or all are stopped; and the watch itself stands still as
    in a suspend."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        job = start(folder, [(cause, number % 2, 2) for number, cause in enumerate(HEALTHY)], waits_after=waits_after,
                    env={**os.environ, 'HEALTHY_S': str(seconds)})
        while text_of(folder / 'out').count(' ') < 2 * len(HEALTHY) and job.poll() is None:
            time.sleep(1)
        os.kill(job.pid, signal.SIGSTOP)
        time.sleep(seconds / 2)
        os.kill(job.pid, signal.SIGCONT)
        status = job.wait(timeout=20 * seconds + DEADLINE_S)
        told = text_of(folder / 'told')
    print(told + f'{len(told.splitlines())} alarms in {len(HEALTHY)} healthy jobs ({", ".join(HEALTHY)}) of {seconds} s, exit status '
          f'{status}; T is {waits_after}')
    return 1 if told or status else 0


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--runs', type=int)
    parser.add_argument('--healthy', type=int, help='instead: healthy jobs with a pause of so many seconds')
    parser.add_argument('--waits-after', default='20s', help='of --healthy')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--at-once', type=int, default=4)
    parser.add_argument('--causes', nargs='+', default=[*NAMED, *ENDED, *UNLIKE])
    asked, rest = parser.parse_known_args()
    if asked.healthy:
        sys.exit(measure_healthy(asked.healthy, asked.waits_after))
    elif asked.runs:
        sys.exit(measure(asked.runs, asked.seed, asked.at_once, asked.causes))
    else:
        unittest.main(argv=[sys.argv[0], *rest])
