"""## What it does

Finds context managers that are made and thrown away: `torch.no_grad()`, `torch.autocast("cuda")` or
`model.no_sync()` as a statement of its own.

## Why is this bad?

Such a call changes nothing. It gives an object that acts while it is entered, and nobody enters it: the code below
builds graphs, computes in full precision and synchronises gradients as if the line were not there.

## Example

```python
import torch

torch.no_grad()
print(torch.is_grad_enabled())
```

## Use instead

```python
import torch

with torch.no_grad():
    print(torch.is_grad_enabled())
```

## What it leaves alone

Functions that act at once, though they can be entered too: `torch.set_grad_enabled(False)`,
`torch.autograd.set_detect_anomaly(True)`, `torch.set_default_device("cuda")`. Managers that are entered by other means:
`stack.enter_context(torch.no_grad())`, `torch.no_grad().__enter__()`. A `torch.device(name)` that is made to see
whether it raises. Profilers that are switched off (`torch.autograd.profiler.emit_nvtx(enabled=False)`), as guides on
speed advise.

## Fix safety

No fix is offered: what is to stand in the block is for the author to say.

## References

- [Locally disabling gradient computation](https://docs.pytorch.org/docs/stable/autograd.html#locally-disable-grad)
- [torch.autocast](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
- [paddle.no_grad](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/no_grad_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.knowledge import contexts
from mllint.rule import Finding, Rule
from mllint.semantic.graph.placement import wants_no_result
from mllint.semantic.values import Module
from mllint.syntax.shape import argument, constant, dotted_path, is_call

rule = Rule(
    code="ML205",
    message="a context manager as a statement changes nothing",
    help="enter it with `with`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)

_LONGEST_NAME = 28
# What acts at once, for those who do not want a block.
_AT_ONCE = {
    "torch.no_grad": "torch.set_grad_enabled(False)",
    "torch.enable_grad": "torch.set_grad_enabled(True)",
    "torch.autograd.detect_anomaly": "torch.autograd.set_detect_anomaly(True)",
    "torch.device": "torch.set_default_device(...)",
    "torch.cuda.device": "torch.cuda.set_device(...)",
    "torch.serialization.safe_globals": "torch.serialization.add_safe_globals(...)",
    "paddle.no_grad": "paddle.set_grad_enabled(False)",
    "paddle.enable_grad": "paddle.set_grad_enabled(True)",
}


@rule.on(cst.Expr, mentions=(*contexts.WORDS, "no_sync"), shape=is_call)
def check(statement: cst.Expr, context: Context) -> Iterator[Finding]:
    """Report a statement that is nothing but a call that gives a context manager."""
    call = statement.value
    if not isinstance(call, cst.Call):
        return
    name = _manager(call, context)
    if name is None or wants_no_result(context.model, statement):
        return
    path = dotted_path(call.func) or name
    shown = path if len(path) <= _LONGEST_NAME else path.rpartition(".")[2]
    arguments = "..." if call.args else ""
    instead = f" or `{_AT_ONCE[name]}`" if name in _AT_ONCE else ""
    help_ = f"write `with {path}({arguments}):` around what it is for{instead}"
    if name.endswith(".no_grad") and _asks_for_gradients(statement, context):
        help_ = f"take it away, or write `with {path}():` around what needs no gradients"
    yield Finding(statement, f"`{shown}({arguments})` as a statement changes nothing: it is never entered", help_)


def _asks_for_gradients(statement: cst.Expr, context: Context) -> bool:
    """Whether the function around makes a tensor that asks for gradients: ``torch.zeros(3, requires_grad=True)``."""
    words, function = context.model.names_by_word, context.model.enclosing_function(statement)
    asking = (context.parent(word) for flag in ("requires_grad", "stop_gradient") for word in words.get(flag, ()))
    return any(
        isinstance(arg, cst.Arg)
        and constant(arg.value) is (arg.keyword is not None and arg.keyword.value == "requires_grad")
        and context.model.enclosing_function(arg) is function
        for arg in asking
    )


def _manager(call: cst.Call, context: Context) -> str | None:
    """The name of the context manager that a call gives."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "no_sync":
        module = context.value(call.func.value)
        return "no_sync" if isinstance(module, Module) and module.wrappers[:1] not in ((), ("?",)) else None
    name = context.library_name(call.func)
    if name is None or not contexts.is_context_manager(name):
        return None
    is_on = argument(call, 0, "enabled")
    if is_on is not None and constant(is_on.value) is False and "profiler" in name:
        return None  # to switch it off, which it is: guides on speed say so
    # A device that is made of a name from elsewhere may be a check of that name.
    is_check = name == "torch.device" and (not call.args or not isinstance(constant(call.args[0].value), (str, int)))
    return None if is_check else name
