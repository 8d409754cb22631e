"""## What it does

Finds loads of a state dict that skip every key that does not match, where nobody looks at what was skipped:
`load_state_dict(..., strict=False)` as a statement, and in paddle `set_state_dict(...)` (`set_dict`, `load_dict`) of a
file that the project did not save itself.

It is off by default. Many loads of a part are meant, and code seldom says so: of what it reported in code that nobody
had looked at before, little more than half was worth a change. Select it (`extend-select = ["ML423"]`) where much
depends on the weights that are loaded.

## Why is this bad?

Nothing tells whether anything was loaded. One wrong prefix, a renamed layer or a checkpoint in place of its state dict,
and the module keeps its random weights, in part or in full. `load_state_dict` returns the missing and the unexpected
keys; dropped, they are gone. Paddle prints a warning for each missing key and each wrong shape, and says nothing of
keys that the module does not have.

## Example

```python
import torch
from torch import nn

model = nn.Linear(8, 2)
model.load_state_dict(torch.load("pretrained.pt"), strict=False)
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(8, 2)
result = model.load_state_dict(torch.load("pretrained.pt"), strict=False)
if result.missing_keys or result.unexpected_keys:
    raise ValueError(f"the file does not fit: {result}")
```

## What it leaves alone

A strict load, which raises by itself. A result that is assigned, printed, returned or tested. Code that has compared
the keys itself: it asks for `state_dict()` of the module in the same function, or selects entries under a condition.
The state dict of a module of the same class. Paddle files that this project saves itself, and optimizers.

Loads whose author seems to know what is left out: of a file that the code downloads itself, or whose name tells its
hash, and so is always the same; of a dict that is written entry by entry, comes in as an argument, out of a list of
dicts, was put aside in an attribute, or of which entries were taken out by name; of one out of which the function
takes other things, too (`state["epoch"]`), or that was made of the module itself, or whose keys were all put behind the
name of a part; in a test; in a branch beside one that loads strictly; and
those with a comment that speaks of it (`# the head is missing on purpose`), on the statement, right above it or the
`if` around it, right below it with nothing more behind, or where the dict is made; of several entries of one dict
into the same module, each of which is a part; and in a class, or among functions, where only chosen entries of a state
dict are saved.

Loads from which a training starts, as a backbone takes over what fits of a classifier: of a module into itself where
it is made, or into a part of its own beside others; and of a file that by the words of its path, or of the `if` around
it, is `pretrained`, of a module into itself, into a part of any, or in a function that builds the module and gives it
back.

## Fix safety

No fix is offered: which keys may be missing only the author knows.

## References

- [torch.nn.Module.load_state_dict](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict)
- [paddle.nn.Layer.set_state_dict](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

import re
from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints.loads import load_of
from mllint.semantic.checkpoints.unchecked import is_unchecked
from mllint.semantic.files.testing import is_test_code
from mllint.syntax.shape import argument, dotted_path

rule = Rule(
    code="ML423",
    message="keys that do not match are skipped in silence, and the result that names them is dropped",
    help="write `result = ...`, and look at `result.missing_keys` and `result.unexpected_keys`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    by_default=False,
)

_EXPLANATION = re.compile(r"strict|missing|unexpected|mismatch|ignor|omit|skip|partial", re.IGNORECASE)
_DIRECTION = re.compile(r"\b(?:mllint|noqa)\b.*")


@rule.on_method("load_state_dict", "set_state_dict", "set_dict", "load_dict")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report a load as a statement that skips what does not match."""
    if not _is_dropped(call, context):
        return
    load = load_of(context.model, call)
    if load is None or not is_unchecked(load) or is_test_code(context.model) or _is_explained(call, context):
        return
    if load.method == "load_state_dict":
        yield Finding(call)
    else:
        method = f"`{load.method}`"
        yield Finding(
            call,
            f"{method} skips keys that do not match, and the result that names them is dropped",
            f"write `missing, unexpected = {load.method}(...)` on the layer, and look at both",
        )


def _is_dropped(call: cst.Call, context: Context) -> bool:
    """Whether nobody gets the result, or it takes the module's own name, as if it were the module (ML420)."""
    statement = context.parent(call)
    if isinstance(statement, cst.Assign) and isinstance(call.func, cst.Attribute):
        targets = [dotted_path(target.target) for target in statement.targets]
        return targets == [dotted_path(call.func.value)]
    return isinstance(statement, cst.Expr)


def _is_explained(call: cst.Call, context: Context) -> bool:
    """Whether a comment at the statement, above what holds it or where the dict is made says what is left out."""
    given = argument(call, 0, "state_dict")
    made = [] if given is None else [binding.node for binding in context.bindings(given.value)]
    comments = [comment for node in (call, *made) for comment in context.comments(node)]
    comments += context.comments_above_holders(call) + context.comments_below(call)
    # A direction to a linter explains nothing.
    return any(_EXPLANATION.search(_DIRECTION.sub("", comment)) for comment in comments)
