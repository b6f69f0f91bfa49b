"""modules.py: what a module's forward is called, when PyTorch's own call is there, who is forgotten."""
import gc
import sys
import types
import unittest
from unittest import mock

from fake_agent import Agent, Sources


def made_up_torch():
    """torch.nn.Module as far as we touch it: a call, global hooks, named_modules."""
    hooks = types.SimpleNamespace(before=[], after=[])

    class Module:
        def __init__(self, **children):
            self.children = children

        def __call__(self, *inputs):
            for hook in hooks.before:
                hook(self, inputs)
            output = self.forward(*inputs)
            for hook in hooks.after:
                hook(self, inputs, output)
            return output

        def forward(self, *inputs):
            for child in self.children.values():
                child(*inputs)
            return inputs

        def named_modules(self, prefix=''):
            yield prefix, self
            for name, child in self.children.items():
                yield from child.named_modules(f'{prefix}.{name}' if prefix else name)

    def register(to):
        def add(hook, **_):
            to.append(hook)
            return types.SimpleNamespace(id=len(to))

        return add

    module = types.SimpleNamespace(register_module_forward_pre_hook=register(hooks.before),
                                   register_module_forward_hook=register(hooks.after))
    return types.SimpleNamespace(nn=types.SimpleNamespace(Module=Module, modules=types.SimpleNamespace(module=module)),
                                 hooks=hooks)


class ModulesTest(unittest.TestCase):
    def make(self, records=True, **answers):
        self.agent = Agent(**answers)
        self.sources = Sources(self.agent)
        self.torch = made_up_torch()
        self.outputs = []
        process = types.SimpleNamespace(records=lambda: records,
                                        domains={self.agent.LABEL_DOMAIN: self.agent.domain(self.agent.LABEL_DOMAIN)})
        self.modules = self.sources.load('modules').Modules(self.torch, process, self.outputs.append)
        self.Module = self.torch.nn.Module
        self.Net = type('Net', (self.Module,), {})

    def with_hooks(self, **answers):
        self.make(module_call=lambda *_: None, **answers)
        self.modules.install()

    def entered(self):
        names = {number: text for text, number in self.agent.texts.items()}
        return [names[name] for _, _, name in self.agent.calls('enter')]

    def test_names_are_those_of_named_modules_behind_the_roots_class(self):
        self.with_hooks()
        net = self.Net(block=self.Module(first=self.Module()), head=self.Module())
        net(1)
        self.assertEqual(self.entered(), ['Net', 'Net.block', 'Net.block.first', 'Net.head'])

    def test_a_module_that_its_parent_does_not_know_has_its_class_for_a_name(self):
        depth = 0
        self.with_hooks(depth=lambda: depth)
        stray = type('Stray', (self.Module,), {})()

        class Hides(self.Module):
            def forward(self, *inputs):
                nonlocal depth
                depth = 1
                stray(*inputs)

        root = Hides()
        root(1)
        self.assertEqual(self.entered(), ['Hides', 'Stray'])

    def test_only_the_roots_output_is_looked_at(self):
        self.with_hooks()
        net = self.Net(head=self.Module())
        self.agent.answers['exit'] = lambda module: int(module is net)
        net('batch')
        self.assertEqual(self.outputs, [('batch',)])

    def test_a_process_that_does_not_record_enters_nothing(self):
        self.make(records=False, module_call=lambda *_: None)
        self.modules.install()
        self.Net()(1)
        self.assertEqual(self.agent.calls('enter', 'name'), [])

    def test_a_module_that_dies_is_forgotten(self):
        self.with_hooks()
        net = self.Net()
        net(1)
        key = id(net)
        self.assertIn(key, self.modules.names)
        self.agent.told.clear()  # the made-up agent has kept it alive
        del net
        gc.collect()
        self.assertEqual(self.agent.calls('forget_module'), [('forget_module', key)])
        self.assertNotIn(key, self.modules.names)
        self.assertNotIn(key, self.modules.texts)

    def with_own_call(self, **answers):
        def own(self, *inputs):
            return self.forward(*inputs)

        self.own = own
        self.make(module_call=lambda *_: own, **answers)
        self.original = vars(self.Module)['__call__']
        with mock.patch.dict(sys.modules):
            sys.modules.pop('torch._dynamo', None)
            with mock.patch.object(sys, 'meta_path', list(sys.meta_path)):
                self.modules.install()

    def test_pytorchs_own_call_is_there_while_the_modules_sleep(self):
        part = mock.Mock()
        self.with_own_call(wake_by=1)
        self.modules.with_call.append(part)
        self.assertIs(vars(self.Module)['__call__'], self.own)
        self.modules.sleep()
        self.assertIs(vars(self.Module)['__call__'], self.original)
        self.modules.wake()
        self.assertIs(vars(self.Module)['__call__'], self.own)
        self.assertEqual((part.sleep.call_count, part.wake.call_count), (1, 1))
        # Those that are open now have a range in the new window.
        self.assertEqual(self.agent.calls('record_labels'), [('record_labels', self.agent.texts[self.agent.LABEL_DOMAIN])])

    def test_they_do_not_sleep_where_nobody_would_wake_them(self):
        self.with_own_call(wake_by=0)
        self.modules.sleep()
        self.assertIs(vars(self.Module)['__call__'], self.own)

    def test_who_replaced_the_call_after_us_keeps_it(self):
        self.with_own_call(wake_by=1)

        def theirs(self, *inputs):
            return inputs

        self.Module.__call__ = theirs
        self.modules.sleep()
        self.modules.switch_to_hooks()
        self.assertIs(vars(self.Module)['__call__'], theirs)

    def test_a_call_that_was_replaced_while_they_slept_stays_and_is_noted(self):
        self.with_own_call(wake_by=1)
        self.modules.sleep()

        def theirs(self, *inputs):
            return inputs

        self.Module.__call__ = theirs
        self.modules.wake()
        self.assertIs(vars(self.Module)['__call__'], theirs)
        self.assertEqual(len(self.agent.calls('note')), 1)

    def test_for_dynamo_pytorchs_own_call_comes_back_and_hooks_take_over(self):
        self.with_own_call()
        self.modules.switch_to_hooks()
        self.assertIs(vars(self.Module)['__call__'], self.original)
        self.Net()(1)
        self.assertEqual(self.entered(), ['Net'])
        self.assertTrue(self.modules.compiles)

    def test_pytorchs_call_is_put_back_also_where_what_needed_it_raises(self):
        self.with_own_call()

        def fails():
            self.assertIs(vars(self.Module)['__call__'], self.original)
            raise ImportError

        with self.assertRaises(ImportError):
            self.modules.with_pytorchs_call(fails)
        self.assertIs(vars(self.Module)['__call__'], self.own)

    def test_torch_compile_does_not_warn_of_our_hooks_but_of_others(self):
        self.make()
        hooked = types.SimpleNamespace(_has_any_global_hook=None, _global_forward_hooks={1: 'ours'})
        self.sources.load('modules').hide_from_compile_warning(hooked, {1})
        self.assertFalse(hooked._has_any_global_hook())
        hooked._global_forward_hooks[2] = 'theirs'
        self.assertTrue(hooked._has_any_global_hook())


if __name__ == '__main__':
    unittest.main()
