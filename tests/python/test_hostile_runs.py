"""Runs and files that were made to keep a reader busy: each verb says what is wrong, and ends."""
import gzip
import json
import os
import shutil
import subprocess
import unittest

from harness import RANKTAP, ROOT, TracedTest

INPUT = ROOT / 'tests/golden/inputs/standin-full'
VERBS = (['report'], ['verify'], ['export', '--format', 'csv', '-o', 'out.csv'], ['view', '-o', 'out.html'])
TIB = 1 << 40


class HostileRunsTest(TracedTest):
    def ask(self, verb, run, limits=()):
        """It is killed where it does not end: minutes are no measure of speed, but a TiB that is read takes more."""
        return subprocess.run(['prlimit', *limits, str(RANKTAP), verb[0], str(run), *verb[1:]], capture_output=True, text=True,
                              cwd=self.scratch, timeout=120)

    def copy(self):
        run = self.scratch / 'run'
        shutil.copytree(INPUT, run)
        return run

    def test_a_hole_of_a_tebibyte_is_not_read(self):
        run = self.copy()
        trace = sorted(run.glob('*.trace'))[0]
        whole = trace.read_bytes()
        with trace.open('r+b') as file:
            file.truncate(len(whole) // 2)  # the rest comes after the hole
            file.seek(TIB)
            file.write(whole[len(whole) // 2:])
        for verb in VERBS:
            with self.subTest(verb[0]):
                done = self.ask(verb, run)
                self.assertEqual(done.returncode, 1 if verb[0] == 'verify' else 0, done.stderr)
        (run / 'empty.trace').touch()
        os.truncate(run / 'empty.trace', TIB)
        self.assertIn('not a ranktap trace', self.ask(['report'], run).stderr)

    def test_other_tools_files_that_are_no_files_are_said(self):
        run = self.copy()
        os.mkfifo(run / 'a.pt.trace.json')
        os.symlink('/dev/zero', run / 'b.json.gz')
        for verb in VERBS:
            with self.subTest(verb[0]):
                self.ask(verb, run)
        for name in 'a.pt.trace.json', 'b.json.gz':
            done = self.ask(['report'], run / name)
            self.assertEqual(done.returncode, 1)
            self.assertIn('not a file', done.stderr)

    def test_zeros_behind_a_gzip_file_are_not_read_to_their_end(self):
        path = self.scratch / 'a.pt.trace.json.gz'
        with gzip.open(path, 'wt') as file:
            json.dump({'traceEvents': [{'ph': 'X', 'name': 'a', 'cat': 'cpu_op', 'ts': 1, 'dur': 1, 'pid': 1, 'tid': 1}]}, file)
        os.truncate(path, TIB)
        self.ask(['report'], path)

    def test_what_unpacks_to_more_memory_than_there_is_gets_a_sentence(self):
        path = self.scratch / 'bomb.pt.trace.json.gz'
        event = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%d,"dur":1,"args":{"stream":7,"correlation":%d}}'
        with gzip.open(path, 'wt', compresslevel=1) as file:
            file.write('{"traceEvents":[')
            for i in range(1_500_000):
                file.write((',' if i else '') + event % (2 * i, i))
            file.write(']}')
        done = self.ask(['report'], path, [f'--as={256 << 20}'])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn('not enough memory', done.stderr)


if __name__ == '__main__':
    unittest.main()
