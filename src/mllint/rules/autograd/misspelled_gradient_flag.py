"""## What it does

Finds assignments to misspelled gradient flags: `require_grad`, `requires_grads`, `stop_gradients` and the like, and
arguments of that name that a function of PyTorch or Paddle is given.

## Why is this bad?

Python lets you set any attribute on a parameter, a module or (Paddle 3.0 and later) a tensor. `p.require_grad = False`
creates a new attribute that nothing reads: the parameter goes on training, and nobody is told. An argument of that
name raises.

## Example

```python
from torch import nn

model = nn.Linear(3, 4)
for parameter in model.parameters():
    parameter.require_grad = False
```

## Use instead

```python
from torch import nn

model = nn.Linear(3, 4)
for parameter in model.parameters():
    parameter.requires_grad = False
```

## What it leaves alone

An attribute that the same file also reads, that is given a list or dict, or that is set on an object that is
neither tensor nor module: it is somebody's own field then. What is switched off for a new tensor (`table =
torch.zeros(3)`), which asks for no gradients anyway. Tensors of whole numbers or truth values by the way they were
made (`labels.long()`), which cannot want any.
Keyword arguments of the project's own functions, and of functions that take any keyword.

## Fix safety

Safe: the assignment did nothing before, and the name leaves no doubt about what was meant. On a module of PyTorch,
which has no such flag under any name, the method `requires_grad_` is called; on a layer of Paddle no fix is offered.
Unsafe on tensors of PyTorch that are computed, which do not let their flag be changed, where the flag is set on
what may be no parameter (a tensor that needs a gradient cannot be changed in place or given to `numpy()`), and where
all parameters of what is frozen are given to somebody to train: PyTorch raises when none of them is left. An argument
is renamed only where the function has the one that is meant.

## References

- [torch.Tensor.requires_grad](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad.html)
- [paddle.Tensor.stop_gradient](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, call_instead_of_assigning, rename_attribute, rename_keyword
from mllint.knowledge.lookup import parameters
from mllint.rule import Finding, Rule
from mllint.semantic.graph.flags import is_context, is_so_anyway, is_trained_whole
from mllint.semantic.values import ClassObject, Instance, Module, Other, Output, Symbol, Tensor, Value, own_method
from mllint.syntax.shape import constant

rule = Rule(
    code="ML203",
    message="misspelled gradient flag has no effect",
    help="write `requires_grad`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_MEANT = {
    "requires_grad": (
        "require_grad", "require_grads", "requires_grads", "required_grad", "requires_gradient", "require_gradient",
        "requires_gradients", "requres_grad", "reqires_grad", "requires_gard", "require_gard", "requires_garad",
        "requiers_grad", "requried_grad", "requries_grad", "requiresgrad", "requires_gra", "requires_gad",
        "requirs_grad",
    ),
    "stop_gradient": (
        "stop_gradients", "stop_grad", "stop_grads", "stop_gradiant", "stop_gradent", "stop_gradien", "stop_gardient",
        "stops_gradient", "stopgradient", "stop_graident", "stop_grandient", "stop_gradinet",
    ),
}  # fmt: skip
_MANY = (cst.BaseDict, cst.BaseList, cst.BaseSet, cst.BaseComp)
_TYPOS = {typo: flag for flag, typos in _MEANT.items() for typo in typos}


def _is_misspelled(node: cst.AssignTarget | cst.AnnAssign) -> bool:
    target = node.target
    if target.__class__ is cst.Attribute:
        return target.attr.value in _TYPOS
    return any(item.attr.value in _TYPOS for item in _attributes(target))


@rule.on(cst.AssignTarget, cst.AnnAssign, mentions=tuple(sorted(_TYPOS)), shape=_is_misspelled)
def check(node: cst.AssignTarget | cst.AnnAssign, context: Context) -> Iterator[Finding]:
    """Report the assignment to an attribute with one of the known misspellings."""
    for target in _attributes(node.target):
        if target.attr.value in _TYPOS:
            yield from _finding(target, context)


@rule.on(cst.Arg, mentions=tuple(sorted(_TYPOS)), shape=lambda arg: arg.keyword and arg.keyword.value in _TYPOS)
def check_keyword(arg: cst.Arg, context: Context) -> Iterator[Finding]:
    """Report an argument with one of the known misspellings that is given to a function or class of the framework."""
    typo, call = "" if arg.keyword is None else arg.keyword.value, context.parent(arg)
    if not isinstance(call, cst.Call):
        return
    name = context.model.library_name(call.func) or ""
    accepted = parameters(name)
    if accepted and not any(item.startswith("**") for item in accepted):
        flag = _TYPOS[typo]
        has_flag = flag in accepted
        fix = NodeFix(f"rename to `{flag}`", (rename_keyword(arg, flag),))
        yield Finding(
            arg,
            f"`{typo}` is no argument of `{name}`: this raises",
            f"write `{flag}`" if has_flag else f"set `{flag}` on the tensor, or on the parameters of the module",
            fix=(lambda: fix) if has_flag else None,
        )


def _attributes(target: cst.BaseExpression) -> Iterator[cst.Attribute]:
    """The attributes that an assignment to a target sets, those in a tuple included."""
    if type(target) is cst.Attribute:
        yield target
    elif type(target) is cst.Tuple or type(target) is cst.List:
        for element in target.elements:
            yield from _attributes(element.value)


def _finding(target: cst.Attribute, context: Context) -> Iterator[Finding]:
    typo, statement = target.attr.value, context.statement(target)
    flag, owner = _TYPOS[typo], context.value(target.value)
    if _is_own_field(target, typo, context) or is_so_anyway(context.model, target.value, statement, flag):
        return
    message = f"`{typo}` is no gradient flag: the assignment has no effect"
    if not isinstance(owner, Module):
        is_unsafe = _may_be_refused(target, owner, context) or is_trained_whole(context.model, target)
        trust = Applicability.UNSAFE if is_unsafe else Applicability.SAFE
        fix = NodeFix(f"rename to `{flag}`", (rename_attribute(target, flag),), trust)
        yield Finding(target, message, f"write `{flag}`", fix=lambda: fix)
        return
    # A module has no such flag under the right name either.
    is_only_target = isinstance(statement, cst.Assign) and [item.target for item in statement.targets] == [target]
    called = flag == "requires_grad" and is_only_target
    yield Finding(
        target,
        message,
        f"set `{flag}` on every parameter of the module",
        fix=(lambda: _as_call(statement, target, context)) if called else None,
    )


def _may_be_refused(target: cst.Attribute, owner: Value | None, context: Context) -> bool:
    """Whether a tensor of PyTorch may not let its flag be changed, or may not be used as it is once the flag is set."""
    if context.model.framework != "torch" or (isinstance(owner, Tensor) and owner.parameter):
        return False
    statement = context.statement(target)
    value = statement.value if isinstance(statement, (cst.Assign, cst.AnnAssign)) else None
    given = [element.value for element in value.elements] if isinstance(value, cst.Tuple) else [value]
    is_wanted = any(item is None or constant(item) is not False for item in given)
    return is_wanted or isinstance(owner, Output) or (isinstance(owner, Tensor) and owner.attached is True)


def _as_call(statement: cst.CSTNode, target: cst.Attribute, context: Context) -> NodeFix:
    assert isinstance(statement, cst.Assign)
    trust = Applicability.UNSAFE if is_trained_whole(context.model, target) else Applicability.SAFE
    return NodeFix("call `requires_grad_`", call_instead_of_assigning(statement, target, "requires_grad_"), trust)


def _is_own_field(target: cst.Attribute, typo: str, context: Context) -> bool:
    """Whether the attribute belongs to somebody: read in the file, declared by a class, set on no tensor or module."""
    owner = context.value(target.value)
    if isinstance(owner, (ClassObject, Symbol, Other)) or is_context(context.model, target.value):
        return True
    if isinstance(owner, Instance) and owner.definition.framework is None:
        return True
    if isinstance(owner, Module) and own_method(owner, typo) is not None:
        return True
    if isinstance(getattr(context.statement(target), "value", None), _MANY):  # of each parameter
        return True
    return any(
        attribute.attr.value == typo and _is_read(attribute, context) for attribute in context.nodes(cst.Attribute)
    )


def _is_read(attribute: cst.Attribute, context: Context) -> bool:
    parent = context.parent(attribute)
    while isinstance(parent, (cst.BaseElement, cst.Tuple, cst.List)):
        parent = context.parent(parent)
    return not isinstance(parent, cst.AssignTarget) and not (
        isinstance(parent, (cst.AugAssign, cst.AnnAssign)) and parent.target is attribute
    )
