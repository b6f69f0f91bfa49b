"""proto/framework_marks.h against both of its sides: the hooks in Python, run here with an agent that only notes what
it is told, and the collector's sources. Needs neither PyTorch nor a build."""
import ast
import collections
import json
import os
import pathlib
import re
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TORCH = ROOT / 'agent/sources/torch'
FILES = sorted((TORCH / 'python').glob('*.py'))
HEADER = ''.join((ROOT / 'proto' / name).read_text() for name in ('framework_marks.h', 'operator_values.h'))


def python_name(name):
    """kTensorsMark -> TENSORS_MARK"""
    return re.sub(r'(?<!^)([A-Z])', r'_\1', name[1:]).upper()


def constants():
    """{Python's name: value} of all that the header names."""
    found = dict(re.findall(r'string_view (k\w+) = "([^"]*)"', HEADER))
    rows = re.findall(r'RowFields (k\w+)\{([^}]*)\}', HEADER)
    found.update((name, ''.join(re.findall(r'"([^"]*)"', texts))) for name, texts in rows)
    found.update(re.findall(r"(k\w+Kind) = '(.)'", HEADER))
    found.update((name, int(value)) for name, value in re.findall(r'^  (k\w+) = (\d+),', HEADER, re.M))
    return {python_name(name): value for name, value in found.items()}


def handed_over():
    """{Python's name: C++'s} of the table in torch_marks.cc."""
    text = (TORCH / 'torch_marks.cc').read_text()
    return dict(re.findall(r'\{"(\w+)", (?:CodeOf\()?proto::(k\w+)', text))


class Hooks:
    """Our Python files, with an agent that keeps the marks."""

    def __init__(self):
        self.marks = []  # (domain, name, rows)
        self.agent = types.SimpleNamespace(
            **constants(), name=lambda text: text, domain=lambda text: text, note=print, watch_gloo=lambda _: 1,
            mark=lambda domain, name, text: self.marks.append(
                (domain, name, [json.loads(line) for line in text.splitlines()])))
        self._loaded = {}

    def load(self, name):
        if name not in self._loaded:
            module = self._loaded[name] = types.ModuleType(name)
            module.agent, module.load = self.agent, self.load
            exec((TORCH / f'python/{name}.py').read_text(), module.__dict__)
        return self._loaded[name]


class Tensor:
    """Of ours: as much of torch.Tensor as memory.py looks at."""
    is_cpu = True

    def data_ptr(self):
        return 4096

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=lambda: 4096, nbytes=lambda: 64)


