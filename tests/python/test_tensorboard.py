"""TensorBoard's profiler plugin (from PyPI) loads our JSON of an imported trace and answers as on the original."""
import json
import re
import subprocess
import unittest

from harness import CACHE, PROGRAMS, RANKTAP, ROOT, TracedTest
from test_hta import differences

TOOLS_PYTHON = CACHE / 'hta-venv/bin/python'
KINETO = ROOT.parent / 'shared/data/kineto'
HAS_PLUGIN = TOOLS_PYTHON.exists() and subprocess.run(
    [TOOLS_PYTHON, '-c', 'import torch_tb_profiler'], capture_output=True).returncode == 0


def answers(trace, program='tensorboard_answers.py'):
    done = subprocess.run([TOOLS_PYTHON, PROGRAMS / program, trace], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f'TensorBoard could not read {trace}:\n{done.stderr[-2000:]}')
    return json.loads(done.stdout.splitlines()[-1])


@unittest.skipUnless(HAS_PLUGIN, 'no torch_tb_profiler; scripts/setup --tools installs it')
@unittest.skipUnless(KINETO.exists(), f'no real traces: {KINETO} is missing')
class TensorBoardTest(TracedTest):
    def test_operators_kernels_steps_and_what_the_distributed_view_shows(self):
        original = KINETO / 'nccl-metadata.json.gz'
        ours = self.scratch / 'ours.json'
        done = self._run([RANKTAP, 'export', original, '--format', 'chrome', '-o', ours], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        found, known = answers(ours), answers(original)
        self.assertGreater(len(known['operators']), 50)
        self.assertGreater(len(known['kernels']), 10)
        self.assertEqual([row[:2] for row in found['operators']], [row[:2] for row in known['operators']])
        self.assertEqual(found['kernels'], known['kernels'])
        self.assertGreater(len(known['steps']), 2)
        self.assertGreater(len(known['collectives']), 10)
        for part in ('steps', 'overlap', 'collectives'):
            self.assertEqual(found[part], known[part])
        for ours_, theirs in zip(found['costs of the mean step'], known['costs of the mean step']):
            self.assertAlmostEqual(ours_, theirs, delta=1 + theirs / 1000)

    def test_every_view_of_the_page_is_answered_as_on_the_original(self):
        """Overview, operators, kernels, GPU, modules and, of all workers, the distributed view."""
        seen = set()
        for name in ('nccl-metadata', 'bert-small-h100', 'alexnet-a100', 'cpu-only'):
            original, ours = KINETO / f'{name}.json.gz', self.scratch / f'{name}.json'
            done = self._run([RANKTAP, 'export', original, '--format', 'chrome', '-o', ours], {})
            self.assertEqual(done.returncode, 0, done.stderr)
            found, known = answers(ours, 'tensorboard_views.py'), answers(original, 'tensorboard_views.py')
            self.assertEqual(list(differences(found, known)), [], name)
            seen |= {view for worker in known.values() for view, part in worker.items() if part}
        self.assertLessEqual({'overview', 'operation_table_by_name_input', 'kernel_table', 'tc_pie', 'gpu_metrics', 'modules',
                              'gpu_info', 'steps_to_overlap', 'steps_to_wait', 'comm_ops'}, seen)


@unittest.skipUnless(HAS_PLUGIN, 'no torch_tb_profiler; scripts/setup --tools installs it')
class TensorBoardModulesTest(TracedTest):
    """The module view, of a run that was recorded once: two ranks of PyTorch with DDP."""

    def test_our_own_capture_has_the_module_view(self):
        run = ROOT / 'tests/golden/inputs/torch-ddp'
        done = self._run([RANKTAP, 'export', run, '-o', self.scratch / 'out'], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        names = sorted(path.name for path in (self.scratch / 'out').iterdir())
        # torch_tb_profiler's consts.WORKER_PATTERN: other files in a folder are none of its.
        workers = [re.match(r'^(.*?)(?:\.\d+)?\.pt\.trace\.json(?:\.gz)?$', name)[1] for name in names]
        self.assertEqual(workers, ['rank-00000', 'rank-00001'])
        (root,) = answers(self.scratch / 'out/rank-00000.pt.trace.json')['modules']
        done = self._run([RANKTAP, 'report', run, 'modules', '--ranks', '0', '--format', 'json'], {})
        calls = {row['module']: row['calls'] for row in json.loads(done.stdout)['rows']}
        self.assertEqual(root[:2], ['DistributedDataParallel_0', calls['DistributedDataParallel']])
        ((name, count, children),) = root[2]
        self.assertEqual([name, count], ['Sequential_0', calls['DistributedDataParallel.module']])
        self.assertEqual([child[:2] for child in children],
                         [[name, calls[f'DistributedDataParallel.module.{i}']]
                          for i, name in enumerate(('Linear_0', 'ReLU_0', 'Linear_1'))])


if __name__ == '__main__':
    unittest.main()
