"""## What it does

Finds gradients that are clipped after `optimizer.step()` has used them, or before `backward()` has computed them;
also by the `clip_grad_norm_` of accelerate's `Accelerator`. And those that are clipped in a loop that neither computes
gradients nor uses them, behind one that does: what is left there of the training changes nothing. And those of one
network that are clipped for the step of another one's optimizer, and cleared before their own. And gradients that add
up over several rounds, where each of them clips what is there so far: the step is taken in some rounds, the clip is not
under its condition.

## Why is this bad?

Nothing is clipped. Behind the step the weights have moved already, along the whole gradient, and the gradients are
cleared before the next one. Before `backward()` there are no gradients, or those of the last round: `clip_grad_norm_`
finds a norm of zero and says nothing. (`clip_grad_value_` raises a `RuntimeError` in PyTorch where no gradient has ever
been computed.) The training goes on as if there were no limit.

Where gradients add up, the first clip scales down what the first round has added, the next one scales that down again
together with what came to it, and so on: where the limit is reached, the step goes nearly along the gradient of the
last round alone, and the large batch is a small one.

## Example

```python
import torch
from torch import nn

network = nn.Linear(3, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(100):
    optimizer.zero_grad()
    loss = network(torch.rand(8, 3)).square().mean()
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
```

## Use instead

```python
import torch
from torch import nn

network = nn.Linear(3, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(100):
    optimizer.zero_grad()
    loss = network(torch.rand(8, 3)).square().mean()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
```

## What it leaves alone

Clips that on any way find gradients of which no step has made use, whichever loss they are of, in trainings with
several optimizers, too. Of gradients that add up, those whose step waits for anything but the number of a round, that
are cleared in every round all the same (ML303), unscaled by a scaler (ML306), or changed by hand. Steps of an optimizer
that may belong to another module; weights that are clipped (`parameter.data.clamp_(-1, 1)`), as Wasserstein GANs do it
after the step; an infinite limit, which only measures; clips behind gradients that are cleared too early, which ML302
reports; and what comes behind a call that is given the loss, the optimizer or the module and cannot be looked into.

For the step of another network: clips beside which those of that network are clipped too, and networks of which it is
not certain which optimizer has them.

An optimizer that is only known by its name, because it is a parameter of a function that nobody in the file calls,
counts as one; where it is the only one that steps, it is taken to be that of the module.

## Fix safety

Unsafe: what the training does changes. The statement is moved in front of the step, or behind `backward()`, where it
stands in the same block.

## References

- [torch.nn.utils.clip_grad_norm_](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html)
- [paddle.nn.utils.clip_grad_norm_](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/utils/clip_grad_norm__en.html)
"""

from collections.abc import Iterator
from functools import partial

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, delete_statement, insert_after, insert_before
from mllint.rule import Finding, Rule
from mllint.semantic.events.participants import goes_through_scaler
from mllint.semantic.events.steps import Event
from mllint.semantic.flow import CLIPPING_WORDS, clips
from mllint.semantic.training.clipping import When, clipped_too_often, misplaced_clip

rule = Rule(
    code="ML305",
    message="the gradients are clipped where no step uses them: nothing is clipped",
    help="clip the gradients between `backward()` and `step()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)

_MESSAGES: dict[When, str] = {
    "after the step": "the gradients are clipped too late: `step()` has used them already",
    "before backward": "the gradients are clipped before `backward()` computes them: nothing is clipped",
    "without gradients": "no gradients are computed in this loop: clipping them does nothing",
    "of another": "these gradients are cleared before a step uses them: the next one is of others",
    "too often": "clipped in every round, the step is taken in some: early rounds count for less",
}
_HELP: dict[When, str] = {
    "without gradients": "drop it here",
    "of another": "clip the parameters of the optimizer that steps",
    "too often": "clip them once, right before the step, under the same condition",
}


@rule.on(cst.Module, mentions=CLIPPING_WORDS)
def check(module: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the calls that clip."""
    for call in clips(context.model):
        misplaced = misplaced_clip(context.model, call) or clipped_too_often(context.model, call)
        if misplaced is not None:
            when, event = misplaced
            yield Finding(call, _MESSAGES[when], _HELP.get(when), fix=partial(_fix, call, when, event, context))


def _fix(clip: cst.Call, when: When, event: Event, context: Context) -> NodeFix | None:
    """Move the statement that clips to the one at which it belongs."""
    node = None if when in _HELP else context.model.runs.node_here(event)
    if node is None:
        return None
    statement, place = context.statement(clip), context.statement(node)
    line, other = context.parent(statement), context.parent(place)
    block = None if line is None else context.parent(line)
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(other, cst.SimpleStatementLine):
        return None
    if not isinstance(statement, cst.Expr) or block is None or context.parent(other) is not block:
        return None
    if goes_through_scaler(event) or event.other is not None or len(line.body) != 1 or len(other.body) != 1:
        return None
    deleted = delete_statement(line, getattr(block, "body", ()))
    text, line_break = context.text(statement), context.line_break(statement)
    if deleted is None:
        return None
    if when == "after the step":
        moved = insert_before(place, text + line_break)
    else:
        moved = insert_after(context.line_end(place), line_break + text)
    return NodeFix("clip between `backward()` and `step()`", (moved, deleted), Applicability.UNSAFE)
