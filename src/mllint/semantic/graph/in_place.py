"""Calls that change the tensor they are given: ``F.relu(x, inplace=True)``, ``x.relu_()``, ``nn.ReLU(inplace=True)``.

What statements change in place (``x += 1``, ``x[0] = 1``) ``names.writes`` tells.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.names.conditions import always_runs
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import BindingKind, assigned
from mllint.semantic.values import Module
from mllint.syntax.shape import argument, constant, constant_given, integer_literal, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

ACTIVATIONS = frozenset({
    "relu_", "relu6_", "leaky_relu_", "elu_", "celu_", "selu_", "rrelu_", "hardtanh_", "threshold_", "sigmoid_",
    "tanh_", "softmax_",
})  # fmt: skip
"""Functions and methods that are activations and always work in place."""

WORDS = ("inplace", "ReLU", "ELU", "Dropout", *sorted(ACTIVATIONS))
"""Words of which a file has one that makes a layer that works in place, or calls what does."""


MAX_DEPTH = 3
"""Through how many modules of the file a change is followed to what runs them."""


def may_work_in_place(call: cst.Call) -> bool:
    """Whether a call looks as if it worked in place, or built a layer that does."""
    for arg in call.args:
        value = arg.value
        if value.__class__ is cst.Name and value.value == "True":  # noqa: SIM102 asked of every call
            if arg.keyword is None or arg.keyword.value == "inplace":
                return True
    callee = call.func
    word = callee.attr if callee.__class__ is cst.Attribute else callee
    return word.__class__ is cst.Name and word.value in ACTIVATIONS


def flag(call: cst.Call) -> cst.Arg | None:
    """The argument ``inplace=True`` of a call."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == "inplace":
            return arg if constant(arg.value) is True else None
    return None


def takes_flag(call: cst.Call) -> bool:
    """Whether a call is told to work in place, or is spelled like an activation that always does."""
    return flag(call) is not None or last_word(call.func) in ACTIVATIONS


def changed_by_function(model: "Model", call: cst.Call) -> tuple[cst.BaseExpression, str] | None:
    """What an activation in place changes, and which it is; ``None`` for all other calls."""
    word = last_word(call.func)
    name = model.library_name(call.func)
    if name is not None:
        given = argument(call, 0, "input") or argument(call, None, "x")
        is_function = lookup.framework_of(name) in ("torch", "paddle") and lookup.function(name) is not None
        if given is None or not is_function or not takes_flag(call):
            return None
        return given.value, (word or "").rstrip("_")
    if word in ACTIVATIONS and isinstance(call.func, cst.Attribute) and word not in model.function_names:
        return call.func.value, word.rstrip("_")
    return None


def works_in_place(call: cst.Call, name: str) -> bool:
    """Whether a library layer is built so that it changes what it is given."""
    parameters = lookup.parameters(name)
    position = parameters.index("inplace") if "inplace" in parameters else None
    if position is None or constant_given(call, position, "inplace") is not True:
        return False
    # A dropout with a rate of zero hands on what it is given.
    return "Dropout" not in name or constant_given(call, 0, "p") != 0


def runs_of_layer(model: "Model", layer: cst.Call) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """The calls in the file of the layer that a call builds, and what each of them is given.

    A ``Sequential`` that begins with the layer gives it what it is given itself.
    """
    node: cst.CSTNode = layer
    while True:
        parent = model.tree.parent(node)
        if isinstance(parent, cst.Arg):
            outer = model.tree.parent(parent)
            if not isinstance(outer, cst.Call) or not outer.args or outer.args[0] is not parent or parent.star:
                return
            node = outer
            continue
        break
    if not isinstance(parent, cst.Assign) or len(parent.targets) != 1 or parent.value is not node:
        return
    word = last_word(parent.targets[0].target)
    for call in model.calls_by_word.get(word, ()) if word is not None else ():
        value = model.value(call.func)
        is_it = (
            first_layer(model, value) is layer if isinstance(value, Module) else _only_value(model, call.func) is node
        )
        if is_it and call.args and not call.args[0].star:
            yield call, call.args[0].value


