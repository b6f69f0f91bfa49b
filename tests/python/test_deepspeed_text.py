"""The text of DeepSpeed's Flops Profiler, against what DeepSpeed's own source prints."""
import ast
import re
import unittest

import harness

PROGRAM = harness.PROGRAMS / 'mixed_precision.py'
SOURCE = next(harness.CACHE.glob('deepspeed-venv/lib/python*/site-packages/deepspeed/profiling/flops_profiler/profiler.py'), None)
WIDTH = 24  # mixed_precision.py's
BLOCK = 2 * 4 * WIDTH * WIDTH + 4 * WIDTH + WIDTH
HALF, SINGLE = 2 * BLOCK, WIDTH * 3 + 3  # parameters of bfloat16 and of float32
MODULES = 11
NUMBER = r'[\d.]+(?:e[+-]\d+)?'
# Only of models with experts.
EXPERTS = ('expert tensor parallelism enabled: ', 'params of model: ', '   non-expert params of model: ',
           '   expert params of model: ')


class Printed(ast.NodeVisitor):
    """What DeepSpeed's source prints: the summary's labels, the fixed lines and the form of a module's, each
    as a regular expression."""

    def __init__(self, source):
        self.labels, self.fixed, self.items, self.line_format = [], [], [], None
        function = next(node for node in ast.walk(ast.parse(source))
                        if isinstance(node, ast.FunctionDef) and node.name == 'print_model_profile')
        self.visit(function)

    @staticmethod
    def pattern(node):
        """Of a text or f-string."""
        if isinstance(node, ast.Constant):
            return re.escape(node.value)
        return ''.join(re.escape(part.value) if isinstance(part, ast.Constant) else NUMBER for part in node.values)

    def visit_Assign(self, node):
        if getattr(node.targets[0], 'id', '') == 'line_fmt':
            self.line_format = node.value.value
        self.generic_visit(node)

    def visit_Call(self, node):
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == 'format':
            if getattr(function.value, 'id', '') == 'line_fmt':
                self.labels.append(self.pattern(node.args[0]))
            elif isinstance(function.value, ast.Constant):  # "{} = {:g}% Params"
                text = re.escape(function.value.value)
                self.items.append(text.replace(r'\{:g\}', NUMBER).replace(r'\{\}', r'[^,=]+'))
        elif getattr(function, 'id', '') == 'print' and isinstance(node.args[0], (ast.Constant, ast.JoinedStr)):
            self.fixed.append(self.pattern(node.args[0]))
        self.generic_visit(node)


