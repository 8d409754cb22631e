"""## What it does

Finds updates by hand that bind the name of a parameter to a new tensor: `w = w - lr * w.grad` in a loop, any assignment
to the variable of a loop over parameters, or over the tensors of a state dict (`for v in model.state_dict().values()`),
and an assignment of a computed tensor to a parameter of a module. In Paddle `w -= lr * w.grad` is such an assignment
too.

## Why is this bad?

The parameter stays where it was. In `for p in model.parameters(): p = p - lr * p.grad` the model does not change, and
nobody is told. A `w` that was made with `requires_grad=True` becomes a tensor without a gradient: the next step fails,
or in Paddle the next `backward()` does nothing. A module raises when it is given a tensor in place of a parameter.

## Example

```python
import torch
from torch import nn

model = nn.Linear(3, 1)
model(torch.rand(8, 3)).mean().backward()
with torch.no_grad():
    for parameter in model.parameters():
        parameter = parameter - 0.1 * parameter.grad
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(3, 1)
model(torch.rand(8, 3)).mean().backward()
with torch.no_grad():
    for parameter in model.parameters():
        parameter -= 0.1 * parameter.grad
```

In Paddle: `parameter.subtract_(0.1 * parameter.grad)` or `parameter.set_value(...)`.

## What it leaves alone

`w -= step` and `w.sub_(step)` in PyTorch, which work in place. Another name on the left, as in functional updates. A
loop variable whose new value is used. Tensors that are made leaves again: `x = (x + step * x.grad.sign()).detach()`,
`x.requires_grad_()`.

## Fix safety

No fix is offered: where `no_grad` has to begin is for the author to say.

## References

- [Autograd mechanics: in-place operations](https://docs.pytorch.org/docs/stable/notes/autograd.html)
- [paddle.Tensor.set_value](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.graph.rebinding import Form, Rebound, may_rebind, rebound
from mllint.syntax.shape import argument, constant, dotted_path

rule = Rule(
    code="ML207",
    message="the name of a parameter is bound to a new tensor",
    help="change the parameter in place",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)


_SIGNS = {"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/"}
_METHODS = {"+": "add_", "*": "mul_", "/": "div_"}
_LONGEST = 30
_WORDS = ("grad", "parameters", "named_parameters", "Parameter", "create_parameter", "state_dict")


@rule.on(cst.Assign, cst.AugAssign, mentions=_WORDS, shape=may_rebind)
def check(statement: cst.Assign | cst.AugAssign, context: Context) -> Iterator[Finding]:
    """Report an assignment that should have changed a parameter."""
    found = rebound(context.model, statement)
    if found is not None:
        yield Finding(statement, *_wording(statement, found, context))


def _wording(statement: cst.Assign | cst.AugAssign, found: Rebound, context: Context) -> tuple[str, str]:
    name = found.path
    if found.form is Form.REFUSED:
        message = f"`{name}` is a parameter: assigning a tensor to it raises"
    elif found.form is Form.LOST:
        message = f"this binds `{name}` to a new tensor: the parameter does not change"
    else:
        what = "needs no gradient" if context.model.gradients.off(statement) else "is no leaf"
        message = f"this binds `{name}` to a new tensor that {what}"
    return message, _advice(statement, found)


def _advice(statement: cst.Assign | cst.AugAssign, found: Rebound) -> str:
    name = found.path
    flag = _flag(statement)
    if flag is not None:
        return f"write `{name}.{flag}`"
    changed = _changed(statement, name)
    if changed is not None and found.form is Form.LOST:
        operator, operand = changed
        if found.framework == "paddle":
            return f"write `{name}.set_value({name} {operator} {operand})`"
        if operator in _METHODS:
            return f"write `{name}.{_METHODS[operator]}({operand})` under `torch.no_grad()`"
    if found.framework == "paddle":
        return f"write `{name}.set_value(...)`, or `{name}.subtract_(...)` under `paddle.no_grad()`"
    is_difference = isinstance(statement.value, cst.BinaryOperation) and isinstance(
        statement.value.operator, cst.Subtract
    )
    change = f"{name} -= ..." if is_difference else f"{name}.copy_(...)"
    return f"write `{change}` under `torch.no_grad()`"


def _flag(statement: cst.Assign | cst.AugAssign) -> str | None:
    """The flag that a tensor is made anew for: ``p = paddle.to_tensor(p, stop_gradient=True)``."""
    call = statement.value
    given = argument(call, None, "stop_gradient") if isinstance(call, cst.Call) and len(call.args) == 2 else None
    known = None if given is None else constant(given.value)
    return f"stop_gradient = {known}" if isinstance(known, bool) else None


def _changed(statement: cst.Assign | cst.AugAssign, name: str) -> tuple[str, str] | None:
    """The operator and the operand of ``p *= d`` and of ``p = p * d``, where that is short."""
    value = statement.value
    sign: cst.BaseAugOp | cst.BaseBinaryOp
    if isinstance(statement, cst.AugAssign):
        sign, operand = statement.operator, value
    elif isinstance(value, cst.BinaryOperation) and dotted_path(value.left) == name:
        sign, operand = value.operator, value.right
    else:
        return None
    operator = _SIGNS.get(type(sign).__name__.removesuffix("Assign"))
    text = dotted_path(operand)
    return None if operator is None or text is None or len(text) > _LONGEST else (operator, text)
