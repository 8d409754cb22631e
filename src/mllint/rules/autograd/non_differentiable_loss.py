"""## What it does

Finds losses on which `backward()` is called although no gradient gets through them: what they are computed from comes
out of `argmax`, a comparison, a cast to whole numbers, `one_hot`, `round`, `sign` and the like. And classes whose name
ends in `Loss` and whose `forward` gives nothing else, whatever it is given, whoever uses them.

## Why is this bad?

These operations choose or count. Moving the weights a little does not change what they give, so there is nothing to
learn from. What happens then:

- PyTorch, for choices, comparisons and casts: `backward()` raises "element 0 of tensors does not require grad". A
  `requires_grad_()` on the loss silences the error, and nothing learns.
- Paddle, for choices and comparisons: `backward()` does nothing, without an error.
- `round`, `sign`, `floor`, `ceil`, `trunc` in both: every gradient is zero, without an error.

An accuracy tells how good a model is; it cannot train one.

## Example

```python
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(3, 4)
labels = torch.tensor([0, 1])
prediction = model(torch.rand(2, 3)).argmax(dim=1)
loss = F.mse_loss(prediction.float(), labels.float())
loss.backward()
```

## Use instead

```python
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Linear(3, 4)
labels = torch.tensor([0, 1])
output = model(torch.rand(2, 3))
loss = F.cross_entropy(output, labels)
loss.backward()
```

## What it leaves alone

Everything in which something differentiable takes part: a mask times an output, labels made by `argmax` for a
cross-entropy, a straight-through estimator `x + (x.round() - x).detach()`, the values (not the indices) of `max` and
`topk`. Casts to whole numbers in Paddle, which hand the gradient on. Losses of which a part is not understood. A
class that, in a program of several files, nothing names but its own file where it tries itself out, under `if
__name__ == "__main__":`. What a loop takes from a loader counts as data, also where only the name of the loader says
that it is one. Of a criterion of which nothing else is known the rule takes the word `loss` or `criterion` in its
name for what it says.

## Fix safety

No fix is offered: which loss is meant, only the author knows.

## References

- [PyTorch: autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.graph.dead_classes import TAKEN_OFF, dead_forward
from mllint.semantic.graph.differentiability import DeadLoss, dead_loss
from mllint.semantic.graph.placement import wants_no_result

rule = Rule(
    code="ML211",
    message="this loss has no gradient: nothing learns from it",
    help="compute the loss from the outputs themselves",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)


@rule.on_method("backward", "manual_backward")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the loss that the call is made on, where it is computed."""
    statement = context.parent(call)
    if isinstance(statement, cst.Expr) and wants_no_result(context.model, statement):
        return
    loss = dead_loss(context.model, call)
    if loss is not None:
        yield Finding(loss.node, _message(loss), "compute the loss from the outputs, not from what is chosen by them")


@rule.on(cst.ClassDef)
def check_forward(node: cst.ClassDef, context: Context) -> Iterator[Finding]:
    """Report what lets no gradient through in the ``forward`` of a class that is called a loss."""
    loss = dead_forward(context.model, node)
    if loss is None or loss.origin.cuts[0].name in TAKEN_OFF:
        return
    others = (dead_loss(context.model, call) for call in context.model.backward.calls)
    if not any(other is not None and loss.node is other.origin.cuts[0].node for other in others):
        yield Finding(loss.node, _message(loss), "compute the loss from the outputs, not from what is chosen by them")


def _message(loss: DeadLoss) -> str:
    zero = next((cut for cut in loss.origin.cuts if cut.is_zero), None)
    if zero is not None:
        return f"the gradient of `{zero.name}` is zero: nothing learns from this loss"
    name = loss.origin.cuts[0].name
    if loss.origin.flagged and loss.framework == "torch":
        return f"no gradient gets through `{name}`: the flag only silences the error"
    end = "raises" if loss.framework == "torch" else "does nothing, without an error"
    return f"no gradient gets through `{name}`: `backward()` {end}"
