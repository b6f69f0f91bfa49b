"""Chakra's .et files, read from their bytes, and the rules of the strictest reader, ASTRA-sim's: whatever it would end
for is an AssertionError."""
import struct

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7  # NodeType
ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER = 0, 2, 5, 6, 7  # CollectiveCommType
SIMULATED = {ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER}
# Of AttributeProto: field number to the name of its type.
TYPES = {7: 'int32', 9: 'int64', 11: 'uint32', 13: 'uint64', 27: 'bool', 29: 'string'}


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            size = {1: 8, 5: 4}[key & 7]
            value, at = struct.unpack('<Q' if size == 8 else '<I', data[at:at + size])[0], at + size
        yield key >> 3, value


def numbers(value):
    """Of a repeated number: packed, or one."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


class Node:

    def __init__(self, data):
        self.id, self.name, self.type, self.control, self.data, self.attributes = 0, '', 0, [], [], {}
        for number, value in fields(data):
            if number == 1:
                self.id = value
            elif number == 2:
                self.name = value.decode()
            elif number == 3:
                self.type = value
            elif number == 4:
                self.control += numbers(value)
            elif number == 5:
                self.data += numbers(value)
            elif number == 10:
                attribute = dict(fields(value))
                of = next(field for field in attribute if field != 1)
                value = attribute[of]
                self.attributes[attribute[1].decode()] = (TYPES[of], value.decode() if of == 29 else value)

    def __getitem__(self, name):
        return self.attributes[name][1]

    def demand(self, **types):
        for name, of in types.items():
            assert name in self.attributes, f'{self.name} has no {name}'
            assert self.attributes[name][0] == of, f'{self.name}: {name} is {self.attributes[name][0]}'

    def check(self, seen):
        assert set(self.control + self.data) <= seen, f'{self.name}: a dependency that comes later, or never'
        self.demand(is_cpu_op='bool')
        if self.type == COMPUTE:
            return self.demand(num_ops='int64', tensor_size='uint64')
        assert self.type in (SEND, RECEIVE, COLLECTIVE), f'{self.name} is of type {self.type}'
        assert not self['is_cpu_op'], self.name
        self.demand(comm_size='int64', pg_name='string')
        assert self['pg_name'].isdecimal(), self['pg_name']
        if self.type == COLLECTIVE:
            self.demand(comm_type='int64')
            assert self['comm_type'] in SIMULATED, self.name
        else:
            self.demand(comm_src='int32', comm_dst='int32', comm_tag='int32')
        return None


def read(path):
    """Its nodes, in their order."""
    data, at, messages = path.read_bytes(), 0, []
    while at < len(data):
        size, at = varint(data, at)
        messages.append(data[at:at + size])
        at += size
    assert at == len(data), f'{path} is cut off'
    nodes = [Node(message) for message in messages[1:]]
    assert [node.id for node in nodes] == list(range(1, len(nodes) + 1)), 'ids are dense'
    for node in nodes:
        node.check(set(range(1, node.id)))
    return nodes