class FrameworkMarksTest(unittest.TestCase):

    def rows(self, mark, row, told):
        """The told rows as objects by the header's names."""
        names = constants()[row].split()
        self.assertEqual([name for _, name, _ in told], [constants()[mark]])
        for cells in told[0][2]:
            self.assertEqual(len(cells), len(names))
        return [dict(zip(names, cells)) for cells in told[0][2]]

    def test_python_gets_each_constant_by_its_own_name(self):
        self.assertGreater(len(handed_over()), 30)
        for name, cpp in handed_over().items():
            self.assertEqual(name, python_name(cpp))
            self.assertIn(name, constants())

    def test_python_gets_all_that_its_files_ask_for_and_no_more(self):
        asked = set()
        for path in FILES:
            asked.update(re.findall(r'\bagent\.([A-Z][A-Z_]+)\b', path.read_text()))
        self.assertEqual(sorted(asked), sorted(handed_over()))

    def test_the_hooks_spell_no_name_out(self):
        for path in FILES:
            for node in ast.walk(ast.parse(path.read_text())):
                called = node.func if isinstance(node, ast.Call) else None
                if isinstance(called, ast.Attribute) and called.attr in ('name', 'domain'):
                    with self.subTest(file=path.name, line=node.lineno):
                        self.assertNotIsInstance(node.args[0], ast.Constant)
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    with self.subTest(file=path.name, line=node.lineno):
                        self.assertFalse(node.value.startswith('ranktap.'), node.value)

    def test_the_collector_spells_no_name_out(self):
        for path in (ROOT / 'collector').rglob('*.cc'):
            text = path.read_text()
            with self.subTest(file=path.name):
                self.assertNotRegex(text, r'MarkedLines(WithRows)?\([^;)]*"')
                self.assertNotRegex(text, r'"ranktap\.(step|module|phase|op|memory|comm)"')

    def test_living_tensors_are_told_in_the_order_of_the_fields(self):
        hooks = Hooks()
        memory = hooks.load('memory')
        torch = types.SimpleNamespace(Tensor=Tensor, nn=types.SimpleNamespace(Parameter=Tensor))
        living = memory.LivingTensors(torch, None, None)
        for tensor in (Tensor(), type('Subclass', (Tensor,), {})()):
            lines = []
            living._add(lines, tensor, memory.new_slot(hooks.agent.GRADIENT_KIND, 'Net.weight'))
            hooks.marks.clear()
            hooks.load('lines').send_lines('domain', hooks.agent.TENSORS_MARK, lines)
            self.assertEqual(self.rows('TENSORS_MARK', 'TENSORS_ROW', hooks.marks), [
                {'address': 4096, 'bytes': 64, 'kind': 'g', 'device': 0, 'name': 'Net.weight'}])

    def test_the_gpus_history_is_told_in_the_order_of_the_fields(self):
        hooks = Hooks()
        history = hooks.load('memory').CudaHistory(None, {'python_stacks': 0})
        snapshot = {
            'segments': [{'device': 0, 'address': 512, 'total_size': 64,
                          'blocks': [{'state': 'active_allocated', 'size': 16}]}],
            'device_traces': [[{'action': 'free_completed', 'addr': 512, 'size': 500, 'time_us': 7}]]}
        hooks.load('lines').send('domain', hooks.agent.HISTORY_MARK,
                                 [*history._held(snapshot), *history._changes(snapshot)])
        actions = constants()
        segment, held, freed = self.rows('HISTORY_MARK', 'HISTORY_ROW', hooks.marks)
        self.assertEqual(segment, {'device': 1, 'time_us': 0, 'action': actions['SEGMENT_ALLOCATED'], 'address': 512,
                                   'bytes': 64, 'stack': ''})
        self.assertEqual(held, {**segment, 'action': actions['BLOCK_HELD'], 'bytes': 16})
        self.assertEqual(freed, {**held, 'action': actions['BLOCK_FREED'], 'time_us': 7, 'bytes': 512})

    def test_a_failed_allocation_of_a_gpu_is_told_in_the_order_of_the_fields(self):
        hooks = Hooks()
        hooks.load('memory').OutOfMemory(None, 'domain')._on_failure(1, 30, 20, 10)
        self.assertEqual(self.rows('OUT_OF_MEMORY_MARK', 'OUT_OF_MEMORY_ROW', hooks.marks), [
            {'device': 2, 'asked': 30, 'held': 20, 'free': 10}])

    def test_observed_operators_are_told_in_the_order_of_the_fields(self):
        hooks = Hooks()
        trace = {'nodes': [{
            'name': 'aten::mm', 'inputs': {'types': ['Tensor(float)'], 'shapes': [[2, 3]], 'values': [0]},
            'attrs': [{'name': 'rf_id', 'value': 5}, {'name': 'fw_tid', 'value': 6}, {'name': 'scope', 'value': 1}]}]}
        hooks.load('lines').send('domain', hooks.agent.OPERATORS_MARK, hooks.load('operators').compact(trace))
        self.assertEqual(self.rows('OPERATORS_MARK', 'OPERATORS_ROW', hooks.marks), [
            {'id': 5, 'forward_thread': 6, 'scope': 1, 'shapes': '[[2, 3]]', 'types': '["float"]', 'values': ''}])

    def test_a_flop_check_is_told_in_the_order_of_the_fields(self):
        hooks = Hooks()
        check = hooks.load('flop_check').FlopCheck(None, 'domain')
        check._counter, check._is_on_top = types.SimpleNamespace(__exit__=lambda *_: None), lambda: True
        check._counts = {('aten::mm', '[[2, 3]]'): (4, 5)}
        check.end()
        self.assertEqual(self.rows('FLOP_CHECK_MARK', 'FLOP_CHECK_ROW', hooks.marks), [
            {'operator': 'aten::mm', 'shapes': '[[2, 3]]', 'calls': 4, 'flops': 5}])

    def test_settings_are_told_once_in_the_order_of_the_fields(self):
        hooks = Hooks()
        torch = types.SimpleNamespace(get_num_threads=lambda: 32, is_anomaly_enabled=lambda: True)
        settings = hooks.load('settings').Settings(torch, 'domain')
        settings.tell()
        settings.tell()
        self.assertEqual(self.rows('SETTINGS_MARK', 'SETTINGS_ROW', hooks.marks), [
            {'threads': 32, 'cpus': len(os.sched_getaffinity(0)), 'anomaly': 1}])

    def test_recompilations_are_told_by_place_and_reason(self):
        hooks = Hooks()
        of = types.SimpleNamespace(co_filename='a.py', co_firstlineno=3, co_name='forward', recompile_reason="level == 1")
        first = types.SimpleNamespace(recompile_reason=None)
        sys.modules['torch._dynamo.utils'] = types.SimpleNamespace(get_compilation_metrics=lambda: [first, of, of])
        self.addCleanup(sys.modules.pop, 'torch._dynamo.utils')
        process = types.SimpleNamespace(state=True, domains=collections.defaultdict(lambda: 'domain'))
        hooks.load('compilations').Compilations(process).tell()
        self.assertEqual(self.rows('RECOMPILATIONS_MARK', 'RECOMPILATIONS_ROW', hooks.marks), [
            {'place': 'a.py(3): forward', 'reason': 'level == 1', 'count': 2}])

    def told_end(self, failure):
        hooks = Hooks()
        try:
            raise failure
        except BaseException as raised:
            sys.last_value, sys.last_traceback = raised, raised.__traceback__
        self.addCleanup(lambda: [delattr(sys, name) for name in ('last_value', 'last_traceback') if hasattr(sys, name)])
        process = types.SimpleNamespace(state=True, domains=collections.defaultdict(lambda: 'domain'))
        hooks.load('ending').tell(process)
        return hooks.marks

    def test_the_exception_that_ended_a_program_has_the_keys_of_the_header(self):
        [(_, mark, [row])] = self.told_end(ValueError('no', 3))
        self.assertEqual((mark, sorted(row)), (constants()['ENDING_MARK'], sorted(constants()['ENDING_ROW'].split())))
        self.assertEqual((row['type'], row['message']), ('ValueError', "('no', 3)"))
        self.assertRegex(row['frames'][0], r'test_framework_marks\.py\(\d+\): told_end$')

    def test_no_code_of_the_program_runs_for_an_exceptions_text(self):
        class Own(Exception):
            def __str__(self):
                raise AssertionError('ran')

        class Part:
            __str__ = __repr__ = Own.__str__
        self.assertEqual(self.told_end(Own('no'))[0][2][0]['message'], '')
        self.assertEqual(self.told_end(ValueError(Part()))[0][2][0]['message'], '')
        self.assertEqual(self.told_end(SystemExit(3)), [])

    def contexts_of(self, made, *places):
        """Of groups 0, 1, ...: this rank's place in each, in the order in which they were made."""
        hooks = Hooks()
        hooks.agent.gloo_contexts = lambda: ''.join(f'{number} {rank} {size}\n' for number, rank, size in made)
        groups = [types.SimpleNamespace(rank=lambda place=place: place[0], size=lambda place=place: place[1])
                  for place in places]
        found = hooks.load('distributed').contexts_of(groups)
        return [found.get(id(group), []) for group in groups]

    def test_contexts_of_gloo_belong_to_groups_in_the_order_of_both(self):
        self.assertEqual(self.contexts_of([(70, 1, 4), (71, 0, 2), (72, 1, 4)], (1, 4), (1, 4), (0, 2)),
                         [[70], [72], [71]])

    def test_a_context_too_many_leaves_the_groups_of_its_place_without_one(self):
        """A group that went before anybody looked."""
        self.assertEqual(self.contexts_of([(70, 1, 4), (71, 0, 2), (72, 1, 4)], (1, 4), (0, 2)), [[], [71]])

    def test_a_group_made_before_anybody_watched_has_no_context(self):
        self.assertEqual(self.contexts_of([(70, 1, 4)], (1, 4), (1, 4)), [[], []])

    def test_the_keys_of_a_models_tree_are_those_of_the_header(self):
        """rows_of() alone writes them, and needs PyTorch: by its source."""
        tree = ast.parse((TORCH / 'python/model_tree.py').read_text())
        function = next(node for node in tree.body if getattr(node, 'name', '') == 'rows_of')
        keys = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Dict):
                keys.update(key.value for key in node.keys if isinstance(key, ast.Constant))
            if isinstance(node, ast.comprehension) and isinstance(node.iter, ast.Tuple):
                keys.update(part.value for part in node.iter.elts)
            if isinstance(node, ast.Subscript) and getattr(node.value, 'id', '') == 'row':
                keys.update(part.value for part in ast.walk(node.slice) if isinstance(part, ast.Constant))
        self.assertEqual(sorted(keys), sorted(constants()['TREE_ROW'].split()))


if __name__ == '__main__':
    unittest.main()
