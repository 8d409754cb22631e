"""## What it does

Finds dropout functions in modules that are not told whether the module trains: `F.dropout(x, 0.5)`, and
`F.scaled_dot_product_attention(..., dropout_p=self.dropout)`.

## Why is this bad?

`F.dropout` drops values by default, `training` being `True`, and knows nothing of `model.eval()`. In evaluation the
network goes on losing values at random: every prediction differs from the one before, and all are worse than they could
be. Nothing is reported. In PyTorch, `scaled_dot_product_attention` has no such flag at all: it drops with the
probability that it is given.

## Example

```python
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(F.dropout(x, 0.5))


classifier = Classifier().eval()
```

## Use instead

```python
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(F.dropout(x, 0.5, training=self.training))


classifier = Classifier().eval()
```

## What it leaves alone

A rate of which nobody in sight says that it is more than zero: not by a literal, the default of a parameter, of an
option or of a field of settings, nor by what a caller gives. An option around the call that nobody switches on. Calls
that are told the mode, or whose probability depends on it; calls under a condition that asks for the mode, or in a
method that is only called under one; a probability that comes in as an argument of the method, like the flag that asks
for it, or that somebody changes later; functions outside of modules; networks whose dropout is on by design, as their
class says: the pre-net of Tacotron 2, Monte Carlo dropout. Projects in which nothing is put to evaluation mode.
Networks of tests; static graphs of Paddle, of which `clone(for_test=True)` takes the dropout out. In PyTorch
`F.alpha_dropout` is off by default.

## Fix safety

Safe: in training nothing changes; in evaluation dropout is off, as `eval()` says.

## References

- [torch.nn.functional.dropout](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html)
- [scaled_dot_product_attention](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
- [paddle.nn.functional.dropout](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/functional/dropout_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, insert_after
from mllint.knowledge.dropouts import FUNCTIONS
from mllint.rule import Finding, Rule
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules.dropouts import AlwaysOn, always_on
from mllint.semantic.modules.weights import builds_a_program
from mllint.syntax.shape import dotted_path

rule = Rule(
    code="ML313",
    message="this dropout is always on: `eval()` does not reach it",
    help="pass `training=self.training`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_LONGEST_NAME = 40
_MEANT = ("always", "even at", "even in", "mc dropout", "monte carlo", "on purpose", "during inference", "at inference")


@rule.on_call(*FUNCTIONS)
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report a call that drops values in every mode."""
    name = context.qualified_name(call.func)
    found = None if name is None else always_on(context.model, call, FUNCTIONS[name])
    if found is None or _is_meant(call, context) or is_test_code(context.model) or builds_a_program(context.model):
        return  # of a program, `clone(for_test=True)` leaves the dropout out
    path = dotted_path(call.func)
    written = path if path is not None and len(path) <= _LONGEST_NAME else (name or "").rpartition(".")[2]
    yield Finding(
        call,
        f"{'' if 'drop' in written else 'the dropout of '}`{written}` is always on: `eval()` does not reach it",
        _help(found),
        fix=lambda: _fix(call, found),
    )


def _is_meant(call: cst.Call, context: Context) -> bool:
    """Whether a comment on the line says that dropout is to stay on."""
    return any(word in text.lower() for text in context.comments(call) for word in _MEANT)


def _help(found: AlwaysOn) -> str:
    if found.function.has_flag:
        return f"pass `training={found.receiver}.training`"
    return f"write `... if {found.receiver}.training else 0.0` for the probability"


def _fix(call: cst.Call, found: AlwaysOn) -> NodeFix | None:
    if found.function.has_flag:
        return NodeFix(
            "tell it the mode", (insert_after(call.args[-1].value, f", training={found.receiver}.training"),)
        )
    if found.probability is None:
        return None
    return NodeFix(
        "drop in training only", (insert_after(found.probability, f" if {found.receiver}.training else 0.0"),)
    )
