"""Memory of chosen steps: PyTorch's CPU allocator, watched natively (agent/sources/torch/torch_memory.h),
and the history that its CUDA allocator keeps itself. Beside both, what the blocks are for: the storages
of parameters, buffers, gradients and optimizer states, told while they are alive.

collector/trace/own_allocations.cc reads it. Marks in the domain `ranktap.memory`:
  "window"    payload "1" from here on everything is seen, "0" nothing any more
  "tensors"   lines [address, bytes, kind, device, name]; kind of KINDS, device 0: CPU, 1 + index: CUDA
  "history"   lines [device, time in us of CLOCK_REALTIME, action, address, bytes]; action of ACTIONS
"""
MOST_ENTRIES = 200_000  # of the CUDA allocator's history
PARAMETER, BUFFER, GRADIENT, STATE = KINDS = ('p', 'b', 'g', 's')
# 0: allocated when the window ended, whenever that was.
ACTIONS = {'alloc': 1, 'free_completed': 2, 'segment_alloc': 3, 'segment_map': 3, 'segment_free': 4,
           'segment_unmap': 4, 'oom': 5}


def storage_of(tensor):
    """(address, bytes, device) of a tensor's whole storage on this rank; None: it has none."""
    try:
        storage = load('model_tree').local(tensor).untyped_storage()
        address, size = storage.data_ptr(), storage.nbytes()
        kind = storage.device.type
        if address == 0 or size == 0 or kind not in ('cpu', 'cuda'):
            return None
        return address, size, 0 if kind == 'cpu' else 1 + (storage.device.index or 0)
    except Exception:  # meta, sparse and subclass tensors
        return None


class Memory:
    """From open() to close(), both at step boundaries."""

    def __init__(self, torch, domain, modules, steps):
        self._torch, self._domain = torch, domain
        self._modules, self._steps = modules, steps
        self._cuda = CudaHistory(torch)
        self.is_open = False

    def open(self):
        if self.is_open:
            return
        if not agent.watch_memory(self._domain, agent.name('out of memory')):
            agent.note("no memory of the CPU: this PyTorch's allocator does not report to itself")
        self._cuda.start()
        agent.mark(self._domain, agent.name('window'), b'1')
        self.is_open = True
        self.tell()

    def close(self):
        if not self.is_open:
            return
        self.is_open = False
        self.tell()
        agent.mark(self._domain, agent.name('window'), b'0')
        agent.watch_memory(0, 0)
        load('model_tree').send(self._domain, agent.name('history'), self._cuda.stop())

    def tell(self):
        """What lives now. Called at step boundaries and, when the gradients are there, before each
        optimizer."""
        if self.is_open:
            load('model_tree').send(self._domain, agent.name('tensors'), self._rows())

    def _rows(self):
        names = {}
        for reference in self._modules.roots:
            root = reference()
            if root is None:
                continue
            text = self._modules.texts.get(id(root), type(root).__name__)
            for kind, tensors in ((PARAMETER, root.named_parameters()), (BUFFER, root.named_buffers())):
                for path, tensor in tensors:
                    if kind == PARAMETER:
                        names[id(tensor)] = f'{text}.{path}'
                        yield from self._row(tensor.grad, GRADIENT, f'{text}.{path}')
                    yield from self._row(tensor, kind, f'{text}.{path}')
        for optimizer in self._steps.optimizers():
            for parameter, state in list(optimizer.state.items()):
                if not isinstance(state, dict):
                    continue
                name = names.get(id(parameter), type(optimizer).__name__)
                for key, value in state.items():
                    if isinstance(value, self._torch.Tensor):
                        yield from self._row(value, STATE, f'{name}.{key}')

    @staticmethod
    def _row(tensor, kind, name):
        found = None if tensor is None else storage_of(tensor)
        if found is not None:
            address, size, device = found
            yield [address, size, kind, device, name]


class CudaHistory:
    """The CUDA caching allocator's own history, where there is one and the program does not use it."""

    def __init__(self, torch):
        self._torch = torch
        self._memory = None

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
            # No stacks: they would cost more than all the rest of a window.
            memory._record_memory_history(enabled='all', context=None, max_entries=MOST_ENTRIES)
            self._memory = memory
        except Exception as failure:
            agent.note(f'no memory of the GPU: {failure!r}')

    def stop(self):
        memory, self._memory = self._memory, None
        if memory is None:
            return []
        try:
            snapshot = memory._snapshot()
        finally:
            memory._record_memory_history(enabled=None)
        return self._rows(snapshot)

    @staticmethod
    def _rows(snapshot):
        for segment in snapshot['segments']:
            device = 1 + segment['device']
            yield [device, 0, 3, segment['address'], segment['total_size']]
            address = segment['address']
            for block in segment['blocks']:
                address = block.get('address', address)
                if block['state'].startswith('active'):
                    yield [device, 0, 0, address, block['size']]
                address += block['size']
        for index, entries in enumerate(snapshot.get('device_traces', ())):
            for entry in entries:
                action = ACTIONS.get(entry['action'])
                if action is not None:
                    yield [1 + index, entry.get('time_us', 0), action, entry.get('addr', 0), entry['size']]
