"""Which steps are recorded operator by operator: torch.profiler.schedule's rule, from text."""

NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)  # torch.profiler.ProfilerAction's numbers
NAMES = ('wait', 'warmup', 'active', 'repeat', 'skip-first', 'skip-first-wait')
# One step, after the first two, in which libraries choose algorithms and allocators grow.
DEFAULT = {'wait': 1, 'warmup': 1, 'active': 1, 'repeat': 1, 'skip-first': 0, 'skip-first-wait': 0}


class Schedule:
    """`action(step)`, with the six numbers of torch.profiler.schedule as attributes of a dict."""

    def __init__(self, wait=0, warmup=0, active=1, repeat=0, skip_first=0, skip_first_wait=0):
        if active < 1 or min(wait, warmup, repeat, skip_first, skip_first_wait) < 0:
            raise ValueError('active is at least 1 and nothing is negative')
        self.wait, self.warmup, self.active, self.repeat = wait, warmup, active, repeat
        self.skip_first, self.skip_first_wait = skip_first, skip_first_wait

    @classmethod
    def parse(cls, text):
        """`wait=5,warmup=2,active=6,repeat=2`; what is not named is 0, active 1. Empty: the default."""
        values = dict(DEFAULT) if not text else {}
        for part in filter(None, (text or '').split(',')):
            name, equals, number = part.partition('=')
            name = name.strip().replace('_', '-')
            if name not in NAMES or not equals or not number.strip().isdigit():
                raise ValueError(f'{part!r} is not one of {", ".join(NAMES)} with a number')
            values[name] = int(number)
        return cls(**{name.replace('-', '_'): value for name, value in values.items()})

    @classmethod
    def of_live_window(cls):
        """The user asked for this moment: its first step, which is no warm-up."""
        return cls(active=1, repeat=1)

    def action(self, step):
        if step < self.skip_first:
            return NONE
        step -= self.skip_first
        # The first cycle does without its wait.
        if self.skip_first_wait != 0:
            step += self.wait
        cycle = self.wait + self.warmup + self.active
        if 0 < self.repeat <= step / cycle:
            return NONE
        place = step % cycle
        if place < self.wait:
            return NONE
        if place < self.wait + self.warmup:
            return WARMUP
        return RECORD if place < cycle - 1 else RECORD_AND_SAVE

    def records(self, step):
        return self.action(step) >= RECORD
