"""## What it does

Finds a tensor that needs a gradient and is changed in place where gradients are recorded: `w -= lr * w.grad`,
`self.weight[0] = 0`, `w.mul_(2)`, `parameter.clamp_(0)`. In PyTorch, from 1.8 on, also one that is changed through a
view with a name of its own: `b = layer.bias.view(3, -1)`, `b[:, 1] += 1`; and one that is changed where it is made:
`torch.zeros(3, requires_grad=True).normal_()`.

## Why is this bad?

It raises: "a leaf Variable that requires grad is being used in an in-place operation" in PyTorch, "Leaf Var that
doesn't stop gradient can't use inplace strategy" in Paddle.

## Example

```python
import torch

w = torch.zeros(3, requires_grad=True)
(w * torch.rand(3)).sum().backward()
w -= 0.1 * w.grad
```

## Use instead

```python
import torch

w = torch.zeros(3, requires_grad=True)
(w * torch.rand(3)).sum().backward()
with torch.no_grad():
    w -= 0.1 * w.grad
```

## What it leaves alone

Everything under `no_grad`, and functions that may be called there: constructors of classes that are handed on as
arguments, functions that a table keeps, and what `forward` does only where it is given an option that asks for it.
Methods that the project calls on what it read from a file, by themselves or by another method of a module: `fuse()`.
`w.data`, `w.detach()` and `torch.nn.init`, which switches gradients off itself. Tensors that are frozen somewhere in
the file. In Paddle `w -= step`, which makes a new tensor (ML207), and the methods that do not check: `set_value`,
`copy_`, `exponential_`; and items, `w[0] = 1`, in projects that allow Paddle 2.1, of which 2.1.0 does not check either.

## Fix safety

Unsafe: the statement is put under `no_grad`. If its own gradient was wanted, it must not be in place instead. No fix is
offered where the function gives the tensor to NumPy below, which raises as long as it needs a gradient: there a copy,
`x.detach().clone()`, is what mends both. Nor where a new tensor is filled with results, `out[i] = net(x[i])`, and goes
on from there: what is written brings its gradients, and under `no_grad` they would be lost without an error; the flag
of the new tensor has to go.

## References

- [torch.no_grad](https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html)
- [paddle.no_grad](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/no_grad_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, insert_before
from mllint.rule import Finding, Rule
from mllint.semantic.graph.data_sources import is_setting
from mllint.semantic.graph.leaves import becomes_parameter_again, changed_where_made, is_changeable_leaf, viewed
from mllint.semantic.graph.output_buffers import filled, goes_to_numpy
from mllint.semantic.graph.placement import wants_no_result
from mllint.semantic.names.writes import Write, is_basic_index, may_write_to_attribute, may_write_to_name, write
from mllint.semantic.values import Number, Tensor
from mllint.syntax.shape import changes_what_is_made, dotted_path, subscript_index

rule = Rule(
    code="ML208",
    message="a leaf that needs a gradient is changed in place",
    help="do it under `no_grad()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)

# Methods of Paddle that write without looking at the flag.
_UNCHECKED = frozenset({"exponential_()", "copy_()", "reshape_()"})


# What a name stands for was made in a file that says so; the weights of a layer need no word.
@rule.on(
    cst.Assign,
    cst.AugAssign,
    cst.Expr,
    mentions=("requires_grad", "stop_gradient", "Parameter", "create_parameter", ".grad"),
    shape=may_write_to_name,
)
@rule.on(
    cst.Assign,
    cst.AugAssign,
    cst.Expr,
    mentions=("requires_grad", "stop_gradient", "Parameter", "create_parameter", "grad", "weight", "bias"),
    shape=may_write_to_attribute,
)
def check(statement: cst.Assign | cst.AugAssign | cst.Expr, context: Context) -> Iterator[Finding]:
    """Report a statement that changes a leaf in place."""
    change = write(context.model, statement)
    leaf = None if change is None else _written(change, context)
    if change is None or leaf is None:
        return
    source = viewed(context.model, leaf) if isinstance(leaf, cst.Name) and _views_are_checked(context) else None
    if source is not None and (
        is_changeable_leaf(context.model, source, statement)
        or becomes_parameter_again(context.model, source, statement)
    ):
        leaf = source
    elif not is_changeable_leaf(context.model, leaf, statement):
        return
    if context.model.gradients.off(statement) is not False or wants_no_result(context.model, statement):
        return
    value = context.value(leaf)
    framework = value.framework if isinstance(value, Tensor) else context.model.framework or "torch"
    if framework == "paddle" and (
        change.how == "-="
        or change.how in _UNCHECKED
        or leaf is not change.target
        or (change.how == "[...] =" and _items_are_unchecked(context))
    ):
        return
    name = context.text(leaf)
    message = f"`{name}` is a leaf that needs a gradient: changing it in place raises"
    message = message if len(message) <= 88 else "a leaf that needs a gradient is changed in place: this raises"
    if framework == "torch" and goes_to_numpy(context.model, leaf, statement):
        yield Finding(statement, message, f"begin with `{name} = {name}.detach().clone()`: NumPy takes no other tensor")
        return
    is_filled = filled(context.model, leaf, statement)
    if is_filled is not None:
        yield Finding(statement, message, _without_flag(framework, is_sure=is_filled == "with its graph"))
        return
    yield Finding(
        statement,
        message,
        f"put it under `with {framework}.no_grad():`",
        fix=lambda: _under_no_grad(statement, framework, context),
    )


@rule.on(cst.Call, mentions=("requires_grad", "Parameter"), shape=changes_what_is_made)
def check_made(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report ``torch.zeros(3, requires_grad=True).normal_()``."""
    method = changed_where_made(context.model, call)
    if method is not None:
        message = f"`{method}` changes a leaf in place that needs a gradient: that raises"
        yield Finding(call, message, "fill the tensor first, and let it ask for gradients then")


