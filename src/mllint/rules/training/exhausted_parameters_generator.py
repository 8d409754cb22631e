"""## What it does

Finds generators of parameters, such as `model.parameters()` or `filter(lambda p: p.requires_grad, ...)`, that are bound
to a name and gone through twice: also those that a constructor keeps, or a method where there are none yet, and another
method clips, which every step calls; that a function or method of the project gives back; or that stand for a parameter
which nobody has given.

## Why is this bad?

A generator can be gone through once. The optimizer that is given `parameters` has used it up;
`clip_grad_norm_(parameters, 1.0)` then gets nothing and clips nothing, in PyTorch at best with a warning. A loop that
counts or freezes parameters runs over none. In the other order, "optimizer got an empty parameter list" is what PyTorch
says; in Paddle the first `step()` fails with "list index out of range".

## Example

```python
import torch
from torch import nn

model = nn.Linear(4, 2)
parameters = filter(lambda p: p.requires_grad, model.parameters())
optimizer = torch.optim.SGD(parameters, lr=0.1)

model(torch.randn(8, 4)).sum().backward()
nn.utils.clip_grad_norm_(parameters, 1.0)
optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(4, 2)
parameters = list(filter(lambda p: p.requires_grad, model.parameters()))
optimizer = torch.optim.SGD(parameters, lr=0.1)

model(torch.randn(8, 4)).sum().backward()
nn.utils.clip_grad_norm_(parameters, 1.0)
optimizer.step()
```

## What it leaves alone

Generators that are used once on every path, bound anew in every round of a loop, or turned into a list first; places of
which it is not known whether they go through what they are given; loops that may stop in between. In Paddle
`parameters()` gives a list, `named_parameters()` a generator.

## Fix safety

Safe: a list of the same things in the same order, which can be gone through as often as one likes. Unsafe where
anything else is done with the generator, which may not work on a list: `next(...)`, or what a function does that it is
given to.

## References

- [torch.nn.Module.parameters](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.parameters)
- [torch.nn.utils.clip_grad_norm_](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html)
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, replace, wrap
from mllint.rule import Finding, Rule
from mllint.semantic.graph.used_up import UsedUp, used_up

rule = Rule(
    code="ML318",
    message="this generator of parameters is used up",
    help="make a list of it: `list(...)`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_LONGEST_NAME = 30
_WORDS = ("parameters", "buffers", "children", "modules", "named_sublayers")


@rule.on(cst.Module, mentions=_WORDS)
def check(module: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the second place that goes through a generator."""
    for found in used_up(context.model):
        key = found.binding.key
        shown = f"`{key}`" if len(key) <= _LONGEST_NAME else "this generator"
        after = "the first round of the loop has" if found.again else f"{found.first.by} has"
        yield Finding(
            found.second,
            f"{shown} is used up here: {after} been through it",
            f"make a list of it where it is bound: `{key} = list(...)`",
            fix=lambda found=found: _fix(found),  # type: ignore[misc]
        )


def _fix(found: UsedUp) -> NodeFix | None:
    value = found.binding.value
    if value is None:
        return None
    trust = Applicability.UNSAFE if found.may_need_generator else Applicability.SAFE
    if isinstance(value, cst.GeneratorExp) and len(value.lpar) == 1:
        return NodeFix("make a list of it", (replace(value.lpar[0], "["), replace(value.rpar[0], "]")), trust)
    return NodeFix("make a list of it", wrap(value, "list(", ")"), trust)
