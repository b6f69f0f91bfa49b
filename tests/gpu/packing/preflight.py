"""Proves of a packed tree, without a GPU, what can be: it will load there, its checks run from another folder and home,
and whatever PyTorch does there, a report comes back."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from check.base import BUILD
from check.report import unfit
from packing import elf, pack

NO_TORCH = pathlib.Path(__file__).resolve().parent / 'no_torch'
WANTED_PYTHONS = ('3.12', '3.13')
HOW_TORCH_FAILS = ('nothing', 'crash', 'hang', 'nonsense', 'wrong types', 'crash when watched', 'well')
# Every check that runs PyTorch, and how its findings begin.
WITH_TORCH = {'record': 'recording conv', 'basics': 'PyTorch mlp', 'clients': 'the program profiles itself', 'graphs': 'graphs',
              'overhead': 'overhead mlp', 'processes': 'short processes'}
# Of each command's findings, by the beginnings of their names.
EXPECTED = [('recording profiler', 'fact clock-once', 'fact cost'),
            ('C++ kernels joined', 'the program profiles itself: full, environment', 'graphs node by node',
             'roofs of device'),
            ('overhead mlp', 'cost of a step in pairs, mlp: kernels', 'cost of a step in pairs, gpt2: planted'),
            ('variant against the usual, mlp: driver launches alone', 'variant, mlp: floor, MEMORY2 alone',
             'short processes', 'clocks')]
PARSE = 'import sys\nfor path in sys.argv[1:]:\n    with open(path) as file:\n        compile(file.read(), path, "exec")'


class Preflight:
    def __init__(self, scratch):
        self.scratch = scratch
        self.tree = scratch / 'another-folder'
        self.pack = self.tree / 'build/gpu-pack'
        self.failed = 0

    def expect(self, what, wrong):
        """`wrong`: what speaks against it, a list."""
        self.failed += bool(wrong)
        print(f'{"FAILED" if wrong else "ok"} {what}' + ''.join(f'\n       {line}' for line in wrong[:20]), flush=True)

    def run(self, command, python, **environment):
        """In the other folder, with an environment of its own and the stand-in for CUDA."""
        fakes = BUILD.resolve() / 'fakes'
        home = self.scratch / 'home'
        home.mkdir(exist_ok=True)
        return subprocess.run(command, cwd=self.tree, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              env={'PATH': f'{python.parent}:/usr/bin:/bin', 'HOME': str(home), 'LD_LIBRARY_PATH': str(fakes),
                                   'RANKTAP_CUPTI': str(fakes / 'libcupti.so.13'), 'GPU_CHECK_ROUNDS': '1', **environment})


def pythons():
    """{version: interpreter}: those that are wanted, as far as they are here; else this one."""
    places = [pathlib.Path(folder) for folder in os.environ.get('PATH', '').split(':') if folder]
    places += sorted((pathlib.Path.home() / '.pyenv/versions').glob('*/bin'), reverse=True)
    found = {}
    for version in WANTED_PYTHONS:
        for place in places:
            program = place / f'python{version}'
            # Not a shim, which fails where no such version is chosen, and which shows nothing of python3 beside it.
            if program.exists() and (place / 'python3').exists() and 'shims' not in place.parts:
                found[version] = program
                break
    return found or {'.'.join(map(str, sys.version_info[:2])): pathlib.Path(sys.executable)}


def check_size(flight):
    size, commands = pack.size_of(flight.pack), pack.commands('build/gpu-pack')
    wrong = [f'{size} bytes, more than {pack.MOST_BYTES}'] if size > pack.MOST_BYTES else []
    wrong += [command for command in commands if len(command) >= 2000]
    if sum(minutes for minutes, _ in pack.COMMANDS[:2]) > 12:
        wrong.append('the first two commands take longer than 12 minutes')
    flight.expect(f'{size / 1e6:.1f} MB with CUPTI {", ".join(pack.carried_cuptis()) or "of no version"}, {len(commands)} commands of at most {max(map(len, commands))} characters', wrong)


def check_libraries(flight):
    files = [path for path in pack.files_of(flight.pack) if pack.is_elf(path) and not pack.is_vendors(path)]
    wrong = [f'{path.name} {complaint}' for path in files for complaint in elf.complaints(path)]
    newest = max(map(elf.newest_glibc, files))
    flight.expect(f'{len(files)} programs and libraries need {", ".join(sorted(elf.NEEDED))} at most, and glibc '
                  f'{newest[0]}.{newest[1]}', wrong)


def check_paths(flight):
    """No file names a folder of this machine."""
    ours = {str(pack.ROOT) + '/', str(pathlib.Path.home()) + '/', str(BUILD.resolve()) + '/'}
    wrong = [f'{path.name} has {folder}' for path in pack.files_of(flight.pack) for folder in ours
             if folder.encode() in path.read_bytes()]
    flight.expect('no path of this machine', wrong)


def check_syntax(flight, found):
    files = [path for path in pack.files_of(flight.pack) if path.suffix == '.py' or path.name == 'gpu-check']
    for version, program in found.items():
        done = subprocess.run([program, '-W', 'error', '-c', PARSE, *files], capture_output=True, text=True, check=False)
        helped = flight.run([program, '-W', 'error', flight.pack / 'scripts/gpu-check', '--help'], program)
        known = '' if version in WANTED_PYTHONS else f' (neither of {", ".join(WANTED_PYTHONS)} is here)'
        flight.expect(f'Python {version}{known}: parses {len(files)} files and imports the checks, warnings are errors',
                      done.stderr.splitlines() + (helped.stderr.splitlines() if helped.returncode else []))


def check_environment(flight, python):
    """env.sh finds libraries that come with Python's packages alone."""
    packages = flight.scratch / 'python'
    site = packages / 'lib/nvidia/cu13/lib'
    site.mkdir(parents=True)
    (packages / 'bin').mkdir()
    for name in 'libcudart.so.13', 'libcupti.so.13':
        (site / name).touch()
    stub = packages / 'bin/python3'
    stub.write_text(f'#!/bin/sh\necho {packages}/lib\n')
    stub.chmod(0o755)
    done = flight.run(['sh', '-euc', 'cd build/gpu-pack && . ./env.sh && echo "$RANKTAP_CUPTI in $RESULTS"'], stub,
                      RANKTAP_CUPTI='', CUDA_HOME='/nowhere', OUT=str(flight.scratch / 'out'))
    last = (done.stdout.splitlines() or [''])[-1]
    wrong = [] if last == f'{site}/libcupti.so.13 in {flight.scratch}/out' else [last, done.stderr]
    flight.expect("env.sh finds CUPTI in Python's packages, and the folder for results", wrong)


