"""Answers as text that a person can compare: tables as one line a row, small files as they are, of the others what
each of their fields holds. scripts/golden writes and compares these."""
import collections
import csv
import gzip
import hashlib
import io
import json
import math
import pickle
import re
import sqlite3
import xml.etree.ElementTree

import protobuf_fields

SHORT_TEXT = 1500  # characters of a file that is kept as it is
MOST_ROWS = 24  # of a table, one line each; the rest by column
MOST_PATTERNS = 24
LONGEST_CELL = 200
LARGE = 1 << 20  # bytes of a file of which only the hash is kept: those about real traces


def tables(folder):
    empty, sections = [], []
    for path in sorted(folder.iterdir()):
        if path.stem == 'findings':  # rows of four other tables; scripts/golden holds it against its schema
            continue
        name = path.name.removesuffix('.json').replace('.hta', ' --hta-compat')
        if path.suffix != '.json':
            sections.append(f'== {path.name}\n{path.read_text()}')
            continue
        table = json.loads(path.read_text())
        if not table['rows'] and not table['notes']:
            empty.append(name)
        else:
            sections.append(_table(name, table))
    return ''.join([f'== without rows: {", ".join(empty)}\n', *sections])


def _table(name, table):
    lines = [f'== {name} | {table["title"]}']
    if table['rows']:
        lines.append(' '.join(f'{column["name"]}:{column["unit"]}' for column in table['columns']))
    lines += [json.dumps([_cell(value) for value in row.values()], ensure_ascii=False) for row in table['rows'][:MOST_ROWS]]
    lines += [f'and {line}' for line in _summary(table['rows'][MOST_ROWS:])]
    lines += [f'note: {note}' for note in table['notes']]
    return '\n'.join(lines) + '\n'


def _cell(value):
    if isinstance(value, str) and len(value) > LONGEST_CELL:
        return f'{value[:LONGEST_CELL]}... {len(value)} characters'
    return value


def exports(folder):
    return ''.join(f'== {path.name}\n{_file(path)}\n' for path in sorted(folder.iterdir()))


def _file(path):
    content = path.read_bytes()
    if content[:2] == b'\x1f\x8b':
        content = gzip.decompress(content)
    if len(content) > LARGE:
        return f'{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}'
    for ending, fields in FIELDS.items():
        if ending in path.name:
            return '\n'.join(_summary(fields(path, content)))
    text = content.decode()
    if len(text) <= SHORT_TEXT:
        return text.rstrip('\n')
    if text.startswith(('{', '[')):
        return '\n'.join(_summary(json.loads(text)))
    return '\n'.join(_patterns(text))


def _sqlite(path, _):
    with sqlite3.connect(path) as database:
        names = [name for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: _records(database.execute(f'SELECT * FROM "{name}"')) for name in names}


def _records(cursor):
    columns = [column[0] for column in cursor.description]
    return [dict(zip(columns, row)) for row in cursor]


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f'a snapshot wants {module}.{name}')


def _svg(_, content):
    pictures = xml.etree.ElementTree.fromstring(content)
    return [{element.tag.rpartition('}')[2]: {**element.attrib, 'text': (element.text or '').strip()}}
            for element in pictures.iter()]


FIELDS = {
    '.sqlite': _sqlite,
    '.pftrace': lambda _, content: protobuf_fields.perfetto(content),
    '.pb': lambda _, content: protobuf_fields.pprof(content),
    '.et': lambda _, content: protobuf_fields.chakra(content),
    '.pickle': lambda _, content: _PlainUnpickler(io.BytesIO(content)).load(),
    '.csv': lambda _, content: list(csv.DictReader(io.StringIO(content.decode()))),
    '.svg': _svg,
}


def _summary(document):
    """A line for each path of a document, with what all values there are together."""
    found = collections.defaultdict(list)

    def walk(value, path):
        if isinstance(value, dict):
            for key, part in value.items():
                walk(part, f'{path}.{key}' if path else str(key))
        elif isinstance(value, (list, tuple)):
            for part in value:
                kind = isinstance(part, dict) and 'ph' in part  # an event of a Chrome trace
                walk(part, f'{path}[{part["ph"]} {part.get("cat", "")}]' if kind else f'{path}[]')
        else:
            found[path].append(value)

    walk(document, '')
    return [f'{path.replace("[].", ".") or "value"}: {_together(values)}' for path, values in sorted(found.items())]


def _together(values):
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    texts = [value if isinstance(value, str) else f'{value.hex()}' if isinstance(value, bytes) else str(value)
             for value in values if isinstance(value, (str, bytes, bool, type(None)))]
    if texts and all(map(_is_number, texts)):
        numbers, texts = numbers + [float(text) for text in texts], []
    return '; '.join(say(some) for say, some in ((_numbers, numbers), (_texts, texts)) if some)


def _is_number(text):
    return re.fullmatch(r'-?\d{1,15}(\.\d+)?', text) is not None


def _numbers(numbers):
    if len(set(numbers)) == 1:
        return f'{len(numbers)} x {_figure(numbers[0])}'
    total = sum(numbers) if all(isinstance(number, int) for number in numbers) else math.fsum(numbers)
    return f'{len(numbers)} from {_figure(min(numbers))} to {_figure(max(numbers))}, sum {_figure(total)}'


def _figure(number):
    return str(number) if isinstance(number, int) else f'{number:.12g}'


def _texts(texts):
    counts = collections.Counter(texts)
    if len(counts) <= 8 and sum(map(len, counts)) <= 400:
        return ', '.join(f'{count} x {json.dumps(text, ensure_ascii=False)}' for text, count in sorted(counts.items()))
    ends = ' to '.join(json.dumps(text[:60], ensure_ascii=False) for text in (min(texts), max(texts)))
    return f'{len(texts)} texts, {len(counts)} different, {sum(map(len, texts))} characters, {ends}'


def _patterns(text):
    """Lines that differ in their numbers alone, counted, the most frequent first; and the sum of all numbers."""
    counts = collections.Counter(re.sub(r'\d+(\.\d+)?', '#', line)[:160] for line in text.splitlines())
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    lines = [f'{count} x {line}' for line, count in ordered[:MOST_PATTERNS]]
    rest = ordered[MOST_PATTERNS:]
    if rest:
        lines.append(f'and {sum(count for _, count in rest)} lines of {len(rest)} other patterns')
    numbers = [float(number) for number in re.findall(r'\d+(?:\.\d+)?', text) if len(number) < 16]
    return [*lines, f'{len(text)} characters; numbers: {_numbers(numbers) if numbers else "none"}']
