"""Whether somebody asks more of a thing, or of what is made of it, than a number or a collection of numbers has."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.looked_at import filled_by, uses_inside
from mllint.semantic.names.uses import attributes, bound_by, mentions, uses
from mllint.semantic.values import Function, Text
from mllint.syntax.iteration import handed_on
from mllint.syntax.shape import dotted_path, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

_OF_NUMBERS = frozenset(name for kind in (float, list, tuple, dict, str) for name in dir(kind))
_PARTS = (
    cst.Subscript, cst.BinaryOperation, cst.UnaryOperation, cst.BaseElement, cst.BaseDictElement, cst.Tuple, cst.List,
    cst.Dict, cst.IfExp,
)  # fmt: skip
_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
_MAX_STEPS = 60


class TensorUses:
    """The search for such a use, from the places that read a thing on to what is made of it, and to the callers."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def any_of(self, model: "Model", places: Iterable[cst.CSTNode]) -> bool:
        """Whether one of the places, or what is made there, is used as a tensor; also where that is too far to see."""
        return any(self._is_used(model, place) for place in places)

    def _is_used(self, model: "Model", place: cst.CSTNode) -> bool:
        if id(place) in self._seen:
            return False
        self._seen.add(id(place))
        if len(self._seen) > _MAX_STEPS:
            return True
        child = place
        for parent in model.tree.ancestors(place):
            if isinstance(parent, cst.Attribute):
                return parent.value is child and parent.attr.value not in _OF_NUMBERS
            if isinstance(parent, (cst.Assign, cst.AnnAssign, cst.For)):
                holds = parent.iter if isinstance(parent, cst.For) else parent.value
                return holds is child and self.any_of(model, _read(model, parent))
            if isinstance(parent, cst.CompFor):
                return parent.iter is child and self.any_of(model, _read_inside(model, parent))
            if isinstance(parent, cst.Return):
                return self._is_used_by_callers(model, parent)
            if isinstance(parent, cst.Call) and not _gives_elements(parent, child):
                return isinstance(child, cst.Arg) and self._is_used_by(model, parent, child)
            if not isinstance(parent, (*_PARTS, cst.Arg, cst.Call)):
                return False
            child = parent
        return False

    def _is_used_by(self, model: "Model", call: cst.Call, arg: cst.Arg) -> bool:
        """Whether a call takes tensors, or a function of the project uses what it is given by an argument as one."""
        callee = model.value(call.func)
        if not isinstance(callee, Function):
            return _takes_tensors(model, call)
        inside = uses_inside(callee.definition, call, arg, filled_by(callee))
        return inside is None or self.any_of(callee.definition.model, inside)

    def _is_used_by_callers(self, model: "Model", statement: cst.Return) -> bool:
        function = model.enclosing_function(statement)
        if function is None:
            return False
        name = function.name.value
        return any(self.any_of(other, other.calls_by_word.get(name, ())) for other in _readers(model, name))


def _gives_elements(call: cst.Call, arg: cst.CSTNode) -> bool:
    """Whether a call gives the elements of what it is given, or one of them, or their sum."""
    is_handed_on = isinstance(arg, cst.Arg) and handed_on(call, arg) is not None
    return is_handed_on or dotted_path(call.func) in ("sum", "max", "min")


def _takes_tensors(model: "Model", call: cst.Call) -> bool:
    name = model.qualified_name(call.func) or ""
    return name.startswith(("torch.", "paddle.")) and not name.endswith("tensor")


def _read(model: "Model", statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The places that read what a statement binds."""
    for binding in bound_by(model, statement):
        yield from uses(model, binding)


def _read_inside(model: "Model", loop: cst.CompFor) -> Iterator[cst.CSTNode]:
    """The places in a comprehension that read what its loop binds."""
    bound = {item.value for item in subtree(loop.target) if isinstance(item, cst.Name)}
    whole = model.tree.nearest(loop, *_COMPREHENSIONS) or loop
    for item in subtree(whole):
        if isinstance(item, cst.Name) and item.value in bound:
            yield item


def _readers(model: "Model", word: str) -> Iterator["Model"]:
    """The file, and those that import the name from it."""
    yield model
    yield from model.importers(word)


def is_attribute_used(model: "Model", attribute: str, owner: "ClassInfo | None") -> bool:
    """Whether one reads an attribute of this name as a tensor, in the file or in one that reads it of the class."""
    paths = () if owner is None else owner.members.readers_elsewhere(attribute)
    others = () if paths is None else map(model.neighbour, paths)
    readers = [model, *(other for other in others if other is not None)]
    return paths is None or any(TensorUses().any_of(reader, attributes(reader, attribute)) for reader in readers)


_NUMBER_ATTRIBUTES = frozenset({"item", "data", "detach", "tolist", "numpy", "cpu"})
_REPORTS = frozenset({"float", "int", "round", "print", "str", "format", "info", "debug", "warning", "add_scalar"})


def is_only_reported(model: "Model", key: str, reads: Sequence[cst.BaseExpression], *, is_table: bool = False) -> bool:
    """Whether what some places read is taken for a number at each of them; where nobody reads it, nothing is known.

    Nor is it where it is only bound anew: ``total = total / count``. ``is_table``: it is a list into which a total was
    put.
    """
    read = [node for node in reads if not _is_bound_anew(model, key, node)]
    return bool(read) and all(_reads_number(model, key, node, is_table=is_table) for node in read)


def _is_bound_anew(model: "Model", key: str, node: cst.BaseExpression) -> bool:
    """Whether a place reads a name to bind the same name, of whatever is asked where that is read."""
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.Assign):
            return all(dotted_path(item.target) == key for item in ancestor.targets)
        if isinstance(ancestor, cst.BaseSmallStatement):
            return isinstance(ancestor, cst.AugAssign) and dotted_path(ancestor.target) == key
    return False


def _reads_number(model: "Model", key: str, node: cst.BaseExpression, *, is_table: bool) -> bool:
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Attribute):
        return parent.value is node and parent.attr.value in _NUMBER_ATTRIBUTES
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, (cst.FormattedStringExpression, cst.AssignTarget)):
            return True
        if isinstance(ancestor, cst.Call):
            word = last_word(ancestor.func)
            if word in _REPORTS or (word == "append" and not is_table and _is_put_into_table(model, key, ancestor)):
                return True
        elif isinstance(ancestor, cst.BinaryOperation):
            if isinstance(ancestor.operator, cst.Modulo) and isinstance(model.value(ancestor.left), Text):
                return True
        elif isinstance(ancestor, cst.BaseSmallStatement):
            return False
    return False


def _is_put_into_table(model: "Model", key: str, call: cst.Call) -> bool:
    """Whether a call puts it into a list of the same function that is only reported, too."""
    rows = call.func.value if isinstance(call.func, cst.Attribute) else None
    if not isinstance(rows, cst.Name) or rows.value == key:
        return False
    scope = model.scope_of(rows)
    if rows.value not in scope.bindings or not scope.is_function:
        return False
    named = mentions(model, rows.value, model.names_in(rows.value, scope))
    reads = [node for node in named if node is not rows and not isinstance(model.tree.parent(node), cst.AssignTarget)]
    return is_only_reported(model, rows.value, reads, is_table=True)
