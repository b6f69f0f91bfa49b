"""Rows to the collector, as lines of JSON in marks (collector/trace/marked_lines.h reads them).

`agent`: agent.pyi.
"""
import json

MARK_BYTES = 56_000  # below what one event holds
_encode = json.JSONEncoder(separators=(',', ':')).encode


def line_of(row):
    return _encode(row).encode()[:MARK_BYTES]


def send(domain, name, rows):
    send_lines(domain, name, map(line_of, rows))


def send_lines(domain, name, lines):
    """In as few marks as the lines fit into."""
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
