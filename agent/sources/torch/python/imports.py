"""What our finders put into sys.meta_path hand out."""


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
