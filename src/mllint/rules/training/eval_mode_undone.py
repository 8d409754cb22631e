"""## What it does

Finds calls of `train()` that put a frozen part of the model back to training mode. The constructor of the class calls
`eval()` of that part, and asks no gradients of it or runs it without; or it calls `eval()` of all its layers of a kind,
`isinstance(layer, nn.BatchNorm2d)`. Then the whole is put to training mode, and trained.

## Why is this bad?

`train()` reaches every part of a model, also those that were put to evaluation mode before. So the frozen network drops
values at random, and its batch normalization uses the statistics of each batch and goes on changing its own: what was
meant to stay as it was trained does not. Its parameters do not move, and so nothing shows.

## Example

```python
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
        self.encoder.requires_grad_(False)
        self.encoder.eval()
        self.head = nn.Linear(8, 2)

    def forward(self, inputs):
        return self.head(self.encoder(inputs))


network = Classifier()
optimizer = torch.optim.SGD(network.head.parameters(), lr=0.1)
for epoch in range(10):
    network.train()
    optimizer.zero_grad()
    network(torch.rand(4, 8)).square().mean().backward()
    optimizer.step()
```

## Use instead

```python
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
        self.encoder.requires_grad_(False)
        self.head = nn.Linear(8, 2)

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, inputs):
        return self.head(self.encoder(inputs))


network = Classifier()
optimizer = torch.optim.SGD(network.head.parameters(), lr=0.1)
for epoch in range(10):
    network.train()
    optimizer.zero_grad()
    network(torch.rand(4, 8)).square().mean().backward()
    optimizer.step()
```

In Paddle the `train()` of what holds such a class does not call its own: call `eval()` of the part behind `train()`.

## What it leaves alone

Frozen parts that nobody puts to evaluation mode: whether their statistics are to follow the new data is a choice. Parts
that are trained, or that the constructor runs once, to tell the size of what they give. Classes with a `train` of their
own, or that switch something in another method; parts that somebody may put to evaluation mode again before the model
is trained; parts in which no layer is known to ask for its mode. Trainers of other frameworks.

## Fix safety

No fix is offered: it is the class that has to be changed, or each call of `train()`.

## References

- [torch.nn.Module.train](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.train)
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.training.undone_switches import Undone, may_undo, undone_by

rule = Rule(
    code="ML324",
    message="this puts a frozen part of the model back to training mode",
    help="call its `eval()` behind every `train()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)


@rule.on_method("train")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the switch to training mode."""
    if not may_undo(context.model, call):
        return
    found = (undone_by(item.run, item.event) for item in context.model.runs.each(call, accelerated=True))
    undone = next((item for item in found if item is not None), None)
    if undone is not None:
        yield Finding(call, _message(undone), _help(undone))


def _message(undone: Undone) -> str:
    parts = f"`{undone.part}`" if undone.kinds is None else f"the {undone.kinds} layers"
    return f"this puts {parts} back to training mode, which `{undone.owner.name}` switches off"


def _help(undone: Undone) -> str:
    parts = f"`self.{undone.part}.eval()`" if undone.kinds is None else "their `eval()`"
    if undone.owner.framework == "paddle":
        return f"call {parts.replace('self.', '')} behind every `train()`"
    return f"give the class a `train()` of its own that calls {parts} after `super().train(mode)`"
