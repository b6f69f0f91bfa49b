"""Compilations by Dynamo as ranges, and the guards whose failure asked for them (kRecompilationsMark in
proto/framework_marks.h).

PyTorch has callbacks for both ends (torch._dynamo.callback) and keeps why in its metrics of the last 64.

`agent`: agent.pyi; `load`: loader.py.
"""
import collections
import sys

guarded = load('guard').guarded

Row = collections.namedtuple('Row', agent.RECOMPILATIONS_ROW)

MOST_CHARACTERS = 300


class Compilations:
    def __init__(self, process):
        self._process = process
        self._range = None
        self._begin, self._end = guarded(self._on_begin), guarded(self._on_end)

    def look(self):
        """torch._dynamo.reset() forgets callbacks."""
        handler = getattr(sys.modules.get('torch._dynamo.callback'), 'callback_handler', None)
        if handler is not None and self._begin not in handler.start_callbacks:
            handler.register_start_callback(self._begin)
            handler.register_end_callback(self._end)

    def _on_begin(self, _):
        if self._process.state:
            self._range = agent.open(self._process.domains[agent.PHASE_DOMAIN], agent.name(agent.COMPILATION_PHASE), 0)

    def _on_end(self, _):
        ended, self._range = self._range, None
        if ended is not None:
            agent.close(ended)

    def tell(self):
        """As the program ends."""
        metrics = getattr(sys.modules.get('torch._dynamo.utils'), 'get_compilation_metrics', None)
        if metrics is None or not self._process.state:
            return
        counts = collections.Counter()
        for of in metrics():
            reason = getattr(of, 'recompile_reason', None)
            if reason:
                place = f'{of.co_filename}({of.co_firstlineno}): {of.co_name}'
                counts[place, ' '.join(reason.split())[:MOST_CHARACTERS]] += 1
        rows = [Row(place=place, reason=reason, count=count) for (place, reason), count in counts.items()]
        load('lines').send(self._process.domains[agent.OPERATOR_DOMAIN], agent.name(agent.RECOMPILATIONS_MARK), rows)
