"""Failures of ours end here.

`agent`: agent.pyi.
"""


def guarded(function):
    """The function, whose exceptions are counted. KeyboardInterrupt and SystemExit are the program's."""

    def call(*arguments):
        try:
            return function(*arguments)
        except Exception as failure:
            agent.contained(f'{getattr(function, "__qualname__", function)}: {failure!r}')
            return None

    return call
