"""## What it does

Finds calls of a module in training mode with a batch of one sample, where a `BatchNorm` in it gets a single value for
each channel.

## Why is this bad?

In training mode `BatchNorm` normalises by the mean and variance over the batch, and one value has no variance. PyTorch
raises "Expected more than 1 value per channel when training". A layer behind a convolution has many values in each
image and does not mind; a `BatchNorm1d` behind a `Linear`, and a `BatchNorm2d` behind a pooling to 1 x 1, have one.

## Example

```python
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.ReLU())
print(model(torch.randn(1, 8)))
```

## Use instead

```python
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.ReLU())
print(model(torch.randn(2, 8)))
```

For a prediction, call `model.eval()` before.

## What it leaves alone

Everything that is not certain: it reports only where the size of the batch is written down (a tensor made with a first
size of 1, or with sizes that are written down and `unsqueeze(0)`, a loader with `batch_size=1`), where the way through
the module is a straight line, and where the module is surely in training mode: `train()` is called right there, or
above without anything between that may switch it back, or nothing in the project switches any module to evaluation.
Paddle does not raise there.

## Fix safety

No fix is offered: it may be the size of the batch that is wrong, or the mode.

## References

- [torch.nn.BatchNorm1d](https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html)
- [torch.utils.data.DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.modules.batches import SOURCES, batch_of_one, surely_trains, switched_to_training
from mllint.semantic.modules.single_values import starved_norm
from mllint.semantic.values import Module

rule = Rule(
    code="ML315",
    message="a batch of one: `BatchNorm` gets one value per channel and raises",
    help="use batches of two or more; for a prediction, call `eval()` before",
    frameworks=frozenset({"torch"}),
    since="0.1.0",
)


@rule.on(cst.Module, mentions=("BatchNorm",))
def check(module: cst.Module, context: Context) -> Iterator[Finding]:
    """Report calls of such modules with what is surely a batch of one."""
    if not any(word in context.model.calls_by_word for word in SOURCES):
        return
    for call in context.nodes(cst.Call):
        if len(call.args) != 1 or call.args[0].keyword is not None:
            continue
        switched = switched_to_training(call.func)
        called = switched or call.func
        if not isinstance(called, (cst.Name, cst.Attribute)):
            continue
        batch = batch_of_one(context.model, call.args[0].value)
        if batch is None or not isinstance(context.value(called), Module):
            continue
        norm = starved_norm(context.model, called, batch.rank)
        if norm is not None and (switched is not None or surely_trains(context.model, called, call)):
            yield Finding(call, f"a batch of one: `{norm}` gets one value per channel and raises")
