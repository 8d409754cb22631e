"""## What it does

Finds statements that compute a new tensor and throw it away: `x.cuda()`, `x.to(device)`, `x.masked_fill(mask, value)`,
`torch.clamp(x, 0, 1)`, and the same for wrappers that return a new module, such as `torch.compile(model)`.

## Why is this bad?

Methods of a *module* such as `model.cuda()` change the module. The methods of a *tensor* with the same names return a
new tensor and leave the old one as it was. Without an assignment nothing happens: the mask never masks, the values are
never clamped, and the tensor stays on the CPU until an operation with one on the GPU fails.

## Example

```python
import torch

images = torch.rand(4, 3)
images.to("cuda")
```

## Use instead

```python
import torch

images = torch.rand(4, 3)
images = images.to("cuda")
```

## What it leaves alone

Modules, optimizers, and everything that is not known to be a tensor, unless the method exists on tensors alone
(`masked_fill`, `unsqueeze`). Calls with `out=` or `inplace=True`. Tensors that are made in the same statement
(`torch.zeros(1).cuda()` starts CUDA). Statements that are there to raise: under `pytest.raises`, alone in a `try`.

On Paddle before 3.0 `x.to(...)` changes the tensor itself, so it is left alone for such a target version.

## Fix safety

Safe for a plain name of this function or module that is not the variable of a loop over a list (there the assignment
would be lost too), and for an attribute that is surely a plain tensor: a tensor cannot be assigned to a registered
parameter. Unsafe for `detach()`, because code below may rely on the graph that is still there.

## References

- [torch.Tensor](https://docs.pytorch.org/docs/stable/tensors.html)
- [torch.nn.Module.to](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to)
- [paddle.Tensor](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, assign_result
from mllint.knowledge import lookup
from mllint.rule import Finding, Rule
from mllint.semantic.scopes import Binding, BindingKind
from mllint.semantic.values import Batch, Module, Output, Symbol, Tensor
from mllint.syntax.shape import argument, constant, dotted_path

rule = Rule(
    code="ML101",
    message="the result of this tensor operation is discarded",
    help="assign the result",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_NEW = ("tensor", "scalar", "tensors")
# Functions that return a tensor and are called for what else they do: random state, assertions, in-place updates.
_EFFECTS = frozenset({
    "assign", "increment", "set_value", "share_memory_", "bernoulli", "multinomial", "normal", "poisson", "dropout",
    "to_dlpack", "pin_memory",
})  # fmt: skip


# Called for the error it raises on what it cannot compile.
_TRIED_OUT = frozenset({"torch.jit.script", "torch.jit.trace"})


@rule.on(cst.Expr)
def check(statement: cst.Expr, context: Context) -> Iterator[Finding]:
    """Report a statement that is nothing but such a call."""
    call = statement.value
    if not isinstance(call, cst.Call) or _is_meant_to_raise(statement, context):
        return
    if isinstance(call.func, cst.Attribute) and _discards_method(call, call.func, context):
        yield from _finding(statement, call, call.func.value, f"{call.func.attr.value}()", context)
        return
    if not call.args or call.args[0].star:
        return
    name = context.library_name(call.func)
    if name is None:
        return
    if _discards_function(call, name, context) or _discards_wrapper(call, name, context):
        yield from _finding(statement, call, call.args[0].value, name.rpartition(".")[2] + "()", context)


def _discards_method(call: cst.Call, callee: cst.Attribute, context: Context) -> bool:
    """Whether the call is a method that gives a new tensor, on a tensor that outlives the statement."""
    name = callee.attr.value
    facts = [lookup.tensor_method(framework, name) for framework in ("torch", "paddle")]
    if not any(fact is not None and fact.returns in _NEW for fact in facts):
        return False
    if name in _EFFECTS or _writes_elsewhere(call) or _root(callee.value, context) is None:
        return False
    value = context.value(callee.value)
    if isinstance(value, Tensor) or (isinstance(value, Batch) and not value.opaque):
        fact = lookup.tensor_method(value.framework, name)
        in_place = name == "to" and value.framework == "paddle" and (context.paddle_version or (3, 0)) < (3, 0)
        return fact is not None and fact.returns in _NEW and not in_place
    if value is not None and not isinstance(value, Output):
        return False
    return (
        name in lookup.tensor_only_methods() and context.model.framework is not None and not _is_defined(name, context)
    )


def _discards_function(call: cst.Call, name: str, context: Context) -> bool:
    """Whether the call is a framework function that gives a new tensor from its first argument."""
    fact = lookup.function(name)
    last = name.rpartition(".")[2]
    if fact is None or fact.returns not in _NEW or last in _EFFECTS or lookup.framework_of(name) == "numpy":
        return False
    if lookup.parameters(name)[:1] not in (("input",), ("x",), ("self",)) or _writes_elsewhere(call, name):
        return False
    if _root(call.args[0].value, context) is None:
        return False
    value = context.value(call.args[0].value)
    return value is None or isinstance(value, (Tensor, Batch, Output))


def _discards_wrapper(call: cst.Call, name: str, context: Context) -> bool:
    """Whether the call wraps a module that outlives the statement, and the wrapper is lost."""
    if lookup.wrapper(name) is None or name in _TRIED_OUT or _root(call.args[0].value, context) is None:
        return False
    return isinstance(context.value(call.args[0].value), (Module, type(None)))


def _root(node: cst.BaseExpression, context: Context) -> cst.BaseExpression | None:
    """What a chain of method calls starts from, if that is a name, attribute or item; ``None`` for a fresh value."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if context.library_name(node.func) is not None:
            return None
        node = node.func.value
    return node if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)) else None


