"""## What it does

Finds an activation that works in place (`nn.ReLU(inplace=True)`, `F.relu(x, inplace=True)`, `x.relu_()`) on the very
tensor that is added back further below, or that is read below under the name from which it was taken: `skip = x`,
`skip = relu_(skip)`, `conv(x)`. So does a block of the file whose `forward` begins with such an activation.

It is off by default: most of what it finds in the wild are copies of a few networks whose weights are published, and
weights that were trained this way need it this way. Select it (`extend-select = ["ML214"]`) for networks of your own.

## Why is this bad?

Nothing raises, and the network computes something else: the activation changes the tensor, so that not `x` is added
but `relu(x)`. In a residual block with its activation in front no negative number gets through the shortcut any more.

## Example

```python
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        out = self.conv(self.relu(x))
        return out + x
```

## Use instead

```python
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        out = self.conv(self.relu(x))
        return out + x
```

## What it leaves alone

Activations of a new tensor, such as what a convolution or a normalization gives. What an activation has made already:
a second one changes nothing. An activation whose result is thrown away (`self.relu(x)` as a statement): there the
change is what is wanted. A name that is bound anew, `x = self.relu(x)`, unless the tensor has another one. What is read
below under the same name, and not added, also by an identity layer.

## Fix safety

Unsafe: `inplace=True` goes. The network computes something else then, and weights that were trained with the defect
may do worse.

## References

- [torch.nn.ReLU](https://docs.pytorch.org/docs/stable/generated/torch.nn.ReLU.html)
- [Identity Mappings in Deep Residual Networks](https://arxiv.org/abs/1603.05027)
"""

from collections.abc import Iterator
from functools import partial

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, delete_argument
from mllint.rule import Finding, Rule
from mllint.semantic.graph.in_place import WORDS, flag, may_work_in_place, runs_of_layer
from mllint.semantic.graph.residuals import overwritten

rule = Rule(
    code="ML214",
    message="an activation in place changes the tensor that is added back below",
    help="use an activation that gives a new tensor: `inplace=False`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    by_default=False,
    applicability=Applicability.UNSAFE,
)


@rule.on(cst.Call, mentions=WORDS, shape=may_work_in_place)
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the calls by which an activation, or the layer that a call builds, overwrites a residual."""
    for found in overwritten(context.model, call):
        message = f"`{found.tensor}` is changed in place here: the sum below adds what it has become"
        if not found.is_added:
            message = f"`{found.tensor}` is changed in place here, and so is `{found.read.value}`, read below"
        yield Finding(found.call, message, fix=partial(_out_of_place, call, found.call, context))


def _out_of_place(call: cst.Call, place: cst.Call, context: Context) -> NodeFix | None:
    """Without ``inplace=True``, where nobody else relies on it, and the class itself runs the layer."""
    runs = [run for run, _ in runs_of_layer(context.model, call)]
    if place not in (call, *runs) or any(isinstance(context.parent(run), cst.Expr) for run in runs):
        return None
    given = flag(call)
    edit = None if given is None else delete_argument(call, given)
    return None if edit is None else NodeFix("take `inplace=True` away", (edit,), Applicability.UNSAFE)
