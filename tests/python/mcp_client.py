"""Questions to `ranktap mcp`, as an assistant asks them: by its tools alone."""
import json
import subprocess

import harness


def messages(folder, *lines):
    """The replies to messages as they are."""
    done = subprocess.run([harness.RANKTAP, 'mcp', folder], input=''.join(f'{line}\n' for line in lines), capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def call(folder, tool, /, **arguments):
    """(whether it failed, the answer's text)"""
    request = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': tool, 'arguments': arguments}}
    result = messages(folder, json.dumps(request))[0]['result']
    return result['isError'], result['content'][0]['text']


def answer(folder, tool, /, **arguments):
    """The answer with all of its rows, by the cursor."""
    rows = []
    while True:
        failed, text = call(folder, tool, **arguments)
        assert not failed, text
        page = json.loads(text)
        rows += page['rows']
        if 'more' not in page:
            assert len(rows) == page['all_rows']
            return {**page, 'rows': rows}
        arguments['cursor'] = page['more']
