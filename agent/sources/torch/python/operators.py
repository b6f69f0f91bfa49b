"""Operators of chosen steps, with shapes and types, from a callback of the agent's at at::RecordFunction
(agent/sources/torch/torch_operators.h), where it finds its way in this PyTorch. Else their times are from
PyTorch's NVTX profiler state, which calls straight into our ring, and shapes and types from its
ExecutionTraceObserver, joined by id, at many times the cost.

The state is entered directly: torch.autograd.profiler.emit_nvtx would synchronise the device. Either covers
the thread of the step and the autograd threads that inherit from it; threads that the program made
itself are missing.

`agent`: agent.pyi; `load`: loader.py.
"""
import collections
import ctypes
import gc
import json
import os
import sys
import threading

MOST_BYTES = 256 << 20  # of an execution trace; beyond it shapes are dropped and the trace says so
Row = collections.namedtuple('Row', agent.OPERATORS_ROW)
FULL = 2  # of config()['tensors']
# Only formulas of FLOPs look at values: those of others would be most of the bytes.
WITH_VALUES = ('aten::conv', 'aten::_conv', 'aten::batch_norm')


class QuietLog:
    """PyTorch announces the observer on stderr; the program did not ask for that."""

    def __init__(self, torch):
        try:
            library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), 'lib', 'libc10.so'),
                                  mode=os.RTLD_NOLOAD)
            self._level = ctypes.c_int.in_dll(library, 'FLAGS_caffe2_log_level')
        except (OSError, ValueError, AttributeError):
            self._level = None

    def __enter__(self):
        if self._level is not None:
            self._before = self._level.value
            self._level.value = max(self._before, 2)  # errors only

    def __exit__(self, *_):
        if self._level is not None:
            self._level.value = self._before

    @property
    def works(self):
        return self._level is not None


class CollectorPaused:
    """No garbage collection meanwhile: over the objects of an execution trace it takes most of the time."""

    def __enter__(self):
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_):
        if self._was_enabled:
            gc.enable()


def can_observe(torch):
    """Whether the agent finds an operator's inputs in this PyTorch. It looks for them while operators run
    that have known ones, see LayoutProbe in agent/sources/torch/torch_layout.h."""
    stacks = (getattr(torch._C, name, None) for name in ('_len_torch_dispatch_stack', '_len_torch_function_stack'))
    if any(length is not None and length() for length in stacks):
        return False  # the program looks at operators itself, and would see ours
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast('cpu', enabled=False):
        def tensor(*sizes, dtype=torch.float32):
            return torch.zeros(sizes, dtype=dtype, device='cpu')

        x, weight = tensor(3, 5, 17, 19).requires_grad_(), tensor(7, 5, 3, 3)
        others = tensor(1, dtype=torch.float64), tensor(1, dtype=torch.int64), tensor(1, dtype=torch.bfloat16)
        kept = (x, weight, *others, tensor(2, 1, 3, 1, 2, 7))
        if not agent.probe_operators(*(each._cdata for each in kept)):
            return False
        sequences = [0, 0]
        try:
            outputs = [torch.convolution(x, weight, None, [2, 3], [4, 5], [1, 1], False, [0, 0], 1)
                       for _ in range(2)]
            sequences = [output.grad_fn._sequence_nr() for output in outputs]
            torch.dropout(x, 0.5, False)
            # They live until they are looked at, in probed_operators().
            kept = kept, probe_tensors(torch, outputs), probe_values(torch, x)
        finally:
            found = agent.probed_operators(*sequences)
        return bool(found)


def probe_tensors(torch, outputs):
    """Where operators keep what they return, and tensors their memory: what RANKTAP_TENSORS=1 needs."""
    try:
        bytes_of_our_own = bytearray(64)
        borrowed = torch.frombuffer(bytes_of_our_own, dtype=torch.float32)
        own, other = outputs[0].untyped_storage(), borrowed.untyped_storage()
        first, second = (output._cdata for output in outputs)
        agent.probed_tensors(first, second, first, own._cdata, own.data_ptr(), borrowed._cdata, other._cdata,
                             other.data_ptr())
        return own, other, borrowed
    except (AttributeError, TypeError, RuntimeError):
        return ()  # a PyTorch without one of these: operators have no tensors


def probe_values(torch, x):
    """Where strides, offsets, texts and devices are: what RANKTAP_TENSORS=full needs. See ValueProbe."""
    try:
        base = torch.zeros(200, device='cpu')
        turned = torch.zeros((2, 3, 7), device='cpu').permute(2, 0, 1)
        kept = base[37:], base[61:], turned, torch.empty(1, device='meta')
        torch.nn.functional.gelu(x.detach(), approximate='tanh')
        agent.probed_values(*(each._cdata for each in kept))
        return kept
    except (AttributeError, TypeError, RuntimeError, NotImplementedError):
        return ()  # values_not_found() says what this PyTorch lacks


