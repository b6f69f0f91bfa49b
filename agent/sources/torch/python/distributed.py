"""torch.distributed: with whom this rank talks (kGroupsMark in proto/framework_marks.h). gloo's collectives are
ranges of the same domain (agent/sources/torch/torch_gloo.h).

`agent`: agent.pyi; `load`: loader.py.
"""
import collections
import sys

Group = collections.namedtuple('Group', agent.GROUPS_ROW)


class Distributed:
    """Looks at step boundaries whether there are process groups that were not told yet."""

    def __init__(self, domain):
        self._domain = domain
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
        rows = []
        for group in new:
            self._told.add(id(group))
            members = world.pg_group_ranks.get(group, {})
            backend = world.pg_map[group][0]
            rows.append(Group(name=world.pg_names.get(group, ''), description=getattr(group, 'group_desc', '') or '',
                              backend=str(backend), ranks=sorted(members), size=len(members) or group.size()))
            if 'gloo' in rows[-1].backend and not self._has_gloo:
                self._has_gloo = True
                if not agent.watch_gloo(self._domain):
                    agent.note('no collectives of gloo: this PyTorch calls it in a way that cannot be seen')
        load('lines').send(self._domain, agent.name(agent.GROUPS_MARK), (row._asdict() for row in rows))
