"""The calls of our threads are those that rule 12 of docs/in-process-rules.md lists: sandboxes are written by it."""
import collections
import os
import re
import shutil
import unittest

import harness

RULES = harness.ROOT / 'docs/in-process-rules.md'
WITH_GPU = harness.ROOT / 'scripts/with-simulated-gpu'
LAUNCHES = [harness.BUILD / 'workloads/launches', '300', '200']
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

    def test_without_a_collector_it_spools(self):
        agent = str(harness.BUILD / 'lib/libranktap.so')
        calls = self.check([WITH_GPU], LD_PRELOAD=agent, CUDA_INJECTION64_PATH=agent,
                           NVTX_INJECTION64_PATH=agent, RANKTAP_LEVEL='kernels', RANKTAP_SOCKET=str(self.scratch / 'nobody'),
                           RANKTAP_SPOOL=str(self.scratch / 'spool'))
        self.assertLessEqual({'connect', 'pwrite64', 'flock'}, calls)
        self.assertTrue(os.listdir(self.scratch / 'spool'))


if __name__ == '__main__':
    unittest.main()
