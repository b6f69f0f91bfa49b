"""scripts/bench, with programs that print made-up figures."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = 'a process without CUDA or NVTX, added to its start'
CMAKE = '''cmake_minimum_required(VERSION 3.20)
project(ranktap VERSION 1.2.3 LANGUAGES NONE)
add_custom_target(ranktap_agent)
add_custom_target(spawn_bench COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/bench
  COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/program ${CMAKE_BINARY_DIR}/bench/spawn_bench)
'''
PRESETS = {'version': 3, 'configurePresets': [{'name': 'release', 'generator': 'Ninja',
                                              'binaryDir': '${sourceDir}/build/release'}]}


def program_of(value, floor, at_least=False):
    """As spawn_bench, a little different each time."""
    figure = {'name': NAME, 'unit': 'us', 'floor_name': 'the bare process', 'target': 200, 'at_least': at_least,
              'note': ''}
    return (f'#!{sys.executable}\nimport json, pathlib\nturn = pathlib.Path(__file__ + ".turn")\n'
            'turn.touch()\ncount = turn.stat().st_size\nturn.write_text("." * (count + 1))\n'
            f'value = {value} * (1 + (0, 2, -2, 1, -1)[count % 5] / 1000)\n'
            f'print(json.dumps({{**{figure!r}, "value": value, "floor": {floor}}}))\n')


class Bench(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / 'scripts').mkdir()
        shutil.copy(ROOT / 'scripts/bench', self.root / 'scripts/bench')
        (self.root / 'CMakeLists.txt').write_text(CMAKE)
        (self.root / 'CMakePresets.json').write_text(json.dumps(PRESETS))
        (self.root / 'docs/measurements').mkdir(parents=True)

    def prints(self, value, floor, **options):
        for path in (self.root / 'program', self.root / 'build/release/bench/spawn_bench'):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(program_of(value, floor, **options))
            path.chmod(0o755)

    def bench(self, *options):
        done = subprocess.run([sys.executable, self.root / 'scripts/bench', '--filter', 'spawn', *options],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def commit(self):
        identity = {f'GIT_{who}_{what}': 'a' for who in ('AUTHOR', 'COMMITTER') for what in ('NAME', 'EMAIL')}
        files = ('CMakeLists.txt', 'CMakePresets.json', 'program')
        for command in (['init', '-q'], ['add', *files], ['commit', '-qm', 'a']):
            subprocess.run(['git', '-C', self.root, *command], check=True, env={**os.environ, **identity})

    def test_a_slow_machine_invents_no_miss(self):
        self.prints(2_000, 10_000)
        status, output = self.bench()
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r'0\.20x +<= 0\.36x met .*\[<= 200 us\]')

    def test_a_fast_machine_hides_no_miss(self):
        self.prints(150, 200)
        status, output = self.bench()
        self.assertEqual(status, 1, output)
        self.assertIn('MISSED', output)

    def test_a_file_of_a_machine_twice_as_fast_compares_by_the_floors(self):
        self.prints(100, 500)
        self.bench('--json', str(self.root / 'before.json'))
        self.prints(200, 1_000)
        status, output = self.bench('--against', str(self.root / 'before.json'))
        self.assertEqual(status, 0, output)
        self.assertNotIn('WORSE', output)
        self.prints(300, 1_000)
        status, output = self.bench('--against', str(self.root / 'before.json'))
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r'1\.[45]\d\d +1\.\d+ to 1\.\d+ WORSE')

    def test_a_commit_is_built_and_runs_in_turn_with_ours(self):
        self.prints(100, 500)
        self.commit()
        self.prints(50, 500)
        status, output = self.bench('--against', 'HEAD', '--rounds', '3')
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r'0\.[45]\d\d +0\.\d+ to 0\.\d+ better')

    def test_more_is_better_where_a_figure_says_so(self):
        self.prints(100, 500, at_least=True)
        self.bench('--json', str(self.root / 'before.json'))
        self.prints(50, 500, at_least=True)
        status, output = self.bench('--against', str(self.root / 'before.json'))
        self.assertEqual(status, 1, output)

    def test_what_is_neither_a_file_nor_a_commit_is_said(self):
        self.prints(100, 500)
        self.commit()
        status, output = self.bench('--against', 'nothing')
        self.assertEqual(status, 1)
        self.assertIn('nothing is neither a file nor a commit', output)

    def test_the_history_gets_the_version_and_the_figures(self):
        self.prints(100, 500)
        self.commit()
        for _ in range(2):
            self.bench('--history')
        lines = (self.root / 'docs/measurements/history.csv').read_text().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[1], r'^1\.2\.3,[0-9a-f]+,.*added to its start",10.*,us,500,0\.2')


if __name__ == '__main__':
    unittest.main()
