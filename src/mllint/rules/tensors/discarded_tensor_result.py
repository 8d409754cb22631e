"""## What it does

Finds statements that compute a new tensor and throw it away: `x.cuda()`, `x.to(device)`, `x.masked_fill(mask, value)`,
`torch.clamp(x, 0, 1)`, and the same for wrappers that return a new module, such as `torch.compile(model)`, and for
what `torch.load(path)` reads.

## Why is this bad?

Methods of a *module* such as `model.cuda()` change the module. The methods of a *tensor* with the same names return a
new tensor and leave the old one as it was. Without an assignment nothing happens: the mask never masks, the values are
never clamped, and the tensor stays on the CPU until an operation with one on the GPU fails. A model that was read and
thrown away leaves the one with random weights to be evaluated.

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
(`masked_fill`, `unsqueeze`), or it is given another shape by its own (`x.view(x.shape[0], -1)`) or by numbers, as
arrays are, too (`x.squeeze(0)`). Calls with `out=` or `inplace=True`. `x.to(device)` where `x` was made on that
`device`, is there by `x = x.to(device)`, or was made by a module that was moved there. Tensors that are made in the
same statement (`torch.zeros(1).cuda()` starts CUDA). Parts of a batch of which the code reads what no tensor has: a
graph, with its `ndata`. Parameters that are declared as something of another library. What a method of another kind
gives, which may be called for what else it does: `self.act(x).long()`. Statements that are timed, between two readings
of the clock, right before `synchronize()` or in a file called a benchmark, where only what moves a tensor is reported,
or there to raise: under `pytest.raises`, alone in a `try`, or the same call as one there, in a test also in an `if`
there, a module that a test compiles with `torch.jit.script`, a function that is the last a test calls, a call that is
written once more below, where its result is used.

A thing that is a tensor on one of the ways that lead to the statement is reported, unless on another it is known to be
something that such a method changes: a module, for `sort()` a list. (An `embedding: Tensor | None = None` that was made
by another library where it is `None` is one.)

On Paddle before 3.0 `x.to(...)` changes the tensor itself, so it is left alone for such a target version.

## Fix safety

Safe for what moves a tensor or converts its type, and for a wrapper of a model: `x = x.cuda()` is all that the
statement can have been written for, and the numbers stay. So it is for a plain name of this function or module that is
not the variable of a loop over a list (there the assignment would be lost too), and for an attribute that is surely a
plain tensor: a tensor cannot be assigned to a registered parameter. Unsafe for what computes other numbers
(`masked_fill()`, `clamp()`, `relu()`, quantization): the code has run without, weights were perhaps trained without,
and where the statement itself is wrong, a mask the wrong way round, nobody has seen it yet. Unsafe for `detach()`,
because code below may rely on the graph that is still there, for another shape (`unsqueeze()`, `permute()`, pooling),
or another type or device on the way (`x.cpu().clamp(0, 1)`), because the code below has run with the one there is, for
`x.type(torch.FloatTensor)`, which takes the tensor to the CPU as well, for a thing that is a tensor on one of several
ways only, for a leaf that needs a gradient (the name would be bound to another tensor, which no optimizer knows), where
gradients are switched off but the tensor has a graph, and where another thing beside it, which may be no tensor, stays
where it is. No fix is offered where nothing reads the name below: the caller's tensor was to be changed, and another
name for it changes nothing.

## References

- [torch.Tensor](https://docs.pytorch.org/docs/stable/tensors.html)
- [torch.nn.Module.to](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to)
- [paddle.Tensor](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor_en.html)
"""

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, assign_result
from mllint.knowledge import lookup
from mllint.rule import Finding, Rule
from mllint.semantic.expressions import new_results
from mllint.semantic.expressions.hints import may_name_layer
from mllint.semantic.files.testing import ends_a_test
from mllint.semantic.graph import placement
from mllint.semantic.values import Batch, Elements, Module, Output, Tensor
from mllint.syntax.shape import detaches, discarded_calls, may_discard, writes_elsewhere

