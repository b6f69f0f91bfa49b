"""What a model is made of: for each module its class, and the parameters, buffers, gradients and
optimizer state of its own, in elements and bytes by dtype."""


def local(tensor):
    """This rank's part of a DTensor; any other tensor as it is."""
    part = getattr(tensor, '_local_tensor', None)
    return tensor if part is None else part


class ZeroShare:
    """What a rank has of a parameter that ZeRO-3 has split and left empty. Its gradients and the optimizer's state
    lie in flat tensors of many parameters, of which its share is as long as the parameter's own."""

    def __init__(self, torch, parameter):
        self.elements, self.held = elements_of(parameter), parameter.ds_tensor.numel()
        self.dtype = parameter.ds_tensor.dtype
        zero = getattr(parameter, '_z3_optimizer', None)
        flat = getattr(zero, 'grad_partitions_flat_buffer', None)
        self.gradients = [flat.dtype] if isinstance(flat, torch.Tensor) else []
        masters = getattr(zero, 'fp32_partitioned_groups_flat', [])
        states = types_of_flat_states(torch, getattr(getattr(zero, 'optimizer', None), 'state', {}))
        self.states = [masters[0].dtype, *states] if masters else states

    @staticmethod
    def of(torch, parameter):
        """None: ZeRO-3 has not split it, or it is whole just now."""
        return ZeroShare(torch, parameter) if parameter.numel() == 0 and hasattr(parameter, 'ds_tensor') else None


def master_of(torch, parameter):
    """This rank's part of the master copy that ZeRO-1 and -2 keep of a parameter; None: there is none here."""
    fragment = getattr(getattr(parameter, '_hp_mapping', None), 'hp_fragment', None)
    return fragment if isinstance(fragment, torch.Tensor) else None


def types_of_flat_states(torch, states):
    """Of what an optimizer keeps for each element, where its parameters are flat tensors of many."""
    for state in states.values():
        return [value.dtype for value in state.values() if isinstance(value, torch.Tensor) and value.dim() > 0]
    return []


def elements_of(tensor):
    """ZeRO-3 leaves an empty tensor and its true size beside it; a DTensor's numel() is the whole's."""
    return getattr(tensor, 'ds_numel', None) or tensor.numel()


def expert_ranks(parameter):
    """Over how many ranks DeepSpeed has shared out the experts that it is of; 0: it is of none."""
    group = getattr(parameter, 'group_name', None)
    if not isinstance(group, str) or not group.startswith('ep_size_') or not group[8:].isdigit():
        return 0
    return int(group[8:])


class Tally:
    """Elements and bytes by dtype. Each storage counts once in the whole model."""

    def __init__(self, seen):
        self._seen = seen
        self.sums = {}

    def add(self, tensor):
        """False: its storage has counted already."""
        held = local(tensor)
        try:
            key = (held.device.type, held.device.index, held.untyped_storage().data_ptr(), held.storage_offset())
            if key[2] == 0:  # on meta, or ZeRO-3's empty one
                key = id(tensor)
            if key in self._seen:
                return False
            self._seen.add(key)
        except Exception:  # meta, sparse and subclass tensors have no storage
            pass
        self.add_elements(tensor.dtype, elements_of(tensor), held.numel() * held.element_size())
        return True

    def add_share(self, share, dtypes):
        for dtype in dtypes:
            self.add_elements(dtype, share.elements, share.held * dtype.itemsize)

    def add_elements(self, dtype, elements, size):
        name = str(dtype).replace('torch.', '')
        before = self.sums.get(name, (0, 0))
        self.sums[name] = (before[0] + elements, before[1] + size)


def rows_of(root, text, states=None, again=False):
    """One row a module, in the order of named_modules; states: parameter -> optimizer's dict."""
    import torch
    states = states or {}
    seen = set()
    for path, module in root.named_modules():
        row = {'module': f'{text}.{path}' if path else text, 'class': type(module).__name__,
               'extra': str(module.extra_repr())[:200]}
        tallies = {kind: Tally(seen) for kind in ('parameters', 'buffers', 'gradients', 'states')}
        for parameter in module._parameters.values():
            if parameter is None:
                continue
            share = ZeroShare.of(torch, parameter)
            if share is not None:
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    tallies['parameters'].add_share(share, [share.dtype])
                    tallies['gradients'].add_share(share, share.gradients)
                    tallies['states'].add_share(share, share.states)
                continue
            tallies['parameters'].add(parameter)
            if parameter.grad is not None:
                tallies['gradients'].add(parameter.grad)
            for value in states.get(parameter, {}).values():
                if isinstance(value, torch.Tensor):
                    tallies['states'].add(value)
            master = master_of(torch, parameter)
            if master is not None and tallies['states'].add(master):
                for dtype in types_of_flat_states(torch, states):
                    tallies['states'].add_elements(dtype, master.numel(), master.numel() * dtype.itemsize)
        for buffer in module._buffers.values():
            if buffer is not None:
                tallies['buffers'].add(buffer)
        whole = Tally(set())  # by the module alone: tied parameters count wherever they are
        experts = {}  # elements by how many ranks share the experts out
        for parameter in module.parameters():
            share = ZeroShare.of(torch, parameter)
            if share is None:
                whole.add(parameter)
            else:
                whole.add_share(share, [share.dtype])
            ranks = expert_ranks(parameter)
            if ranks:
                experts[ranks] = experts.get(ranks, 0) + elements_of(parameter)
        row['all'] = whole.sums
        if again:
            row['again'] = True
        if experts:
            row['experts'] = experts
        if getattr(module, 'enable_expert_tensor_parallelism', False) is True:  # deepspeed.moe.layer.MoE
            row['expert_tensors_split'] = True
        row.update({kind: tally.sums for kind, tally in tallies.items() if tally.sums})
        yield row
