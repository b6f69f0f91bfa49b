"""The parts that a cost is made of: the same window with one option changed, and the floor with one kind of records."""
from check import overhead, paired

# (environment, options of ranktap run, level)
VARIANTS = {
    'driver launches alone': ({'RANKTAP_DRIVER_LAUNCHES': '1'}, [], 'kernels'),
    'flush each 5 s': ({'RANKTAP_FLUSH_MS': '5000'}, [], 'kernels'),
    'flush each 100 ms': ({'RANKTAP_FLUSH_MS': '100'}, [], 'kernels'),
    'buffers of 96 MiB': ({'RANKTAP_CUPTI_BUFFERS_MIB': '96'}, [], 'kernels'),
    'stacks at launches': ({}, ['--stacks', 'launch'], 'kernels'),
    'full without stacks': ({}, ['--stacks', 'off'], 'full'),
    'device buffers as CUPTI has them': ({'RANKTAP_DEVICE_BUFFERS': '250'}, [], 'kernels'),
    'hardware events': ({'RANKTAP_HARDWARE_EVENTS': '1'}, [], 'kernels'),
    '--budget 0.5%': ({}, ['--budget', '0.5%'], 'kernels'),
}
# As cupti_activity.h numbers them.
KINDS = {'CONCURRENT_KERNEL': 10, 'SYNCHRONIZATION': 38, 'MEMORY2': 49, 'OVERHEAD': 17, 'MEMCPY': 1, 'MEMSET': 2}


def ways(check, model):
    found = {'as it is': (overhead.window(check, model, 'kernels'), {})}
    for name, (environment, options, level) in VARIANTS.items():
        found[name] = overhead.window(check, model, level, *options), environment
    for name, number in KINDS.items():
        found[f'floor, {name} alone'] = overhead.floor(check, model, '--kind', str(number))
    return found


def run(check):
    if not check.stand_in and not check.has_torch:
        check.note('variants', None, 'not checked: PyTorch is not installed')
        return
    model = check.models[0]
    costs = overhead.costs_in_pairs(check, f'variant, {model}', ways(check, model))
    usual = costs.get('as it is')
    for name in [name for name in VARIANTS if usual and name in costs]:
        extra = paired.combined((1, costs[name]['wall']), (-1, usual['wall']))
        check.note(f'variant against the usual, {model}: {name}', None,
                   ('worked out, means nothing: ' if check.stand_in else '') + paired.text(extra), **extra)
