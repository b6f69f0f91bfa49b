"""Secrets in the command line, the environment, names of files and NVTX ranges: no output has them. The reports and the
exporters are those that the tool lists; the other outputs are methods named output_…: a new one is one more."""
import json
import os
import re
import signal
import subprocess
import time
import unittest
import urllib.request

import nvtx_program
from harness import RANKTAP, TracedTest

# One sentinel each; a form is what stands in the command line.
FORMS = {
    'QZURLPASS1x': ['https://user:QZURLPASS1x@host/path'],
    'QZBEARER2x': ['Authorization: Bearer QZBEARER2x'],
    'hf_QZabcdefghijklmnopqrstuvwxyz012345': ['hf_QZabcdefghijklmnopqrstuvwxyz012345'],
    'sk-QZabcdefghij0123456789': ['sk-QZabcdefghij0123456789'],
    'ghp_QZabcdefghij0123456789': ['ghp_QZabcdefghij0123456789'],
    'QZDASHP6x': ['-pQZDASHP6x'],
    'QZTOKEN7x': ['--token=QZTOKEN7x'],
    'QZPASSWORD8x': ['--password', 'QZPASSWORD8x'],
    'QZKEYLIKE9xAbCdEf0123': ['WANDB_API_KEY=QZKEYLIKE9xAbCdEf0123'],
    'AKIAQZ3IOSFODNN7EXAM': ['AKIAQZ3IOSFODNN7EXAM'],
    'QZJSON11xAbCdEf0123': ['{"client_secret": "QZJSON11xAbCdEf0123"}'],
}
# Forms that a name of a file can have: those without a name beside them.
IN_FILES = [form for form in FORMS if form.startswith(('hf_', 'ghp_'))]
KEPT = ['--batch-size', '32', '--model=meta-llama/Llama-3.1-8B', '746ef4eea9c0ffee1234567890abcdef12345678', '/data/part-0001']
PROGRAM = r'''
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char name[512];
    // A range that begins with the word after --password has nothing that tells it from another word.
    if (i > 1 && strcmp(argv[i - 1], "--password") == 0) continue;
    snprintf(name, sizeof name, "%s %s", argv[i], i + 1 < argc ? argv[i + 1] : "");
    nvtxRangePushA(name);
    nvtxRangePop();
    nvtxNameOsThreadA(getpid(), argv[i]);
  }
  nvtxDomainHandle_t domain = nvtxDomainCreateA(argc > 1 ? argv[1] : "");
  (void)domain;
  char line[8];
  return read(0, line, sizeof line) < 0;
}
'''


def exporters():
    text = subprocess.run([RANKTAP, 'export', '--help'], capture_output=True, text=True).stdout
    return re.findall(r'^  ([a-z][a-z0-9-]+)  ', text[text.index('Formats:'):], re.M)


def reports():
    text = subprocess.run([RANKTAP, 'completion', 'bash'], capture_output=True, text=True).stdout
    return re.search(r"^ +report\) options='[^']*'.*words='([^']*)'", text, re.M)[1].split()


