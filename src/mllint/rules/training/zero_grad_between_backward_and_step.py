"""## What it does

Finds `zero_grad()` between the `backward()` that computes the gradients and the `step()` that should use them; also
where `step()` comes before `backward()` in each round of the loop, behind the `zero_grad()` of that round. And the
`step()` of a loop that clears the gradients and runs the network, or has a loss of the framework, in a file that calls
no `backward()`, nor anything else that computes gradients. Of several calls of a function that clears them,
`self.reset_grad()`, that one is reported which comes at the wrong place.

## Why is this bad?

The step has nothing to go by. In PyTorch the gradients are `None` and no weight moves, whatever the learning rate; in
Paddle they are zero, and weight decay and momentum alone move the weights. The loss stays where it is, and nothing is
raised.

## Example

```python
import torch
from torch import nn

network = nn.Linear(3, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(100):
    loss = network(torch.rand(8, 3)).square().mean()
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

network = nn.Linear(3, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(100):
    loss = network(torch.rand(8, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## What it leaves alone

The `zero_grad()` of another optimizer or of another module, as GAN trainings have it; gradients that are computed
again, or written by hand, before the step; steps that on some path find gradients; steps of another optimizer that may
compute them, from losses or a closure; everything that comes after a call which cannot be looked into (where the run
has one optimizer and one `backward()`: that is given the network or the optimizer, is a method of what holds them, or
says that it trains), or, where no `backward()` is seen, that is given what the network puts out, or the loss; and,
there, networks of a class that is neither of the project nor of a framework, which may compute gradients by themselves,
where no loss is seen.

## Fix safety

Safe where `backward()`, `zero_grad()` and `step()` are three statements in a row, each on a line of its own: the first
two change places. No fix is offered elsewhere.

## References

- [torch.optim.Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
- [paddle.optimizer.Optimizer.clear_grad](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/Optimizer_en.html)
"""

from collections.abc import Iterator
from functools import partial

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, replace
from mllint.rule import Finding, Rule
from mllint.semantic.training.cleared_early import clears_before_step
from mllint.semantic.training.nearby import word_before, word_behind
from mllint.semantic.training.never_computed import steps_on_nothing

rule = Rule(
    code="ML302",
    message="the gradients are cleared before `step()` has used them: no weight is trained",
    help="clear the gradients before `backward()`, or after `step()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_HELP = {
    (None, "step"): "call `step()` after `backward()`",
    ("backward", None): "call `step()` between `backward()` and this",
}
"""What to write, by what is called last before it and first behind it."""


@rule.on_method("zero_grad", "clear_grad", "clear_gradients")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call that clears the gradients."""
    for place, step in clears_before_step(context.model, call):
        if place is not call:
            yield Finding(place)
            continue
        around = word_before(context.model, call), word_behind(context.model, call)
        yield Finding(call, help=_HELP.get(around), fix=partial(_fix, call, step, context))


@rule.on_method("step")
def check_step(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the step for which nothing computes gradients."""
    # Nearly all files have the word, and none of their runs need be followed for this.
    if not call.args and "backward" not in context.model.names_by_word and steps_on_nothing(context.model, call):
        yield Finding(
            call, "nothing computes gradients for this `step()`: no weight is trained", "call `backward()` before it"
        )


def _fix(call: cst.Call, step: cst.CSTNode, context: Context) -> NodeFix | None:
    """Let the two statements in front of the step change places."""
    line = context.parent(context.statement(call))
    block = None if line is None else context.parent(line)
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None
    position = block.body.index(line)
    after = block.body[position + 1] if position + 1 < len(block.body) else None
    if position == 0 or context.parent(context.statement(step)) is not after:
        return None
    before = block.body[position - 1]
    match before, line:
        case (
            cst.SimpleStatementLine(
                body=[cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value="backward")))) as computed]
            ),
            cst.SimpleStatementLine(body=[cst.Expr() as cleared]),
        ):
            first, second = context.text(computed), context.text(cleared)
            if "\n" in first + second:  # the indentation of further rows would be lost
                return None
            edits = (replace(computed, second), replace(cleared, first))
            return NodeFix("clear the gradients before `backward()`", edits)
    return None
