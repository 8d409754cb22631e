"""Forward passes that are told what they are for: ``net(x, train=False)``."""

from collections.abc import Iterator

import libcst as cst

from mllint.semantic.events.steps import Event
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.training.called_modules import module_called, ways_made
from mllint.semantic.values import Module
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree

_MODE_WORDS = ("training", "train", "is_training", "is_train")
"""What a forward pass calls the mode that it is given."""


def is_told_its_mode(forward: Event) -> bool:
    """Whether a forward pass is told what it is for, and the module may make something of it.

    Where its class is in sight, and does nothing with it but to choose what it gives back, the layers have their modes.
    """
    args = forward.node.args if isinstance(forward.node, cst.Call) else ()
    words = [arg.keyword.value for arg in args if arg.keyword is not None and arg.keyword.value in _MODE_WORDS]
    return bool(words) and not all(_only_chooses_results(forward, word) for word in words)


def _only_chooses_results(forward: Event, word: str) -> bool:
    methods = list(_methods_run(forward))
    return bool(methods) and all(item is not None and _leaves_layers_alone(item, word) for item in methods)


def _methods_run(forward: Event) -> Iterator[FunctionInfo | None]:
    """What runs in each of the modules of which a forward pass calls one; ``None`` among them for what is not known."""
    value = module_called(forward)
    known = isinstance(value, Module) and value.definition is not None
    for way in (value,) if known else ways_made(forward):
        definition = way.definition if isinstance(way, Module) else None
        yield None if definition is None else definition.called


def _leaves_layers_alone(method: FunctionInfo, word: str) -> bool:
    """Whether a method takes a flag only to ask for it, and calls nothing of its object for the answer."""
    if not any(item.name.value == word for item in method.parameters):
        return False
    tree = method.model.tree
    used = [item for item in subtree(method.node.body) if type(item) is cst.Name and item.value == word]
    tests = [_asked_in(tree.parents, item) for item in used]
    return all(test is not None and not _calls_own(method, _hanging_on(method, test)) for test in tests)


def _asked_in(parents: dict[int, cst.CSTNode], name: cst.CSTNode) -> cst.If | cst.IfExp | None:
    """What a flag decides: ``if train:``, ``if not train:``, ``a if train else b``."""
    child, parent = name, parents.get(id(name))
    while isinstance(parent, (cst.UnaryOperation, cst.BooleanOperation, cst.Comparison)):
        child, parent = parent, parents.get(id(parent))
    return parent if isinstance(parent, (cst.If, cst.IfExp)) and parent.test is child else None


def _hanging_on(method: FunctionInfo, test: cst.If | cst.IfExp) -> Iterator[cst.CSTNode]:
    """What is run for one answer alone: the arms, and where one leaves the method, what comes behind."""
    yield test.body
    if test.orelse is not None:
        yield test.orelse
    if isinstance(test, cst.If) and any(isinstance(item, cst.Return) for item in subtree(test)):
        child: cst.CSTNode = test
        for parent in method.model.tree.ancestors(test):
            if isinstance(parent, cst.IndentedBlock):
                place = next(index for index, item in enumerate(parent.body) if item is child)
                yield from parent.body[place + 1 :]
            if parent is method.node:
                return
            child = parent


def _calls_own(method: FunctionInfo, parts: Iterator[cst.CSTNode]) -> bool:
    calls = (item for part in parts for item in subtree(part) if type(item) is cst.Call)
    return any((dotted_path(call.func) or "self.").startswith(f"{method.self_name}.") for call in calls)
