"""A range for each forward of a module.

Global hooks would take PyTorch through the slow way of Module.__call__, 1.5 us before they have done
anything. So Module.__call__ is replaced by a function of the agent's that calls PyTorch's own
(agent/sources/torch/torch_modules.h). Dynamo cannot look into it: before it traces anything, PyTorch's
own is put back and hooks take over, for good.

PyTorch's own is there too while nothing is recorded, from the end of the first such step: ours would cost
each module 0.3 us (sleep, wake).

`agent`: agent.pyi; `load`: loader.py.
"""
import sys
import types
import weakref

guarded = load('guard').guarded


class Modules:
    """Named from the root: `ResNet.layer1.0.conv1`. The root is the module that runs while no other
    does; names are those of `named_modules`."""

    def __init__(self, torch, process, on_root_output):
        self._torch, self._process = torch, process
        self._root_done = guarded(on_root_output)
        self.names = {}       # id(module) -> the agent's name of it; 0: not recorded
        self._alive = {}      # id(module) -> weak reference that removes both
        self.texts = {}       # id(module) -> qualified name
        self._root = None     # weak reference to the last root
        self.roots = []       # weak references to all of them
        self._own_call = None
        self._is_asleep = False
        self.compiles = False  # dynamo was used
        self.on_compile = []  # called when dynamo is used for the first time
        self.with_call = []   # what sleeps and wakes as Module.__call__ does

    def install(self):
        if not self._replace_call():
            self._install_hooks()

    def _replace_call(self):
        module = self._torch.nn.Module
        self._original = module.__dict__.get('__call__')
        has_lock = getattr(sys, '_is_gil_enabled', lambda: True)()
        if not isinstance(self._original, types.FunctionType) or not has_lock:
            return False
        self._wake = guarded(self.wake)
        self._own_call = agent.module_call(module, self._original, guarded(self._first_seen),
                                           self._root_done)
        if self._own_call is None:
            return False
        module.__call__ = self._own_call
        DynamoWatch(self).install()
        return True

    def with_pytorchs_call(self, function, *arguments, **named):
        """Calls the function while Module.__call__ is PyTorch's own."""
        module = self._torch.nn.Module
        is_ours = module.__dict__.get('__call__') is self._own_call
        if is_ours:
            module.__call__ = self._original
        try:
            return function(*arguments, **named)
        finally:
            if is_ours:
                module.__call__ = self._own_call

    def sleep(self):
        """Who has replaced the call after us calls ours, which stays."""
        module = self._torch.nn.Module
        if self._own_call is not None and module.__dict__.get('__call__') is self._own_call:
            if agent.wake_by(self._wake):
                self._is_asleep = True
                module.__call__ = self._original
                for part in self.with_call:
                    part.sleep()

    def wake(self):
        if not self._is_asleep:
            return
        self._is_asleep = False
        agent.wake_by(None)
        agent.record_labels(self._process.domains[agent.LABEL_DOMAIN])
        for part in self.with_call:
            part.wake()
        module = self._torch.nn.Module
        if self._own_call is None:
            return
        if module.__dict__.get('__call__') is self._original:
            module.__call__ = self._own_call
        elif module.__dict__.get('__call__') is not self._own_call:
            agent.note('no modules any more: the program has replaced torch.nn.Module.__call__')

    def switch_to_hooks(self):
        self.compiles = True
        for listener in self.on_compile:
            listener()
        self.wake()
        module = self._torch.nn.Module
        # Code that replaced it after us calls ours, which goes on.
        if self._own_call is not None and module.__dict__.get('__call__') is self._own_call:
            module.__call__ = self._original
            self._own_call = None
            self._install_hooks()

    def _install_hooks(self):
        hooked = self._torch.nn.modules.module
        before, after = self._make_hooks()
        handles = [hooked.register_module_forward_pre_hook(before)]
        try:  # also when the forward raises: torch 2.0
            handles.append(hooked.register_module_forward_hook(after, always_call=True))
        except TypeError:
            handles.append(hooked.register_module_forward_hook(after))
        hide_from_compile_warning(hooked, {handle.id for handle in handles})

    def _make_hooks(self):
        known, enter, leave, root_begins = self.names.get, agent.enter, agent.exit, agent.root_begins
        first_seen, root_done = guarded(self._first_seen), self._root_done
        # Under dynamo these are True and the hooks trace to nothing: no graph break, no range
        # inside of a compiled graph.
        compiler = getattr(self._torch, 'compiler', None)
        is_compiling = getattr(compiler, 'is_dynamo_compiling', None) or getattr(
            compiler, 'is_compiling', None) or (lambda: False)

        def before(module, inputs):
            if is_compiling():
                return
            name = known(id(module))
            if name is None:
                first_seen(module)
                name = known(id(module))
            if name:
                root_begins(module)
                enter(module, name)

        def after(module, inputs, output):
            if not is_compiling() and known(id(module)) and leave(module):
                root_done(output)

        return before, after

    def _first_seen(self, module):
        if not self._process.records():
            self._set_name(id(module), 0)
            return
        if agent.depth() == 0:
            self._root = weakref.ref(module)
            self.roots.append(self._root)
            agent.look_at_next_step()
            self._name_all(module, type(module).__name__)
        else:
            root = self._root() if self._root is not None else None
            if root is not None:
                self._name_all(root, self.texts.get(id(root), type(root).__name__))
            if id(module) not in self.names:  # not registered with its parent
                self._name_all(module, type(module).__name__)

    def _name_all(self, root, text):
        for path, module in root.named_modules():
            self._name(module, f'{text}.{path}' if path else text)

    def _name(self, module, text):
        key = id(module)
        if key not in self._alive:
            def forget(_, key=key):
                for table in (self.names, self.texts, self._alive):
                    table.pop(key, None)
                agent.forget_module(key)
            self._alive[key] = weakref.ref(module, forget)
        self.texts[key] = text
        self._set_name(key, agent.name(text))

    def _set_name(self, key, name):
        self.names[key] = name
        agent.name_module(key, name)


class DynamoWatch:
    """Sees torch._dynamo come, which remembers PyTorch's Module.__call__ as it is imported, and its
    first use."""

    def __init__(self, modules):
        self._modules = modules
        self._watch = guarded(self._watch_contexts)

    def install(self):
        if 'torch._dynamo' in sys.modules:
            self._watch()
        else:
            load('imports').Watch('torch._dynamo', self._run, self._modules.switch_to_hooks).install()

    def _run(self, exec_module, module):
        self._modules.with_pytorchs_call(exec_module, module)
        self._watch()

    def _watch_contexts(self):
        context = getattr(sys.modules.get('torch._dynamo.eval_frame'), '_TorchDynamoContext', None)
        if context is None:
            self._modules.switch_to_hooks()
            return
        modules, original = self._modules, context.__init__

        def __init__(self, *arguments, **named):
            if type(self).__name__ != 'DisableContext':  # made by the dozen by who never compiles
                context.__init__ = original
                modules.switch_to_hooks()
            return original(self, *arguments, **named)

        context.__init__ = __init__


def hide_from_compile_warning(hooked, ours):
    """torch.compile warns on stderr when there are global hooks; not about ours."""
    if not hasattr(hooked, '_has_any_global_hook'):
        return
    tables = [table for name, table in vars(hooked).items()
              if name.startswith('_global_') and isinstance(table, dict)]

    def _has_any_global_hook():
        return any(key not in ours for table in tables for key in table)

    hooked._has_any_global_hook = _has_any_global_hook
