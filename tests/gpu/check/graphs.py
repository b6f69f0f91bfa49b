"""CUDA graphs: as a whole or by node at level kernels; by node at level full, with the calls that captured them."""
from check.base import last_json, why, workload


def graph_program(check):
    if check.stand_in:
        return [workload('train_cuda'), '--ranks', '1', '--steps', '20']
    return check.model('mlp', 100, '--graph')


def run(check):
    if not check.stand_in and not check.has_torch:
        check.note('graphs', None, 'not checked: PyTorch is not installed')
        return
    command = graph_program(check)
    bare = check.run(command)
    if bare.returncode != 0:
        check.note('graphs', False, f'does not run bare: {why(bare)}')
        return
    found = {}
    for level in ('kernels', 'full'):
        done, run_folder = check.traced(command, '--quiet', '--level', level)
        rows = check.report(run_folder, 'graphs')
        found[level] = rows
        if done.returncode != 0:
            check.note(f'graphs at level {level}', False, why(done))
            return
    rows = found['kernels']
    whole = [row for row in rows if row['work'].startswith('CUDA graph')]
    # By node where a client of the program's may come, and before CUPTI 13.2: as a whole elsewhere.
    check.note('graphs at level kernels', len(rows) > 0 and len(whole) in (0, len(rows)),
               f'{len(whole)} graphs as a whole, {len(rows) - len(whole)} kinds of nodes', rows=rows[:20])
    nodes = found['full']
    tied = [row for row in nodes if row['api']]
    with_source = [row for row in nodes if row['source'] or row['function']]
    check.note('graphs node by node at level full', len(nodes) > 0 and len(tied) == len(nodes),
               f'{len(nodes)} kinds of nodes, {len(tied)} with the call that captured them, {len(with_source)} with a line',
               rows=nodes[:20])
    said = last_json(bare, 'ns_per_step')
    if said:
        check.note('graphs: bare', None, f'{said["ns_per_step"] / 1e6:.3f} ms a step')
