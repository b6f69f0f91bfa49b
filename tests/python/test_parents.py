"""`ranktap run` under parents of every kind: one that ignores SIGCHLD, and none at all (PID 1 of a container)."""
import os
import signal
import subprocess
import sys
import unittest

from harness import RANKTAP, TracedTest

LEAVES_ORPHANS = r'''
import os, sys, time
def orphan():
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.wait()
def orphans():  # alive or dead: what is alive yet may be a zombie at the next look
    count = 0
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            _, parent = open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[:2]
        except OSError:
            continue
        count += parent == '1' and pid != str(os.getpid())
    return count
for _ in range(5):
    orphan()
deadline = time.monotonic() + 20
while orphans() and time.monotonic() < deadline:
    time.sleep(0.02)
print('orphans', orphans(), flush=True)
sys.exit(7)
'''
IGNORES_ITS_CHILDREN = 'import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nos.execv(sys.argv[1], sys.argv[1:])'


class ParentTest(TracedTest):
    def under_one_that_ignores(self, *command):
        return subprocess.run([sys.executable, '-c', IGNORES_ITS_CHILDREN, str(RANKTAP), *command], capture_output=True, text=True,
                              timeout=120, cwd=self.scratch)

    def test_a_parent_that_ignores_its_children_hides_no_status(self):
        done = self.under_one_that_ignores('run', '-o', 'run', '--', 'sh', '-c', 'exit 7')
        self.assertEqual(done.returncode, 7, done.stderr)
        done = self.under_one_that_ignores('run', '-o', 'run2', '--', 'sh', '-c', 'kill -9 $$')
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, done.stderr)

    def test_the_command_gets_the_signal_as_it_was(self):
        says = "import signal; print(signal.getsignal(signal.SIGCHLD))"
        done = self.under_one_that_ignores('run', '-o', 'run', '--', sys.executable, '-c', says)
        self.assertEqual(done.stdout.strip(), str(signal.SIG_IGN), done.stderr)
        done = self._run([RANKTAP, 'run', '-o', 'run2', '--', sys.executable, '-c', says], {})
        self.assertEqual(done.stdout.strip(), str(signal.SIG_DFL), done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, 'only root may make a PID namespace here')
    def test_as_pid_1_it_reaps_orphans_and_ends_as_its_command(self):
        done = self._run(['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', RANKTAP, 'run', '-o', 'run', '--',
                          sys.executable, '-c', LEAVES_ORPHANS], {})
        self.assertEqual((done.returncode, done.stdout), (7, 'orphans 0\n'), done.stderr)


if __name__ == '__main__':
    unittest.main()