@unittest.skipUnless(nvtx_program.HEADERS, 'no NVTX headers; scripts/setup installs them')
class SecretsTest(TracedTest):
    def setUp(self):
        super().setUp()
        folder = self.scratch / f'in-{IN_FILES[0]}'
        folder.mkdir()
        self.program = folder / f'train-{IN_FILES[1]}'
        source = self.scratch / 'train.c'
        source.write_text(PROGRAM)
        subprocess.run(['gcc', '-I', nvtx_program.HEADERS, source, '-ldl', '-o', self.program], check=True)
        self.log = self.scratch / 'agent.log'
        self.arguments = [word for form in FORMS.values() for word in form] + KEPT
        self.environment = {f'QZ_{number}': ' '.join(form) for number, form in enumerate(FORMS.values())}
        self.environment |= {'RANKTAP_LOG': str(self.log), 'HF_TOKEN': IN_FILES[0]}

    def traced(self, *options, **environment):
        done = subprocess.run([RANKTAP, 'run', '-o', self.scratch / 'run', '--log', self.scratch / 'collector.log', '--metadata',
                               'key=QZKEYLIKE9xAbCdEf0123', *options, '--', self.program, *self.arguments],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=self.scratch,
                              env={**os.environ, **self.environment, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def assert_none(self, where, text):
        text = text if isinstance(text, bytes) else text.encode()
        for secret in FORMS:
            self.assertNotIn(secret.encode(), text, f'{where} has it')

    def ask(self, *command):
        done = subprocess.run([RANKTAP, *command], capture_output=True, cwd=self.scratch, env={**os.environ, 'BROWSER': 'true'})
        self.assert_none(' '.join(map(str, command)), done.stdout + done.stderr)
        return done

    def output_run(self, run):
        for path in run.rglob('*'):
            if path.is_file():
                self.assert_none(path.name, path.read_bytes())
        self.assertEqual(json.loads((run / 'run.json').read_text())['command'][-len(KEPT):], KEPT)
        # The trace is compressed: what it holds comes out here.
        rows = self.ask('report', run, 'ranges', '--format', 'json', '--full-names').stdout.decode()
        for kept in KEPT:
            self.assertIn(kept, rows)
        self.assertIn('https://user:***@host/path', rows)

    def output_reports(self, run):
        self.assertIn('kernels', reports())
        for name in reports():
            self.ask('report', run, name, '--format', 'json', '--full-names')
        # A form prints the same cells in its own way: one report with names of the program in it, and the summary.
        for form in 'text', 'csv', 'html':
            self.ask('report', run, 'ranges', '--format', form, '--full-names')
        self.ask('report', run)
        self.ask('report', run, '--format', 'html')

    def output_exports(self, run):
        self.assertIn('sqlite', exporters())
        for name in exporters():
            target = self.scratch / 'exports' / name
            target.mkdir(parents=True)
            self.ask('export', run, '--format', name, '-o', target / 'out')
            for path in target.rglob('*'):
                if path.is_file():
                    self.assert_none(f'export {name}', path.read_bytes())

    def output_page(self, run):
        page = self.scratch / 'page.html'
        self.assertEqual(self.ask('view', run, '-o', page).returncode, 0)
        self.assert_none('page', page.read_bytes())

    def output_serve(self, run):
        server = subprocess.Popen([RANKTAP, 'serve', run.parent], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        url = server.stdout.readline().strip()
        for path in '', 'run/run/', 'run/run/trace':
            self.assert_none(f'serve {path}', urllib.request.urlopen(url + path, timeout=60).read())
        server.send_signal(signal.SIGTERM)
        server.wait()

    def output_doctor_and_verify(self, run):
        self.ask('doctor', run)
        self.ask('verify', run)

    def output_logs(self, run):
        for path in self.log, self.scratch / 'collector.log':
            self.assert_none(path.name, path.read_bytes() if path.exists() else b'')

    def test_no_output_has_a_secret_and_each_has_what_is_ordinary(self):
        done = self.traced()
        self.assert_none('the words of run', done.stderr)
        outputs = [name for name in dir(self) if name.startswith('output_')]
        self.assertGreaterEqual(len(outputs), 7)
        for name in outputs:
            with self.subTest(name):
                getattr(self, name)(self.scratch / 'run')

    def test_status_and_the_collectors_runs_have_none(self):
        socket, root = self.scratch / 'socket', self.scratch / 'root'
        collector = subprocess.Popen([RANKTAP, 'collect', '-o', root, '--socket', socket, '--level', 'ranges', '--log',
                                      self.scratch / 'collector.log'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(collector.wait)
        self.addCleanup(collector.kill)
        deadline = time.monotonic() + 60
        while not socket.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        program = subprocess.Popen([RANKTAP, 'run', '--level', 'ranges', '--', self.program, *self.arguments], stdin=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, cwd=self.scratch,
                                   env={**os.environ, **self.environment, 'RANKTAP_SOCKET': str(socket)})
        self.addCleanup(program.kill)
        seen = b''
        while b'connected' not in seen and time.monotonic() < deadline:
            for form in 'text', 'json', 'csv':
                seen = self.ask('status', '--socket', socket, '--format', form).stdout
        self.assertIn(b'connected', seen)
        program.communicate(b'go\n')
        collector.send_signal(signal.SIGTERM)
        collector.wait()
        # What other programs of this user had left in spools has a directory of its own.
        runs = [path.parent for path in root.rglob('run.json') if not path.parent.name.startswith('spools-')]
        self.assertEqual(len(runs), 1)
        self.output_run(runs[0])

    def test_who_asks_for_it_keeps_the_command_line_in_the_files_of_the_run(self):
        self.traced(RANKTAP_REDACT='0')
        run = self.scratch / 'run'
        self.assertIn('--token=QZTOKEN7x', json.loads((run / 'run.json').read_text())['command'])
        self.output_page(run)


if __name__ == '__main__':
    unittest.main()
