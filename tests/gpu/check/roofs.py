"""What the GPUs can do, by `ranktap calibrate`: that each kernel runs there, and the figures with their spread."""
import json
import os

from check.base import RANKTAP, why

WIDE_SPREAD_PERCENT = 10


def figures(roofs):
    """(what, figure or None, spread) of each row of a file."""
    for table in 'flops_per_second', 'bytes_per_second', 'latencies':
        for row in roofs[table]:
            yield row.get('type') or row['what'], row.get('rate', row.get('ns')), row.get('spread_percent')


def run(check):
    file = check.scratch / 'roofs.json'
    # Two are enough to see a copy between them.
    two = {'CUDA_VISIBLE_DEVICES': os.environ.get('CUDA_VISIBLE_DEVICES', '0,1'), 'RANKTAP_STANDIN_DEVICES': '2'}
    done = check.run([RANKTAP, 'calibrate', '--only', 'gpu', '-o', file], **two)
    written = sorted(check.scratch.glob('roofs.gpu*.json'))
    if done.returncode != 0 or not written:
        check.note('roofs', False, f'calibrate measured nothing: {why(done)}')
        return
    for path in written:
        roofs = json.loads(path.read_text())
        rows = list(figures(roofs))
        without = [what for what, figure, _ in rows if not figure]
        wide = [f'{what} {spread:.0f} %' for what, _, spread in rows if (spread or 0) > WIDE_SPREAD_PERCENT]
        # The stand-in must make no figure, a GPU must give one in each row.
        met = len(without) == len(rows) and 'stand_in' in roofs if check.stand_in else not without
        parts = [', '.join(f'{what} {figure:.4g}' for what, figure, _ in rows if figure),
                 f'no figure of {", ".join(without)}' if without else '', f'spread of {", ".join(wide)}' if wide else '']
        check.note(f'roofs of device {roofs["number"]}', met,
                   f'{roofs["device"]}: ' + '; '.join(part for part in parts if part), roofs=roofs)
