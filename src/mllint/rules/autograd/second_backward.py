"""## What it does

Finds a `backward()` that goes through a graph which an earlier `backward()` has freed, and one that runs once more
what the line above has just run.

## Why is this bad?

The first pass frees what the forward pass has saved, as it goes along. The second one raises: "Trying to backward
through the graph a second time" in PyTorch, "calculate backward twice for the same subgraph" in Paddle.

In a GAN it is the output of the generator that comes into both losses: the loss of the discriminator wants
`fake.detach()`, which also saves the pass through the generator. In a loop it is what was computed before the loop, or
a total that was not begun anew; behind a loop, what each of its rounds has made and walked. A loss of the frameworks
keeps what it is given, so that `loss.backward()` and `(2 * loss).backward()` raise whatever network it is of.

With `retain_graph=True` in the first of two calls that follow each other nothing raises: the second one adds all
gradients to themselves, and the optimizer gets them twice.

## Example

```python
import torch
from torch import nn

generator, discriminator = nn.Linear(8, 2), nn.Linear(2, 1)
fake = generator(torch.rand(4, 8))
loss_d = discriminator(fake).mean()
loss_d.backward()
loss_g = -discriminator(fake).mean()
loss_g.backward()
```

## Use instead

```python
import torch
from torch import nn

generator, discriminator = nn.Linear(8, 2), nn.Linear(2, 1)
fake = generator(torch.rand(4, 8))
loss_d = discriminator(fake.detach()).mean()
loss_d.backward()
loss_g = -discriminator(fake).mean()
loss_g.backward()
```

## What it leaves alone

Passes of which the first keeps the graph (`retain_graph`, `create_graph`), or may: with an option that is not known.
Passes of which only one may run. Losses that hang on the same thing through a function, or a module, that may take it
off the graph. Functions in which a flag of a parameter, or of a tensor, is changed. The same call twice, where
something stands between the two, where they are given gradients to begin with, or where no optimizer steps in the same
function; tests.

## Fix safety

There is no fix: whether to detach or to keep the graph depends on what is meant to learn.

## References

- [torch.Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html)
- [paddle.Tensor.backward](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.modules.second_passes import repeated_pass, second_pass
from mllint.syntax.shape import dotted_path

rule = Rule(
    code="ML216",
    message="this `backward()` goes through a graph that was freed",
    help="detach what the first loss does not train, or keep the graph with `retain_graph=True`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)


@rule.on_method("backward", "manual_backward")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call that raises."""
    repeated = repeated_pass(context.model, call)
    if repeated is not None:
        message = f"`{dotted_path(repeated)}` has had its backward pass right above: all gradients double"
        yield Finding(call, message, "leave out one of the two calls")
        return
    found = second_pass(context.model, call)
    if found is None:
        return
    if found.first is None:
        message = f"from the second round on, the graph of `{found.name}` is freed: that raises"
        yield Finding(call, message, "compute it anew in every round, or detach it")
    else:
        yield Finding(call, f"the graph of `{found.name}` is freed by the `backward()` above: that raises")
