"""Pythons whose allocators are not the usual ones, from 3.9 to 3.15: they end as they end alone."""
import shutil
import subprocess
import unittest

import harness
import old_root

PROGRAM = harness.PROGRAMS / 'python_ways.py'
DEBUG_BUILD = shutil.which('python3.11-dbg')


class PythonAllocatorsTest(unittest.TestCase):

    def assert_ends_as_bare(self, output, version):
        """8 ways at 4 levels."""
        self.assertEqual(output.splitlines(), [f'compared 32, {version}'])

    def run_here(self, interpreter):
        done = subprocess.run([interpreter, PROGRAM, harness.RANKTAP, interpreter], capture_output=True, text=True,
                              timeout=harness.TIMEOUT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return done.stdout

    def run_in(self, suite, interpreter):
        done = old_root.run_with_product(suite, PROGRAM,
                                         f'{interpreter} /try/{PROGRAM.name} /try/bin/ranktap {interpreter}')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return done.stdout

    def test_python_of_debian_12_ends_as_bare(self):
        self.assert_ends_as_bare(self.run_here('/usr/bin/python3'), '3.11')

    @unittest.skipUnless(DEBUG_BUILD, 'no python3.11-dbg; scripts/setup --packages installs it')
    def test_a_debug_build_ends_as_bare(self):
        self.assert_ends_as_bare(self.run_here(DEBUG_BUILD), '3.11')

    def test_python_3_9_of_debian_11_ends_as_bare(self):
        self.assert_ends_as_bare(self.run_in('bullseye', '/usr/bin/python3.9'), '3.9')

    def test_python_3_13_of_debian_13_ends_as_bare(self):
        self.assert_ends_as_bare(self.run_in('trixie', '/usr/bin/python3.13'), '3.13')

    def test_python_3_14_of_forky_ends_as_bare(self):
        self.assert_ends_as_bare(self.run_in('forky', '/usr/bin/python3.14'), '3.14')

    def test_python_3_15_of_forky_ends_as_bare(self):
        self.assert_ends_as_bare(self.run_in('forky', '/usr/bin/python3.15'), '3.15')


if __name__ == '__main__':
    unittest.main()
