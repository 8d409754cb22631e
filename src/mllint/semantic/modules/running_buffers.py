"""Buffers and states of a module that a forward pass brings up to date: ``self.mean.mul_(0.9).add_(0.1 * mean)``.

What is added to one with its graph makes it a part of that graph, and the next call adds its own on top. So it is with
an attribute that is no buffer: the constructor sets it to ``None`` or to a tensor, and the pass makes it of itself.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.expressions.sources import operands
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.graph.data_sources import hangs_on_nothing
from mllint.semantic.graph.dependence import Dependence
from mllint.semantic.graph.given_graphs import is_attached
from mllint.semantic.graph.kept_state import is_for_first
from mllint.semantic.graph.runs_of_class import makes
from mllint.semantic.modules.weights import makes_weights
from mllint.semantic.names.classes import Assignment, Read, Role
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.writes import write
from mllint.semantic.values import Nothing, Number, Tensor
from mllint.syntax.shape import detaches, dotted_path, last_word, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

_BEGINNING = frozenset({"zero_", "fill_", "copy_", "normal_", "uniform_", "set_value"})
_ADDING = frozenset({"add_", "sub_", "lerp_", "addcmul_", "addcdiv_"})


class Kept(msgspec.Struct, frozen=True):
    """What a module keeps with its graph from one call to the next.

    ``added`` hangs on the graph. ``before`` is what is to be detached instead where the result hangs on what is kept:
    the value of the call before, ``None`` where nothing names it.
    """

    key: str
    added: cst.BaseExpression
    is_read_on: bool
    before: cst.BaseExpression | None


def added_with_graph(model: "Model", statement: cst.Assign | cst.AugAssign | cst.Expr) -> Kept | None:
    """The buffer or state that a statement brings up to date with what hangs on a graph, and that."""
    target, given = _update(model, statement)
    owner = None if target is None else owner_of_attribute(model, target)
    info = function_around(model, statement)
    if owner is None or info is None or owner.framework is None or not given or not isinstance(target, cst.Attribute):
        return None
    if model.gradients.off(statement) is not False or is_test_code(model):
        return None
    is_read_on = not _is_in_training(model, statement) and _is_read_on(owner, target.attr.value, info, statement)
    if not _is_kept(owner, target, info, statement, is_read_on=is_read_on):
        return None
    is_pass = owner.called is info or _is_other_pass(owner, info, statement)
    added = [node for node in given if _is_attached(model, node, info, is_pass=is_pass and makes_weights(owner))]
    key = dotted_path(target) or ""
    return Kept(key, added[0], is_read_on, _before(statement, key)) if added else None


def _before(statement: cst.Assign | cst.AugAssign | cst.Expr, key: str) -> cst.BaseExpression | None:
    """The one place where a sum names what it is assigned to."""
    if not isinstance(statement, cst.Assign):
        return None
    named = [part for part in subtree(statement.value) if isinstance(part, cst.Attribute) and dotted_path(part) == key]
    return named[0] if len(named) == 1 else None


def _update(model: "Model", statement: cst.CSTNode) -> tuple[cst.BaseExpression | None, list[cst.BaseExpression]]:
    """What a statement adds something to, or writes several items of, and what it adds or writes."""
    if isinstance(statement, cst.Expr):
        change = write(model, statement)
        return (None, []) if change is None else (change.target, list(_added_by_methods(statement.value)))
    if isinstance(statement, cst.AugAssign):
        is_sum = isinstance(statement.operator, (cst.AddAssign, cst.SubtractAssign))
        return (statement.target, [statement.value]) if is_sum else (None, [])
    assert isinstance(statement, cst.Assign)
    target = statement.targets[0].target
    if isinstance(target, cst.Subscript):
        is_one = len(target.slice) == 1 and subscript_index(target) is not None
        return (None, []) if is_one else (target.value, [statement.value])
    path, terms = dotted_path(target), list(_terms(statement.value))
    others = [term for term in terms if path not in map(dotted_path, operands(term))]
    return (target, others) if len(others) < len(terms) else (None, [])


def _added_by_methods(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    while isinstance(node, cst.Call):
        if last_word(node.func) in _ADDING:
            yield from (arg.value for arg in node.args if not arg.star)
        node = node.func.value if isinstance(node.func, cst.Attribute) else node.func


def _terms(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        yield from (*_terms(node.left), *_terms(node.right))
    else:
        yield node


def _is_kept(
    owner: "ClassInfo", target: cst.Attribute, info: "FunctionInfo", statement: cst.CSTNode, *, is_read_on: bool
) -> bool:
    """Whether an attribute is a buffer, or a state, that keeps what it is given: nothing takes its graph away.

    What another method sets anew, or its own goes on to read, is perhaps a state, which hangs on the graph of its
    sequence; not what is brought up to date in training only, nor what nobody in sight begins anew.
    """
    name = target.attr.value
    places, reads = list(owner.members.assignments(name)), list(owner.members.reads(name))
    is_buffer = any(place.role is Role.BUFFER for place in places)
    others = [place for place in places if place.role is not Role.BUFFER and not _is_first(place, name)]
    if not is_buffer and not _is_plain_state(owner, others, target, info, statement):
        return False
    if any(place.value is not None and detaches(place.value) for place in others):
        return False
    if any(_method_on(read) == "detach_" for read in reads):
        return False
    if is_buffer and _is_in_training(info.model, statement):
        return True  # what is read in evaluation only
    begun = [place.method for place in others] + [read.method for read in reads if _method_on(read) in _BEGINNING]
    if not all(method is info or (method is not None and method.name == "__init__") for method in begun):
        return False
    return not is_read_on or _is_known_whole(owner, name)


def _is_read_on(owner: "ClassInfo", name: str, info: "FunctionInfo", statement: cst.CSTNode) -> bool:
    """Whether the method goes on to read what it has brought up to date as a whole."""
    is_whole = not isinstance(statement, cst.Assign) or not isinstance(statement.targets[0].target, cst.Subscript)
    return is_whole and any(
        read.method is info and not info.model.tree.is_below(read.node, statement) and not _is_test_for_none(read)
        for read in owner.members.reads(name)
    )


def _is_test_for_none(read: Read) -> bool:
    parent = read.method.model.tree.parent(read.node)
    return (isinstance(parent, cst.Comparison) and parent.left is read.node) or isinstance(parent, cst.UnaryOperation)


def _is_plain_state(
    owner: "ClassInfo", others: list[Assignment], target: cst.Attribute, info: "FunctionInfo", statement: cst.CSTNode
) -> bool:
    """Whether an attribute that is no buffer begins as ``None`` or a tensor, and is only made of itself from then on.

    Others may read it, and begin it anew: then it may hold no more than a sequence.
    """
    made = [place for place in others if place.method is not None and place.method.name == "__init__"]
    if not made or not all(_begins(place, is_sum=isinstance(statement, cst.Assign)) for place in made):
        return False
    if any(place.method is not info or not _is_update(place, target) for place in others if place not in made):
        return False
    return not _may_be_named_elsewhere(owner, target.attr.value)


def _is_first(place: Assignment, name: str) -> bool:
    own = None if place.method is None else place.method.self_name
    return own is not None and is_for_first(place.model, place.node, f"{own}.{name}")


def _begins(place: Assignment, *, is_sum: bool) -> bool:
    value = None if place.value is None else place.model.value(place.value)
    if isinstance(value, Tensor):
        return not value.parameter and hangs_on_nothing(value)
    return isinstance(value, Nothing) or (is_sum and isinstance(value, Number))


def _is_update(place: Assignment, target: cst.Attribute) -> bool:
    """Whether a statement makes an attribute of what it is, or writes to a part of it."""
    if not isinstance(place.node, (cst.Assign, cst.AugAssign)):
        return False
    changed, given = _update(place.model, place.node)
    return bool(given) and changed is not None and dotted_path(changed) == dotted_path(target)


def _may_be_named_elsewhere(owner: "ClassInfo", name: str) -> bool:
    members = owner.members
    return any(model.receivers.attributes_of_others(name) for model in members.models) or (
        members.may_be_read_elsewhere(name)
    )


def _is_known_whole(owner: "ClassInfo", name: str) -> bool:
    """Whether all is in sight that may begin a state anew: its module is made in the project, where nobody names it."""
    if owner.model.project is None or _may_be_named_elsewhere(owner, name):
        return False
    return any(makes(home, owner) for home in (owner.model, *owner.model.importers(owner.name)))


def _method_on(read: Read) -> str | None:
    parent = read.method.model.tree.parent(read.node)
    return parent.attr.value if isinstance(parent, cst.Attribute) else None


def _is_in_training(model: "Model", statement: cst.CSTNode) -> bool:
    tests = (item.test for item in model.tree.ancestors(statement) if isinstance(item, cst.If))
    return any(last_word(part) == "training" for test in tests for part in subtree(test))


def _is_other_pass(owner: "ClassInfo", info: "FunctionInfo", statement: cst.CSTNode) -> bool:
    """Whether a private method that a library calls trains as ``forward`` does, and goes on with what it is given.

    So ``_inverse`` does of a transform. What the project calls may be given something without its graph.
    """
    is_own = info.name.startswith("_") and not info.name.startswith("__")
    if not is_own or not _is_in_training(info.model, statement):
        return False
    if any(info.name in home.calls_by_word for home in owner.members.models):
        return False
    returned = (item.value for item in info.scope.returns if item.value is not None)
    return any(_depends_on_given(info.model, value, info) for value in returned)


def _is_attached(model: "Model", node: cst.BaseExpression, info: "FunctionInfo", *, is_pass: bool) -> bool:
    """Whether something surely hangs on a graph, or does where what the layer is given does.

    A module with weights of its own is no first step of the data alone.
    """
    if isinstance(model.value(node), Number):
        return False
    return is_attached(model, node) or (is_pass and _depends_on_given(model, node, info))


def _depends_on_given(model: "Model", node: cst.BaseExpression, info: "FunctionInfo") -> bool:
    given = {id(parameter) for parameter in info.parameters[1:2]}
    return Dependence(model, lambda binding: id(binding.node) in given).of(node)
