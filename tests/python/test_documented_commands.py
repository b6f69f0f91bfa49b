"""Every command line that README, docs, the help and the page print is one that ranktap takes: reports, exports, pages
and checks run on a small run; of the other verbs the options exist."""
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

from harness import RANKTAP, ROOT

RUN = ROOT / 'tests/golden/inputs/torch-ddp'
# Measurements and decisions tell what was so once.
PAGES = [ROOT / 'README.md', *sorted(path for path in (ROOT / 'docs').rglob('*.md')
                                     if not {'measurements', 'decisions'} & set(path.parts))]
FENCE = re.compile(r'^```.*?\n(.*?)^```', re.M | re.S)
# What a small run on a CPU cannot answer is no fault of the words.
UNANSWERED = re.compile(r'none of these steps|no (rank|step|traced|operator|module|GPU|device|collective|kernel|window|allocation)|not a number of|'
                        r'nothing|[Nn]o such file|is not a folder|empty|has no|does not|knows no|was not|not recorded|no sample')
PLACEHOLDER = re.compile(r'^[A-Z][A-Z_0-9]*$|…|\.\.\.|<')
ONE_PLACE = re.compile(r'^(RUN|OUT|FILE|DIR)')


def ranktap(*words, cwd=None):
    return subprocess.run([str(RANKTAP), *words], capture_output=True, text=True, check=False, cwd=cwd, timeout=60,
                          env={'PATH': '/usr/bin:/bin', 'COLUMNS': '100'})


def lines_of(text):
    """What begins with ranktap in code blocks and between backticks, without what a shell takes after it."""
    found = []
    for block in FENCE.findall(text):
        for line in block.replace('\\\n', ' ').splitlines():
            found.append(re.sub(r'^\$ ', '', line.strip()))
    found += [re.sub(r'\s+', ' ', code) for code in re.findall(r'`([^`]+)`', FENCE.sub('', text))]
    return [line for line in found if line.startswith('ranktap ')]


def words_of(line):
    line = re.sub(r'\[([^\]]*)\]', r'\1', line)  # what may be left out is not
    lexer = shlex.shlex(line, posix=True, punctuation_chars='|&;<>')
    lexer.whitespace_split = True
    words = []
    for word in lexer:
        if set(word) <= set('|&;<>') or word == '--':
            break
        words.append(word)
    return words[1:]


class Help:
    def __init__(self):
        self.verbs = re.findall(r'^  ([a-z-]+)  ', ranktap('--help').stdout.split('Reports')[0], re.M)
        self.verbs = [verb for verb in self.verbs if verb != 'ranktap']
        self.texts = {verb: ranktap(verb, '--help').stdout for verb in self.verbs}
        self.reports = set(re.findall(r'^ +([a-z][a-z0-9-]+)  +\S', self.texts['report'].partition('--quiet')[2], re.M))

    def option(self, verb, name):
        """None: there is none; else how many words follow it."""
        found = re.search(rf'^  (?:[-\w,!]*,)?{re.escape(name)}(?:,[-\w,!]*)?((?: \S+)*?)(?:  |$)', self.texts[verb], re.M)
        return None if found is None else len(found[1].split())


class DocumentedCommands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.help = Help()
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def check_options(self, verb, words):
        """The words that are no options, with the options' values told apart: [(option or None, word)]."""
        told, i = [], 0
        while i < len(words):
            word = words[i]
            i += 1
            if not word.startswith('-') or word == '-':
                told.append((None, word))
                continue
            name, equals, value = word.partition('=')
            takes = self.help.option(verb, name)
            self.assertIsNotNone(takes, f'{verb} has no {name}')
            if equals:
                told.append((name, value))
            elif takes and i < len(words):
                told.append((name, ' '.join(words[i:i + takes])))
                i += takes
            else:
                told.append((name, None))
        return told

    def check_runs(self, verb, told):
        """As written, with runs and outputs that are there."""
        words, runs, reports = [], [], []
        for name, word in told:
            if name in ('-o', '--output'):
                words += [name, str(self.folder / f'{len(list(self.folder.iterdir()))}-{pathlib.Path(word).name}')]
            elif name is not None and word is not None:
                words += [f'{name}={word}' if name.startswith('--') else name] + ([] if name.startswith('--') else [word])
            elif name is not None:
                words.append(name)
            elif verb == 'report' and runs and word in self.help.reports:
                reports.append(word)
            else:
                runs.append(word)
        copies = 2 if 'diff' in reports else 1
        if verb == 'report' and any('--help' == name for name, _ in told):
            done = ranktap('report', *runs, *words)
        else:
            done = ranktap(verb, *[str(RUN)] * copies, *reports, *words, cwd=self.folder)
        said = done.stderr
        self.assertTrue(done.returncode != 2 or UNANSWERED.search(said), f'{words}: {said}')

    def check(self, line):
        words = words_of(line)
        if not words or words[0].startswith('-') or words[0] == 'help' or PLACEHOLDER.search(words[0]):
            return 0
        verb = words[0]
        if verb == 'try-cupti':  # the collector's own, which no person types
            return 0
        self.assertIn(verb, self.help.verbs)
        if verb == 'run':  # what follows the command's name is the command's own
            words = words[:next((i for i, word in enumerate(words) if i > 0 and not word.startswith('-') and not (
                words[i - 1].startswith('-') and '=' not in words[i - 1] and self.help.option('run', words[i - 1]))), len(words))]
        told = self.check_options(verb, words[1:])
        blank = [word for name, word in told if word is None and self.help.option(verb, name) or word and PLACEHOLDER.search(word) and not ONE_PLACE.match(word)]
        if blank or verb not in ('report', 'export', 'verify') or not any(name is None for name, _ in told):
            return 0
        self.check_runs(verb, told)
        return 1

    def test_each_line_of_readme_and_docs_is_one_that_ranktap_takes(self):
        seen = ran = 0
        for page in PAGES:
            for line in dict.fromkeys(lines_of(page.read_text())):
                with self.subTest(page=str(page.relative_to(ROOT)), line=line):
                    seen += 1
                    ran += self.check(line)
        self.assertGreater(seen, 300)
        self.assertGreater(ran, 100)

    def test_the_help_of_each_verb_ends_with_two_examples_that_it_takes(self):
        for verb, text in self.help.texts.items():
            with self.subTest(verb=verb):
                examples = [line.strip() for line in text.partition('\nExamples:\n')[2].splitlines()]
                self.assertEqual(len(examples), 2, text)
                for line in examples:
                    self.assertTrue(f'{line} '.startswith(f'ranktap {verb} '), line)
                    self.check(line)


if __name__ == '__main__':
    unittest.main()
