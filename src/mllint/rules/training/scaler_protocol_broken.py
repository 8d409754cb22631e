"""## What it does

Finds four ways in which the calls of a loss scaler do not belong together:

- `scaler.scale(loss).backward()`, and then `optimizer.step()` instead of `scaler.step(optimizer)`, also where a test
  leaves the `unscale_()` between them out: `if max_norm > 0:`;
- `scaler.step(optimizer)` in a training loop without `scaler.update()`, or in rounds in which a test leaves it out;
- `scaler.step(optimizer)` after `backward()` of a loss that the scaler did not scale;
- `scaler.unscale_(optimizer)` twice, or after the step, without `scaler.update()` in between, or in rounds in which a
  test leaves the update out: `if torch.isfinite(norm): scaler.step(optimizer); scaler.update()`; also where each of
  the calls stands under a test of its own, and both may hold: `if log_norms:`, and then `if max_norm > 0:`.

## Why is this bad?

The first step is as many times too large as the scaler's factor says, 65536 times in the beginning: the weights are
lost, and nothing is raised. Adam and its like divide the factor out again, but with them, too, the step is taken where
the scaled gradients have overflowed, which a scaler would leave out: one infinite gradient, and the weights are NaN.
Without `update()` the second `step()` raises a `RuntimeError`, as the second `unscale_()`
does. A loss that was not scaled raises an `AssertionError` in PyTorch if the scaler has scaled nothing yet; otherwise,
and always in Paddle, its gradients are divided by the factor, and the model hardly learns.

## Example

```python
import torch
from torch import nn

network = nn.Linear(3, 1).cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for _ in range(100):
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        loss = network(torch.rand(8, 3, device="cuda")).square().mean()
    scaler.scale(loss).backward()
    optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

network = nn.Linear(3, 1).cuda()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for _ in range(100):
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        loss = network(torch.rand(8, 3, device="cuda")).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
```

## What it leaves alone

`optimizer.step()` after `scaler.unscale_(optimizer)`, unless a test that does not ask for the scaler leaves that out;
it is left alone in the branch that does not scale, too; an update that only a
setting leaves out, `if args.amp:`, or a test of the same words as the one around the call; optimizers of a class of
the project; `update()` in a function or method of the project that is called in the loop, and of anything in the file
that is called as the scaler is, unless that is made elsewhere; calls of `unscale_()` under two tests that ask for the
same thing, or of which one asks for what is bound below the other, or for what a call gives; Paddle's
`scaler.minimize(optimizer, scaled)`, which steps and updates, and its scalers with `use_dynamic_loss_scaling=False`,
which need no update; losses that a function gives which cannot be looked into, unless the scaler is made in sight and
scales nothing anywhere; scalers made with `enabled=False`, those that a setting may switch off in files
that compute in bfloat16 only, and everything behind a call that is given the scaler or the optimizer and cannot be
looked into; and tests of what raises (`with pytest.raises(...)`).

A scaler or an optimizer that is only known by its name, because it is a parameter of a function that nobody in the file
calls, counts as one.

## Fix safety

Unsafe: what the training does changes. The step goes through the scaler, `update()` is put behind the step, or the
loss is scaled where `backward()` is called. For `unscale_()` there is no fix: which of the calls is meant cannot be
told.

## References

- [PyTorch: automatic mixed precision examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
- [paddle.amp.GradScaler](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/amp/GradScaler_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, insert_after, replace, wrap
from mllint.rule import Finding, Rule
from mllint.semantic.graph.placement import wants_no_result
from mllint.semantic.training import partly_unscaled, scaling, unscaling

rule = Rule(
    code="ML317",
    message="the calls of the loss scaler do not belong together",
    help="call `scaler.scale(loss).backward()`, `scaler.step(optimizer)` and `scaler.update()`, in this order",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)


@rule.on_method("step", "minimize")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the step that is taken with the wrong gradients, or without an update behind it."""
    model = context.model
    if not scaling.has_scaler(model, call) or _wants_error(call, context):
        return
    if scaling.steps_past_scaler(model, call):
        is_taken_again = scaling.is_taken_again(model, call)
        instead = "write `scaler.step(optimizer)` and `scaler.update()` instead"
        yield Finding(
            call,
            "the gradients are still scaled, and this step is taken also where they have overflowed",
            "leave it out: the scaler's `minimize()` below takes the step" if is_taken_again else instead,
            fix=None if is_taken_again else lambda: _step_through_scaler(call, context),
        )
    elif partly_unscaled.steps_where_not_unscaled(model, call):
        yield Finding(
            call,
            "where the test leaves `unscale_()` out, the gradients are still scaled here",
            "write `scaler.step(optimizer)` instead: it divides what is not divided yet",
            fix=lambda: _step_through_scaler(call, context),
        )
    elif scaling.steps_unscaled_loss(model, call):
        yield Finding(
            call,
            "the scaler did not scale the loss of this step: it raises, or divides the gradients",
            "write `scaler.scale(loss).backward()`",
            fix=lambda: _scale_loss(call, context),
        )
    elif (missing := scaling.misses_update(model, call)) is not None:
        is_never = missing == "never"
        yield Finding(
            call,
            "the scaler's `update()` is never called: the second `step()` raises"
            if is_never
            else "the scaler's `update()` is left out in some rounds: the next `step()` raises",
            "call `scaler.update()` after the step" if is_never else "call `scaler.update()` in every round that steps",
            fix=(lambda: _update(call, context)) if is_never else None,
        )


