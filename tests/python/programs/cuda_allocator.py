"""A training loop beside which a made-up CUDA caching allocator runs: torch._C's functions for its history are
replaced by ones that keep the shapes PyTorch documents (torch.cuda.memory._snapshot). There is no GPU in this.

usage: cuda_allocator.py [--own-history] [--fail]
"""
import sys
import time

import torch

FRAME = {'filename': 'train.py', 'line': 12, 'name': 'forward'}
OUTER = {'filename': 'train.py', 'line': 40, 'name': 'main'}


class Allocator:
    """Two segments on device 0, one of which was there before the history was."""

    def __init__(self):
        self.enabled, self.context, self.entries, self.limit = None, None, [], 0
        self.segments = {0x10000: 1 << 20}
        self.blocks, self.asked = {0x10000: 1024}, {0x10000: 1000}
        self.observers = []

    def record(self, enabled, context, stacks, max_entries, *_):
        assert enabled is None or (enabled == 'all' and context in (None, 'alloc')), (enabled, context, stacks)
        print('history', enabled, context, file=sys.stderr)
        self.enabled, self.context, self.limit = enabled, context, max_entries

    def _add(self, action, address, size):
        if self.enabled:
            entry = {'action': action, 'addr': address, 'size': size, 'stream': 0, 'time_us': time.time_ns() // 1000}
            if self.context and action == 'alloc':
                entry['frames'] = [FRAME, OUTER]
            self.entries = [*self.entries, entry][-self.limit:]

    def reserve(self, address, size):
        self.segments[address] = size
        self._add('segment_alloc', address, size)

    def allocate(self, address, size):
        """PyTorch gives out multiples of 512 bytes, and its history has what was asked for."""
        self.blocks[address] = -(-size // 512) * 512
        self.asked[address] = size
        self._add('alloc', address, size)

    def free(self, address):
        del self.blocks[address]
        size = self.asked.pop(address)
        self._add('free_requested', address, size)
        self._add('free_completed', address, size)

    def fail(self, size):
        self._add('oom', 0, size)
        for observer in self.observers:
            observer(0, size, sum(self.segments.values()), 4096)

    def snapshot(self, _=None):
        segments = [{'device': 0, 'address': start, 'total_size': total, 'stream': 0, 'segment_type': 'large',
                     'blocks': self._blocks_of(start, total)} for start, total in self.segments.items()]
        return {'segments': segments, 'device_traces': [self.entries], 'allocator_settings': {}}

    def _blocks_of(self, start, total):
        held = sorted((address, size) for address, size in self.blocks.items() if start <= address < start + total)
        blocks, reached = [], start
        for address, size in held:
            if address > reached:
                blocks.append({'address': reached, 'size': address - reached, 'state': 'inactive'})
            blocks.append({'address': address, 'size': size, 'requested_size': size, 'state': 'active_allocated',
                           'frames': [FRAME, OUTER] if self.context else []})
            reached = address + size
        blocks.append({'address': reached, 'size': start + total - reached, 'state': 'inactive'})
        return blocks


def main():
    allocator = Allocator()
    torch.cuda.is_initialized = lambda: True
    torch._C._cuda_record_memory_history = allocator.record
    torch._C._cuda_memorySnapshot = allocator.snapshot
    torch._C._cuda_isHistoryEnabled = lambda: allocator.enabled is not None
    torch._C._cuda_attach_out_of_memory_observer = allocator.observers.append
    if '--own-history' in sys.argv:
        torch.cuda.memory._record_memory_history(context='alloc')
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5):
        if step == 1:
            allocator.reserve(0x900000, 2 << 20)
        allocator.allocate(0x900000, 500_000 + step)  # lives for the step
        loss = model(torch.ones(4, 8)).square().sum()
        allocator.allocate(0xa00000, 100_000)
        allocator.free(0xa00000)
        loss.backward()
        optimizer.step()
        allocator.free(0x900000)
        if '--fail' in sys.argv and step == 3:  # after the window
            allocator.fail(7 << 30)
            try:
                torch.empty(1 << 41, dtype=torch.uint8)
            except RuntimeError as failure:
                print('you tried to allocate' in str(failure))
        print(step, loss.item().hex())


if __name__ == '__main__':
    main()
