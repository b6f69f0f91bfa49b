"""What `--sample` says of each line against the program's own clock, for every CPython that can be had here. A few
thousand looks each; RANKTAP_SAMPLES=100000 makes it the scorecard's row."""
import json
import os
import re
import subprocess
import unittest

import harness
import old_root

PROGRAM, IN_STEP = harness.PROGRAMS / 'line_shares.py', harness.PROGRAMS / 'in_step.py'
LOOKS = int(os.environ.get('RANKTAP_SAMPLES', 1500))
# The main thread has a third of the looks: 4 standard errors of a share of 0.4 among 500 are 8.8 points.
POINTS = 2.0 if LOOKS >= 100_000 else 9.0


class PythonSamplesTest(harness.TracedTest):
    told = []  # (looks, torn, points) of each CPython

    @classmethod
    def tearDownClass(cls):
        if cls.told:
            looks, torn, apart = zip(*cls.told)
            print(f'{len(looks)} CPythons: {sum(looks)} looks, {sum(torn)} torn, shares {max(apart):.2f} points apart at most')

    def sampled(self, suite, interpreter):
        """Runs that together hold the looks wanted; a busy machine lets the sampler look less often than asked for."""
        made, torn, spent, seen = 0, 0, {}, {}
        seconds = max(2.0, LOOKS / 1500)
        while made < LOOKS:
            looks, changed, measured, lines = self.one_run(suite, interpreter, seconds)
            self.assertGreater(looks, 0)
            made, torn = made + looks, torn + changed
            for total, more in (spent, measured), (seen, lines):
                for line, time in more.items():
                    total[line] = total.get(line, 0.0) + time
        return made, torn, spent, seen

    def one_run(self, suite, interpreter, seconds, program=PROGRAM, period='1ms'):
        run = self.scratch / f'run-{len(os.listdir(self.scratch))}'
        command = f'run --quiet --sample {period} -o {{}} {interpreter} {{}}/{program.name} {seconds}'
        if suite:
            done = old_root.run_with_product(suite, program, '/try/bin/ranktap ' + command.format(f'/out/{run.name}', '/try'),
                                             {'/out': self.scratch}, timeout=seconds + harness.TIMEOUT_S)
        else:
            done = subprocess.run([harness.RANKTAP, *command.format(run, program.parent).split()], capture_output=True,
                                  text=True, timeout=seconds + harness.TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        truth = json.loads(done.stdout)
        table = json.loads(self._run([harness.RANKTAP, 'report', run, 'host', '--format', 'json'], {}).stdout)
        looks = next(re.match(r'([\d,]+) looks at threads, ([\d,]+) of which', note) for note in table['notes'])
        lines = {row['source'].partition(':')[2]: row['total_ns'] / 1e9 for row in table['rows']
                 if row['thread'] == 'main' and row['file'] == truth['file'] and row['function'] == '<module>'}
        return *(int(number.replace(',', '')) for number in looks.groups()), truth['seconds'], lines

    def test_each_line_of_a_loop_in_step_with_the_period_has_its_share(self):
        looks, _, spent, seen = self.one_run('', 'python3', 4, IN_STEP, '10ms')
        for line, time in spent.items():
            told, true = 100 * seen.get(line, 0.0) / sum(seen.values()), 100 * time / sum(spent.values())
            self.assertAlmostEqual(told, true, delta=POINTS, msg=f'line {line} of {looks} looks')

    def assert_each_line_has_its_share(self, suite, interpreter):
        made, torn, spent, seen = self.sampled(suite, interpreter)
        self.assertLessEqual(torn, made / 1000)
        apart = 0.0
        for line, time in spent.items():
            told, true = 100 * seen.get(line, 0.0) / sum(seen.values()), 100 * time / sum(spent.values())
            self.assertAlmostEqual(told, true, delta=POINTS, msg=f'line {line} of {made} looks')
            apart = max(apart, abs(told - true))
        self.told.append((made, torn, apart))
        print(f'{interpreter}: {made} looks, {torn} torn, shares {apart:.2f} points apart at most')


# name: (suite or none for this machine, interpreter)
PYTHONS = {
    'python_3_11_of_debian_12': ('', '/usr/bin/python3'),
    'python_3_9_of_debian_11': ('bullseye', '/usr/bin/python3.9'),
    'python_3_13_of_debian_13': ('trixie', '/usr/bin/python3.13'),
    'python_3_14_of_forky': ('forky', '/usr/bin/python3.14'),
    'python_3_15_of_forky': ('forky', '/usr/bin/python3.15'),
    'python_3_14_with_its_compiler': ('forky', 'env PYTHON_JIT=1 /usr/bin/python3.14'),
    'python_3_15_with_its_compiler': ('forky', 'env PYTHON_JIT=1 /usr/bin/python3.15'),
}
for name, where in PYTHONS.items():
    setattr(PythonSamplesTest, f'test_each_line_has_its_share_in_{name}',
            lambda self, where=where: self.assert_each_line_has_its_share(*where))

if __name__ == '__main__':
    unittest.main()
