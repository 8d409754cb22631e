"""## What it does

Finds `load_state_dict` called with the path of a file: `model.load_state_dict("model.pt")`; also with what a function
is given, where that is a text by default: `def load(path="model.pt")`. And with a part of what was read out of a file
of plain text, `yaml.safe_load(stream)["weights"]`, in which no tensor can be, or with a text in a dict of settings
that the calls of the function give it.

## Why is this bad?

It wants the dict that `torch.load` or `paddle.load` reads from the file. With a path PyTorch raises a `TypeError` and
Paddle an `AttributeError`, often only at the end of a long run or on the machine where the model is served.

## Example

```python
from torch import nn
import torch

model = nn.Linear(3, 4)
model.load_state_dict("model.pt")
```

## Use instead

```python
from torch import nn
import torch

model = nn.Linear(3, 4)
model.load_state_dict(torch.load("model.pt"))
```

## What it leaves alone

Arguments that are not surely a string or a `pathlib` path, and receivers that are not surely a module, an optimizer, a
scheduler or a scaler: other libraries have methods of this name that do take a path.

## Fix safety

Safe: the call raised before. Which device the tensors are read to, and whether the file may hold more than tensors
(`weights_only`), stays with the defaults of the installed version. Unsafe for what a function is given, who calls it
may give the dict, and for settings.

## References

- [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
- [paddle.load](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/load_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, wrap
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints.settings import is_setting
from mllint.semantic.values import Module, Object, Text, is_object, own_method
from mllint.syntax.shape import argument, string_literal

rule = Rule(
    code="ML421",
    message="`load_state_dict` is given a path instead of a state dict",
    help="load the file first",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)


@rule.on_method("load_state_dict", "set_state_dict", "set_dict", "load_dict")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call when its first argument is a string or path."""
    given = argument(call, 0, "state_dict")
    if given is None:
        return
    value = context.value(given.value)
    assert isinstance(call.func, cst.Attribute)
    receiver = context.value(call.func.value)
    method = call.func.attr.value
    if not isinstance(receiver, (Module, Object)) or own_method(receiver, method) is not None:
        return
    is_path = isinstance(value, Text) or is_object(value, "path")
    is_told = is_path or (isinstance(receiver, Module) and is_setting(context.model, given.value))
    if not is_told and not _is_path_by_default(given.value, context):
        return
    module, import_edit = context.need_import(receiver.framework or "torch")
    edits = wrap(given.value, f"{module}.load(", ")")
    trust = Applicability.SAFE if is_path else Applicability.UNSAFE
    fix = NodeFix("load the file", edits if import_edit is None else (*edits, import_edit), trust)
    yield Finding(
        call,
        f"`{method}` is given a path instead of a state dict",
        f"write `{method}({module}.load({context.short_text(given.value)}))`",
        fix=lambda: fix,
    )


def _is_path_by_default(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is what a function is given, as it is, and a text where nothing is given."""
    bindings = context.bindings(node)
    default = bindings[0].node.default if len(bindings) == 1 and isinstance(bindings[0].node, cst.Param) else None
    return default is not None and bool(string_literal(default))
