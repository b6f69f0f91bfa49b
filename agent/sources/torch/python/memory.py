"""Memory of chosen steps: PyTorch's CPU allocator, watched natively (agent/sources/torch/torch_memory.h),
and the history that its CUDA allocator keeps itself. Beside both, what the blocks are for: the storages
of parameters, buffers, gradients and optimizer states, told while they are alive.

collector/trace/framework/framework_allocations.cc reads the marks, which proto/framework_marks.h describes.

`agent`: agent.pyi; `load`: loader.py.
"""
import collections
import json
import weakref

MOST_ENTRIES = 200_000  # of the CUDA allocator's history
BLOCK_BYTES = 512  # kMinBlockSize of c10/cuda/CUDACachingAllocator.h
MOST_FRAMES = 64
ACTIONS = {'alloc': agent.BLOCK_ALLOCATED, 'free_completed': agent.BLOCK_FREED,
           'segment_alloc': agent.SEGMENT_ALLOCATED, 'segment_map': agent.SEGMENT_ALLOCATED,
           'segment_free': agent.SEGMENT_FREED, 'segment_unmap': agent.SEGMENT_FREED}
Change = collections.namedtuple('Change', agent.HISTORY_ROW)
Failure = collections.namedtuple('Failure', agent.OUT_OF_MEMORY_ROW)


def storage_of(tensor):
    """(address, bytes, device) of a tensor's whole storage on this rank; None: it has none."""
    try:
        part = getattr(tensor, '_local_tensor', None)  # model_tree.local()
        storage = (tensor if part is None else part).untyped_storage()
        address, size = storage.data_ptr(), storage.nbytes()
        if address != 0 and size != 0 and tensor.is_cpu:
            return address, size, 0
        kind = storage.device.type
        if address == 0 or size == 0 or kind not in ('cpu', 'cuda'):
            return None
        return address, size, 0 if kind == 'cpu' else 1 + (storage.device.index or 0)
    except Exception:  # meta, sparse and subclass tensors
        return None


class Memory:
    """From open() to close(), both at step boundaries."""

    def __init__(self, torch, domain, modules, optimizers, config):
        self._torch, self._domain = torch, domain
        self._tensors = LivingTensors(torch, modules, optimizers)
        self._cuda = CudaHistory(torch, config)
        self.is_open = False

    def open(self):
        if self.is_open:
            self._send_history(self._cuda.read())
            return
        if not agent.watch_memory(self._domain):
            agent.note("no memory of the CPU: this PyTorch's allocator does not report to itself")
        self._cuda.start()
        agent.mark(self._domain, agent.name(agent.WINDOW_MARK), b'1')
        self.is_open = True
        self.tell()

    def close(self):
        if not self.is_open:
            return
        self.is_open = False
        self.tell()
        agent.mark(self._domain, agent.name(agent.WINDOW_MARK), b'0')
        agent.watch_memory(0)
        self._send_history(self._cuda.stop())

    def _send_history(self, rows):
        if rows:
            load('lines').send(self._domain, agent.name(agent.HISTORY_MARK), rows)

    def tell(self):
        """What lives now. Called at step boundaries and, when the gradients are there, before each
        optimizer."""
        if self.is_open:
            load('lines').send_lines(self._domain, agent.name(agent.TENSORS_MARK), self._tensors.lines())


