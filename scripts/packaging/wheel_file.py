"""A wheel for every Python, from a staged tree: the tool and the agent lie inside the package `ranktap`."""
import base64
import hashlib
import os
import pathlib
import re
import time
import zipfile

TAG = 'py3-none-manylinux_2_28_x86_64'
METADATA = '''Metadata-Version: 2.1
Name: ranktap
Version: {version}
Summary: Profiler for deep-learning training jobs
License: Apache-2.0
Requires-Python: >=3.8
Description-Content-Type: text/markdown
{urls}
'''
INIT = '"""The profiler ranktap: `python -m ranktap`, or the program of that name."""\n__version__ = {version!r}\n'
# The program in its place, so that signals, the terminal and the exit status are its own.
MAIN = '''import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'bin', 'ranktap')
    os.execv(program, ['ranktap', *sys.argv[1:]])


if __name__ == '__main__':
    main()
'''


class _Wheel:

    def __init__(self, path):
        self._archive = zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=9)
        self._time = time.gmtime(max(int(os.environ['SOURCE_DATE_EPOCH']), 315532800))[:6]
        self.record = []

    def add(self, name, data, is_program=False):
        entry = zipfile.ZipInfo(name, self._time)
        entry.external_attr = (0o100755 if is_program else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3
        self._archive.writestr(entry, data, compresslevel=9)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
        self.record.append(f'{name},sha256={digest},{len(data)}')

    def close(self, record_name):
        self.add(record_name, ('\n'.join([*self.record, f'{record_name},,']) + '\n').encode())
        self._archive.close()


def with_absolute_links(markdown: str, url: str) -> str:
    """A package's page has no folder beside it. Without the project's address a link is its text, and a picture is none."""
    if not url:
        markdown = re.sub(r'!\[[^]]*\]\((?!https?:)[^)]*\)\n*', '', markdown)
        return re.sub(r'\[([^]]*)\]\((?!https?:)[^)]*\)', r'\1', markdown)
    markdown = re.sub(r'(!\[[^]]*\]\()(?!https?:)([^)]*\))', rf'\1{url}/raw/HEAD/\2', markdown)
    return re.sub(r'(\]\()(?!https?:|#)([^)]*\))', rf'\1{url}/blob/HEAD/\2', markdown)


def write(tree: pathlib.Path, version: str, out: pathlib.Path, url: str = '') -> pathlib.Path:
    """`url`: the project's, of whoever publishes the package."""
    target = out / f'ranktap-{version}-{TAG}.whl'
    info = f'ranktap-{version}.dist-info'
    wheel = _Wheel(target)
    wheel.add('ranktap/__init__.py', INIT.format(version=version).encode())
    wheel.add('ranktap/__main__.py', MAIN.encode())
    # Links are followed: a wheel has none.
    for path in sorted(tree.rglob('*')):
        name = path.relative_to(tree)
        is_picture = name.parts[0] == 'docs' and path.suffix != '.md'  # `ranktap help` shows text
        if path.is_dir() or is_picture or name.parts[0] in ('README.md', 'CHANGELOG.md', 'LICENSE'):
            continue
        if name.parts[:2] == ('share', 'licenses'):
            wheel.add(f'{info}/licenses/{name.name}', path.read_bytes())
        elif name.parts[:2] == ('share', 'man'):  # where man looks, beside the environment's bin
            wheel.add(f'ranktap-{version}.data/data/{name}', path.read_bytes())
        else:
            wheel.add(f'ranktap/{name}', path.read_bytes(), os.access(path, os.X_OK) and name.parts[0] == 'bin')
    for name in 'LICENSE', 'CHANGELOG.md':
        wheel.add(f'{info}/licenses/{name}', (tree / name).read_bytes())
    readme = with_absolute_links((tree / 'README.md').read_text(), url)
    urls = f'Project-URL: Source, {url}\nProject-URL: Documentation, {url}/blob/HEAD/docs/README.md\n' if url else ''
    wheel.add(f'{info}/METADATA', (METADATA.format(version=version, urls=urls) + readme).encode())
    wheel.add(f'{info}/WHEEL', f'Wheel-Version: 1.0\nGenerator: ranktap\nRoot-Is-Purelib: false\nTag: {TAG}\n'.encode())
    wheel.add(f'{info}/entry_points.txt', b'[console_scripts]\nranktap = ranktap.__main__:main\n')
    wheel.close(f'{info}/RECORD')
    return target
