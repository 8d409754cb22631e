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

Tensors that may have a dimension: `x.data[0]` of a batch, `x.sum(0)[0]`, losses with `reduction="none"`, totals that
began as `torch.zeros(1)`, and what comes back from `DataParallel`. What a layer with weights gives and nothing
reduces: of a batch of one `backward()` takes it, but it keeps its dimensions. `loss[None]`, `loss[...]` and
`loss.view(1)[0]`, which work. Names that nothing in the file binds: reading them raises another error. Paddle code for
a target version below 2.5, or with `paddle.fluid`. Branches that a test of some version chooses:
`if version < "0.4": ...`.

One thing it does not leave alone though nothing is known of the value, or of what a 0-d one was multiplied with:
`loss.data[0]` and `x.sum().data[0]` (in Paddle `loss.numpy()[0]`), unless another library is seen to compute it, or a
function of the project that adds to what it has made with a dimension, or the file makes a loss of each item. What is
called a loss, is a sum of such, or reduced over everything there or where its name is bound, and read like that is the
old spelling of `item()`. So is a term of the sum on which `backward()` is called: with more than one number in it the
sum would have more, too.

## Fix safety

Safe: the expression raised before; unsafe for a project that allows a PyTorch before 0.4, which knows no `item()`.
`item()` where a number is wanted or the graph is cut anyway; elsewhere the index is dropped, and a tensor stays a
tensor.

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
from mllint.semantic.expressions.hints import (
    is_added_to_row,
    is_for_one_version,
    is_of_other_library,
    is_scaled_scalar,
    is_spelled_as_loss,
    is_spelled_as_reduction,
    makes_row_losses,
    without_steps,
)
from mllint.semantic.expressions.returns import gets_scalar
from mllint.semantic.graph.placement import wants_number
from mllint.semantic.graph.terms import is_term_of_spent
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import is_nowhere_bound
from mllint.semantic.values import Array, Output, Tensor, Value
from mllint.syntax.shape import has_first_index

