"""A loader with workers that comes late: the verdict names the line of the dataset that holds them, and how many would do."""
import re
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'loads.py'
SLOW, = (number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if '  # slow' in line)


@harness.needs_torch
class LateLoaderTest(harness.TracedTest):

    def verdict(self, name):
        done, run = self.run_traced([harness.TORCH_PYTHON, PROGRAM, name], ['--level', 'full', '--sample', '5ms', '--quiet'],
                                    OMP_NUM_THREADS='1')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_verifies(run)
        self.assertEqual(len(self.report(run, 'ranks')), 1)  # its workers are none
        self.run_directory = run
        return self._run([harness.RANKTAP, 'report', run, 'verdict'], {}).stdout.splitlines()[0]

    def test_the_line_that_holds_the_workers_is_named_with_its_share(self):
        sentence = self.verdict('slow')
        told = re.search(rf'The loader is late because loads\.py:{SLOW} \(Items\.__getitem__\) takes ([\d.]+) % of the time of '
                         r'its 2 workers; (\d) workers would hide it\.', sentence)
        self.assertTrue(told, sentence)
        self.assertAlmostEqual(float(told[1]), 80, delta=12)
        self.assertRegex(sentence, r'No batch was ready at \d+ of \d+ requests\.')
        # 40 ms of work for each step, which takes 8 ms and what a busy machine adds.
        self.assertIn(int(told[2]), (3, 4, 5), sentence)
        rows = self.report(self.run_directory, 'host')
        self.assertLessEqual({'an item', 'waiting for work'},
                             {row['phase'] for row in rows if row['thread'] == 'loader workers'})

    def test_where_the_work_is_spread_no_line_is_accused(self):
        sentence = self.verdict('even')
        self.assertNotIn('The loader is late because', sentence)
        self.assertIn("No one line takes most of the time of the loader's 2 workers", sentence)


if __name__ == '__main__':
    unittest.main()
