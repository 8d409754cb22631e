"""## What it does

Finds schedulers that were made to count epochs and step for every batch, schedulers that were made to count batches
and step once an epoch, and schedulers whose only step stands behind the loop over the epochs. They may step only if
there is one: `if scheduler is not None:`.

How the scheduler is made. It counts epochs when its numbers are (shares of) the very number of rounds of the loop over
the epochs, literal numbers that all lie within a literal number of epochs (or the default of a parameter or option),
also where both stand in a file of settings, or a factor of at most 0.99 for each step, also as the mean of a few steps
(`StepLR(optimizer, step_size=30)` for the batches of a loader, also where `next(batches)` takes them one by one). Where
it may be made in several ways, each of them has to count epochs.
It counts batches when the length of something (`len(loader)`) goes into its numbers, or `steps_per_epoch` is given,
or a `CyclicLR` has a thousand steps and more to its peak, 2000 where none are given.
The function of a `LambdaLR` counts what it divides the number of steps by: `lambda step: 1 - step / total` batches, if
the length of a loader goes into the total, epochs, if it is the number of rounds of the loop over the epochs, and
epochs, too, where it is a power that falls so fast, `lambda epoch: 0.95 ** epoch`, and does not speak of steps.

## Why is this bad?

A scheduler counts its steps, and knows neither batches nor epochs. `StepLR(optimizer, step_size=30)` that steps for
every batch divides the learning rate by ten every thirty batches: after the first epoch nothing is learned any more.
`CosineAnnealingLR(optimizer, T_max=epochs)` swings up and down within each epoch. `OneCycleLR` that was made for
`epochs * len(loader)` steps and gets one an epoch never leaves its warm-up. One that steps when the training is over
has changed nothing: a lost indentation. Nothing is raised.

## Example

```python
import torch
from torch import nn
from torch.utils.data import DataLoader


def train(network: nn.Module, loader: DataLoader, epochs: int) -> None:
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs), labels).backward()
            optimizer.step()
            scheduler.step()
```

## Use instead

```python
import torch
from torch import nn
from torch.utils.data import DataLoader


def train(network: nn.Module, loader: DataLoader, epochs: int) -> None:
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs), labels).backward()
            optimizer.step()
        scheduler.step()
```

## What it leaves alone

Everything that these facts do not settle: numbers from a configuration that are not those of the loop, steps of a
warm-up (`LinearWarmup(lr, warmup_steps=3, ...)`), which may be as many as there are epochs by chance, steps in a branch
(`if step % 100 == 0:`) other than the one in which the optimizer steps with the gradients of some batches added up,
loops over batches that every round leaves, schedulers that are made in a way that cannot be seen. A step behind the
training where somebody asks for the optimizer or the scheduler later, or saves its state, where either is made in
another body, where a round of another loop trains on, and where the body may end before.

## Fix safety

There is no fix: where the step belongs is seen in the loops, not at the step.

## References

- [How to adjust learning rate](https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate)
- [torch.optim.lr_scheduler.CyclicLR](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CyclicLR.html)
- [torch.optim.lr_scheduler.OneCycleLR](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html)
- [paddle.optimizer.lr.LRScheduler](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/lr/LRScheduler_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.training.rates import stepped_too_often, stepped_too_seldom
from mllint.semantic.training.schedules import steps_too_late

rule = Rule(
    code="ML308",
    message="the scheduler is stepped at another rate than it was made for",
    help="step it once for what its arguments count: an epoch or a batch",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)


@rule.on_method("step")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the step of the scheduler."""
    if call.args:
        return
    counted = stepped_too_often(context.model, call)
    if counted is not None:
        yield Finding(
            call,
            "the scheduler counts epochs, but is stepped for every batch",
            f"`{counted}` counts epochs: step the scheduler once an epoch, behind the loop over the batches",
        )
        return
    counted = stepped_too_seldom(context.model, call)
    if counted is not None:
        yield Finding(
            call,
            "the scheduler counts batches, but is stepped once an epoch",
            f"`{counted}` counts batches: step the scheduler in the loop over the batches",
        )
    elif steps_too_late(context.model, call):
        yield Finding(
            call,
            "the scheduler steps when the training is over: the learning rate stays as it begins",
            "step the scheduler in the loop over the epochs, behind the optimizer's steps",
        )
