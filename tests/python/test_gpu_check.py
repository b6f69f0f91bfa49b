"""scripts/gpu-check on the stand-in, from a packed tree: that it runs, and says of each question where it stands."""
import json
import unittest

import harness

LENGTHS = {'GPU_CHECK_MODELS': 'mlp', 'GPU_CHECK_ROUNDS': '2', 'GPU_CHECK_PROCESSES': '6'}


class GpuCheckTest(harness.TracedTest):
    def test_a_packed_tree_runs_every_check_and_two_calls_make_one_report(self):
        tree, out = self.scratch / 'tree', self.scratch / 'out'
        packed = self._run([harness.ROOT / 'scripts/gpu-check', '--pack', tree], {})
        self.assertEqual(packed.returncode, 0, packed.stderr)
        for checks in 'basics,graphs,processes', 'guests,overhead,clocks':
            # Away from the tree that it was packed from.
            done = self._run([tree / 'scripts/gpu-check', '--stand-in', '--out', out, '--only', checks],
                             {**LENGTHS, 'RANKTAP_BUILD': str(tree / 'build/release')})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        said = json.loads((out / 'gpu-check.json').read_text())
        names = ' '.join(finding['name'] for finding in said['findings'])
        for expected in 'C++ kernels joined', 'graphs node by node', 'short processes', 'full, environment', 'overhead mlp', 'clocks':
            self.assertIn(expected, names)
        self.assertTrue(all(finding['met'] is not False for finding in said['findings']))
        self.assertEqual(len(said['questions']), 9)
        self.assertTrue(all(question['answer'] is None for question in said['questions']), 'the stand-in answers none')
        self.assertIn('SIMULATED', (out / 'gpu-check.md').read_text())


if __name__ == '__main__':
    unittest.main()
