"""When a model's tree (model_tree.py) is told.

`agent`: agent.pyi; `load`: door.py.
"""

class Trees:
    """Tells once what each root module is made of, after the first step that it ran in, when there are
    gradients and optimizer states."""

    def __init__(self, process, modules, optimizers):
        self._process, self._modules, self._optimizers = process, modules, optimizers
        self._told = set()  # ids of roots
        self._looked_at = 0  # how many of the roots

    def on_step(self, _):
        roots = self._modules.roots
        if len(roots) == self._looked_at or not agent.capturing():
            return
        self._looked_at = len(roots)
        states = {}
        for optimizer in self._optimizers.living():
            states.update(optimizer.state)
        for reference in roots:
            root = reference()
            if root is None or id(root) in self._told or next(root.parameters(), None) is None:
                continue
            self._told.add(id(root))
            text = self._modules.texts.get(id(root), type(root).__name__)
            load('lines').send(self._process.domains[agent.MODULE_DOMAIN], agent.name(agent.TREE_MARK),
                               load('model_tree').rows_of(root, text, states))
