"""*roofline* on real traces and programs: sums equal *ops* and *kernels* however it is grouped, and a model against
devices that nobody has here."""
import unittest

import harness

DATA = harness.ROOT.parent / 'shared/data/kineto'
H100 = [DATA / name for name in ('bert-small-h100.json.gz', 'qwen-0.5b-h100.json.gz')]
GROUPS = ('operator', 'kernel', 'module', 'phase', 'step', 'rank')
PROGRAM = harness.PROGRAMS / 'roofline_models.py'
PUBLIC = harness.PROGRAMS / 'public_models.py'
FLOP_KINDS = ('fp64', 'fp32', 'tf32', 'fp16', 'bf16', 'fp8', 'int8', 'other')


def total(rows, column):
    return sum(row[column] or 0 for row in rows)


class RooflineBase(harness.TracedTest):

    def grouped(self, run, *options):
        return {by: self.report(run, 'roofline', '--by', by, *options) for by in GROUPS}

    def notes(self, run, *options):
        done = self.run_bare([harness.RANKTAP, 'report', run, 'roofline', '--format', 'text', '--width', '0', *options])
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check_sums(self, run, has_device):
        """FLOPs, bytes and times of each way to group are those of the others, of *ops* and of *kernels*."""
        ops, kernels = self.report(run, 'ops'), self.report(run, 'kernels')
        flops = total(ops, 'counted_flops')
        work = {row['name'] for row in kernels}  # beside annotations, which are on the device too
        device_ns = total([row for row in ops if row['where'] == 'device' and
                           (row['name'] in work or row['name'].startswith('Mem'))], 'self_cuda_ns')
        groups = self.grouped(run)
        moved = total(groups['operator'], 'moved_bytes')
        self.assertGreater(flops, 0)
        self.assertGreater(moved, 0)
        for by, rows in groups.items():
            if by == 'kernel' and not has_device:
                self.assertEqual(rows, [])
                continue
            with self.subTest(by=by):
                self.assertEqual(total(rows, 'flops'), flops)
                self.assertEqual(sum(total(rows, f'flops_{kind}') for kind in FLOP_KINDS), flops)
                self.assertEqual(total(rows, 'moved_bytes'), moved)
                self.assertEqual(total(rows, 'read_bytes') + total(rows, 'written_bytes'), moved)
                self.assertEqual(total(rows, 'kernel_ns'), total(kernels, 'total_ns'))
                self.assertEqual(total(rows, 'time_ns'), device_ns)
                self.assertEqual(total(rows, 'kernels'), total(kernels, 'calls'))


class RealTracesTest(RooflineBase):

    @unittest.skipUnless(DATA.exists(), f'no traces at {DATA}')
    def test_sums_of_real_traces_of_an_h100(self):
        for trace in H100:
            with self.subTest(trace=trace.name):
                self.check_sums(trace, has_device=True)

    @unittest.skipUnless(DATA.exists(), f'no traces at {DATA}')
    def test_the_products_of_a_language_model_are_bound_by_compute_and_its_additions_by_memory(self):
        rows = {row['operator']: row for row in self.report(H100[1], 'roofline')}
        mm, add = rows['aten::mm'], rows['aten::add']
        self.assertEqual((mm['unit'], mm['bound'], add['bound']), ('fp16 tensor', 'compute', 'HBM'))
        self.assertEqual(mm['flops'], mm['flops_bf16'])
        self.assertEqual(mm['least_ns'], round(mm['flops'] / 989.4e12 * 1e9))
        self.assertEqual(add['least_ns'], round(add['moved_bytes'] / 3352e9 * 1e9))
        for row in rows.values():
            self.assertLess(row['percent_of_roof'] or 0, 100, row)
            self.assertEqual(row['above_roof'], 0)
        unknown = rows['(kernels of no operator)']
        self.assertEqual((unknown['flops'], unknown['moved_bytes'], unknown['percent_of_roof']), (None, None, None))

    def test_an_unknown_device_is_refused_with_the_nearest(self):
        done = self.run_bare([harness.RANKTAP, 'report', harness.ROOT, 'roofline', '--device', 'H1000'])
        self.assertEqual(done.returncode, 2)
        self.assertIn("'H1000'; nearest: H100", done.stderr)


@harness.needs_torch
class ProgramsTest(RooflineBase):

    def traced(self, program, model, *options):
        done, run = self.run_traced([harness.TORCH_PYTHON, program, model], ['--level', 'full', *options])
        self.assertEqual(done.returncode, 0, done.stderr)
        return run

    def test_a_transformer_and_resnet_50_on_the_cpu(self):
        for model in ('gpt2', 'resnet50'):
            with self.subTest(model=model):
                run = self.traced(PUBLIC, model, '--tensors')
                self.check_sums(run, has_device=False)
                phases = {row['phase']: row for row in self.report(run, 'roofline', '--by', 'phase')}
                self.assertEqual(set(phases) - {'other'}, {'forward', 'backward', 'optimizer'})
                self.assertEqual(phases['optimizer']['flops'], 0)
                self.assertGreater(phases['optimizer']['moved_bytes'], 0)
                for row in phases.values():
                    self.assertEqual((row['time_ns'], row['percent_of_roof'], row['saved_ns']), (None, None, None))
                self.assertIn('nothing ran on a device', self.notes(run))
                of_h200 = self.report(run, 'roofline', '--device', 'H200')
                self.assertTrue(all(row['least_ns'] for row in of_h200 if row['flops']))
                self.assertLessEqual({row['bound'] for row in of_h200}, {'compute', 'HBM', 'unknown'})
                run.rename(self.scratch / model)

    def model_point(self, model, device):
        run = self.traced(PROGRAM, model).rename(self.scratch / model)
        lines = self.notes(run, '--by', 'phase', '--device', device).splitlines()
        article = [line for line in lines if 'as articles count' in line]
        self.assertEqual(len(article), 1, lines)
        return article[0]

    def test_vgg16_and_mobilenet_lie_where_the_article_has_them(self):
        """15.47 G multiply-adds at 25 a byte; MobileNet at 7 and 3.3 TFLOP/s: of a 1080 Ti, ridge 23.35."""
        vgg = self.model_point('vgg16', 'GTX 1080 Ti')
        self.assertIn(': 15.47 G by ', vgg)
        phases = self.report(self.scratch / 'vgg16', 'roofline', '--by', 'phase')
        self.assertEqual([row['flops'] for row in phases if row['phase'] == 'forward'], [30_940_528_640])
        self.assertRegex(vgg, r', 25\.\d\d a byte, above the ridge of GTX 1080 Ti for fp32 \(23\.35\): compute-bound')
        mobile = self.model_point('mobilenet', 'GTX 1080 Ti')
        self.assertRegex(mobile, r', 7\.\d\d a byte, below the ridge of GTX 1080 Ti for fp32 \(23\.35\): bandwidth-bound, '
                                 r'at most 3\.[3-6]\d+ TFLOP/s')


if __name__ == '__main__':
    unittest.main()
