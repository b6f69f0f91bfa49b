"""A made-up agent for the torch source's Python: it has what agent.pyi declares and nothing else, takes the arguments
that are declared there, and keeps what it was told. Files are executed as loader.py executes them."""
import ast
import pathlib
import re
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[5]
SOURCES = ROOT / 'agent/sources/torch/python'


def _declared():
    """{function: (least, most) arguments}, [constants] of agent.pyi"""
    functions, constants = {}, []
    for node in ast.parse((SOURCES / 'agent.pyi').read_text()).body:
        if isinstance(node, ast.FunctionDef):
            count = len(node.args.args)
            most = sys.maxsize if node.args.vararg else count
            functions[node.name] = (count - len(node.args.defaults), most)
        elif isinstance(node, ast.AnnAssign):
            constants.append(node.target.id)
    return functions, constants


def _constant(name):
    """As proto/framework_marks.h has it: STEP_DOMAIN is kStepDomain there."""
    cpp = 'k' + ''.join(part.capitalize() for part in name.split('_'))
    found = re.search(rf'\b{cpp}\b\s*(?:=|{{)\s*"([^"]*)"', (ROOT / 'proto/framework_marks.h').read_text())
    return found[1] if found else name


class Agent:
    """`told`: (function, arguments) in order. answers[function]: a value, or a function that makes one; else 0."""

    FUNCTIONS, CONSTANTS = _declared()

    def __init__(self, **answers):
        self.told, self.texts = [], {}
        self.answers = {'domain': self._number, 'name': self._number, 'start': 1, 'capturing': 1, **answers}
        for name in self.CONSTANTS:
            setattr(self, name, _constant(name))

    def __getattr__(self, name):
        if name not in self.FUNCTIONS:
            raise AttributeError(f'agent.pyi has no {name}')
        least, most = self.FUNCTIONS[name]

        def call(*arguments):
            if not least <= len(arguments) <= most:
                raise TypeError(f'{name} takes {least} to {most} arguments, not {len(arguments)}')
            self.told.append((name, *arguments))
            answer = self.answers.get(name, 0)
            return answer(*arguments) if callable(answer) else answer

        return call

    def _number(self, text):
        return self.texts.setdefault(text, len(self.texts) + 1)

    def calls(self, *names):
        """What was told of these functions."""
        return [call for call in self.told if call[0] in names]


class Sources:
    """The torch source's files, with this agent."""

    def __init__(self, agent):
        self.agent, self._loaded = agent, {}

    def load(self, name):
        if name not in self._loaded:
            module = types.ModuleType(name)
            module.agent, module.load = self.agent, self.load
            path = SOURCES / f'{name}.py'
            exec(compile(path.read_text(), str(path), 'exec'), module.__dict__)
            self._loaded[name] = module
        return self._loaded[name]
