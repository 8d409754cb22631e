"""What the use of a thing says about it, where what binds it says nothing.

A value on which ``backward()`` is called without arguments is a tensor with one element; one with a method that
exists on tensors alone is a tensor; one with ``parameters()`` is a module. The use must see the very binding.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.scopes import Binding, BindingKind
from mllint.semantic.values import Module, Tensor, Value
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MODULE_METHODS = frozenset({
    "parameters", "named_parameters", "named_modules", "sublayers", "named_sublayers",
})  # fmt: skip
_MODE_METHODS = frozenset({"train", "eval"})
_BACKWARD_KEYWORDS = frozenset({"retain_graph", "create_graph", "inputs"})
_FOLLOWED = (BindingKind.ASSIGN, BindingKind.PARAMETER, BindingKind.LOOP, BindingKind.AUGMENTED)


def from_use(model: "Model", binding: Binding) -> Value | None:
    """What the uses of a binding prove; ``None`` when they prove nothing."""
    framework = model.framework
    if framework is None or binding.kind not in _FOLLOWED:
        return None
    word = binding.key.rpartition(".")[2]
    only_tensors = lookup.tensor_only_methods()
    found: Value | None = None
    for name in model.names_by_word.get(word, ()):
        use = _method_call(model, name, binding.key)
        if use is None:
            continue
        call, receiver, method = use
        if method == "backward" and _is_plain_backward(call):
            proof: Value = Tensor(framework, True, one_element=True)
        elif method in only_tensors:
            proof = Tensor(framework)
        elif (method in _MODULE_METHODS and not _has_positional(call)) or (method in _MODE_METHODS and _is_mode(call)):
            proof = Module(framework, wrappers=("?",))
        else:
            continue
        scope = model.scope_of(receiver)
        if scope is binding.scope and binding in scope.reaching(binding.key, receiver).bindings:
            if isinstance(proof, Tensor) and proof.one_element:
                return proof
            found = found or proof
    return found


def _method_call(model: "Model", name: cst.Name, key: str) -> tuple[cst.Call, cst.BaseExpression, str] | None:
    """The call ``key.method(...)`` whose receiver ends in this very name node."""
    receiver: cst.CSTNode = name
    parent = model.tree.parent(name)
    if "." in key:
        if not isinstance(parent, cst.Attribute) or parent.attr is not name or dotted_path(parent) != key:
            return None
        receiver, parent = parent, model.tree.parent(parent)
    if not isinstance(parent, cst.Attribute) or parent.value is not receiver:
        return None
    call = model.tree.parent(parent)
    if not isinstance(call, cst.Call) or call.func is not parent:
        return None
    assert isinstance(receiver, cst.BaseExpression)
    return call, receiver, parent.attr.value


def _is_plain_backward(call: cst.Call) -> bool:
    return all(arg.keyword is not None and arg.keyword.value in _BACKWARD_KEYWORDS for arg in call.args)


def _has_positional(call: cst.Call) -> bool:
    return any(arg.keyword is None for arg in call.args)


def _is_mode(call: cst.Call) -> bool:
    """``train()``, ``train(True)``, ``eval()``: with any other argument it is another library's method."""
    return not call.args or (
        len(call.args) == 1
        and isinstance(call.args[0].value, cst.Name)
        and call.args[0].value.value in ("True", "False")
    )
