"""Four ranks over gloo enter calls as in a hang, write PyTorch's Flight Recorder, and let the calls end or leave them.

    planted_hangs.py FOLDER [GUILTY...]

FOLDER/CAUSE-GUILTY/ gets a pickle trace_rank_N of each rank and FOLDER/CAUSE-GUILTY-json/ the JSON. The calls are async,
so that one process can hang many times: a rank enters all that it would enter until it hangs.
"""
import os
import pathlib
import sys
import tempfile

import torch
import torch._C._distributed_c10d as c10d
import torch.distributed as dist

WORLD = 4
FOLDER = pathlib.Path(sys.argv[1])
GUILTY = [int(word) for word in sys.argv[2:]] or list(range(WORLD))


def elements(count=1024, dtype=torch.float):
    return torch.ones(count, dtype=dtype)


def not_entered(rank, guilty, groups):
    if rank != guilty:
        return [dist.all_reduce(elements(), async_op=True)]  # the others: not_entered
    return []


def let_go_not_entered(rank, guilty, works):
    if rank == guilty:
        works.append(dist.all_reduce(elements(), async_op=True))
    for work in works:
        work.wait()


# Gloo ends a process that gets more bytes than it waits for. So the guilty rank sends little, or waits for much.
def other_call(rank, guilty, groups):
    if rank == guilty:
        return [dist.broadcast(elements(4), guilty, group=groups[0], async_op=True)]  # guilty: other_call
    return [dist.all_reduce(elements(), group=groups[0], async_op=True)]  # the others: other_call


def left_out(rank, guilty, groups):
    works = []
    if rank != guilty:
        works.append(dist.all_reduce(elements(), group=groups[0], async_op=True))  # the others: left_out
    works.append(dist.broadcast(elements(4), guilty, group=groups[0], async_op=True))  # guilty: left_out
    return works


def other_shape(rank, guilty, groups):
    count = 2048 if rank == guilty else 1024
    return [dist.broadcast(elements(count), (guilty + 1) % WORLD, group=groups[0], async_op=True)]  # guilty: other_shape


def other_dtype(rank, guilty, groups):
    tensor = elements(dtype=torch.double if rank == guilty else torch.float)
    return [dist.broadcast(tensor, (guilty + 1) % WORLD, group=groups[0], async_op=True)]  # guilty: other_dtype


def other_order(rank, guilty, groups):
    group = groups[1] if rank == guilty else groups[0]
    return [dist.all_reduce(elements(8), group=group, async_op=True)]  # guilty: other_order


def chain(rank, guilty, groups):
    """The next rank waits for the guilty one in a group of two, the one after that for the next, the last for that one."""
    place = (rank - guilty) % WORLD
    if place == 0:
        return []
    return [dist.all_reduce(elements(), group=groups[1 + place], async_op=True)]


def of_two(rank, guilty, groups):
    """Two ranks, of which nobody can say which is right."""
    place = (rank - guilty) % WORLD
    if place == 0:
        return [dist.broadcast(elements(4), guilty, group=groups[2], async_op=True)]  # guilty: of_two
    return [dist.all_reduce(elements(), group=groups[2], async_op=True)] if place == 1 else []  # the others: of_two


CAUSES = [not_entered, other_call, left_out, other_shape, other_dtype, other_order, chain, of_two]


def groups_of(cause, guilty):
    """Two of all ranks, then one for each rank with the one before it, counted from the guilty one. gloo's recorder tells
    the ranks of the last that is made."""
    pairs = []
    for place in range(1, WORLD):
        pair = sorted([(guilty + place) % WORLD, (guilty + place - 1) % WORLD])
        pairs.append(dist.new_group(pair, group_desc=f'pair_{place}_{cause}_{guilty}'))
    return [dist.new_group(list(range(WORLD)), group_desc=f'all_{i}_{cause}_{guilty}') for i in range(2)] + pairs


def meet(store, name):
    store.add(name, 1)
    while store.add(name, 0) < WORLD:
        pass


def main(rank, path):
    os.environ.update(GLOO_SOCKET_IFNAME='lo')
    store = dist.FileStore(path, WORLD)
    dist.init_process_group('gloo', store=store, rank=rank, world_size=WORLD)
    for guilty in GUILTY:
        for cause in CAUSES:
            name = f'{cause.__name__}-{guilty}'
            groups = groups_of(cause.__name__, guilty)
            c10d._reset_fr_trace()
            for group in [None, *groups]:  # gloo's recorder knows a group's ranks by their calls alone
                if group is None or dist.get_rank(group) >= 0:
                    dist.all_reduce(elements(4), group=group)  # warm-up: all
            works = cause(rank, guilty, groups)
            meet(store, name)
            for ending, dump in (('', c10d._dump_fr_trace(True, True, False)), ('-json', c10d._dump_fr_trace_json(True, False))):
                (FOLDER / f'{name}{ending}').mkdir(parents=True, exist_ok=True)
                (FOLDER / f'{name}{ending}' / f'trace_rank_{rank}').write_bytes(dump)
            meet(store, name + ' written')
            if cause is not_entered:
                let_go_not_entered(rank, guilty, works)
    meet(store, 'end')
    os._exit(0)


if __name__ == '__main__':
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(WORLD):
            child = os.fork()
            if child == 0:
                main(rank, folder + '/store')
            children.append(child)
        sys.exit(any(os.waitpid(child, 0)[1] for child in children))
