"""The window of operators and memory: open in the steps that the schedule names.

`agent`: agent.pyi; `load`: loader.py.
"""
guarded = load('guard').guarded

LOOK_EVERY = 64  # steps


class Windows:
    """Opens and closes the window at step boundaries."""

    def __init__(self, torch, process, modules, optimizers):
        self._torch, self._process = torch, process
        self._modules, self._optimizers = modules, optimizers
        self._config = None
        self._schedule = None  # from begin() on; None: no windows
        self._counts_from = 0  # the step that the schedule calls 0; None: nothing is recorded now
        self._was_wanted = False
        self._cost = None      # of recording since then, where the user names no steps
        self._window = self._memory = self._check = self._own_callback = self._settings = None

    def watch_profilers(self):
        """The agent finds its way among operators before the program's first profiler is on, which would
        see those that it runs for that. With stacks PyTorch asks for Module.__call__'s code: ours has none."""
        profilers = self._torch.autograd.profiler
        observers = getattr(getattr(self._torch, 'profiler', None), 'profiler', None)
        for owner, name in ((profilers, '_prepare_profiler'), (profilers, '_enable_profiler'),
                            (observers, '_enable_execution_trace_observer')):
            original = getattr(owner, name, None)
            if original is not None:
                setattr(owner, name, self._ready_before(original))

    def _ready_before(self, original):
        look = guarded(lambda: self._callback().works())
        with_pytorchs_call = self._modules.with_pytorchs_call

        def call(*arguments, **named):
            look()
            return with_pytorchs_call(original, *arguments, **named)
        return call

    def _callback(self):
        if self._own_callback is None:
            self._own_callback = load('operators').OwnCallback(self._torch)
        return self._own_callback

    def begin(self):
        self._config = agent.config()
        try:
            self._schedule = self._read_schedule()
        except ValueError as failure:
            agent.note(f'no operators: RANKTAP_SCHEDULE: {failure}')
        self.on_step(0)

    def _read_schedule(self):
        """From now on."""
        module = load('schedule')
        if self._config['schedule']:
            return module.Schedule.parse(self._config['schedule'])
        self._cost = module.Cost(agent.now, self._counts_from)
        return module.Spread(module.WARM_UP_STEPS if self._counts_from == 0 else 0)

    def on_step(self, number):
        if self._schedule is None:
            return
        if self._cost is not None:
            self._cost.step_ends(number)
        self._follow_capture(number)
        wanted = self._wants(number)
        if wanted or self._was_wanted:
            phases = self._process.domains[agent.PHASE_DOMAIN]
            agent.push(phases, agent.name(agent.STANDSTILL_PHASE))
            try:
                self._turn(wanted)
            finally:
                agent.pop(phases)
        self._was_wanted = wanted
        if self._cost is not None:
            self._cost.step_begins(number, wanted)

    def _wants(self, number):
        return (self._counts_from is not None and self._schedule.records(number - self._counts_from) and
                (self._cost is None or self._cost.allows_another()))

    def _turn(self, wanted):
        if self._check is not None:
            guarded(self._check.end)()
        if not wanted and self._window is not None:
            guarded(self._memory.close)()
            self._window.close_soon()
        if wanted:
            if self._window is None:
                domains = self._process.domains
                self._callback().works()  # before memory is watched: it makes tensors
                self._window = load('operators').Window(self._torch, domains[agent.OPERATOR_DOMAIN], self._config,
                                                        self._callback())
                self._memory = load('memory').Memory(self._torch, domains[agent.MEMORY_DOMAIN],
                                                     self._modules, self._optimizers, self._config)
                self._settings = load('settings').Settings(self._torch, domains[agent.OPERATOR_DOMAIN])
            guarded(self._settings.tell)()
            guarded(self._memory.open)()
            self._window.open()
            self._check_flops()

    def _follow_capture(self, number):
        """A live window has a schedule of its own: operators of its first step on, but where the user names steps."""
        if not agent.capturing():
            self._counts_from = None
        elif self._counts_from is None:
            self._counts_from = number
            self._schedule = self._read_schedule()
        elif number < self._counts_from:
            self._counts_from = number  # a program that inferred trains now: its steps count from 0

    def quiet_until(self, number):
        """The next step at whose beginning there may be something to do; 0: in this one there is."""
        schedule = self._schedule
        if schedule is None:
            return number + LOOK_EVERY
        first = self._counts_from
        if first is None:
            return 0
        if schedule.records(number - first):
            return 0
        return next((later for later in range(number + 1, number + LOOK_EVERY) if schedule.records(later - first)),
                    number + LOOK_EVERY)

    def before_optimizer(self):
        if self._memory is not None:
            self._memory.tell()

    def close(self):
        if self._check is not None:
            guarded(self._check.end)()
        if self._window is not None:
            guarded(self._memory.close)()
            self._window.close()

    def _check_flops(self):
        if not self._config['flop_check'] or not self._window.is_open:
            return
        if self._check is None:
            self._check = load('flop_check').FlopCheck(self._torch, self._process.domains[agent.OPERATOR_DOMAIN])
        guarded(self._check.begin)(self._modules.compiles)
