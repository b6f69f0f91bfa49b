"""The first things: does a program run as before, and is every kernel there with its launch."""
import re
import statistics
import sys
import time

from check import inside, starts
from check.base import PROGRAMS, last_json, theirs, why, workload
from check.clients import different
from check.joins import kernel_facts, sound, text


def timed(body):
    start = time.perf_counter()
    result = body()
    return time.perf_counter() - start, result


def cpp_workload(check):
    command = [workload('train_cuda'), '--ranks', '1', '--steps', '100']
    bare, traced = [], []
    for _ in range(3):
        seconds, plain = timed(lambda: check.run(command))
        bare.append(seconds)
        seconds, (done, run) = timed(lambda: check.traced(command))
        traced.append(seconds)
    same = done.returncode == plain.returncode == 0 and done.stdout == plain.stdout and theirs(done.stderr) == plain.stderr
    check.note('C++ workload untouched', same, f'exit {done.returncode}, output {"the same" if same else "differs"}; '
               f'{statistics.median(bare):.2f} s bare, {statistics.median(traced):.2f} s traced',
               bare_s=bare, traced_s=traced, bare=[plain.stdout[-2000:], plain.stderr[-2000:]],
               traced=[done.stdout[-2000:], done.stderr[-2000:]])
    facts = kernel_facts(check, run)
    check.note('C++ kernels joined to launches', sound(facts), text(facts), **facts)
    check.note('C++ trace verifies', *check.verified(run))


def launch_cost(check):
    command = [workload('launches'), '100000']
    def per_launch(done):
        found = re.search(r'(\d+) ns each', done.stdout + done.stderr)
        return float(found[1]) if found else float('nan')
    bare, traced = [], []
    for _ in range(3):
        bare.append(per_launch(check.run(command)))
        traced.append(per_launch(check.traced(command)[0]))
    check.note('cost per launch', None, f'{statistics.median(bare):.0f} ns bare, {statistics.median(traced):.0f} ns at '
               'level kernels (launch-bound loop)', bare_ns=bare, traced_ns=traced)


def profiled(check, program, model, facts):
    """The kernels of the trace beside those that torch.profiler counts."""
    done = check.run([*program, '--mode', 'profiler'])
    said = last_json(done, 'kernels')
    name = f'PyTorch {model}: kernels as torch.profiler counts them'
    if said is None:
        check.note(name, None, f'not asked: torch.profiler did not run: {why(done)}')
        return
    differs = different(dict(said['kernels']), facts['counts'])
    check.note(name, not differs, f'{len(said["kernels"])} names, {len(differs)} differ', profiler=said['kernels'],
               ours=facts['counts'], different=differs)


def pytorch(check, model):
    program = [sys.executable, PROGRAMS / 'train_small.py', '--model', model]
    plain, again = check.run(program), check.run(program)
    done, run = check.traced(program)
    bare, traced = last_json(plain, 'losses', 'libcupti'), last_json(done, 'losses', 'libcupti')
    if bare is None or traced is None:
        check.note(f'PyTorch {model}', False, f'does not run: bare {why(plain)}; traced {why(done)}')
        return
    same = bare['losses'] == traced['losses']
    # A program that differs from itself shows nothing.
    repeats = bare['losses'] == (last_json(again, 'losses') or {}).get('losses')
    quiet = theirs(done.stderr) == plain.stderr
    check.note(f'PyTorch {model} untouched', (same and quiet) if repeats else None,
               f'losses {"bit-identical" if same else "differ"}{"" if repeats else " (those of two bare runs differ too)"}, '
               f'stderr {"the same" if quiet else "differs"}', bare=bare['losses'], traced=traced['losses'],
               stderr=[plain.stderr[-2000:], done.stderr[-2000:]])
    check.note(f'PyTorch {model}: one libcupti', len(traced['libcupti']) == 1, ', '.join(traced['libcupti']) or 'none',
               paths=traced['libcupti'])
    facts = kernel_facts(check, run)
    check.note(f'PyTorch {model}: kernels joined', sound(facts), text(facts), **facts)
    profiled(check, program, model, facts)


def door_order(check):
    """Open question 4: which comes first, our injection or PyTorch's libcupti."""
    if check.stand_in:
        check.note('libcupti mapped before the injection', None, 'not asked: the stand-in is no CUDA for PyTorch')
        return
    program = "import re, torch; print(len(set(re.findall(r'/\\S*libcupti\\.so\\S*', open('/proc/self/maps').read()))))"
    done = check.run([sys.executable, '-c', program])
    check.note('libcupti mapped before the injection', None,
               f'import torch maps {done.stdout.strip() or "?"} libcupti before any CUDA call' if done.returncode == 0 else why(done),
               mapped=done.stdout.strip())


def run(check):
    cpp_workload(check)
    launch_cost(check)
    starts.run(check)
    if check.has_torch and not check.stand_in:
        pytorch(check, 'mlp')
        pytorch(check, 'conv')
    else:
        check.note('PyTorch', None, 'not checked: ' +
                   ('the stand-in is no CUDA for it' if check.stand_in else 'it is not installed'))
    inside.run(check)
    door_order(check)
