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
from mllint.semantic.modules.from_callers import is_from_callers
from mllint.semantic.modules.unhooked import is_handed_on, is_only_shown, is_unhooked, is_wrapper, replaces_forward
from mllint.semantic.names.classes import PLAIN_BASES
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.values import Instance, Module, Value
from mllint.syntax.shape import dotted_path, is_super_call

rule = Rule(
    code="ML316",
    message="`forward` is called directly: hooks of the module do not run",
    help="call the module itself",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

# Lists and dicts of modules have no `forward`.
_NOT_CALLABLE = frozenset({"ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "LayerList", "LayerDict"})
_OF_ANY_CLASS = PLAIN_BASES | {None}
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
    if not (_is_given_plain_module(call, context) if is_given else _is_plain_module(receiver, value)):
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
        return not is_loss and _is_plain_module(callee.value, value)

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


def _is_plain_module(receiver: cst.BaseExpression, value: Value | None) -> bool:
    """Whether a module is known to be of a class, and calling it runs ``forward`` and no other code of the project."""
    if not isinstance(value, Module) or any("jit" in name for name in value.wrappers):
        return False
    if isinstance(receiver, cst.Attribute) and receiver.attr.value in ("module", "_orig_mod", "_layers"):
        return False
    if is_wrapper(value):
        return True
    if "?" in value.wrappers:
        return False
    definition = value.definition
    if value.others:
        # Those of them that have no `forward` raise, whichever way they are called.
        called = [other for other in value.others if not _has_no_forward(other)]
        return bool(called) and all(_is_plain_module(receiver, other) for other in called)
    if definition is None:
        # Of what a function of a library builds only that is known; of what is annotated `Module` nothing is.
        maker = None if value.call is None else dotted_path(value.call.func)
        is_built = value.name is None and maker is not None and "jit" not in maker
        return is_built or (value.name not in _OF_ANY_CLASS and _is_callable(value.name))
    # `torch.jit.interface` asks for calls of the method; whatever else decorates a class may change how it is called.
    if definition.has_unknown_base or any(item.node.decorators for item in definition.lineage):
        return False
    if not all(map(_is_called_plainly, definition.library_bases)):
        return False
    return definition.method("__call__") is None and definition.method("forward") is not None


def _has_no_forward(value: Module) -> bool:
    """Whether a module is of a class of the project that is known in full, and neither it nor a base has a forward."""
    definition = value.definition
    if definition is None or definition.has_unknown_base or not PLAIN_BASES.issuperset(definition.library_bases):
        return False
    return definition.method("__call__") is None and definition.method("forward") is None


def _is_callable(name: str | None) -> bool:
    return name is not None and name.rpartition(".")[2] not in _NOT_CALLABLE


def _is_called_plainly(base: str) -> bool:
    """Whether a library class is called as every module is."""
    is_framework = base.partition(".")[0] in ("torch", "paddle") and "jit" not in base
    return base in PLAIN_BASES or base.startswith("typing.") or is_framework
