"""What PyTorch's own FlopCounterMode counts in one step, beside the operators that are recorded.

collector/report/framework/flop_check.h compares. kFlopCheckMark in proto/framework_marks.h; shapes as in
`operators`, but empty lists at their end are left out.

`agent`: agent.pyi; `load`: loader.py.
"""
import collections
import json

Count = collections.namedtuple('Count', agent.FLOP_CHECK_ROW)


def shape_of(value):
    """As the execution trace observer writes it: of a tensor, of a list of tensors, else none."""
    if hasattr(value, 'shape') and hasattr(value, 'dim'):
        return [int(size) for size in value.shape]
    if isinstance(value, (list, tuple)) and value and all(hasattr(part, 'dim') for part in value):
        return [shape_of(part) for part in value]
    return []


def shapes_of(inputs):
    shapes = [shape_of(value) for value in inputs]
    while shapes and not shapes[-1]:
        shapes.pop()
    return json.dumps(shapes)


class WholeProgram:
    """Instead of the counter's own tracker of modules, which hooks every module."""
    parents = ('Global',)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class FlopCheck:
    """begin() and end() at step boundaries, on the thread of the step."""

    def __init__(self, torch, domain):
        self._torch, self._domain = torch, domain
        self._counter = None
        self._counts = {}
        self._failures = set()
        self.is_done = False

    def begin(self, compiles):
        if self.is_done:
            return
        self.is_done = True
        if compiles:
            agent.note('no FLOP check: the program compiles, and a dispatch mode would change what it compiles')
            return
        from torch.utils.flop_counter import FlopCounterMode
        counter = FlopCounterMode(display=False)
        counter.mod_tracker = WholeProgram()
        counter._count_flops = self._count
        counter.__enter__()
        # Those without a formula would be refused: the program's step would fail.
        counter.mode._handle_higher_order_ops = self._run_higher_order
        self._counter = counter
        agent.note('in the step of the FLOP check operators are seen twice, and slower')
        agent.mark(self._domain, agent.name(agent.FLOP_CHECK_MARK), b'')

    @property
    def is_open(self):
        return self._counter is not None

    def end(self):
        """A mode leaves from the top of a stack: not while one that the program entered lies on it."""
        if self._counter is None or not self._is_on_top():
            return
        counter, self._counter = self._counter, None
        counter.__exit__(None, None, None)
        for failure in sorted(self._failures):
            agent.note(f'FLOP check: {failure}')
        rows = [Count(operator=name, shapes=shapes, calls=calls, flops=flops)
                for (name, shapes), (calls, flops) in self._counts.items()]
        load('lines').send(self._domain, agent.name(agent.FLOP_CHECK_MARK),
                           rows or [Count(operator='', shapes='[]', calls=0, flops=0)])

    def _is_on_top(self):
        from torch.utils import _python_dispatch
        current = getattr(_python_dispatch, '_get_current_dispatch_mode', None)
        return current is None or current() is self._counter.mode

    def _count(self, operator, out, inputs, named):
        """In the counter's place: by shapes, and no failure of a formula reaches the program."""
        try:
            formula = self._counter.flop_registry.get(operator)
            if formula is not None:
                key = (str(operator).replace('.', '::', 1), shapes_of(inputs))
                calls, flops = self._counts.get(key, (0, 0))
                self._counts[key] = calls + 1, flops + int(formula(*inputs, **named, out_val=out))
        except Exception as failure:
            self._failures.add(f'{operator}: {failure!r}'[:200])
        return out

    def _run_higher_order(self, function, types, inputs, named):
        return self._count(function, function(*inputs, **named), inputs, named)
