"""## What it does

Finds assignments to misspelled gradient flags: `require_grad`, `requires_grads`, `stop_gradients` and what else is a
slip away from the right name; and arguments of such a name that a function of PyTorch or Paddle is given. Also flags
that are called, `x.requires_grad(True)`: the method of PyTorch ends in an underscore.

Where a new tensor, `table = torch.zeros(3)`, or one of whole numbers is told to want no gradient, the message says
that it wants none anyway: only the line is wrong there, and the next who copies it may need the flag.

## Why is this bad?

Python lets you set any attribute on a parameter, a module or (Paddle 3.0 and later) a tensor. `p.require_grad = False`
creates a new attribute that nothing reads: the parameter goes on training, and nobody is told. An argument of that
name raises, and so does a flag that is called: "'bool' object is not callable". (A module has no such flag at all.)

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
neither tensor nor module: it is somebody's own field then. Names that mean something else, `requires_graph`,
`post_grad`. A flag with another word behind it, `stop_gradient_neg`, but on what the framework has just made, set to
`True` or `False`, where nobody in the project reads it.
Keyword arguments of the project's own functions, and of functions that take any keyword. Calls on what may have a
method of that name: objects and modules of which the class is not known, or has one; but not items,
`batch[key].requires_grad(True)`, in projects in which no class has such a method.

## Fix safety

Safe: the assignment did nothing before, and the name leaves no doubt about what was meant. On a module of PyTorch,
which has no such flag under any name, the method `requires_grad_` is called; on a layer of Paddle no fix is offered.
Unsafe on tensors of PyTorch that may be computed, which do not let their flag be changed (no fix is offered where they
surely are), where the flag is set on
what may be no parameter (a tensor that needs a gradient cannot be changed in place or given to `numpy()`), and where
all parameters of what is frozen are given to somebody to train: PyTorch raises when none of them is left. An argument
is renamed only where the function has the one that is meant. A call becomes one of `requires_grad_`, in Paddle an
assignment to `stop_gradient`; unsafe where it switches off what a tensor may have computed.

## References

- [torch.Tensor.requires_grad](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad.html)
- [paddle.Tensor.stop_gradient](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, call_instead_of_assigning, rename_attribute, rename_keyword, replace_between
from mllint.knowledge.lookup import parameters
from mllint.rule import Finding, Rule
from mllint.semantic.graph import flag_names
from mllint.semantic.graph.flag_names import misspelled
from mllint.semantic.graph.flags import is_refused, is_somebodys, is_trained_whole, may_be_refused
from mllint.semantic.graph.state_flags import holder_of_called_flag
from mllint.semantic.graph.whole_numbers import holds_whole_numbers
from mllint.semantic.values import Module, Tensor
from mllint.syntax.shape import constant, last_word

rule = Rule(
    code="ML203",
    message="misspelled gradient flag has no effect",
    help="write `requires_grad`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)


@rule.on(cst.AssignTarget, cst.AnnAssign, mentions=flag_names.SIGNS, shape=flag_names.is_assigned)
def check(node: cst.AssignTarget | cst.AnnAssign, context: Context) -> Iterator[Finding]:
    """Report the assignment to an attribute whose name is nearly that of a flag."""
    for target in flag_names.attributes_of(node.target):
        flag = flag_names.meant(target)
        if flag is not None:
            yield from _finding(target, flag, context)


@rule.on(cst.Arg, mentions=flag_names.SIGNS, shape=flag_names.is_argument)
def check_keyword(arg: cst.Arg, context: Context) -> Iterator[Finding]:
    """Report an argument whose name is nearly that of a flag, and that a function or class of the framework gets."""
    typo, call = "" if arg.keyword is None else arg.keyword.value, context.parent(arg)
    if not isinstance(call, cst.Call):
        return
    name = context.model.library_name(call.func) or ""
    accepted = parameters(name)
    flag = misspelled(typo)
    if flag is not None and accepted and typo not in accepted and not any(item.startswith("**") for item in accepted):
        has_flag = flag in accepted
        fix = NodeFix(f"rename to `{flag}`", (rename_keyword(arg, flag),))
        yield Finding(
            arg,
            f"`{typo}` is no argument of `{name}`: this raises",
            f"write `{flag}`" if has_flag else f"set `{flag}` on the tensor, or on the parameters of the module",
            fix=(lambda: fix) if has_flag else None,
        )


@rule.on_method(*flag_names.FLAGS)
def check_call(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report a flag that is called, as though it were the method of nearly the same name."""
    holder = holder_of_called_flag(context.model, call)
    if holder is not None:
        flag = last_word(call.func)
        message = f"a module has no `{flag}`" if isinstance(holder, Module) else f"`{flag}` is a flag and no method"
        meant, fix = _instead_of_call(call, holder, context)
        yield Finding(call, f"{message}: to call it raises", meant, fix=None if fix is None else (lambda: fix))


