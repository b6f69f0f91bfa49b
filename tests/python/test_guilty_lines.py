"""Ranks with a planted guilty line: the verdict's sentence names file and line, and none where nothing is guilty.

A sample runs here. RANKTAP_GUILTY=SEED runs every program, as scripts/scorecard does (R25): the seed draws which rank is
late and by how much.
"""
import json
import os
import pathlib
import random
import re
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'guilty.py'
NOTED = [(name, number) for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if '  # ' in line
         for name in line.rsplit('# ', 1)[1].split(', ') if not name.startswith('noqa')]
LINES = {name: number for name, number in NOTED if name != 'spread'}
# Programs whose time somebody or something took, and the rule of insights that says so.
TAKEN = {'neighbour': 'descheduled', 'threads': 'too-many-threads', 'quota': 'cpu-throttled', 'gil': 'gil-contention',
         'faults': 'page-faults', 'read': 'slow-read'}
INNOCENT = ['none', 'spread-waits', 'spread-work']
TORCHRUN = [harness.TORCH_PYTHON, '-m', 'torch.distributed.run', '--nproc-per-node', '2', '--master-port', '0', '--standalone']


@harness.needs_torch
class GuiltyLinesTest(harness.TracedTest):

    def verdict(self, name, *drawn):
        more = {'GROUP': self.group()} if name == 'quota' else {}
        done, run = self.run_traced([*TORCHRUN, PROGRAM, name, *drawn], ['--level', 'full', '--sample', '5ms', '--quiet'],
                                    OMP_NUM_THREADS='1', **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.run_directory = run
        table = self._run([harness.RANKTAP, 'report', run, 'verdict', '--format', 'json'], {})
        self.assertEqual(table.returncode, 0, table.stderr)
        # The launcher gave samples alone, and is no rank.
        self.assertEqual(len(self.report(run, 'ranks')), 2)
        return json.loads(table.stdout)['title']

    def group(self):
        """The program limits it to a tenth of a CPU when it trains."""
        for hierarchy, limit in ('/sys/fs/cgroup/cpu', 'cpu.cfs_quota_us'), ('/sys/fs/cgroup', 'cpu.max'):
            group = pathlib.Path(hierarchy, f'ranktap-test-{os.getpid()}')
            try:
                group.mkdir()
            except OSError:
                continue
            self.addCleanup(group.rmdir)
            if (group / limit).exists():
                return str(group)
        self.skipTest('no control group with a limit of CPU time can be made here')

    def is_taken_told(self, name, text):
        """The verdict says what took the time, with the line. A busy machine takes more than was planted."""
        line = f'guilty.py:{LINES[name]} ('
        found = [row for row in self.report(self.run_directory, 'insights') if row['rule'] == TAKEN[name]]
        if name == 'read' and found:
            self.assertRegex(found[0]['finding'], r', from /.*/file\.$')
        return (any(line in row['where'] + row['finding'] for row in found) and 'guilty.py:' in text
                and re.search(rf'\(({TAKEN[name]}|descheduled)\)\.', text) is not None)

    def is_told(self, name, *drawn):
        text = self.said = self.verdict(name, *drawn)
        self.assertNotIn('<ranktap/', text)
        if name in TAKEN:
            return self.is_taken_told(name, text)
        if name in INNOCENT:
            # A rank that a busy machine stops at a line for long is late there, and may be said to be.
            return not re.search(r'before the next forward pass[^,]*, at guilty', text)
        return f'guilty.py:{LINES[name.removeprefix("both-")]} (' in text

    def check(self, name):
        self.assertTrue(self.is_told(name), (name, self.said))

    def test_a_rank_that_sleeps_in_its_loop(self):
        self.check('sleep')
        lines = {row['rank']: row['program_line'] for row in self.report(self.run_directory, 'stragglers')}
        self.assertIn(f'guilty.py:{LINES["sleep"]} (main)', lines[1])

    def test_a_rank_with_a_slow_hand_written_generator_of_batches(self):
        self.check('loader')

    def test_a_rank_that_is_late_in_a_module_of_pure_python(self):
        self.check('forward')

    def test_a_rank_that_logs_to_something_slow(self):
        self.check('log')

    def test_a_rank_that_saves_a_checkpoint_each_step(self):
        self.check('checkpoint')

    def test_a_rank_that_another_process_takes_the_cpu_from(self):
        self.check('neighbour')

    def test_a_rank_that_its_control_group_throttles(self):
        self.check('quota')

    def test_where_four_lines_have_a_quarter_each_none_is_accused(self):
        self.check('spread-waits')

    def test_every_program(self):
        if not os.environ.get('RANKTAP_GUILTY'):
            self.skipTest('RANKTAP_GUILTY=SEED is not set: scripts/scorecard runs every program')
        draw = random.Random(int(os.environ['RANKTAP_GUILTY']))
        names = [*LINES, 'both-sleep', 'both-loader', *INNOCENT]
        wrong = []
        for name in names:
            late, cost = draw.randrange(2), draw.randint(30, 120)
            try:
                if not self.is_told(name, late, cost):
                    wrong.append(name)
                    print(f'{name} {late} {cost}: {self.said}')
            except unittest.SkipTest as why:
                print(f'{name}: {why}')
        print(f'{len(names) - len(wrong)} of {len(names)} programs have their line or none as they should'
              f'{": not " + ", ".join(wrong) if wrong else ""}')
        self.assertFalse(wrong)


if __name__ == '__main__':
    unittest.main()
