"""What a function puts into the lists and dicts that it makes itself."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.changes import changes_in_place
from mllint.semantic.names.scopes import Binding
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_DISPLAYS = (cst.List, cst.ListComp, cst.Dict, cst.DictComp)


def put_into(model: "Model", node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """What a scope puts into the list, dict or tensor that a name holds; ``None``: it is changed in some other way."""
    bound = model.reaching(node)
    changes = [item for item in changes_in_place(model, node) if not _is_of_another(model, item, bound)]
    made = [binding.value for binding in bound] if changes else []
    is_display = all(isinstance(value, _DISPLAYS) for value in made)
    if not is_display and not all(isinstance(change, cst.Subscript) for change in changes):
        return None
    put = [_put_by(model, change) for change in changes]
    is_known = all(item is not None for item in put)
    return [item for item in put if item is not None] if is_known else None


def _is_of_another(model: "Model", change: cst.CSTNode, bound: Sequence[Binding]) -> bool:
    """Whether what is changed surely is another thing that the scope has bound to the same name."""
    part: cst.CSTNode = change.func if isinstance(change, cst.Call) else change
    while isinstance(part, (cst.Attribute, cst.Subscript)):
        part = part.value
    others = model.reaching(part) if isinstance(part, cst.Name) else ()
    return bool(others) and not any(item in bound for item in others)


def _put_by(model: "Model", change: cst.CSTNode) -> cst.BaseExpression | None:
    """``x`` of ``items.append(x)`` and ``items[key] = x``."""
    if isinstance(change, cst.Call):
        return change.args[0].value if last_word(change.func) == "append" and len(change.args) == 1 else None
    statement = model.tree.parent(model.tree.parent(change) or change)
    return statement.value if isinstance(statement, cst.Assign) else None
