"""What a function puts into the lists and dicts that it makes itself."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.changes import changes_in_place
from mllint.syntax.shape import last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_DISPLAYS = (cst.List, cst.ListComp, cst.Dict, cst.DictComp)


def put_into(model: "Model", node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """What a scope puts into the list or dict that a name holds; ``None`` where it is changed in some other way."""
    changes = list(changes_in_place(model, node))
    made = [binding.value for binding in model.reaching(node)] if changes else []
    if not all(isinstance(value, _DISPLAYS) for value in made):
        return None
    put = [_put_by(model, change) for change in changes]
    is_known = all(item is not None for item in put)
    return [item for item in put if item is not None] if is_known else None


def _put_by(model: "Model", change: cst.CSTNode) -> cst.BaseExpression | None:
    """``x`` of ``items.append(x)`` and ``items[key] = x``."""
    if isinstance(change, cst.Call):
        return change.args[0].value if last_word(change.func) == "append" and len(change.args) == 1 else None
    statement = model.tree.parent(model.tree.parent(change) or change)
    return statement.value if isinstance(statement, cst.Assign) else None
