"""`ranktap bisect` in a repository that is made here: the commit that doubled a step is found, and the checkout stays as it was."""
import json
import pathlib
import subprocess
import unittest

import harness
import nvtx_program
from harness import RANKTAP, TracedTest

COMMITS, SLOW = 12, 8


@unittest.skipIf(nvtx_program.why_no_program(), nvtx_program.why_no_program())
class BisectTest(TracedTest):
    def git(self, *words):
        done = subprocess.run(['git', '-c', 'user.name=A', '-c', 'user.email=a@example.com', *words], cwd=self.repository,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def setUp(self):
        super().setUp()
        self.program = self.scratch / 'steps'
        nvtx_program.build_steps(self.program)
        self.temporary = self.scratch / 'temporary'
        self.temporary.mkdir()
        self.repository = self.scratch / 'repository'
        self.repository.mkdir()
        self.git('init', '--quiet', '--initial-branch', 'main')
        self.commits = []
        for number in range(COMMITS + 1):
            (self.repository / 'us').write_text('8000' if number >= SLOW else '3000')
            (self.repository / 'notes').write_text(str(number))
            if number == 6:
                (self.repository / 'us').write_text('no number')
            self.git('add', '.')
            self.git('commit', '--quiet', '-m', f'change {number}')
            self.commits.append(self.git('rev-parse', 'HEAD'))

    def bisect(self, *words, status=0, command=None, place=None):
        done = subprocess.run([str(word) for word in (RANKTAP, 'bisect', *words, '--', *(command or self.command()))],
                              cwd=place or self.repository, capture_output=True, text=True, timeout=harness.TIMEOUT_S,
                              env={**harness.os.environ, 'TMPDIR': str(self.temporary)})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(list(self.temporary.iterdir()), [])
        if (self.repository / '.git').exists():
            self.assertEqual(len(self.git('worktree', 'list').splitlines()), 1)
        return done

    def command(self):
        return ['sh', '-c', f'{self.program} $(cat us)']

    def test_it_finds_the_commit_skips_one_that_fails_and_leaves_the_checkout(self):
        (self.repository / 'us').write_text('work of the user')
        done = self.bisect(self.commits[0], 'main', '--format', 'json', '--runs', '../runs')
        answer = json.loads(done.stdout)
        self.assertIn(f'The change came with {self.commits[SLOW][:10]} (change {SLOW})', answer['title'])
        self.assertRegex(answer['notes'][0], r'\d+ runs at \d+ commits of 12, 1 skipped; a spread of [\d.]+ % from run to run')
        rows = {row['subject']: row for row in answer['rows']}
        self.assertGreaterEqual(rows[f'change {SLOW}']['sure_percent'], 95)
        self.assertIn('ended with status 1', rows['change 6']['skipped'])
        self.assertLess(rows['change 0']['mean_ns'], rows['change 12']['mean_ns'])
        self.assertEqual((self.repository / 'us').read_text(), 'work of the user')
        self.assertIn('uncommitted changes', done.stderr)
        self.assertEqual(self.git('rev-parse', 'HEAD'), self.commits[-1])
        # The runs stay, and those of the ends serve a second search.
        runs = {path.name.split('-')[1]: path for path in (self.scratch / 'runs').iterdir()}
        known = ['--good-runs', runs[self.commits[0][:10]], '--bad-runs', runs[self.commits[-1][:10]], '--runs', '../others']
        self.assertIn(f'(change {SLOW})', self.bisect(self.commits[0], 'main', *known, '--by', 'ranges:step').stdout)
        self.assertLess(len(list((self.scratch / 'others').iterdir())), len(list((self.scratch / 'runs').iterdir())))

    def test_where_the_runs_are_too_few_it_cannot_tell(self):
        done = self.bisect(self.commits[0], 'main', '--most', '3', status=4)
        self.assertIn('Cannot tell: most likely the change came with', ' '.join(done.stdout.split()))

    def test_bad_input_gets_one_line_that_says_why(self):
        for number, (words, command, place, said) in enumerate((
                ([self.commits[0], 'nothing'], None, None, 'nothing: this repository has no such commit'),
                (['main', self.commits[0]], None, None, 'is no ancestor of'),
                (['main', 'main'], None, None, 'are one commit'),
                (['main~1', 'main'], ['false'], None, 'the command ended with status 1'),
                (['main~1', 'main', '--build', 'exit 3'], None, None, 'the build ended with status 3'),
                (['main~1', 'main'], ['true'], None, 'ranktap: '),
                (['a', 'b'], None, pathlib.Path('/'), "bisect wants to be in a git repository's checkout"))):
            with self.subTest(words=words, command=command):
                done = self.bisect(*words, '--runs', self.scratch / f'runs-{number}', status=1, command=command, place=place)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stdout, '')
        for words in (['main'], ['main~1', 'main', '--by', 'warp'], []):
            self.bisect(*words, status=2)


if __name__ == '__main__':
    unittest.main()
