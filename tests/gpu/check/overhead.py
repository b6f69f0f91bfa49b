"""What ranktap costs a training step, beside the floor under any tool of its kind and the alternatives."""
import os
import shutil

from check.base import BUILD, RANKTAP, last_json, percent, summary, why

MODELS = {'mlp': 400, 'gpt2': 40, 'resnet50': 40}  # and the steps that are timed
STAND_IN_STEPS = 30
FLOOR = BUILD / 'gpu/cupti_floor.so'


def ways(check, model, steps):
    """{name: (command, environment)}: the same training, watched in each way."""
    program = check.model(model, steps)

    def ours(level, *options):
        def command():
            check.runs += 1
            return [RANKTAP, 'run', '--quiet', '-o', check.scratch / f'run-{check.runs}', '--level', level, *options,
                    '--', *program]
        return command

    def plain(command=program):
        return lambda: command

    inject = {'CUDA_INJECTION64_PATH': str(FLOOR), 'CUPTI_FLOOR_SIGN': str(check.scratch / 'floor-was-armed')}
    found = {
        'bare': (plain(check.model(model, steps, '--count')), {}),
        'floor': (plain(), inject),
        'floor-nodes': (plain(), {**inject, 'CUPTI_FLOOR_NODES': '1'}),
        'dormant': (ours('dormant'), {}),
        'ranges': (ours('ranges'), {}),
        'kernels': (ours('kernels'), {}),
        'full-without-stacks': (ours('full', '--stacks', 'off'), {}),
        'full': (ours('full'), {}),
        'torch.profiler': (plain(check.model(model, steps, '--mode', 'profiler')), {}),
    }
    if shutil.which('nsys'):
        report = str(check.scratch / 'nsys')
        found['nsys'] = (plain(['nsys', 'profile', '-t', 'cuda,nvtx', '--force-overwrite', 'true', '-o', report,
                                *program]), {})
    return found


def one(check, way, command, environment):
    """(what the program says, None), or (None, why there is nothing)."""
    sign = check.scratch / 'floor-was-armed'
    sign.unlink(missing_ok=True)
    done = check.run(command(), **environment)
    said = last_json(done, 'ns_per_step')
    if said is None or not isinstance(said['ns_per_step'], (int, float)) or said['ns_per_step'] <= 0:
        return None, why(done)
    if way.startswith('floor') and not sign.exists():
        return None, f'{FLOOR.name} was not armed: no floor'
    return said, None


def measure(check, model, rounds):
    """{way: {round: ns a step}}: one process each, the first round forwards, the next backwards. A run that fails has
    no entry, so that the others of its round keep their partners."""
    commands = ways(check, model, STAND_IN_STEPS if check.stand_in else MODELS[model])
    times, failures, facts = {way: {} for way in commands}, {}, {}
    for turn in range(rounds):
        order = list(commands) if turn % 2 == 0 else list(reversed(commands))
        for way in order:
            if check.left_s() < 30:
                failures.setdefault(way, 'the time was over')
                continue
            said, reason = one(check, way, *commands[way])
            if said is None:
                failures[way] = reason
                continue
            times[way][turn] = said['ns_per_step']
            if way == 'bare':
                facts = {key: said[key] for key in ('kernels_per_step', 'launches_per_step') if said.get(key)}
    return times, failures, facts


def differences(mine, theirs, per=None):
    """The rounds that both have: they ran within minutes of each other. In percent of `theirs`, or each by `per`."""
    return [100.0 * (mine[turn] - theirs[turn]) / theirs[turn] if per is None else (mine[turn] - theirs[turn]) / per
            for turn in sorted({*mine} & {*theirs})]


def compare(check, model, rounds):
    times, failures, facts = measure(check, model, rounds)
    for way, reason in failures.items():
        if way != 'bare' or times['bare']:
            check.note(f'overhead {model}: {way}', None, f'{len(times[way])} of {rounds} rounds: {reason}')
    bare = times['bare']
    if not bare:
        check.note(f'overhead {model}', False, f'the bare program does not run: {failures.get("bare")}', times_ns=times)
        return
    costs = {way: summary(differences(samples, bare)) for way, samples in times.items()
             if way != 'bare' and {*samples} & {*bare}}
    lines = [f'{way} {percent(cost)}' for way, cost in costs.items()]
    text = f'{summary(list(bare.values()))["median"] / 1e6:.3f} ms a step bare; ' + ', '.join(lines)
    check.note(f'overhead {model}', None, 'worked out, means nothing: ' + text if check.stand_in else text,
               bare_ns=summary(list(bare.values())), cost_percent=costs, times_ns=times, **facts)
    judge(check, model, costs, times, facts)


def judge(check, model, costs, times, facts):
    """The numbers that were promised. On the stand-in they are worked out and not judged."""
    def met(value):
        return None if check.stand_in else value

    if {'floor', 'kernels'} <= costs.keys() and model != 'mlp':
        floor, ours = costs['floor']['mean'], costs['kernels']['mean']
        allowed = floor + max(0.15 * floor, 0.3)
        check.note(f'kernels at most floor + max(15 %, 0.3 points), {model}', met(ours <= allowed),
                   f'{ours:.2f} % beside {floor:.2f} %, allowed {allowed:.2f} %')
    launches = facts.get('launches_per_step')
    extra = differences(times['kernels'], times['floor'], launches) if launches else []
    if model == 'mlp' and extra:
        mean = summary(extra)['mean']
        check.note('at most 1 us a launch above the floor, mlp', met(mean <= 1000.0),
                   f'{mean:.0f} ns a launch ({launches:.0f} launches a step)', ns_per_launch=summary(extra))
    if {'kernels', 'torch.profiler'} <= costs.keys() and costs['kernels']['mean'] > 0:
        times_ours = costs['torch.profiler']['mean'] / costs['kernels']['mean']
        check.note(f'torch.profiler at least 4 times ours, {model}', met(times_ours >= 4.0), f'{times_ours:.1f} times')


def run(check):
    if not check.stand_in and not check.has_torch:
        check.note('overhead', None, 'not checked: PyTorch is not installed')
        return
    for model in check.models:
        compare(check, model, int(os.environ.get('GPU_CHECK_ROUNDS', '2')))
