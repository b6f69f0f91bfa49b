"""The agent's configuration as our Python files get it: what C++ read, by its rules. Needs no PyTorch: an empty
package of its name is enough for the hook."""
import json
import pathlib
import tempfile
import unittest

import harness

PROGRAM = '''
import json, sys
import torch
agent = sys.modules['_ranktap.guard'].agent
assert agent.start() == 1
print(json.dumps(agent.config()))
'''
DEFAULTS = {'schedule': '', 'flop_check': 0, 'tensors': 0, 'python_stacks': 0}
FLAGS = {'flop_check': 'RANKTAP_FLOP_CHECK', 'tensors': 'RANKTAP_TENSORS'}


@unittest.skipUnless(harness.RANKTAP.exists(), f'no {harness.RANKTAP}')
class AgentConfigTest(harness.TracedTest):

    def config(self, **environment):
        """What Python got, and what C++ logged."""
        (self.scratch / 'torch').mkdir(exist_ok=True)
        (self.scratch / 'torch/__init__.py').touch()
        run = pathlib.Path(tempfile.mkdtemp(dir=self.scratch)) / 'run'
        log = run.with_name('log')
        done = self._run([harness.RANKTAP, 'run', '-o', run, '--level', 'full', '--', 'python3', '-c', PROGRAM],
                         {'PYTHONPATH': str(self.scratch), 'RANKTAP_LOG': str(log), **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), log.read_text()

    def test_without_variables_it_has_the_defaults(self):
        self.assertEqual(self.config()[0], DEFAULTS)

    def test_python_gets_what_cpp_has_read(self):
        config, _ = self.config(RANKTAP_SCHEDULE='wait=2', RANKTAP_STACKS='all', **dict.fromkeys(FLAGS.values(), '1'))
        self.assertEqual(config, {'schedule': 'wait=2', 'python_stacks': 1, **dict.fromkeys(FLAGS, 1)})

    def test_stacks_below_all_are_no_python_stacks(self):
        self.assertEqual(self.config(RANKTAP_STACKS='sync')[0], DEFAULTS)

    def test_a_value_that_cpp_refuses_is_none_in_python_either(self):
        for value in ('true', '3', 'on', ' 1'):
            config, log = self.config(**dict.fromkeys(FLAGS.values(), value))
            with self.subTest(value=value):
                self.assertEqual(config, DEFAULTS)
                for name in FLAGS.values():
                    expected = '0, 1, 2 or full' if name == 'RANKTAP_TENSORS' else '0 or 1'
                    self.assertIn(f'{name}={value} is not {expected}; ignored', log)

    def test_all_values_of_tensors_are_asked_for_by_word_or_number(self):
        for value in ('2', 'full'):
            with self.subTest(value=value):
                self.assertEqual(self.config(RANKTAP_TENSORS=value)[0], {**DEFAULTS, 'tensors': 2})

    def test_our_files_do_not_read_the_environment(self):
        for path in (harness.ROOT / 'agent/sources/torch/python').glob('*.py'):
            with self.subTest(file=path.name):
                self.assertNotRegex(path.read_text(), 'environ|getenv')


if __name__ == '__main__':
    unittest.main()
