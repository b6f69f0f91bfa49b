"""tests/golden/insights.md says of each rule and each real trace whether it fires, and why: read off the traces by hand."""
import json
import re
import subprocess
import unittest

from harness import RANKTAP, ROOT, TORCH_PYTHON, TracedTest, needs_torch

TABLE = ROOT / 'tests/golden/insights.md'
SHARED = ROOT.parent / 'shared/data'
IDLE = {'gpu-gaps', 'launch-bound', 'first-time-costs', 'tensor-reads', 'explicit-syncs'}


def table():
    """({trace: its files}, {rule: {trace: what the table says}})"""
    traces, says = {}, {}
    rule = None
    for line in TABLE.read_text().splitlines():
        if heading := re.match(r'## `([\w-]+)`', line):
            rule = says.setdefault(heading[1], {})
        elif trace := re.match(r'\| (\S+) \| `([^`]+)` \|', line):
            traces[trace[1]] = [SHARED / file for file in trace[2].split()]
        elif verdict := re.match(r'- (fires|silent|not checked): (.*)', line):
            for item in re.finditer(r'([\w.-]+(?:, [\w.-]+)*) \(([^()]+)\)', verdict[2]):
                for name in item[1].split(', '):
                    assert rule is not None and name not in rule, f'{name} twice'
                    rule[name] = verdict[1]
    return traces, says


@unittest.skipUnless(SHARED.exists(), f'no real traces: {SHARED} is missing')
class InsightsTest(TracedTest):
    def answers(self, files):
        done = subprocess.run([RANKTAP, 'report', *files, 'insights', '--format', 'json'], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_each_rule_says_of_each_real_trace_what_is_read_there_by_hand(self):
        traces, says = table()
        self.assertGreaterEqual(len(says), 16)
        for trace, files in traces.items():
            answer = self.answers(files)
            # Advice that saves nothing is in no row, and a note says of which rules it is.
            fired = {row['rule'] for row in answer['rows']}
            fired |= {rule for note in answer['notes'] if note.startswith('left out, because the critical path')
                      for rule in note.rsplit(': ', 1)[1].split(', ')}
            unchecked = {rule for note in answer['notes'] if note.startswith('not checked, because ')
                         for rule in note.rsplit(': ', 1)[1].split(', ')}
            checked = int(re.match(r'(\d+) rules? checked', answer['notes'][0])[1])
            self.assertEqual(checked + len(unchecked), len(says), f'{trace}: the table has not all rules')
            for rule, of_trace in says.items():
                now = 'fires' if rule in fired else 'not checked' if rule in unchecked else 'silent'
                self.assertEqual(of_trace.get(trace), now, f'{rule} of {trace}')

    def test_no_saving_is_more_than_the_rank_loses_or_than_its_step(self):
        for trace, files in table()[0].items():
            for row in self.answers(files)['rows']:
                if row['saving_ns'] is None:
                    continue
                self.assertLessEqual(row['saving_ns'], row['lost_ns'], f'{trace}: {row["rule"]}')
                self.assertLessEqual(row['saving_percent'], 100, f'{trace}: {row["rule"]}')

    def test_a_finding_takes_twelve_lines_of_80_and_its_command_runs_as_it_stands(self):
        seen = 0
        for file in sorted((SHARED / 'kineto').iterdir()):
            done = subprocess.run([RANKTAP, 'report', file, 'insights', '--width', '80'], capture_output=True, text=True,
                                  timeout=60)
            if done.returncode != 0:
                continue  # no trace: another tool's numbers, or metadata
            rows = self.answers([file])['rows']
            body = '\n'.join(line for line in done.stdout.splitlines()[1:] if not line.startswith('  note: ')
                             and not line.startswith('        rows'))
            findings = [text for text in re.split(r'^  (?=\d+\. )', body, flags=re.MULTILINE)[1:]]
            self.assertEqual(len(findings), len(rows), file.name)
            for text, row in zip(findings, rows):
                lines = [line.strip() for line in text.strip('\n').splitlines()]
                self.assertLessEqual(len(lines), 12, text)
                self.assertIn(row['rule'], lines[0])
                if row['where']:
                    self.assertIn(f'at {row["where"]}', lines)
                # The words that tell kernels apart: no word of the finding is broken.
                self.assertIn(row['finding'], ' '.join(lines))
                if row['command']:
                    self.assertIn(row['command'], lines)
                    command = row['command'].replace('ranktap', str(RANKTAP), 1)
                    ran = subprocess.run(['sh', '-c', command], capture_output=True, timeout=60)
                    self.assertEqual(ran.returncode, 0, command)
                seen += 1
            self.assertEqual(sum('not checked' in line for line in done.stdout.splitlines()), 1, file.name)
        self.assertGreaterEqual(seen, 15)

    def test_no_verdict_contradicts_an_insight(self):
        inputs = list(table()[0].values()) + [[run] for run in sorted((ROOT / 'tests/golden/inputs').iterdir())]
        named = waits = 0
        for files in inputs:
            done = subprocess.run([RANKTAP, 'report', *files, 'verdict', '--format', 'json'], capture_output=True, text=True,
                                  timeout=60)
            verdict = json.loads(done.stdout)
            losses = verdict['rows']
            for row in self.answers(files)['rows']:
                if row['rule'] == 'straggler':
                    # One amount for one loss.
                    self.assertIn((row['rank'], row['lost_ns']), [(loss['rank'], loss['loss_ns']) for loss in losses], files)
                    waits += 1
                of_losses = sum(loss['loss_ns'] for loss in losses)
                # Idle time is in the losses: the mean of the ranks there, of one rank here.
                if (row['saving_ns'] or 0) <= of_losses or row['rule'] in IDLE or verdict['title'].startswith('No verdict'):
                    continue
                named += 1
                if row['saving_percent'] - 100 * of_losses / (row['saving_ns'] * 100 / row['saving_percent']) > 1:
                    self.assertRegex(verdict['title'], r'At most .* can be saved \([a-z-]+\)', f'{files}: {row["rule"]}')
        self.assertGreaterEqual(named, 2)
        self.assertGreaterEqual(waits, 1)


# argv: "pauses" collects garbage and saves in each step, "plain" does neither.
PROGRAM = '''
import gc, sys, torch
net = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
objects = [[i] for i in range(300000)]
gc.freeze()
for step in range(12):
    net(torch.randn(1000, 256)).sum().backward()
    optimizer.step()
    if sys.argv[1] == 'pauses':
        objects = [[i] for i in range(100000)]
        gc.collect()
        torch.save(net.state_dict(), 'checkpoint.pt')
'''


@needs_torch
class CapturedPausesTest(TracedTest):
    def rules_that_fire(self, mode):
        program = self.scratch / 'train.py'
        program.write_text(PROGRAM)
        done, run = self.run_traced([TORCH_PYTHON, program, mode], ('--level', 'full'), OMP_NUM_THREADS='1')
        self.assertEqual(done.returncode, 0, done.stderr)
        fired = {row['rule'] for row in self.report(run, 'insights')}
        run.rename(self.scratch / mode)
        return fired

    def test_a_loop_that_collects_and_saves_is_told_so_and_one_that_does_not_is_not(self):
        pauses = {'garbage-collection', 'checkpoint-stalls'}
        self.assertEqual(self.rules_that_fire('pauses') & pauses, pauses)
        self.assertEqual(self.rules_that_fire('plain') & pauses, set())


if __name__ == '__main__':
    unittest.main()
