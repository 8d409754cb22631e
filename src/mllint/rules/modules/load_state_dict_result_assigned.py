"""## What it does

Finds code that takes what `load_state_dict` returns for the model: `model = model.load_state_dict(state)`,
`model = Net().load_state_dict(state)`, `nets[key] = nets[key].load_state_dict(state)`,
`Net().load_state_dict(state).eval()`, or `return model.load_state_dict(state)` in a function that returns the `model`
itself on another way, or of which a caller uses what it returns as a model.

## Why is this bad?

`load_state_dict` changes the model it is called on. What it returns is a report of missing and unexpected keys
(`set_state_dict` of Paddle: a tuple of two lists; of an optimizer: `None`). The model is lost, and the next line that
uses the name fails.

## Example

```python
import torch
from torch import nn

model = nn.Linear(3, 4)
model = model.load_state_dict(torch.load("model.pt"))
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(3, 4)
model.load_state_dict(torch.load("model.pt"))
```

## What it leaves alone

`missing, unexpected = model.load_state_dict(state, strict=False)` and every other name for the report that is not used
as a model later, and functions that return nothing but the report, which nobody takes for more. Classes of the project
with a `load_state_dict` of their own.

## Fix safety

Safe: the assignment is dropped, or split in two where the model is made in the same statement. None for a `return`.

## References

- [torch.nn.Module.load_state_dict](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict)
- [paddle.nn.Layer.set_state_dict](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, delete_assignment_target, insert_after
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints.unchecked import AS_MODEL, is_bound_to_model, is_returned_as_model
from mllint.semantic.expressions.iteration import is_one_place
from mllint.semantic.values import Instance, Loaded, Module, Object, Value, own_method
from mllint.syntax.shape import argument, dotted_path

rule = Rule(
    code="ML420",
    message="`load_state_dict` does not return the model",
    help="drop the assignment",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)


@rule.on_method("load_state_dict", "set_state_dict", "set_dict", "load_dict")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call when its result is bound to a name that stands for the model, or used as one at once."""
    assert isinstance(call.func, cst.Attribute)
    receiver, method = call.func.value, call.func.attr.value
    value = context.value(receiver)
    if _has_own_method(value, method):
        return
    is_loading = isinstance(value, (Module, Object)) or _is_given_a_file(call, value, context)
    word = _method_called_on(call, context)
    if word is not None and is_loading:
        message = f"`{method}` does not return the model: what it returns has no `{word}`"
        yield Finding(call, message, f"call `{method}` on a line of its own, then `{word}` on the model")
        return
    statement = context.parent(call)
    if isinstance(statement, cst.Return):
        where = _where_it_is_a_model(receiver, statement, context) if is_loading else None
        if where is not None:
            message = f"`{method}` does not return the model{where}"
            yield Finding(call, message, f"call `{method}` on a line of its own, then return the model")
        return
    target = _only_target(statement)
    if target is None or not isinstance(statement, (cst.Assign, cst.AnnAssign)):
        return
    path, written = dotted_path(target), context.text(target)
    message = f"`{method}` does not return the model: `{written}` becomes a report of keys"
    if is_one_place(context.model, target, receiver):
        if context.model.framework is not None or value is not None:
            fix = NodeFix("drop the assignment", (delete_assignment_target(statement),))
            help_ = f"write `{context.text(receiver)}.{method}(...)` without the assignment"
            yield Finding(call, message, help_, fix=lambda: fix)
    elif path is not None and is_loading and is_bound_to_model(context.model, target, statement):
        yield Finding(
            call,
            message,
            f"make the model first, then call `{path}.{method}(...)`",
            fix=(lambda: _split(statement, receiver, path, context)) if isinstance(receiver, cst.Call) else None,
        )


def _where_it_is_a_model(receiver: cst.BaseExpression, statement: cst.Return, context: Context) -> str | None:
    """What shows that the model was to be returned."""
    if _is_returned_elsewhere(receiver, statement, context):
        return ", which is returned elsewhere in the function"
    return ": the callers use a report of keys as one" if is_returned_as_model(context.model, statement) else None


def _is_returned_elsewhere(receiver: cst.BaseExpression, statement: cst.Return, context: Context) -> bool:
    """Whether another ``return`` of the function gives back the model itself, and nothing but it."""
    function, path = context.model.enclosing_function(statement), dotted_path(receiver)
    if function is None or path is None:
        return False
    others = [item.value for item in context.model.scope(function).returns if item is not statement]
    given = [value for value in others if value is not None and dotted_path(value) == path]
    return bool(given) and all(context.model.reaching(value) == context.model.reaching(receiver) for value in given)


def _only_target(statement: cst.CSTNode | None) -> cst.BaseExpression | None:
    if isinstance(statement, cst.AnnAssign):
        return statement.target
    only = isinstance(statement, cst.Assign) and len(statement.targets) == 1
    return statement.targets[0].target if isinstance(statement, cst.Assign) and only else None


def _method_called_on(call: cst.Call, context: Context) -> str | None:
    """``eval`` of ``net.load_state_dict(state).eval()``."""
    attribute = context.parent(call)
    if not isinstance(attribute, cst.Attribute) or attribute.value is not call:
        return None
    is_called = context.model.tree.call_of(attribute) is not None
    return attribute.attr.value if is_called and attribute.attr.value in AS_MODEL else None


def _is_given_a_file(call: cst.Call, value: Value | None, context: Context) -> bool:
    """Whether something of which nothing is known is given what ``load`` of the framework reads, as modules are."""
    given = argument(call, 0, "state_dict")
    assert isinstance(call.func, cst.Attribute)
    is_own = call.func.attr.value in context.model.function_names
    return value is None and not is_own and given is not None and isinstance(context.value(given.value), Loaded)


def _has_own_method(value: Value | None, method: str) -> bool:
    """Whether the receiver is of a project class that defines the method itself."""
    if isinstance(value, (Instance, Module)) and value.definition is not None:
        return own_method(value, method) is not None
    return value is not None and not isinstance(value, (Module, Object))


def _split(
    statement: cst.Assign | cst.AnnAssign, receiver: cst.BaseExpression, path: str, context: Context
) -> NodeFix | None:
    """``m = Net().load_state_dict(s)`` -> ``m = Net()`` and ``m.load_state_dict(s)`` on a line of its own."""
    line = context.parent(statement)
    if (
        not isinstance(line, cst.SimpleStatementLine)
        or len(line.body) > 1
        or receiver.lpar
        or (statement.value and statement.value.lpar)
    ):
        return None
    return NodeFix("load into the model", (insert_after(receiver, f"{context.line_break(line)}{path}"),))
