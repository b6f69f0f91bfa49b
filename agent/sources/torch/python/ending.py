"""The exception that ended the program (kEndingMark in proto/framework_marks.h).

Python keeps it in sys.last_value before it prints the traceback, and so before atexit. Nothing of ours is in
sys.excepthook, which programs replace and compare.

`agent`: agent.pyi; `load`: loader.py.
"""
import collections
import sys
import types

Ending = collections.namedtuple('Ending', agent.ENDING_ROW)

MOST_CHARACTERS = 300
MOST_FRAMES = 64
PLAIN = (str, bytes, int, float, type(None))


def message_of(value):
    """As the traceback has it. Text that only code of the program could make stays unsaid: it ran once."""
    is_own = not isinstance(type(value).__str__, types.WrapperDescriptorType)
    if is_own or not all(type(part) in PLAIN for part in value.args):
        return ''
    return str(value)[:MOST_CHARACTERS]


def frames_of(traceback):
    """The innermost first."""
    frames = collections.deque(maxlen=MOST_FRAMES)
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.appendleft(f'{code.co_filename}({traceback.tb_lineno}): {code.co_name}')
        traceback = traceback.tb_next
    return list(frames)


def tell(process):
    value = getattr(sys, 'last_value', None)
    if not process.state or not isinstance(value, BaseException) or isinstance(value, SystemExit):
        return
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == 'builtins' else f'{kind.__module__}.{kind.__qualname__}'
    row = Ending(type=name, message=message_of(value), frames=frames_of(getattr(sys, 'last_traceback', None)))
    load('lines').send(process.domains[agent.STEP_DOMAIN], agent.name(agent.ENDING_MARK), [row._asdict()])
