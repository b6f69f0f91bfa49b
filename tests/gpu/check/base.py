"""Runs programs and keeps findings."""
import contextlib
import importlib.util
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get('RANKTAP_BUILD', ROOT / 'build/release'))
PROGRAMS = ROOT / 'tests/gpu/programs'
# The build tree that has the stand-in and the programs that only it needs: a packed tree has neither.
STAND_IN_BUILD = pathlib.Path(os.environ.get('GPU_CHECK_STAND_IN_BUILD', BUILD))
RANKTAP = BUILD / 'bin/ranktap'
# The longest that one program may take: one that hangs costs this and no more.
LIMIT_S = float(os.environ.get('GPU_CHECK_LIMIT_S', '120'))
# A program with less than this is not begun.
LEAST_S = 2


def workload(name):
    """A C++ program, of this tree or of the stand-in's."""
    mine = BUILD / 'workloads' / name
    return mine if mine.exists() else STAND_IN_BUILD / 'workloads' / name


def has_module(name):
    """Without an import of it: that may take a minute, or never end."""
    return importlib.util.find_spec(name) is not None


def finished(command, limit_s, cwd, environment):
    """Runs a command to its end or for so long: exit status 124. Its output goes through files, because a grandchild
    that is left behind would keep a pipe open for ever."""
    with tempfile.TemporaryFile('w+', errors='replace') as out, tempfile.TemporaryFile('w+', errors='replace') as err:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd,
                                       env=environment, start_new_session=True)
        except OSError as error:
            return subprocess.CompletedProcess(command, 127, '', str(error))
        late = ''
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status, late = 124, f'it ran past {limit_s:.0f} s and was ended\n'
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, status, out.read(), err.read() + late)


class Check:
    """`stand_in`: the programs run on the stand-in for CUDA, so that these checks can be checked; then no figure
    means anything, and what needs PyTorch on a GPU is done by the C++ workloads in its place."""

    def __init__(self, out, scratch, stand_in, limit_s, models):
        self.out = pathlib.Path(out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.scratch = pathlib.Path(scratch)
        self.stand_in = stand_in
        self.started = time.monotonic()
        self.limit_s = limit_s
        self.models = models
        self.written = lambda: None  # called after each finding
        self.findings = []
        self.runs = 0
        self.has_torch = has_module('torch')

    def left_s(self):
        return self.limit_s - (time.monotonic() - self.started)

    @contextlib.contextmanager
    def share(self, seconds):
        """The programs that are started inside end by then, whatever they do."""
        whole = self.limit_s
        self.limit_s = min(whole, self.limit_s - self.left_s() + seconds)
        try:
            yield
        finally:
            self.limit_s = whole

    def note(self, name, met, text, **data):
        """`met`: True or False for a requirement, None for a fact."""
        self.findings.append({'name': name, 'met': met, 'text': text, 'data': data})
        print({True: 'ok     ', False: 'FAILED ', None: 'note   '}[met] + f'{name}: {text}', flush=True)
        self.written()

    def run(self, command, limit_s=LIMIT_S, **environment):
        command = [str(part) for part in command]
        if self.left_s() < LEAST_S:
            return subprocess.CompletedProcess(command, 124, '', 'the time was over')
        return finished(command, min(limit_s, self.left_s()), self.scratch, {**os.environ, **environment})

    def traced(self, command, *options, limit_s=LIMIT_S, **environment):
        """The finished process and the folder of its run, which may not be there."""
        self.runs += 1
        run = self.scratch / f'run-{self.runs}'
        return self.run([RANKTAP, 'run', '-o', run, *options, '--', *command], limit_s, **environment), run

    def report(self, run, name):
        done = self.run([RANKTAP, 'report', run, name, '--format', 'json'])
        return json.loads(done.stdout)['rows'] if done.returncode == 0 else []

    def notes(self, run, name):
        """What a report says below its table."""
        done = self.run([RANKTAP, 'report', run, name, '--format', 'json'])
        return json.loads(done.stdout)['notes'] if done.returncode == 0 else []

    def verified(self, run):
        """(does the trace verify, what ranktap says of it)."""
        done = self.run([RANKTAP, 'verify', run])
        return done.returncode == 0, (done.stdout.strip() or done.stderr.strip() or 'nothing was said').splitlines()[-1]

    def model(self, name, steps, *options):
        """A command that trains a model and says so in one line of JSON."""
        if self.stand_in:
            return [sys.executable, PROGRAMS / 'train_stand_in.py', STAND_IN_BUILD / 'workloads', '--model', name, '--steps', steps, *options]
        return [sys.executable, PROGRAMS / 'train_models.py', '--model', name, '--steps', steps, *options]


def theirs(text):
    """stderr without our summary."""
    return text.partition('ranktap: ')[0]


def last_json(done, *keys):
    """The object in the last line of a program's output; nothing where it failed, or where a key is missing."""
    lines = [line for line in done.stdout.splitlines() if line.startswith('{')]
    if done.returncode != 0 or not lines:
        return None
    try:
        said = json.loads(lines[-1])
    except ValueError:
        return None
    return said if all(key in said for key in keys) else None


def why(done):
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return f'exit {done.returncode}: {lines[-1][-300:] if lines else "no output"}'


# Student's t for 95 %, by degrees of freedom.
T95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228}


def t95(freedom):
    """Beyond the table, an expansion that is off by less than 0.003 there."""
    return T95.get(freedom) or 1.960 + 2.372 / freedom + 2.822 / freedom ** 2


def interval(samples):
    """Half the width of the 95 % interval of the mean; None for fewer than two samples."""
    if len(samples) < 2:
        return None
    return t95(len(samples) - 1) * statistics.stdev(samples) / math.sqrt(len(samples))


def summary(samples):
    """{'median', 'mean', 'interval95', 'samples'}; of differences, too."""
    return {'median': statistics.median(samples), 'mean': statistics.fmean(samples), 'interval95': interval(samples),
            'samples': samples}


def percent(value):
    if value['interval95'] is None:
        return f'{value["mean"]:+.2f} %'
    return f'{value["mean"]:+.2f} % ± {value["interval95"]:.2f}'
