"""State dicts in files that are taken for the module whose state they are: ``model = torch.load(path)``, ``model(x)``.

The reverse of loading a whole module as a state dict. What the code saves tells what is in the file.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.checkpoints.contents import Content, FromFile, Record, State
from mllint.semantic.checkpoints.counterparts import saved_beside
from mllint.semantic.checkpoints.handling import is_guarded
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.places import Place
from mllint.semantic.checkpoints.saves import Saved, resolved
from mllint.semantic.checkpoints.tracing import default_path, read_path
from mllint.semantic.names.definitions import class_around
from mllint.semantic.names.uses import bound_by, uses
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_METHODS = frozenset({
    "eval", "train", "to", "cuda", "cpu", "half", "parameters", "named_parameters", "modules", "children", "zero_grad",
    "state_dict", "load_state_dict", "set_state_dict", "requires_grad_", "sublayers", "step",
})  # fmt: skip
"""Methods of modules, and of what trains them, that no dict has."""


class Mistaken(msgspec.Struct, frozen=True):
    """The method of modules, or `module`, of what was read (empty: it is called itself), and what is in the file."""

    method: str
    saved: Saved


def taken_for_module(model: "Model", read: cst.Call) -> Mistaken | None:
    """The first use of what a call of ``load`` reads as a module, where the file surely holds a dict."""
    name, found = _used_as_module(model, read)
    if found is None:
        return None
    use, node = found
    call = use if isinstance(use, cst.Call) else read
    if is_guarded(Load(model, call, node, None, node, None)) or is_guarded(Load(model, read, read, None, read, None)):
        return None
    written = list(_written(model, name, FromFile(Place(model, read))))
    if not written or not all(_is_dict(content) for _, content in written):
        return None
    taken = use.func if isinstance(use, cst.Call) else use
    is_of_it = isinstance(taken, cst.Attribute) and taken.value is node
    return Mistaken(taken.attr.value if isinstance(taken, cst.Attribute) and is_of_it else "", written[0][0])


def _used_as_module(
    model: "Model", read: cst.Call
) -> tuple[str | None, tuple[cst.BaseExpression, cst.BaseExpression] | None]:
    """The name that is given to what is read, and the first use of it as a module, with what is used there."""
    chained = _use(model, read)
    if chained is not None:
        return None, (chained, read)
    statement = model.tree.parent(model.tree.beyond_choices(read))
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None, None
    name = dotted_path(statement.targets[0].target)
    for binding in bound_by(model, statement):
        for node in uses(model, binding) if binding.key == name else ():
            use = _use(model, node)
            if use is not None:
                return name, (use, node)
    return name, None


def _use(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The use of an expression as a module: a call, or `.module`, which takes the module out of a wrapper."""
    above = model.tree.parent(node)
    if isinstance(above, cst.Attribute) and above.value is node and above.attr.value == "module":
        return None if isinstance(model.tree.parent(above), cst.AssignTarget) else above
    return use_as_object(model, node)


def use_as_object(model: "Model", node: cst.BaseExpression) -> cst.Call | None:
    """The call of an expression, or of a method of modules on it, that it stands in."""
    above = model.tree.parent(node)
    if isinstance(above, cst.Attribute) and above.value is node and above.attr.value in _METHODS:
        node = above
    return model.tree.call_of(node)


def _written(model: "Model", name: str | None, content: FromFile) -> Iterator[tuple[Saved, Content | None]]:
    """What the file holds that was read; else what the code writes of what has this name.

    Wherever it does, if an option says which file is read; where the path is known, in the function beside only: any
    other file may have come from anywhere.
    """
    path = read_path(content)
    if path is None:
        return
    saved: tuple[Saved, ...] = model.surroundings.saved
    if path.is_blank:
        default = default_path(content)
        known = [] if default is None else list(resolved(content, saved, default))
    else:
        known = list(resolved(content, saved, path))
        saved = tuple(saved_beside(model, content.place))
    if not known and name is not None and not path.is_of_others and all(_is_dict(item.content) for item in saved):
        known = [(item, item.content) for item in saved if _is_saved_state_of(item.content, name, content.place)]
    yield from known


def _is_dict(content: Content | None) -> bool:
    return isinstance(content, (State, Record))


def _is_saved_state_of(content: Content | None, name: str, read: Place) -> bool:
    """Whether ``name.state_dict()`` is saved as it is, of the same variable, or attribute of the same class."""
    call = content.place.node if isinstance(content, State) and content.place.model is read.model else None
    if not isinstance(call, cst.Call) or dotted_path(call.func) != f"{name}.state_dict":
        return False
    functions = [read.model.enclosing_function(node) for node in (call, read.node)]
    owners = [class_around(read.model, node) for node in (call, read.node)]
    return functions[0] is functions[1] or ("." in name and owners[0] is not None and owners[0] is owners[1])