def _items_are_unchecked(context: Context) -> bool:
    """Whether a Paddle is allowed that writes an item of a leaf: the check came with 2.1.1 (Paddle#32972)."""
    return context.paddle_version is not None and context.paddle_version < (2, 2)


def _without_flag(framework: str, *, is_sure: bool) -> str:
    flag = "stop_gradient" if framework == "paddle" else "requires_grad"
    if is_sure:
        return f"leave out `{flag}`: what is written brings its gradients, which `no_grad()` would cut off"
    return f"leave out `{flag}` if what is written has gradients, or else put it under `with {framework}.no_grad():`"


def _views_are_checked(context: Context) -> bool:
    """Whether a change of a view of a leaf raises: not in old versions, nor in Paddle."""
    return context.model.framework != "paddle" and (context.torch_version or (2, 0)) >= (1, 8)


def _written(change: Write, context: Context) -> cst.BaseExpression | None:
    """The tensor whose numbers change; a view shares them."""
    node = change.target
    while isinstance(node, cst.Subscript) and (is_basic_index(node) or _is_of_number(node, context)):
        node = node.value
    return node if isinstance(node, (cst.Name, cst.Attribute)) and not change.by_initialiser else None


def _is_of_number(node: cst.Subscript, context: Context) -> bool:
    """Whether the one index has a name, and is a number: ``weight[padding]`` after ``padding=0``."""
    index = subscript_index(node)
    if index is None or dotted_path(index) is None:
        return False
    bindings = context.bindings(index)
    is_given = bool(bindings) and all(is_setting(context.model, binding) for binding in bindings)
    return is_given or isinstance(context.value(index), Number)


def _under_no_grad(statement: cst.BaseSmallStatement, framework: str, context: Context) -> NodeFix | None:
    """Put the one statement of a line into a `with` block; what stands in brackets may keep its indentation."""
    line = context.parent(statement)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1:
        return None
    name, needed = context.need_import(framework)
    indent = context.line_break(statement) + context.model.tree.module.default_indent
    edits = [insert_before(statement, f"with {name}.no_grad():{indent}"), *([needed] if needed else [])]
    return NodeFix("put it under `no_grad()`", tuple(edits), Applicability.UNSAFE)
