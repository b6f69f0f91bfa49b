"""scripts/gpu-check on the stand-in: that it runs, says of each question where it stands, and leaves a report."""
import json
import os
import unittest

import harness

STAND_IN = {'GPU_CHECK_STAND_IN_BUILD': str(harness.BUILD)}


class GpuCheckTest(harness.TracedTest):
    def setUp(self):
        super().setUp()
        self.tree, self.out = self.scratch / 'tree', self.scratch / 'out'

    def _pack(self):
        packed = self._run([harness.ROOT / 'scripts/gpu-check', '--pack', self.tree], {})
        self.assertEqual(packed.returncode, 0, packed.stderr)

    def _check(self, *options, **environment):
        return self._run([self.tree / 'scripts/gpu-check', '--stand-in', '--out', self.out, *options],
                         {**STAND_IN, 'RANKTAP_BUILD': str(self.tree / 'build/release'), **environment})

    def _said(self):
        return json.loads((self.out / 'gpu-check.json').read_text())

    def test_two_calls_make_one_report(self):
        self._pack()
        for checks in 'facts', 'graphs,roofs':
            done = self._check('--only', checks)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        said = self._said()
        names = [finding['name'] for finding in said['findings']]
        self.assertIn('fact clock-once', names)
        self.assertIn('graphs node by node at level full', names)
        self.assertIn('roofs of device 1', names)
        self.assertTrue(all(finding['met'] is not False for finding in said['findings']))
        self.assertEqual(len(said['questions']), 10)
        self.assertTrue(all(question['answer'] is None for question in said['questions']), 'the stand-in answers none')
        self.assertIn('SIMULATED', (self.out / 'gpu-check.md').read_text())

    def test_a_check_that_throws_is_a_finding_and_the_next_one_runs(self):
        self._pack()
        facts = self.tree / 'tests/gpu/check/facts.py'
        facts.write_text('def run(check):\n    return statistics.mean([])\n')
        done = self._check('--only', 'facts,graphs')
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        findings = {finding['name']: finding for finding in self._said()['findings']}
        self.assertIn('NameError', findings['facts']['text'])
        self.assertIn('facts.py', findings['facts']['data']['trace'])
        self.assertTrue(findings['graphs node by node at level full']['met'])

    def test_a_kill_in_the_middle_leaves_the_report_of_before(self):
        self._pack()
        graphs = self.tree / 'tests/gpu/check/graphs.py'
        graphs.write_text('import os\n\n\ndef run(check):\n    os.kill(os.getpid(), 9)\n')
        done = self._check('--only', 'facts,graphs')
        self.assertEqual(done.returncode, -9, done.stdout + done.stderr)
        self.assertIn('fact cost', [finding['name'] for finding in self._said()['findings']])

    def test_the_preflight_proves_a_packed_tree(self):
        done = self._run([harness.ROOT / 'scripts/gpu-check', '--preflight'], dict(os.environ))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == '__main__':
    unittest.main()
