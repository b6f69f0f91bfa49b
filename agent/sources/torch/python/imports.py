"""Finders that we put into sys.meta_path, and what they hand out."""
import sys


class Loader:
    """Another loader, whose module `run(exec_module, module)` executes."""

    def __init__(self, loader, run):
        self._loader, self._run = loader, run

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # The module keeps the loader it would have had without us.
        module.__spec__.loader = module.__loader__ = self._loader
        self._run(self._loader.exec_module, module)


class Watch:
    """A finder that has `run(exec_module, module)` execute one module as it is imported for the first time."""

    def __init__(self, name, run, on_other_loader=lambda: None):
        """on_other_loader: called where nobody can stand in between."""
        self._name, self._run, self._on_other_loader = name, run, on_other_loader

    def install(self):
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = getattr(finder, 'find_spec', lambda *_: None)(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, 'exec_module'):
                    spec.loader = Loader(spec.loader, self._run)
                else:
                    self._on_other_loader()
                return spec
        return None
