"""What may come at any time, and is looked for between steps: process groups, CUDA, modules to hook.

`agent`: agent.pyi; `load`: loader.py.
"""
import sys

guarded = load('guard').guarded


class Changes:
    """Has its parts look when recording begins, and again at the first step after something came that
    what they look for could be in."""

    def __init__(self, torch, process, compilations, labels):
        self._torch, self._process, self._compilations, self._labels = torch, process, compilations, labels
        self._cuda = vars(torch.cuda)
        self._looks = []
        self._seen = None

    def begin(self):
        domains = self._process.domains
        pauses = load('pauses').Pauses(domains[agent.PHASE_DOMAIN])
        distributed = load('distributed').Distributed(domains[agent.COMM_DOMAIN], self._labels.switch_to_callback)
        failures = load('memory').OutOfMemory(self._torch, domains[agent.MEMORY_DOMAIN])
        for part in (pauses, failures):
            guarded(part.start)()
        self._looks = [guarded(look) for look in (
            self._process.learn_rank, pauses.look, distributed.look, failures.look, self._compilations.look)]
        self.on_step(0)

    def watched(self):
        """Dictionaries that change with what is looked for: of modules, process groups and torch.cuda."""
        c10d = sys.modules.get('torch.distributed.distributed_c10d')
        world = getattr(c10d, '_world', None)
        return sys.modules, None if world is None else world.pg_map, self._cuda

    def on_step(self, _):
        groups = self.watched()[1]
        groups = None if groups is None else tuple(map(id, groups))
        seen = len(sys.modules), groups, self._cuda.get('_initialized')
        if seen != self._seen:
            self._seen = seen
            for look in self._looks:
                look()
