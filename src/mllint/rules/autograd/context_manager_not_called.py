"""## What it does

Finds context managers of PyTorch and Paddle that are entered without a call, `with torch.no_grad:`, and those that are
used as a decorator without a call where that does not work, `@paddle.no_grad`.

## Why is this bad?

The class is no context manager, only what a call of it gives: `with torch.no_grad:` raises a `TypeError` when the line
is reached. `@paddle.no_grad` raises one at the definition, so that the file cannot be imported. `@paddle.amp.auto_cast`
and `@torch.cuda.amp.autocast` take the function for their first argument: the decorated function is no longer called.

## Example

```python
import torch

with torch.no_grad:
    print(torch.is_grad_enabled())
```

## Use instead

```python
import torch

with torch.no_grad():
    print(torch.is_grad_enabled())
```

## What it leaves alone

`@torch.no_grad`, `@torch.enable_grad` and `@torch.inference_mode` without parentheses, which PyTorch accepts, and
`@no_grad` of `paddle.fluid`, which was accepted there, as it is by the functions of that name in the modules of Paddle
itself (`paddle.base.dygraph`). Names that are not surely those of the framework.

## Fix safety

Safe: the parentheses are added; the code raised before, or did not run the function. No fix is offered for managers
that need an argument, such as `torch.autocast`.

## References

- [torch.no_grad](https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html)
- [paddle.no_grad](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/no_grad_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, add_call_parentheses
from mllint.knowledge import contexts, lookup
from mllint.rule import Finding, Rule
from mllint.semantic.names.scopes import assigned
from mllint.semantic.names.uses import uses
from mllint.syntax.shape import dotted_path, options_of

rule = Rule(
    code="ML206",
    message="a context manager is entered without being called",
    help="add `()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_LONGEST_NAME = 34
_RAISES = "it raises a `TypeError`"


@rule.on(cst.WithItem, mentions=contexts.WORDS)
def check_with(item: cst.WithItem, context: Context) -> Iterator[Finding]:
    """Report ``with torch.no_grad:``."""
    yield from _check_entered(item.item, context)


@rule.on_method("enter_context")
def check_stack(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report ``stack.enter_context(torch.no_grad)``."""
    if len(call.args) == 1 and not call.args[0].star:
        yield from _check_entered(call.args[0].value, context)


@rule.on(cst.Decorator, mentions=contexts.WORDS)
def check_decorator(decorator: cst.Decorator, context: Context) -> Iterator[Finding]:
    """Report ``@paddle.no_grad``."""
    name = _name(decorator.decorator, context)
    if name is not None and not contexts.decorates_uncalled(name):
        raises = name.rpartition(".")[2] in ("no_grad", "no_grad_", "enable_grad")
        consequence = "the decorator raises a `TypeError`" if raises else "the function is never run"
        yield from _check(decorator.decorator, consequence, context)


def _check_entered(entered: cst.BaseExpression, context: Context) -> Iterator[Finding]:
    """Report what is entered, each option of it, or what its name is bound to on one of several ways."""
    for manager in options_of(entered):
        if _name(manager, context) is None:
            yield from _check_bound(manager, context)
        else:
            yield from _check(manager, _RAISES, context)


def _check_bound(manager: cst.BaseExpression, context: Context) -> Iterator[Finding]:
    """Report a name where all that it is bound to is uncalled, else what is; not one that is called elsewhere."""
    bindings = context.bindings(manager) if isinstance(manager, cst.Name) else ()
    read = [use for item in bindings for use in uses(context.model, item)]
    if any(context.model.tree.call_of(use) is not None for use in read):
        return
    made = [value for item in bindings if (value := assigned(item)) is not None]
    found = [(option, _name(option, context)) for value in made for option in options_of(value)]
    names = [name for _, name in found if name is not None and contexts.is_plain_context_manager(name)]
    if names and len(names) == len(found) and len(made) == len(bindings):
        yield _finding(manager, names, _RAISES)
    elif read and read[0] is manager:
        for option, name in found:
            if name is not None:
                yield _finding(option, [name], f"{_RAISES} where it is entered", is_mendable=False)


def _check(manager: cst.BaseExpression, consequence: str, context: Context) -> Iterator[Finding]:
    name = _name(manager, context)
    if name is not None:
        yield _finding(manager, [name], consequence)


def _finding(manager: cst.BaseExpression, names: list[str], consequence: str, *, is_mendable: bool = True) -> Finding:
    """The report of an expression that is one of some context managers."""
    path = dotted_path(manager) or names[0]
    shown = path if len(path) <= _LONGEST_NAME else path.rpartition(".")[2]
    plain = all(map(contexts.is_plain_context_manager, names))
    arguments = "" if plain else ", ".join(lookup.parameters(names[0])[:1]) or "..."
    return Finding(
        manager,
        f"`{shown}` is not called: {consequence}",
        f"write `{path}({arguments})`",
        fix=(lambda: NodeFix("add `()`", add_call_parentheses(manager))) if plain and is_mendable else None,
    )


def _name(node: cst.BaseExpression, context: Context) -> str | None:
    """The name of the context manager that an expression is, not called."""
    if not isinstance(node, (cst.Name, cst.Attribute)):
        return None
    name = context.qualified_name(node)
    if name is None or not (contexts.is_context_manager(name) or lookup.switches_grad(name)):
        return None
    return name
