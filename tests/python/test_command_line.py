"""A person at the command line: words that are no commands, names that nobody gave, what is refused before a job starts."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from harness import RANKTAP, ROOT

DDP = ROOT / 'tests/golden/inputs/torch-ddp'
STANDIN = ROOT / 'tests/golden/inputs/standin-full'


class CommandLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ranktap(self, *words, status=0, **environment):
        done = subprocess.run([str(RANKTAP), *map(str, words)], capture_output=True, text=True, check=False,
                              cwd=self.folder, env={**os.environ, **environment})
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_a_word_that_is_no_command_gets_the_command_that_was_meant(self):
        for words, meant in ((['kernels', 'RUN'], 'ranktap report RUN kernels'),
                             (['waterfall', 'a b', '--sort', 'mean'], "ranktap report 'a b' waterfall --sort mean"),
                             (['record', '--', 'true'], "did you mean 'run'?"), (['rum'], "did you mean 'run'?"),
                             (['--hlep'], "did you mean '--help'?"), (['help', 'paeg'], "did you mean 'page'?"),
                             (['report', DDP, STANDIN], f'ranktap report {DDP} {STANDIN} diff'),
                             (['report', 'kernels', DDP], f'ranktap report {DDP} kernels'),
                             (['report', 'diff', DDP, STANDIN], f'ranktap report {DDP} {STANDIN} diff'),
                             (['report', DDP, 'kernels', '--sort', 'totl'], "did you mean 'total'?")):
            with self.subTest(words=words):
                self.assertIn(meant, self.ranktap(*words, status=2).stderr)
        for word in '-v', '-V', 'version', '--version':
            self.assertRegex(self.ranktap(word).stdout, r'^ranktap \d')

    def test_what_is_meant_is_a_command_that_works(self):
        said = self.ranktap('report', DDP, STANDIN, status=2).stderr
        meant = said.partition('ranktap ')[2].split()
        compared = self.ranktap(*meant, '--format', 'json').stdout
        self.assertEqual(json.loads(compared)['name'], 'diff')

    def test_an_export_without_a_name_is_named_by_its_run_and_said(self):
        for words, name in (([DDP, '--format', 'perfetto'], 'torch-ddp.pftrace'),
                            ([str(DDP) + '/', '--format', 'csv'], 'torch-ddp.csv'),
                            ([DDP], 'torch-ddp-chrome'), ([DDP, '--ranks', '0'], 'torch-ddp.pt.trace.json'),
                            ([DDP, '--format', 'chrome,perfetto'], 'torch-ddp-export'),
                            ([DDP / 'rank-00000.trace', '--format', 'perfetto'], 'rank-00000.pftrace')):
            with self.subTest(words=words):
                said = self.ranktap('export', *words).stdout
                self.assertTrue((self.folder / name).exists(), os.listdir(self.folder))
                self.assertIn(name, said)
        # Never over what is read.
        before = (self.folder / 'torch-ddp.pt.trace.json').read_bytes()
        said = self.ranktap('export', 'torch-ddp.pt.trace.json').stdout
        self.assertIn('torch-ddp-export.pt.trace.json', said)
        self.assertEqual((self.folder / 'torch-ddp.pt.trace.json').read_bytes(), before)

    def test_a_filter_that_keeps_nothing_says_so(self):
        rows = self.ranktap('report', DDP, 'ops', '--format', 'csv').stdout.count('\n') - 1
        self.assertIn(f'none of {rows} rows has name ~ zzz',
                      self.ranktap('report', DDP, 'ops', '--where', 'name ~ zzz').stdout)

    def test_a_schedule_that_nobody_can_read_is_refused_before_the_command_starts(self):
        for schedule in 'wiat=1,actve=3', 'wait=a', 'active=0', 'wait', 'wait=1;active=2':
            for more in [], ['--require']:
                with self.subTest(schedule=schedule, more=more):
                    done = self.ranktap('run', '--level', 'full', '--schedule', schedule, *more, '--', 'touch', 'ran', status=2)
                    self.assertIn('--schedule', done.stderr)
                    self.assertFalse((self.folder / 'ran').exists())
        sys.path.insert(0, str(ROOT / 'agent/sources/torch/python'))
        import schedule as python_schedule
        for text in 'wait=5,warmup=2,active=6,repeat=2', 'skip_first=1', 'skip-first-wait=3, active = 2', '':
            python_schedule.Schedule.parse(text)
            self.ranktap('run', '--quiet', '--schedule', text, '--', 'true')

    def test_a_title_says_which_ranks_it_is_about(self):
        for options, whose in ([], 'all ranks'), (['--ranks', '1'], 'rank 1'), (['--ranks', '0-1'], 'ranks 0-1'):
            for report in 'modules', 'kernels':
                title = self.ranktap('report', str(DDP), report, *options).stdout.splitlines()[0]
                self.assertTrue(title.endswith(f', {whose}'), title)

    @unittest.skipIf(os.path.exists('/dev/nvidiactl'), 'an NVIDIA driver is here')
    def test_without_a_driver_the_level_is_said_at_the_start(self):
        done = self.ranktap('run', '--', sys.executable, '-c', 'import sys; print("at work", file=sys.stderr)')
        self.assertLess(done.stderr.index('--level full records PyTorch'), done.stderr.index('at work'))
        (self.folder / 'work.py').write_text('for _ in range(100):\n    sum(range(10 ** 5))\n')
        done = self.ranktap('run', '--level', 'auto', '-o', 'auto', '--', sys.executable, 'work.py')
        self.assertIn('level auto: full', done.stderr)
        self.assertNotIn('nothing was traced', done.stderr)
        self.assertIn('mostly at work.py:2', self.ranktap('report', 'auto').stdout)
        self.assertIn('"level": "full"', (self.folder / 'auto/run.json').read_text())
        driver = self.folder / 'lib/libcuda.so.1'
        driver.parent.mkdir()
        driver.touch()
        done = self.ranktap('run', '--level', 'auto', '--', 'true', LD_LIBRARY_PATH=str(driver.parent))
        self.assertIn('level auto: kernels', done.stderr)

    def test_a_page_that_is_interrupted_leaves_nothing_and_old_ones_go(self):
        place = self.folder / 'runtime'
        place.mkdir()
        for name, age in ('old', 8), ('young', 6):
            (place / f'ranktap-view-{name}').mkdir()
            (place / f'ranktap-view-{name}/page.html').touch()
            at = (place / f'ranktap-view-{name}').stat().st_mtime - age * 86400
            os.utime(place / f'ranktap-view-{name}', (at, at))
        environment = {**os.environ, 'XDG_RUNTIME_DIR': str(place), 'BROWSER': '', 'DISPLAY': '', 'WAYLAND_DISPLAY': ''}
        page = pathlib.Path(self.ranktap('view', DDP, **environment).stdout.strip())
        self.assertTrue(page.exists())
        kept = {'ranktap-view-young', page.parent.name}
        self.assertEqual({path.name for path in place.iterdir()}, kept)
        event = '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":1,"args":{}},\n'
        large = self.folder / 'large.json'
        large.write_text('{"traceEvents":[' + event * 1_000_000 + event.rstrip(',\n') + ']}')
        with subprocess.Popen([str(RANKTAP), 'view', str(large)], env=environment, stdout=subprocess.DEVNULL) as view:
            while not list(place.glob('*/page.html.part')) and view.poll() is None:
                pass
            view.send_signal(signal.SIGINT)
            self.assertEqual(view.wait(), -signal.SIGINT)
        self.assertEqual({path.name for path in place.iterdir()}, kept)

    def collect(self, *options):
        """A collector below runs/ that has looked at its runs; what it said."""
        own = ['--socket', str(self.folder / 'socket'), '--spool', str(self.folder / 'no-spool')]
        with subprocess.Popen([str(RANKTAP), 'collect', '-o', 'runs', *own, *options], cwd=self.folder, stderr=subprocess.PIPE, text=True) as collector:
            said = [collector.stderr.readline()]
            while 'removed' in said[-1] or 'collecting at' in said[-1]:
                if len(said) == 3:
                    break
                said.append(collector.stderr.readline())
            collector.terminate()
            return said + collector.stderr.readlines()

    def make_run(self, name, days, status='closed', kib=100):
        run = self.folder / f'runs/{os.getuid()}/{name}'
        run.mkdir(parents=True)
        (run / 'rank-00000.trace').write_bytes(os.urandom(kib << 10))
        (run / 'run.json').write_text(json.dumps({'format': 1, 'run': 'ab', 'traces': [{'file': 'rank-00000.trace', 'status': status}]}))
        for path in run.iterdir():
            os.utime(path, (time.time() - days * 86400,) * 2)

    def kept(self):
        return sorted(path.name for path in (self.folder / f'runs/{os.getuid()}').iterdir())

    def test_a_collector_removes_runs_that_are_older_than_asked_and_none_that_a_process_is_in(self):
        for name, days, status in (('old', 31, 'closed'), ('dead', 40, 'died'), ('open', 50, 'open'), ('young', 29, 'closed')):
            self.make_run(name, days, status)
        for part in 'dump-20260101-120000', 'hang-20260101-120000':  # parts of the run, which go with it
            inside = self.folder / f'runs/{os.getuid()}/old/{part}'
            inside.mkdir()
            (inside / 'run.json').touch()
            os.utime(inside / 'run.json', (0, 0))
        (self.folder / f'runs/{os.getuid()}/no-run').mkdir()
        (self.folder / f'runs/{os.getuid()}/no-run/notes').touch()
        os.utime(self.folder / f'runs/{os.getuid()}/no-run/notes', (0, 0))
        said = self.collect('--keep-runs', '30d')
        self.assertEqual(self.kept(), ['no-run', 'open', 'young'])
        self.assertEqual(sum('older than --keep-runs' in line for line in said), 2)

    def test_status_tells_which_runs_a_collector_removes_and_how_many_went(self):
        for name, days in ('a', 1), ('c', 31), ('b', 2):
            self.make_run(name, days)
        own = ['--socket', str(self.folder / 'socket'), '--spool', str(self.folder / 'no-spool')]
        with subprocess.Popen([str(RANKTAP), 'collect', '-o', 'runs', *own, '--keep-runs', '30d', '--max-disk', '200G'], cwd=self.folder,
                              stderr=subprocess.PIPE, text=True) as collector:
            while 'removed' not in collector.stderr.readline():
                pass
            told = self.ranktap('status', '--socket', str(self.folder / 'socket')).stdout
            collector.terminate()
        self.assertIn('runs are removed 30 days after they ended, and the oldest first while all take more than 200.0 GiB; 1 run (', told)

    def test_a_collector_removes_the_oldest_until_the_others_fit(self):
        for name, days in ('a', 1), ('c', 3), ('d', 4), ('b', 2):
            self.make_run(name, days)
        self.make_run('now', 0)
        said = self.collect('--max-disk', '350K')
        self.assertEqual(self.kept(), ['a', 'b', 'now'])
        self.assertEqual(sum('more than --max-disk' in line for line in said), 2)
        for wrong in ('--keep-runs', 'x'), ('--max-disk', '3 bananas'), ('--max-disk', '0'):
            self.ranktap('collect', *wrong, status=2)

    def test_a_page_of_the_documentation_is_shown_without_links_and_no_wider_than_the_terminal(self):
        said = self.ranktap('help', 'page').stdout
        self.assertIn('The page', said)
        self.assertNotIn('](', said)
        self.assertLessEqual(max(map(len, said.splitlines())), 120)
        self.assertIn('tutorials/first-run', self.ranktap('help', 'topics').stdout)
        self.assertEqual(self.ranktap('help', 'run').stdout, self.ranktap('run', '--help').stdout)


if __name__ == '__main__':
    unittest.main()
