"""Kernels beside the calls that launched them, from the Kineto export of a run."""
import collections
import gzip
import json

from check.base import RANKTAP

# Seen on 8 H100 (pytorch/kineto#1380): kernels that begin some us before their launch by CUPTI's clocks. What begins
# earlier than this is a wrong join or a wrong clock.
MARGIN_NS = 20_000
# A drift is asked for where each of ten parts of the run has so many kernels.
PART = 100


def quantile(values, share):
    """The values are sorted."""
    return values[min(len(values) - 1, int(share * len(values)))]


def events_of(check, run):
    """Lists of events, one a file; none where there is no run."""
    target = check.scratch / f'{run.name}-export'
    check.run([RANKTAP, 'export', run, '--format', 'chrome', '-o', target])
    files = sorted(target.glob('*')) if target.is_dir() else [target] if target.exists() else []
    for file in files:
        yield json.loads(gzip.open(file).read() if file.suffix == '.gz' else file.read_bytes())['traceEvents']


def delays_of(events):
    """(name, launch in ns, start - launch in ns), one a kernel; None for what has no launch."""
    launches = {event['args']['correlation']: event['ts'] for event in events
                if event.get('cat') in ('cuda_runtime', 'cuda_driver') and event.get('args', {}).get('correlation')}
    for event in events:
        if event.get('cat') == 'kernel':
            launch = launches.get(event['args'].get('correlation'))
            yield event['name'], launch, None if launch is None else round((event['ts'] - launch) * 1000)


def drift_of(delays):
    """How far the least delays of ten parts of the run are apart, in ns: a queue lengthens most delays, and not the
    least. None for too few kernels."""
    delays = [delay for _, delay in sorted(delays)]
    size = len(delays) // 10
    if size < PART:
        return None
    least = [quantile(sorted(delays[part * size:(part + 1) * size]), 0.01) for part in range(10)]
    return max(least) - min(least)


def kernel_facts(check, run):
    counts, unjoined, joined = collections.Counter(), 0, []
    for events in events_of(check, run):
        for name, launch, delay in delays_of(events):
            counts[name] += 1
            if launch is None:
                unjoined += 1
            else:
                joined.append((launch, delay))
    delays = sorted(delay for _, delay in joined)
    spread = {'min': delays[0], 'p0.1': quantile(delays, 0.001), 'p50': quantile(delays, 0.5)} if delays else None
    return {'kernels': sum(counts.values()), 'unjoined': unjoined, 'early': sum(delay < 0 for delay in delays),
            'start_minus_launch_ns': spread, 'drift_ns': drift_of(joined), 'counts': dict(counts)}


def sound(facts):
    spread = facts['start_minus_launch_ns']
    return spread is not None and facts['unjoined'] == 0 and spread['min'] >= -MARGIN_NS


def steady(facts):
    return facts['drift_ns'] is None or facts['drift_ns'] <= MARGIN_NS


def text(facts):
    spread = facts['start_minus_launch_ns']
    found = f'{facts["kernels"]} kernels, {facts["unjoined"]} without a launch, {facts["early"]} before theirs'
    return found + ('' if spread is None else f'; start - launch {spread["min"]} ns at least, {spread["p50"]} ns in '
                    f'the middle; drift {facts["drift_ns"]} ns')


def kernels_after_session(check, run):
    """How many kernels begin after the program's last range `session`; None where the trace has no such range."""
    kernels, ended = [], None
    for events in events_of(check, run):
        kernels += [event['ts'] for event in events if event.get('cat') == 'kernel']
        ends = [event['ts'] + event['dur'] for event in events if event.get('name') == 'session' and 'dur' in event]
        ended = max(ends + ([] if ended is None else [ended]), default=None)
    return None if ended is None else sum(start >= ended for start in kernels)
