"""agent.pyi against what C++ hands over and what our Python files ask for. Reads sources only."""
import ast
import re
import unittest

import harness

TORCH = harness.ROOT / 'agent/sources/torch'
FILES = sorted((TORCH / 'python').glob('*.py'))
NO_ARGUMENTS, ONE_ARGUMENT, ANY_ARGUMENTS = 'kMethNoArgs', 'kMethO', 'kMethFastcall'


def constants_handed_over():
    return re.findall(r'\{"([A-Z_]+)", ', (TORCH / 'torch_marks.cc').read_text())


def handed_over():
    """{name: how C++ takes its arguments}"""
    return dict(re.findall(r'Define<&\w+>\("(\w+)", (\w+)\)', (TORCH / 'torch_functions.cc').read_text()))


def stub():
    return ast.parse((TORCH / 'python/agent.pyi').read_text())


def described():
    return {node.name: node.args for node in stub().body if isinstance(node, ast.FunctionDef)}


def described_constants():
    return [node.target.id for node in stub().body if isinstance(node, ast.AnnAssign)]


def uses(path):
    """(attribute, line) of each `agent.attribute`."""
    return [(node.attr, node.lineno) for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == 'agent']


class AgentStubTest(unittest.TestCase):

    def test_the_stub_has_the_functions_that_cpp_hands_over_and_no_others(self):
        self.assertGreater(len(handed_over()), 30)
        self.assertEqual(sorted(described()), sorted(handed_over()))

    def test_the_stub_has_the_constants_that_cpp_hands_over_and_no_others(self):
        self.assertGreater(len(constants_handed_over()), 30)
        self.assertEqual(described_constants(), constants_handed_over())

    def test_the_stub_has_as_many_arguments_as_cpp_takes(self):
        for name, convention in handed_over().items():
            arguments = described()[name]
            count = len(arguments.args) + (2 if arguments.vararg else 0)
            with self.subTest(function=name):
                self.assertEqual({0: NO_ARGUMENTS, 1: ONE_ARGUMENT}.get(count, ANY_ARGUMENTS), convention)

    def test_our_files_ask_for_nothing_that_the_stub_lacks(self):
        for path in FILES:
            for name, line in uses(path):
                with self.subTest(file=path.name, line=line):
                    self.assertIn(name, [*described(), *described_constants()])

    def test_our_files_use_all_that_the_stub_has(self):
        self.assertEqual(sorted([*described(), *described_constants()]),
                         sorted({name for path in FILES for name, _ in uses(path)}))

    def test_each_file_says_where_what_it_did_not_import_comes_from(self):
        for path in FILES:
            if path.name == 'loader.py':
                continue
            tree = ast.parse(path.read_text())
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            with self.subTest(file=path.name):
                for name, source in (('agent', '`agent`: agent.pyi'), ('load', '`load`: loader.py')):
                    self.assertEqual(name in names, source in (ast.get_docstring(tree) or ''), source)


if __name__ == '__main__':
    unittest.main()
