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


def measure(check, model, rounds):
    """ns a step by way: one process each, in alternating order, the first round forwards, the next backwards."""
    steps = STAND_IN_STEPS if check.stand_in else MODELS[model]
    commands = ways(check, model, steps)
    times, failures = {way: [] for way in commands}, {}
    extra = {}
    for turn in range(rounds):
        order = list(commands) if turn % 2 == 0 else list(reversed(commands))
        for way in order:
            if check.left_s() < 45 and times['bare']:
                return times, failures, extra
            command, environment = commands[way]
            done = check.run(command(), **environment)
            said = last_json(done)
            sign = check.scratch / 'floor-was-armed'
            if way.startswith('floor') and not sign.exists():
                failures[way] = f'{FLOOR.name} was not armed: no floor'
                continue
            sign.unlink(missing_ok=True)
            if said is None:
                failures[way] = why(done)
                continue
            times[way].append(said['ns_per_step'])
            extra[way] = {key: said[key] for key in ('kernels_per_step', 'launches_per_step') if key in said}
    return times, failures, extra


def compare(check, model, rounds):
    times, failures, extra = measure(check, model, rounds)
    if not times['bare']:
        check.note(f'overhead {model}', False, f'the bare program does not run: {failures.get("bare")}')
        return
    for way, reason in failures.items():
        check.note(f'overhead {model}: {way}', None, f'did not run: {reason}')
    bare = times['bare']
    costs = {}
    for way, samples in times.items():
        # A round's ways ran within minutes of each other: differences within it, not of the means.
        differences = [100.0 * (mine - theirs) / theirs for mine, theirs in zip(samples, bare)]
        if differences and way != 'bare':
            costs[way] = summary(differences)
    lines = [f'{way} {percent(cost)}' for way, cost in costs.items()]
    text = f'{summary(bare)["median"] / 1e6:.3f} ms a step bare; ' + ', '.join(lines)
    check.note(f'overhead {model}', None, 'worked out, means nothing: ' + text if check.stand_in else text,
               bare_ns=summary(bare), cost_percent=costs, times_ns=times, **extra.get('bare', {}))
    judge(check, model, costs, times, extra.get('bare', {}))


def judge(check, model, costs, times, facts):
    """The numbers that were promised. On the stand-in they are worked out and not judged."""
    def met(value):
        return None if check.stand_in else value

    if {'floor', 'kernels'} <= costs.keys():
        floor, ours = costs['floor']['mean'], costs['kernels']['mean']
        allowed = floor + max(0.15 * floor, 0.3)
        if model != 'mlp':
            check.note(f'kernels at most floor + max(15 %, 0.3 points), {model}', met(ours <= allowed),
                       f'{ours:.2f} % beside {floor:.2f} %, allowed {allowed:.2f} %')
        launches = facts.get('launches_per_step')
        if model == 'mlp' and launches:
            extra = [(a - b) / launches for a, b in zip(times['kernels'], times['floor'])]
            mean = summary(extra)['mean']
            check.note('at most 1 us a launch above the floor, mlp', met(mean <= 1000.0),
                       f'{mean:.0f} ns a launch ({launches:.0f} launches a step)', ns_per_launch=summary(extra))
    if {'kernels', 'torch.profiler'} <= costs.keys() and costs['kernels']['mean'] > 0:
        times_ours = costs['torch.profiler']['mean'] / costs['kernels']['mean']
        check.note(f'torch.profiler at least 4 times ours, {model}', met(times_ours >= 4.0), f'{times_ours:.1f} times')


def run(check):
    wanted = os.environ.get('GPU_CHECK_MODELS', ' '.join(MODELS)).split()
    rounds = int(os.environ.get('GPU_CHECK_ROUNDS', '2' if check.stand_in else '5'))
    for model in wanted:
        compare(check, model, rounds)
