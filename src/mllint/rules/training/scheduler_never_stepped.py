"""## What it does

Finds learning-rate schedulers that are made and never stepped, also on one of the two ways of a training: where a
setting says that the loss is scaled, `if use_amp:`, or where it is not.

## Why is this bad?

A scheduler changes the learning rate when its `step()` is called, and at no other time. One that is only made, or in
Paddle only given to the optimizer as its `learning_rate`, leaves the rate where it starts: a warm-up that never warms
up trains with next to nothing, a decay never decays. Nothing is reported.

## Example

```python
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)

for epoch in range(30):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).mean().backward()
    optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)

for epoch in range(30):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).mean().backward()
    optimizer.step()
    scheduler.step()
```

## What it leaves alone

Schedulers that are kept in something but a list, or given to anybody who may step them: a function, a trainer, another
scheduler (Accelerate's `prepare` gives it back, and leaves the steps to the script); attributes that other code may
read, but for settings that have the same name, `options.schedule`, beside others that no such object has; schedulers
whose step somebody has commented out, also where they are given to, whose name another one takes, or that are bound to
`_`; those of an optimizer whose rate is set by hand, `group["lr"] = rate`, or that another scheduler changes; those
that would change nothing, `LambdaLR(optimizer, lambda epoch: 1.0)`, and what methods are given that a derived class may
define anew; in Paddle optimizers that leave the file, `Model.fit`, which steps the scheduler itself, and those of which
`_learning_rate` is read. A file in which no optimizer takes a step, nor in what it imports from the project or what
imports it, but for a scheduler that `configure_optimizers` makes and does not return; an optimizer that is only there
to be given to schedulers, as lessons show them, or to Accelerate's `prepare`, and tests. What a function of the project
only makes and returns, by itself or beside others, one or another, or none, as it is asked, is followed to where that
function is called, as is an optimizer of Paddle that holds it, and what an object of the project is given to where it
keeps it. A step on one of two ways only, where the test between them asks for the scheduler, or another step may come
by. Classes that derive from those of the framework count, too, those of Transformers, Diffusers, timm and PaddleNLP,
and those of the project whose `step()` sets the rate of an optimizer, if none of their other methods does.

## Fix safety

No fix is offered: whether to step after every epoch or after every batch depends on the numbers that the scheduler was
made with.

## References

- [How to adjust the learning rate](https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate)
- [paddle.optimizer.lr.LRScheduler](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/lr/LRScheduler_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.names.spelling import is_slip
from mllint.semantic.training.one_sided import forgotten_way
from mllint.semantic.training.schedulers import is_commented_out, never_stepped
from mllint.syntax.shape import called_on, dotted_path, last_word

rule = Rule(
    code="ML309",
    message="this scheduler is never stepped: the learning rate stays as it begins",
    help="call its `step()`, after the optimizer's",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    by_default=False,
)

_OF_METRICS = ("ReduceLROnPlateau", "ReduceOnPlateau")
"""Schedulers whose step is told how good the model is: in PyTorch, and in Paddle."""
_LONGEST_NAME = 30
_WORDS = ("schedule", "lr", "SWALR", "transformers")
"""Each begins a word of the name of a scheduler, or of the module that has it."""


@rule.on(cst.Module, mentions=_WORDS)
def check(module: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the calls that make such schedulers."""
    for found in never_stepped(context.model):
        if found.key is not None and is_commented_out(found.key, context.model):
            continue
        if found.key is None or len(found.key) > _LONGEST_NAME:
            yield Finding(found.call)
        else:
            meant = _misspelt(found.key, context)
            yield Finding(
                found.call,
                f"`{found.key}` is never stepped: the learning rate stays as it begins",
                f"give it the name of what is stepped, `{meant}`"
                if meant is not None
                else f"return `{found.key}` beside the optimizer: the trainer steps what it is given"
                if found.is_to_return
                else f"call `{found.key}.step(metric)` after every evaluation"
                if last_word(found.call.func) in _OF_METRICS
                else f"call `{found.key}.step()`, after the optimizer's",
            )


@rule.on_method("step")
def check_ways(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the step of a scheduler that the other way of the training does without."""
    words = context.model.calls_by_word
    if "scale" not in words or len(words["step"]) < 3:  # two of the optimizer, and this one
        return
    forgotten = forgotten_way(context.model, call)
    if forgotten is not None:
        yield Finding(
            call,
            f"where the loss is {forgotten}, the scheduler is never stepped: the rate stays as it is",
            "step the scheduler behind both branches",
        )


def _misspelt(key: str, context: Context) -> str | None:
    """What the file steps under nearly the same name."""
    stepped = (called_on(step) for step in context.model.calls_by_word.get("step", ()))
    paths = (dotted_path(receiver) for receiver in stepped if receiver is not None)
    holder, _, name = key.rpartition(".")
    pairs = ((path, path.rpartition(".")) for path in paths if path is not None)
    return next((path for path, (other, _, last) in pairs if other == holder and is_slip(name, last)), None)
