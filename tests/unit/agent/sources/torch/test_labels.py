"""labels.py: whose methods record_function has, and when a callback sees labels instead."""
import sys
import types
import unittest
from unittest import mock

from fake_agent import Agent, Sources


def made_up_torch():
    class record_function:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    profiler = types.SimpleNamespace(record_function=record_function)
    return types.SimpleNamespace(autograd=types.SimpleNamespace(profiler=profiler))


class Group:
    def rank(self):
        return 0

    def size(self):
        return 2


class LabelsTest(unittest.TestCase):
    def make(self, compilers=True, **answers):
        self.torch, self.compiled = made_up_torch(), []
        self.label = self.torch.autograd.profiler.record_function
        self.own = vars(self.label)['__enter__'], vars(self.label)['__exit__']
        self.ours = (lambda self: self), (lambda self, *_: None)
        self.agent = Agent(**{'label_call': lambda cls, original, ends: self.ours[ends], **answers})
        self.labels = Sources(self.agent).load('labels').Labels(self.torch)
        script = types.SimpleNamespace(_compile_and_register_class=lambda cls, *_: self.compiled.append(self.methods()))
        internal = types.SimpleNamespace(can_compile_class=lambda cls: self.compiled.append(self.methods()))
        self.script, self.internal = script, internal
        modules = {'torch._jit_internal': internal, 'torch.jit._script': script, 'torch.jit._recursive': script}
        with mock.patch.dict(sys.modules, modules if compilers else dict.fromkeys(modules)):
            self.labels.install()

    def methods(self):
        return vars(self.label)['__enter__'], vars(self.label)['__exit__']

    def test_its_methods_are_ours_and_there_is_no_callback(self):
        self.make()
        self.assertEqual(self.methods(), self.ours)
        self.assertEqual([(original, ends) for _, _, original, ends in self.agent.calls('label_call')],
                         [(self.own[0], 0), (self.own[1], 1)])
        self.assertEqual(self.agent.calls('watch_labels'), [])

    def test_where_the_methods_cannot_be_ours_there_is_a_callback(self):
        for ways in ({'label_call': None}, {'compilers': False}):
            self.make(**ways)
            self.assertEqual(self.methods(), self.own)
            self.assertEqual(self.agent.calls('watch_labels'), [('watch_labels',)])

    def test_before_torchscript_looks_at_a_label_its_own_methods_are_back_and_a_callback_sees_labels(self):
        for look in ('can_compile_class', '_compile_and_register_class'):
            self.make()
            compiler = getattr(self.internal, look, None) or getattr(self.script, look)
            compiler(int)
            self.assertEqual(self.compiled.pop(), self.ours)  # another class is no reason
            compiler(type('Mine', (self.label,), {}))
            self.assertEqual(self.compiled.pop(), self.own)
            compiler(self.label)
            self.assertEqual(self.agent.calls('watch_labels'), [('watch_labels',)])

    def test_who_replaced_a_method_after_us_keeps_it_and_no_label_is_seen_twice(self):
        self.make()
        self.label.__enter__ = theirs = lambda self: self
        self.labels.switch_to_callback()
        self.assertEqual(self.methods(), (theirs, self.ours[1]))
        self.assertEqual(self.agent.calls('watch_labels'), [])

    def test_a_group_of_another_backend_than_nccl_needs_the_callback(self):
        for backend, needs in (('nccl', False), ('cuda:nccl', False), ('gloo', True), ('cpu:gloo,cuda:nccl', True), ('mpi', True)):
            agent, told = Agent(gloo_contexts='', watch_gloo=1), []
            sources = Sources(agent)
            sources.load('lines').send = lambda *_: None
            group = Group()
            world = types.SimpleNamespace(pg_map={group: (backend, None)}, pg_group_ranks={}, pg_names={})
            c10d = types.SimpleNamespace(is_initialized=lambda: True, _world=world)
            with mock.patch.dict(sys.modules, {'torch.distributed.distributed_c10d': c10d}):
                sources.load('distributed').Distributed(1, lambda: told.append(backend)).look()
            self.assertEqual(told, [backend] if needs else [])


if __name__ == '__main__':
    unittest.main()
