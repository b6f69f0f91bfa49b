"""Messages of protobuf as dictionaries, by the field names of a .proto file; no library of protobuf is needed."""
import pathlib
import re
import struct

ROOT = pathlib.Path(__file__).resolve().parents[2]
# github.com/google/pprof, proto/profile.proto
PPROF = '''
message Profile { repeated ValueType sample_type = 1; repeated Sample sample = 2; repeated Mapping mapping = 3;
  repeated Location location = 4; repeated Function function = 5; repeated string string_table = 6;
  int64 drop_frames = 7; int64 keep_frames = 8; int64 time_nanos = 9; int64 duration_nanos = 10;
  ValueType period_type = 11; int64 period = 12; repeated int64 comment = 13; int64 default_sample_type = 14; }
message ValueType { int64 type = 1; int64 unit = 2; }
message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; repeated Label label = 3; }
message Label { int64 key = 1; int64 str = 2; int64 num = 3; int64 num_unit = 4; }
message Mapping { uint64 id = 1; uint64 memory_start = 2; uint64 memory_limit = 3; uint64 file_offset = 4;
  int64 filename = 5; int64 build_id = 6; bool has_functions = 7; bool has_filenames = 8; bool has_line_numbers = 9; }
message Location { uint64 id = 1; uint64 mapping_id = 2; uint64 address = 3; repeated Line line = 4; }
message Line { uint64 function_id = 1; int64 line = 2; int64 column = 3; }
message Function { uint64 id = 1; int64 name = 2; int64 system_name = 3; int64 filename = 4; int64 start_line = 5; }
'''


def pprof(content):
    return _message(content, 'Profile', _schema(PPROF))


def perfetto(content):
    proto = ROOT / 'tests/unit/collector/export/perfetto/perfetto_trace.proto'
    return _message(content, 'Trace', _schema(proto.read_text()))


def chakra(content):
    """A message for the file, then one a node, each behind its length."""
    schema = _schema((ROOT / 'proto/chakra/et_def.proto').read_text())
    messages, at = [], 0
    while at < len(content):
        size, at = _varint(content, at)
        messages.append(_message(content[at:at + size], 'Node' if messages else 'GlobalMetadata', schema))
        at += size
    for node in messages[1:]:  # what an attribute is called belongs to the path of its value
        attributes = node.get('attr', [])
        attributes = attributes if isinstance(attributes, list) else [attributes]
        node['attr'] = [{attr.pop('name'): attr} for attr in attributes if 'name' in attr]
    return {'metadata': messages[:1], 'node': messages[1:]}


def _schema(text):
    """{message: {field number: (name, type)}}; a message inside another is known by its own name alone."""
    text = re.sub(r'//[^\n]*', '', text)
    fields, open_blocks = {}, []
    for token in re.finditer(r'\b(message|enum|oneof)\s+(\w+)\s*{|(?:repeated |optional )?([\w.]+)\s+(\w+)\s*=\s*(\d+)[^;{}]*;|}|{', text):
        kind, name, of_type, field, number = token.groups()
        if kind:
            open_blocks.append((kind, name))
            fields.setdefault(name, {})
        elif token.group() == '{':
            open_blocks.append(('other', ''))
        elif token.group() == '}':
            open_blocks.pop()
        else:
            message = next((name for kind, name in reversed(open_blocks) if kind == 'message'), None)
            if message:
                fields[message][int(number)] = (field, of_type.rpartition('.')[2])
    return {name: known for name, known in fields.items() if known}


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _message(data, name, schema):
    found, at = {}, 0
    while at < len(data):
        key, at = _varint(data, at)
        field, of_type = schema[name].get(key >> 3, (f'field {key >> 3}', 'unknown'))
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            value = _signed(value, of_type)
        elif wire == 2:
            size, at = _varint(data, at)
            value = _delimited(data[at:at + size], of_type, schema)
            at += size
        else:
            size = 8 if wire == 1 else 4
            value = _fixed(data[at:at + size], of_type)
            at += size
        found.setdefault(field, []).append(value)
    return {field: values[0] if len(values) == 1 else values for field, values in found.items()}


def _signed(value, of_type):
    if of_type in ('sint32', 'sint64'):
        return (value >> 1) ^ -(value & 1)
    return value - (1 << 64) if value >> 63 and of_type in ('int32', 'int64') else value


def _fixed(data, of_type):
    form = {'double': 'd', 'float': 'f', 'sfixed64': 'q', 'sfixed32': 'i'}.get(of_type, 'Q' if len(data) == 8 else 'I')
    return struct.unpack(f'<{form}', data)[0]


def _delimited(data, of_type, schema):
    if of_type in schema:
        return _message(data, of_type, schema)
    if of_type in ('string', 'bytes', 'unknown'):
        return data.decode(errors='backslashreplace')
    if of_type in ('double', 'float', 'fixed32', 'fixed64', 'sfixed32', 'sfixed64'):
        size = 4 if of_type in ('float', 'fixed32', 'sfixed32') else 8
        return [_fixed(data[at:at + size], of_type) for at in range(0, len(data), size)]
    values, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        values.append(_signed(value, of_type))
    return values
