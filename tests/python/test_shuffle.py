"""The order of events in a file, and of files on the command line, changes no answer.

Real traces of torch.profiler with their events dealt anew (seed stated) are asked for every report there is.
"""
import gzip
import json
import random
import re
import unittest

from harness import RANKTAP, ROOT, TracedTest

KINETO = ROOT.parent / 'shared/data/kineto'
SEED = 5
# Without `idle`: HTA takes a kernel without a launch for one launched by the first event of the file.
HTA_COMPAT = ['temporal', 'overlap', 'types', 'kernels', 'launches', 'queue', 'bandwidth', 'patterns']


def reports(test):
    """The names that `ranktap report --help` lists, without those that compare two runs."""
    done = test._run([RANKTAP, 'report', '--help'], {})
    listed = re.findall(r'^  ([a-z][a-z-]*)  ', done.stdout.split('Reports (', 1)[1], re.M)
    return [name for name in listed if name != 'diff']


@unittest.skipUnless(KINETO.exists(), f'no real traces: {KINETO} is missing')
class ShuffleTest(TracedTest):
    def shuffled(self, name):
        """The trace as it is and with its events in another order, in two folders under one name."""
        trace = json.loads(gzip.open(KINETO / f'{name}.json.gz', 'rt').read())
        paths = []
        for folder in ('original', 'shuffled'):
            if folder == 'shuffled':
                random.Random(SEED).shuffle(trace['traceEvents'])
            path = self.scratch / folder / f'{name}.json'
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(trace))
            paths.append(path)
        return paths

    def answer(self, files, analysis, *options):
        done = self._run([RANKTAP, 'report', *files, analysis, '--format', 'json', *options], {})
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout
        for file in files:  # the commands in it name what was opened, in that order
            text = text.replace(str(file), 'RUN')
        return json.loads(text)

    def check(self, *names):
        originals, shuffled = zip(*[self.shuffled(name) for name in names])
        for analysis in reports(self):
            for options in [[], ['--hta-compat']][:1 + (analysis in HTA_COMPAT)]:
                ours = self.answer(shuffled[::-1], analysis, *options)
                theirs = self.answer(originals, analysis, *options)
                if ours != theirs:
                    different = [(a, b) for a, b in zip(ours['rows'], theirs['rows']) if a != b]
                    self.fail(f'{analysis} {options}: {len(ours["rows"])} and {len(theirs["rows"])} rows, '
                              f'different are {different[:2]}')

    def test_v100_with_backward_thread(self):
        self.check('ns-timestamps-rank0')

    def test_a100_with_nccl(self):
        self.check('nccl-metadata')

    def test_two_ranks_of_128(self):
        self.check('sampled-rank0', 'sampled-rank1')

    def test_h100_with_python_stacks_and_memory(self):
        self.check('qwen-0.5b-h100')

    def test_syncs_and_copies(self):
        self.check('alexnet-a100')

    def test_cuda_graphs(self):
        self.check('cuda-graphs-vllm')


if __name__ == '__main__':
    unittest.main()
