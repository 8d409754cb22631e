"""## What it does

Finds tensors in plain attributes of a module that ought to be registered:

- a new tensor with `requires_grad=True` (Paddle: `stop_gradient=False`), which is no parameter, also scaled, moved or
  filled, made by a function of the file, asked for gradients later, `self.weight.requires_grad_()`, or of which an
  optimizer is given a copy only: `Adam(nn.ParameterList([self.w]))`; also the items of a list or dict;
- a tensor computed from a new parameter, `nn.Parameter(x).cuda()` or `nn.Parameter(x) * 0.1`, also where the
  parameter has a name and is used for nothing else; also where it, or any plain one, is given to `register_parameter`;
- on PyTorch, a table made while the module is set up, of numbers or of other such tables, that meets the input of
  `forward`, or in any method what the weights give: also by way of functions, methods and other names, as an element
  of a list or dict, in place of a parameter that is left at `None`, or computed from itself later, as a running mean;
- random numbers drawn while the module is set up, on whatever device, that `forward` computes with, also where a new
  tensor is filled with them in place: `nn.init.xavier_uniform_(self.table)`;
- a registration that its own assignment undoes, `self.table = self.register_buffer("table", x)`, a buffer that is
  registered in `forward` alone, and saved; a plain tensor in the place of a layer's parameter, `conv.weight = x * 2`;
- nothing but zeros or ones that `forward` adds or multiplies and nobody fills or learns: `torch.zeros(n).to(device)`;
- state, wherever it lies, also where a method moves it or makes it at the first call: what a method computes of it and
  of data, `self.mean = m * self.mean + (1 - m) * x.mean(0)`, or writes into it, `self.queue[index] = keys`, and what a
  method called `fit` computes; and a value computed of parameters once, `self.ratio = self.high / self.low`.

## Why is this bad?

Only an `nn.Parameter` is a parameter: the first two get gradients and are in no `parameters()`: no optimizer moves
them, and they are not saved. `nn.Parameter(x).to(device)` looks right without a GPU, because there `to` gives the
parameter itself. `register_parameter`, `add_parameter` and assigning to a parameter raise where they are given what is
none. A plain tensor does not move with its module: after `model.cuda()` the input is on the GPU and the table is not,
which raises. (Paddle makes an unsaved buffer of every tensor that is assigned, and moves it.)

Random numbers that are not saved are drawn again by whoever makes the module to load its weights: nothing fails, and
it computes something else. So is it with state, which begins anew. What was computed of parameters stays as it was when
the optimizer changes them, and keeps a graph that is freed. A module that is made to load what `forward` registered has
no such name: PyTorch raises "Unexpected key(s) in state_dict", Paddle leaves it out. `register_buffer`,
`register_parameter` and `add_module` give `None` (of Paddle's, `register_buffer`).

## Example

```python
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.ones(size, requires_grad=True)
```

## Use instead

```python
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size, requires_grad=True))
```

## What it leaves alone

- What somebody looks after: moved by hand (`self.mask.to(x.device)`), or by a `_apply`, `to` or `cuda` of the class,
  made on a device, given to an optimizer or to `torch.autograd.grad`, set to something else later (new numbers by a
  method that `forward` does not call are nothing else), also from outside; and one whose `.grad` the code reads, where
  nobody in sight moves, saves or asks for the parameters of a module.
- What is made in a script on its own that never says a word of devices or types of numbers: nothing moves there.
- What stays where it is as well: what a method computes with a tensor that it makes right there; 0-d tensors, which
  work with those on any device; what a base class of PyTorch has registered, as losses do their `weight`.
- Tables that are read for their shape, as an index, or one number at a time; tensors without elements; those of tests;
  what stands in for a parameter that all calls in sight give, or is never read.
- Random numbers that somebody else reads, who may save them, that change later, matter in training alone, come of a
  generator or seed that the constructor sets, or are a sample: another method gives others to the same function.
- State that somebody sets back or assigns later, or from outside; that of one sequence, or overwritten at each call;
  what only others look at; that of a class with a `state_dict`, `get_extra_state` or `__getstate__` of its own.
- A value that only shows a parameter, `self.weight.t()`, is detached, made without gradients or of what the class
  freezes, or assigned again; a buffer with `persistent=False`, or registered in the constructor as well.
- `nn.Parameter(x).requires_grad_(False)` and `nn.Parameter(x).type(torch.FloatTensor)`, the parameter itself.

## Fix safety

Safe for a tensor that asks for gradients, and for a registration. The others are unsafe: they move an operation inside
`nn.Parameter`, or make a buffer of the table (with `persistent=False` where its values can be computed again).

## References

- [torch.nn.Module.register_buffer](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer)
- [torch.nn.parameter.Parameter](https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html)
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, append_trailer, insert_after, replace_before, replace_between, wrap
from mllint.rule import Finding, Rule
from mllint.semantic.modules import unregistered
from mllint.semantic.modules.lost_parameters import registered_in_vain, replaced_in_vain
from mllint.semantic.modules.unregistered import Loss, Lost
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.receivers import method_of_receiver
from mllint.syntax.shape import sets_attribute, unpacks_into_attributes

rule = Rule(
    code="ML404",
    message="this tensor is not registered with the module",
    help="assign an `nn.Parameter`, or call `register_buffer`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)
_Statement: TypeAlias = cst.Assign | cst.AnnAssign


@rule.on(cst.Assign, cst.AnnAssign, shape=sets_attribute)
def check(statement: _Statement, context: Context) -> Iterator[Finding]:
    """Report the assignment of a tensor that the module, or a layer, does not take up."""
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else statement.target
    yield from _of_attribute(statement, target, statement, context)


@rule.on(cst.Assign, shape=unpacks_into_attributes)
def check_unpacked(statement: cst.Assign, context: Context) -> Iterator[Finding]:
    """Report each of several attributes to which such tensors are assigned at once."""
    targets = statement.targets[0].target
    for element in targets.elements if isinstance(targets, (cst.Tuple, cst.List)) else ():
        yield from _of_attribute(statement, element.value, element.value, context)


def _of_attribute(
    statement: _Statement, target: cst.BaseExpression, place: cst.CSTNode, context: Context
) -> Iterator[Finding]:
    method = method_of_receiver(context.model, target.value) if isinstance(target, cst.Attribute) else None
    owner, value = None if method is None else method.owner, statement.value
    if method is None and value is not None and replaced_in_vain(context.model, target, value):
        yield Finding(place, *unregistered.words_of_replaced(context.model))
    framework = None if owner is None else owner.framework
    if value is None or method is None or owner is None or framework is None or not isinstance(target, cst.Attribute):
        return
    name, found = target.attr.value, unregistered.lost(context.model, owner, statement, target)
    if found is None:
        return
    is_table = found.how in (Loss.LEFT_BEHIND, Loss.REDRAWN)
    is_saved = not is_table or unregistered.has_to_be_saved(context.model, owner, name, value)
    persistence = "" if is_saved else ", persistent=False"
    fix = partial(_fix, found, statement, target, method, persistence, context) if place is statement else None
    yield Finding(place, *unregistered.words(found, name, framework, persistence), fix=fix)


@rule.on_method("register_parameter", "add_parameter")
def check_registered(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report what is registered as a parameter, and is none, or only computed from one."""
    found = registered_in_vain(context.model, call)
    if found is not None:
        value, inner = found
        is_torch = inner is not None and context.model.framework != "paddle"
        fix = partial(_computed_first, value, inner, context) if is_torch else None
        yield Finding(call, *unregistered.words_of_registered(context.model, value, inner), fix=fix)


