"""## What it does

Finds modules whose `forward` is called directly: `self.encoder.forward(x)`.

## Why is this bad?

`module(x)` runs `forward` and everything around it: forward hooks and pre-hooks, on which feature extractors,
profilers, pruning, `nn.utils.weight_norm` and wrappers such as FSDP rely. `module.forward(x)` runs the method alone.
Without a hook the result is the same, so nobody notices until somebody adds one; then it is silently left out: a
normalised weight is not computed anew, a hook that collects features collects none.

## Example

```python
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 4)

    def forward(self, x):
        return self.encoder.forward(x).relu()
```

## Use instead

```python
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 4)

    def forward(self, x):
        return self.encoder(x).relu()
```

## What it leaves alone

`super().forward(x)`, `Base.forward(self, x)` and `self.forward(x)`; a module on which nobody can have put a hook, since
it is made for this one call (`Net().forward(x)`) or nothing else is done with it where it is made (`net = Net()`,
`y = net.forward(x)`); a module without weights, such as a loss, a distance, an activation or a pool, of the library or
of the project, unless the file puts a hook on it, on another one of its class, or on modules of which it cannot be told
what they are, or a wrapper holds it (a class of the project has no weights if all that it sets on `self` has none; what
a function out of sight gives may be no module if nothing calls it or goes through it); a check by hand, where all that
comes of the call, outside of any loop, is printed or asserted; modules made by `torch.jit` or read by Paddle's
`jit.load`; classes with a `__call__` of their own, or with a base that is not known; tests, which may be about the
method itself; the `forward` of an object that is no module, or of a module that stands in for another one, which hands
on method by method; the module inside a wrapper, whose `forward` is called to get around the wrapper; and files that
replace the `forward` of a module of the same class, or of one that is not known, where the old one is called on
purpose. What is only known to be some module, by the way it is used, is left alone too, unless those who call the
function give a known one, and none gives an object of another kind: one with `eval()` and `forward()` need not be
callable. What may be one of several modules is left alone where any of them is, but for those without a `forward`.

## Fix safety

Safe: a module passes its arguments on to `forward` and gives back what that returns. Hooks run from then on. Unsafe
where only the callers of a function in sight say what it is given, also by the constructor of its class: another one
may give an object with a `forward` that cannot be called.

## References

- [torch.nn.Module.forward](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.forward)
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, replace_between
from mllint.rule import Finding, Rule
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.expressions.arguments import passed_anywhere
from mllint.semantic.files.testing import is_in_a_test, is_test_code
from mllint.semantic.modules.called_plainly import is_called_plainly
from mllint.semantic.modules.from_callers import is_from_callers
from mllint.semantic.modules.unhooked import is_handed_on, is_only_shown, is_unhooked, is_wrapper, replaces_forward
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.values import Instance, Module
from mllint.syntax.shape import dotted_path, is_super_call

rule = Rule(
    code="ML316",
    message="`forward` is called directly: hooks of the module do not run",
    help="call the module itself",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_LONGEST_NAME = 30


@rule.on_method("forward")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report ``forward`` of what is surely a module that can be called instead."""
    callee = call.func
    assert isinstance(callee, cst.Attribute)
    receiver = callee.value
    if _is_own(receiver, context) or is_handed_on(context.model, call):
        return
    value = context.value(receiver)
    is_given = value is None or (isinstance(value, Module) and value.is_only_some and not is_wrapper(value))
    if not (_is_given_plain_module(call, context) if is_given else is_called_plainly(receiver, value)):
        return
    if (
        is_only_shown(context.model, call)
        or replaces_forward(context.model, value)
        or is_test_code(context.model)
        or is_in_a_test(context.model, call)
        or (isinstance(value, Module) and _may_be_unhooked(receiver, value, context))
    ):
        return
    written = dotted_path(receiver)
    is_short = written is not None and len(written) <= _LONGEST_NAME
    message = f"`{written}.forward` is called directly: hooks of the module do not run" if is_short else None
    help_ = f"write `{written}(...)`" if is_short else None
    yield Finding(call, message, help_, fix=lambda: _fix(receiver, callee, context, is_given=is_given))


def _may_be_unhooked(receiver: cst.BaseExpression, value: Module, context: Context) -> bool:
    """Whether a module, or one of those of which it is one, is such as nobody puts a hook on."""
    return any(is_unhooked(context.model, receiver, one) for one in value.others or (value,))


def _fix(receiver: cst.BaseExpression, callee: cst.Attribute, context: Context, *, is_given: bool) -> NodeFix:
    """``net.forward(x)`` -> ``net(x)``: another caller, where there is one, may give something that has no call."""
    is_sure = not is_given and not is_from_callers(context.model, receiver)
    trust = Applicability.SAFE if is_sure else Applicability.UNSAFE
    return NodeFix("call the module", (replace_between(receiver, callee, ""),), trust)


def _is_own(receiver: cst.BaseExpression, context: Context) -> bool:
    """Whether it is ``self``, ``super()`` or ``super(Net, self)``."""
    if isinstance(receiver, cst.Call):
        return is_super_call(receiver)
    return method_of_receiver(context.model, receiver) is not None


def _is_given_plain_module(call: cst.Call, context: Context) -> bool:
    """Whether those who call the function around a call give such a module, as far as they are in sight."""

    def is_plain(event: Event) -> bool:
        callee = event.node.func if event.kind is Kind.FORWARD and isinstance(event.node, cst.Call) else None
        value = event.frame.value(callee.value) if isinstance(callee, cst.Attribute) else None
        if not isinstance(callee, cst.Attribute) or not isinstance(value, Module):
            return False
        is_loss = any(is_unhooked(event.frame.model, callee.value, one) for one in value.others)
        return not is_loss and is_called_plainly(callee.value, value)

    if not context.model.runs.always(call, lambda item: not item.is_open and is_plain(item.event)):
        return False
    return isinstance(call.func, cst.Attribute) and not _is_given_another_object(call.func.value, context)


def _is_given_another_object(receiver: cst.BaseExpression, context: Context) -> bool:
    """Whether a call in sight gives for the parameter on which ``forward`` is called an object that is no module."""
    function = context.function(receiver)
    parameters = (binding.node for binding in context.bindings(receiver) if isinstance(binding.node, cst.Param))
    return function is not None and any(
        isinstance(home.value(given), Instance)
        for parameter in parameters
        for home, given in passed_anywhere(function, parameter)
    )
