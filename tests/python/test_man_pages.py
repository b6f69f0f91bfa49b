"""Manual pages of docs/commands: one for each verb, which man shows without a warning."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import ROOT


@unittest.skipUnless(shutil.which('lowdown') and shutil.which('man'), 'no lowdown or no man; scripts/setup installs them')
class ManPages(unittest.TestCase):
    def test_each_verb_has_one_that_renders_without_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([ROOT / 'scripts/gen_man', folder, '9.9'], check=True)
            verbs = re.findall(r'^    {"([a-z-]+)",', (ROOT / 'collector/cli/registry.cc').read_text(), re.M)
            pages = {page.stem: page for page in pathlib.Path(folder).iterdir()}
            self.assertEqual(set(pages), {'ranktap'} | {f'ranktap-{verb}' for verb in verbs})
            for name, page in pages.items():
                with self.subTest(page=name):
                    done = subprocess.run(['man', '--warnings', '-l', page], capture_output=True, text=True, check=False)
                    self.assertEqual([done.returncode, done.stderr], [0, ''])
                    self.assertRegex(done.stdout, rf'NAME\n\s+{name}\s+-\s+\w')

    def test_tables_of_options_are_lists(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([ROOT / 'scripts/gen_man', folder], check=True)
            page = (pathlib.Path(folder) / 'ranktap-run.1').read_text()
            self.assertNotIn('.TS', page)
            self.assertIn('RANKTAP-RUN', page)


if __name__ == '__main__':
    unittest.main()
