"""Whether this process records, and since when.

`agent`: agent.pyi; `load`: loader.py.
"""
import sys

guarded = load('guard').guarded

DOMAINS = (agent.MODULE_DOMAIN, agent.STEP_DOMAIN, agent.PHASE_DOMAIN, agent.OPERATOR_DOMAIN, agent.MEMORY_DOMAIN,
           agent.COMM_DOMAIN, agent.LABEL_DOMAIN)


class Process:
    """Settled at the first forward or optimizer step, since launchers and DataLoader workers import
    torch too and must leave no trace."""

    def __init__(self):
        self.state = None  # None: not settled; else whether we record
        self.domains = {}  # name -> the agent's number of it; from the start on
        self.on_start = []  # called in this order, once, when recording begins
        self._knows_rank = False

    def records(self):
        if self.state is None:
            worker = sys.modules.get('torch.utils.data')
            is_worker = worker is not None and worker.get_worker_info() is not None
            self.state = not is_worker and agent.start() == 1
            if self.state:
                self.domains = {name: agent.domain(name) for name in DOMAINS}
                agent.set_module_domain(self.domains[agent.MODULE_DOMAIN])
                agent.refresh_rank()
                self.learn_rank()
                # First: they may have begun before everything else.
                if not agent.record_labels(self.domains[agent.LABEL_DOMAIN]):
                    agent.note('labels of record_function are those of recorded steps: this PyTorch shows no others')
                for begin in self.on_start:
                    guarded(begin)()
        return self.state

    def note(self, text):
        """As agent.note, also before recording begins, when the trace is not there yet."""
        if self.state:
            agent.note(text)
        else:
            self.on_start.append(lambda: agent.note(text))

    @guarded
    def learn_rank(self):
        """mp.spawn hands the rank to a function: no variable has it, torch.distributed does."""
        if self._knows_rank:
            return
        distributed = sys.modules.get('torch.distributed')
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            agent.tell_rank(distributed.get_rank(), distributed.get_world_size())
            self._knows_rank = True
