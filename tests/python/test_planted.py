"""In a folder of somebody else's no verb runs or loads what lies there: each that starts a program is tried with every file
that such a program might take, and with a PATH that leads there."""
import os
import pty
import shutil
import subprocess
import unittest

from harness import RANKTAP, ROOT, TORCH_PYTHON, TracedTest, needs_torch
from test_sql import SQL_PYTHON

INPUT = ROOT / 'tests/golden/inputs/standin-full'
MODULES = ['duckdb', 'json', 'shutil', 'sitecustomize', 'usercustomize', 'torch', 'importlib', 'os', 're']
PROGRAMS = ['duckdb', 'python3', 'less', 'xdg-open', 'dot', 'sh', 'cat', 'nvidia-smi']
LIBRARIES = ['libzstd.so', 'libzstd.so.1', 'libstdc++.so.6', 'libnvidia-ml.so.1', 'libcupti.so', 'libcuda.so.1']


class PlantedTest(TracedTest):
    def setUp(self):
        super().setUp()
        self.mark = self.scratch / 'it-ran'
        self.folder = self.scratch / 'shared'
        self.folder.mkdir()
        for name in MODULES:
            (self.folder / f'{name}.py').write_text(f'open({str(self.mark)!r}, "a").write({name!r} + "\\n")\nraise ImportError\n')
        for name in PROGRAMS:
            (self.folder / name).write_text(f'#!/bin/sh\necho {name} >> {self.mark}\nexit 1\n')
            (self.folder / name).chmod(0o755)
        (self.folder / '.duckdbrc').write_text(f".shell echo duckdbrc >> {self.mark}\n")
        source = self.scratch / 'planted.c'
        source.write_text('#include <fcntl.h>\n#include <unistd.h>\n__attribute__((constructor)) static void run(void) {\n'
                          f'  int file = open("{self.mark}", O_WRONLY | O_CREAT | O_APPEND, 0600);\n'
                          '  (void)!write(file, "library\\n", 8);\n}\n')
        subprocess.run(['gcc', '-shared', '-fPIC', source, '-o', self.folder / LIBRARIES[0]], check=True)
        for name in LIBRARIES[1:]:
            shutil.copy(self.folder / LIBRARIES[0], self.folder / name)
        shutil.copytree(INPUT, self.folder / 'run')

    def tried(self, *command, path=None, **environment):
        """Exit status and what was said, in that folder; a failure where something of it ran."""
        kept = {name: value for name, value in os.environ.items() if name not in ('PAGER', 'BROWSER')}
        done = subprocess.run([str(word) for word in (RANKTAP, *command)], cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={**kept, 'PATH': path or f':.:{os.environ["PATH"]}:', **environment})
        self.assertFalse(self.mark.exists(), f'{command} ran {self.mark.read_text() if self.mark.exists() else ""}')
        return done

    def test_sql(self):
        python = ['--python', SQL_PYTHON] if SQL_PYTHON.exists() else []
        done = self.tried('sql', *python, 'run', 'SELECT count(*) AS n FROM kernels', '--format', 'csv')
        if python:
            self.assertEqual((done.returncode, done.stdout), (0, 'n\n100\n'), done.stderr)
        self.tried('sql', 'run', 'SELECT 1')

    def test_sql_by_a_program_that_reads_a_duckdbrc(self):
        """What the program is given replaces its own .duckdbrc, and limits it first."""
        folder = self.scratch / 'bin'
        folder.mkdir()
        (folder / 'duckdb').write_text('#!/bin/sh\ntest "$1" = -init && head -n 6 "$2"\n')
        (folder / 'duckdb').chmod(0o755)
        done = self.tried('sql', 'run', 'SELECT 1', path=f'{folder}::{os.environ["PATH"]}')
        for limit in ('autoload_known_extensions = false', 'autoinstall_known_extensions = false',
                      'enable_external_access = false', 'lock_configuration = true'):
            self.assertIn(limit, done.stdout)

    def test_view(self):
        self.tried('view', 'run', '-o', self.scratch / 'page.html', DISPLAY=':0')

    def test_the_pager(self):
        main, end = pty.openpty()
        self.addCleanup(os.close, main)
        pid = subprocess.Popen([str(RANKTAP), 'report', 'run', 'kernels'], cwd=self.folder, stdin=end, stdout=end, stderr=end,
                               env={**os.environ, 'PATH': f':.:{os.environ["PATH"]}', 'PAGER': 'cat -v'})
        os.close(end)
        try:
            while os.read(main, 4096):
                pass
        except OSError:
            pass  # its end
        pid.wait()
        self.assertFalse(self.mark.exists())

    def test_export(self):
        for form in 'graph', 'chrome', 'sqlite', 'parquet':
            self.tried('export', 'run', '--format', form, '-o', self.scratch / f'{form}.svg')

    def test_doctor_report_verify_merge_and_completion(self):
        for command in (['doctor'], ['doctor', 'run'], ['report', 'run'], ['verify', 'run'], ['status'], ['completion', 'bash'],
                        ['merge', 'run', '-o', self.scratch / 'merged']):
            self.tried(*command)

    @needs_torch
    def test_profile_model(self):
        """The model's own file is the one thing of this folder that is asked for."""
        (self.folder / 'net.py').write_text('import torch\n\ndef Net():\n    return torch.nn.Linear(2, 2)\n')
        done = self.tried('profile-model', 'net:Net', '--input-shape', '1,2', '--device', 'cpu', '--python', TORCH_PYTHON,
                          PYTHONPATH=':')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('Linear', done.stdout)


if __name__ == '__main__':
    unittest.main()
