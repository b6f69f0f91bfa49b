"""When a model's tree (model_tree.py) is told.

`agent`: agent.pyi; `load`: loader.py.
"""

class Trees:
    """Tells what each root module is made of, after the first step that it ran in, when there are gradients
    and optimizer states. Of a root that ran before any optimizer stepped: then, and once more after a step."""

    def __init__(self, torch, process, modules, optimizers):
        self._is_lazy = torch.nn.parameter.is_lazy
        self._process, self._modules, self._optimizers = process, modules, optimizers
        self._told = set()  # ids of roots
        self._told_early = set()
        self._looked_at = 0  # how many of the roots

    def on_first_optimizer(self):
        self._told_early, self._told = self._told, set()
        self._looked_at = 0

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
            if any(map(self._is_lazy, root.parameters())):
                self._looked_at = 0  # it has not run yet
                continue
            self._told.add(id(root))
            text = self._modules.texts.get(id(root), type(root).__name__)
            rows = load('model_tree').rows_of(root, text, states, again=id(root) in self._told_early)
            load('lines').send(self._process.domains[agent.MODULE_DOMAIN], agent.name(agent.TREE_MARK), rows)
