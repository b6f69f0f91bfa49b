"""Python's garbage collections as the agent's hooks see them. Needs no PyTorch and no build: the hooks' file alone."""
import subprocess
import sys
import unittest

import harness

PROGRAM = '''
import gc, os, sys, types
agent = types.SimpleNamespace(
    COLLECTION_PHASE='collection', CHECKPOINT_PHASE='checkpoint', name=lambda text: 1,
    push=lambda *arguments: os.write(1, b'begins '), pop=lambda *arguments: os.write(1, b'ends '))
names = {'agent': agent}
exec(open(sys.argv[1]).read(), names)
gc.set_threshold(0)
names['Pauses'](1).start()
gc.collect()
'''


class PausesTest(unittest.TestCase):

    def test_a_collection_is_a_pause_and_those_of_the_interpreters_end_are_none(self):
        file = harness.ROOT / 'agent/sources/torch/python/pauses.py'
        done = subprocess.run([sys.executable, '-c', PROGRAM, file], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, 'begins ends ', ''))


if __name__ == '__main__':
    unittest.main()
