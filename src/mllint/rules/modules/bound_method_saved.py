"""## What it does

Finds checkpoints into which the method `state_dict` itself is written: `torch.save(model.state_dict, path)`.

## Why is this bad?

Without parentheses it is not the weights that are saved but a bound method, and with it a pickle of the whole model.
Nobody is told, neither by PyTorch nor by Paddle. The file fails when it is needed: `torch.load` refuses it (2.6 and
later), and `load_state_dict` of what comes back raises.

## Example

```python
import torch
from torch import nn

model = nn.Linear(3, 4)
torch.save({"model": model.state_dict, "epoch": 1}, "checkpoint.pt")
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(3, 4)
torch.save({"model": model.state_dict(), "epoch": 1}, "checkpoint.pt")
```

## What it leaves alone

An attribute `state_dict` that holds a dict. What is not known to be a module, an optimizer, a scheduler or a scaler,
unless the function also calls its `state_dict()` or `load_state_dict(...)`, the same dict holds `state_dict()` of
something else, or it is called `model`, `net`, `network`, `optimizer` or `scheduler`. Methods that are handed on to be
called.

## Fix safety

Safe: the parentheses are added.

## References

- [Saving and loading models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html)
- [paddle.save](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/save_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, add_call_parentheses
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints.saving import Part, may_save, parts, saved
from mllint.semantic.names.uses import reads, uses
from mllint.semantic.values import Function, Method, Module, Object
from mllint.syntax.shape import dotted_path, options_of, string_literal

rule = Rule(
    code="ML425",
    message="the method `state_dict` is saved instead of what it gives",
    help="call `state_dict()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_LONGEST_NAME = 32
_KEYS = frozenset({"model", "net", "network", "state_dict", "model_state_dict", "optimizer", "scheduler", "generator"})
_DICTS = frozenset({"builtins.dict", "collections.OrderedDict"})
# What is called so has no other `state_dict` than the method.
_NAMES = frozenset({"model", "net", "network", "optimizer", "scheduler"})
# Methods that only an object with a `state_dict()` has.
_STATEFUL = ("state_dict", "load_state_dict", "set_state_dict", "zero_grad", "clear_grad")


@rule.on(cst.Call, mentions=("state_dict",), shape=may_save)
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report every part of what a call saves that is such a method."""
    what = saved(context.model, call)
    for part in () if what is None else parts(context.model, what.node):
        for node in _methods(part.node, context):
            if not _is_called_later(part, context):
                yield from _finding(node)


@rule.on(cst.DictElement, mentions=("state_dict",))
def check_entry(element: cst.DictElement, context: Context) -> Iterator[Finding]:
    """Report such a method beside states, or under a key that says that it is one: the dict is saved somewhere."""
    for node in _methods(element.value, context):
        is_state = string_literal(element.key) in _KEYS and isinstance(context.value(node), Method)
        if is_state or _has_called_neighbour(node, context):
            yield from _finding(node)


@rule.on_call("builtins.dict", "collections.OrderedDict")
def check_keyword(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report such a method beside the states of ``dict(model=..., optimizer=...)``."""
    for arg in call.args:
        for node in () if arg.keyword is None else _methods(arg.value, context):
            if _has_called_neighbour(node, context):
                yield from _finding(node)


def _methods(node: cst.BaseExpression, context: Context) -> Iterator[cst.Attribute]:
    """The methods `state_dict` one of which an expression is, which also has one of them where there is a choice:
    `net.module.state_dict if parallel else net.state_dict`.
    """
    found = [item for item in options_of(node) if isinstance(item, cst.Attribute) and item.attr.value == "state_dict"]
    if any(_is_method(item, context) for item in found):
        yield from found


def _is_method(node: cst.Attribute, context: Context) -> bool:
    match context.value(node):
        case Method(receiver=Module() | Object()):
            return True
        case Function(receiver=receiver):
            return receiver is not None
        case None:
            return _is_stateful(node.value, context)
    return False


def _is_stateful(owner: cst.BaseExpression, context: Context) -> bool:
    """Whether the file uses an unknown thing as an object with a `state_dict()`, and sets no such attribute.

    Where some other object of the file has such an attribute, a network or optimizer beside a state is none of these.
    """
    key = dotted_path(owner)
    if key is None:
        return False
    is_named, has_neighbour = key.rpartition(".")[2] in _NAMES, _has_called_neighbour(owner, context)
    if any(
        isinstance(target.target, cst.Attribute) and target.target.attr.value == "state_dict"
        for target in context.nodes(cst.AssignTarget)
    ):
        return is_named and has_neighbour
    if is_named or has_neighbour:
        return True
    read = (node for method in _STATEFUL for node in reads(context.model, f"{key}.{method}"))
    return any(
        context.model.tree.call_of(node) is not None and context.function(node) is context.function(owner)
        for node in read
    )


def _has_called_neighbour(owner: cst.BaseExpression, context: Context) -> bool:
    """Whether another value of the same dict is a call of some `state_dict()`."""
    display = next((item for item in context.ancestors(owner) if isinstance(item, (cst.Dict, cst.Call))), None)
    values: list[cst.BaseExpression] = []
    if isinstance(display, cst.Dict):
        values = [element.value for element in display.elements]
    elif display is not None and context.qualified_name(display.func) in _DICTS:
        values = [arg.value for arg in display.args if arg.keyword is not None]
    callees = (value.func for value in values if isinstance(value, cst.Call))
    return any(isinstance(callee, cst.Attribute) and callee.attr.value == "state_dict" for callee in callees)


def _is_called_later(part: Part, context: Context) -> bool:
    """Whether a name that holds the method is called somewhere: then parentheses here would be one pair too many."""
    held = [binding for binding in part.bindings if binding.value is part.node]
    return any(
        context.model.tree.call_of(node) is not None for binding in held for node in uses(context.model, binding)
    )


def _finding(node: cst.Attribute) -> Iterator[Finding]:
    path = dotted_path(node) or "state_dict"
    shown = path if len(path) <= _LONGEST_NAME else "state_dict"
    yield Finding(
        node,
        f"`{shown}` is saved without being called: the file gets a method",
        f"write `{path}()`",
        fix=lambda: NodeFix("add `()`", add_call_parentheses(node)),
    )
