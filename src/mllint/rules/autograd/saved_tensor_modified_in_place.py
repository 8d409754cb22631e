"""## What it does

Finds a tensor that `backward()` needs and that is changed in place before: the result of an operation that keeps its
result (`relu`, `sigmoid`, `softmax`, `exp`, `sqrt`, ...), or an input of one that keeps its inputs (`conv(x)`,
`linear(x)`, `x * w`, `x ** 2`, `x.log()`, ...), also in the very statement that changes it: `x.mul_(sigmoid(conv(x)))`.
Whether a block of the project ends in its activation, the options tell with which it is built, and a layer counts that
the class itself names for one of the ways in which it may be built, `norm or nn.BatchNorm2d`; a caller in the same
file may give the result, and an option of the module may ask for the operation. What a layer with weights is given it
keeps whatever that is: `x += self.conv(x)` in any block, also under another name, `skip = x`. In PyTorch also one of
the views that `chunk`, `split` and `unbind` give.

## Why is this bad?

`backward()` raises: "one of the variables needed for gradient computation has been modified by an inplace operation"
in PyTorch, "Tensor ... used in gradient computation has been modified by an inplace operation" in Paddle. A change of
one of several views raises at once, if a graph is recorded.

## Example

```python
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        out = torch.relu(self.conv(x))
        out += x
        return out
```

## Use instead

```python
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        out = torch.relu(self.conv(x))
        out = out + x
        return out
```

## What it leaves alone

Results that nothing keeps: of a convolution, a linear or normalization layer, a sum, a concatenation. Copies
(`x.clone()`) and what is written through `x.data`, which no check sees. A dropout of which nobody in sight says that
its rate is more than zero. In Paddle what a normalization is given of a part that does not lie together, `x[:, 0:1]`,
and what a method on a part of a tensor takes in, `x[0].add_(linear(x[1]))`: no gradient goes through that. Everything
without gradients, also where all who call the function have switched them off, what only runs in evaluation or under a
flag that speaks of exporting, tracing or memory, or under one, off by default, for which none but others than `forward`
ask, and tests. Tensors of which it is not certain that they hang on a graph: what a function or module is given, unless
somebody gives it what surely does, in its file or in one that imports it (tests do not count), a layer with weights
stands before it in a list or `Sequential`, or `backward()` is called on a loss that is computed from nothing else. In
Paddle `x += y`, which makes a new tensor. Changes behind the last `backward()` of their function, and those of a leaf,
of which ML208 speaks.

## Fix safety

Unsafe: `x += y` becomes `x = x + y`. Whoever holds the same tensor under another name no longer sees the change.

## References

- [In-place correctness checks](https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks)
- [paddle.Tensor.inplace_version](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, replace
from mllint.rule import Finding, Rule
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.graph.in_place import WORDS, may_work_in_place
from mllint.semantic.graph.leaves import is_changeable_leaf
from mllint.semantic.modules.saved_changes import Kept, kept_and_changed, kept_and_changed_by_call
from mllint.semantic.names.writes import may_write_to_name, write
from mllint.semantic.training.callers import runs_without_gradients_elsewhere

rule = Rule(
    code="ML215",
    message="a tensor that `backward()` needs is changed in place",
    help="compute a new tensor instead",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    by_default=False,
    applicability=Applicability.UNSAFE,
)

_GRAPH = ("Module", "Layer", "forward", "backward", "requires_grad", "stop_gradient", "Parameter", "create_parameter")

_OPERATORS = {
    cst.AddAssign: "+", cst.SubtractAssign: "-", cst.MultiplyAssign: "*", cst.DivideAssign: "/", cst.PowerAssign: "**",
}  # fmt: skip


@rule.on(cst.Assign, cst.AugAssign, cst.Expr, mentions=_GRAPH, shape=may_write_to_name)
def check(statement: cst.Assign | cst.AugAssign | cst.Expr, context: Context) -> Iterator[Finding]:
    """Report a statement that changes a tensor which something has kept."""
    kept = kept_and_changed(context.model, statement)
    if kept is not None and _may_raise(statement, context) and not _is_refused(statement, context):
        yield _finding(statement, kept, context)


@rule.on(cst.Call, mentions=WORDS, shape=may_work_in_place)
def check_call(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report an activation in place, or what a layer that works in place is given."""
    for place, kept in kept_and_changed_by_call(context.model, call):
        if _may_raise(place, context):
            yield _finding(place, kept, context)


def _may_raise(place: cst.CSTNode, context: Context) -> bool:
    """Whether a gradient may be asked for: not in a test, which would not pass, nor where all callers want none."""
    return not (is_test_code(context.model) or runs_without_gradients_elsewhere(context.model, place))


def _is_refused(statement: cst.Assign | cst.AugAssign | cst.Expr, context: Context) -> bool:
    """Whether the change itself raises, since the tensor is a leaf (ML208), before any `backward()` can."""
    change = write(context.model, statement)
    if change is None or context.model.gradients.off(statement) is not False:
        return False
    return is_changeable_leaf(context.model, change.target, statement)


def _finding(node: cst.BaseSmallStatement | cst.Call, kept: Kept, context: Context) -> Finding:
    what = f"`{kept.tensor}`" if kept.tensor else "its input"
    message = f"{what}, which `{kept.name}` keeps for `backward()`, is changed in place: that raises"
    if kept.is_view:
        message = f"{what} is one of the views that `{kept.name}` gives: changing it in place raises"
    fix = (lambda: _out_of_place(node, context)) if isinstance(node, cst.AugAssign) else None
    return Finding(node, message if len(message) <= 88 else None, fix=fix)


def _out_of_place(statement: cst.AugAssign, context: Context) -> NodeFix | None:
    """``x = x + y`` of ``x += y``."""
    operator = _OPERATORS.get(type(statement.operator))
    if operator is None or not isinstance(statement.target, cst.Name):
        return None
    target, value = context.text(statement.target), context.text(statement.value)
    if (
        not isinstance(statement.value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BaseNumber))
        and operator != "+"
    ):
        value = f"({value})"
    edit = replace(statement, f"{target} = {target} {operator} {value}")
    return NodeFix("compute a new tensor", (edit,), Applicability.UNSAFE)
