"""## What it does

Finds two optimizers with the parameters of one network, of which the second is called after another network that no
optimizer has; and groups of parameters, `{"params": ..., "lr": ...}`, that a function makes beside an optimizer and
gives to nobody. And parts of a network that are made anew between the optimizer and its steps, `net.fc =
nn.Linear(512, 10)` behind `optimizer = SGD(net.parameters())`, also where a function is given both.

## Why is this bad?

An optimizer changes the parameters that it was given when it was made. A line that is copied for the next network, with
a name that has not been changed in it, makes a second optimizer of the first network: that one is moved twice in every
step, the other one keeps the weights that it began with. Nothing is reported, and the loss goes down all the same.

A group that is not given to the optimizer is as if it were not there: its parameters are not trained, or, where the
optimizer has all of the network's, with the learning rate and the weight decay of the others. A layer or parameter that
is put in the place of another one later is not trained either: the optimizer has that other one.

## Example

```python
import torch
from torch import nn

encoder, decoder = nn.Linear(8, 2), nn.Linear(2, 8)
encoder_optimizer = torch.optim.Adam(encoder.parameters())
decoder_optimizer = torch.optim.Adam(encoder.parameters())

for _ in range(100):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    x = torch.rand(4, 8)
    (decoder(encoder(x)) - x).abs().mean().backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

encoder, decoder = nn.Linear(8, 2), nn.Linear(2, 8)
encoder_optimizer = torch.optim.Adam(encoder.parameters())
decoder_optimizer = torch.optim.Adam(decoder.parameters())

for _ in range(100):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    x = torch.rand(4, 8)
    (decoder(encoder(x)) - x).abs().mean().backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
```

## What it leaves alone

Two optimizers of one network that nothing else is known of: Adam first and L-BFGS behind it, one for each of two
losses. The names have to say so: that of each optimizer has a word that stands for its network, `enc_opt` for
`encoder`, `optimizerD` for `netD`, and they differ in nothing else. Networks whose parameters are taken anywhere in the
file, but to clip their gradients, that are frozen, that are a part of another one or held by one. Groups of a name that
a comment has, too: somebody has put them aside. New parts where anything in the file adds groups to an optimizer,
`add_param_group`, or the function asks for parameters of the network again.

## Fix safety

Unsafe: the optimizer is given the parameters of the network that it is called after. The training becomes another one.

## References

- [torch.optim](https://docs.pytorch.org/docs/stable/optim.html#constructing-it)
- [paddle.optimizer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/Overview_en.html)
"""

import re
from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, replace
from mllint.rule import Finding, Rule
from mllint.semantic.training import late_parts
from mllint.semantic.training.forgotten_networks import forgotten_network, lost_group
from mllint.syntax.shape import dotted_path

rule = Rule(
    code="ML218",
    message="these parameters have an optimizer already, and those of another network have none",
    help="give the optimizer the parameters of the network that it is called after",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)

_LONGEST_MESSAGE = 88
_LATE = "the optimizer was made before this part, and does not train it"


@rule.on_method("parameters")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the parameters that a second optimizer is given."""
    found = forgotten_network(context.model, call)
    if found is not None and isinstance(call.func, cst.Attribute):
        edit = replace(call.func.value, found.network)
        fix = NodeFix(f"give it those of `{found.network}`", (edit,), Applicability.UNSAFE)
        message = f"`{found.other}` has these parameters; those of `{found.network}` have no optimizer"
        shown = message if len(message) <= _LONGEST_MESSAGE else None
        yield Finding(call, shown, f"write `{found.network}.parameters()`", fix=lambda: fix)


def _makes_group(statement: cst.Assign) -> bool:
    """Whether a dict, or a list of dicts, gets a name of its own."""
    value = statement.value
    if value.__class__ is cst.List:
        return any(element.value.__class__ is cst.Dict for element in value.elements)
    return value.__class__ is cst.Dict and statement.targets[0].target.__class__ is cst.Name


@rule.on(cst.Assign, mentions=("params",), shape=_makes_group)
def check_group(statement: cst.Assign, context: Context) -> Iterator[Finding]:
    """Report groups of parameters that no optimizer gets."""
    name = lost_group(context.model, statement)
    # Who has put a use of it into a comment knows.
    if name is not None and re.search(rf"#.*\b{name}\b", context.source_text) is None:
        yield Finding(
            statement,
            f"`{name}` is given to no optimizer: what it sets has no effect",
            "give it to the optimizer, or remove it",
        )


@rule.on(cst.Assign, mentions=late_parts.STEPS, shape=late_parts.may_be_part)
def check_late(statement: cst.Assign, context: Context) -> Iterator[Finding]:
    """Report a part of a network that is made anew after the optimizer got the parameters of the network."""
    optimizer = late_parts.optimizer_without(context.model, statement)
    if optimizer is not None:
        part, maker = dotted_path(statement.targets[0].target), dotted_path(optimizer)
        message = f"`{part}` is new: the optimizer was made before, and does not train it"
        shown = message if len(message) <= _LONGEST_MESSAGE else _LATE
        yield Finding(statement, shown, f"make `{maker}` behind this, or copy new numbers into the old part")