class LivingTensors:
    """The storages of parameters, buffers, gradients and optimizer state, as rows of kTensorsRow.

    All are told each time, since an address may have been given back and taken again; but a line is written
    anew only when the address is another. Modules that come to a model are seen at every 16th time.
    """
    LEARN_EVERY = 16

    def __init__(self, torch, modules, optimizers):
        self._torch, self._modules, self._optimizers = torch, modules, optimizers
        self._plain = torch.Tensor, torch.nn.Parameter  # others may have their storage elsewhere
        self._data_ptr, self._storage = torch.Tensor.data_ptr, torch.Tensor.untyped_storage
        self._roots, self._times = None, 0
        # (module, weak; [(name, slot, gradient's slot)] of parameters, [(name, slot)] of buffers); see new_slot()
        self._places = []
        self._slots = {}   # (kind, name) -> slot
        self._states = {}  # id(parameter) -> {key: slot}
        self._names = {}   # id(parameter) -> name

    def lines(self):
        roots = [root for reference in self._modules.roots if (root := reference()) is not None]
        ids = [id(root) for root in roots]
        if ids != self._roots or self._times % self.LEARN_EVERY == 0:
            self._roots = ids
            self._learn(roots)
        self._times += 1
        lines = []
        plain, data_ptr, add = self._plain, self._data_ptr, self._add
        for reference, parameters, buffers in self._places:
            module = reference()
            if module is None:
                continue
            held = module._parameters
            for name, slot, of_gradient in parameters:
                parameter = held.get(name)
                if parameter is None:
                    continue
                gradient = parameter.grad
                if gradient is not None:
                    add(lines, gradient, of_gradient)
                # Most tensors are where they were: this is what add() does with one of them.
                if slot[0] != 0 and type(parameter) in plain and slot[0] == data_ptr(parameter):
                    lines.append(slot[1])
                else:
                    add(lines, parameter, slot)
            for name, slot in buffers:
                buffer = module._buffers.get(name)
                if buffer is not None:
                    add(lines, buffer, slot)
        for optimizer in self._optimizers.living():
            for parameter, state in list(optimizer.state.items()):
                if state and isinstance(state, dict):
                    self._add_states(lines, optimizer, parameter, state)
        return lines

    def _add_states(self, lines, optimizer, parameter, state):
        slots = self._states.setdefault(id(parameter), {})
        for key, value in state.items():
            if isinstance(value, self._torch.Tensor):
                slot = slots.get(key)
                if slot is None:
                    owner = self._names.get(id(parameter)) or type(optimizer).__name__
                    slot = slots[key] = new_slot(agent.STATE_KIND, f'{owner}.{key}')
                self._add(lines, value, slot)

    def _learn(self, roots):
        before, self._slots = self._slots, {}
        for known in (self._places, self._names, self._states):
            known.clear()

        def slot(kind, name):
            made = self._slots[kind, name] = before.get((kind, name)) or new_slot(kind, name)
            return made

        seen = set()  # each tensor has its first name only, as in named_parameters()
        for root in roots:
            text = self._modules.texts.get(id(root), type(root).__name__)
            for path, module in root.named_modules():
                prefix = f'{text}.{path}.' if path else f'{text}.'
                new = self._new(module._parameters, seen)
                self._names.update((id(module._parameters[name]), prefix + name) for name in new)
                parameters = [(name, slot(agent.PARAMETER_KIND, prefix + name),
                               slot(agent.GRADIENT_KIND, prefix + name)) for name in new]
                buffers = [(name, slot(agent.BUFFER_KIND, prefix + name))
                           for name in self._new(module._buffers, seen)]
                if parameters or buffers:
                    self._places.append((weakref.ref(module), parameters, buffers))

    @staticmethod
    def _new(tensors, seen):
        names = [name for name, tensor in tensors.items() if tensor is not None and id(tensor) not in seen]
        seen.update(id(tensors[name]) for name in names)
        return names

    def _add(self, lines, tensor, slot):
        if type(tensor) not in self._plain:
            found = storage_of(tensor)
            if found is not None:
                lines.append(b'[%d,%d,"%c",%d,%b' % (*found[:2], slot[2], found[2], slot[3]))
            return
        try:
            address = self._data_ptr(tensor)
            if slot[0] != address or address == 0:
                # As storage_of(), at a third of its time: gradients are elsewhere in each step.
                storage = self._storage(tensor)
                where, size = storage.data_ptr(), storage.nbytes()
                device = 0 if tensor.is_cpu else self._device_of(storage)
                if where == 0 or size == 0 or device is None:
                    return
                slot[0], slot[1] = address, b'[%d,%d,"%c",%d,%b' % (where, size, slot[2], device, slot[3])
            lines.append(slot[1])
        except RuntimeError:  # sparse
            return

    @staticmethod
    def _device_of(storage):
        return 1 + (storage.device.index or 0) if storage.device.type == 'cuda' else None


def new_slot(kind, name):
    """[address of the tensor, its line, kind, end of the line]: a line made so takes a tenth of the time."""
    return [0, b'', ord(kind), json.dumps(name).encode() + b']']


