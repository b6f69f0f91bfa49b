"""Runs programs bare and under ranktap, and reads what was recorded through the product itself."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('RANKTAP_BUILD', ROOT / 'build/release'))
RANKTAP = BUILD / 'bin/ranktap'
CACHE = pathlib.Path(os.environ.get('RANKTAP_CACHE', pathlib.Path.home() / '.cache/ranktap'))
TORCH_PYTHON = CACHE / 'torch-venv/bin/python'
DEEPSPEED_PYTHON = CACHE / 'deepspeed-venv/bin/python'
PROGRAMS = ROOT / 'tests/python/programs'
TIMEOUT_S = 300


def needs_torch(test):
    reason = f'no PyTorch at {TORCH_PYTHON}; scripts/setup --torch installs it'
    return unittest.skipUnless(TORCH_PYTHON.exists(), reason)(test)


def needs_deepspeed(test):
    reason = f'no DeepSpeed at {DEEPSPEED_PYTHON}; scripts/setup --torch --tools'
    return unittest.skipUnless(DEEPSPEED_PYTHON.exists(), reason)(test)


def counted_by_others(program, models):
    """What the program says with --reference: FLOPs by PyTorch, and by DeepSpeed where it is installed. All models at
    once: most of the time goes into imports."""
    python = DEEPSPEED_PYTHON if DEEPSPEED_PYTHON.exists() else TORCH_PYTHON
    done = subprocess.run([python, program, *models, '--reference'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def trace_once(test_class, program, *options):
    """One run at level full for all tests of the class; its directory."""
    folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
    test_class.addClassCleanup(folder.cleanup)
    run = pathlib.Path(folder.name) / 'run'
    command = [RANKTAP, 'run', '-o', run, '--level', 'full', *options, '--', TORCH_PYTHON, program]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return run


class TracedTest(unittest.TestCase):
    """A test with a scratch directory, kept when the test fails."""

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix='ranktap-test-'))
        self.addCleanup(self._clean_up)

    def _clean_up(self):
        outcome = getattr(self._outcome, 'result', None)
        broken = outcome and (outcome.errors or outcome.failures)
        if broken:
            print(f'kept {self.scratch}')
        else:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def run_bare(self, command, **environment):
        return self._run(command, environment)

    def run_traced(self, command, options=(), **environment):
        """The command under `ranktap run`; returns the finished process and the run's directory."""
        run = self.scratch / 'run'
        done = self._run([RANKTAP, 'run', '-o', run, *options, '--', *command], environment)
        return done, run

    def _run(self, command, environment):
        return subprocess.run([str(part) for part in command], capture_output=True, text=True,
                              timeout=TIMEOUT_S, cwd=self.scratch, env={**os.environ, **environment})

    def report(self, path, name, *options):
        """The rows of one analysis."""
        done = self._run([RANKTAP, 'report', path, name, '--format', 'json', *options], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)['rows']

    def assert_verifies(self, run):
        done = self._run([RANKTAP, 'verify', run], {})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def assert_same_to_the_user(self, bare, traced):
        """Exit status, stdout and stderr as without ranktap; its own summary comes last on stderr."""
        self.assertEqual(traced.returncode, bare.returncode)
        self.assertEqual(sorted(traced.stdout.splitlines()), sorted(bare.stdout.splitlines()))
        theirs, _, _ = traced.stderr.partition('ranktap: ')
        self.assertEqual(theirs.splitlines(), bare.stderr.splitlines())
