"""tests/gpu/facts on the stand-in: each question is answered, and one that hangs costs its own answer alone."""
import json
import os
import subprocess
import unittest

import harness

PROGRAM = harness.BUILD / 'gpu/cupti_facts'


def ask(*arguments, **environment):
    """{question: answer}."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=harness.TIMEOUT_S,
                          env={**os.environ, 'LD_LIBRARY_PATH': str(harness.BUILD / 'fakes'), **environment})
    return done.returncode, {answer['question']: answer for answer in map(json.loads, done.stdout.splitlines())}


@unittest.skipUnless(PROGRAM.exists(), 'no cupti_facts: it needs nvcc')
class CuptiFactsTest(unittest.TestCase):
    def test_every_question_is_answered(self):
        status, answers = ask('--launches', 20, '--limit-s', 60)
        # As 13.0 does on a GPU: a graph of before ends the process that records whole graphs.
        crash = {'graph-mode', 'old-graph-whole'}
        self.assertEqual(status, 1, answers)
        self.assertEqual({name: answer['ended'] for name, answer in answers.items()},
                         {name: 'signal 11' if name in crash else 'exit 0' for name in answers})
        self.assertEqual(len(answers), 20)
        self.assertEqual((answers['correlation']['kernels'], answers['correlation']['unjoined']), (20, 0))
        self.assertEqual(answers['second-subscriber']['second'], 39)
        self.assertEqual((answers['graph-whole']['graphs'], answers['graph-nodes']['nodes']), (2, 40))
        self.assertGreater(answers['windows']['records'], 0)
        # Later than a real CUPTI's: buffers 300 us after the flush.
        self.assertEqual([answers['old-graph-nodes'][f'{graph}_nodes'] for graph in ('old', 'new')], [30, 30])
        self.assertGreater(answers['late-buffers']['with_buffers_after_it'], 0)
        self.assertEqual((answers['driver-launches']['joined'], answers['driver-launches']['function']), (20, 'cuLaunchKernel'))
        self.assertEqual((answers['device-pool']['bytes_at_first'], answers['device-pool']['nodes']), (9_600_000, 400))
        self.assertEqual(answers['second-api']['there'], 0, '13.0 has none')
        for name, answer in answers.items():
            if name.startswith('clock-'):
                self.assertEqual(answer['ours_again']['kernels'], 5, name)

    def test_from_13_5_on_whole_graphs_stay_and_a_graph_of_before_gives_nothing(self):
        _, answers = ask('--launches', 20, 'graph-mode', 'old-graph-whole', RANKTAP_STANDIN_CUPTI_VERSION='130500')
        mode = answers['graph-mode']
        self.assertEqual([mode[f'{when}_nodes'] for when in ('nodes', 'whole', 'off_again', 'resubscribed_new')], [30, 0, 0, 0])
        self.assertEqual([answers['old-graph-whole'][f'{graph}_graphs'] for graph in ('old', 'new')], [0, 3])

    def test_of_several_subscribers_each_gets_its_records_while_the_other_comes_and_goes(self):
        folder = harness.BUILD / 'fakes/cupti-13.5'
        if not (folder / 'libcupti.so.13').exists():
            self.skipTest('no stand-in for CUPTI 13.5: run scripts/setup')
        _, answers = ask('--launches', 20, 'second-api', LD_LIBRARY_PATH=f'{folder}:{harness.BUILD / "fakes"}')
        said = answers['second-api']
        self.assertEqual((said['theirs_first'], said['ours_second'], said['theirs_again']), ('', '', ''))
        self.assertEqual([said[f'{when}_theirs_kernels'] for when in ('both', 'again', 'left')], [20, 20, 20])
        self.assertEqual([said[f'{when}_ours_kernels'] for when in ('both', 'alone', 'again')], [20, 20, 20])
        # As the stand-in guesses: one word for a call, whoever writes it.
        self.assertEqual(said['both_theirs_changed_words'] + said['both_ours_changed_words'], 20)

    def test_nodes_have_no_times_once_the_buffers_on_the_device_have_run_out(self):
        _, answers = ask('--launches', 20, 'device-pool', RANKTAP_STANDIN_DEVICE_BUFFER_RECORDS='10')
        pool = answers['device-pool']
        self.assertEqual((pool['nodes_without_times'], pool['bytes_at_last']), (400 - 80, 8 * 3_200_000))

    def test_one_that_hangs_keeps_what_it_has_found_and_the_next_is_asked(self):
        status, answers = ask('--launches', 1000000, '--limit-s', 1, 'graph-nodes', 'second-subscriber')
        self.assertEqual(status, 1)
        self.assertEqual(answers['graph-nodes']['ended'], 'signal 14')
        self.assertIn('cupti', answers['graph-nodes'])
        self.assertEqual(answers['second-subscriber']['ended'], 'exit 0')

    def test_a_refused_subscription_and_a_missing_library_are_said(self):
        _, answers = ask('cost', RANKTAP_STANDIN_SUBSCRIBE='owned')
        self.assertEqual(answers['cost']['subscribe_failed'], 39)
        status, answers = ask('cost', RANKTAP_CUPTI='/nowhere/libcupti.so.13')
        self.assertEqual((status, answers['cost']['ended']), (1, 'exit 3'))
        self.assertIn('/nowhere', answers['cost']['no_cupti'])


if __name__ == '__main__':
    unittest.main()
