"""Inside one program: launches whose stack is known already, and its memory as PyTorch and as the trace have it."""
import re
import sys

from check.base import PROGRAMS, last_json, why, workload

MEMO = re.compile(r'([\d,]+) of ([\d,]+) came from the memo')


def memo(check, what, command):
    """Of how many stacks the memo knew the answer."""
    done, run = check.traced(command, '--stacks', 'launch')
    said = [found for found in map(MEMO.search, check.notes(run, 'stacks')) if found]
    if not said:
        check.note(f'stack memo, {what}', None, f'not known: {why(done)}')
        return
    hits, stacks = (int(number.replace(',', '')) for number in said[0].groups())
    check.note(f'stack memo, {what}', None, f'{hits} of {stacks} stacks ({100 * hits / stacks:.1f} %) were known',
               hits=hits, stacks=stacks)


def peak_of(check, run):
    """The most that PyTorch's allocator gave out of a device, by the trace; None: the trace has nothing of it."""
    peaks = [row['peak_bytes'] for row in check.report(run, 'memory')
             if row['allocator'] == 'framework' and row['device'] != 'CPU']
    return max(peaks, default=None)


def memory(check, model):
    """PyTorch's peak beside ours, of one process; and what is taken of the device, bare and traced."""
    program = [sys.executable, PROGRAMS / 'train_small.py', '--model', model]
    name = f'PyTorch {model}: peak memory'
    done, run = check.traced(program, '--level', 'full')
    bare = last_json(check.run(program), 'peak_bytes', 'used_bytes')
    kernels = last_json(check.traced(program)[0], 'peak_bytes', 'used_bytes')
    full = last_json(done, 'peak_bytes', 'used_bytes')
    if None in (bare, kernels, full):
        check.note(name, None, f'not known: {why(done)}')
        return
    ours = peak_of(check, run)
    check.note(name, ours == full['peak_bytes'], f'{full["peak_bytes"]} bytes by torch.cuda, {ours} by the trace; '
               f'{bare["peak_bytes"]} bare', torch=full['peak_bytes'], ours=ours, bare=bare['peak_bytes'])
    said = {'bare': bare, 'kernels': kernels, 'full': full}
    check.note(f'PyTorch {model}: device memory', None, ', '.join(
        f'{way} {one["used_bytes"] / 1e6:.1f} MB' for way, one in said.items()) + ' of the device at the end',
        **{way: one['used_bytes'] for way, one in said.items()})


def run(check):
    memo(check, 'C++', [workload('launches'), '2000'])
    if check.has_torch and not check.stand_in:
        memo(check, 'PyTorch mlp', [sys.executable, PROGRAMS / 'train_small.py', '--model', 'mlp', '--steps', '200'])
        memory(check, 'mlp')
