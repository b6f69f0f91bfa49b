"""The first things: does a program run as before, is every kernel there with its launch, is the machine what it says."""
import collections
import gzip
import json
import os
import re
import statistics
import sys
import time

from check.base import BUILD, PROGRAMS, RANKTAP, theirs, why


def timed(body):
    start = time.perf_counter()
    result = body()
    return time.perf_counter() - start, result


def about_machine(check):
    smi = check.run(['nvidia-smi', '--query-gpu=name,driver_version,memory.total', '--format=csv,noheader'])
    torch = check.run([sys.executable, '-c', 'import torch; print(torch.__version__, torch.version.cuda)'])
    check.note('machine', None, f'{smi.stdout.strip() or "no nvidia-smi"}; torch {torch.stdout.strip() or "absent"}',
               gpu=smi.stdout.strip(), torch=torch.stdout.strip(), kernel=os.uname().release, cores=os.cpu_count())
    check.has_torch = bool(torch.stdout.strip())


def kernel_facts(check, run):
    """From the Kineto export: kernels, those without a launch, those that start before it."""
    target = check.scratch / f'{run.name}-export'
    check.run([RANKTAP, 'export', run, '--format', 'chrome', '-o', target])
    files = sorted(target.glob('*')) if target.is_dir() else [target]
    counts, unjoined, early, total = collections.Counter(), 0, 0, 0
    for file in files:
        events = json.loads(gzip.open(file).read() if file.suffix == '.gz' else file.read_bytes())['traceEvents']
        launches = {event['args']['correlation']: event['ts'] for event in events
                    if event.get('cat') in ('cuda_runtime', 'cuda_driver') and event.get('args', {}).get('correlation')}
        for event in events:
            if event.get('cat') != 'kernel':
                continue
            total += 1
            counts[event['name']] += 1
            launch = launches.get(event['args'].get('correlation'))
            if launch is None:
                unjoined += 1
            elif event['ts'] < launch:
                early += 1
    return {'kernels': total, 'unjoined': unjoined, 'early': early, 'counts': dict(counts)}


def cpp_workload(check):
    command = [BUILD / 'workloads/train_cuda', '--ranks', '1', '--steps', '100']
    bare, traced = [], []
    done = None
    for _ in range(3):
        seconds, plain = timed(lambda: check.run(command))
        bare.append(seconds)
        seconds, (done, run) = timed(lambda: check.traced(command))
        traced.append(seconds)
    same = done.returncode == plain.returncode and done.stdout == plain.stdout and theirs(done.stderr) == plain.stderr
    check.note('C++ workload untouched', same, f'exit {done.returncode}, output {"the same" if same else "differs"}; '
               f'{statistics.median(bare):.2f} s bare, {statistics.median(traced):.2f} s traced',
               bare_s=bare, traced_s=traced)
    facts = kernel_facts(check, run)
    sound = facts['kernels'] > 0 and facts['unjoined'] == 0 and facts['early'] == 0
    check.note('C++ kernels joined to launches', sound, f'{facts["kernels"]} kernels, {facts["unjoined"]} without a '
               f'launch, {facts["early"]} before theirs', **facts)
    verify = check.run([RANKTAP, 'verify', run])
    check.note('C++ trace verifies', verify.returncode == 0, verify.stdout.strip().splitlines()[-1] if verify.stdout else verify.stderr)


def launch_cost(check):
    command = [BUILD / 'workloads/launches', '100000']
    def per_launch(done):
        found = re.search(r'(\d+) ns each', done.stdout + done.stderr)
        return float(found[1]) if found else float('nan')
    bare, traced = [], []
    for _ in range(3):
        bare.append(per_launch(check.run(command)))
        traced.append(per_launch(check.traced(command)[0]))
    check.note('cost per launch', None, f'{statistics.median(bare):.0f} ns bare, {statistics.median(traced):.0f} ns at '
               'level kernels (launch-bound loop)', bare_ns=bare, traced_ns=traced)


def pytorch(check, model):
    program = [sys.executable, PROGRAMS / 'train_small.py', '--model', model]
    plain = check.run(program)
    if plain.returncode != 0:
        check.note(f'PyTorch {model}', False, f'does not run bare: {plain.stderr.strip().splitlines()[-1:]}')
        return
    done, run = check.traced(program)
    profiled = check.run([*program, '--mode', 'profiler'])
    bare, traced = json.loads(plain.stdout.splitlines()[-1]), json.loads(done.stdout.splitlines()[-1])
    check.note(f'PyTorch {model} untouched', bare['losses'] == traced['losses'] and theirs(done.stderr) == plain.stderr,
               'losses bit-identical' if bare['losses'] == traced['losses'] else 'losses differ')
    check.note(f'PyTorch {model}: one libcupti', len(traced['libcupti']) == 1, ', '.join(traced['libcupti']) or 'none',
               paths=traced['libcupti'])
    facts = kernel_facts(check, run)
    check.note(f'PyTorch {model}: kernels joined', facts['kernels'] > 0 and facts['unjoined'] == 0 and facts['early'] == 0,
               f'{facts["kernels"]} kernels, {facts["unjoined"]} without a launch, {facts["early"]} before theirs')
    if profiled.returncode == 0:
        kineto = json.loads(profiled.stdout.splitlines()[-1])['kernels']
        different = {name: (kineto.get(name, 0), facts['counts'].get(name, 0))
                     for name in set(kineto) | set(facts['counts']) if kineto.get(name, 0) != facts['counts'].get(name, 0)}
        check.note(f'PyTorch {model}: kernels as torch.profiler counts them', not different,
                   f'{len(kineto)} names, {len(different)} differ', different=different)
    else:
        check.note(f'PyTorch {model}: torch.profiler', None, 'did not run: ' + profiled.stderr.strip()[-200:])


def record(check):
    recorder = BUILD / 'gpu/cupti_recorder.so'
    for name, command in (('train_cuda', [BUILD / 'workloads/train_cuda', '--ranks', '1', '--steps', '20']),
                          ('pytorch', [sys.executable, PROGRAMS / 'train_small.py', '--model', 'conv', '--steps', '5'])):
        path = check.scratch / f'{name}.rec'
        check.run(command, CUDA_INJECTION64_PATH=str(recorder), CUPTI_RECORDING=str(path), CUPTI_RECORDING_MIB='8')
        if not path.exists():
            check.note(f'recording {name}', None, 'nothing was recorded')
            continue
        packed = check.out / f'{name}.rec.gz'
        packed.write_bytes(gzip.compress(path.read_bytes()))
        check.note(f'recording {name}', None, f'{path.stat().st_size} bytes, {packed.stat().st_size} compressed')


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
    about_machine(check)
    cpp_workload(check)
    launch_cost(check)
    if check.has_torch and not check.stand_in:
        pytorch(check, 'mlp')
        pytorch(check, 'conv')
    else:
        check.note('PyTorch', None, 'not checked: ' +
                   ('the stand-in is no CUDA for it' if check.stand_in else 'it is not installed'))
    door_order(check)
    record(check)
