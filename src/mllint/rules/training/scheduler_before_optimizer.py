"""## What it does

Finds schedulers that step before their optimizer has stepped for the first time, in every round of the training loop,
or once before a loop in which they step again. And methods that step both of them in this order, for an object that
keeps them: whoever trains with it calls the method for every batch.

## Why is this bad?

A scheduler sets the first learning rate when it is made. Its first `step()` already goes on to the second one. Called
at the beginning of the round, it takes away the first value of the schedule, and the whole schedule is one round early.
PyTorch warns once; Paddle says nothing. The place for a step of every round is behind the loop in which the optimizer
steps, not in it: there the schedule would run through in a few batches.

## Example

```python
import torch
from torch import nn

network = nn.Linear(3, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
for epoch in range(90):
    scheduler.step()
    optimizer.zero_grad()
    network(torch.rand(8, 3)).square().mean().backward()
    optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

network = nn.Linear(3, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
for epoch in range(90):
    optimizer.zero_grad()
    network(torch.rand(8, 3)).square().mean().backward()
    optimizer.step()
    scheduler.step()
```

## What it leaves alone

A step that is told the epoch or a metric (`scheduler.step(epoch)`), and one in a branch: unless the optimizer steps in
the same branch, or the test is of something that stays as it is (`if scheduler is not None`). Schedulers of which it is
not known how they are made, whose optimizer does not step in the same loop, that are made anew in every round, or for a
resumed training (`last_epoch=`, but for `begin - 1` where the loop is `range(begin, ...)`: the scheduler sets the rate
of that round itself when it is made), or for a warm-up that may begin at zero (`LambdaLR`, `LinearWarmup`, those of
transformers): of `LambdaLR` the function is worked out at 0, as far as that can be told. Methods of objects of which
another method steps the optimizer, too. Loops of their own that only bring a scheduler to where it was. Optimizers and
schedulers that are given to something that cannot be looked into before. Branches that a test of some version chooses,
and projects that allow a PyTorch before 1.1, where the scheduler had to step first, or files of its time, as
`cuda(async=True)` tells: no later Python than 3.6 reads it. Programs that call no module and compute no gradients: they
show the rates.

## Fix safety

Unsafe: the step goes to the end of the round, and the learning rates change with that.

## References

- [How to adjust learning rate](https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate)
- [paddle.optimizer.lr.LRScheduler](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/lr/LRScheduler_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, delete_statement, insert_after
from mllint.rule import Finding, Rule
from mllint.semantic.expressions.hints import is_for_one_version
from mllint.semantic.training.schedules import is_left_of_batches, steps_before_optimizer
from mllint.syntax.shape import last_word

rule = Rule(
    code="ML307",
    message="the scheduler steps before its optimizer: the first learning rate is skipped",
    help="call the scheduler's `step()` after the optimizer's",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)

_ORDER_SINCE = (1, 1)
"""The version of PyTorch from which on the scheduler steps last; before it stepped first."""


@rule.on_method("step")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the step of the scheduler."""
    if context.torch_version is not None and context.torch_version < _ORDER_SINCE:
        return
    if call.args or steps_before_optimizer(context.model, call) is None or is_for_one_version(context.model, call):
        return
    help_ = f"call `{context.text(call)}` behind the loop in which the optimizer steps"
    yield Finding(
        call, help=help_ if is_left_of_batches(context.model, call) else None, fix=lambda: _fix(call, context)
    )


def _fix(call: cst.Call, context: Context) -> NodeFix | None:
    """Move the statement to the end of the loop's body."""
    statement = context.statement(call)
    line = context.parent(statement)
    block = None if line is None else context.parent(line)
    loop = None if block is None else context.parent(block)
    if not isinstance(block, cst.IndentedBlock) or not isinstance(loop, (cst.For, cst.While)):
        return None
    if (
        isinstance(loop, cst.For)
        and isinstance(call.func, cst.Attribute)
        and last_word(loop.target) == last_word(call.func.value)
    ):
        return None  # the loop over several schedulers would have to move
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1 or line is block.body[-1]:
        return None
    deleted = delete_statement(line, block.body)
    if deleted is None:
        return None
    moved = insert_after(context.line_end(block.body[-1]), context.line_break(statement) + context.text(call))
    return NodeFix("step the scheduler at the end of the round", (deleted, moved), Applicability.UNSAFE)
