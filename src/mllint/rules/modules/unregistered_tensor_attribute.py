"""## What it does

Finds tensors in plain attributes of a module that ought to be registered:

- a new tensor with `requires_grad=True` (Paddle: `stop_gradient=False`), which is no parameter, also one that a
  function or method of the file makes;
- a tensor computed from a new parameter, `nn.Parameter(x).cuda()` or `nn.Parameter(x) * 0.1`, also where the
  parameter has a name and is used for nothing else;
- on PyTorch, a table made while the module is set up, of numbers or of other such tables, that meets the input of
  `forward`, or in any method what the weights give; also as an element of a list or dict;
- random numbers drawn while the module is set up, on whatever device, that `forward` computes with;
- a registration that its own assignment undoes: `self.table = self.register_buffer("table", x)`.

## Why is this bad?

Only an `nn.Parameter` is a parameter: the first two get gradients and are in no `parameters()`, so that no optimizer
moves them, and they are not saved. `nn.Parameter(x).to(device)` looks right on a machine without a GPU, because there
`to` has nothing to do and gives the parameter itself.

A plain tensor does not move with its module: after `model.cuda()` the input is on the GPU and the table is not, which
raises. (Paddle makes an unsaved buffer of every tensor that is assigned, and moves it.)

Random numbers that are not saved are drawn again by whoever makes the module to load its weights: nothing fails, and
the module computes something else. `register_buffer`, `register_parameter` and `add_module` give `None` (of Paddle's,
`register_buffer`): assigned to the attribute of that name it takes the place of what was registered.

## Example

```python
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.ones(size, requires_grad=True)

    def forward(self, x):
        return x * self.weight
```

## Use instead

```python
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size, requires_grad=True))

    def forward(self, x):
        return x * self.weight
```

## What it leaves alone

Tensors that somebody looks after: moved by hand (`self.mask.to(x.device)`, or with others by names that are computed),
made on a device, given to an optimizer or to `torch.autograd.grad`, set to something else later (to new numbers by a
method that `forward` does not call is nothing else). Tables that are read for their shape, as an index, or one number
at a time; lists of tensors without elements (`torch.empty(0)`), which are filled later; those of tests. 0-d tensors,
which work with tensors on any device. Random numbers that somebody else reads, who may save them, that change later,
matter in training alone, or come of a generator or seed that the constructor sets.
`nn.Parameter(x).requires_grad_(False)` and `nn.Parameter(x).type(torch.FloatTensor)`, which are the parameter itself.

## Fix safety

Safe for a tensor that asks for gradients, and for a registration. The other fixes are unsafe: they move an operation
inside `nn.Parameter`, or make a buffer of the table (with `persistent=False`, so that old checkpoints still load, where
its values can be computed again).

## References

- [torch.nn.Module.register_buffer](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer)
- [torch.nn.parameter.Parameter](https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html)
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, append_trailer, insert_after, replace_before, replace_between, wrap
from mllint.rule import Finding, Rule
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules import plain_tensors, unsaved_draws
from mllint.semantic.modules.lost_parameters import becomes_parameter, parameter_inside
from mllint.semantic.modules.lost_registrations import undoing
from mllint.semantic.modules.plain_lists import tensors_stay_behind
from mllint.semantic.names.classes import Members
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.values import Tensor
from mllint.syntax.shape import assigns_attribute

rule = Rule(
    code="ML404",
    message="this tensor is not registered with the module",
    help="assign an `nn.Parameter`, or call `register_buffer`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_EXPRESSIONS = (cst.Call, cst.BinaryOperation, cst.UnaryOperation, cst.Subscript, cst.Name)
_CONTAINERS = (cst.List, cst.ListComp, cst.Dict, cst.DictComp)


@rule.on(cst.Assign, cst.AnnAssign, shape=assigns_attribute)
def check(statement: cst.Assign | cst.AnnAssign, context: Context) -> Iterator[Finding]:
    """Report the assignment of a tensor that the module does not take up."""
    value = statement.value
    if type(value) not in _EXPRESSIONS and type(value) not in _CONTAINERS:
        return
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else statement.target
    assert isinstance(value, cst.BaseExpression)
    assert isinstance(target, cst.Attribute)
    method = method_of_receiver(context.model, target.value)
    if method is None or method.owner is None or method.owner.framework is None:
        return
    name, members, framework = target.attr.value, method.owner.members, method.owner.framework
    if type(value) in _CONTAINERS:
        if framework == "torch" and tensors_stay_behind(members, name) and not is_test_code(context.model):
            yield Finding(
                statement,
                f"the tensors in `self.{name}` stay behind when the module moves to a device",
                "register each with `register_buffer`, or put parameters into an `nn.ParameterList`",
            )
        return
    setter = undoing(context.model, method.owner, name, value)
    inner = parameter_inside(context.model, value)
    if setter is not None:
        fix = NodeFix("drop the assignment", (replace_before(statement, value, ""),))
        yield Finding(
            statement,
            f"`{setter}` gives `None`, and assigning that takes `{name}` away again",
            f"write only `self.{setter}(...)`",
            fix=lambda: fix if isinstance(statement, cst.Assign) and len(statement.targets) == 1 else None,
        )
    elif inner is not None:
        if becomes_parameter(members, name, statement):
            return
        yield Finding(
            statement,
            f"`self.{name}` is a tensor computed from a parameter, and no parameter itself",
            "compute the value first, and make a parameter of it",
            fix=lambda: _computed_first(value, inner, context) if framework == "torch" else None,
        )
    elif plain_tensors.is_leaf_to_train(context.model, value) or (
        plain_tensors.is_asked_for_gradients_later(members, name) and plain_tensors.is_new(context.model, value)
    ):
        if not plain_tensors.is_handed_over(members, name):
            yield Finding(
                statement,
                f"`self.{name}` asks for gradients and is no parameter: nothing trains it",
                f"assign {'an `nn.Parameter`' if framework == 'torch' else 'what `self.create_parameter(...)` gives'}",
                fix=lambda: _as_parameter(value, name, members, context) if framework == "torch" else None,
            )
    elif _is_plain(value, context) and not is_test_code(context.model):
        if framework == "torch" and plain_tensors.stays_behind(members, name):
            message = f"`self.{name}` is no buffer: it stays behind when the module moves to a device"
        elif unsaved_draws.draws(context.model, value) and unsaved_draws.is_lost(members, name):
            message = f"`self.{name}` is drawn at random and not saved: a module that is loaded has another"
        else:
            return
        yield Finding(
            statement,
            message,
            f'write `self.register_buffer("{name}", ...{_persistence(value, name, members, context)})`',
            fix=lambda: _as_buffer(statement, target, value, members, context) if method.name == "__init__" else None,
        )


def _persistence(value: cst.BaseExpression, name: str, members: Members, context: Context) -> str:
    """What says that a buffer is not saved: it can be computed again, and checkpoints from before lack it.

    No such thing of what is drawn at random, or changes later: without it what was trained would not work.
    """
    if unsaved_draws.draws(context.model, value) or plain_tensors.changes_later(members, name):
        return ""
    return ", persistent=False"


def _is_plain(value: cst.BaseExpression, context: Context) -> bool:
    found = context.value(value)
    if not isinstance(found, Tensor) or found.attached:  # computed from a leaf that is lost: ML209
        return False
    return not found.parameter and not found.scalar and not found.or_number


def _as_parameter(value: cst.BaseExpression, name: str, members: Members, context: Context) -> NodeFix | None:
    """``torch.ones(3)`` -> ``nn.Parameter(torch.ones(3))``, where no other tensor is assigned to the attribute."""
    if sum(1 for _ in members.assignments(name)) > 1:
        return None
    package, imported = context.need_import("torch.nn")
    edits = wrap(value, f"{package}.Parameter(", ")")
    return NodeFix("make it a parameter", edits if imported is None else (imported, *edits))


def _computed_first(value: cst.BaseExpression, inner: cst.Call, context: Context) -> NodeFix | None:
    """``nn.Parameter(x).cuda()`` -> ``nn.Parameter(x.cuda())``: what stands behind the parameter goes into it."""
    if not inner.args or inner.args[0].keyword is not None or inner.lpar or value.lpar:
        return None
    whole, made = context.text(value), context.text(inner)
    if not whole.startswith(made):
        return None
    edits = append_trailer(inner.args[0].value, whole.removeprefix(made))
    return NodeFix("compute the value first", (*edits, replace_between(inner, value, "")), Applicability.UNSAFE)


def _as_buffer(
    statement: cst.Assign | cst.AnnAssign,
    target: cst.Attribute,
    value: cst.BaseExpression,
    members: Members,
    context: Context,
) -> NodeFix | None:
    """``self.mask = x`` -> ``self.register_buffer("mask", x, persistent=False)``."""
    if (context.torch_version or (2, 0)) < (1, 6) or sum(1 for _ in members.assignments(target.attr.value)) > 1:
        return None
    receiver, name = context.text(target.value), target.attr.value
    begin = replace_before(statement, value, f'{receiver}.register_buffer("{name}", ')
    end = insert_after(value, f"{_persistence(value, name, members, context)})")
    return NodeFix("make it a buffer", (begin, end), Applicability.UNSAFE)