class OwnCallback:
    """Whether the agent's callback works in this PyTorch. It looks once, while nobody would see it look."""

    def __init__(self, torch):
        self._torch = torch
        self._works = None

    def works(self):
        if self._works is None and not self._torch.autograd._profiler_enabled():
            self._works = False
            try:
                self._works = can_observe(self._torch)
            except Exception as failure:
                agent.note(f"operators by PyTorch's own observers: {failure!r}")
        return bool(self._works)


class Window:
    """Operators from open() to close(), on the thread that calls both. open() again at each step."""

    def __init__(self, torch, domain, config, own_callback):
        self._torch, self._domain, self._config, self._own_callback = torch, domain, config, own_callback
        self._quiet = QuietLog(torch)
        self._profiler = torch.autograd.profiler
        self._originals = {}
        self._fd = None
        self._gap_since = None
        self._scopes = 0       # record_function scopes of this window that are open
        self._closing = False
        self._observes = False  # by the agent's own callback, beside any profiler of the program's
        self.is_open = False

    def open(self):
        torch = self._torch
        if self.is_open:  # a later step of the window, or the next cycle begins before the last has ended
            self._closing = False
            return
        self._observes = self._own_callback.works()
        if not self._observes and torch.autograd._profiler_enabled():
            self._gap_since = self._gap_since or agent.now()
            return
        self._end_gap()
        if self._start():
            self.is_open = True
            if not self._observes:
                self._watch_for_profilers()
            self._watch_scopes()

    def _start(self):
        if self._observes:
            if self._config['python_stacks']:
                self._start_stacks()
            with_tensors = self._config['tensors']
            finds_tensors = agent.start_operators(self._domain, agent.name(agent.SIGNATURES_MARK), with_tensors)
            if with_tensors and not finds_tensors:
                agent.note("no outputs of operators: the agent does not find them in this PyTorch")
            if with_tensors == FULL and finds_tensors and agent.values_not_found():
                agent.note(agent.values_not_found())
            return True
        return self._start_pytorchs()

    def _start_stacks(self):
        """Python stacks, with the names of files as torch.profiler writes them: from the folder on that
        Python found them in."""
        prefixes = sorted({os.path.join(path, '') for path in map(str, sys.path) if path}, key=len, reverse=True)
        has_lock = getattr(sys, '_is_gil_enabled', lambda: True)()
        if not has_lock:
            agent.note('no Python stacks of operators: this Python has no interpreter lock')
        elif not agent.start_stacks(self._domain, agent.name(agent.STACKS_MARK), '\n'.join(prefixes)):
            agent.note('no Python stacks of operators: this Python (before 3.9) or this PyTorch does not allow it')

    def _start_pytorchs(self):
        """PyTorch's NVTX state and execution trace observer."""
        torch = self._torch
        if self._config['tensors']:
            agent.note("no outputs and values of operators: they are not recorded by the agent's own callback here")
        state = torch._C._profiler
        try:
            config = state.ProfilerConfig(state.ProfilerState.NVTX, False, False, False, False, False,
                                          state._ExperimentalConfig())
        except TypeError:
            agent.note('no operators: this PyTorch has another profiler configuration')
            return False
        self._open_observer()
        try:
            torch._C._autograd._enable_profiler(config, set())
        except RuntimeError as failure:  # built without CUDA: no NVTX inside
            agent.note(f'no operator times: {failure}')
            self._close_observer()
            return False
        return True

    def close_soon(self):
        """PyTorch complains on stderr when its state goes inside of a scope that began in it, and
        optimizers run their hooks in one: then when the outermost has ended."""
        if self.is_open and self._scopes:
            self._closing = True
        else:
            self.close()

    def close(self):
        self._closing = False
        self._end_gap()
        if not self.is_open:
            return
        self.is_open = False
        for (owner, name), original in self._originals.items():
            setattr(owner, name, original)
        self._originals.clear()
        if self._observes:
            agent.stop_operators()
            if self._config['tensors'] == FULL:
                with CollectorPaused():
                    load('lines').send(self._domain, agent.name(agent.SCHEMAS_MARK), schemas(self._torch))
            untaken = agent.stop_stacks()
            if untaken:
                agent.note(f'{untaken} times no Python stack of an operator was taken: there were more different ones '
                           'than a window has room for, or an exception was pending')
            return
        self._torch._C._autograd._disable_profiler()
        self._close_observer()

    def _watch_scopes(self):
        scope, window, thread = self._profiler.record_function, self, threading.get_ident()
        enter, leave = scope.__enter__, scope.__exit__
        self._originals.update({(scope, '__enter__'): enter, (scope, '__exit__'): leave})
        self._scopes = 0

        def __enter__(self):
            if threading.get_ident() == thread:
                window._scopes += 1
            return enter(self)

        def __exit__(self, *failure):
            result = leave(self, *failure)
            if threading.get_ident() == thread and window._scopes:
                window._scopes -= 1
                if window._closing and not window._scopes:
                    window.close_guarded()
            return result

        scope.__enter__, scope.__exit__ = __enter__, __exit__

    def close_guarded(self):
        try:
            self.close()
        except Exception as failure:
            agent.contained(f'closing a window: {failure!r}')

    # A profiler of the program's starts: ours leaves before it is there.
    def _watch_for_profilers(self):
        for name in ('_prepare_profiler', '_enable_profiler'):
            original = getattr(self._profiler, name, None)
            if original is not None:
                self._originals[self._profiler, name] = original
                setattr(self._profiler, name, self._yielding(original))

    def _yielding(self, original):
        def call(*arguments, **named):
            try:
                if self.is_open:
                    self.close()
                    self._gap_since = agent.now()
            except Exception as failure:
                agent.contained(f'yielding to another profiler: {failure!r}')
            return original(*arguments, **named)
        return call

    def _end_gap(self):
        if self._gap_since is not None and not self._torch.autograd._profiler_enabled():
            agent.gap(self._gap_since, agent.now(), 'a torch profiler of the program was on')
            self._gap_since = None

    def _open_observer(self):
        profiler = self._torch.profiler.profiler
        add = getattr(profiler, '_add_execution_trace_observer', None)
        if add is None or not self._quiet.works:
            agent.note('no shapes of operators: this PyTorch has no execution trace observer that we can use')
            return
        fd = os.memfd_create('ranktap-operators', os.MFD_CLOEXEC)
        with self._quiet:
            if not add(f'/proc/self/fd/{fd}'):  # the program has one of its own
                os.close(fd)
                agent.note('no shapes of operators: the program observes its execution trace itself')
                return
            profiler._enable_execution_trace_observer()
        self._fd = fd

    def _close_observer(self):
        if self._fd is None:
            return
        profiler = self._torch.profiler.profiler
        with self._quiet:
            profiler._disable_execution_trace_observer()
            profiler._remove_execution_trace_observer()
        fd, self._fd = self._fd, None
        size = os.fstat(fd).st_size
        try:
            if size > MOST_BYTES:
                agent.note(f'no shapes of operators: {size >> 20} MiB of them in one window')
                return
            text = os.pread(fd, size, 0)
        finally:
            os.close(fd)
        with CollectorPaused():
            load('lines').send(self._domain, agent.name(agent.OPERATORS_MARK), compact(json.loads(text)))


