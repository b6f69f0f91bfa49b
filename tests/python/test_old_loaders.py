"""The agent and the tool under other loaders than this machine's: load, trace, exit, verify."""
import json
import pathlib
import shutil
import tempfile
import unittest

import harness
import old_root
from nvtx_program import build_program, why_no_program


class OldLoadersTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        if why_no_program():
            raise unittest.SkipTest(why_no_program())
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.programs = pathlib.Path(folder.name)
        cls.programs.chmod(0o755)
        build_program(cls.programs / 'program')
        build_program(cls.programs / 'libwork.so', is_library=True)
        product = cls.programs / 'product'
        for part in 'bin/ranktap', 'lib/libranktap.so', 'lib/libranktap_agent.so':
            (product / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(harness.BUILD / part, product / part)

    def trace(self, suite, command, status):
        """Ranges by name, as the tool reports them there."""
        glibc, python = old_root.SUITES[suite]
        script = f'''
          ldd --version | head -1 >&2; python3 --version >&2
          status=0
          /try/product/bin/ranktap run -o /tmp/run --level full -- {command} >&2 || status=$?
          [ $status = {status} ]
          /try/product/bin/ranktap verify /tmp/run >&2
          /try/product/bin/ranktap report /tmp/run ranges --format json'''
        done = old_root.run_in(suite, script, {'/try': self.programs})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f'{glibc}\n', done.stderr)
        self.assertIn(f'Python {python}.', done.stderr)
        return {row['name']: row for row in json.loads(done.stdout)['rows']}

    def assert_traced(self, suite, command, status):
        ranges = self.trace(suite, command, status)
        self.assertEqual({name: row['calls'] for name, row in ranges.items()}, {'first': 3, 'other': 3})

    def test_a_program_is_traced_on_debian_11(self):
        self.assert_traced('bullseye', '/try/program', 7)

    def test_a_program_is_traced_on_debian_13(self):
        self.assert_traced('trixie', '/try/program', 7)

    PYTHON = "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(\"/try/libwork.so\").work() + 5)'"

    def test_python_3_9_is_traced_on_debian_11(self):
        self.assert_traced('bullseye', self.PYTHON, 5)

    def test_python_3_13_is_traced_on_debian_13(self):
        self.assert_traced('trixie', self.PYTHON, 5)

    def test_python_3_13_forks_as_bare_and_our_thread_comes_back(self):
        program = """
import ctypes, os, subprocess, time
def threads(): return len(os.listdir('/proc/self/task'))
ctypes.CDLL('/try/libwork.so').work()
before = threads()
for fork in os.fork, lambda: os.forkpty()[0]:
    child = fork()
    if child == 0: os._exit(0)
    os.waitpid(child, 0)
    assert threads() == before, fork
subprocess.run(['true'], preexec_fn=lambda: None)
assert threads() == before, 'subprocess'
assert before == 2"""
        (self.programs / 'forks.py').write_text(program)
        script = '''
          for loaded in "" --no-preload; do
            /try/product/bin/ranktap run $loaded --quiet -o /tmp/run$loaded --level ranges -- python3 /try/forks.py
            /try/product/bin/ranktap verify /tmp/run$loaded
          done'''
        done = old_root.run_in('trixie', script, {'/try': self.programs})
        self.assertEqual((done.returncode, done.stderr), (0, ''))


if __name__ == '__main__':
    unittest.main()
