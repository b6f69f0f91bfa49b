"""Python stacks of operators of unmodified PyTorch programs, against torch.profiler's."""
import collections
import json
import re
import tempfile
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'operator_stacks.py'
STEPS = 3
WINDOW = ('--level', 'full', '--schedule', f'wait=1,active={STEPS},repeat=1')


def functions_in(stack):
    """As operator_stacks.py has it."""
    found = (re.match(r'(.*)\(\d+\): ([\w<>]+)$', frame) for frame in stack)
    return [frame[2] for frame in found if frame and frame[1] == PROGRAM.name and frame[2] != '<module>']


@harness.needs_torch
class StacksTest(harness.TracedTest):
    maxDiff = None

    def trace(self, *options, program=()):
        command = [harness.TORCH_PYTHON, PROGRAM, *program]
        traced, run = self.run_traced(command, [*WINDOW, *options])
        self.assert_same_to_the_user(self.run_bare(command), traced)
        self.assert_verifies(run)
        return run

    def operators(self, run):
        with open(self.export(run, 'chrome', 'trace.json'), encoding='utf-8') as file:
            events = json.load(file)['traceEvents']
        return [event for event in events if event.get('cat') == 'cpu_op']

    def export(self, run, form, name):
        path = run / name
        done = self._run([harness.RANKTAP, 'export', run, '--format', form, '-o', path], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def test_forward_operators_have_the_functions_that_torchs_profiler_has(self):
        with tempfile.NamedTemporaryFile('r', encoding='utf-8') as file:
            done = self.run_bare([harness.TORCH_PYTHON, PROGRAM, '--profiler', file.name])
            self.assertEqual(done.returncode, 0, done.stderr)
            theirs = json.load(file)
        run = self.trace('--stacks', 'all')
        ours, backward = collections.Counter(), []
        around = []
        for event in sorted(self.operators(run), key=lambda event: (event['ts'], -event['dur'])):
            stack = event['args'].get('Call stack', '').split(';')
            around = [other for other in around if other['ts'] + other['dur'] > event['ts']] + [event]
            if around[0]['name'].startswith('autograd::engine::'):
                backward.append(functions_in(stack))
            elif len(around) > 1 and around[-2]['name'] == event['name']:
                continue  # an overload that calls another one: torch.profiler leaves it out
            elif event['name'].startswith('aten::') and stack != ['']:
                ours[' '.join([event['name'], *functions_in(stack)])] += 1
        # Their window begins and ends within main().
        self.assertEqual({key: count for key, count in ours.items() if 'train_step' in key},
                         {key: count for key, count in theirs.items() if 'train_step' in key})
        self.assertEqual(ours['aten::mm first_place second_place forward train_step main'], STEPS)
        self.assertEqual(ours['aten::cos ' + 'deep ' * 41 + 'train_step main'], STEPS)
        self.check_functions(run)
        # Where backward() was called, on the thread that called it.
        self.assertTrue(backward)
        self.assertEqual({tuple(functions) for functions in backward}, {('train_step', 'main')})

    def check_functions(self, run):
        """As slices of the exported file, each with the one that called it."""
        with open(run / 'trace.json', encoding='utf-8') as file:
            events = json.load(file)['traceEvents']
        functions = {event['args']['Python id']: event for event in events if event.get('cat') == 'python_function'}
        calls = collections.Counter()
        for event in functions.values():
            caller = functions.get(event['args']['Python parent id'], {'name': ''})
            calls[f'{event["name"]} < {caller["name"]}'] += 1
        file = PROGRAM.name
        self.assertEqual(calls[f'{file}: first_place < {file}: second_place'], STEPS)
        self.assertEqual(calls[f'{file}: second_place < {file}: forward'], STEPS)
        self.assertEqual(calls[f'{file}: train_step < {file}: main'], 1)  # nothing comes between the calls

    def test_lines_are_those_that_run_and_group_operators(self):
        run = self.trace('--stacks', 'all')
        lines = PROGRAM.read_text(encoding='utf-8').splitlines()
        place = next(number for number, line in enumerate(lines, 1) if 'first_place(x) + ' in line)
        inner = next(number for number, line in enumerate(lines, 1) if line.strip() == 'return torch.mm(x, x)')
        sources = collections.Counter()
        for row in self.report(run, 'ops', '--group-by-stack', '2'):
            if row['name'] == 'aten::mm':
                sources[row['source']] += row['calls']
        name = PROGRAM.name
        # Each with the two products of its backward, which have the stack of their forward.
        self.assertEqual(sources[f'{name}({inner}): first_place; {name}({place}): second_place'], 3 * STEPS)
        held = {row['held_by']: row['stack'] for row in self.report(run, 'memory-peak', '--group-by-stack', '2')}
        sine = next(number for number, line in enumerate(lines, 1) if 'self.layer(x).sin()' in line)
        self.assertIn(f'{name}({sine}): forward', held)

    def test_folded_stacks_end_in_operators_and_sum_up_to_the_outermost(self):
        run = self.trace('--stacks', 'all')
        lines = self.export(run, 'folded', 'stacks.folded').read_text(encoding='utf-8').splitlines()
        weights = {stack: int(weight) for stack, weight in (line.rsplit(' ', 1) for line in lines)}
        ours = [stack for stack in weights if stack.endswith(';aten::mm') and 'first_place' in stack]
        self.assertEqual(len(ours), 1)
        functions = functions_in(ours[0].split(';'))
        self.assertEqual(functions, ['main', 'train_step', 'forward', 'second_place', 'first_place'])
        linear = sum(weight for stack, weight in weights.items() if ';aten::linear' in stack)
        calls = [event for event in self.operators(run) if event['name'] == 'aten::linear']
        self.assertAlmostEqual(linear / 1000, sum(event['dur'] for event in calls), delta=0.1)

    def test_what_is_too_deep_is_cut_and_says_so(self):
        run = self.trace('--stacks', 'all', program=['--depth', '200'])
        stacks = [event['args']['Call stack'].split(';') for event in self.operators(run) if event['name'] == 'aten::cos'
                  and 'deep' in event['args'].get('Call stack', '')]
        self.assertEqual(len(stacks), STEPS)
        for stack in stacks:
            self.assertEqual(functions_in(stack), ['deep'] * 128)
            self.assertEqual(stack[-1], '(truncated)')

    def test_stacks_beyond_the_room_are_counted(self):
        places, room = 20_000, 1 << 14
        run = self.trace('--stacks', 'all', program=['--places', str(places)])
        with open(run / 'run.json', encoding='utf-8') as file:
            notes = '\n'.join(note for trace in json.load(file)['traces'] for note in trace['notes'])
        missing = re.search(r'(\d+) times no Python stack of an operator was taken', notes)
        self.assertTrue(missing, notes)
        self.assertGreaterEqual(int(missing[1]), STEPS * (places - room))

    def test_none_are_taken_unless_asked_for(self):
        run = self.trace()
        operators = self.operators(run)
        self.assertTrue(operators)
        self.assertFalse([event for event in operators if 'Call stack' in event['args']])


if __name__ == '__main__':
    unittest.main()
