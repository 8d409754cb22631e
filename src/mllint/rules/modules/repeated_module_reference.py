"""## What it does

Finds layers with weights that are put into a list several times over: `[nn.Linear(3, 3)] * 4`,
`[layer for _ in range(4)]`, or `layers.append(layer)` in a loop, where `layers` are those of a model or it is built of
them; and those that a loop adds to a module under one name after the other, `net.add_module(str(index), layer)`. And
shallow copies, `target = copy.copy(net)`, where the file takes them for two networks: it loads the state of one into
the other, or writes the weights of one into those of the other.

## Why is this bad?

Both make one layer and n references to it. The model has n layers by its printout and by the keys of its state dict,
and one set of weights: `parameters()` gives them once, all positions learn the same numbers, and a BatchNorm counts
every pass. `copy.copy` copies the attributes of a module, and with them the very tables of its parameters and parts: a
target network that is made so learns with the other one, and what is averaged into it is its own weights.

## Example

```python
from torch import nn

layers = nn.ModuleList([nn.Linear(3, 3)] * 4)
```

## Use instead

```python
from torch import nn

layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])
```

## What it leaves alone

Layers without weights (`nn.ReLU`, `nn.Dropout`), which may be used many times; lists whose elements are copied
(`copy.deepcopy`); code that says that it shares (`shared`, `tied` in the name or condition), or that makes such layers
one by one on another of several ways; loops that add others which they make anew. Shallow copies that share on
purpose, or may: of which the file does not write the weights of one into the other.

## Fix safety

Unsafe: the model gets n sets of weights. Checkpoints still load, since all keys were there before; the numbers that
are learned change.

## References

- [torch.nn.ModuleList](https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html)
- [paddle.nn.LayerList](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/LayerList_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, delete_before, insert_after, rename_attribute, replace_between
from mllint.rule import Finding, Rule
from mllint.semantic.expressions.truth import is_bool
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules.rounds import is_one_layer, repeated_each_round
from mllint.semantic.modules.shallow_copies import shallow_copy
from mllint.semantic.names.scopes import BindingKind
from mllint.syntax.shape import constant, last_word

rule = Rule(
    code="ML403",
    message="every position of this list holds the same layer, with one set of weights",
    help="make a layer of its own for each position: `[... for _ in range(n)]`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)

_LONGEST_MESSAGE = 88
_DISPLAYS = frozenset({cst.List, cst.Tuple})


def _may_repeat(node: cst.BinaryOperation) -> bool:
    """Whether a list or tuple is multiplied."""
    if node.operator.__class__ is not cst.Multiply:
        return False
    return node.left.__class__ in _DISPLAYS or node.right.__class__ in _DISPLAYS


@rule.on(cst.BinaryOperation, shape=_may_repeat)
def check_product(node: cst.BinaryOperation, context: Context) -> Iterator[Finding]:
    """Report ``[layer] * n``."""
    for display, times in ((node.left, node.right), (node.right, node.left)):
        if not isinstance(display, (cst.List, cst.Tuple)) or constant(times) in (0, 1):
            continue
        if not is_bool(context.model, times):  # `batch_norm * [layer]` adds the layer or leaves it out
            layers = [element.value for element in display.elements]
            if any(is_one_layer(context.model, layer, node) for layer in layers):
                yield _product(node, display, times, context)


def _product(
    node: cst.BinaryOperation, display: cst.List | cst.Tuple, times: cst.BaseExpression, context: Context
) -> Finding:
    is_one = len(display.elements) == 1
    message = None if is_one else "this list holds the same layers again and again, with one set of weights each"
    return Finding(node, message, fix=lambda: _one_each(node, display, times, context))


@rule.on(cst.CompFor)
def check_comprehension(clause: cst.CompFor, context: Context) -> Iterator[Finding]:
    """Report ``[layer for _ in range(n)]`` for a layer that was made before."""
    node = context.parent(clause)
    if not isinstance(node, (cst.ListComp, cst.GeneratorExp)) or not isinstance(node.elt, cst.Name):
        return
    kinds = {binding.kind for binding in context.bindings(node.elt)}
    made_before = bool(kinds) and kinds <= {BindingKind.ASSIGN, BindingKind.PARAMETER}
    if made_before and is_one_layer(context.model, node.elt, node):
        yield Finding(node, help="make the layer inside the comprehension")


@rule.on_method("append", "add_module", "add_sublayer", "register_module")
def check_rounds(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report ``layers.append(layer)`` in a loop that made neither the layer nor the list, which is or becomes a model's
    layers; and ``net.add_module(str(index), layer)`` in such a loop.
    """
    layer = repeated_each_round(context.model, call)
    if layer is not None and is_one_layer(context.model, layer, call, is_part=True):
        holder = "list" if last_word(call.func) == "append" else "module"
        yield Finding(
            call,
            f"every round adds the same layer to the {holder}, with one set of weights",
            "make the layer inside the loop",
        )


@rule.on_call("copy.copy")
def check_copy(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report a shallow copy of a module that is taken for another one."""
    pair = shallow_copy(context.model, call)
    if pair is not None and not is_test_code(context.model):
        message = f"`{pair[0]}` has the very weights of `{pair[1]}`: this copy is a shallow one"
        if len(message) > _LONGEST_MESSAGE:
            message = "this shallow copy has the very weights of the other module"
        yield Finding(call, message, f"write `copy.deepcopy({pair[1]})`", fix=lambda: _deep(call))


def _deep(call: cst.Call) -> NodeFix | None:
    """``copy.deepcopy`` in place of ``copy.copy``."""
    if not isinstance(call.func, cst.Attribute):
        return None
    return NodeFix("copy the weights too", (rename_attribute(call.func, "deepcopy"),), Applicability.UNSAFE)


def _one_each(
    node: cst.BinaryOperation, display: cst.List | cst.Tuple, times: cst.BaseExpression, context: Context
) -> NodeFix | None:
    """Write ``[layer for _ in range(n)]`` in place of ``[layer] * n``."""
    layer = display.elements[0]
    if (
        isinstance(display, cst.Tuple)
        or len(display.elements) > 1
        or isinstance(layer.comma, cst.Comma)
        or not isinstance(layer.value, cst.Call)
    ):
        return None
    rest = replace_between(display, node, "") if display is node.left else delete_before(node, display)
    looped = insert_after(layer.value, f" for _ in range({_bare(times, context)})")
    edits = (looped, rest) if display is node.left else (rest, looped)
    return NodeFix("make one layer a position", edits, Applicability.UNSAFE)


def _bare(node: cst.BaseExpression, context: Context) -> str:
    """The text of an expression without the parentheses around it."""
    text = context.text(node)
    return text[1:-1] if len(node.lpar) == 1 else text
