"""Short processes that end in every way: as without ranktap, each time."""
import os
import sys

from check.base import PROGRAMS, theirs, why, workload


def ways_of(check):
    if check.stand_in:
        return {way: [workload('endings'), way, '5'] for way in ('return', 'exit', '_exit', 'abort', 'terminate', 'exec')}
    return {way: [sys.executable, PROGRAMS / 'ends.py', way]
            for way in ('return', 'exit', 'exception', '_exit', 'sigterm', 'workers')}


def run(check):
    if not check.stand_in and not check.has_torch:
        check.note('short processes', None, 'not checked: PyTorch is not installed')
        return
    ways = ways_of(check)
    wanted = int(os.environ.get('GPU_CHECK_PROCESSES', '6' if check.stand_in else '12'))
    bare = {way: check.run(command) for way, command in ways.items()}
    silent = [way for way, done in bare.items() if not check.stand_in and not done.stdout.strip()]
    if silent:
        check.note('short processes', False, f'{", ".join(silent)}: nothing is printed bare: {why(bare[silent[0]])}')
        return
    wrong, count, unverified = [], 0, 0
    names = list(ways)
    while count < wanted and check.left_s() > 45:
        way = names[count % len(names)]
        done, run_folder = check.traced(ways[way])
        count += 1
        expected = bare[way]
        # A shell's view of a signal: ranktap run ends with 128 + n.
        status = expected.returncode if expected.returncode >= 0 else 128 - expected.returncode
        if (done.returncode, done.stdout, theirs(done.stderr)) != (status, expected.stdout, expected.stderr):
            wrong.append({'way': way, 'exit': [expected.returncode, done.returncode],
                          'stdout': [expected.stdout[-300:], done.stdout[-300:]],
                          'stderr': [expected.stderr[-1000:], done.stderr[-1000:]]})
        unverified += not check.verified(run_folder)[0]
    check.note('short processes', not wrong and unverified == 0 and count >= min(wanted, len(names)),
               f'{count} of {wanted} run, {len(wrong)} differ from bare, {unverified} traces do not verify', wrong=wrong[:5])