def _only_value(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The one value that an attribute, of which it is not known what it is, is assigned in its class and the bases."""
    owner = owner_of_attribute(model, node)
    bound = list(owner.assignments(node.attr.value)) if owner is not None and isinstance(node, cst.Attribute) else []
    return assigned(bound[0]) if len(bound) == 1 else None


def first_layer(model: "Model", module: Module) -> cst.Call | None:
    """The call that built a layer, or the first layer of nested ``Sequential``; ``None`` where that is not known."""
    return _end(model, module, 0)


def last_layer(model: "Model", module: Module) -> cst.Call | None:
    """As ``first_layer``, for the one whose result comes out."""
    return _end(model, module, -1)


def _end(model: "Model", module: Module, index: int) -> cst.Call | None:
    while module.call is not None and not module.wrappers:
        if module.definition is not None or not (module.name or "").endswith(".Sequential"):
            return module.call
        if not module.call.args or any(arg.keyword for arg in module.call.args):
            return None
        node = _listed(model, module.call.args[index], index)
        inner = None if node is None else model.value(node)
        if not isinstance(inner, Module):
            return None
        module = inner
    return None


def changes_by(model: "Model", call: cst.Call) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """The calls that change something in place, and what: the call itself, or those of the layer that it builds."""
    changed = changed_by_function(model, call)
    if changed is not None:
        yield call, changed[0]
        yield from _runs_of_block(model, call, changed[0])
        return
    name = model.library_name(call.func) or _name_by_default(model, call.func)
    known = None if name is None else lookup.class_(name)
    if name is not None and known is not None and known.kind == "layer" and works_in_place(call, name):
        for run, given in runs_of_layer(model, call):
            yield run, given
            yield from _runs_of_block(model, run, given)


def _runs_of_block(
    model: "Model", call: cst.Call, changed: cst.BaseExpression, depth: int = MAX_DEPTH
) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
    """The calls in the file of a module whose ``forward`` is given what a call in it always changes."""
    info = function_around(model, call) if isinstance(changed, cst.Name) and depth else None
    if info is None or info.owner is None or info.owner.called is not info or len(info.parameters) < 2:
        return
    bindings = model.reaching(changed)
    is_first = len(bindings) == 1 and bindings[0].node is info.parameters[1]
    if not is_first or not always_runs(model, call, info.node):
        return
    for made in model.calls_by_word.get(info.owner.name, ()):
        block = model.value(made)
        if isinstance(block, Module) and block.definition is info.owner:
            for run, given in runs_of_layer(model, made):
                yield run, given
                yield from _runs_of_block(model, run, given, depth - 1)


def _name_by_default(model: "Model", callee: cst.BaseExpression) -> str | None:
    """The class that a parameter stands for where nobody gives another: ``act=nn.ReLU``. Others take the same flag."""
    bindings = model.reaching(callee) if isinstance(callee, cst.Name) else ()
    parameter = bindings[0].node if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER else None
    default = parameter.default if isinstance(parameter, cst.Param) else None
    return None if default is None else model.library_name(default)


def _listed(model: "Model", arg: cst.Arg, index: int) -> cst.BaseExpression | None:
    """What an argument gives; of a list that is spread out (``*layers``) its first or last item, where that is certain.

    It is of a list that is written out and only appended to, at whatever place, the last time without a condition; or
    to which something is put in between.
    """
    if not arg.star:
        return arg.value
    bindings = model.reaching(arg.value) if isinstance(arg.value, cst.Name) else ()
    begun = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    if not isinstance(begun, cst.List) or arg.star != "*":
        return None
    items = [element.value for element in begun.elements]
    last = items[index] if items else None
    assert isinstance(arg.value, cst.Name)
    for name in model.names_in(arg.value.value, model.scope_of(arg)):
        if name is arg.value or model.reaching(name) != bindings:
            continue
        read = model.tree.parent(name)
        call = model.tree.parent(read) if isinstance(read, cst.Attribute) else None
        if not isinstance(call, cst.Call) or not isinstance(model.tree.parent(call), cst.Expr):
            return None
        word, position = last_word(call.func), integer_literal(call.args[0].value) if call.args else None
        if word == "append" and len(call.args) == 1:
            is_last = index == -1
            last = call.args[0].value if is_last and _is_plain(model, call, arg) else None if is_last else last
        elif word != "insert" or position is None or not 0 < position < len(items):
            return None
    return last


def _is_plain(model: "Model", call: cst.Call, arg: cst.Arg) -> bool:
    """Whether a statement surely runs, in the same block as what stands around another place."""
    line = model.tree.parent(model.tree.parent(call) or call)
    block = None if line is None else model.tree.parent(line)
    return block is not None and model.tree.is_below(arg, block)
