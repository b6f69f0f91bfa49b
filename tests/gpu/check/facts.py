"""Questions to CUPTI itself, without ranktap: tests/gpu/facts."""
import json
import os

from check.base import BUILD, why


def run(check):
    """One finding a question: its answer is kept as it came. A question that crashed or hung has no answer."""
    program = BUILD / 'gpu/cupti_facts'
    launches = os.environ.get('GPU_CHECK_LAUNCHES', '20' if check.stand_in else '1000')
    done = check.run([program, '--launches', launches, '--limit-s', '12'])
    lines = []
    for line in done.stdout.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            check.note('fact unreadable', None, line[-300:])
    for found in lines:
        ended = found['ended'] == 'exit 0' and 'subscribe_failed' not in found
        text = ', '.join(f'{key} {value}' for key, value in found.items() if key not in ('question', 'ended', 'about'))
        check.note(f'fact {found["question"]}', None if ended else False,
                   text if ended else f'{found["ended"]} after: {text}', **found)
    if not lines:
        check.note('facts', False, f'no answer: {why(done)}')
