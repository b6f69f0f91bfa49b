"""What a model is made of: for each module its class, and the parameters, buffers, gradients and
optimizer state of its own, in elements and bytes by dtype. Sent as marks of lines of JSON."""
import json

MARK_BYTES = 56_000  # below what one event holds
_encode = json.JSONEncoder(separators=(',', ':')).encode


def line_of(row):
    return _encode(row).encode()[:MARK_BYTES]


def send(domain, name, rows):
    send_lines(domain, name, map(line_of, rows))


def send_lines(domain, name, lines):
    """Lines of JSON as as few marks as they fit into."""
    lines = list(lines)
    whole = b'\n'.join(lines)
    if len(whole) <= MARK_BYTES:
        if lines:
            agent.mark(domain, name, whole)
        return
    chunk, size = [], 0
    for line in lines:
        if size + len(line) + 1 > MARK_BYTES:
            agent.mark(domain, name, b'\n'.join(chunk))
            chunk, size = [], 0
        chunk.append(line)
        size += len(line) + 1
    if chunk:
        agent.mark(domain, name, b'\n'.join(chunk))


def local(tensor):
    """This rank's part of a DTensor; any other tensor as it is."""
    part = getattr(tensor, '_local_tensor', None)
    return tensor if part is None else part


class Tally:
    """Elements and bytes by dtype. Each storage counts once in the whole model."""

    def __init__(self, seen):
        self._seen = seen
        self.sums = {}

    def add(self, tensor):
        held = local(tensor)
        try:
            key = (held.device.type, held.device.index, held.untyped_storage().data_ptr(), held.storage_offset())
            if key[2] == 0:  # on meta, or ZeRO-3's empty one
                key = id(tensor)
            if key in self._seen:
                return
            self._seen.add(key)
        except Exception:  # meta, sparse and subclass tensors have no storage
            pass
        dtype = str(tensor.dtype).replace('torch.', '')
        elements, size = self.sums.get(dtype, (0, 0))
        # ZeRO-3 leaves an empty tensor and its true size beside it.
        numel = getattr(tensor, 'ds_numel', None) or tensor.numel()
        self.sums[dtype] = (elements + numel, size + held.numel() * held.element_size())


def rows_of(root, text, states=None):
    """One row a module, in the order of named_modules; states: parameter -> optimizer's dict."""
    import torch
    seen = set()
    for path, module in root.named_modules():
        row = {'module': f'{text}.{path}' if path else text, 'class': type(module).__name__,
               'extra': str(module.extra_repr())[:200]}
        tallies = {kind: Tally(seen) for kind in ('parameters', 'buffers', 'gradients', 'states')}
        for parameter in module._parameters.values():
            if parameter is None:
                continue
            tallies['parameters'].add(parameter)
            if parameter.grad is not None:
                tallies['gradients'].add(parameter.grad)
            for value in (states or {}).get(parameter, {}).values():
                if isinstance(value, torch.Tensor):
                    tallies['states'].add(value)
        for buffer in module._buffers.values():
            if buffer is not None:
                tallies['buffers'].add(buffer)
        whole = Tally(set())  # by the module alone: tied parameters count wherever they are
        for parameter in module.parameters():
            whole.add(parameter)
        row['all'] = whole.sums
        row.update({kind: tally.sums for kind, tally in tallies.items() if tally.sums})
        yield row
