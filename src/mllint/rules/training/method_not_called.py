"""## What it does

Finds methods of modules, optimizers, schedulers, scalers and tensors that stand as a statement without being called:
`optimizer.step`, `model.eval`, `loss.backward`. And optimizers, schedulers and scalers that are called themselves,
`scheduler()` for `scheduler.step()`.

## Why is this bad?

Naming a method does nothing. Python raises no error: the optimizer takes no step, the gradients pile up, the model
stays in training mode. To call the object raises: "'StepLR' object is not callable", perhaps hours after the start.

## Example

```python
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for step in range(10):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).mean()
    loss.backward()
    optimizer.step
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for step in range(10):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).mean()
    loss.backward()
    optimizer.step()
```

## What it leaves alone

Attributes of things that are not known, properties, the last line of a notebook cell, and statements that stand there
for their error (`with pytest.raises(AttributeError): model.encoder`). Methods that only give something:
`model.parameters` as a statement loses no more than `model.parameters()` does. The schedulers of Paddle, which can be
called, and objects that may be something else by what some caller gives.

Something of unknown kind counts as an optimizer, scheduler, module or loss where the same file calls other methods of
it that only these have: `zero_grad()` and `param_groups`, `state_dict()`. `backward`, `zero_grad` and `clear_grad` of
something unknown are methods in any file that imports a framework, and so is `step` in a function that names
`backward`, unless the file has a property of that name or keeps something under it.

## Fix safety

Safe: the parentheses are added where the method can be called without arguments. The call that never happened happens
from then on, as was meant. Unsafe where the same method is also called in the same block, where it is not known whose
method it is, and for `backward` where no graph may be recorded. For a method that needs an argument (`scaler.step`)
there is no fix, nor for a second `backward`, which raises.

## References

- [torch.optim.Optimizer.step](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.step.html)
- [torch.nn.Module.eval](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval)
- [paddle.optimizer.Optimizer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/Optimizer_en.html)
"""

from collections.abc import Callable, Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, add_call_parentheses, insert_after
from mllint.rule import Finding, Rule
from mllint.semantic.expressions.called_objects import object_called
from mllint.semantic.graph.placement import wants_no_result
from mllint.semantic.names.named_methods import named_method
from mllint.syntax.shape import dotted_path, is_call

rule = Rule(
    code="ML304",
    message="a method is named but not called: nothing happens",
    help="add `()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_LONGEST_NAME = 45


@rule.on(cst.Module)
def check(module: cst.Module, context: Context) -> Iterator[Finding]:
    """Report every statement that is nothing but the name of a method."""
    for statement in context.nodes(cst.Expr):
        if statement.value.__class__ is not cst.Attribute:
            continue
        method = named_method(context.model, statement.value)
        if method is None or wants_no_result(context.model, statement):
            continue
        written = dotted_path(statement.value)
        shown = written if written is not None and len(written) <= _LONGEST_NAME else method.name
        is_beside = _is_called_beside(statement, statement.value, context)
        help_ = f"write `{shown}()`" if method.needs_nothing else f"call `{shown}` with its arguments"
        yield Finding(
            statement.value,
            f"`{shown}` is named but not called: nothing happens",
            f"take the line away: `{shown}` is called beside it" if is_beside else help_,
            fix=_fix(statement.value, context, method.is_known, is_beside) if method.needs_nothing else None,
        )


@rule.on(cst.Expr, mentions=("optim", "optimizer", "lr_scheduler", "GradScaler"), shape=is_call)
def check_object(statement: cst.Expr, context: Context) -> Iterator[Finding]:
    """Report every statement that calls an optimizer, scheduler or scaler itself."""
    call = statement.value
    called = object_called(context.model, call) if isinstance(call, cst.Call) else None
    if called is None or not isinstance(call, cst.Call) or wants_no_result(context.model, statement):
        return
    written = dotted_path(call.func) or "..."
    shown = written if len(written) <= _LONGEST_NAME else "this"
    article = "an" if called.kind == "optimizer" else "a"
    needs_nothing = called.kind == "optimizer" or (called.kind == "scheduler" and "Plateau" not in called.name)
    fix = NodeFix("call `step`", (insert_after(call.func, ".step"),), Applicability.UNSAFE)
    is_plain = needs_nothing and not call.args
    yield Finding(
        call,
        f"`{shown}` is {article} {called.kind} and no function: to call it raises",
        f"write `{shown}.step()`" if is_plain else f"call the method of `{shown}` that is meant",
        fix=(lambda: fix) if is_plain else None,
    )


def _fix(node: cst.Attribute, context: Context, is_known: bool, is_beside: bool) -> Callable[[], NodeFix] | None:
    is_backward = node.attr.value == "backward"
    if is_backward and is_beside:
        return None  # the second of two passes raises
    # Where no graph is recorded, `backward()` raises.
    may_raise = is_backward and context.model.gradients.off(node) is not False
    trust = Applicability.UNSAFE if may_raise or not is_known or is_beside else Applicability.SAFE
    return lambda: NodeFix("add `()`", add_call_parentheses(node), trust)


def _is_called_beside(statement: cst.Expr, node: cst.Attribute, context: Context) -> bool:
    """Whether the same method of the same thing is called in the same block: the second call may not be wanted."""
    block = context.parent(context.parent(statement) or statement)
    return any(
        dotted_path(call.func) == dotted_path(node)
        and block is context.parent(context.parent(context.statement(call)) or call)
        for call in context.model.calls_by_word.get(node.attr.value, ())
    )