@rule.on_method("register_buffer")
def check_buffer(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report a buffer that a module has only when it was called."""
    name = unregistered.registered_late(context.model, call)
    if name is not None:
        yield Finding(call, *unregistered.words_of_late(name, context.model.framework == "paddle"))


def _fix(
    found: Lost, statement: _Statement, target: cst.Attribute, method: FunctionInfo, persistence: str, context: Context
) -> NodeFix | None:
    owner, value = method.owner, statement.value
    if owner is None or value is None:
        return None
    if found.how is Loss.UNDONE:
        is_only_target = isinstance(statement, cst.Assign) and len(statement.targets) == 1
        return NodeFix("drop the assignment", (replace_before(statement, value, ""),)) if is_only_target else None
    is_only = sum(1 for _ in owner.members.assignments(target.attr.value)) <= 1
    if found.parameter is not None:
        return _computed_first(value, found.parameter, context) if owner.framework == "torch" else None
    if found.how is Loss.UNTRAINED:
        return _as_parameter(value, context) if owner.framework == "torch" and is_only else None
    is_set_up_here = method.name == "__init__" and is_only and not found.is_given
    is_buffer = found.how in (Loss.LEFT_BEHIND, Loss.REDRAWN) and is_set_up_here
    return _as_buffer(statement, target, value, persistence, context) if is_buffer else None


def _as_parameter(value: cst.BaseExpression, context: Context) -> NodeFix:
    """``torch.ones(3)`` -> ``nn.Parameter(torch.ones(3))``."""
    package, imported = context.need_import("torch.nn")
    edits = wrap(value, f"{package}.Parameter(", ")")
    return NodeFix("make it a parameter", edits if imported is None else (imported, *edits))


def _computed_first(value: cst.BaseExpression, inner: cst.Call | None, context: Context) -> NodeFix | None:
    """``nn.Parameter(x).cuda()`` -> ``nn.Parameter(x.cuda())``: what stands behind the parameter goes into it."""
    if inner is None or not inner.args or inner.args[0].keyword is not None or inner.lpar or value.lpar:
        return None
    whole, made = context.text(value), context.text(inner)
    if not whole.startswith(made):
        return None
    edits = append_trailer(inner.args[0].value, whole.removeprefix(made))
    return NodeFix("compute the value first", (*edits, replace_between(inner, value, "")), Applicability.UNSAFE)


def _as_buffer(
    statement: _Statement, target: cst.Attribute, value: cst.BaseExpression, persistence: str, context: Context
) -> NodeFix | None:
    """``self.mask = x`` -> ``self.register_buffer("mask", x, persistent=False)``."""
    if (context.torch_version or (2, 0)) < (1, 6):
        return None
    receiver, name = context.text(target.value), target.attr.value
    begin = replace_before(statement, value, f'{receiver}.register_buffer("{name}", ')
    return NodeFix("make it a buffer", (begin, insert_after(value, f"{persistence})")), Applicability.UNSAFE)
