"""## What it does

Finds parameters that are frozen in the middle of a training, and that their optimizer goes on moving because their
gradients are left at zero instead of `None`.

## Why is this bad?

An optimizer skips a parameter that has no gradient. With a gradient of zero it does not skip it: weight decay pulls it
to zero, and momentum and the running averages of Adam move it on, step after step. Gradients are zero, not `None`,

- in PyTorch after `zero_grad(set_to_none=False)`, which was the default before 2.0, and after
  `parameter.grad.zero_()`. `requires_grad = False` does not help: the optimizer looks at the gradient alone;
- in Paddle after `clear_grad()`. Parameters with `stop_gradient = True` are skipped there whatever their gradient, but
  not those that are only called under `no_grad`.

## Example

```python
import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for epoch in range(10):
    if epoch == 5:
        model[0].requires_grad_(False)
    optimizer.zero_grad(set_to_none=False)
    model(torch.rand(8, 3)).mean().backward()
    optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for epoch in range(10):
    if epoch == 5:
        model[0].requires_grad_(False)
    optimizer.zero_grad(set_to_none=True)
    model(torch.rand(8, 3)).mean().backward()
    optimizer.step()
```

## What it leaves alone

Parameters that are frozen before the first step: they never have a gradient, and weight decay does not reach them.
Plain SGD, which a gradient of zero does not move. Optimizers that are made anew, or are not given these parameters as
far as the file shows. Files that thaw parameters again, or set `grad` to `None` themselves.

`zero_grad()` without an argument counts as the target version has it: the lowest version of torch that the project
allows, or the newest.

## Fix safety

Unsafe: the gradients are set to `None`. Code that reads them after they were cleared would find no zeros there.

## References

- [torch.optim.Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
- [paddle.optimizer.Optimizer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/Optimizer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeEdit, NodeFix, replace, replace_between
from mllint.rule import Finding, Rule
from mllint.semantic.graph.frozen_updates import StillUpdated, cut_in_later_loop, cut_path, frozen_path, still_updated
from mllint.semantic.values import Module
from mllint.syntax.walk import subtree

rule = Rule(
    code="ML213",
    message="the optimizer moves frozen parameters on: their gradients are zero, not `None`",
    help="set the gradients to `None`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)


@rule.on(cst.Assign, mentions=("requires_grad",))
def check_flag(statement: cst.Assign, context: Context) -> Iterator[Finding]:
    """Report ``parameter.requires_grad = False`` in the middle of a training."""
    yield from _frozen(statement, context)


@rule.on_method("requires_grad_")
def check_method(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report ``model.requires_grad_(False)`` in the middle of a training."""
    yield from _frozen(call, context)


@rule.on(cst.With, mentions=("no_grad",))
def check_cut(statement: cst.With, context: Context) -> Iterator[Finding]:
    """Report the call of a module under ``no_grad`` from some epoch on, or in a later loop."""
    if not any(isinstance(ancestor, (cst.If, cst.For, cst.While)) for ancestor in context.ancestors(statement)):
        return
    model = context.model
    for call in (item for item in subtree(statement.body) if type(item) is cst.Call):
        is_module = isinstance(context.value(call.func), Module)
        path = cut_path(model, call) or cut_in_later_loop(model, call) if is_module else None
        if path is not None:
            yield from _finding(call, path, context)


def _frozen(statement: cst.Assign | cst.Call, context: Context) -> Iterator[Finding]:
    path = frozen_path(context.model, statement) if context.model.framework == "torch" else None
    if path is not None:
        yield from _finding(statement, path, context)


def _finding(node: cst.Assign | cst.Call, path: str, context: Context) -> Iterator[Finding]:
    found = still_updated(context.model, node, path, context.torch_version)
    if found is not None:
        is_paddle = found.optimizer.framework == "paddle"
        text = "clear_grad(set_to_zero=False)" if is_paddle else "zero_grad(set_to_none=True)"
        yield Finding(node, help=f"write `optimizer.{text}`", fix=lambda: _fix(found))


def _fix(found: StillUpdated) -> NodeFix | None:
    edits: list[NodeEdit] = []
    for call in found.zeroing:
        is_paddle = isinstance(call.func, cst.Attribute) and call.func.attr.value != "zero_grad"
        option, value = ("set_to_zero", "False") if is_paddle else ("set_to_none", "True")
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "zero_":
            return None
        if len(call.args) == 1:
            edits.append(replace(call.args[0].value, value))
        elif not call.args:
            edits.append(replace_between(call.func, call, f"({option}={value})"))
        else:
            return None
    return NodeFix("set the gradients to `None`", tuple(edits), Applicability.UNSAFE)
