"""What ranktap costs a training step, beside the floor under any tool of its kind and the alternatives.

Windows, the floor and torch.profiler: pairs of blocks in one process each (programs/blocks.py). What cannot be switched
while a program runs, as dormant beside bare: processes of their own, in turn.
"""
import os
import shutil
import sys

from check import paired
from check.base import BUILD, LIMIT_S, PROGRAMS, RANKTAP, last_json, percent, summary, why

MODELS = {'mlp': 400, 'gpt2': 40, 'resnet50': 40}  # and the steps that are timed
STAND_IN_STEPS = 30
FLOOR = BUILD / 'gpu/cupti_floor.so'
START_S = 10  # PyTorch's import and a model's first steps: 6 s beside an H100


def blocks(check, model, way, *options):
    on_stand_in = ['--stand-in'] if check.stand_in else []
    return [sys.executable, PROGRAMS / 'blocks.py', '--way', way, '--model', model, *on_stand_in, *options]


def window(check, model, level, *options):
    """A dormant run in which the program itself begins and ends windows."""
    check.runs += 1
    run = check.scratch / f'run-{check.runs}'
    return [RANKTAP, 'run', '--quiet', '-o', run, '--dormant', '--level', level, *options, '--',
            *blocks(check, model, 'window', '--ranktap', RANKTAP, '--run', run, '--level', level)]


def pairs_of(check, command, seconds, **environment):
    """({'wall': estimate, 'device': estimate, 'ns_per_step', 'longest_step_ns'}, None), or (None, why not)."""
    done = check.run([*command, '--seconds', f'{seconds:.0f}'], limit_s=min(LIMIT_S, seconds + 4 * START_S), **environment)
    said = last_json(done, 'wall', 'device', 'longest_step_ns', 'steps')
    if said is None:
        return None, why(done)
    found = {clock: paired.estimate(said[clock]) for clock in ('wall', 'device')}
    if None in found.values():
        return None, f'{len(said["wall"])} pairs in {seconds:.0f} s'
    without = sum(pair[0] for pair in said['wall']) / len(said['wall'])
    return {**found, 'ns_per_step': without / said['steps'], 'longest_step_ns': said['longest_step_ns']}, None


def costs_in_pairs(check, name, ways):
    """{way: what pairs_of found}. `ways`: {way: (command, environment)}, each with an equal part of the time."""
    found = {}
    longest = float(os.environ.get('GPU_CHECK_PAIR_S', '1' if check.stand_in else '60'))
    for number, (way, (command, environment)) in enumerate(ways.items()):
        seconds = min(longest, check.left_s() / (len(ways) - number) - START_S)
        one, reason = pairs_of(check, command, seconds, **environment) if seconds >= 1 else (None, 'the time was over')
        if one is None:
            check.note(f'{name}: {way}', None, f'not measured: {reason}')
            continue
        found[way] = one
        check.note(f'{name}: {way}', None, f'{"worked out, means nothing: " if check.stand_in else ""}'
                   f'{paired.text(one["wall"])} by the wall, {paired.text(one["device"])} by the device; '
                   f'longest step at an edge {one["longest_step_ns"] / 1e6:.1f} ms', **one)
    return found


def floor(check, model, *options):
    return blocks(check, model, 'floor', *options), {'CUDA_INJECTION64_PATH': str(FLOOR)}


def ways_in_pairs(check, model):
    """Those that are compared stand beside each other."""
    found = {'floor': floor(check, model), 'kernels': (window(check, model, 'kernels'), {}),
             'torch.profiler CUDA': (blocks(check, model, 'profiler-cuda'), {}),
             'full': (window(check, model, 'full'), {}),
             'torch.profiler CPU and CUDA': (blocks(check, model, 'profiler'), {}),
             'nothing': (blocks(check, model, 'nothing'), {})}
    if check.stand_in:
        found = {way: found[way] for way in found if 'profiler' not in way}
        found['planted'] = blocks(check, model, 'planted'), {}
    return found


def processes(check, model, steps):
    """{name: command}: the same training, a process each."""
    program = check.model(model, steps)

    def ours(level):
        def command():
            check.runs += 1
            return [RANKTAP, 'run', '--quiet', '-o', check.scratch / f'run-{check.runs}', '--level', level, '--', *program]
        return command

    found = {'bare': lambda: check.model(model, steps, '--count'), 'dormant': ours('dormant'), 'ranges': ours('ranges')}
    if shutil.which('nsys'):
        report = str(check.scratch / 'nsys')
        found['nsys'] = lambda: ['nsys', 'profile', '-t', 'cuda,nvtx', '--force-overwrite', 'true', '-o', report, *program]
    return found


