"""`ranktap whatif` on a program with planted sleeps: without each of them a step is shorter by what was planted."""
import json
import unittest

import harness

PROGRAM = harness.ROOT / 'tests/workloads/whatif/pair.py'
LOG, = (number for number, text in enumerate(PROGRAM.read_text().splitlines(), 1) if text.endswith('# line: log'))
ROUTER_MS, LOG_MS, BATCH_MS = 20, 25, 32


@harness.needs_torch
class WhatIfTest(harness.TracedTest):

    def test_a_sleep_is_won_back_by_the_change_that_takes_it_away(self):
        done, run = self.run_traced(
            [harness.TORCH_PYTHON, PROGRAM, '--asleep', '--steps', '40', '--router-ms', str(ROUTER_MS), '--log-ms',
             str(LOG_MS), '--row-us', str(BATCH_MS * 1000 // 32)], ['--level', 'full', '--quiet'], OMP_NUM_THREADS='1')
        self.assertEqual(done.returncode, 0, done.stderr)
        for change, planted in ((['--module', 'router', 'x0'], ROUTER_MS), (['--line', f'pair.py:{LOG}', 'x0'], LOG_MS),
                                (['--no-dataloader'], BATCH_MS), (['--dataloader', 'x0.5'], BATCH_MS / 2),
                                (['--module', 'router', 'x0.5', '--line', f'pair.py:{LOG}', 'x0'], ROUTER_MS / 2 + LOG_MS)):
            with self.subTest(change=change):
                asked = self._run([harness.RANKTAP, 'whatif', run, *change, '--format', 'json'], {})
                if asked.returncode == 1 and 'is no answer: record more steps' in asked.stderr:
                    print(f'not compared, the machine is too busy: {asked.stderr}')
                    continue
                self.assertEqual(asked.returncode, 0, asked.stderr)
                answer = json.loads(asked.stdout)
                gain_ms = (answer['step_ns'] - answer['answers'][0]['step_ns']) / 1e6
                # A sleep is never shorter; samples of a line are 10 ms apart.
                self.assertGreater(gain_ms, 0.85 * planted)


if __name__ == '__main__':
    unittest.main()
