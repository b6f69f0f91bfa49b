"""Labels of record_function: its two methods are the agent's, around PyTorch's own.

A callback sees them too, and those of C++, but takes 0.11 us of each node of the backward pass. So there is one only
where the methods cannot be ours, as soon as dynamo or TorchScript may look into them, and beside gloo, whose sends
and receives are labels of C++.

`agent`: agent.pyi; `load`: loader.py.
"""
import functools
import sys
import types

guarded = load('guard').guarded

METHODS = '__enter__', '__exit__'
# What looks at the methods of a class that TorchScript is to compile.
COMPILERS = (('torch._jit_internal', 'can_compile_class'), ('torch.jit._script', '_compile_and_register_class'),
             ('torch.jit._recursive', '_compile_and_register_class'))


class Labels:
    def __init__(self, torch):
        self._class = torch.autograd.profiler.record_function
        self._calls = {}  # name -> (PyTorch's own, ours)

    def install(self):
        if not self._replace_methods():
            agent.watch_labels()

    def _replace_methods(self):
        originals = [vars(self._class).get(name) for name in METHODS]
        has_lock = getattr(sys, '_is_gil_enabled', lambda: True)()
        compilers = [(module, name, getattr(module, name, None)) for module, name in (
            (sys.modules.get(module), name) for module, name in COMPILERS)]
        if not (has_lock and all(isinstance(original, types.FunctionType) for original in originals)
                and all(callable(compiler) for _, _, compiler in compilers)):
            return False
        calls = [agent.label_call(self._class, original, ends) for ends, original in enumerate(originals)]
        if None in calls:
            return False
        for name, original, call in zip(METHODS, originals, calls):
            self._calls[name] = original, call
            setattr(self._class, name, call)
        for module, name, compiler in compilers:
            setattr(module, name, self._switching(compiler))
        return True

    def _switching(self, compiler):
        switch = guarded(self.switch_to_callback)

        @functools.wraps(compiler)
        def call(cls, *arguments, **named):
            if isinstance(cls, type) and issubclass(cls, self._class):
                switch()
            return compiler(cls, *arguments, **named)

        return call

    def switch_to_callback(self):
        """A `with` that is open ends with the method that it began with. Who has replaced a method after us calls ours,
        which stays; then there is no callback."""
        calls, self._calls = self._calls, {}
        if all(vars(self._class).get(name) is ours for name, (_, ours) in calls.items()):
            for name, (original, _) in calls.items():
                setattr(self._class, name, original)
            if calls:
                agent.watch_labels()
