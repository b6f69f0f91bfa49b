"""Programs with a planted guilty line, sampled: `report host` has the line, and what it did there."""
import json
import sys
import unittest

import harness

GREENLET = harness.CACHE / 'browser-venv/lib/python3.11/site-packages/greenlet'
PROGRAM = harness.PROGRAMS / 'lines.py'
LINES = {line.rsplit('# ', 1)[1]: f'lines.py:{number}'
         for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if '  # ' in line}


class HostLinesTest(harness.TracedTest):

    def rows(self, name, seconds=1, **environment):
        done, run = self.run_traced([sys.executable, PROGRAM, name, seconds], ['--sample', '5ms', '--quiet'], **environment)
        self.assertEqual((done.returncode, done.stdout), (0, ''), done.stderr)
        self.assert_verifies(run)
        self.run_directory = run
        return self.report(run, 'host')

    def first_sentence(self):
        done = self._run([harness.RANKTAP, 'report', self.run_directory, 'verdict'], {})
        return done.stdout.splitlines()[0]

    def of_line(self, rows, name):
        """Own time and total of the line's row, and the sampled time of the main thread."""
        row = next(row for row in rows if row['source'] == LINES[name] and row['file'] == str(PROGRAM) and row['thread'] == 'main')
        return row, sum(row['self_ns'] for row in rows if row['thread'] == 'main')

    def test_a_sleep_in_the_loop_waits_on_its_line(self):
        row, sampled = self.of_line(self.rows('sleep'), 'sleep')
        self.assertGreater(sampled, 0.5e9)
        self.assertGreater(row['self_ns'], 0.5 * sampled)
        self.assertGreater(row['waiting_ns'] + row['no_cpu_ns'], 0.9 * row['self_ns'])
        self.assertIn(f'mostly at lines.py:{LINES["sleep"].rsplit(":", 1)[1]} (sleep).', self.first_sentence())

    def test_a_hand_written_generator_runs_on_its_line(self):
        rows = self.rows('generator')
        row, sampled = self.of_line(rows, 'generator')
        self.assertGreater(row['total_ns'], 0.5 * sampled)
        self.assertGreater(row['on_cpu_ns'], 0)
        self.check_exports()

    def check_exports(self):
        """The flame graphs have the line, the thread and its time; so has Perfetto."""
        line = LINES['generator']
        folded = self.export('folded').decode()
        self.assertRegex(folded, rf'(?m)^Python threads;main thread;.*;batches \({line}\).* \d+$')
        document = json.loads(self.export('speedscope'))
        frames = document['shared']['frames']
        profile = next(one for one in document['profiles'] if one['name'] == 'Python threads, by samples')
        place = next(i for i, frame in enumerate(frames) if (frame['name'], frame.get('file')) == ('batches', str(PROGRAM)))
        self.assertGreater(sum(weight for stack, weight in zip(profile['samples'], profile['weights']) if place in stack),
                           0.5 * sum(profile['weights']))
        for wanted in (b'python_cpu', b'thread', b'batches'):
            self.assertIn(wanted, self.export('pprof'))
        for wanted in (b'Python samples, thread ', f'batches ({line})'.encode()):
            self.assertIn(wanted, self.export('perfetto'))

    def export(self, form):
        path = self.scratch / f'run.{form}'
        done = self._run([harness.RANKTAP, 'export', self.run_directory, '--format', form, '-o', path], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        return path.read_bytes()

    def test_a_flush_of_a_log_is_below_the_line_that_logs(self):
        row, sampled = self.of_line(self.rows('log'), 'log')
        self.assertGreater(row['total_ns'], 0.5 * sampled)
        self.assertLess(row['self_ns'], 0.5 * row['total_ns'])

    def test_a_garbage_collection_is_on_the_line_that_asks_for_it(self):
        row, sampled = self.of_line(self.rows('collect'), 'collect')
        self.assertGreater(row['self_ns'], 0.5 * sampled)

    def test_a_lock_is_waited_for_on_its_line(self):
        row, sampled = self.of_line(self.rows('lock'), 'lock')
        self.assertGreater(row['waiting_ns'], 0.5 * sampled)

    def test_a_thread_that_wants_the_gil_is_said_to(self):
        rows = [row for row in self.rows('hog') if row['thread'] == 'main']
        sampled = sum(row['self_ns'] for row in rows)
        # Where each thread has a CPU of its own it is most of the time; on a busy machine less.
        self.assertGreater(sum(row['gil_ns'] for row in rows), 0.1 * sampled)

    def test_a_number_that_is_read_each_step_keeps_the_device_idle_at_its_line(self):
        fakes = harness.BUILD / 'fakes'
        self.rows('item', LD_LIBRARY_PATH=str(fakes), RANKTAP_CUPTI=str(fakes / 'libcupti.so.13'))
        line = rf'lines\.py:{LINES["item"].rsplit(":", 1)[1]} \(item\)'
        self.assertRegex(self.first_sentence(), rf'an idle device .* at {line}')
        reads = [row['where'] for row in self.report(self.run_directory, 'insights') if row['rule'] == 'tensor-reads']
        self.assertEqual(len(reads), 1)
        self.assertRegex(reads[0], line)

    def test_where_the_work_is_spread_no_line_has_half(self):
        rows = [row for row in self.rows('even') if row['thread'] == 'main']
        sampled = sum(row['self_ns'] for row in rows)
        self.assertTrue(all(row['self_ns'] < 0.5 * sampled for row in rows), rows)
        self.assertNotIn('lines.py', self.first_sentence())

    def test_processes_that_it_started_are_read_from_outside_and_make_no_rank(self):
        rows = [row for row in self.rows('children', 2) if row['file'] == str(PROGRAM) and row['thread'] == 'helpers']
        own = {row['source']: row for row in rows if row['self_ns'] > 0}
        self.assertEqual(set(own), {LINES['forked'], LINES['started']})
        for row in own.values():
            self.assertGreater(row['self_ns'], 0.5e9)
            self.assertGreater(row['waiting_ns'], 0.9 * row['self_ns'])
        # A fork child's stack begins where it does: what its parent called is none of its own.
        self.assertNotIn('children', {row['function'] for row in rows})
        self.assertEqual(len(self.report(self.run_directory, 'ranks')), 1)

    def test_a_program_that_forks_makes_code_recurses_and_ends_in_the_midst_of_it_is_as_bare(self):
        command = [sys.executable, harness.PROGRAMS / 'forks.py']
        bare = self.run_bare(command)
        self.assertEqual((bare.returncode, bare.stdout.count(' 7\n')), (3, 20), bare.stderr)
        traced, run = self.run_traced(command, ['--sample', '1ms', '--quiet'])
        self.assertEqual((traced.returncode, traced.stdout, traced.stderr), (bare.returncode, bare.stdout, bare.stderr))
        self.assert_verifies(run)
        self.assertIn('recurse', {row['function'] for row in self.report(run, 'host')})

    def test_stacks_that_are_hard_to_read_are_as_bare(self):
        if not GREENLET.exists():
            print(f'SKIPPED greenlets, NOT TESTED: {GREENLET} is not there; scripts/setup --tools installs it')
        command = [sys.executable, harness.PROGRAMS / 'odd_stacks.py']
        bare = self.run_bare(command, PYTHONPATH=str(GREENLET.parent))
        self.assertEqual((bare.returncode, bare.stdout.count('\n')), (0, 7), bare.stderr)
        self.assertIn('deep 100001', bare.stdout)
        traced, run = self.run_traced(command, ['--sample', '1ms', '--quiet'], PYTHONPATH=str(GREENLET.parent))
        self.assertEqual((traced.returncode, traced.stdout, traced.stderr), (bare.returncode, bare.stdout, bare.stderr))
        self.assert_verifies(run)
        functions = {row['function'].partition('.')[0] for row in self.report(run, 'host')}
        # While an interpreter in the interpreter runs, the thread's stack is the inner one's.
        self.assertLess({'deep', 'in_another', 'tasks', 'made_code', 'unreadable'}, functions)


if __name__ == '__main__':
    unittest.main()
