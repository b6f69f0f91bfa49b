"""Which steps are recorded operator by operator: torch.profiler.schedule's rule, from text; without one, as many as
cost little."""

NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)  # torch.profiler.ProfilerAction's numbers
NAMES = ('wait', 'warmup', 'active', 'repeat', 'skip-first', 'skip-first-wait')
WARM_UP_STEPS = 2  # in which libraries choose algorithms and allocators grow
MOST_COST = 0.005  # of the time


class Schedule:
    """`action(step)`, with the six numbers of torch.profiler.schedule as attributes of a dict."""

    def __init__(self, wait=0, warmup=0, active=1, repeat=0, skip_first=0, skip_first_wait=0):
        if active < 1 or min(wait, warmup, repeat, skip_first, skip_first_wait) < 0:
            raise ValueError('active is at least 1 and nothing is negative')
        self.wait, self.warmup, self.active, self.repeat = wait, warmup, active, repeat
        self.skip_first, self.skip_first_wait = skip_first, skip_first_wait

    @classmethod
    def parse(cls, text):
        """`wait=5,warmup=2,active=6,repeat=2`; what is not named is 0, active 1."""
        values = {}
        for part in filter(None, text.split(',')):
            name, equals, number = part.partition('=')
            name = name.strip().replace('_', '-')
            if name not in NAMES or not equals or not number.strip().isdigit():
                raise ValueError(f'{part!r} is not one of {", ".join(NAMES)} with a number')
            values[name] = int(number)
        return cls(**{name.replace('-', '_'): value for name, value in values.items()})

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


class Spread:
    """Where the user names no steps: the first, others at distances of 8, 16, 32 and 64, at last one in 100. Ranks have
    the same ones, whatever they measure; Cost leaves some out."""

    def __init__(self, first):
        self._first = first

    def records(self, step):
        later = step - self._first
        return later in (0, 8, 24, 56, 120) or (later > 120 and later % 100 == 20)


class Cost:
    """What recorded steps take more than the others, and our work between steps, in any unit of `now`. The work before
    the first recorded step is left out: it finds its way in this PyTorch, once."""

    def __init__(self, now, number):
        self._now = now
        self._begin(number)

    def _begin(self, number):
        self._began = self._since = self._now()
        self._number, self._records = number, False
        self._steps, self._time = [0, 0], [0, 0]  # others; recorded
        self._work = 0

    def step_ends(self, number):
        if number < self._number:  # a program that inferred trains now
            self._begin(number)
        now = self._now()
        if number > self._number and (self._records or self._steps[True]):
            self._steps[self._records] += number - self._number
            self._time[self._records] += now - self._since
        self._since = now

    def step_begins(self, number, records):
        now = self._now()
        if self._steps[True]:
            self._work += now - self._since
        self._number, self._since, self._records = number, now, records

    def allows_another(self):
        plain, recorded = self._steps
        if not recorded:
            return True
        if not plain:
            return False
        more = max(0, self._time[True] - recorded * self._time[False] / plain)
        return (self._work + more) * (recorded + 1) / recorded <= MOST_COST * (self._now() - self._began)
