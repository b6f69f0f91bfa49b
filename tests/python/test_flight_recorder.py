"""report hang on dumps that real PyTorch wrote: the planted rank and line, at each position, beside PyTorch's analyser."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'planted_hangs.py'
ANALYSER = harness.PROGRAMS / 'flight_analyser.py'
WORLD = 4


def line_of(who, cause):
    """Where the program makes this call, by the comment behind it."""
    lines = PROGRAM.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f'# {who}: {cause}'))


@harness.needs_torch
class PlantedHangsTest(harness.TracedTest):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='ranktap-test-')
        cls.addClassCleanup(folder.cleanup)
        cls.dumps = pathlib.Path(folder.name)
        done = subprocess.run([harness.TORCH_PYTHON, PROGRAM, cls.dumps], capture_output=True, text=True,
                              timeout=harness.TIMEOUT_S)
        assert done.returncode == 0, done.stderr

    def first(self, cause, guilty, ending=''):
        table = json.loads(self._run([harness.RANKTAP, 'report', self.dumps / f'{cause}-{guilty}{ending}', 'hang',
                                      '--format', 'json'], {}).stdout)
        self.assertEqual(table['title'], table['rows'][0]['finding'])
        return table['rows'][0]

    def check_each(self, cause, named, begins):
        """The first row names the guilty rank and its line, wherever the rank stands; JSON has no lines."""
        for guilty in range(WORLD):
            with self.subTest(cause=cause, guilty=guilty):
                row = self.first(cause, guilty)
                self.assertEqual((row['cause'], row['ranks'], row['guilty']), (named, f'rank {guilty}', 'yes'))
                self.assertTrue(row['finding'].startswith(f'Rank {guilty} {begins}'), row['finding'])
                as_json = self.first(cause, guilty, '-json')
                self.assertEqual((as_json['cause'], as_json['ranks'], as_json['line']), (named, f'rank {guilty}', None))
                yield guilty, row

    def test_a_rank_that_does_not_enter_is_named_with_the_line_of_its_last_call(self):
        for guilty, row in self.check_each('not_entered', 'not entered',
                                           'did not enter AllReduce #'):
            self.assertRegex(row['finding'], r'#\d+ \(4\.0 KiB, group default_pg\); 3 of 4 wait since \d\d:\d\d:\d\d UTC\.')
            self.assertIn(f'planted_hangs.py({line_of("warm-up", "all")}): main', row['line'])

    def test_a_rank_that_calls_another_function_is_named_beside_what_the_others_call(self):
        for guilty, row in self.check_each('other_call', 'other call', 'called Broadcast as #2 of group all_0_other_call_'):
            self.assertIn(f'planted_hangs.py({line_of("guilty", "other_call")}): other_call', row['line'])
            self.assertIn(f'where the 3 others called AllReduce at {PROGRAM}({line_of("the others", "other_call")})', row['finding'])

    def test_a_call_that_a_rank_left_out_is_named(self):
        for guilty, row in self.check_each('left_out', 'other call', 'called Broadcast as #2'):
            self.assertIn(f'rank {guilty} left out AllReduce', row['finding'])

    def test_another_shape_and_another_type_are_named_where_gloo_passes_them_in_silence(self):
        for cause, tensors in (('other_shape', 'Float [[2048]]'), ('other_dtype', 'Double [[1024]]')):
            for guilty, row in self.check_each(cause, 'other signature', 'entered Broadcast #2'):
                self.assertIn(f'with {tensors} at {PROGRAM}({line_of("guilty", cause)})', row['finding'])
                self.assertIn('where the 3 others had Float [[1024]]', row['finding'])

    def test_two_groups_in_another_order_name_the_rank_that_turns_it_round(self):
        for guilty, row in self.check_each('other_order', 'other order', 'entered AllReduce #2 (32 B, group all_1_other_order_'):
            self.assertIn(f' before AllReduce #2 (32 B, group all_0_other_order_{guilty})', row['finding'])
            self.assertIn(f'planted_hangs.py({line_of("guilty", "other_order")})', row['line'])

    def test_a_chain_of_waits_is_followed_to_its_end(self):
        for guilty, row in self.check_each('chain', 'not entered', 'did not enter AllReduce #2 (4.0 KiB, group pair_1_chain_'):
            nearer, farther = (guilty + 1) % WORLD, (guilty + 2) % WORLD
            self.assertIn(f'rank {nearer} waits', row['finding'])
            self.assertIn(f'rank {farther} stands in AllReduce #2 (4.0 KiB, group pair_2_chain_{guilty}) for rank {nearer}',
                          row['finding'])

    def test_pytorchs_own_analyser_names_the_same_rank_unless_it_takes_the_guilty_one_for_right(self):
        """It measures all by the first file that it reads, so that it names all others where that is the guilty rank's."""
        folders = [str(path) for path in sorted(self.dumps.iterdir()) if not path.name.endswith('-json')]
        done = self._run([harness.TORCH_PYTHON, ANALYSER, *folders], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        for folder, theirs in json.loads(done.stdout.splitlines()[-1]).items():
            cause, _, guilty = pathlib.Path(folder).name.partition('-')
            ours = self.first(cause, guilty)['ranks']
            with self.subTest(folder=folder, theirs=theirs):
                if cause in ('other_call', 'other_shape', 'other_dtype'):
                    all_others = [rank for rank in range(WORLD) if rank != int(guilty)]
                    self.assertIn(theirs, ([int(guilty)], all_others))
                elif cause != 'of_two':  # of two it takes one for right
                    self.assertIn(int(guilty), theirs)
                if cause != 'of_two' and theirs == [int(guilty)]:
                    self.assertEqual(ours, f'rank {guilty}')

    def test_of_two_ranks_both_are_named_and_neither_is_guilty(self):
        for guilty in range(WORLD):
            row = self.first('of_two', guilty)
            pair = sorted([guilty, (guilty + 1) % WORLD])
            self.assertEqual((row['cause'], row['ranks'], row['guilty']),
                             ('other call', f'ranks {pair[0]} and {pair[1]}', 'undecided'))
            self.assertIn('neither is named as the cause', row['finding'])

    def test_a_rank_without_a_file_is_undecided_and_said_to_have_none(self):
        for guilty in range(WORLD):
            files = [self.dumps / f'not_entered-{guilty}' / f'trace_rank_{rank}' for rank in range(WORLD) if rank != guilty]
            done = self._run([harness.RANKTAP, 'report', *files, 'hang', '--format', 'json'], {})
            table = json.loads(done.stdout)
            self.assertEqual(table['rows'][0]['cause'], 'no file')
            self.assertTrue(table['title'].startswith('Undecided: '), table['title'])
            self.assertIn(f'no complete record of rank {guilty}: what it did is not known', table['notes'])


if __name__ == '__main__':
    unittest.main()
