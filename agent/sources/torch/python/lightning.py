"""The steps of a LightningModule, training_step and its like, as calls of the module.

Lightning's Strategy calls them past Module.__call__ where nothing wraps the module, and through the wrapper else. So
the Strategy's methods are replaced (agent/sources/torch/torch_lightning.h), as they are imported: when the first
step has begun it is too late to name what runs in it.

`agent`: agent.pyi; `load`: loader.py.
"""
import sys
import types

guarded = load('guard').guarded

STRATEGIES = 'lightning.pytorch.strategies.strategy', 'pytorch_lightning.strategies.strategy'
STEPS = 'training_step', 'validation_step', 'test_step', 'predict_step'


class Lightning:
    """Lightning's own methods are there while nothing is recorded, as Module.__call__ is."""

    def __init__(self, process):
        self._process = process
        self._steps = []  # of (class, name, Lightning's own, ours)
        self._replace = guarded(self._replace_steps)

    def install(self):
        for name in STRATEGIES:
            if name in sys.modules:
                self._replace(sys.modules[name])
            else:
                load('imports').Watch(name, self._run).install()

    def _run(self, exec_module, module):
        exec_module(module)
        self._replace(module)

    def _replace_steps(self, module):
        strategy = getattr(module, 'Strategy', None)
        originals = [vars(strategy).get(name) if isinstance(strategy, type) else None for name in STEPS]
        if not all(isinstance(original, types.FunctionType) for original in originals):
            self._process.note(f'LightningModules are not roots: {module.__name__} is not as we know it')
            return
        calls = [agent.step_call(original) for original in originals if original]
        if None in calls:
            self._process.note('LightningModules are not roots: torch.nn.Module.__call__ is not ours')
            return
        for name, original, call in zip(STEPS, originals, calls):
            setattr(strategy, name, call)
            self._steps.append((strategy, name, original, call))

    def sleep(self):
        for strategy, name, original, call in self._steps:
            if vars(strategy).get(name) is call:
                setattr(strategy, name, original)

    def wake(self):
        for strategy, name, original, call in self._steps:
            if vars(strategy).get(name) is original:
                setattr(strategy, name, call)
