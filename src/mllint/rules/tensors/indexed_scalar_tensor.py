"""## What it does

Finds an index into a tensor that has no dimensions: `loss.data[0]`, `loss[0]`, `loss.numpy()[0]`, where `loss` is the
result of a loss or of a reduction over all elements.

## Why is this bad?

Since PyTorch 0.4 and Paddle 2.5 such a result is 0-d, and indexing it raises an `IndexError`. `loss.data[0]` is how the
number was read before; today it is `loss.item()`.

## Example

```python
import torch
from torch import nn

criterion = nn.MSELoss()
loss = criterion(torch.rand(3), torch.rand(3))
print(loss.data[0])
```

## Use instead

```python
import torch
from torch import nn

criterion = nn.MSELoss()
loss = criterion(torch.rand(3), torch.rand(3))
print(loss.item())
```

## What it leaves alone

Tensors that may have a dimension: `x.data[0]` of a batch, `x.sum(0)[0]`, losses with `reduction="none"`, and what comes
back from `DataParallel`. `loss[None]`, `loss[...]` and `loss.view(1)[0]`, which work. Paddle code for a target version
below 2.5.

## Fix safety

Safe: the expression raised before.

## References

- [PyTorch 0.4 migration guide](https://pytorch.org/blog/pytorch-0_4_0-migration-guide/)
- [torch.Tensor.item](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html)
- [0-d tensors in Paddle](https://github.com/PaddlePaddle/Paddle/releases/tag/v2.5.0)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, append_trailer, replace_between
from mllint.rule import Finding, Rule
from mllint.semantic.values import Array, Tensor, Value
from mllint.syntax.shape import integer_literal, subscript_index

rule = Rule(
    code="ML102",
    message="index into a 0-d tensor",
    help="write `.item()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

# What `.item()` makes needless between the tensor and the index.
_STEPS = frozenset({"data", "cpu", "detach", "numpy", "clone"})


@rule.on(cst.Subscript)
def check(node: cst.Subscript, context: Context) -> Iterator[Finding]:
    """Report a subscript with an integer on what is certainly 0-d."""
    if integer_literal(subscript_index(node)) is None or _is_written(node, context):
        return
    value = context.value(node.value)
    if not _is_scalar(node.value, value, context) or _is_old_paddle(value, context):
        return
    tensor = _without_steps(node.value)
    text = context.text(tensor).strip() if isinstance(tensor, (cst.Name, cst.Attribute)) else "..."
    yield Finding(
        node,
        "index into a 0-d tensor raises `IndexError`",
        f"write `{text}.item()`",
        fix=lambda: _fix(node, tensor),
    )


def _is_scalar(node: cst.BaseExpression, value: Value | None, context: Context) -> bool:
    """Whether the indexed expression is certainly 0-d.

    A tensor on which `backward()` is called has one element, but may have a dimension. Read through `.data` it is the
    old spelling of `item()`.
    """
    if isinstance(value, Array):
        return value.scalar is True and isinstance(context.value(_without_steps(node)), Tensor)
    if not isinstance(value, Tensor) or value.or_number:
        return False
    return value.scalar is True or (value.one_element and isinstance(node, cst.Attribute) and node.attr.value == "data")


def _is_old_paddle(value: Value | None, context: Context) -> bool:
    framework = value.framework if isinstance(value, Tensor) else context.model.framework
    return framework == "paddle" and (context.paddle_version or (2, 5)) < (2, 5)


def _is_written(node: cst.Subscript, context: Context) -> bool:
    """Whether the item is assigned or deleted; there is no `.item()` to write to."""
    parent = context.parent(node)
    if isinstance(parent, cst.AugAssign):
        return parent.target is node
    return isinstance(parent, (cst.AssignTarget, cst.Del))


def _without_steps(node: cst.BaseExpression) -> cst.BaseExpression:
    """``loss`` of ``loss.data.cpu()``."""
    while True:
        if isinstance(node, cst.Call) and not node.args and isinstance(node.func, cst.Attribute):
            callee = node.func
        elif isinstance(node, cst.Attribute) and node.attr.value == "data":
            callee = node
        else:
            return node
        if callee.attr.value not in _STEPS:
            return node
        node = callee.value


def _fix(node: cst.Subscript, tensor: cst.BaseExpression) -> NodeFix:
    opening, *closing = append_trailer(tensor, ".item()")
    if closing:  # the tensor needs parentheses of its own
        return NodeFix("use `item()`", (opening, replace_between(tensor, node, ").item()")))
    return NodeFix("use `item()`", (replace_between(tensor, node, ".item()"),))
