"""Waits for torch to be imported, then installs the hooks.

Executed once by the agent, in a namespace of its own, with `sources` ({module: text}) and `functions`
(what the agent offers, agent/sources/torch/torch_functions.cc). Nothing of ours may raise into the
program or print: what goes wrong is counted and named in RANKTAP_LOG.
"""
import sys
import types

own_code = sys._getframe().f_code


def load(name):
    """A module of ours from its embedded source, as `_ranktap.<name>`."""
    full = f'_ranktap.{name}'
    if full not in sys.modules:
        module = types.ModuleType(full)
        module.agent = types.SimpleNamespace(**functions)
        module.load = load
        code = compile(sources[name], f'<ranktap/{name}.py>', 'exec')
        exec(code, module.__dict__)
        sys.modules[full] = module
        try:
            hide_from_dynamo(code)
        except Exception as failure:
            functions['contained'](f'hiding {name} from dynamo: {failure!r}')
    return sys.modules[full]


def hide_from_dynamo(code):
    """Dynamo compiles every function that a compiled program enters, and so what we run in its hooks. A hook that it
    traces into is traced all the same."""
    dynamo = sys.modules.get('torch._C._dynamo.eval_frame')
    if hasattr(dynamo, 'set_code_exec_strategy'):
        skip, default = dynamo._FrameAction.SKIP, dynamo._FrameAction.DEFAULT
        dynamo.set_code_exec_strategy(code, dynamo._FrameExecStrategy(skip, default))
    elif hasattr(dynamo, 'skip_code'):  # PyTorch before 2.7
        dynamo.skip_code(code)
    else:
        return
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            hide_from_dynamo(part)


def install():
    try:
        hide_from_dynamo(own_code)
        load('hooks').install(sys.modules['torch'])
    except Exception as failure:
        functions['contained'](f'the hooks for torch: {failure!r}')


def run_and_install(exec_module, module):
    exec_module(module)
    install()


class Finder:
    """First in sys.meta_path until torch is there."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != 'torch':
            # torch was half imported when we came: its own imports bring us here until it is done.
            if is_loaded():
                cls.leave()
                install()
            return None
        cls.leave()
        for finder in sys.meta_path:
            spec = getattr(finder, 'find_spec', lambda *_: None)(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, 'exec_module'):
                    spec.loader = load('imports').Loader(spec.loader, run_and_install)
                return spec
        return None

    @classmethod
    def leave(cls):
        if cls in sys.meta_path:
            sys.meta_path.remove(cls)


def is_loaded():
    torch = sys.modules.get('torch')
    return torch is not None and not getattr(getattr(torch, '__spec__', None), '_initializing', False)


if is_loaded():
    install()
else:
    sys.meta_path.insert(0, Finder)
