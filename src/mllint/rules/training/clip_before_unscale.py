"""## What it does

Finds gradients that are clipped between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` without
`scaler.unscale_(optimizer)` in between.

## Why is this bad?

The gradients are still multiplied by the scaler's factor, 65536 in the beginning. Their norm is far above any limit, so
they are always cut down to the limit; `scaler.step()` then divides them by the factor all the same. What is left is a
step that is tens of thousands of times too small, and the model hardly learns. Nothing is raised.

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
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
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
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
```

## What it leaves alone

A clip before which, on any way to it, the scaler unscales the gradients of an optimizer that may be the one, also in a
function or method of the project, and one before which something that cannot be looked into is given the network,
behind the last `backward()`; gradients that are divided by hand (`parameter.grad.div_(...)`; noise that is added
changes nothing); a limit that is multiplied by the factor (`max_norm * scaler.get_scale()`), and one that is infinite,
which only measures; a scaler that is made with `enabled=False`, and, in files that compute in bfloat16 only, one that a
setting may switch off (in Paddle it switches itself off). Paddle's `grad_clip=` of the optimizer clips inside the step,
behind the scaler: that is right. Elsewhere it makes no difference whether an argument switches the scaler on: the code
is wrong where it is.

A scaler that is only known by its name, because it is a parameter of a function that nobody in the file calls, counts
as one.

Where a method clips and steps with gradients that somebody else has computed, the scaler's step says that the loss was
scaled; an object counts as a scaler, too, that is given the optimizer to step and is then updated. It is left alone
when the word `unscale` stands anywhere in its folder or in a file that imports it, or when its file asks for the
scaler's factor.

## Fix safety

Unsafe: what the training does changes with the line that is added. No fix is offered where the loss is scaled only on
some of the ways to the clip, nor where the same round unscales the gradients elsewhere: a second call raises, so it is
the clipping that has to be moved behind the first.

## References

- [PyTorch: working with scaled gradients](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping)
- [paddle.amp.GradScaler](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/amp/GradScaler_en.html)
"""

from collections.abc import Iterator
from functools import partial

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, insert_before
from mllint.rule import Finding, Rule
from mllint.semantic.events.steps import Event
from mllint.semantic.flow import CLIPPING_WORDS, clips
from mllint.semantic.training.clipping import is_always_scaled_at, step_after_scaled_clip, unscaled_too_late

rule = Rule(
    code="ML306",
    message="the gradients are still scaled when they are clipped: the steps become far too small",
    help="call `scaler.unscale_(optimizer)` before the gradients are clipped",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)


@rule.on(cst.Module, mentions=CLIPPING_WORDS)
def check(module: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the calls that clip."""
    for call in clips(context.model):
        step = step_after_scaled_clip(context.model, call)
        if step is None:
            continue
        late = unscaled_too_late(context.model, call, step)
        if late is not None:
            yield Finding(call, help=f"clip behind `{_written(late, context)}`, which must not be called a second time")
            continue
        text = _unscaling(call, step, context)
        yield Finding(
            call,
            help=None if text is None else f"write `{text}` before the gradients are clipped",
            fix=partial(_fix, call, text, context),
        )


def _written(event: Event, context: Context) -> str:
    """A call of ``unscale_`` as it is written, where it stands in this file."""
    node = context.model.runs.node_here(event)
    return "scaler.unscale_(optimizer)" if node is None else context.text(node)


def _unscaling(clip: cst.Call, step: Event, context: Context) -> str | None:
    """The missing call as it is written beside the clip; ``None`` where the step stands in another body."""
    node = context.model.runs.node_here(step)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or not node.args:
        return None
    if context.function(node) != context.function(clip):
        return None
    return f"{context.text(node.func.value)}.unscale_({context.text(node.args[0].value)})"


def _fix(clip: cst.Call, text: str | None, context: Context) -> NodeFix | None:
    statement = context.statement(clip)
    if text is None or not isinstance(context.parent(statement), cst.SimpleStatementLine):
        return None
    if not is_always_scaled_at(context.model, clip):
        return None
    edit = insert_before(statement, text + context.line_break(statement))
    return NodeFix(f"insert `{text}`", (edit,), Applicability.UNSAFE)
