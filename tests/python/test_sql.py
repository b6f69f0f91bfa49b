"""`ranktap sql`, and the questions of docs/sql.md, asked of DuckDB."""
import json
import os
import re
import subprocess
import sys
import unittest

from harness import BUILD, CACHE, PROGRAMS, RANKTAP, ROOT, TracedTest

SQL_PYTHON = CACHE / 'sql-venv/bin/python'
INPUTS = ROOT / 'tests/golden/inputs'


def questions():
    """What is asked, and the query."""
    return re.findall(r'^(\S[^\n]*\?)[^\n]*\n\n```sql\n(.*?)```', (ROOT / 'docs/sql.md').read_text(), re.M | re.S)


@unittest.skipUnless(SQL_PYTHON.exists(), f'no DuckDB at {SQL_PYTHON}; scripts/setup --tools installs it')
class SqlTest(TracedTest):
    def ask(self, *words, **environment):
        return self._run([RANKTAP, 'sql', '--python', SQL_PYTHON, *words], environment)

    def rows(self, *words):
        done = self.ask(*words, '--format', 'json')
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


class Questions(SqlTest):
    def setUp(self):
        super().setUp()
        self.set = self.scratch / 'set'
        for run in ('standin-full', 'standin-kernels', 'torch-ddp'):
            done = self._run([RANKTAP, 'export', INPUTS / run, '--format', 'parquet', '-o', self.set], {})
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_page_has_ten_and_each_has_an_answer(self):
        self.assertEqual(len(questions()), 10)
        for question, query in questions():
            with self.subTest(question):
                self.assertGreater(len(self.rows(self.set, query)), 0)

    def test_shares_of_kernels_add_up_and_equal_the_report(self):
        query = dict(questions())['Which kernels take the most time, over all ranks?']
        rows = [row for row in self.rows(self.set, query) if row['run'] == 'standin-full']
        self.assertAlmostEqual(sum(row['percent'] for row in rows), 100, delta=1)
        reported = {row['name']: row['total_ns'] for row in self.report(INPUTS / 'standin-full', 'kernels')}
        self.assertEqual({row['name']: row['total_ns'] for row in rows}, reported)

    def test_who_comes_last_in_collectives_equals_the_report(self):
        query = dict(questions())['Which rank do the others wait for?']
        rows = [row for row in self.rows(self.set, query) if row['run'] == 'torch-ddp']
        self.assertEqual(len(rows), 2)
        calls = sum(row['calls'] for row in self.report(INPUTS / 'torch-ddp', 'comm'))
        self.assertEqual(sum(row['times_last'] for row in rows), calls)

    def test_every_run_is_in_its_week(self):
        query = dict(questions())['How did the step time change from week to week?']
        rows = self.rows(self.set, query)
        self.assertEqual({row['run'] for row in rows}, {'standin-full', 'standin-kernels', 'torch-ddp'})
        self.assertTrue(all(row['week'].startswith('2026-11-16') for row in rows), rows)


class Samples(SqlTest):
    def test_the_pages_query_finds_the_line_of_each_step(self):
        """Its steps are those of a device, the stand-in's."""
        program = [sys.executable, PROGRAMS / 'lines.py', 'item', '1']
        done, run = self.run_traced(program, ['--sample', '5ms', '--quiet'], LD_LIBRARY_PATH=str(BUILD / 'fakes'),
                                    RANKTAP_CUPTI=str(BUILD / 'fakes/libcupti.so.13'))
        self.assertEqual(done.returncode, 0, done.stderr)
        query, = re.findall(r'## Samples\n.*?```sql\n(.*?)```', (ROOT / 'docs/sql.md').read_text(), re.S)
        rows = self.rows(run, query)
        reported = self.report(run, 'host', '--by', 'step')
        self.assertGreater(len(reported), 3)
        longest = {}
        for row in rows:
            longest.setdefault(row['step'], row)
        # On a busy machine another line may have a step.
        self.assertGreater(sum('(item)' in row['line'] for row in reported), len(reported) / 2)
        for row in reported:
            self.assertEqual(longest[row['step']]['ns'], row['line_ns'])
            self.assertEqual(sum(one['ns'] for one in rows if one['step'] == row['step']), row['sampled_ns'])


