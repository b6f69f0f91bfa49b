"""chakra_trace_link 1.0.0 itself takes our files where it takes PyTorch's, and makes the same of them."""
import gzip
import json
import tarfile
import unittest

import harness
from test_execution_trace import OPTIONS, PROGRAM, attributes

PYTHON = harness.CACHE / 'hta-venv/bin/python'
DATA = harness.ROOT / 'tests/data'
# The linker asks HTA for a critical path, which ends at any trace without a kernel (its own assertion). The rest of the
# linker is what this runs.
WITHOUT_HTA = """
import sys
from chakra.src.trace_link.trace_linker import TraceLinker
TraceLinker.load_sync_dependencies = lambda *_: {}
TraceLinker().link(0, *sys.argv[1:])
"""


@unittest.skipUnless(PYTHON.exists(), f'no HTA: {PYTHON} is missing; scripts/setup --tools')
class TraceLinkTest(harness.TracedTest):

    def setUp(self):
        super().setUp()
        with tarfile.open(DATA / 'chakra/trace-link.tar.gz') as archive:
            archive.extractall(self.scratch / 'linker', filter='data')

    def link(self, host, device, *, whole=True):
        """(the finished process, the nodes that it wrote)"""
        out = self.scratch / 'linked.json'
        out.unlink(missing_ok=True)
        command = [PYTHON, '-m', 'chakra.src.trace_link.trace_link', '--rank', '0', '--chakra-host-trace', host,
                   '--chakra-device-trace', device, '--output-file', out]
        if not whole:
            command = [PYTHON, '-c', WITHOUT_HTA, host, device, out]
        done = self.run_bare(command, PYTHONPATH=str(self.scratch / 'linker'))
        return done, json.loads(out.read_text())['nodes'] if out.exists() else []

    def export(self, source, *options):
        done = self.run_bare([harness.RANKTAP, 'export', source, *options])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_whole_command_makes_of_our_device_trace_what_it_makes_of_pytorchs(self):
        for rank in range(2):
            pair = {}
            for part in ('host', 'device'):
                pair[part] = self.scratch / f'{part}.{rank}.json'
                pair[part].write_bytes(gzip.decompress((DATA / f'et/pair/{part}.{rank}.json.gz').read_bytes()))
            ours = self.scratch / 'ours.json'
            self.export(pair['device'], '--format', 'chrome', '-o', ours)
            done, theirs = self.link(pair['host'], pair['device'])
            self.assertEqual(done.returncode, 0, done.stderr)
            done, made = self.link(pair['host'], ours)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(sum(node.get('cat') == 'kernel' for node in theirs), 2)
            self.assertEqual(made, theirs)

    @harness.needs_torch
    def test_of_a_cpu_program_it_links_each_operator_of_our_pair_as_of_pytorchs(self):
        observed, profiled = self.scratch / 'observed.json', self.scratch / 'profiled.json'
        done, run = self.run_traced([harness.TORCH_PYTHON, PROGRAM, '--own', observed, profiled], OPTIONS)
        self.assertEqual(done.returncode, 0, done.stderr)
        host, device = self.scratch / 'host', self.scratch / 'device.json'
        self.export(run, '--format', 'et', '-o', host)
        self.export(run, '--format', 'chrome', '-o', device)
        if host.is_dir():
            (host,) = host.iterdir()
        linked = {}
        for whose, pair in (('theirs', (observed, profiled)), ('ours', (host, device))):
            done, _ = self.link(*pair)
            self.assertNotEqual(done.returncode, 0, 'HTA takes a trace without kernels now: link it as a whole here')
            self.assertIn('critical_path_analysis', done.stderr)
            done, nodes = self.link(*pair, whole=False)
            self.assertEqual(done.returncode, 0, f'{whose}: {done.stderr}')
            linked[whose] = {attributes(node)['rf_id']: node for node in nodes if attributes(node)['rf_id']}
        timed = {number for number, node in linked['ours'].items() if 'inclusive_dur' in node}
        self.assertGreater(len(timed), 150)
        for number, node in linked['ours'].items():
            other = linked['theirs'].get(number)
            if other is None:
                continue
            self.assertEqual(node['name'], other['name'])
            self.assertEqual(number in timed, 'inclusive_dur' in other, node['name'])
            if number in timed:
                self.assertGreaterEqual(node['inclusive_dur'], node['exclusive_dur'], node['name'])
        self.assertEqual(timed & set(linked['theirs']), {number for number, node in linked['theirs'].items()
                                                         if number in linked['ours'] and 'inclusive_dur' in node})


if __name__ == '__main__':
    unittest.main()
