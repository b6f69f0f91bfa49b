"""A loader with workers that comes late: the verdict names the line of the dataset that holds them, and how many would do."""
import re
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'loads.py'
SLOW, COMPUTES, READS = (number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
                         if line.endswith(('  # slow', '  # computes', '  # reads')))


@harness.needs_torch
class LateLoaderTest(harness.TracedTest):

    def verdict(self, *words):
        done, run = self.run_traced([harness.TORCH_PYTHON, PROGRAM, *words], ['--level', 'full', '--sample', '5ms', '--quiet'],
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
        batches = [[float(word) for word in line.split()] for line in (self.scratch / 'truth').read_text().splitlines()]
        at_line, all_of_them = map(sum, zip(*batches))
        self.assertAlmostEqual(float(told[1]), 100 * at_line / all_of_them, delta=12)
        self.assertRegex(sentence, r'(No|A) batch was ready at \d+ of \d+ requests')
        # 40 ms of work for each step, which takes 8 ms and what a busy machine adds.
        self.assertIn(int(told[2]), (3, 4, 5), sentence)
        rows = self.report(self.run_directory, 'host')
        # Workers that are late may never wait for work.
        self.assertIn('an item', {row['phase'] for row in rows if row['thread'] == 'loader workers'})

    def test_the_file_that_the_workers_read_is_named_with_its_line_and_share(self):
        fifo = self.scratch / 'part-3.tar'
        sentence = self.verdict('reads', fifo)
        self.assertRegex(sentence, rf'The loader is late because loads\.py:{READS} \(Items\.__getitem__\) takes')
        told = re.search(rf'Its workers read {re.escape(str(fifo))} for ([\d.]+) % of their time\.', sentence)
        self.assertTrue(told, sentence)
        # 18 of 20 ms, and what a machine with no idle core adds to the rest.
        self.assertGreater(float(told[1]), 50)
        self.assertLessEqual(float(told[1]), 100)

    def test_workers_that_compute_read_no_file(self):
        sentence = self.verdict('computes')
        self.assertRegex(sentence, rf'The loader is late because loads\.py:{COMPUTES} \(Items\.__getitem__\) takes')
        self.assertNotIn('Its workers read', sentence)

    def test_where_the_work_is_spread_no_line_is_accused(self):
        sentence = self.verdict('even')
        self.assertNotIn('The loader is late because', sentence)
        self.assertIn("No one line takes most of the time of the loader's 2 workers", sentence)


if __name__ == '__main__':
    unittest.main()