@harness.needs_torch
class DeepSpeedTextTest(harness.TracedTest):

    @classmethod
    def setUpClass(cls):
        cls.trace = harness.trace_once(cls, PROGRAM)

    def text(self, form='deepspeed', *options):
        done = self.run_bare([harness.RANKTAP, 'report', self.trace, 'modules', '--format', form, *options])
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def modules(self, text):
        """What stands between the parentheses of each module."""
        whole = text[text.index('\nMixed('):]
        lines = [line for line in whole.splitlines() if '% Params' in line]
        self.assertEqual(len(lines), MODULES)
        return [re.sub(r'^ *(\(\w+\): )?(\w+\()?', '', line) for line in lines]

    @unittest.skipUnless(SOURCE, f'no DeepSpeed under {harness.CACHE}; scripts/setup --torch --tools')
    def test_it_parses_with_expressions_made_from_deepspeeds_source(self):
        theirs = Printed(SOURCE.read_text())
        self.assertGreater(len(theirs.labels), 20)
        text = self.text()
        at = 0
        for label in theirs.labels:
            if label in map(re.escape, EXPERTS):
                continue
            found = re.compile(rf'^({label}) *(\S.*)$', re.MULTILINE).search(text, at)
            self.assertIsNotNone(found, f'{label} is missing, or not in its place')
            self.assertEqual(found[0].rstrip(), theirs.line_format.format(found[1], found[2]).rstrip())
            at = found.end()
        for fixed in theirs.fixed:
            # The last of the notes says how the latency was measured: not as they do.
            self.assertRegex(text, fixed.split('3\\.')[0] if 'Note' in fixed else fixed)
        item = re.compile(', '.join(theirs.items) + rf', {NUMBER} [TGMKmu]?FLOPS(, .*)?\)?$')
        self.assertEqual(len(theirs.items), 3)
        for module in self.modules(text):
            self.assertRegex(module, item)

    def test_with_a_name_it_goes_into_a_file_and_into_none_where_it_fails(self):
        command = [harness.RANKTAP, 'report', self.trace, 'modules', '--format', 'deepspeed']
        path = self.scratch / 'profile.txt'
        self.scratch.mkdir(exist_ok=True)
        done = self.run_bare([*command, '-o', path])
        self.assertEqual((done.returncode, done.stdout), (0, ''), done.stderr)
        self.assertEqual(path.read_text(), self.run_bare(command).stdout)
        for failing in ([*command, '--profile-step', '99', '-o', self.scratch / 'none'],
                        [*command, '-o', self.scratch / 'no/such/folder']):
            self.assertNotEqual(self.run_bare(failing).returncode, 0)
        self.assertEqual([each.name for each in self.scratch.glob('*') if each.is_file()], ['profile.txt'])

    def test_the_older_form_has_percentages_of_their_own(self):
        """As the seed text of DeepSpeed's tutorial, before 0.10: `109.48 k`, `0.0 FLOPS`, `params per gpu`."""
        self.assertIn('params per gpu: ', self.text('deepspeed-old'))
        item = re.compile(rf'{NUMBER}( [kM])?, {NUMBER}% Params, {NUMBER} [GMK]?MACs, {NUMBER}% MACs, '
                          rf'{NUMBER} [mu]?s, {NUMBER}% latency, (?:{NUMBER} [TGMKmu]?|0.0 )FLOPS(, .*)?\)?$')
        for module in self.modules(self.text('deepspeed-old')):
            self.assertRegex(module, item)

    def test_every_module_has_its_memory_by_dtype_in_the_form_of_deepspeeds_pull_request(self):
        # 475.1 M = 475.1 M bfp16 = 100% Params, 303.15 GMACs = 100% MACs, 950.2 MB = 950.2 MB bfp16 = 100% Memory,
        # 72.83 ms = 100% latency, 8.33 TFLOPS
        elements, size = rf'{NUMBER}(?: [KMBT])?', rf'{NUMBER} [KMGT]?B'
        item = re.compile(rf'({elements}) = (?:({elements} \w+(?: \+ {elements} \w+)*) = )?{NUMBER}% Params, '
                          rf'{NUMBER} [GMKT]?MACs = {NUMBER}% MACs, '
                          rf'({size}) = (?:({size} \w+(?: \+ {size} \w+)*) = )?{NUMBER}% Memory, '
                          rf'{NUMBER} [mμ]?s = {NUMBER}% latency, {NUMBER} [TGMKmu]?FLOPS(.*)$')
        modules = [item.match(module) for module in self.modules(self.text('deepspeed-memory'))]
        self.assertTrue(all(modules))
        root = modules[0]
        self.assertEqual(root[2], f'{round(HALF / 1000, 2):g} K bfp16 + {SINGLE} fp32')
        self.assertEqual(root[4], f'{round(2 * HALF / 1000, 2):g} KB bfp16 + {4 * SINGLE} B fp32')
        # Gradients are of their parameters' types; the states are float32: a copy and two moments, or two moments.
        gradients = f'{round(2 * HALF / 1000, 2):g} KB bfp16 + {4 * SINGLE} B fp32 = 100% Gradients'
        states = f'{round((12 * HALF + 8 * SINGLE) / 1000, 2):g} KB fp32 = 100% States'
        self.assertIn(gradients, root[5])
        self.assertIn(states, root[5])

    def test_bytes_are_exact_16_a_parameter_and_children_make_their_parent(self):
        rows = {row['module']: row for row in self.report(self.trace, 'parameters')}
        for name in ('Mixed.blocks', 'Mixed.blocks.0', 'Mixed.blocks.1.up'):
            row = rows[name]
            held = row['parameter_bytes'] + row['gradient_bytes'] + row['state_bytes']
            self.assertEqual(held, 16 * row['parameters'], name)
        self.assertEqual(rows['Mixed.blocks']['parameters'], HALF)
        self.assertEqual(rows['Mixed.head']['state_bytes'], 8 * SINGLE)
        for parent in ('Mixed', 'Mixed.blocks', 'Mixed.blocks.0'):
            children = [row for name, row in rows.items() if name.rpartition('.')[0] == parent]
            self.assertGreater(len(children), 1)
            for column in ('parameters', 'parameter_bytes', 'gradient_bytes', 'state_bytes', 'buffer_bytes'):
                self.assertEqual(sum(row[column] for row in children), rows[parent][column], (parent, column))

    def test_options_are_heeded(self):
        def aggregated(text):
            part = text[text.index('- Aggregated'):]
            return re.findall(r'^depth (\d+):$', part, re.MULTILINE), re.findall(r'params +- (\{.*\})', part)

        depths, params = aggregated(self.text())
        self.assertEqual(depths, ['0', '1', '2'])  # all but the deepest
        self.assertEqual([len(ast.literal_eval(classes)) for classes in params], [1, 1, 1])
        depths, params = aggregated(self.text('deepspeed', '--module-depth', '2', '--top-modules', '3'))
        self.assertEqual(depths, ['0', '1'])
        self.assertEqual([len(ast.literal_eval(classes)) for classes in params], [1, 2])
        self.assertNotIn('Detailed Profile', self.text('deepspeed', '--no-detailed'))
        text = self.text('deepspeed', '--profile-step', '3', '--recompute-fwd-factor', '1.0')
        self.assertIn('Profile Summary at step 3:\n', text)
        self.assertIn('bwd FLOPS per GPU = 3 * fwd flops per GPU / bwd latency: ', text)
        self.assertIn('fwd+bwd FLOPS per GPU = 4 * fwd flops per GPU / (fwd+bwd latency): ', text)
        done = self.run_bare([harness.RANKTAP, 'report', self.trace, 'modules', '--format', 'deepspeed', '--profile-step', '99'])
        self.assertEqual(done.returncode, 1)
        self.assertIn('no step 99', done.stderr)

    def test_depth_0_is_the_model_and_not_what_it_is_wrapped_into(self):
        done, run = self.run_traced([harness.TORCH_PYTHON, harness.PROGRAMS / 'wrapped.py'], ['--level', 'full'])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_passes(run)
        text = {form: self.run_bare([harness.RANKTAP, 'report', run, 'modules', '--format', form]).stdout
                for form in ('deepspeed', 'deepspeed-old', 'deepspeed-memory')}
        for form, printed in text.items():
            with self.subTest(form):
                self.assertIn('\nModel(\n', printed)
                self.assertNotIn('DataParallel', printed)
                self.assertRegex(printed, r"depth 0:\n +params +- \{'Model': '144'\}")
        # PyTorch's ModuleList prints its children alone since 2.1; the older forms are of before.
        self.assertRegex(text['deepspeed'], r'\(layers\): ModuleList\(\n +\(0\): Linear')
        self.assertRegex(text['deepspeed-old'], r'\(layers\): ModuleList\(\n +144, 100.00% Params, ')
        self.assertRegex(text['deepspeed-memory'],
                         r'\(layers\): ModuleList\(\n +144 = 144 fp32 = 100% Params, .*576 B = 576 B fp32 = 100% Memory')
        self.assertRegex(text['deepspeed-memory'], r'ReLU\(0 = 0% Params, .* = 0% MACs, 0 B = 0% Memory, ')

    def check_passes(self, run):
        """What runs after the optimizer has begun is of no pass; a loss is of the forward."""
        passes = {}
        for row in self.report(run, 'ops', '--group-by-module'):
            if not row['module']:
                passes.setdefault(row['name'], set()).add(row['pass'])
        self.assertIn('forward', passes['aten::sum'])
        optimizer = [seen for name, seen in passes.items() if '_foreach_add_' in name or name == 'aten::add_']
        self.assertTrue(optimizer)
        self.assertEqual(set.union(*optimizer), {''})
        for name in passes:
            if name.startswith('Optimizer.'):
                self.assertEqual(passes[name], {''}, name)
        self.assertEqual(passes['aten::ones_like'], {'backward'}, "autograd's seed")


