"""What ranktap adds to a CUDA process beside its calls: to cuInit, to its end, to its memory and the device's."""
import statistics
import sys
import time

from check.base import PROGRAMS, last_json, why

ROUNDS = 5
# What RANKTAP_EXIT_MS allows.
MOST_LONGER_S = 0.5
# name: (unit, of how many of the program's)
SAID = {'init_s': ('ms', 1e3), 'end_s': ('ms', 1e3), 'peak_kib': ('MiB', 1 / 1024), 'used_bytes': ('MB of the device', 1e-6)}


def one(started):
    """What the program said of itself, with the time from its last word to the end of its command."""
    done = started()
    said = last_json(done, 'init_s', 'used_bytes', 'peak_kib', 'ends_at')
    if said is None:
        return None, why(done)
    said['end_s'] = time.monotonic() - said.pop('ends_at')
    return said, None


def run(check):
    command = [sys.executable, PROGRAMS / 'start_cuda.py']
    found = {'bare': [], 'traced': []}
    for _ in range(ROUNDS):
        for way, started in ('bare', lambda: check.run(command)), ('traced', lambda: check.traced(command, '--quiet')[0]):
            said, reason = one(started)
            if said is None:
                check.note('start and end of a CUDA process', None, f'not known: {way}, {reason}')
                return
            found[way].append(said)
    parts = []
    for name, (unit, times) in SAID.items():
        bare, traced = (statistics.median(said[name] for said in found[way]) * times for way in ('bare', 'traced'))
        parts.append(f'{name.split("_")[0]} {bare:.1f} bare, {traced:.1f} traced {unit}')
    check.note('start and end of a CUDA process', None, '; '.join(parts), **found)
    longer = statistics.median(one['end_s'] for one in found['traced']) - statistics.median(one['end_s'] for one in found['bare'])
    check.note('end of a CUDA process beside a live collector', longer <= MOST_LONGER_S, f'{longer * 1e3:+.0f} ms')
