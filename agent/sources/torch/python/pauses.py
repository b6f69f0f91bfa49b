"""What stops a training loop beside its own work: Python's garbage collection and saved checkpoints,
as phases.

`agent`: agent.pyi.
"""
import functools
import gc
import sys
import threading

# (module, functions); what is not imported yet is looked for again at each step.
SAVES = (('torch', ('save',)), ('torch.serialization', ('save',)),
         ('torch.distributed.checkpoint', ('save', 'save_state_dict', 'async_save')),
         ('torch.distributed.checkpoint.state_dict_saver', ('save', 'save_state_dict', 'async_save')))


class Pauses:
    def __init__(self, domain):
        self._domain = domain
        self._wrapped = set()
        self._inside = threading.local()

    def start(self):
        collection = agent.name(agent.COLLECTION_PHASE)
        push, pop, domain = agent.push, agent.pop, self._domain
        is_ending = sys.is_finalizing

        def on_collection(phase, info):
            # The interpreter's last ones take 100 ms and more of all that PyTorch has: they stop no loop.
            if is_ending():
                return
            if phase == 'start':
                push(domain, collection, info['generation'])
            else:
                pop(domain)

        gc.callbacks.append(on_collection)
        self.look()

    def look(self):
        for name, functions in SAVES:
            module = sys.modules.get(name)
            if module is None or name in self._wrapped:
                continue
            self._wrapped.add(name)
            for function in functions:
                original = getattr(module, function, None)
                if callable(original) and not hasattr(original, '__wrapped_by_ranktap__'):
                    setattr(module, function, self._timed(original))

    def _timed(self, original):
        """A save inside of another is part of it."""
        inside, domain, name = self._inside, self._domain, agent.name(agent.CHECKPOINT_PHASE)

        @functools.wraps(original)
        def save(*arguments, **named):
            if getattr(inside, 'yes', False):
                return original(*arguments, **named)
            inside.yes = True
            agent.push(domain, name)
            try:
                return original(*arguments, **named)
            finally:
                agent.pop(domain)
                inside.yes = False

        vars(save)['__wrapped_by_ranktap__'] = True
        return save
