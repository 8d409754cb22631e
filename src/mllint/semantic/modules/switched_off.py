"""Which parts of a module its constructor puts to evaluation mode, where they stay until the whole is put to training.

``for part in self.modules(): if isinstance(part, nn.BatchNorm2d): part.eval()``, ``self.backbone.eval()``.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge.words import GIVING_PARAMETERS, MODES
from mllint.semantic.events.things import Frame
from mllint.semantic.modules.made_with import is_left_out
from mllint.semantic.modules.unused import is_out_by_default
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.receivers import making_methods
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.uses import uses
from mllint.semantic.values import functions_of
from mllint.syntax.shape import called_on, constant, last_word, string_literal, targets_of
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_FLAGS = frozenset({"requires_grad", "requires_grad_", "stop_gradient", "trainable"})
_ALL_PARTS = frozenset({"modules", "named_modules", "sublayers", "named_sublayers"})


class Off(NamedTuple):
    """What is in evaluation mode: layers whose names have one of these words in them, and attributes of a class."""

    kinds: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()

    def is_kind(self, name: str) -> bool:
        """Whether layers of a qualified name are."""
        last = name.rpartition(".")[2]
        return any(kind in last for kind in self.kinds)


def parts_off(definition: ClassInfo, is_skipped: Callable[[cst.CSTNode, FunctionInfo], bool] = lambda *_: False) -> Off:
    """What the constructor of a class puts to evaluation mode of each of its instances.

    ``is_skipped`` says of a place in a method whether the constructor does not come by it.
    """
    found = [off for node, method, off in _switches(definition.model, definition) if not is_skipped(node, method)]
    return Off(
        frozenset(kind for off in found for kind in off.kinds),
        frozenset(name for off in found for name in off.attributes),
    )


@worked_out_once
def _switches(_: "Model", definition: ClassInfo) -> tuple[tuple[cst.CSTNode, FunctionInfo, Off], ...]:
    """The places in the methods that make the parts of a class that put something to evaluation mode."""
    found: list[tuple[cst.CSTNode, FunctionInfo, Off]] = []
    for method in making_methods(definition):
        for node in subtree(method.node.body):
            if isinstance(node, cst.For) and _runs_over_parts(node.iter, method):
                off = Off(frozenset(_kinds_switched(method.model, node)))
            elif isinstance(node, cst.Call):
                off = Off(frozenset(_kinds_by_function(node, method)), frozenset(_attribute_switched(node, method)))
            else:
                continue
            if off.kinds or off.attributes:
                found.append((node, method, off))
    return tuple(found)


def skips(definition: ClassInfo, run: Frame | None) -> Callable[[cst.CSTNode, FunctionInfo], bool]:
    """Whether a run of the constructor of a class does not come by a place in one of the methods that make its parts.

    Where it is not known what a constructor is given, it is given the defaults.
    """

    def is_skipped(node: cst.CSTNode, method: FunctionInfo, steps: int = _MAX_CALLS) -> bool:
        if is_left_out(node, run) or (run is None and is_out_by_default(method.model, node)):
            return True
        calls = [] if method.name == "__init__" else _calls_of(method, definition)
        return bool(calls) and steps > 0 and all(is_skipped(call, maker, steps - 1) for call, maker in calls)

    return is_skipped


_MAX_CALLS = 4
"""Through how many methods of the class a place is followed back to the constructor."""


def _calls_of(method: FunctionInfo, definition: ClassInfo) -> list[tuple[cst.Call, FunctionInfo]]:
    """Where the methods that make the parts of a class call one of its methods."""
    return [
        (call, maker)
        for maker in making_methods(definition)
        for call in maker.model.calls_by_word.get(method.name, ())
        if maker.model.enclosing_function(call) is maker.node
    ]


def _runs_over_parts(iterable: cst.BaseExpression, method: FunctionInfo) -> bool:
    receiver = called_on(iterable)
    is_own = receiver is not None and getattr(receiver, "value", None) == method.self_name
    return is_own and isinstance(iterable, cst.Call) and last_word(iterable.func) in _ALL_PARTS


def _attribute_switched(call: cst.Call, method: FunctionInfo) -> Iterator[str]:
    """The attribute of ``self.backbone.eval()``, and of ``self.backbone = net``, what ``net`` is switched before."""
    part = called_on(call) if switches_off(call) else None
    if part is not None:
        yield from _attributes_of(part, method)
        yield from _attributes_given(call, method)


def _attributes_of(part: cst.BaseExpression, method: FunctionInfo) -> Iterator[str]:
    """The attribute that an expression in a method is, or that a name in it is bound to."""
    if isinstance(part, cst.Attribute) and getattr(part.value, "value", None) == method.self_name:
        yield part.attr.value
    elif isinstance(part, cst.Name):
        for binding in method.model.reaching(part):
            for use in uses(method.model, binding) if binding.scope is method.scope else ():
                yield from _attributes_given(use, method)


def _attributes_given(value: cst.BaseExpression, method: FunctionInfo) -> Iterator[str]:
    """The attribute that a method sets to just this."""
    statement = method.model.tree.parent(value)
    for target in targets_of(statement) if isinstance(statement, cst.Assign) else ():
        if isinstance(target, cst.Attribute) and getattr(target.value, "value", None) == method.self_name:
            yield target.attr.value


def is_fixed(definition: ClassInfo, name: str) -> bool:
    """Whether a class freezes the part in an attribute, or always runs it without gradients, and does not ask its
    constructor for an output of it.
    """
    making = making_methods(definition)
    if any(_is_run(call, name, method) for method in making for call in method.model.tree.calls_in(method.node.body)):
        return False
    if any(_freezes(node, name, method) for method in making for node in subtree(method.node.body)):
        return True
    made = [id(method.node) for method in making]
    runs = [read for read in definition.members.reads(name) if id(read.method.node) not in made]
    return bool(runs) and all(read.method.model.gradients.off(read.node) is True for read in runs)


def _is_run(call: cst.Call, name: str, method: FunctionInfo) -> bool:
    """Whether a call in a constructor runs the part in an attribute: to tell the size of what it gives."""
    return name in _attributes_of(call.func, method)


def _freezes(node: cst.CSTNode, name: str, method: FunctionInfo) -> bool:
    """Whether a node asks no gradients of the part: ``part.requires_grad_(False)``, or a loop over its parameters."""
    if isinstance(node, cst.Call) and last_word(node.func) == "requires_grad_":
        part = called_on(node)
        is_off = len(node.args) == 1 and constant(node.args[0].value) is False
        return is_off and part is not None and name in _attributes_of(part, method)
    if not isinstance(node, cst.For) or not isinstance(node.iter, cst.Call):
        return False
    part = called_on(node.iter) if last_word(node.iter.func) in GIVING_PARAMETERS else None
    if part is None or name not in _attributes_of(part, method):
        return False
    return any(isinstance(item, cst.Name) and item.value in _FLAGS for item in subtree(node.body))


def _kinds_by_function(call: cst.Call, method: FunctionInfo) -> Iterator[str]:
    """What ``self.apply(freeze)`` switches, by a function of the project."""
    receiver = called_on(call)
    if receiver is None or last_word(call.func) != "apply" or getattr(receiver, "value", None) != method.self_name:
        return
    for arg in call.args:
        for given in functions_of(method.model.value(arg.value)):
            yield from _kinds_switched(given.definition.model, given.definition.node)


def _kinds_switched(model: "Model", holder: cst.For | cst.FunctionDef) -> Iterator[str]:
    """The words in the names of the layers that a loop over parts switches, or a function that is given each."""
    for node in subtree(holder.body):
        if isinstance(node, cst.If) and any(_may_switch_off(model, item) for item in subtree(node.body)):
            for item in subtree(node.test):
                yield from _words_of_kinds(item)
        elif isinstance(node, cst.Call) and isinstance(holder, cst.For):
            for called in functions_of(model.value(node.func)):
                yield from _kinds_switched(called.definition.model, called.definition.node)


def _may_switch_off(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a call switches something to evaluation mode, or one of a function of the project does in its body."""
    if not isinstance(node, cst.Call):
        return False
    inside = (item for called in functions_of(model.value(node.func)) for item in subtree(called.definition.node.body))
    return switches_off(node) or any(map(switches_off, inside))


def _words_of_kinds(node: cst.CSTNode) -> Iterator[str]:
    """The classes of ``isinstance(part, (nn.BatchNorm1d, nn.Dropout))``, or the text that a name of one has."""
    if isinstance(node, cst.Call) and last_word(node.func) == "isinstance" and len(node.args) == 2:
        asked = node.args[1].value
        classes = [item.value for item in asked.elements] if isinstance(asked, cst.Tuple) else [asked]
        yield from (word.strip("_") for item in classes if (word := last_word(item)) is not None)
    text = string_literal(node) if isinstance(node, cst.SimpleString) else None
    if text:
        yield text


def switches_off(node: cst.CSTNode) -> bool:
    """Whether a call is ``part.eval()`` or ``part.train(False)``."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value not in MODES:
        return False
    given = [constant(arg.value) for arg in node.args]
    return given == ([] if node.func.attr.value == "eval" else [False])
