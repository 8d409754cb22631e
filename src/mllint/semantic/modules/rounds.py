"""Layers that every round of a loop adds to the same model, or to the same list, of which one is built then; and
whether what repeats a layer says that it shares it.
"""

import re
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.construction.libraries import SEQUENTIALS
from mllint.semantic.expressions.module_lists import MODULE_LISTS
from mllint.semantic.modules.weights import has_weights
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Module
from mllint.syntax.shape import called_on, constant, dotted_path, fingerprint, last_word, leaves_loop, runs_once
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_COUNTING, _GROWS = "range", "append"
_MEANT = re.compile(r"shar(e|ed|ing)|(?<![a-z])tie[ds]?(?![a-z])|tying|recur|clone|cop(y|ies)", re.IGNORECASE)
_NAMED = 2
"""With how many arguments a module is added under a name."""


def repeated_each_round(model: "Model", call: cst.Call) -> cst.Name | None:
    """The layer that every round of a counting loop adds, above which both it and what holds it were made.

    A list must become the layers of a model, ``nn.Sequential(*layers)``; a container is one, as is the module that is
    given another name for it in each round: ``net.add_module(f"block{index}", block)``.
    """
    loop = next(model.tree.loops_around(call), None)
    holder, layer = called_on(call), call.args[-1].value if call.args else None
    if not isinstance(loop, cst.For) or holder is None or not isinstance(layer, cst.Name):
        return None
    line = model.tree.parent(model.tree.parent(call))  # type: ignore[arg-type]
    is_plain = isinstance(line, cst.SimpleStatementLine) and model.tree.parent(line) is loop.body
    if not is_plain or not _counts(loop) or leaves_loop(loop.body) or not _is_made_above(model, layer, loop):
        return None
    if _makes_others_anew(model, call, loop):
        return None  # who does that knows the difference: heads with keys of their own, and the same values
    return layer if _takes_all(model, call, holder, loop) else None


def _makes_others_anew(model: "Model", call: cst.Call, loop: cst.For) -> bool:
    """Whether a loop that adds one layer again and again adds others elsewhere, which it makes in each round."""
    holder = dotted_path(call.func)
    others = [item for item in model.tree.calls_in(loop.body) if item.args and dotted_path(item.func) != holder]
    added = (item.args[-1].value for item in others if last_word(item.func) == last_word(call.func))
    return any(isinstance(item, cst.Call) and has_weights(model, item) for item in added)


def _takes_all(model: "Model", call: cst.Call, holder: cst.BaseExpression, loop: cst.For) -> bool:
    """Whether what holds layers is the same in every round, keeps each of them, and is a model or becomes one."""
    given, value = len(call.args), model.value(holder)
    if last_word(call.func) != _GROWS:
        is_own = method_of_receiver(model, holder) is not None
        is_named_anew = given == _NAMED and constant(call.args[0].value) is ...
        is_kept = is_own or _is_made_above(model, holder, loop)
        return isinstance(value, Module) and is_named_anew and is_kept
    if given != 1 or not _is_made_above(model, holder, loop):
        return False
    if isinstance(value, Module):
        return value.name in MODULE_LISTS or value.name in SEQUENTIALS
    return isinstance(holder, cst.Name) and _is_built(model, holder)


def _counts(loop: cst.For) -> bool:
    """``for _ in range(n)``: more than one round, as far as is known."""
    call = loop.iter
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Name) or call.func.value != _COUNTING:
        return False
    return not runs_once(loop) and not any(constant(arg.value) in (0, 1) for arg in call.args if len(call.args) == 1)


def _is_made_above(model: "Model", name: cst.BaseExpression, loop: cst.For) -> bool:
    """Whether a name or attribute is bound by one assignment of the function, that stands above the loop."""
    bindings = model.reaching(name)
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.ASSIGN or bindings[0].path:
        return False
    return bindings[0].scope is model.scope_of(loop) and not model.tree.is_inside(bindings[0].node, loop)


def _is_built(model: "Model", holder: cst.Name) -> bool:
    """Whether a model is made of a list."""
    for use in uses(model, model.reaching(holder)[0]):
        call = model.tree.call_given(use)
        if isinstance(call, cst.Call) and isinstance(model.value(call), Module):
            return True
    return False


# -- what it says of itself --------------------------------------------------------------------------------------------


def is_one_layer(model: "Model", layer: cst.BaseExpression, node: cst.BaseExpression, *, is_part: bool = False) -> bool:
    """Whether a list repeats one layer with weights, becomes part of a model, and does not say that it shares."""
    if not isinstance(model.value(layer), Module) or _says_so(dotted_path(layer) or ""):
        return False
    is_part = is_part or isinstance(layer, cst.Call)
    child: cst.CSTNode = node
    for ancestor in model.tree.ancestors(node):
        match ancestor:
            case cst.CompFor() | cst.For() if ancestor.iter is child:
                return False  # its elements may be copied one by one
            case cst.Call():
                is_part = is_part or isinstance(model.value(ancestor), Module)
                if child is not ancestor.func and _says_so(dotted_path(ancestor.func) or ""):
                    return False
            case cst.If() | cst.IfExp() if _says_so(fingerprint(ancestor)) or _makes_each(ancestor, layer):
                return False  # one of the ways shares, and another copies
            case cst.Assign() if any(_says_so(dotted_path(item.target) or "") for item in ancestor.targets):
                return False
            case cst.FunctionDef() | cst.ClassDef() if _says_so(ancestor.name.value):
                return False
        child = ancestor
    return is_part and has_weights(model, layer) is True


def _makes_each(choice: cst.CSTNode, layer: cst.BaseExpression) -> bool:
    """Whether one of several ways makes such layers one by one, so that the others are known to share."""
    made = [part.elt for part in subtree(choice) if isinstance(part, (cst.ListComp, cst.GeneratorExp))]
    calls = [part.func for part in (layer, *made) if isinstance(part, cst.Call)]
    return len(calls) > 1 and isinstance(layer, cst.Call) and fingerprint(layer.func) in map(fingerprint, calls[1:])


def _says_so(text: str) -> bool:
    return _MEANT.search(text) is not None
