"""Puts our hooks into a PyTorch program: they see its steps, modules, phases, operators and memory.

Every hook is a ladder of cheap exits; what can fail is in `guarded` functions. The program's modules
are never written to: what we know about one is kept by its id, and goes when it goes.

`agent`: agent.pyi; `load`: loader.py.
"""
import atexit

guarded = load('guard').guarded


def install(torch):
    """At the end of `import torch`. Nothing records before Process.records() has settled it."""
    process, optimizers = load('process').Process(), load('steps').Optimizers()
    backward, data = load('phases').Backward(torch, process), load('phases').Data(process)
    modules = load('modules').Modules(torch, process, backward.watch)
    lightning = load('lightning').Lightning(process)
    modules.with_call += lightning, backward, data
    trees = load('trees').Trees(torch, process, modules, optimizers)
    compilations = load('compilations').Compilations(process)
    modules.on_compile.append(guarded(compilations.look))
    windows = load('windows').Windows(torch, process, modules, optimizers)
    labels = load('labels').Labels(torch)
    modules.on_compile.append(guarded(labels.switch_to_callback))
    changes = load('changes').Changes(torch, process, compilations, labels)
    # The tree is walked before a window opens, which would have the walk in it.
    on_step = trees.on_step, windows.on_step, changes.on_step
    forwards = load('forwards').Forwards(torch, trees, on_step)
    steps = load('steps').Steps(process, modules, optimizers, on_step, forwards.end,
                                before_optimizer=windows.before_optimizer,
                                plain_steps=lambda number: (windows.quiet_until(number), *changes.watched()))
    process.on_start += (steps.begin, backward.begin, data.begin, changes.begin, windows.begin)
    atexit.register(guarded(modules.wake))  # nobody is woken in an interpreter that is going
    guarded(labels.install)()
    agent.watch_gloo_groups()  # a group is made before anything is known to record
    guarded(windows.watch_profilers)()
    guarded(modules.install)()
    guarded(lightning.install)()
    guarded(steps.install)(torch)
    guarded(forwards.install)()
    atexit.register(guarded(windows.close))
    atexit.register(guarded(compilations.tell))
    atexit.register(guarded(load('ending').tell), process)