@rule.on_method("unscale_")
def check_unscaling(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the second of two calls."""
    when = unscaling.unscales_again(context.model, call)
    if when is None or _wants_error(call, context):
        return
    yield Finding(
        call,
        "`unscale_()` is called again where the tests around both calls hold: it raises"
        if when == "where both tests hold"
        else "`unscale_()` is called again, or after the step, before `update()`: it raises",
        "call `unscale_()` only in rounds that step, and `scaler.update()` in each of them"
        if when == "in later rounds"
        else "call `unscale_()` once for an optimizer, right before its gradients are used",
    )


def _wants_error(call: cst.Call, context: Context) -> bool:
    """Whether a test shows that the call raises."""
    statement = context.statement(call)
    return isinstance(statement, cst.BaseSmallStatement) and wants_no_result(context.model, statement)


def _step_through_scaler(step: cst.Call, context: Context) -> NodeFix | None:
    statement = context.statement(step)
    backward = scaling.backward_of(context.model, step)
    if (
        backward is None
        or step.args
        or not isinstance(step.func, cst.Attribute)
        or statement is not context.parent(step)
    ):
        return None
    match backward.func:
        case cst.Attribute(value=cst.Call(func=cst.Attribute(value=scaler))):
            text, optimizer = context.text(scaler), context.text(step.func.value)
        case _:
            return None
    line_break = context.line_break(statement)
    update = "" if scaling.is_updated(context.model, step) else f"{line_break}{text}.update()"
    edit = replace(step, f"{text}.step({optimizer}){update}")
    return NodeFix(f"step through `{text}`", (edit,), Applicability.UNSAFE)


def _scale_loss(step: cst.Call, context: Context) -> NodeFix | None:
    backward = scaling.backward_of(context.model, step)
    if backward is None or not isinstance(step.func, cst.Attribute) or step.func.attr.value != "step":
        return None
    if not isinstance(backward.func, cst.Attribute):
        return None
    edits = wrap(backward.func.value, f"{context.text(step.func.value)}.scale(", ")")
    return NodeFix("scale the loss", edits, Applicability.UNSAFE)


def _update(step: cst.Call, context: Context) -> NodeFix | None:
    statement = context.statement(step)
    if not isinstance(step.func, cst.Attribute) or not isinstance(context.parent(statement), cst.SimpleStatementLine):
        return None
    text = f"{context.text(step.func.value)}.update()"
    edit = insert_after(context.line_end(statement), context.line_break(statement) + text)
    return NodeFix(f"insert `{text}`", (edit,), Applicability.UNSAFE)
