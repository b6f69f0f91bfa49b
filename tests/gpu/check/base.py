"""Runs programs, keeps findings, writes the report."""
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get('RANKTAP_BUILD', ROOT / 'build/release'))
PROGRAMS = ROOT / 'tests/gpu/programs'
WORKLOADS = BUILD / 'workloads'
RANKTAP = BUILD / 'bin/ranktap'


class Check:
    """`stand_in`: the programs run on the stand-in for CUDA, so that these checks can be checked; then no figure
    means anything, and what needs PyTorch on a GPU is done by the C++ workloads in its place."""

    def __init__(self, out, scratch, stand_in, limit_s):
        self.out = pathlib.Path(out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.scratch = pathlib.Path(scratch)
        self.stand_in = stand_in
        self.started = time.monotonic()
        self.limit_s = limit_s
        self.findings = []
        self.runs = 0
        self.has_torch = False

    def left_s(self):
        return self.limit_s - (time.monotonic() - self.started)

    def note(self, name, met, text, **data):
        """`met`: True or False for a requirement, None for a fact."""
        self.findings.append({'name': name, 'met': met, 'text': text, 'data': data})
        print({True: 'ok     ', False: 'FAILED ', None: 'note   '}[met] + f'{name}: {text}', flush=True)

    def run(self, command, **environment):
        command = [str(part) for part in command]
        try:
            return subprocess.run(command, capture_output=True, text=True, cwd=self.scratch, check=False,
                                  timeout=max(10, self.left_s()), env={**os.environ, **environment})
        except FileNotFoundError as error:
            return subprocess.CompletedProcess(command, 127, '', str(error))

    def traced(self, command, *options, **environment):
        """The finished process and the folder of its run."""
        self.runs += 1
        run = self.scratch / f'run-{self.runs}'
        return self.run([RANKTAP, 'run', '-o', run, *options, '--', *command], **environment), run

    def report(self, run, name):
        done = self.run([RANKTAP, 'report', run, name, '--format', 'json'])
        return json.loads(done.stdout)['rows'] if done.returncode == 0 else []

    def model(self, name, steps, *options):
        """A command that trains a model and says so in one line of JSON."""
        if self.stand_in:
            return [sys.executable, PROGRAMS / 'train_stand_in.py', WORKLOADS, '--model', name, '--steps', steps, *options]
        return [sys.executable, PROGRAMS / 'train_models.py', '--model', name, '--steps', steps, *options]


def theirs(text):
    """stderr without our summary."""
    return text.partition('ranktap: ')[0]


def last_json(done):
    """What a program's last line says; nothing where it failed."""
    lines = [line for line in done.stdout.splitlines() if line.startswith('{')]
    return json.loads(lines[-1]) if done.returncode == 0 and lines else None


def why(done):
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return f'exit {done.returncode}: {lines[-1] if lines else "no output"}'


# Student's t for 95 %, by degrees of freedom.
T95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228}


def interval(samples):
    """Half the width of the 95 % interval of the mean; None for fewer than two samples."""
    if len(samples) < 2:
        return None
    return T95.get(len(samples) - 1, 2.0) * statistics.stdev(samples) / math.sqrt(len(samples))


def summary(samples):
    """{'median', 'mean', 'interval95', 'samples'}; of differences, too."""
    return {'median': statistics.median(samples), 'mean': statistics.fmean(samples), 'interval95': interval(samples),
            'samples': samples}


def percent(value):
    if value['interval95'] is None:
        return f'{value["mean"]:+.2f} %'
    return f'{value["mean"]:+.2f} % ± {value["interval95"]:.2f}'