def one(check, command):
    """(what the program says, None), or (None, why there is nothing)."""
    done = check.run(command())
    said = last_json(done, 'ns_per_step')
    if said is None or not isinstance(said['ns_per_step'], (int, float)) or said['ns_per_step'] <= 0:
        return None, why(done)
    return said, None


def measure(check, model, rounds):
    """{way: {round: ns a step}}: one process each, the first round forwards, the next backwards. A run that fails has
    no entry, so that the others of its round keep their partners."""
    commands = processes(check, model, STAND_IN_STEPS if check.stand_in else MODELS[model])
    times, failures, facts = {way: {} for way in commands}, {}, {}
    for turn in range(rounds):
        order = list(commands) if turn % 2 == 0 else list(reversed(commands))
        for way in order:
            if check.left_s() < START_S:
                failures.setdefault(way, 'the time was over')
                continue
            said, reason = one(check, commands[way])
            if said is None:
                failures[way] = reason
                continue
            times[way][turn] = said['ns_per_step']
            if way == 'bare':
                facts = {key: said[key] for key in ('kernels_per_step', 'launches_per_step') if said.get(key)}
    return times, failures, facts


def differences(mine, theirs):
    """In percent of `theirs`, of the rounds that both have: they ran within minutes of each other."""
    return [100.0 * (mine[turn] - theirs[turn]) / theirs[turn] for turn in sorted({*mine} & {*theirs})]


def compare(check, model, rounds):
    """What the bare program says of a step, as the goals need it."""
    times, failures, facts = measure(check, model, rounds)
    for way, reason in failures.items():
        if way != 'bare' or times['bare']:
            check.note(f'overhead {model}: {way}', None, f'{len(times[way])} of {rounds} rounds: {reason}')
    bare = times['bare']
    if not bare:
        check.note(f'overhead {model}', False, f'the bare program does not run: {failures.get("bare")}', times_ns=times)
        return {}
    costs = {way: summary(differences(samples, bare)) for way, samples in times.items()
             if way != 'bare' and {*samples} & {*bare}}
    lines = [f'{way} {percent(cost)}' for way, cost in costs.items()]
    text = f'{summary(list(bare.values()))["median"] / 1e6:.3f} ms a step bare; ' + ', '.join(lines)
    check.note(f'overhead {model}', None, 'worked out, means nothing: ' + text if check.stand_in else text,
               bare_ns=summary(list(bare.values())), cost_percent=costs, times_ns=times, **facts)
    return facts


def judge(check, model, costs, launches):
    """The numbers that were promised, met where the whole interval is on their side. On the stand-in they are worked out
    and not judged."""
    def said(name, value, goal, text):
        met = paired.at_most(value, goal)
        text += '; open: the goal lies inside the interval' if met is None else ''
        check.note(f'{name}, {model}', None if check.stand_in else met, text, above=value, goal=goal)

    if {'floor', 'kernels'} <= costs.keys():
        least = costs['floor']['wall']
        extra = paired.combined((1, costs['kernels']['wall']), (-1, least))
        if model != 'mlp':
            said('kernels at most floor + max(15 %, 0.3 points)', extra, max(0.15 * least['percent'], 0.3), paired.text(extra))
        elif isinstance(launches, (int, float)) and launches > 0:
            per_percent = costs['kernels']['ns_per_step'] / 100 / launches
            said('at most 1 us a launch above the floor', extra, 1000 / per_percent,
                 f'{extra["percent"] * per_percent:.0f} ns ± {extra["interval95"] * per_percent:.0f} a launch '
                 f'({launches:.0f} launches a step)')
    for ours, theirs in ('kernels', 'torch.profiler CUDA'), ('full', 'torch.profiler CPU and CUDA'):
        if {ours, theirs} <= costs.keys():
            mine, other = costs[ours]['wall'], costs[theirs]['wall']
            said(f'{theirs} at least 4 times {ours}', paired.combined((4, mine), (-1, other)), 0,
                 f'{paired.text(other)} beside {paired.text(mine)}')


def run(check):
    if not check.stand_in and not check.has_torch:
        check.note('overhead', None, 'not checked: PyTorch is not installed')
        return
    for number, model in enumerate(check.models):
        with check.share(check.left_s() / (len(check.models) - number)):
            with check.share(0.3 * check.left_s()):
                facts = compare(check, model, int(os.environ.get('GPU_CHECK_ROUNDS', '2')))
            costs = costs_in_pairs(check, f'cost of a step in pairs, {model}', ways_in_pairs(check, model))
            judge(check, model, costs, facts.get('launches_per_step'))