class CudaHistory:
    """The CUDA caching allocator's own history, where there is one and the program does not use it. Read at
    each step boundary, what is new of it. With RANKTAP_STACKS=all each allocation has its Python stack, which
    takes PyTorch about 2 us."""

    def __init__(self, torch, config):
        self._torch, self._config = torch, config
        self._memory = None
        self._seen = {}  # device -> (entries read, time in us of the last)
        self._is_full = False

    def start(self):
        torch = self._torch
        try:
            if not torch.cuda.is_initialized():
                return
            memory = torch.cuda.memory
            if not (hasattr(memory, '_record_memory_history') and hasattr(memory, '_snapshot')):
                agent.note('no memory of the GPU: this PyTorch keeps no history of its allocations')
                return
            enabled = getattr(torch._C, '_cuda_isHistoryEnabled', None)
            if enabled is not None and enabled():
                agent.note('no memory of the GPU: the program records the history of its allocations itself')
                return
            memory._record_memory_history(enabled='all', context='alloc' if self._config['python_stacks'] else None,
                                          stacks='python', max_entries=MOST_ENTRIES)
            self._memory = memory
            self._seen.clear()
            for index, entries in enumerate(memory._snapshot().get('device_traces', ())):
                self._advance(index, entries)  # a history from before: of the program's, or of our last window
        except Exception as failure:
            agent.note(f'no memory of the GPU: {failure!r}')

    def read(self):
        """Rows of what happened since the last call."""
        return [] if self._memory is None else self._changes(self._memory._snapshot())

    def stop(self):
        memory, self._memory = self._memory, None
        if memory is None:
            return []
        try:
            snapshot = memory._snapshot()
        finally:
            memory._record_memory_history(enabled=None)
        return [*self._held(snapshot), *self._changes(snapshot)]

    @staticmethod
    def _held(snapshot):
        for segment in snapshot['segments']:
            device = 1 + segment['device']
            yield Change(device=device, time_us=0, action=agent.SEGMENT_ALLOCATED, address=segment['address'],
                         bytes=segment['total_size'], stack='')
            address = segment['address']
            for block in segment['blocks']:
                address = block.get('address', address)
                if block['state'].startswith('active'):
                    yield Change(device=device, time_us=0, action=agent.BLOCK_HELD, address=address,
                                 bytes=block['size'], stack=stack_of(block))
                address += block['size']

    def _changes(self, snapshot):
        for index, entries in enumerate(snapshot.get('device_traces', ())):
            for entry in self._advance(index, entries):
                action = ACTIONS.get(entry['action'])
                if action is not None:
                    yield Change(device=1 + index, time_us=entry.get('time_us', 0), action=action,
                                 address=entry.get('addr', 0), bytes=given_out(entry['size']), stack=stack_of(entry))

    def _advance(self, index, entries):
        """The entries that were not read yet. PyTorch keeps the last MOST_ENTRIES, in order; once there are
        as many, only times tell."""
        read, last = self._seen.get(index, (0, 0))
        if len(entries) < MOST_ENTRIES and read <= len(entries):
            new = entries[read:]
        else:
            new = [entry for entry in entries if entry.get('time_us', 0) > last]
            if len(new) == len(entries) and not self._is_full:
                self._is_full = True
                agent.note(f'of the GPU\'s allocations the last {MOST_ENTRIES} of each step are there')
        if entries:
            self._seen[index] = len(entries), entries[-1].get('time_us', 0)
        return new


def given_out(size):
    """The history has what was asked for. PyTorch gives out, and counts, multiples of 512 bytes: the peak of a
    training beside an H200 was torch.cuda's to the byte. The rest of a large block that is too small to be cut
    off is not told."""
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES


def stack_of(entry):
    """Python frames, the innermost first, as torch.profiler writes them."""
    return ';'.join(f"{frame['filename']}({frame['line']}): {frame['name']}"
                    for frame in entry.get('frames', ())[:MOST_FRAMES])


class OutOfMemory:
    """Allocations that failed, in windows and outside of them, on the CPU and on the GPU. The CPU's marks
    come from torch_memory.h."""

    def __init__(self, torch, domain):
        self._torch, self._domain = torch, domain
        self._is_attached = False

    def start(self):
        agent.watch_out_of_memory(self._domain, agent.name(agent.OUT_OF_MEMORY_MARK))

    def look(self):
        """PyTorch takes an observer only once CUDA is there, and never gives it back."""
        attach = getattr(self._torch._C, '_cuda_attach_out_of_memory_observer', None)
        if self._is_attached or attach is None or not self._torch.cuda.is_initialized():
            return
        self._is_attached = True
        attach(self._on_failure)

    def _on_failure(self, device, asked, held, free):
        try:
            load('lines').send(self._domain, agent.name(agent.OUT_OF_MEMORY_MARK),
                               [Failure(device=1 + device, asked=asked, held=held, free=free)])
        except Exception as failure:
            agent.contained(f'telling of an allocation that failed: {failure!r}')
