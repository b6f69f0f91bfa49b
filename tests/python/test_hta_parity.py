"""What `ranktap report --hta-compat` answers for real torch.profiler traces is what Holistic Trace Analysis answers.

The traces and HTA's answers lie in ../shared/data/kineto beside the checkout (RANKTAP_KINETO_DATA names another place).
HTA keeps times as doubles of absolute microseconds, which resolve 0.25 us: times agree within 1 us an event, or
0.01 % of a sum.
"""
import json
import os
import pathlib
import unittest

import harness

DATA = pathlib.Path(os.environ.get('RANKTAP_KINETO_DATA', harness.ROOT.parent / 'shared/data/kineto'))
KINDS = {'COMPUTATION': 'compute', 'COMMUNICATION': 'communication', 'MEMORY': 'memory'}


def near(ours_us, theirs_us, slack_us=1.0):
    return abs(ours_us - theirs_us) <= max(slack_us, 1e-4 * abs(theirs_us))


@unittest.skipUnless((DATA / 'hta-expected.json').exists(), f'no traces at {DATA}; RANKTAP_KINETO_DATA names them')
class HtaParityTest(harness.TracedTest):
    @classmethod
    def setUpClass(cls):
        cls.expected = json.loads((DATA / 'hta-expected.json').read_text())

    def rows(self, trace, analysis):
        command = [harness.RANKTAP, 'report', DATA / trace, analysis, '--hta-compat', '--format', 'json']
        done = self.run_bare([str(word) for word in command])
        self.assertEqual(done.returncode, 0, (trace, analysis, done.stderr))
        return json.loads(done.stdout)['rows']

    def each(self, answer):
        return [(trace, answers[answer]) for trace, answers in self.expected.items()]

    def assert_described(self, row, theirs, key, scale=1.0, slack=0.0):
        for ours, name in [('mean', 'mean'), ('std', 'std'), ('min', 'min'), ('p25', '25%'), ('p50', '50%'),
                           ('p75', '75%'), ('max', 'max')]:
            value = theirs[key(name)]
            own = next(v for k, v in row.items() if k == ours or k.startswith(ours + '_'))
            if value is None:
                self.assertTrue(own is None or row['count'] < 2, (ours, own))
                continue
            own *= scale
            self.assertTrue(abs(own - value) <= max(slack, 1e-4 * abs(value)), (ours, own, value))

    def test_temporal_breakdown(self):
        for trace, theirs in self.each('temporal'):
            rows = self.rows(trace, 'temporal')
            if isinstance(theirs, dict):  # HTA fails without a GPU event
                self.assertEqual(rows, [])
                continue
            for ours, row in zip(rows, theirs, strict=True):
                for own, name in [('idle_ns', 'idle_time(us)'), ('compute_ns', 'compute_time(us)'),
                                  ('non_compute_ns', 'non_compute_time(us)'), ('span_ns', 'kernel_time(us)')]:
                    self.assertTrue(near(ours[own] / 1e3, row[name]), (own, ours[own], row[name]))

    def test_idle_breakdown(self):
        for trace, theirs in self.each('idle'):
            rows = {(row['stream'], row['cause']): row['idle_ns'] / 1e3 for row in self.rows(trace, 'idle')}
            if isinstance(theirs, dict):
                self.assertEqual(rows, {})
                continue
            expected = {(row['stream'], row['idle_category']): row['idle_time'] for row in theirs}
            self.assertEqual(sorted(rows), sorted(expected))
            for key, value in expected.items():
                self.assertTrue(near(rows[key], value, 2.0), (key, rows[key], value))

    def test_kernel_types(self):
        for trace, theirs in self.each('kernel_types'):
            rows = {row['type']: row['total_ns'] / 1e3 for row in self.rows(trace, 'types')}
            expected = {' overlapping '.join(KINDS[part] for part in row['kernel_type'].split(' overlapping ')): row['sum']
                        for row in theirs}
            self.assertEqual(sorted(rows), sorted(k for k in expected if expected[k] > 0))
            for key in rows:
                # HTA cuts each piece to whole microseconds after rounding in doubles.
                self.assertTrue(abs(rows[key] - expected[key]) <= max(3, 2e-3 * expected[key]), (key, rows, expected))

    def test_kernels(self):
        for trace, theirs in self.each('kernels'):
            rows = {(row['name'], row['type']): row for row in self.rows(trace, 'kernels')}
            self.assertEqual(sorted(rows), sorted((row['name'], KINDS[row['kernel_type']]) for row in theirs))
            for row in theirs:
                ours = rows[row['name'], KINDS[row['kernel_type']]]
                for own, name in [('total_ns', 'sum (us)'), ('mean_ns', 'mean (us)'), ('min_ns', 'min (us)'),
                                  ('max_ns', 'max (us)'), ('std_ns', 'stddev')]:
                    self.assertTrue(near(ours[own] / 1e3, row[name], 0.002), (own, ours, row))

    def test_overlap(self):
        for trace, theirs in self.each('overlap'):
            for ours, row in zip(self.rows(trace, 'overlap'), theirs, strict=True):
                if row['comp_comm_overlap_pctg'] is None:
                    self.assertIsNone(ours['overlap_percent'])
                else:
                    self.assertAlmostEqual(ours['overlap_percent'], row['comp_comm_overlap_pctg'], delta=0.02)

    def test_launches(self):
        for trace, theirs in self.each('launch'):
            rows = {row['what']: row for row in self.rows(trace, 'launches')}
            for what in ('cpu_duration', 'gpu_duration', 'launch_delay'):
                expected = theirs['0'][what]
                self.assertEqual(rows[what]['count'], expected['count'], what)
                self.assert_described(rows[what], expected, lambda name: name, 1e-3, 0.26)

    def test_queue(self):
        for trace, theirs in self.each('queue'):
            rows = {row['stream']: row for row in self.rows(trace, 'queue')}
            expected = {row["('stream', '')"]: row for row in theirs or []}
            self.assertEqual(sorted(rows), sorted(expected))
            for stream, row in expected.items():
                self.assertEqual(rows[stream]['count'], row["('queue_length', 'count')"])
                self.assert_described(rows[stream], row, lambda name: f"('queue_length', '{name}')", 1, 0.01)

    def test_bandwidth(self):
        for trace, theirs in self.each('membw'):
            rows = {row['name']: row for row in self.rows(trace, 'bandwidth')}
            expected = {row["('name', '')"]: row for row in theirs or []}
            self.assertEqual(sorted(rows), sorted(expected))
            for name, row in expected.items():
                self.assertEqual(rows[name]['count'], row["('memory_bw_gbps', 'count')"])
                self.assert_described(rows[name], row, lambda key: f"('memory_bw_gbps', '{key}')", 1, 1e-6)


if __name__ == '__main__':
    unittest.main()
