"""## What it does

Finds a `backward()` through a module whose weights an optimizer has changed since the forward pass. Where functions of
the project are given the losses, `descend(optimizer, loss)`, the call that leads to it is reported.

## Why is this bad?

A layer keeps its weights for the gradient of its input, and `step()` changes them in place. Since PyTorch 1.5 the
`backward()` that comes after raises: "one of the variables needed for gradient computation has been modified by an
inplace operation". Before, it computed a gradient with weights that the pass had not seen.

It is what becomes of GANs and of actors and critics that compute all their losses first, and then step for one after
the other. Compute each loss when its turn comes, or run all backward passes before the first step.

## Example

```python
import torch
from torch import nn

generator, discriminator = nn.Linear(8, 2), nn.Linear(2, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

verdict = discriminator(generator(torch.rand(4, 8)))
loss_d, loss_g = verdict.mean(), -verdict.mean()
optimizer_d.zero_grad()
loss_d.backward(retain_graph=True)
optimizer_d.step()
optimizer_g.zero_grad()
loss_g.backward()
optimizer_g.step()
```

## Use instead

```python
import torch
from torch import nn

generator, discriminator = nn.Linear(8, 2), nn.Linear(2, 1)
optimizer_g = torch.optim.Adam(generator.parameters())
optimizer_d = torch.optim.Adam(discriminator.parameters())

fake = generator(torch.rand(4, 8))
loss_d = discriminator(fake.detach()).mean()
optimizer_d.zero_grad()
loss_d.backward()
optimizer_d.step()
loss_g = -discriminator(fake).mean()
optimizer_g.zero_grad()
loss_g.backward()
optimizer_g.step()
```

## What it leaves alone

Steps of an optimizer of which it is not certain that it has the parameters of the module, and that it has gradients.
Passes that only one of two ways has. A single layer of which the input needs no gradient: it keeps no weights.
Paddle, whose steps no check sees.

## Fix safety

There is no fix: what has to move depends on what each loss is meant to train.

## References

- [In-place correctness checks](https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks)
- [PyTorch 1.5 release notes](https://github.com/pytorch/pytorch/releases/tag/v1.5.0)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.training.stale_weights import stale_calls, stale_weights

rule = Rule(
    code="ML217",
    message="the weights were changed between the forward pass and this `backward()`",
    help="run the forward pass after the step, or this `backward()` before it",
    frameworks=frozenset({"torch"}),
    since="0.1.0",
)


@rule.on_method("backward", "manual_backward")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call that raises, or that leads to it."""
    found = stale_weights(context.model, call)
    if found is not None:
        yield Finding(call, f"the weights of `{found.module}` have changed since its forward pass: that raises")
    for stale in stale_calls(context.model, call):
        yield Finding(stale.call, f"the weights of `{stale.module}` have changed since its forward pass: that raises")
