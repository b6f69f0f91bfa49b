"""The calls of our threads are those that rule 12 of docs/in-process-rules.md lists: sandboxes are written by it."""
import collections
import os
import re
import shutil
import sys
import unittest

import harness

RULES = harness.ROOT / 'docs/in-process-rules.md'
WITH_GPU = harness.ROOT / 'scripts/with-simulated-gpu'
LAUNCHES = [harness.BUILD / 'workloads/launches', '300', '200']
CONFINED = harness.BUILD / 'workloads/confined'
# They end a process or wait for ever, and what a process and its threads begin and end with.
NOT_TRIED = {'exit', 'exit_group', 'pause', 'execve', 'clone', 'rseq', 'set_robust_list', 'set_tid_address', 'rt_sigreturn',
             'arch_prctl', 'wait4', 'restart_syscall', 'longjmp'}
THREAD_BEGINS = re.compile(r'prctl\(PR_SET_NAME, "(ranktap-\w+)"')


def listed():
    rule, = re.findall(r'^12\. (.*?)^13\. ', RULES.read_text(), re.MULTILINE | re.DOTALL)
    return set(re.findall(r'`(\w+)(?:\([A-Z_]+\))?`', rule))


@unittest.skipUnless(shutil.which('strace'), 'no strace: scripts/setup installs it')
class SystemCallsTest(harness.TracedTest):

    def calls_of_ours(self, log):
        """By thread of ours, from its first call on."""
        calls, names = collections.defaultdict(set), {}
        for line in log.read_text(errors='replace').splitlines():
            call = re.match(r'(\d+) +(\w+)\(', line)
            if not call:
                continue
            thread = int(call[1])
            calls[thread].add(call[2])
            if begins := THREAD_BEGINS.search(line):
                names[thread] = begins[1]
        return {thread: (names[thread], calls[thread]) for thread in names}

    def check(self, command, **environment):
        log = self.scratch / 'strace'
        strace = ['strace', '-f', '-qq', '-e', 'signal=none', '-o', log]
        done = self._run([*command, *strace, *LAUNCHES], environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = self.calls_of_ours(log)
        self.assertEqual({name for name, _ in ours.values()}, {'ranktap-send', 'ranktap-drain'})
        for name, calls in ours.values():
            self.assertLessEqual(calls, listed(), name)
            self.assertIn('futex', calls)  # it was followed
        return set().union(*(calls for _, calls in ours.values()))

    def test_with_a_collector_at_every_level(self):
        for level in 'ranges', 'kernels', 'full':
            with self.subTest(level):
                self.check([WITH_GPU, harness.RANKTAP, 'run', '-o', self.scratch / level, '--level', level, '--'])

    def test_the_sampler_of_a_python_program(self):
        log = self.scratch / 'strace'
        done = self._run(['strace', '-f', '-qq', '-e', 'signal=none', '-o', log, harness.RANKTAP, 'run', '-o', 'run', '--quiet',
                          '--sample', '5ms', '--', sys.executable, harness.PROGRAMS / 'lines.py', 'children', '2'], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = dict(self.calls_of_ours(log).values())
        self.assertIn('ranktap-sample', ours)
        self.assertLessEqual(ours['ranktap-sample'], listed())
        self.assertIn('process_vm_readv', ours['ranktap-sample'])

    def test_without_a_collector_it_spools(self):
        agent = str(harness.BUILD / 'lib/libranktap.so')
        calls = self.check([WITH_GPU], LD_PRELOAD=agent, CUDA_INJECTION64_PATH=agent,
                           NVTX_INJECTION64_PATH=agent, RANKTAP_LEVEL='kernels', RANKTAP_SOCKET=str(self.scratch / 'nobody'),
                           RANKTAP_SPOOL=str(self.scratch / 'spool'))
        self.assertLessEqual({'connect', 'pwrite64', 'flock'}, calls)
        self.assertTrue(os.listdir(self.scratch / 'spool'))

    def by_process(self, name, *command):
        """The calls of each process and thread, in the order in which they appear."""
        log = self.scratch / name
        done = self._run([WITH_GPU, 'strace', '-f', '-qq', '-e', 'signal=none', '-o', log, *command], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = collections.defaultdict(set)
        for thread, call in re.findall(r'^(\d+) +(\w+)\(', log.read_text(errors='replace'), re.MULTILINE):
            calls[thread].add(call)
        return list(calls.values())

    def test_run_tries_each_call_in_a_child_first(self):
        bare = set().union(*self.by_process('bare', *LAUNCHES))
        for level in 'kernels', 'full':
            with self.subTest(level):
                run, child, *others = self.by_process(level, harness.RANKTAP, 'run', '-o', self.scratch / level, '--level',
                                                      level, '--', *LAUNCHES)
                self.assertEqual(run.union(*others) - bare - child - NOT_TRIED, set())
                self.assertLessEqual(listed() - NOT_TRIED - bare, child)

    def test_where_a_filter_kills_the_command_runs_untraced_and_its_end_is_as_bare(self):
        for call in 'memfd_create', 'process_vm_readv', 'signalfd4':
            with self.subTest(call):
                done = self._run([CONFINED, f'kill={call}', '--', harness.RANKTAP, 'run', '-o', 'run', '--', 'sh', '-c',
                                  'echo here; exit 7'], {})
                self.assertEqual((done.returncode, done.stdout), (7, 'here\n'), done.stderr)
                self.assertEqual(done.stderr, f'ranktap: a seccomp filter ends a process that calls {call}; the command '
                                              'runs untraced\n')
                self.assertFalse((self.scratch / 'run').exists())

    def test_where_a_filter_refuses_the_command_is_traced(self):
        done = self._run([WITH_GPU, CONFINED, 'deny=process_vm_readv', '--', harness.RANKTAP, 'run', '-o', 'run', '--',
                          *LAUNCHES], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn('untraced', done.stderr)
        self.assert_verifies(self.scratch / 'run')


if __name__ == '__main__':
    unittest.main()
