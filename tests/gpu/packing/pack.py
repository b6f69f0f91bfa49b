"""The packed tree: what scripts/gpu-check needs on a machine with a GPU, and no more."""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
CACHE = pathlib.Path(os.environ.get('RANKTAP_CACHE', pathlib.Path.home() / '.cache/ranktap'))
# Room for it in a copy of the repository that may have 64 MiB.
MOST_BYTES = 45_000_000
# NVIDIA's own, each asked for its facts: 23.8 MB together, as they came.
CUPTI = {'13.0': pathlib.Path(os.environ.get('RANKTAP_CUDA_HOME', '/usr/local/cuda')) / 'lib64/libcupti.so.13',
         **{version: CACHE / f'cupti-{version}/lib/libcupti.so.13' for version in ('13.2', '13.4', '13.5')}}
# No benches, no stand-in, and of the workloads those that a GPU can run.
PACKED = ['build/release/bin/ranktap', 'build/release/lib/libranktap.so', 'build/release/lib/libranktap_agent.so',
          'build/release/gpu/cupti_facts', 'build/release/gpu/cupti_floor.so', 'build/release/gpu/cupti_recorder.so',
          'build/release/workloads/train_cuda', 'build/release/workloads/launches', 'build/release/workloads/threads',
          'tests/gpu/check', 'tests/gpu/programs', 'scripts/gpu-check']
# (minutes, arguments): each stands alone, and what lasts comes first. The first two fit 12 minutes.
COMMANDS = [(4.5, '--only facts,record'),
            (6.5, '--only basics,clients,graphs,roofs'),
            (9.5, '--only overhead --models mlp,gpt2'),
            (8, '--only variants,processes,clocks --models mlp')]


def commands(folder):
    """For a shell beside `folder`: under 2,000 characters each, their results in $RESULTS, else $OUT."""
    return [f'cd {folder} && . ./env.sh && timeout -k 5 {round(minutes * 60) + 25} '
            f'scripts/gpu-check {what} --minutes {minutes} --out "$RESULTS"' for minutes, what in COMMANDS]


def is_elf(path):
    with path.open('rb') as file:
        return file.read(4) == b'\x7fELF'


def files_of(target):
    return sorted(path for path in target.rglob('*') if path.is_file() and not path.is_symlink())


def is_vendors(path):
    """NVIDIA's: neither stripped nor held to our demands."""
    return path.name == 'libcupti.so.13'


def carried_cuptis():
    return [version for version, library in CUPTI.items() if library.exists()]


def size_of(target):
    return sum(path.stat().st_size for path in files_of(target))


def build(target):
    """Makes `target` anew."""
    missing = [name for name in PACKED if not (ROOT / name).exists()]
    if missing:
        sys.exit(f'gpu-check: not built: {", ".join(missing)}; run cmake --build --preset release')
    if target.exists() and any(target.iterdir()) and not (target / 'env.sh').exists():
        sys.exit(f'gpu-check: {target} is something else: name an empty folder')
    shutil.rmtree(target, ignore_errors=True)
    for name in PACKED:
        source, copy = ROOT / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns('__pycache__'))
        else:
            shutil.copy2(source, copy)
    shutil.copy2(ROOT / 'tests/gpu/env.sh', target / 'env.sh')
    for version in carried_cuptis():
        folder = target / 'cupti' / version
        folder.mkdir(parents=True)
        shutil.copy2(CUPTI[version].resolve(), folder / 'libcupti.so.13')
    for path in files_of(target):
        if is_elf(path) and not is_vendors(path):
            # With its symbols: the agent's stacks name frames of a program without debug information by them.
            kept = ['--strip-debug'] if 'workloads' in path.parts else ['--strip-all']
            subprocess.run(['strip', *kept, path], check=True)


def run(target):
    build(target)
    size = size_of(target)
    print(f'gpu-check: {target} holds {size / 1e6:.1f} MB (at most {MOST_BYTES / 1e6:.0f}). On the machine with the '
          'GPU run these, in this order, and keep what is in $RESULTS (else $OUT) after each:')
    for version in CUPTI.keys() - set(carried_cuptis()):
        print(f'gpu-check: no CUPTI {version} here (scripts/setup fetches it): it is not asked for its facts')
    inside = ROOT in target.resolve().parents
    if inside:
        print(f'To be carried by name, because git ignores it: {target.resolve().relative_to(ROOT)}')
    for command in commands(target.resolve().relative_to(ROOT) if inside else target):
        print('\n' + command)
    return 0 if size <= MOST_BYTES else 1
