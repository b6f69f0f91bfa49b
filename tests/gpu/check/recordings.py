"""Recordings of CUPTI for tests/gpu/replay_test.cc: what lasts of a visit to a GPU."""
import collections
import gzip
import struct
import sys

from check.base import BUILD, PROGRAMS, why, workload

RECORDER = BUILD / 'gpu/cupti_recorder.so'
MIB = '2'
# Entries of tests/gpu/recording.h.
KINDS = {1: 'buffers', 2: 'strings', 3: 'callbacks', 4: 'dropped', 5: 'client calls', 6: 'cut'}
NODES = {'CUPTI_RECORDING_NODES': '1'}
# The recorder stands before libcupti: it sees how the program's own profiler uses CUPTI, and the buffers it gets.
CLIENT = {'LD_PRELOAD': str(RECORDER)}


def programs(check):
    """{name: (command, environment)}."""
    if check.stand_in or not check.has_torch:
        found = {'train': ([workload('train_cuda'), '--ranks', '1', '--steps', '4'], {}),
                 'nodes': ([workload('train_cuda'), '--ranks', '1', '--steps', '4'], NODES),
                 'threads': ([workload('threads'), '3', '3', '50', '5'], {})}
        if check.stand_in:
            found['profiler'] = ([workload('profiles_itself'), '20', '1', '10', 'subscribe'], CLIENT)
        return found
    small, models = [sys.executable, PROGRAMS / 'train_small.py'], [sys.executable, PROGRAMS / 'train_models.py']
    graph = [*models, '--model', 'mlp', '--steps', '6', '--graph']
    return {'conv': ([*small, '--model', 'conv', '--steps', '4'], {}),
            'mlp': ([*small, '--model', 'mlp', '--steps', '8'], {}),
            'graph': (graph, {}),
            'nodes': (graph, NODES),
            'threads': ([*small, '--model', 'mlp', '--steps', '4', '--threads', '3'], {}),
            'profiler': ([*models, '--model', 'mlp', '--steps', '9', '--mode', 'profiler-in-the-middle'], CLIENT)}


def entries(recording):
    """{kind of entry: how many}."""
    counts, at = collections.Counter(), 12
    while at + 8 <= len(recording):
        kind, size = struct.unpack_from('<II', recording, at)
        counts[KINDS.get(kind, f'kind {kind}')] += 1
        at += 8 + size
    return dict(counts)


def record(check, name, command, environment):
    path = check.scratch / f'{name}.rec'
    done = check.run(command, CUDA_INJECTION64_PATH=str(RECORDER), CUPTI_RECORDING=str(path),
                     CUPTI_RECORDING_MIB=MIB, **environment)
    raw = path.read_bytes() if path.exists() else b''
    found = entries(raw)
    if not found.get('buffers'):
        check.note(f'recording {name}', False, f'nothing was recorded: {why(done)}', entries=found)
        return
    packed = gzip.compress(raw, mtime=0)
    (check.out / f'{name}.rec.gz').write_bytes(packed)
    check.note(f'recording {name}', None, f'{len(raw)} bytes, {len(packed)} compressed: ' +
               ', '.join(f'{count} {kind}' for kind, count in sorted(found.items())) +
               ('' if done.returncode == 0 else f' ({why(done)})'), entries=found)


def run(check):
    for name, (command, environment) in programs(check).items():
        if check.left_s() > 15:
            record(check, name, command, environment)
