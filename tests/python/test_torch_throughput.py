"""Samples a second, MFU and HFU of unmodified programs, against what the programs do."""
import socket
import unittest

import harness

GRID = harness.PROGRAMS / 'grid_parallel.py'
# grid_parallel.py's
STEPS, MICRO_BATCHES, BATCH, WIDTH, RANKS, DATA_PARALLEL = 6, 4, 8, 16, 4, 2
FORWARD = MICRO_BATCHES * 2 * (2 * BATCH * WIDTH * 2 * WIDTH)  # two layers
BACKWARD = 2 * FORWARD - MICRO_BATCHES * (2 * BATCH * WIDTH * 2 * WIDTH)  # none for the input
PEAK = 1e9


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return str(probe.getsockname()[1])


@harness.needs_torch
class ThroughputTest(harness.TracedTest):

    def throughput(self, run, *options):
        return self.report(run, 'throughput', '--peak-flops', str(PEAK), *options)

    def check(self, rows, run):
        steps = self.report(run, 'steps')
        self.assertEqual([row['rank'] for row in rows], list(range(RANKS)))
        for row in rows:
            self.assertEqual((row['batch'], row['micro_batches']), (BATCH, MICRO_BATCHES))
            self.assertEqual((row['data_parallel'], row['model_parallel']), (DATA_PARALLEL, RANKS // DATA_PARALLEL))
            samples = BATCH * MICRO_BATCHES * DATA_PARALLEL / (row['step_ns'] / 1e9)
            self.assertAlmostEqual(row['samples_per_second'] / samples, 1, places=6)
            self.assertEqual(row['step_flops'], FORWARD + BACKWARD)
            self.assertEqual(row['recompute_flops'], 0)
            share = 100 * (FORWARD + BACKWARD) / (row['step_ns'] / 1e9) / PEAK
            self.assertAlmostEqual(row['mfu_percent'] / share, 1, places=6)
            self.assertEqual(row['hfu_percent'], row['mfu_percent'])
            lengths = [step['total_ns'] for step in steps if step['rank'] == row['rank']]
            self.assertLessEqual(min(lengths), row['step_ns'])
            self.assertLessEqual(row['step_ns'], max(lengths))

    def traced(self, *options):
        command = [harness.TORCH_PYTHON, GRID, free_port(), *options]
        done, run = self.run_traced(command, ['--level', 'full'])
        self.assertEqual(done.returncode, 0, done.stderr)
        return run

    def test_a_grid_of_named_groups_with_accumulation(self):
        run = self.traced('--named')
        self.check(self.throughput(run), run)
        text = self.run_bare([harness.RANKTAP, 'report', run, 'modules', '--format', 'deepspeed']).stdout
        said = dict(line.rsplit(': ', 1) for line in text.splitlines() if ': ' in line)
        lines = {label.strip(): value.strip() for label, value in said.items()}
        self.assertEqual(lines['world size'], str(RANKS))
        self.assertEqual(lines['data parallel size'], str(DATA_PARALLEL))
        self.assertEqual(lines['model parallel size'], str(RANKS // DATA_PARALLEL))
        self.assertEqual(lines['batch size per GPU'], str(BATCH))
        ours = float(lines['samples/second'])
        self.assertAlmostEqual(ours / self.throughput(run)[0]['samples_per_second'], 1, places=2)
        # Theirs: one micro-batch on each of the 4 ranks, in the time of forward, backward and optimizer.
        self.assertIn("samples/second by DeepSpeed's formula (batch * world / iter latency)", lines)

    def test_a_square_grid_of_nameless_groups_and_what_is_given_goes_first(self):
        run = self.traced()
        self.check(self.throughput(run), run)
        given = self.throughput(run, '--data-parallel-size', '4', '--batch-size', '1')[0]
        self.assertEqual((given['data_parallel'], given['model_parallel'], given['batch']), (4, 1, 1))
        samples = MICRO_BATCHES * 4 / (given['step_ns'] / 1e9)
        self.assertAlmostEqual(given['samples_per_second'] / samples, 1, places=6)

    def test_samples_a_second_under_accumulation_are_those_of_the_programs_own_clock(self):
        """From the end of the window on: until there the program's clock holds our preparations, steps do not."""
        recorded = 2  # the rest are timed
        done, run = self.run_traced([harness.TORCH_PYTHON, harness.PROGRAMS / 'accumulates.py'],
                                    ['--level', 'full', '--schedule', f'wait={recorded},active=1,repeat=1'])
        self.assertEqual(done.returncode, 0, done.stderr)
        micro_batches, batch = 4, 32  # accumulates.py's
        lengths = {step: float(text) for step, text in enumerate(done.stdout.split(), 1)}
        steps = self.report(run, 'steps')
        total = {row['step']: row['total_ns'] / 1e9 for row in steps}
        self.assertEqual(sorted(total), list(range(len(lengths) + 1)))
        row, = self.throughput(run)
        self.assertEqual((row['batch'], row['micro_batches']), (batch, micro_batches))
        # On a busy machine the first step can be so long that it is warm-up.
        timed = [total[row['step']] for row in steps if row['step'] != recorded and row['warm_up'] != 'yes']
        self.assertEqual(row['steps'], len(timed))
        self.assertAlmostEqual(row['samples_per_second'] * sum(timed) / len(timed) / (batch * micro_batches), 1, places=6)
        last = [step for step in total if step > recorded]
        ours, theirs = (batch * micro_batches * len(last) / sum(of[step] for step in last) for of in (total, lengths))
        self.assertAlmostEqual(ours / theirs, 1, delta=0.02)

    def test_recomputed_arithmetic_counts_for_the_hardware_and_not_for_the_model(self):
        command = [harness.TORCH_PYTHON, harness.PROGRAMS / 'flop_models.py', 'gpt-recompute']
        done, run = self.run_traced(command, ['--level', 'full'])
        self.assertEqual(done.returncode, 0, done.stderr)
        row, = self.throughput(run)
        self.assertEqual((row['batch'], row['micro_batches'], row['data_parallel']), (2, 1, 1))
        self.assertGreater(row['recompute_flops'], 0)
        together = (row['step_flops'] + row['recompute_flops']) / row['step_flops']
        self.assertAlmostEqual(row['hfu_percent'] / row['mfu_percent'], together, places=6)
        # Without --peak-flops there is none on a CPU, and it says so.
        text = self.run_bare([harness.RANKTAP, 'report', run, 'throughput']).stdout
        self.assertIn('--peak-flops', text)


if __name__ == '__main__':
    unittest.main()
