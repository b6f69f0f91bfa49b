"""torch.distributed: with whom this rank talks (kGroupsMark in proto/framework_marks.h). gloo's collectives are
ranges of the same domain (agent/sources/torch/torch_gloo.h).

`agent`: agent.pyi; `load`: loader.py.
"""
import collections
import sys

Group = collections.namedtuple('Group', agent.GROUPS_ROW)


def contexts_of(groups):
    """{id(group): [number of its context]}. Both stand in the order in which they were made. Where this rank has one
    place in as many of the one as of the other, they belong together. A group that went before anybody looked, or a
    helper of torch.distributed's, leaves a context too many: then none of that place is known."""
    made, places = collections.defaultdict(list), collections.defaultdict(list)
    for line in agent.gloo_contexts().splitlines():
        number, rank, size = map(int, line.split())
        made[rank, size].append(number)
    for group in groups:
        places[group.rank(), group.size()].append(group)
    return {id(group): [number] for place, of_place in places.items() if len(of_place) == len(made[place])
            for group, number in zip(of_place, made[place])}


class Distributed:
    """Looks at step boundaries whether there are process groups that were not told yet."""

    def __init__(self, domain, on_host_backend):
        """on_host_backend: called with the first group whose messages only labels of C++ tell: of any backend but
        NCCL, whose own library does."""
        self._domain, self._on_host_backend = domain, on_host_backend
        self._told = set()
        self._has_gloo = False

    def look(self):
        c10d = sys.modules.get('torch.distributed.distributed_c10d')
        if c10d is None or not c10d.is_initialized():
            return
        world = getattr(c10d, '_world', None)
        groups = list(getattr(world, 'pg_map', None) or ())
        new = [group for group in groups if id(group) not in self._told]
        if not new:
            return
        contexts = contexts_of([group for group in new if 'gloo' in str(world.pg_map[group][0])])
        rows = []
        for group in new:
            self._told.add(id(group))
            members = world.pg_group_ranks.get(group, {})
            backend = world.pg_map[group][0]
            rows.append(Group(name=world.pg_names.get(group, ''), description=getattr(group, 'group_desc', '') or '',
                              backend=str(backend), ranks=sorted(members), size=len(members) or group.size(),
                              contexts=contexts.get(id(group), [])))
            if any(not part.endswith('nccl') for part in rows[-1].backend.split(',')):
                self._on_host_backend()
            if 'gloo' in rows[-1].backend and not self._has_gloo:
                self._has_gloo = True
                if not agent.watch_gloo(self._domain):
                    agent.note('no collectives of gloo: this PyTorch calls it in a way that cannot be seen')
        load('lines').send(self._domain, agent.name(agent.GROUPS_MARK), (row._asdict() for row in rows))
