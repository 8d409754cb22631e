"""## What it does

Finds `forward` methods that compute something and return nothing: there is no `return` with a value, or the last
branch ends without one. And those that end with `if y is not None: return ...`, where somebody leaves `y` out and uses
the result.

## Why is this bad?

The module gives `None`. What fails is the code behind it, with an error such as "'NoneType' object has no attribute
'backward'".

## Example

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        x = torch.relu(self.fc(x))
```

## Use instead

```python
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        x = torch.relu(self.fc(x))
        return x
```

## What it leaves alone

Abstract methods: a docstring, `pass`, `...`, or `raise`. Generators. A `forward` that keeps its results elsewhere: in
an attribute, in a list or dict that it was given, in a file. Classes with a `__call__` of their own, which may take the
result from elsewhere. Tests, which may run a module for what it does on the way. What is declared to give nothing
back, `def forward(self, x) -> None`, and what drops the result of a call on purpose, `_ = metric(x)`.

## Fix safety

No fix is offered: which of the values is the result is not for a tool to say.

## References

- [torch.nn.Module.forward](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.forward)
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.knowledge import lookup
from mllint.rule import Finding, Rule
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.graph.runs_of_class import is_wanted_without
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import bound_by
from mllint.semantic.values import Elements, Module, Output, Tensor
from mllint.syntax.shape import constant, is_of_names, last_statement, targets_of

rule = Rule(
    code="ML406",
    message="`forward` computes something and returns nothing",
    help="return the result",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)

_FRESH = (".empty", ".zeros", ".ones", ".full", ".rand", ".randn", "_like")
_HARMLESS = frozenset({"builtins.print", "builtins.isinstance", "builtins.len", "torch.cuda.synchronize"})


@rule.on(cst.FunctionDef, mentions=("forward",), shape=lambda node: node.name.value == "forward")
def check(node: cst.FunctionDef, context: Context) -> Iterator[Finding]:
    """Report a ``forward`` of a module, or the branch of one, that computes something and gives it to nobody."""
    info = context.model.function_info(node)
    if info.owner is None or info.owner.framework is None or info.self_name is None or not info.is_plain:
        return
    if node.returns is not None and constant(node.returns.annotation) is None:
        return  # it is declared to: what it is given changes in place
    if is_test_code(context.model):
        return  # a test that runs has no use for the result
    if any("__call__" in base.methods for base in info.owner.lineage):
        return  # what calls it may take the result from elsewhere
    if any(statement.value is not None for statement in info.scope.returns):
        for lost in _lost_ends(node.body, context):
            yield Finding(lost, "this way through `forward` ends without a result")
        option = _option_of_last(info)
        if option is not None and is_wanted_without(context.model, info.owner, option):
            name = option.name.value
            message = f"where `{name}` is not given nothing is returned, and the result of such a call is used"
            yield Finding(node.name, message if len(message) <= 88 else None)
    elif _computes_for_nobody(node, context):
        yield Finding(node.name)


def _lost_ends(body: cst.BaseSuite, context: Context) -> Iterator[cst.CSTNode]:
    """The last statements of a body on each of its ways, where they bind tensors to names that nobody reads."""
    last = last_statement(body)
    if isinstance(last, cst.With):
        yield from _lost_ends(last.body, context)
    while isinstance(last, cst.If):
        yield from _lost_ends(last.body, context)
        if isinstance(last.orelse, cst.Else):
            yield from _lost_ends(last.orelse.body, context)
        last = last.orelse or last.test
    if isinstance(last, (cst.Assign, cst.AnnAssign)) and _binds_result(last, context):
        yield last


def _binds_result(statement: cst.Assign | cst.AnnAssign, context: Context) -> bool:
    """Whether an assignment binds names alone, a tensor or several to one of them at least."""
    wanted = [item for item in bound_by(context.model, statement) if item.key != "_"]
    found = [context.model.binding_value(binding) for binding in wanted]
    parts = [part for value in found for part in (value.items if isinstance(value, Elements) else (value,))]
    is_result = any(isinstance(part, (Tensor, Output)) for part in parts)
    return is_result and all(map(is_of_names, targets_of(statement)))


def _option_of_last(info: FunctionInfo) -> cst.Param | None:
    """The parameter without which a function comes to its end: ``if y is not None: return ...`` is the last of it."""
    last = info.node.body.body[-1]
    if not isinstance(last, cst.If) or last.orelse is not None or not _gives_back(last.body):
        return None
    match last.test:
        case cst.Comparison(
            left=cst.Name(value=name),
            comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=cst.Name("None"))],
        ):
            pass
        case cst.Name(value=name):
            pass
        case _:
            return None
    options = [item for item in info.named_parameters if item.name.value == name and item.default is not None]
    is_own = len(info.scope.bindings.get(name, ())) == 1
    return options[0] if options and is_own and constant(options[0].default) is None else None


def _gives_back(body: cst.BaseSuite) -> bool:
    """Whether a body ends with a result."""
    last = last_statement(body)
    return isinstance(last, cst.Return) and last.value is not None


def _computes_for_nobody(function: cst.FunctionDef, context: Context) -> bool:
    """Whether a function binds names or calls modules, and leaves nothing behind: no attribute, no item."""
    computes = False
    for kind in (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr, cst.Raise, cst.Global, cst.Nonlocal, cst.Del):
        for statement in context.nodes(kind):
            if function not in context.ancestors(statement):
                continue
            match statement:
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name("_"))], value=cst.Call()):
                    return False  # called for what it does
                case cst.Assign() if all(is_of_names(target.target) for target in statement.targets):
                    computes = True
                case cst.Expr() if _leaves_nothing(statement.value, context):
                    is_result = isinstance(context.value(statement.value), (Tensor, Output))
                    computes = computes or (isinstance(statement.value, cst.Call) and is_result)
                case _:
                    return False
    return computes


def _leaves_nothing(node: cst.BaseExpression, context: Context) -> bool:
    """Whether an expression statement changes nothing: text, a print, a module called on a tensor."""
    if not isinstance(node, cst.Call):
        return not isinstance(node, (cst.Yield, cst.Await, cst.ListComp))
    name = context.qualified_name(node.func)
    if name is not None:
        fact = lookup.function(name)
        return name in _HARMLESS or (fact is not None and fact.returns in ("tensor", "scalar") and name[-1:] != "_")
    if isinstance(node.func, cst.Attribute):
        receiver, method = context.value(node.func.value), node.func.attr.value
        if isinstance(receiver, Tensor):
            return (not method.endswith("_") or _is_new_here(node.func.value, context)) and method != "backward"
        if isinstance(receiver, Module) and method == "forward":
            return True
    return isinstance(context.value(node.func), Module)


def _is_new_here(node: cst.BaseExpression, context: Context) -> bool:
    """Whether a local name stands for a tensor with memory of its own, which a change leaves to nobody."""
    bindings = context.bindings(node) if isinstance(node, cst.Name) else ()
    return bool(bindings) and all(
        isinstance(binding.value, cst.Call)
        and binding.kind is BindingKind.ASSIGN
        and (context.qualified_name(binding.value.func) or "").endswith(_FRESH)
        for binding in bindings
    )
