"""## What it does

Finds optimizers whose gradients are cleared for every backward pass, and that never step: those of a function, those
that an object makes for itself, and those that it is given and keeps.

## Why is this bad?

`backward()` computes gradients, and `step()` of the optimizer uses them. Without it the weights stay what they were
when the network was made: the loss is computed, printed, and goes nowhere. Where there are several optimizers, the step
of one is easily forgotten, or taken by another one's name.

## Example

```python
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(30):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).mean().backward()
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(30):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).mean().backward()
    optimizer.step()
```

## What it leaves alone

Optimizers that nobody clears, and those that are handed to anybody but a scheduler or a function of the project that
only sets their learning rate: a trainer, a scaler, a function that takes the weights out of them. Those that an object
keeps, where who has made them steps them, or the object hands them on.
Attributes that other code may read. Networks that another optimizer may have, or that something changes that cannot be
looked into. Files that read the gradients themselves, `weight.grad`. Steps that somebody has commented out, tests,
measurements of speed, and what a module tries out once, right under `if __name__ == "__main__":`.

## Fix safety

No fix is offered: whose step is missing where, the code around it has to say.

## References

- [Taking an optimization step](https://docs.pytorch.org/docs/stable/optim.html#taking-an-optimization-step)
- [paddle.optimizer.Optimizer.step](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/Optimizer_en.html)
"""

import re
from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.knowledge.words import CLEARING
from mllint.rule import Finding, Rule
from mllint.semantic.training.idle_optimizers import idle_optimizers

rule = Rule(
    code="ML323",
    message="this optimizer never steps: what it has is not trained",
    help="call its `step()` behind the backward pass",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)

_LONGEST_NAME = 30


@rule.on(cst.Module, mentions=CLEARING)
def check(module: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the calls that make such optimizers."""
    for found in idle_optimizers(context.model):
        if re.search(rf"#.*(?<![\w.]){re.escape(found.key)}\.step\(", context.source_text) is not None:
            continue  # somebody has done without it on purpose
        shown = f"`{found.key}`" if len(found.key) <= _LONGEST_NAME else "this optimizer"
        yield Finding(
            found.call,
            f"{shown} never steps: what it has is not trained",
            f"call `{found.key}.step()` behind the backward pass",
        )
