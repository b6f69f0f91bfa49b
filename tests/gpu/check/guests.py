"""torch.profiler in the middle of the program, at each level and through each door."""
import json

from check.base import WORKLOADS, last_json, why

LEVELS = ['dormant', 'ranges', 'kernels', 'full']
DOORS = {'preload': [], 'environment': ['--no-preload']}
REASON = 'other_profiler'


def profiling_program(check):
    if check.stand_in:
        return [WORKLOADS / 'profiles_itself', '20', '2', '1500']
    return check.model('mlp', 30, '--mode', 'profiler-in-the-middle')


def content(check, done):
    """What the program's profiler saw, in a form that must not depend on us."""
    if check.stand_in:
        return done.stdout if done.returncode == 0 else None
    said = last_json(done)
    return said and json.dumps(said['profiled_kernels'], sort_keys=True)


def gaps_of(check, run):
    return [row for row in check.report(run, 'gaps') if 'the program called' in json.dumps(row)]


def run(check):
    command = profiling_program(check)
    bare = check.run(command)
    expected = content(check, bare)
    if expected is None:
        check.note('the program profiles itself', False, f'does not run bare: {why(bare)}')
        return
    for level in LEVELS:
        for door, options in DOORS.items():
            done, run_folder = check.traced(command, '--quiet', '--level', level, *options)
            same = content(check, done) == expected
            gaps = gaps_of(check, run_folder)
            wanted = 2 if check.stand_in else 1  # sessions
            has_gaps = len(gaps) == wanted or level in ('dormant', 'ranges')
            check.note(f'the program profiles itself: {level}, {door}', same and has_gaps,
                       f'its profile is {"the same" if same else "DIFFERENT"}, {len(gaps)} gaps of ours for {wanted} sessions'
                       + ('' if done.returncode == 0 else f' ({why(done)})'))
