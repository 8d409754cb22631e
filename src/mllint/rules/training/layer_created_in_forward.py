"""## What it does

Finds layers with weights that are made in `forward`, or in a method that it calls, and used there: `nn.Linear(8,
2)(x)`, also as elements of a local list of which each is called; and dropout layers made there. So are those that a
function of the file makes anew each time, whichever way it takes.

## Why is this bad?

Every call makes a new layer with new random weights. The optimizer was given the parameters of the module before, so
these are never among them; they are not in `state_dict()`, not moved to the GPU with the module, and gone after the
call. The network trains around noise. Nothing is reported.

A new layer is in training mode, whatever the mode of the module is: `nn.Dropout(0.5)(x)` drops values in evaluation
too, and a new `BatchNorm` has no running statistics to use.

## Example

```python
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(16, 8)

    def forward(self, x):
        return nn.Linear(8, 2)(self.encoder(x))
```

## Use instead

```python
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(16, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.encoder(x))
```

## What it leaves alone

Layers without weights, such as `nn.ReLU()(x)` and `nn.LayerNorm(8, elementwise_affine=False)(x)`; losses; layers that
are made once, in the first call (`if self.head is None:`, `hasattr`, a flag that is set), kept in a list or dict of the
module, or put into a dict;
layers whose weights are set where they are made, or that are handed on; a `BatchNorm` without running statistics, which
is made to normalize; Paddle's static graphs, where the program keeps the parameters.

## Fix safety

No fix is offered: the layer must be made in `__init__`, where its sizes may not be known, and a model that was trained
without it has to be trained again.

## References

- [torch.nn.Module](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html)
- [torch.nn.LazyLinear](https://docs.pytorch.org/docs/stable/generated/torch.nn.LazyLinear.html), where the size is not
  known in `__init__`
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.modules.made_in_forward import made_in_forward

rule = Rule(
    code="ML314",
    message="this layer is made anew in every call: its weights are never trained",
    help="make it once in `__init__` and call it here",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)


@rule.on(cst.Module, mentions=("forward",))
def check(module: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the calls that make such layers."""
    for made in made_in_forward(context.model):
        if made.drops:
            yield Finding(
                made.call,
                f"`{made.name}` is made anew in every call: `eval()` does not reach it",
                "make it once in `__init__`, or write `F.dropout(..., training=self.training)`",
            )
        else:
            what = (
                "its weights are never trained" if made.is_trained else "it begins with other random vectors each time"
            )
            yield Finding(made.call, f"`{made.name}` is made anew in every call: {what}")