def complaints_of(out, finding_names=()):
    """Complaints about a report; nothing where it is there, whole and fit to be brought back."""
    try:
        names = [finding['name'] for finding in json.loads((out / 'gpu-check.json').read_text())['findings']]
        text = (out / 'gpu-check.md').read_text()
    except (OSError, ValueError) as error:
        return [f'no report: {error}']
    wrong = [f'nothing on {wanted}' for wanted in finding_names if not any(name.startswith(wanted) for name in names)]
    return wrong + unfit(out) + ([] if 'Questions that only a GPU' in text else ['the report for readers is cut'])


def failures_of(out):
    """The findings that failed or are not there, with their evidence."""
    try:
        findings = json.loads((out / 'gpu-check.json').read_text())['findings']
    except (OSError, ValueError):
        return []
    return [f'{finding["name"]}: {finding["text"]} {json.dumps(finding["data"])[:2000]}' for finding in findings
            if finding['met'] is False or 'not measured' in finding['text']]


def check_commands(flight, python):
    """The four commands as they are printed, each with an empty folder for results."""
    for number, command in enumerate(pack.commands('build/gpu-pack'), 1):
        out = flight.scratch / f'results-{number}'
        begin = time.monotonic()
        done = flight.run(['bash', '-c', command], python, RESULTS=str(out), GPU_CHECK_STAND_IN='1',
                          GPU_CHECK_STAND_IN_BUILD=str(BUILD.resolve()))
        wrong = complaints_of(out, EXPECTED[number - 1]) + failures_of(out)
        if done.returncode != 0:
            wrong += [f'exit {done.returncode}', *done.stderr.splitlines()[-5:]]
        flight.expect(f'command {number} on the stand-in, in {time.monotonic() - begin:.0f} s', wrong)


def left_behind():
    """Programs that a hanging PyTorch has started."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            if path.read_bytes() == b'sleep\x0031536\x00':
                found.append(f'process {path.parent.name} is left')
        except OSError:
            pass  # it has ended
    return found


def check_one_torch(flight, python, how):
    out = flight.scratch / ('torch-' + how.replace(' ', '-'))
    begin = time.monotonic()
    done = flight.run([python, flight.pack / 'scripts/gpu-check', '--only', ','.join(WITH_TORCH), '--models', 'mlp',
                       '--out', out, '--minutes', '3'], python, PYTHONPATH=str(NO_TORCH), GPU_CHECK_TORCH=how,
                      GPU_CHECK_LIMIT_S='0.4' if how == 'hang' else '20', GPU_CHECK_PROCESSES='2')
    wrong = complaints_of(out, WITH_TORCH.values())
    if done.returncode not in (0, 1) or done.stderr.strip():
        wrong += [f'exit {done.returncode}', *done.stderr.splitlines()[-5:]]
    flight.expect(f'a report where PyTorch does this: {how} ({time.monotonic() - begin:.0f} s)', wrong)


def check_torch(flight, python):
    """Whatever PyTorch does, each check says something of it. Three at once: they wait most of the time."""
    before = left_behind()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda how: check_one_torch(flight, python, how), HOW_TORCH_FAILS))
    flight.expect('no process is left', [line for line in left_behind() if line not in before])


def run():
    scratch = pathlib.Path(tempfile.mkdtemp(prefix='gpu-preflight-'))
    try:
        flight = Preflight(scratch)
        pack.build(flight.pack)
        found = pythons()
        python = next(iter(found.values()))
        check_size(flight)
        check_libraries(flight)
        check_paths(flight)
        check_syntax(flight, found)
        check_environment(flight, python)
        check_commands(flight, python)
        check_torch(flight, python)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print('preflight: ' + (f'{flight.failed} FAILED' if flight.failed else 'all ok'))
    return 1 if flight.failed else 0
