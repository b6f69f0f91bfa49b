"""Every command of docs/tutorials does what its page says."""
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import ROOT, needs_torch
from test_launchers import needs, slurm


def load_tutorials():
    loader = importlib.machinery.SourceFileLoader('tutorials', str(ROOT / 'scripts/tutorials'))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('tutorials', loader))
    loader.exec_module(module)
    return module


tutorials = load_tutorials()


@needs_torch
class Tutorials(unittest.TestCase):
    def check(self, name, **environment):
        page = tutorials.PAGES / f'{name}.md'
        self.assertEqual(tutorials.run_page(page, update=False, **environment), [])

    @unittest.skipUnless(os.geteuid() == 0, 'a Slurm of our own takes root')
    @needs('srun', 'slurmctld', 'slurmd', 'munged')
    def test_page_slurm(self):
        with tempfile.TemporaryDirectory() as scratch, slurm(scratch) as configuration:
            self.check('slurm', SLURM_CONF=str(configuration))

    def test_all_pages_are_tested(self):
        tested = {name.removeprefix('test_page_').replace('_', '-') for name in dir(self) if name.startswith('test_page_')}
        self.assertEqual(tested, {page.stem for page in tutorials.PAGES.glob('*.md')} - {'README'})


class Numbers(unittest.TestCase):
    def test_a_time_that_is_off_by_more_than_the_factor_is_named_and_others_are_not(self):
        shown = ['  backward  24  92.81 ms  61.0 %', '  forward  24  10.0 ms', 'no number', '  twice  1 ms', '  twice  1 ms']
        now = ['  backward  3  5.084 ms  94.5 %', '  forward  2  70.0 ms', 'no number', '  twice  1 s', '  twice  1 s']
        self.assertEqual(tutorials.far_off(shown, now), [(shown[0], now[0])])


class Site(unittest.TestCase):
    @unittest.skipUnless(shutil.which('mkdocs'), 'no mkdocs; scripts/setup --tools installs it')
    def test_the_docs_build_without_a_warning(self):
        with tempfile.TemporaryDirectory() as site:
            done = subprocess.run(['mkdocs', 'build', '--strict', '-f', ROOT / 'scripts/mkdocs.yml', '-d', site],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue((pathlib.Path(site) / 'tutorials/first-run/index.html').exists())


def page_test(name):
    return lambda self: self.check(name)


for page in tutorials.PAGES.glob('*.md'):
    if page.stem not in ('README', 'slurm'):
        setattr(Tutorials, f'test_page_{page.stem.replace("-", "_")}', page_test(page.stem))


if __name__ == '__main__':
    unittest.main()