rule = Rule(
    code="ML102",
    message="index into a 0-d tensor",
    help="write `.item()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)


@rule.on(cst.Subscript, shape=has_first_index)
def check(node: cst.Subscript, context: Context) -> Iterator[Finding]:
    """Report a subscript with a zero on what is certainly 0-d."""
    if _is_written(node, context):
        return
    if isinstance(node.value, cst.Attribute) and node.value.attr.value == "shape":
        return
    tensor, steps = without_steps(node.value)
    value, base = context.value(node.value), context.value(tensor)
    is_reduced = isinstance(base, Tensor) and base.scalar is None and gets_scalar(context.model, tensor)
    is_scalar = is_reduced or _is_scalar(value, base) or _is_of_one_element(tensor, base, steps, context)
    if not (is_scalar or _is_spelled_as_scalar(tensor, base, steps, context)):
        return
    is_of_old = _is_old_paddle((value, base), context) or is_for_one_version(context.model, node)
    if is_of_old or is_nowhere_bound(context.model, tensor):
        return
    is_early, trust = _is_before((1, 0), context), Applicability.SAFE
    message = "index into a 0-d tensor raises `IndexError`" + (" from PyTorch 1.0 on" if is_early else "")
    if _is_before((0, 4), context):
        trust = Applicability.UNSAFE  # there is no `item()`, and what is indexed has a dimension
    parent = context.parent(node)
    if isinstance(parent, cst.Subscript) and parent.value is node:
        yield Finding(node, message, f"write `{context.short_text(tensor)}` without the indexes")
    elif _is_number_meant(node, steps, context):
        written = f"`{context.short_text(tensor)}.item()`"
        yield Finding(node, message, f"write {written}", fix=lambda: _item(node, tensor, trust))
    else:
        fix = NodeFix("drop the index", (replace_between(node.value, node, ""),), trust)
        yield Finding(node, message, f"write `{context.short_text(node.value)}` without the index", fix=lambda: fix)


def _is_number_meant(node: cst.Subscript, steps: frozenset[str], context: Context) -> bool:
    """Whether the index is the old spelling of `item()`; else what is indexed is itself what was meant."""
    parent = context.parent(node)
    if isinstance(parent, cst.Attribute):  # loss[0].item()
        return False
    return bool(steps & {"data", "detach", "numpy"}) or wants_number(context.model, node)


def _is_scalar(value: Value | None, base: Value | None) -> bool:
    """Whether what is indexed is certainly 0-d; ``base`` is what it was before the steps."""
    if isinstance(value, Array):
        return value.scalar is True and isinstance(base, Tensor)
    return isinstance(value, Tensor) and value.scalar is True


def _is_of_one_element(tensor: cst.BaseExpression, base: Value | None, steps: frozenset[str], context: Context) -> bool:
    """Whether a tensor on which `backward()` is called is read through `.data`, the old spelling of `item()`.

    It has one element, but may have a dimension, as the losses of some other libraries have.
    """
    is_one = isinstance(base, Tensor) and base.one_element and base.scalar is not False
    return is_one and "data" in steps and not is_of_other_library(context.model, tensor)


def _is_spelled_as_scalar(
    tensor: cst.BaseExpression, base: Value | None, steps: frozenset[str], context: Context
) -> bool:
    """Whether a value of which nothing is known is spelled, and read, as a 0-d tensor was before it was 0-d."""
    framework = context.model.framework
    is_spent = isinstance(base, Tensor) and base.one_element and base.scalar is None  # by a `backward()`, no more known
    is_open = base is None or isinstance(base, Output) or is_spent
    if framework is None or ("data" if framework == "torch" else "numpy") not in steps:
        return False
    may_be = base is None or isinstance(base, Output) or (isinstance(base, Tensor) and base.scalar is None)
    if may_be and is_term_of_spent(context.model, tensor) and not is_added_to_row(context.model, tensor, steps=1):
        return not is_of_other_library(context.model, tensor)
    if not (is_open or is_scaled_scalar(context.model, tensor)):
        return False
    if is_spelled_as_loss(tensor):
        is_row = is_added_to_row(context.model, tensor) or makes_row_losses(context.model)
        return not is_row and not is_of_other_library(context.model, tensor)
    bound = [(binding.kind, binding.path, binding.value) for binding in context.model.reaching(tensor)]
    if any(kind is not BindingKind.ASSIGN or path for kind, path, _ in bound):
        return False
    spelled = [value for *_, value in bound] or [tensor]
    return all(value is not None and is_spelled_as_reduction(value, framework) for value in spelled)


def _is_old_paddle(values: tuple[Value | None, ...], context: Context) -> bool:
    """Whether what is indexed is of a Paddle in which it has a dimension. Of an array the tensor says whose it is."""
    framework = next((value.framework for value in values if isinstance(value, Tensor)), context.model.framework)
    if framework != "paddle":
        return False
    return (context.paddle_version or (2, 5)) < (2, 5) or context.model.imports("paddle.fluid")


def _is_written(node: cst.Subscript, context: Context) -> bool:
    """Whether the item is assigned or deleted; there is no `.item()` to write to."""
    parent = context.parent(node)
    if type(parent) is cst.AugAssign:
        return parent.target is node
    return type(parent) is cst.AssignTarget or type(parent) is cst.Del


def _is_before(version: tuple[int, int], context: Context) -> bool:
    """Whether the project is to run with a PyTorch older than that."""
    return context.model.framework != "paddle" and context.torch_version is not None and context.torch_version < version


def _item(node: cst.Subscript, tensor: cst.BaseExpression, trust: Applicability) -> NodeFix:
    opening, *closing = append_trailer(tensor, ".item()")
    if closing:  # the tensor needs parentheses of its own
        return NodeFix("use `item()`", (opening, replace_between(tensor, node, ").item()")), trust)
    return NodeFix("use `item()`", (replace_between(tensor, node, ".item()"),), trust)
