"""Operators, FLOPs and parameters of unmodified PyTorch programs, against PyTorch's own counter."""
import json
import re
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'flop_models.py'
MODELS = ('mlp', 'functions', 'convolutions', 'resnet50', 'gpt', 'gpt-recompute')


@harness.needs_torch
class FlopsTest(harness.TracedTest):

    @classmethod
    def setUpClass(cls):
        cls.expected = harness.counted_by_others(PROGRAM, MODELS)

    def check(self, model):
        """Each module's forward and everything together, with no difference to FlopCounterMode; each
        module's forward by DeepSpeed's rule, with no difference to DeepSpeed."""
        expected = self.expected[model]
        traced, run = self.run_traced([harness.TORCH_PYTHON, PROGRAM, model], ['--level', 'full'])
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assert_verifies(run)
        rows = {row['module']: row for row in self.report(run, 'modules')}
        root = rows[min(rows, key=lambda name: name.count('.'))]
        for name, flops in expected['forward'].items():
            if name != 'Global' and name in rows:
                self.assertEqual(rows[name]['forward_flops'], flops, name)
        self.assertEqual(root['forward_flops'], expected['forward']['Global'])
        together = root['forward_flops'] + root['backward_flops'] + root['recompute_flops']
        self.assertEqual(together, expected['total'])
        for name, (flops, macs, _) in expected.get('deepspeed', {}).items():
            if name not in ('GPT.h', 'Functions.cells'):  # a ModuleList never runs
                self.assertEqual((rows[name]['deepspeed_flops'], rows[name]['deepspeed_macs']), (flops, macs), name)
        return run, rows, root

    @harness.needs_deepspeed
    def test_deepspeed_took_part(self):
        for model in MODELS:
            self.assertIn('deepspeed', self.expected[model])

    def test_mlp(self):
        self.check('mlp')

    def test_einsum_interpolate_and_recurrent_layers(self):
        self.check('functions')

    def test_what_the_program_prints_is_bit_identical(self):
        command = [harness.TORCH_PYTHON, PROGRAM, 'mlp', 'convolutions', 'gpt', 'gpt-recompute']
        traced, _ = self.run_traced(command, ['--level', 'full'])
        self.assert_same_to_the_user(self.run_bare(command), traced)

    def test_convolutions(self):
        self.check('convolutions')

    def test_resnet_50(self):
        run, _, root = self.check('resnet50')
        self.assertEqual(root['forward_flops'], 8_178_368_512)
        self.assertEqual(root['forward_flops'] + root['backward_flops'], 24_299_077_632)
        parameters = self.report(run, 'parameters')[0]
        self.assertEqual(parameters['parameters'], 25_557_032)
        self.assertEqual(parameters['parameter_bytes'], 4 * 25_557_032)
        self.assertEqual(parameters['gradient_bytes'], 4 * 25_557_032)
        tensors = 161  # AdamW keeps one 4-byte step count for each
        self.assertEqual(parameters['state_bytes'], 8 * 25_557_032 + 4 * tensors)

    def test_gpt_with_fused_attention_and_tied_weights(self):
        run, rows, root = self.check('gpt')
        self.assertEqual(root['recompute_flops'], 0)
        parameters = {row['module']: row for row in self.report(run, 'parameters')}
        self.assertEqual(parameters['GPT.head']['parameters'], 0)  # counted with GPT.wte
        self.assertEqual(parameters['GPT.wte']['parameters'], 500 * 64)
        children = ('GPT.wte', 'GPT.h', 'GPT.head')
        for column in ('parameters', 'parameter_bytes', 'gradient_bytes', 'state_bytes'):
            self.assertEqual(parameters['GPT'][column], sum(parameters[name][column] for name in children))

        self.check_text(run, 'gpt')

    def check_text(self, run, model):
        """Our text has every line of DeepSpeed's, in its order, but for times and what depends on them."""
        if 'text' not in self.expected[model]:
            self.skipTest(f'no DeepSpeed at {harness.DEEPSPEED_PYTHON}; scripts/setup --torch --tools')

        def lines(text):
            text = re.sub(r'[\d.]+ [mu]?s\b( = [\d.]+% latency)?', 'TIME', text)
            text = re.sub(r'[\d.]+ [KMGT]?FLOPS', 'RATE', text)
            text = re.sub(r'(    fwd latency - ).*', r'\1', text)  # which class comes first is a matter of time
            text = re.sub(r'(Profile Summary at step) \d+', r'\1', text)
            return [line.rstrip() for line in text.splitlines()]

        done = self._run([harness.RANKTAP, 'report', run, 'modules', '--format', 'deepspeed'], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = iter(lines(done.stdout))
        for line in lines(self.expected[model]['text']):
            if line.startswith(('3. The fwd latency', 'params of model', 'fwd flops of model')):
                continue  # where it was measured; without an engine DeepSpeed takes 0 for the former
            self.assertIn(line, ours)  # takes what comes before it away

    def test_recomputed_layers_are_told_apart_from_the_backward(self):
        _, rows, root = self.check('gpt-recompute')
        recomputed = self.expected['gpt-recompute']['total'] - self.expected['gpt']['total']
        self.assertEqual(root['recompute_flops'], recomputed)
        self.assertGreater(recomputed, 0)
        for layer in range(3):
            # PyTorch stops before the last product: nothing saved depends on it.
            row, last = rows[f'GPT.h.{layer}'], rows[f'GPT.h.{layer}.mlp.2']
            self.assertEqual(row['recompute_flops'], row['forward_flops'] - last['forward_flops'])
            self.assertEqual(last['recompute_flops'], 0)


@harness.needs_torch
class ScheduleTest(harness.TracedTest):

    def test_ten_thousand_random_schedules_agree_with_torch(self):
        program = f'''
import random, sys, warnings
sys.path.insert(0, {str(harness.ROOT / "agent/sources/torch/python")!r})
import schedule, torch
warnings.simplefilter('ignore')
numbers = random.Random(20261121)
for _ in range(10_000):
    values = dict(wait=numbers.randint(0, 9), warmup=numbers.randint(0, 4), active=numbers.randint(1, 9),
                  repeat=numbers.randint(0, 4), skip_first=numbers.randint(0, 9),
                  skip_first_wait=numbers.randint(0, 1))
    theirs, ours = torch.profiler.schedule(**values), schedule.Schedule(**values)
    for step in range(201):
        assert theirs(step).value == ours.action(step), (values, step)
ours = schedule.Schedule.parse('wait=5,warmup=2,active=6,repeat=2')
assert [step for step in range(201) if ours.records(step)] == [*range(7, 13), *range(20, 26)]
'''
        done = self.run_bare([harness.TORCH_PYTHON, '-c', program])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_steps_of_the_schedule_are_recorded_and_no_others(self):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'train_cpu.py', '--steps', '10']
        _, run = self.run_traced(command, ['--level', 'full', '--schedule', 'wait=2,active=1,repeat=2'])
        calls = {row['name']: row['calls'] for row in self.report(run, 'ops')}
        self.assertEqual(calls['aten::convolution_backward'], 2 * 3)

    def test_each_cycle_is_a_file_of_each_format_as_on_trace_ready_writes_one(self):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'plain_steps.py', '12']
        _, run = self.run_traced(command, ['--level', 'full', '--schedule', 'wait=2,active=2,repeat=2'])
        out = self.scratch / 'cycles'
        done = self.run_bare([harness.RANKTAP, 'export', run, '--cycles', '--format', 'chrome,perfetto', '-o', out])
        self.assertEqual(done.returncode, 0, done.stderr)
        files = sorted(out.glob('*/*'))
        self.assertEqual([f'{path.parent.name}/{path.suffix}' for path in files],
                         ['cycle-0/.json', 'cycle-0/.pftrace', 'cycle-1/.json', 'cycle-1/.pftrace'])
        for path in files[::2]:
            names = [event.get('name') for event in json.loads(path.read_text())['traceEvents']]
            self.assertEqual(names.count('aten::addmm'), 4, path)
        for output, files in (('plain', ['plain.cycle-0.pt.trace.json', 'plain.cycle-1.pt.trace.json']),
                              ('new/', ['new/cycle-0', 'new/cycle-1'])):
            done = self.run_bare([harness.RANKTAP, 'export', run, '--cycles', '-o', f'{self.scratch}/{output}'])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(all((self.scratch / file).exists() for file in files), done.stdout)

    def test_a_hundred_thousand_operators_leave_room_for_names(self):
        program = '''
import torch
class Late(torch.nn.Module):
    def forward(self, x):
        return x
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
numbers = torch.zeros(1)
for step in range(3):
    for _ in range(20_000 if step == 1 else 0):
        numbers.add_(1)
    if step == 2:
        Late()(numbers)
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
'''
        done, run = self.run_traced([harness.TORCH_PYTHON, '-c', program],
                                    ['--level', 'full', '--schedule', 'wait=1,active=1,repeat=1'])
        self.assertEqual(done.returncode, 0, done.stderr)
        operators = self.report(run, 'ops')
        self.assertGreater(sum(row['calls'] for row in operators), 80_000)  # more than the arena has room for names
        self.assertIn('Late', {row['module'] for row in self.report(run, 'modules')})

    def test_where_inputs_are_not_found_pytorchs_observers_say_the_same(self):
        """A program without torch.convolution: what the agent looks for offsets with does not run."""
        rows = []
        for before in ('', 'del torch.convolution'):
            program = f'''
import torch
{before}
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
'''
            done, run = self.run_traced([harness.TORCH_PYTHON, '-c', program], ['--level', 'full'])
            self.assertEqual(done.returncode, 0, done.stderr)
            rows.append(sorted((row['name'], row['input_shapes'], row['calls'], row['counted_flops'])
                               for row in self.report(run, 'ops', '--group-by-shape') if row['name'].startswith('aten::')))
            notes = self.run_bare([harness.RANKTAP, 'report', run, 'ranks', '--format', 'json']).stdout
            self.assertEqual("operators by PyTorch's own observers" in notes, before != '')
            run.rename(run.with_name(f'run {len(rows)}'))
        self.assertEqual(rows[0], rows[1])
        self.assertIn(('aten::addmm', '[[4], [4, 8], [8, 4], [], []]', 1, 256), rows[0])

    def test_beside_the_programs_own_profiler_both_have_every_operator(self):
        """From the program's first line on, where the agent has to find its way before it, and later."""
        bare, run = self.run_profiled('')
        theirs = [json.loads(line) for line in bare.stdout.splitlines()]
        ours = {row['name']: row['calls'] for row in self.report(run, 'ops')}
        for name in ('aten::addmm', 'aten::mm', 'aten::sum', 'aten::linear', 'AddmmBackward0'):
            for profiled in theirs:
                self.assertEqual(ours[name], dict(profiled)[name] // 2 * 9, name)
        self.assertEqual(self.report(run, 'gaps'), [])

    def test_where_inputs_are_not_found_the_programs_own_profiler_has_operators_and_ours_a_gap_for_each_time(self):
        _, run = self.run_profiled('del torch.convolution')
        reason = 'a torch profiler of the program was on'
        gaps = [row for row in self.report(run, 'gaps') if reason in json.dumps(row)]
        self.assertEqual(len(gaps), 3)
        self.assertEqual(len(self.report(run, 'steps')), 9)

    def run_profiled(self, before):
        program = f'''
import json, torch
from torch.profiler import ProfilerActivity, profile
{before}
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.ones(4, 8)
def step():
    model(data).sum().backward()
    optimizer.step()
for _ in range(3):
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True) as profiler:
        for _ in range(2):
            step()
    # Theirs, operator by operator: what ours must not change.
    averages = profiler.key_averages()
    print(json.dumps(sorted((event.key, event.count) for event in averages)))
    step()
'''
        command = [harness.TORCH_PYTHON, '-c', program]
        bare = self.run_bare(command)
        self.assertIn('aten::addmm', bare.stdout)
        done, run = self.run_traced(command, ['--level', 'full', '--schedule', 'wait=0,warmup=0,active=9'])
        self.assertEqual((done.returncode, done.stdout), (bare.returncode, bare.stdout), done.stderr)
        return bare, run


if __name__ == '__main__':
    unittest.main()
