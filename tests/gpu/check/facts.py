"""Questions to CUPTI itself, without ranktap: tests/gpu/facts."""
import json
import os

from check.base import BUILD, ROOT, why

CARRIED = ROOT / 'cupti'
# What CUPTI before 13.2 does there: a graph of before ends the process that records whole graphs.
CRASHES, CRASHES_UNTIL = ('graph-mode', 'old-graph-whole'), 130200


def is_answered(found):
    known = found['question'] in CRASHES and found.get('cupti', 0) < CRASHES_UNTIL and found['ended'] == 'signal 11'
    return known or found['ended'] == 'exit 0' and 'subscribe_failed' not in found


def versions(check):
    """{what is said after a finding's name: environment}: the machine's own first, then those that were carried along."""
    found = {'': {}}
    # Under the stand-in's driver NVIDIA's own do not start.
    for library in [] if check.stand_in else sorted(CARRIED.glob('*/libcupti.so.13')):
        found[f', CUPTI {library.parent.name}'] = {'RANKTAP_CUPTI': str(library)}
    return found


def ask(check, label, environment):
    """One finding a question: its answer is kept as it came. A question that crashed or hung has no answer."""
    launches = os.environ.get('GPU_CHECK_LAUNCHES', '20' if check.stand_in else '1000')
    done = check.run([BUILD / 'gpu/cupti_facts', '--launches', launches, '--limit-s', '12'], **environment)
    lines = []
    for line in done.stdout.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            check.note(f'fact unreadable{label}', None, line[-300:])
    for found in lines:
        text = ', '.join(f'{key} {value}' for key, value in found.items() if key not in ('question', 'ended', 'about'))
        # A version that this driver does not start is an answer.
        met = None if is_answered(found) or label else False
        said = text if found['ended'] == 'exit 0' else f'{found["ended"]} after: {text}'
        check.note(f'fact {found["question"]}{label}', met, said, **found)
    if not lines:
        check.note(f'facts{label}', None if label else False, f'no answer: {why(done)}')


def run(check):
    asked = versions(check)
    for number, (label, environment) in enumerate(asked.items()):
        with check.share(check.left_s() / (len(asked) - number)):
            ask(check, label, environment)