def _finding(target: cst.Attribute, flag: str, context: Context) -> Iterator[Finding]:
    typo, statement, model = target.attr.value, context.statement(target), context.model
    value = statement.value if isinstance(statement, (cst.Assign, cst.AnnAssign)) else None
    is_longer = misspelled(typo) is None
    if is_somebodys(model, target) or (is_longer and not flag_names.is_set_in_vain(model, target, value)):
        return
    owner, message = context.value(target.value), f"`{typo}` is no gradient flag: the assignment has no effect"
    if isinstance(statement, cst.Assign) and is_refused(model, target.value, statement):
        yield Finding(target, message, "take what `.detach()` gives: what is computed does not let its flag be changed")
        return
    is_filled = flag_names.is_changed_above(model, target.value)
    if value is not None and not is_longer and not is_filled:
        needless = _needless(target, flag, constant(value), context)
        if needless is not None:
            yield needless
            return
    if not isinstance(owner, Module):
        is_unsafe = is_longer or is_filled or may_be_refused(model, target) or is_trained_whole(model, target)
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


def _needless(target: cst.Attribute, flag: str, given: object, context: Context) -> Finding | None:
    """What is said where the right name would change nothing, or raise: of a tensor that asks for no gradient."""
    typo, is_whole = target.attr.value, holds_whole_numbers(context.model, target.value)
    if given is (flag == "stop_gradient") and (is_whole or flag_names.is_new_without(context.model, target.value)):
        message = f"`{typo}` is no gradient flag, and this tensor asks for no gradient anyway"
        fix = NodeFix(f"rename to `{flag}`", (rename_attribute(target, flag),))
        return Finding(target, message, f"write `{flag}`, or leave it out", fix=lambda: fix)
    if is_whole:
        message = f"`{typo}` is no gradient flag: the assignment has no effect"
        return Finding(target, message, "leave it out: a tensor of whole numbers has no gradient")
    return None


def _as_call(statement: cst.CSTNode, target: cst.Attribute, context: Context) -> NodeFix:
    assert isinstance(statement, cst.Assign)
    trust = Applicability.UNSAFE if is_trained_whole(context.model, target) else Applicability.SAFE
    return NodeFix("call `requires_grad_`", call_instead_of_assigning(statement, target, "requires_grad_"), trust)


def _instead_of_call(call: cst.Call, holder: Tensor | Module, context: Context) -> tuple[str, NodeFix | None]:
    """What to write where a flag is called, and how to get there."""
    target, is_statement = call.func, isinstance(context.parent(call), cst.Expr)
    assert isinstance(target, cst.Attribute)
    given = [None if arg.keyword or arg.star else constant(arg.value) for arg in call.args]
    if not call.args and not is_statement:  # who asks for a flag does not set it
        fix = NodeFix("leave out `()`", (replace_between(target, call, ""),))
        return ("leave out `()`", fix) if isinstance(holder, Tensor) else ("ask one of its parameters", None)
    if holder.framework == "torch":
        is_leaf = isinstance(holder, Module) or holder.parameter or holder.leaf or holder.attached is False
        trust = Applicability.SAFE if is_leaf or given in ([], [True]) else Applicability.UNSAFE
        fix = NodeFix("call `requires_grad_`", (rename_attribute(target, "requires_grad_"),), trust)
        is_sound = len(given) < 2 and None not in given and not holds_whole_numbers(context.model, target.value)
        return "call `requires_grad_`", fix if is_sound else None
    if isinstance(holder, Module):
        return "set `stop_gradient` on every parameter of the layer", None
    stops = given == [target.attr.value == "stop_gradient"]
    fix = NodeFix("set `stop_gradient`", (replace_between(target.value, call, f".stop_gradient = {stops}"),))
    return "set `stop_gradient`", fix if is_statement and given in ([True], [False]) else None
