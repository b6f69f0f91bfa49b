"""torch.profiler in the middle of the program, at each level and with each way of loading."""
import json

from check.base import last_json, why, workload
from check.joins import kernels_after_session

LEVELS = ['dormant', 'ranges', 'kernels', 'full']
WAYS_OF_LOADING = {'preload': [], 'environment': ['--no-preload']}
WITH_KERNELS = ['kernels', 'full']
# The program waits for longer than this after its session, and then launches again.
RETURN = {'RANKTAP_RETURN_MS': '300'}


def profiling_program(check):
    if check.stand_in:
        return [workload('profiles_itself'), '20', '2', '900']
    return check.model('mlp', 30, '--mode', 'profiler-in-the-middle')


def content(check, done):
    """The kernels that the program's profiler saw, in a form that must not depend on us: {kernel: count}."""
    if check.stand_in:
        return {done.stdout.strip(): 1} if done.returncode == 0 else None
    said = last_json(done, 'profiled_kernels')
    return said['profiled_kernels'] if said and isinstance(said['profiled_kernels'], dict) else None


def different(bare, watched):
    """{name: [bare, watched]} of what differs."""
    return {name: [bare.get(name, 0), watched.get(name, 0)] for name in sorted({*bare, *watched})
            if bare.get(name, 0) != watched.get(name, 0)}


def gaps_of(check, run):
    return [row for row in check.report(run, 'gaps') if 'the program called' in json.dumps(row)]


def one_way(check, command, expected, level, loaded_by):
    done, run = check.traced(command, '--quiet', '--level', level, *WAYS_OF_LOADING[loaded_by], **RETURN)
    name = f'the program profiles itself: {level}, {loaded_by}'
    watched = content(check, done)
    if watched is None:
        check.note(name, False, f'it does not run: {why(done)}')
        return
    differs = different(expected, watched)
    gaps, after = gaps_of(check, run), kernels_after_session(check, run)
    sessions = 2 if check.stand_in else 1
    whole = level not in WITH_KERNELS or (len(gaps) == sessions and bool(after))
    check.note(name, not differs and whole, f'its profile is {"DIFFERENT" if differs else "the same"}, {len(gaps)} gaps of '
               f'ours for {sessions} sessions, {after} kernels after the last', bare=expected, watched=watched,
               different=differs, gaps=gaps)


def run(check):
    if not check.stand_in and not check.has_torch:
        check.note('the program profiles itself', None, 'not checked: PyTorch is not installed')
        return
    command = profiling_program(check)
    bare = check.run(command)
    expected = content(check, bare)
    if expected is None:
        check.note('the program profiles itself', False, f'does not run bare: {why(bare)}')
        return
    for level in reversed(LEVELS):
        for loaded_by in WAYS_OF_LOADING:
            one_way(check, command, expected, level, loaded_by)