def _writes_elsewhere(call: cst.Call, name: str | None = None) -> bool:
    """Whether the result is written into a given tensor (``out=``, ``inplace=True``), or may be."""
    parameters = lookup.parameters(name) if name is not None else ()
    position = parameters.index("inplace") if "inplace" in parameters else None
    in_place = argument(call, position, "inplace")
    if in_place is not None and constant(in_place.value) is not False:
        return True
    return any(arg.star == "**" or (arg.keyword is not None and arg.keyword.value == "out") for arg in call.args)


def _is_defined(name: str, context: Context) -> bool:
    """Whether the file itself defines a function of that name: then an unknown receiver may well have it."""
    return any(function.name.value == name for function in context.nodes(cst.FunctionDef))


def _is_meant_to_raise(statement: cst.Expr, context: Context) -> bool:
    """Whether the statement stands where an error is expected, so that its result does not matter."""
    line = context.parent(statement)
    for ancestor in context.ancestors(statement):
        if isinstance(ancestor, cst.With):
            names = [dotted_path(item.item.func) or "" for item in ancestor.items if isinstance(item.item, cst.Call)]
            if any(word in name.lower() for name in names for word in ("raises", "warns", "assert")):
                return True
        if isinstance(ancestor, cst.Try) and ancestor.handlers and len(ancestor.body.body) <= 2:
            return line in ancestor.body.body
        if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef)):
            break
    return False


def _finding(
    statement: cst.Expr, call: cst.Call, target: cst.BaseExpression, what: str, context: Context
) -> Iterator[Finding]:
    path = dotted_path(target)
    written = f"{path} = {path}..." if path else "name = ..."
    if isinstance(call.func, cst.Attribute) and path and dotted_path(call.func.value) == path:
        written = f"{path} = {path}.{call.func.attr.value}(...)"
    elif path:
        written = f"{path} = {dotted_path(call.func)}({path}, ...)"
    assignable = path is not None and _can_be_assigned(target, context)
    applicability = Applicability.UNSAFE if what == "detach()" else Applicability.SAFE
    yield Finding(
        statement,
        f"the result of `{what}` is discarded",
        f"write `{written}`",
        fix=(lambda: NodeFix("assign the result", (assign_result(statement, path or ""),), applicability))
        if assignable
        else None,
    )


def _can_be_assigned(target: cst.BaseExpression, context: Context) -> bool:
    """Whether ``target = ...`` rebinds the very thing that later code reads."""
    bindings = context.bindings(target)
    if isinstance(target, cst.Name):
        return bool(bindings) and all(_keeps(binding, context) for binding in bindings)
    value = context.value(target)
    owner = context.value(target.value) if isinstance(target, cst.Attribute) else None
    if isinstance(owner, Symbol):
        return False
    return isinstance(value, Module) or (isinstance(value, Tensor) and not value.parameter and not value.or_number)


def _keeps(binding: Binding, context: Context) -> bool:
    """Whether rebinding the name here is seen by later code: not for the variable of a loop over a list."""
    if binding.kind is BindingKind.LOOP:
        return isinstance(context.model.binding_value(binding), Batch)
    return binding.kind is not BindingKind.NARROWED