class FormerNames(SqlTest):
    def ways(self, data_set):
        rows = self.rows(data_set, 'SELECT door, loaded_by FROM report_ranks')
        return {(row['door'], row['loaded_by']) for row in rows}

    def test_a_column_is_found_by_either_name_whichever_its_file_has(self):
        data_set = self.scratch / 'set'
        done = self._run([RANKTAP, 'report', INPUTS / 'standin-full', 'ranks', '--format', 'parquet', '-o', data_set], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        now = self.ways(data_set)
        self.assertEqual({door for door, _ in now}, {loaded_by for _, loaded_by in now} - {None}, now)
        for file in data_set.glob('report_ranks/run=*/*.parquet'):
            subprocess.run([SQL_PYTHON, '-c', 'import duckdb, sys; duckdb.sql(f"COPY (SELECT * RENAME (loaded_by AS door) '
                            'FROM read_parquet(\'{sys.argv[1]}\', hive_partitioning = false)) TO \'{sys.argv[1]}.new\' (FORMAT parquet)")', file],
                           check=True)
            file.with_name(file.name + '.new').rename(file)
        self.assertEqual(self.ways(data_set), now)


class Command(SqlTest):
    QUERY = 'SELECT run, count(*)::int AS kernels FROM kernels GROUP BY run ORDER BY run'

    def test_runs_are_exported_for_the_question_and_nothing_is_left(self):
        temporary = self.scratch / 'temporary'
        temporary.mkdir()
        done = self.ask(INPUTS / 'standin-full', INPUTS / 'standin-kernels', self.QUERY, '--format', 'csv',
                        TMPDIR=str(temporary))
        self.assertEqual(done.stdout, 'run,kernels\nstandin-full,100\nstandin-kernels,84\n')
        self.assertEqual(list(temporary.iterdir()), [])

    def test_runs_of_one_name_are_told_apart(self):
        self.assertEqual([row['run'] for row in self.rows(INPUTS / 'standin-full', INPUTS / 'standin-full', self.QUERY)],
                         ['standin-full', 'standin-full-2'])

    def test_an_answer_in_a_file_is_whole(self):
        path = self.scratch / 'answer.csv'
        with path.open('w') as file:
            file.write('before\n')
            file.flush()
            subprocess.run([str(word) for word in (RANKTAP, 'sql', '--python', SQL_PYTHON, INPUTS / 'standin-full',
                                                   self.QUERY, '--format', 'csv')], stdout=file, check=True)
        self.assertEqual(path.read_text(), 'before\nrun,kernels\nstandin-full,100\n')

    def test_a_wrong_query_fails_with_the_engines_words(self):
        done = self.ask(INPUTS / 'standin-full', 'SELECT nothing FROM kernels')
        self.assertEqual(done.returncode, 1)
        self.assertIn('nothing', done.stderr)

    def test_without_an_engine_it_says_how_to_get_one(self):
        nowhere = self.scratch / 'empty'
        nowhere.mkdir()
        done = self._run([RANKTAP, 'sql', INPUTS / 'standin-full', self.QUERY], {'PATH': str(nowhere)})
        self.assertEqual(done.returncode, 1)
        self.assertIn('pip install duckdb', done.stderr)

    def test_the_program_on_the_path_is_taken_first(self):
        program = self.scratch / 'duckdb'
        program.write_text('#!/bin/sh\ngrep -c "CREATE VIEW" "$2"\nshift 2\necho "$@"\n')
        program.chmod(0o755)
        done = self._run([RANKTAP, 'sql', INPUTS / 'standin-full', 'SELECT 1', '--format', 'json'],
                         {'PATH': f'{self.scratch}:{os.environ["PATH"]}'})
        self.assertEqual(done.stdout, '11\n-json -c SELECT 1\n')

    def test_a_text_is_no_wider_than_the_terminal_and_whole_in_a_pipe(self):
        query = 'SELECT *, name AS again, name AS third FROM kernels LIMIT 5'
        for columns, least, most in (80, 40, 80), (None, 200, 10**6):
            done = self.ask(INPUTS / 'standin-full', query, **({'COLUMNS': str(columns)} if columns else {}))
            self.assertEqual(done.returncode, 0, done.stderr)
            widest = max(map(len, done.stdout.splitlines()))
            self.assertTrue(least <= widest <= most, (columns, widest))

    def test_a_data_set_may_lie_in_a_folder_whose_name_is_a_pattern(self):
        folder = self.scratch / 'a [b] *?c'
        done = self._run([RANKTAP, 'export', INPUTS / 'standin-full', '--format', 'parquet', '-o', folder], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.rows(folder, self.QUERY), [{'run': 'standin-full', 'kernels': 100}])

    def test_a_query_reads_and_writes_nothing_beside_the_set_and_loads_no_extension(self):
        for query in ("SELECT * FROM read_csv('/etc/passwd')", f"COPY (SELECT 1) TO '{self.scratch}/out.csv'", 'LOAD httpfs',
                      'SET enable_external_access = true'):
            done = self.ask(INPUTS / 'standin-full', query)
            self.assertEqual(done.returncode, 1, query)
        self.assertFalse((self.scratch / 'out.csv').exists())

    def test_a_query_without_a_run_is_wrong_usage(self):
        self.assertEqual(self.ask('SELECT 1').returncode, 2)


if __name__ == '__main__':
    unittest.main()
