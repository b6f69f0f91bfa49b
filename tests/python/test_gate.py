"""`ranktap diff` and `ranktap baseline`: exit statuses, formats, and what is left in files."""
import json
import unittest
import xml.etree.ElementTree

import nvtx_program
from harness import RANKTAP, ROOT, TracedTest

INPUT = ROOT / 'tests/golden/inputs/standin-kernels'
# What junit-10.xsd of Jenkins' xUnit plugin allows in the elements that we write.
JUNIT = {
    'testsuites': ({'name', 'tests', 'failures', 'errors'}, {'testsuite'}),
    'testsuite': ({'name', 'tests', 'failures', 'errors'}, {'testcase', 'system-out'}),
    'testcase': ({'name', 'classname'}, {'failure', 'error'}),
    'failure': ({'type', 'message'}, set()),
    'error': ({'type', 'message'}, set()),
    'system-out': (set(), set()),
}


class GateTest(TracedTest):
    def ranktap(self, *words, status=0):
        done = self.run_bare([RANKTAP, *words])
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def tag(self, name, factors):
        """A baseline of runs that take these times as long as the golden run."""
        self.ranktap('baseline', 'tag', name, INPUT)
        path = self.scratch / 'ranktap-baselines' / f'{name}.json'
        baseline = json.loads(path.read_text())
        one = baseline['runs'][0]
        baseline['runs'] = [
            {**one, 'id': f'{name}-{i}', 'figures': [{**figure, 'ns_per_step': figure['ns_per_step'] * factor}
                                                     for figure in one['figures']]}
            for i, factor in enumerate(factors)]
        path.write_text(json.dumps(baseline))
        return path

    def setUp(self):
        super().setUp()
        self.base = self.tag('base', [1, 1.002, 0.998])
        self.same = self.tag('same', [1.001, 0.999, 1])
        self.slow = self.tag('slow', [1.1, 1.102, 1.098])

    def test_the_exit_status_tells_regression_none_and_cannot_tell(self):
        self.ranktap('diff', self.base, '--', self.same)
        self.ranktap('diff', self.base, '--', self.slow, status=3)
        self.ranktap('diff', self.slow, '--', self.base)
        self.ranktap('diff', self.base, '--', self.slow, '--fail-if', 'step>10%', status=4)
        self.ranktap('diff', INPUT, '--', INPUT, status=4)
        self.assertIn('stands twice', self.ranktap('diff', INPUT, INPUT, '--', INPUT, status=4))
        # A baseline holds its own spread.
        self.ranktap('diff', self.base, '--', INPUT)
        self.ranktap('diff', self.base, '--', 'nothing', status=1)
        for words in (['x'], ['x', '--'], ['--', 'x'], ['--repeat', '2', '--base', 'true'],
                      ['--base', 'true', '--with', 'true'], ['x', '--', 'y', '--fail-if', 'step>3']):
            self.ranktap('diff', *words, status=2)

    def test_every_format_says_the_same(self):
        words = ['diff', self.base, '--', self.slow, '--fail-if', 'step>3%', '--fail-if', 'memory-peak>5%']
        table = json.loads(self.ranktap(*words, '--format', 'json', status=3))
        self.assertEqual([row['answer'] for row in table['rows']], ['regression', 'no regression'])
        self.assertAlmostEqual(table['rows'][0]['change_percent'], 10, delta=0.5)
        self.assertLess(table['rows'][0]['low_percent'], table['rows'][0]['change_percent'])
        for form in ('text', 'markdown', 'html'):
            answer = self.ranktap(*words, '--format', form, '-o', f'answer.{form}', status=3)
            self.assertEqual(answer, '')
            self.assertIn('egression', (self.scratch / f'answer.{form}').read_text())

        suites = xml.etree.ElementTree.fromstring(self.ranktap(*words, '--format', 'junit', status=3))
        self.check_junit(suites)
        self.assertEqual(suites.attrib['failures'], '1')
        self.assertEqual(suites.find('testsuite/testcase/failure').attrib['type'], 'regression')
        words = ['diff', INPUT, '--', INPUT, '--format', 'junit']
        suites = xml.etree.ElementTree.fromstring(self.ranktap(*words, status=4))
        self.check_junit(suites)
        self.assertEqual(suites.attrib['errors'], '1')

    def check_junit(self, element):
        attributes, children = JUNIT[element.tag]
        self.assertLessEqual(set(element.attrib), attributes)
        for child in element:
            self.assertIn(child.tag, children)
            self.check_junit(child)

    def test_baselines_are_listed_and_removed(self):
        rows = json.loads(self.ranktap('baseline', 'list', '--format', 'json'))['rows']
        self.assertEqual([row['name'] for row in rows], ['base', 'same', 'slow'])
        self.assertAlmostEqual(rows[0]['spread_percent'], 0.2, delta=0.01)
        self.ranktap('baseline', 'rm', 'slow')
        self.ranktap('baseline', 'rm', 'slow', status=1)
        self.assertFalse(self.slow.exists())
        for words in (['tag', '../x', INPUT], ['tag', 'x'], ['rm'], ['show'], ['rm', '..']):
            self.ranktap('baseline', *words, status=2)
        self.assertEqual(len(list((self.scratch / 'ranktap-baselines').iterdir())), 2)

    @unittest.skipIf(nvtx_program.why_no_program(), nvtx_program.why_no_program())
    def test_two_commands_run_in_turn_and_their_runs_stay(self):
        nvtx_program.build_program(self.scratch / 'program')
        train = f'echo told by the program; {self.scratch}/program; echo $PWD >> turns'
        answer = json.loads(self.ranktap('diff', '--repeat', '2', '--base', f'{train}; echo base >> turns', '--with',
                                         f'{train}; echo with >> turns', '--format', 'json', status=4))
        self.assertIn('and a mean needs 5', answer['rows'][0]['why'])
        runs = sorted(path.name for path in (self.scratch / 'ranktap-diff').iterdir())
        self.assertEqual(runs, ['base-1', 'base-2', 'with-1', 'with-2'])
        turns = (self.scratch / 'turns').read_text().split()
        self.assertEqual([word for word in turns if word in ('base', 'with')], ['base', 'with', 'with', 'base'])
        self.ranktap('diff', '--repeat', '1', '--base', train, '--with', train, status=1)
        done = self.run_bare([RANKTAP, 'diff', '--repeat', '1', '--base', 'exit 7', '--with', 'true', '--runs', 'others'])
        self.assertEqual(done.returncode, 1)
        self.assertIn('ended with status 7', done.stderr)


if __name__ == '__main__':
    unittest.main()
