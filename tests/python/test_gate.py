"""`ranktap diff` and `ranktap baseline`: exit statuses, formats, and what is left in files."""
import functools
import json
import os
import re
import subprocess
import textwrap
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


class JUnitTest(TracedTest):
    def check_junit(self, element):
        attributes, children = JUNIT[element.tag]
        self.assertLessEqual(set(element.attrib), attributes)
        for child in element:
            self.assertIn(child.tag, children)
            self.check_junit(child)


class GateTest(JUnitTest):
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


    def test_the_workload_and_the_environment_of_a_run_are_kept(self):
        self.ranktap('baseline', 'tag', 'torch', ROOT / 'tests/golden/inputs/torch-ddp')
        run = json.loads((self.scratch / 'ranktap-baselines/torch.json').read_text())['runs'][0]
        self.assertEqual((run['settings']['batch'], run['settings']['dtype'], run['flops_per_step']), ('8', 'float', 22528))
        done = self.run_bare([RANKTAP, 'run', '--quiet', '-o', 'kept', '--', 'true'], OMP_NUM_THREADS='3', HF_TOKEN='x')
        self.assertEqual(done.returncode, 0, done.stderr)
        metadata = json.loads((self.scratch / 'kept/run.json').read_text())['metadata']
        self.assertEqual(metadata['process.environment_variable.OMP_NUM_THREADS'], '3')
        self.assertFalse([name for name in metadata if 'HF_TOKEN' in name])


@unittest.skipIf(nvtx_program.why_no_program(), nvtx_program.why_no_program())
class CiStepTest(JUnitTest):
    """The step that docs/ci.md prints, by the shell that a forge runs it with. A program in C stands for python."""

    def setUp(self):
        super().setUp()
        page = (ROOT / 'docs/ci.md').read_text()
        [step] = re.findall(r'^ +- id: gate\n +run: \|\n(.*?)^      - ', page, re.M | re.S)
        [add_worktree] = re.findall(r'- run: (git worktree add .*)$', page, re.M)
        self.step = textwrap.dedent(step)
        tools = self.scratch / 'tools'
        tools.mkdir()
        nvtx_program.build_steps(tools / 'steps')
        (tools / 'python').write_text('#!/bin/sh\n[ "$*" = "train.py --steps 100" ] && exec steps $(cat us)\n')
        (tools / 'python').chmod(0o755)
        (tools / 'ranktap').symlink_to(RANKTAP)
        checkout = self.scratch / 'checkout'
        checkout.mkdir()
        self.shell = functools.partial(subprocess.run, cwd=checkout, capture_output=True, text=True, env={
            **os.environ, 'PATH': f'{tools}:{os.environ["PATH"]}', 'GITHUB_STEP_SUMMARY': str(self.scratch / 'summary')})
        made = self.shell(['bash', '-e', '-c', 'git init -q; echo 2000 > us; git add us; ' +
                           'git -c user.name=A -c user.email=a@example.com commit -qm base; ' +
                           re.sub(r'\$\{\{.*?\}\}', 'HEAD', add_worktree)])
        self.assertEqual(made.returncode, 0, made.stderr)

    def run_step(self, us):
        (self.scratch / 'checkout/us').write_text(us)
        done = self.shell(['bash', '-e', '-c', self.step])
        self.check_junit(xml.etree.ElementTree.parse(self.scratch / 'checkout/gate.xml').getroot())
        return done, (self.scratch / 'summary').read_text()

    def test_it_fails_where_the_change_made_steps_longer_and_the_summary_says_why(self):
        done, summary = self.run_step('40000')  # a busy machine's runs differ by half
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn('Regression', summary)

    def test_where_the_gate_cannot_tell_it_warns_and_goes_on(self):
        done, summary = self.run_step('2000 3')
        self.assertEqual((done.returncode, done.stdout), (0, '::warning::ranktap cannot tell\n'), done.stderr)
        self.assertIn('and a mean needs 5', summary)


if __name__ == '__main__':
    unittest.main()