@harness.needs_deepspeed
class FiveModelsTest(harness.TracedTest):
    """profile-model's text beside get_model_profile's, line by line: what is not of a clock is equal."""
    MEASURED = ((r'[\d.e+-]+ [mu]?s = [\d.e+-]+% latency, [\d.e+-]+ [KMGT]?FLOPS', 'latency'), (r"'[\d.]+ [mu]?s'", 'time'))
    # Times; the sum over ranks, which DeepSpeed leaves 0 without its engine; who measured; what order times give.
    OTHER = ('fwd latency', 'fwd FLOPS per GPU', 'params of model =', '3. The fwd latency', '    fwd latency - ')

    def lines(self, text):
        for pattern, word in self.MEASURED:
            text = re.sub(pattern, word, text)
        return [line.rstrip() for line in text.splitlines() if not line.startswith(self.OTHER)]

    def test_each_line_of_deepspeeds_is_there(self):
        program, theirs = harness.PROGRAMS / 'five_models.py', self.scratch / 'theirs.txt'
        done = self.run_bare([harness.DEEPSPEED_PYTHON, program, theirs])
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_bare([harness.RANKTAP, 'profile-model', f'{program}:make', '--top-modules', '3',
                              '--python', harness.DEEPSPEED_PYTHON])
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = iter(self.lines(done.stdout))
        wanted = self.lines(theirs.read_text())
        self.assertGreater(len(wanted), 90)
        for line in wanted:
            self.assertIn(line, ours)  # behind the line before


if __name__ == '__main__':
    unittest.main()