rule = Rule(
    code="ML101",
    message="the result of this tensor operation is discarded",
    help="assign the result",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

# Called for what else they do: random state, in-place updates, the error on a matrix that is not positive definite.
_EFFECTS = frozenset({
    "assign", "increment", "set_value", "bernoulli", "multinomial", "normal", "poisson", "rand_like", "randn_like",
    "randint_like", "cholesky", "inv", "inverse", "to_static",
})  # fmt: skip
# They make a tensor of what they are given, whatever that is.
_MAKERS = frozenset({"torch.tensor", "torch.as_tensor", "torch.from_numpy", "paddle.to_tensor"})
# They read something and change nothing.
_READERS = frozenset({"torch.load", "paddle.load"})
# What functions of tensors call their first argument.
_INPUTS = frozenset({"input", "x", "self", "tensors", "A", "condition"})
_NAMED = frozenset({"clone", "copy", "eq", "ne", "gt", "lt", "ge", "le", "isnan", "isinf", "isfinite", "logical_not"})


class _Lost(NamedTuple):
    """What a statement throws away: the operand that stays as it was, and what was done with it."""

    operand: cst.BaseExpression
    what: str
    trust: Applicability | None


@rule.on(cst.Expr, shape=may_discard)
def check(statement: cst.Expr, context: Context) -> Iterator[Finding]:
    """Report the calls whose results a statement throws away."""
    model = context.model
    for call in discarded_calls(statement.value):
        lost = _method(call, context)
        if lost is None and not ends_a_test(model, statement):
            lost = _function(call, context) or _layer(call, context)
        if lost and not (placement.wants_no_result(model, statement) or new_results.is_measured(model, call)):
            yield _finding(statement, call, lost, context)


def _method(call: cst.Call, context: Context) -> _Lost | None:
    """A method that gives a new tensor, on a tensor that outlives the statement."""
    if not isinstance(call.func, cst.Attribute) or writes_elsewhere(call):
        return None
    name, receiver = call.func.attr.value, call.func.value
    facts = [lookup.tensor_method(framework, name) for framework in ("torch", "paddle")]
    if name in _EFFECTS or not any(fact is not None and fact.returns in new_results.NEW for fact in facts):
        return None
    root = placement.root_of_chain(context.model, receiver)
    if root is None and isinstance(receiver, cst.Call) and isinstance(context.value(receiver), Module):
        return _function(receiver, context)  # nn.DataParallel(model).cuda()
    if root is None or new_results.is_other_object(context.model, receiver):
        return None
    if placement.is_made_there(context.model, call) or placement.is_computed_again(context.model, call):
        return None
    value = context.value(receiver)
    is_sure = new_results.gives_new(context.model, value, name, context.paddle_version)
    if not (
        is_sure
        or new_results.gives_new_on_some_way(context.model, receiver, name, context.paddle_version)
        or (value is None and new_results.gives_new_shape(context.model, call))
    ):
        return None
    returns = {fact.returns for fact in facts if fact is not None}
    is_same = new_results.keeps_numbers(name) and not new_results.is_converted(receiver)
    trust = Applicability.SAFE if is_sure and is_same and not detaches(call) else Applicability.UNSAFE
    meant = "tensors" not in returns and name not in _NAMED and not name.startswith("new")
    return _Lost(root, f"{name}()", trust if meant else None)


def _function(call: cst.Call, context: Context) -> _Lost | None:
    """A function of the framework that gives a new tensor or module, from its first argument."""
    name = context.library_name(call.func)
    if name is None or not call.args or call.args[0].star or writes_elsewhere(call, lookup.parameters(name)):
        return None
    given, last, fact = call.args[0].value, name.rpartition(".")[2], lookup.function(name)
    if name in _READERS:
        return _Lost(given, name + "()", None)
    root = placement.root_of_chain(context.model, given)
    if last in _EFFECTS:
        return None
    is_wrapper = lookup.wrapper(name) is not None
    if is_wrapper or (fact is not None and fact.returns == "module" and "inplace" in fact.parameters):
        is_module = root is not None and isinstance(context.value(given), (Module, type(None)))
        tried_out = last in ("script", "trace") and placement.is_tried_out(context.model, given, call)
        trust = Applicability.SAFE if is_wrapper else Applicability.UNSAFE
        return _Lost(given, f"{last}()", trust) if is_module and not tried_out else None
    if fact is None or fact.returns not in new_results.NEW or lookup.framework_of(name) == "numpy":
        return None
    if name in _MAKERS and root is not None:
        return _Lost(root, f"{last}()", Applicability.UNSAFE if isinstance(given, (cst.Name, cst.Attribute)) else None)
    if not _INPUTS.intersection(fact.parameters.split()[:1]):
        return None
    values = [context.value(arg.value) for arg in call.args]
    if isinstance(values[0], Elements) and any(isinstance(item, (Tensor, Output)) for item in values[0].items):
        return _Lost(given, f"{last}()", None)
    if root is None or not isinstance(values[0], (Tensor, Batch, Output, type(None))):
        return None
    alone = not any(isinstance(value, (Tensor, Batch, Output)) for value in values[1:])
    is_meant = alone and fact.returns == "tensor" and last not in _NAMED | {"where"}
    return _Lost(given, f"{last}()", Applicability.UNSAFE if is_meant else None)


def _layer(call: cst.Call, context: Context) -> _Lost | None:
    """A layer without state (an activation, dropout, pooling), called on a tensor."""
    if len(call.args) != 1 or call.args[0].star or placement.root_of_chain(context.model, call.args[0].value) is None:
        return None
    layer = context.value(call.func) if may_name_layer(context.model, call.func) else None
    if not isinstance(layer, Module) or layer.name is None or not new_results.is_without_state(layer):
        return None
    return _Lost(call.args[0].value, layer.name.rpartition(".")[2], Applicability.UNSAFE)


def _finding(statement: cst.Expr, call: cst.Call, lost: _Lost, context: Context) -> Finding:
    operand, written = context.text(lost.operand).strip(), context.text(call)
    message = f"the result of `{lost.what}` is discarded"
    if lost.trust is None or not placement.can_be_rebound(context.model, lost.operand, statement):
        return Finding(call, message, "assign the result to a name of its own and use that")
    if "\n" in written or len(operand) + len(written) > 100:
        written = f"{context.text(call.func)}(...)"
    is_other = new_results.gives_other_shape(lost.what) or new_results.moves_one_of_several(context.model, call)
    is_other = is_other or new_results.asks_for_cpu_type(call)
    is_unsafe = is_other or placement.loses_gradient(context.model, lost.operand, statement)
    trust = Applicability.UNSAFE if is_unsafe else lost.trust
    fix = NodeFix("assign the result", (assign_result(statement, operand),), trust)
    is_whole = statement.value is call and isinstance(lost.operand, (cst.Name, cst.Attribute))
    return Finding(call, message, f"write `{operand} = {written}`", (lambda: fix) if is_whole else None)
