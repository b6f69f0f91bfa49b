"""`ranktap serve` and `ranktap view`: who is answered, and what a browser gets."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

from harness import RANKTAP, ROOT
from test_page import CHROMIUM, needs_browser, sync_playwright

INPUTS = ROOT / 'tests/golden/inputs'


class ServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        shutil.copytree(INPUTS / 'standin-full', cls.folder / 'first <run>')
        shutil.copytree(INPUTS / 'torch-ddp', cls.folder / 'second')
        (cls.folder / 'no run').mkdir()
        (cls.folder / 'secret.txt').write_text('not for you')
        cls.server, cls.url = cls.start(cls.folder)
        cls.addClassCleanup(cls.server.kill)

    @classmethod
    def start(cls, root, *options):
        server = subprocess.Popen([str(RANKTAP), 'serve', str(root), *options], stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.stdout.close)
        return server, urllib.parse.urlsplit(server.stdout.readline().strip())

    def get(self, path='', method='GET', host=None, url=None):
        url = url or self.url
        connection = http.client.HTTPConnection('127.0.0.1', url.port, timeout=60)
        self.addCleanup(connection.close)
        connection.putrequest(method, (url.path if not path.startswith('/') else '') + path, skip_host=True)
        connection.putheader('Host', f'127.0.0.1:{url.port}' if host is None else host)
        connection.endheaders()
        answer = connection.getresponse()
        return answer, answer.read()

    def test_it_lists_the_runs_and_answers_their_pages(self):
        answer, body = self.get()
        self.assertEqual(answer.status, 200)
        self.assertIn('first &#60;run&#62;', body.decode())
        self.assertIn('second', body.decode())
        self.assertNotIn('no run', body.decode())
        answer, body = self.get('run/first%20%3Crun%3E/')
        self.assertEqual(answer.status, 200)
        self.assertIn(b'id="data"', body)
        self.assertEqual(self.get('run/first%20%3Crun%3E/trace')[0].status, 200)
        self.assertEqual(self.get('run/no%20run/')[0].status, 404)

    def test_each_run_in_the_list_says_its_step_and_its_verdict(self):
        for name, run in ('second', 'torch-ddp'), ('first%20%3Crun%3E', 'standin-full'):
            said = json.loads(self.get(f'run/{name}/summary')[1])
            tables = {report: json.loads(subprocess.run([str(RANKTAP), 'report', str(INPUTS / run), report, '--format', 'json'],
                                                        capture_output=True, check=True, text=True).stdout)
                      for report in ('verdict', 'key-figures')}
            self.assertEqual(said['verdict'], tables['verdict']['title'])
            median = tables['key-figures']['rows'][0]['step_median_ns']
            value, unit = said['step'].removesuffix(' a step').split()
            self.assertAlmostEqual(float(value) * {'us': 1e3, 'ms': 1e6, 's': 1e9}[unit], median, delta=0.001 * median)

    def test_a_run_of_a_baseline_has_its_name_in_the_list(self):
        with tempfile.TemporaryDirectory() as folder:
            runs = pathlib.Path(folder)
            for name in 'a', 'b', 'c':
                shutil.copytree(INPUTS / 'torch-ddp', runs / name)
                info = json.loads((runs / name / 'run.json').read_text())
                (runs / name / 'run.json').write_text(json.dumps({**info, 'run': name * 32}))
            for where, tag, tagged in (runs, 'main', 'ab'), (runs / 'elsewhere', 'other', 'b'):
                subprocess.run([str(RANKTAP), 'baseline', 'tag', tag, *(str(runs / name) for name in tagged), '--folder',
                                str(where / 'ranktap-baselines')], check=True)
            server, url = self.start(runs, '--baselines', str(runs / 'elsewhere/ranktap-baselines'))
            self.addCleanup(server.kill)
            rows = self.get(url=url)[1].decode().split('<li ')[1:]
            self.assertEqual([[tag for tag in ('main', 'other') if f'>{tag}</i>' in row] for row in rows], [['main'], ['main', 'other'], []])
            server.send_signal(signal.SIGINT)
            self.assertEqual(server.wait(timeout=60), 0)

    def test_two_runs_of_the_list_are_compared(self):
        answer, body = self.get('compare/first%20%3Crun%3E/second/')
        self.assertEqual(answer.status, 200)
        self.assertIn(b'"kind":"diff"', body.replace(b' ', b''))
        for path in 'compare/second/', 'compare/second/none/', 'compare/second/..%2fsecret.txt/', 'compare//second/':
            self.assertEqual(self.get(path)[0].status, 404, path)

    def test_profiler_files_that_are_not_one_job_are_a_list_and_ranks_are_one_run(self):
        event = {'ph': 'X', 'cat': 'cpu_op', 'name': 'aten::mm', 'pid': 1, 'tid': 1, 'ts': 1, 'dur': 10, 'args': {}}
        for names, is_list in (('alexnet.json', 'bert.json'), True), (('rank0.json', 'rank1.json'), False):
            with tempfile.TemporaryDirectory() as folder:
                for name in names:
                    (pathlib.Path(folder) / name).write_text(json.dumps({'traceEvents': [event]}))
                server, url = self.start(folder)
                self.addCleanup(server.kill)
                answer, body = self.get(url=url)
                self.assertEqual(answer.status, 200 if is_list else 303)
                if is_list:
                    self.assertEqual(self.get(f'run/{names[0]}/', url=url)[0].status, 200)
                    self.assertEqual(body.count(b'data-run='), 2)
                server.send_signal(signal.SIGINT)
                server.wait(timeout=60)

    def test_without_the_secret_nobody_gets_anything(self):
        for path in '/', '/run/second/', '/0' * 16 + '/', self.url.path[:-2] + ('1/' if self.url.path[-2] == '0' else '0/'):
            self.assertEqual(self.get(path)[0].status, 404, path)

    def test_a_name_that_was_bound_anew_gets_nothing(self):
        port = self.url.port
        for host in f'evil.example:{port}', 'evil.example', '127.0.0.1', f'127.0.0.1:{port + 1}', '':
            answer, body = self.get(host=host)
            self.assertEqual(answer.status, 403, host)
            self.assertNotIn(b'second', body)
        self.assertEqual(self.get(host=f'localhost:{port}')[0].status, 200)

    def test_paths_do_not_leave_the_folder(self):
        for path in 'run/../secret.txt', 'run/%2e%2e/', 'run/..%2fsecret.txt/', 'run//', 'secret.txt', 'run/second/../../':
            answer, body = self.get(path)
            self.assertEqual(answer.status, 404, path)
            self.assertNotIn(b'not for you', body)

    def test_it_only_answers_get_and_head(self):
        for method in 'POST', 'PUT', 'DELETE', 'OPTIONS', 'CONNECT':
            self.assertEqual(self.get(method=method)[0].status, 405)
        answer, body = self.get(method='HEAD')
        self.assertEqual((answer.status, body), (200, b''))

    def test_it_listens_on_127_0_0_1_alone(self):
        with open('/proc/net/tcp') as file:
            bound = [line.split()[1] for line in file.readlines()[1:] if line.split()[3] == '0A']
        mine = [address for address in bound if address.endswith(f':{self.url.port:04X}')]
        self.assertEqual(mine, [f'0100007F:{self.url.port:04X}'])

    def test_what_is_no_request_ends_no_server(self):
        for text in b'', b'\r\n\r\n', b'GET', b'\0' * 100 + b'\r\n\r\n', b'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', \
                b'GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n', b'A' * 50_000, b'GET / HTTP/1.1\r\n: x\r\n\r\n':
            with socket.create_connection(('127.0.0.1', self.url.port), timeout=60) as client:
                try:
                    client.sendall(text)
                    client.shutdown(socket.SHUT_WR)
                    answer = client.recv(100)
                except OSError:
                    continue  # more than it reads: it hangs up
                self.assertIn(answer[:12], (b'', b'HTTP/1.1 400', b'HTTP/1.1 403'))
        self.assertEqual(self.get()[0].status, 200)

    def test_silent_clients_do_not_keep_others_waiting(self):
        silent = [socket.create_connection(('127.0.0.1', self.url.port)) for _ in range(8)]
        self.assertEqual(self.get()[0].status, 200)
        for client in silent:
            client.close()

    def test_one_run_is_its_page_and_interrupting_ends_it_well(self):
        server, url = self.start(INPUTS / 'torch-ddp')
        answer, _ = self.get(url=url)
        self.assertEqual((answer.status, answer.getheader('Location')), (303, url.path + 'run/torch-ddp/'))
        server.send_signal(signal.SIGINT)
        self.assertEqual(server.wait(timeout=60), 0)

    def test_a_run_json_that_is_no_file_is_said_and_stops_nobody(self):
        with tempfile.TemporaryDirectory() as folder:
            runs = pathlib.Path(folder)
            for name, spoil in ('fifo', os.mkfifo), ('zero', lambda path: os.symlink('/dev/zero', path)):
                (runs / name).mkdir()
                spoil(runs / name / 'run.json')
            shutil.copytree(INPUTS / 'torch-ddp', runs / 'good')
            server, url = self.start(runs)
            self.addCleanup(server.kill)
            answer, body = self.get(url=url)
            self.assertEqual(answer.status, 200)
            self.assertEqual(body.count(b'not a file'), 2, body)
            self.assertEqual(self.get('run/good/', url=url)[0].status, 200)
            self.assertEqual(self.get('run/fifo/', url=url)[0].status, 500)
            with open(f'/proc/{server.pid}/status') as file:
                peak = next(int(line.split()[1]) for line in file if line.startswith('VmHWM'))
            self.assertLess(peak, 512 << 10)
            server.send_signal(signal.SIGINT)
            self.assertEqual(server.wait(timeout=60), 0)

    def test_interrupting_does_not_wait_for_those_who_say_nothing(self):
        server, url = self.start(INPUTS / 'torch-ddp')
        self.addCleanup(server.kill)
        with socket.create_connection(('127.0.0.1', url.port)) as silent:
            self.assertEqual(self.get(url=url)[0].status, 303)
            server.send_signal(signal.SIGINT)
            self.assertEqual(server.wait(timeout=60), 0)
            self.assertEqual(silent.recv(1), b'')

    def test_the_run_that_one_stands_in_has_its_name(self):
        server = subprocess.Popen([str(RANKTAP), 'serve', '.'], stdout=subprocess.PIPE, text=True, cwd=INPUTS / 'torch-ddp')
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        url = urllib.parse.urlsplit(server.stdout.readline().strip())
        self.assertEqual(self.get(url=url)[0].getheader('Location'), url.path + 'run/torch-ddp/')

    def crowd(self, first_words, count=1000):
        clients = []
        for _ in range(count):
            client = socket.create_connection(('127.0.0.1', self.url.port))
            self.addCleanup(client.close)
            try:
                client.sendall(first_words)
            except OSError:
                pass  # dropped already, as it should be
            clients.append(client)
        return clients

    def test_a_thousand_that_say_nothing_or_half_do_not_keep_the_owner_waiting(self):
        """Each of them would be waited for, 5 s. That the page comes before a thirty-second part of that much is gone shows
        that they were not; the bound is no measure of speed."""
        for first_words in b'', b'G', b'GET / HTTP/1.1\r\nHost: ', b'A' * 4000:
            with self.subTest(first_words[:20]):
                self.crowd(first_words)
                begin = time.monotonic()
                self.assertEqual(self.get()[0].status, 200)
                self.assertLess(time.monotonic() - begin, 5)

    def test_one_that_drips_is_no_reason_to_wait(self):
        clients = self.crowd(b'G', 64)
        ends = threading.Event()

        def drip():
            while not ends.wait(0.01):
                for client in clients:
                    try:
                        client.send(b'E')
                    except OSError:
                        continue
        dripper = threading.Thread(target=drip)
        dripper.start()
        try:
            begin = time.monotonic()
            for _ in range(10):
                self.assertEqual(self.get()[0].status, 200)
            self.assertLess(time.monotonic() - begin, 10)
        finally:
            ends.set()
            dripper.join()

    @needs_browser
    def test_perfetto_is_given_the_trace(self):
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=['--no-sandbox'])
            context = browser.new_context()
            # In the place of ui.perfetto.dev, which takes what its embedding guide says.
            context.route('https://ui.perfetto.dev/**', lambda route: route.fulfill(
                content_type='text/html', body='''<script>addEventListener('message', (event) => {
                    if (event.data === 'PING') event.source.postMessage('PONG', event.origin);
                    else if (event.data.perfetto) document.title = [event.origin, event.data.perfetto.fileName,
                        event.data.perfetto.buffer.byteLength].join(' ');
                });</script>'''))
            page = context.new_page()
            messages = []
            page.on('console', lambda message: messages.append(message.text))
            page.goto(self.url.geturl())
            page.get_by_role('link', name='second').click()
            page.locator('html[data-ready]').wait_for()
            page.get_by_role('link', name='open in Perfetto').click()
            with context.expect_page() as opened:
                page.get_by_role('button', name='Open in Perfetto').click()
            page.locator('#state', has_text='has the trace').wait_for()
            opened.value.wait_for_function('document.title !== ""')
            origin, name, size = opened.value.title().split()
            self.assertEqual((origin, name), (f'http://127.0.0.1:{self.url.port}', 'ranktap.pftrace'))
            self.assertEqual(int(size), len(self.get('run/second/trace')[1]))
            self.assertEqual(messages, [])
            browser.close()


class ViewTest(unittest.TestCase):
    def view(self, *options, **environment):
        kept = {name: value for name, value in os.environ.items() if name not in ('BROWSER', 'DISPLAY', 'WAYLAND_DISPLAY')}
        return subprocess.run([str(RANKTAP), 'view', str(INPUTS / 'torch-ddp'), *options], capture_output=True, text=True,
                              env={**kept, **environment})

    def test_without_a_display_it_prints_where_the_page_is(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.view(XDG_RUNTIME_DIR=folder)
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            page = pathlib.Path(done.stdout.strip())
            self.assertEqual(page.parents[1], pathlib.Path(folder))
            self.assertEqual(page.parent.stat().st_mode & 0o777, 0o700)
            self.assertIn('<title>ranktap</title>', page.read_text())

    def test_the_browser_of_the_environment_gets_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / 'out.html'
            done = self.view('-o', str(file), BROWSER='cp %s ' + f'{folder}/seen:false')
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            self.assertEqual((pathlib.Path(folder) / 'seen').read_text(), file.read_text())
            done = self.view('-o', str(file), BROWSER='false')
            self.assertEqual(done.returncode, 0)
            self.assertIn('false did not open it', done.stderr)


if __name__ == '__main__':
    unittest.main()
