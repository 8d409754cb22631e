"""## What it does

Finds writes to a copy: `x[mask][0] = 1`, `x[idx].add_(v)`, `x[[0, 2]].fill_(0)`, `x.index_select(0, idx).zero_()`.
And to a dict that `state_dict()` has just made: `model.state_dict()["fc.bias"] = bias`,
`model.state_dict().update(best)`, `del model.state_dict()["fc.bias"]`,
`optimizer.state_dict()["param_groups"][0]["lr"] = 0.01`.

## Why is this bad?

An index that is a mask, a list or a tensor of numbers gives a new tensor. What is written to that is thrown away with
it, and `x` stays as it was. Numbers and slices give views, so `x[0][mask] = 1` and `x[:2].fill_(0)` are right. NumPy
arrays behave in the same way. And `state_dict()` makes a new dict each time, of an optimizer with copies of its groups:
the module, or the optimizer, does not change.

## Example

```python
import torch

x = torch.randn(8)
x[x < 0].fill_(0)
```

## Use instead

```python
import torch

x = torch.randn(8)
x[x < 0] = 0
```

For an index that holds a number more than once, `x.index_add_(0, idx, values)` adds all of them. Of a module,
`model.state_dict()["fc.bias"].copy_(bias)`, of an optimizer `optimizer.param_groups[0]["lr"] = 0.01`.

## What it leaves alone

One index in an assignment: `x[mask] = v`, `x[idx] += v`. Results that are used: `y = x[mask].add_(1)`. Everything that
is not surely a tensor or array, and indexes that may be a single number or a slice. Files that use only NumPy. What is
written into the tensors of a state dict, `model.state_dict()["fc.bias"][:] = 0`: they are those of the module. Classes
of the project that have a `state_dict` of their own, and things of unknown class where some class in the file or beside
has one.

## Fix safety

No fix is offered: the two indexes have to be made one.

## References

- [Tensor views](https://docs.pytorch.org/docs/stable/tensor_view.html)
- [NumPy: copies and views](https://numpy.org/doc/stable/user/basics.copies.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints import thrown_away
from mllint.semantic.graph.indexing import copied
from mllint.semantic.graph.placement import wants_no_result
from mllint.semantic.names.writes import Write, write
from mllint.semantic.values import Array
from mllint.syntax.shape import last_word

rule = Rule(
    code="ML106",
    message="this writes to a copy, which is thrown away",
    help="index once, in an assignment",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)

_COPIES = frozenset({cst.Subscript, cst.Attribute, cst.Call})
_INTO_MODULE = "give the dict a name, change that, and load it"
_OF_ARRAYS = frozenset({"fill", "sort", "put", "partition"})


def _may_write_to_copy(statement: cst.Assign | cst.AugAssign | cst.Expr) -> bool:
    """Whether something may be written to what an index, an attribute or a method gives."""
    kind = statement.__class__
    if kind is cst.Expr:
        word = last_word(statement.value.func) if statement.value.__class__ is cst.Call else None
        return word is not None and (word.endswith("_") or word in _OF_ARRAYS)
    target = statement.targets[0].target if kind is cst.Assign else statement.target  # type: ignore[union-attr]
    if target.__class__ is cst.Subscript:
        return target.value.__class__ in _COPIES
    return kind is cst.AugAssign and target.__class__ in _COPIES


@rule.on(cst.Assign, cst.AugAssign, cst.Expr, shape=_may_write_to_copy)
def check(statement: cst.Assign | cst.AugAssign | cst.Expr, context: Context) -> Iterator[Finding]:
    """Report a statement that changes in place what an advanced index copied."""
    change = write(context.model, statement) or _of_array(statement, context)
    is_method = (
        change is not None and change.how.endswith("_()") and change.how[:-2] not in context.model.function_names
    )
    copy = None if change is None else copied(context.model, change.target, is_method)
    if change is None or copy is None or wants_no_result(context.model, statement):
        return
    text = context.text(copy)
    if len(text) > 40 or "\n" in text:
        text = f"{context.text(copy.value)}[...]" if isinstance(copy, cst.Subscript) else "..."
    advice = f"write `{text} = ...`" if isinstance(copy, cst.Subscript) else "assign to the items of the tensor"
    if change.how == "[...] =" or copy is not change.target:
        advice = "index the tensor only once where it is written to: combine the two indexes before"
    yield Finding(statement, f"`{text}` is a copy: what is written to it is lost", advice)


@rule.on(cst.Assign, cst.AugAssign, cst.Del, cst.Expr, mentions=(thrown_away.WORD,), shape=thrown_away.may_write)
def check_state(statement: cst.BaseSmallStatement, context: Context) -> Iterator[Finding]:
    """Report a statement that changes a dict which ``state_dict()`` has made for it alone."""
    state = thrown_away.written(context.model, statement)
    if state is None or wants_no_result(context.model, statement):
        return
    is_of_groups = isinstance(statement, (cst.Assign, cst.AugAssign)) and "param_groups" in context.text(statement)
    advice = "change what stands in `param_groups` of the optimizer itself" if is_of_groups else _INTO_MODULE
    yield Finding(statement, "`state_dict()` makes a new dict: what is written to it is lost", advice)


def _of_array(statement: cst.BaseSmallStatement, context: Context) -> Write | None:
    """``array[mask].fill(0)``."""
    call = statement.value if isinstance(statement, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    name, receiver = call.func.attr.value, call.func.value
    is_array = name in _OF_ARRAYS and isinstance(context.value(receiver), Array)
    return Write(receiver, f"{name}()") if is_array else None