def schemas(torch):
    """Of the operators that were seen with values, what the dispatcher says: name, overload, schema."""
    of_operator = getattr(torch._C, '_jit_get_schemas_for_operator', None)
    for entry in agent.operator_names().split('\0') if of_operator is not None else ():
        name, told, overload = entry.partition('\n')
        found = of_operator(name) if '::' in name else []
        if told:
            found = [schema for schema in found if schema.overload_name == overload]
        if len(found) == 1:
            yield name, found[0].overload_name, str(found[0])


def type_of(text):
    """A type as torch.profiler writes it, from the observer's."""
    if text.startswith('Tensor('):
        return text[len('Tensor('):-1]
    if text.startswith('GenericList['):
        return 'TensorList' if 'Tensor' in text else 'ScalarList'
    return '' if text == 'None' else 'Scalar'


def values_of(node, types):
    """Values as torch.profiler writes them: texts, empty for tensors and None."""
    return [json.dumps(value) if kind.startswith('Scalar') else ''
            for kind, value in zip(types, node['inputs']['values'])]


def compact(trace):
    """Rows of operators; shapes, types and values as torch.profiler's JSON (Input Dims, Input type, Concrete
    Inputs)."""
    known_types = {}  # most operators have the types of another
    for node in trace['nodes']:
        attributes = {entry['name']: entry['value'] for entry in node['attrs']}
        operator = attributes.get('rf_id', 0)
        if operator == 0:
            continue
        inputs = node['inputs']
        key = tuple(inputs['types'])
        known = known_types.get(key)
        if known is None:
            types = [type_of(text) for text in key]
            known = known_types[key] = types, json.dumps(types)
        has_values = node['name'].startswith(WITH_VALUES)
        # str() writes a list of numbers as json.dumps() does, in a tenth of the time.
        yield Row(id=operator, forward_thread=attributes.get('fw_tid', 0), scope=attributes.get('scope', 0),
                  shapes=str(inputs['shapes']), types=known[1],
                  values=json.dumps(values_of(node, known[0])) if has_values else '')
