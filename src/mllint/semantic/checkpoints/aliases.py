"""From a call of ``state_dict()`` to the name, attribute or collection that keeps its very tensors; and what writes
into those by hand.
"""

from typing import TYPE_CHECKING

import libcst as cst
import msgspec
from msgspec.structs import replace

from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import without_narrowing
from mllint.syntax.shape import dotted_path, root_of, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_SHALLOW = frozenset({"builtins.dict", "collections.OrderedDict", "copy.copy"})


class Alias(msgspec.Struct, frozen=True):
    """Where the tensors of a state dict are put: ``call`` gives them, ``statement`` puts them there.

    Or the whole thing that has the tensors: it is what ``call`` is then.

    ``holder`` is the name or dotted path that keeps them; ``is_entry``: under a key or at the end of what was there
    before; ``is_choice``: only in one case of ``x if y else z``. ``only_on_cpu``: of a module on another device the
    tensors are copied on the way.
    """

    call: cst.BaseExpression
    statement: cst.CSTNode
    holder: cst.BaseExpression
    is_entry: bool
    is_choice: bool = False
    only_on_cpu: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether no state dict is kept, but the module itself."""
        return not isinstance(self.call, cst.Call)

    @property
    def owner(self) -> cst.BaseExpression:
        """The thing that has the tensors."""
        is_asked = isinstance(self.call, cst.Call) and isinstance(self.call.func, cst.Attribute)
        return self.call.func.value if is_asked else self.call  # type: ignore[attr-defined]


def alias_of(model: "Model", call: cst.BaseExpression, start: cst.BaseExpression | None = None) -> Alias | None:
    """What becomes of the result of ``x.state_dict()``; ``None`` when it is copied, used up or not followed.

    ``start`` is a name that holds the result, where that is to be followed from. What a method returns is followed to
    the only call of it, on the same object.
    """
    node: cst.BaseExpression = call if start is None else start
    only_on_cpu = is_choice = False
    while True:
        parent = model.tree.parent(node)
        match parent:
            case cst.Assign() | cst.AnnAssign() | cst.NamedExpr():
                found = _assigned(call, node, parent)
                return found and replace(found, is_choice=is_choice, only_on_cpu=only_on_cpu)
            case cst.Element():
                outer = model.tree.parent(parent)
                if not isinstance(outer, cst.Tuple):
                    return None
                statement = model.tree.parent(outer)
                pair = _unpacked(outer, parent, statement)
                if pair is not None and statement is not None:
                    return Alias(call, statement, pair, False, is_choice, only_on_cpu)
                node = outer
            case cst.DictElement() | cst.StarredDictElement() if getattr(parent, "key", None) is not node:
                outer = model.tree.parent(parent)
                assert isinstance(outer, cst.Dict)
                node = outer
            case cst.IfExp() if parent.test is not node:
                node, is_choice = parent, True
            case cst.Arg():
                outer = model.tree.parent(parent)
                if not isinstance(outer, cst.Call):
                    return None
                if isinstance(outer.func, cst.Attribute) and outer.func.attr.value == "append" and len(outer.args) == 1:
                    return Alias(call, outer, outer.func.value, True, is_choice, only_on_cpu)
                if model.qualified_name(outer.func) not in _SHALLOW:
                    return None
                node = outer
            case cst.Attribute() if parent.value is node:
                outer = model.tree.parent(parent)
                if not isinstance(outer, cst.Call) or outer.args or outer.func is not parent:
                    return None
                if parent.attr.value == "copy":
                    node = outer
                    continue
                rebuilt = _rebuilt(model, outer) if parent.attr.value == "items" else None
                if rebuilt is None:
                    return None
                node, on_cpu = rebuilt
                only_on_cpu = only_on_cpu or on_cpu
            case cst.Return() if start is None:
                kept = [alias_of(model, call, item) for item in _calls_by_itself(model, call, parent)]
                is_choice = is_choice or len(model.scope_of(parent).returns) > 1
                only = kept[0] if len(kept) == 1 else None
                return only and replace(only, is_choice=only.is_choice or is_choice, only_on_cpu=only_on_cpu)
            case _:
                return None


def _calls_by_itself(model: "Model", call: cst.BaseExpression, statement: cst.Return) -> list[cst.Call]:
    """The calls of a method that hands out the state of a part of its object, if all are made on that very object."""
    info = function_around(model, statement)
    receiver, path = None if info is None else info.self_name, dotted_path(getattr(call, "func", call)) or ""
    if info is None or receiver is None or not path.startswith(f"{receiver}."):
        return []
    calls = [item for item, _ in calls_of(model, info)]
    return calls if all(dotted_path(item.func) == f"{receiver}.{info.name}" for item in calls) else []


def _assigned(
    call: cst.BaseExpression, node: cst.BaseExpression, statement: cst.Assign | cst.AnnAssign | cst.NamedExpr
) -> Alias | None:
    if statement.value is not node:
        return None
    if isinstance(statement, cst.Assign):
        if len(statement.targets) > 1:
            return None
        target: cst.BaseExpression = statement.targets[0].target
    else:
        target = statement.target
    is_entry = isinstance(target, cst.Subscript)
    holder = target.value if isinstance(target, cst.Subscript) else target
    return Alias(call, statement, holder, is_entry) if dotted_path(holder) is not None else None


def _unpacked(display: cst.Tuple, element: cst.Element, statement: cst.CSTNode | None) -> cst.BaseExpression | None:
    """The target of ``a, b = x, y`` to which an element of the right side goes."""
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0].target
    if not isinstance(target, cst.Tuple) or len(target.elements) != len(display.elements):
        return None
    found = target.elements[list(display.elements).index(element)].value
    return found if dotted_path(found) is not None else None


def _rebuilt(model: "Model", items: cst.Call) -> tuple[cst.DictComp, bool] | None:
    """``{k: v for k, v in state.items()}`` that keeps the tensors, and whether it does so on the CPU alone."""
    clause = model.tree.parent(items)
    display = None if clause is None else model.tree.parent(clause)
    if not isinstance(clause, cst.CompFor) or not isinstance(display, cst.DictComp) or clause.inner_for_in is not None:
        return None
    target = clause.target
    if not isinstance(target, cst.Tuple) or len(target.elements) != 2:
        return None
    on_cpu = _keeps_storage(display.value, dotted_path(target.elements[1].value))
    return None if on_cpu is None else (display, on_cpu)


def _keeps_storage(node: cst.BaseExpression, name: str | None) -> bool | None:
    """Whether an expression is the tensor called ``name`` only on the CPU (else on every device); ``None``: a copy."""
    match node:
        case cst.Name():
            return False if node.value == name else None
        case cst.Attribute(attr=cst.Name(value="data")):
            return _keeps_storage(node.value, name)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="detach"), value=value)) if not node.args:
            return _keeps_storage(value, name)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="cpu"), value=value)) if not node.args:
            return None if _keeps_storage(value, name) is None else True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="to"), value=value)) if len(node.args) == 1:
            moved = string_literal(node.args[0].value) == "cpu"
            return True if moved and _keeps_storage(value, name) is not None else None
    return None


_PARTS = ("parameters", "named_parameters", "modules", "named_modules", "children", "sublayers", "named_sublayers")


def writes_into(model: "Model", call: cst.Call, owner: str) -> bool:
    """Whether a call writes into a weight of what a path names: ``model.fc.weight.data.add_()``, ``p.add_()``."""
    path = dotted_path(call.func)
    if path is None or ".grad." in path:
        return False
    roots = without_narrowing(model.reaching(root_of(call.func)))
    walked = [item.value for item in roots if item.kind is BindingKind.LOOP]
    ways = {dotted_path(value.func) for value in walked if isinstance(value, cst.Call)}
    return path.startswith(f"{owner}.") or any(f"{owner}.{word}" in ways for word in _PARTS)
