"""## What it does

Finds a `backward()` that reaches no parameter, because the loss was made anew on the way, or all the outputs that it is
computed of: `torch.tensor(loss, requires_grad=True)`, `Variable(output.data, requires_grad=True)`, `loss.requires_grad
= True`, a loss under `no_grad()` or of what was computed there alone, and in Paddle every `detach()`, `to_tensor()` or
`stop_gradient = True`. And parts of a loss that were made numbers before they are added: `smooth =
smooth_loss.detach()`, `aux = aux_loss.item()`, or that a loss of the libraries computes of outputs that are cut and of
data, or of these alone: `criterion(score.detach(), real)`. So are terms that are computed of gradients and of nothing
else, `penalty = grad(output, inputs)[0].norm()`, where `autograd.grad` is not told `create_graph=True`. The whole loss
is cut, too, where it is computed of data and of what was detached, turned into an array or computed under `no_grad()`,
by whatever model: `criterion(net(x).detach(), y)`. And where `backward()` is called on nothing but what `detach()` or
`.data` gives, whatever that is: `gain.detach()`. And what the `forward` of a class whose name ends in `Loss` returns
from within `with no_grad():`, or on all its ways as a number or a copy, `return loss.item()`, whoever uses it. And
loops that freeze all parameters of a module, `for p in net.parameters(): p.requires_grad = False`, where an optimizer
that has these parameters and no others steps behind them.

## Why is this bad?

A new tensor has no history. With `requires_grad=True` the error message of PyTorch goes away and nothing else changes:
`backward()` passes, every `parameter.grad` stays `None`, and the model does not learn. Without the flag `backward()`
raises in PyTorch. Paddle never raises, not even where everything is frozen. A part that is cut makes the loss larger
and changes no gradient.

## Example

```python
import torch
from torch import nn

model, criterion = nn.Linear(3, 1), nn.MSELoss()
loss = criterion(model(torch.rand(8, 3)), torch.rand(8, 1))
loss = torch.tensor(loss, requires_grad=True)
loss.backward()
```

## Use instead

```python
import torch
from torch import nn

model, criterion = nn.Linear(3, 1), nn.MSELoss()
loss = criterion(model(torch.rand(8, 3)), torch.rand(8, 1))
loss.backward()
```

## What it leaves alone

`loss.requires_grad_()` on a loss that has its graph: it does nothing. Tensors whose own gradient is read, that have a
hook or are what an optimizer changes. Branches that ask what the loss is, such as `if not torch.is_tensor(loss)`, and
what is computed where a test does not hold under which `backward()` stands. A loss that starts as `torch.zeros(1,
requires_grad=True)`. Copies that are logged and not given to `backward()`. Parts that are cut right where they are
added, `main + aux.detach()`, in one branch only, or have a `backward()` of their own. First terms of a total without a
graph, `total = first.detach()`, to which others are added. A loss class whose whole `forward` has the decorator
`no_grad()`, or that asks whether it is `training`; one that cuts what it is given only in part: the rest may be what
learns. One that takes whole numbers of all that it is given first, `scores.argmax(1)`, and copies what comes of them:
there was nothing left to cut (ML211).

Frozen modules of which anything is thawed, or that get a new part or are given to something unknown afterwards. Loops
under a condition that the function asks for again.

Losses of outputs that are cut and of what may hang on a graph itself, as a student's output does; and methods of
another object, `critic.loss(output.detach(), real)`, which may compute with its weights.

Of a part of a loss of which nothing else is known, the rule takes the word `loss` in its name for what it says, and
`criterion`.

## Fix safety

No fix is offered: without the cut, `backward()` may raise and tell what else is wrong.

## References

- [torch.tensor](https://docs.pytorch.org/docs/stable/generated/torch.tensor.html)
- [Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.graph.constant_terms import constant_terms
from mllint.semantic.graph.cuts import Cut, Cuts, remade, returned_by_steps
from mllint.semantic.graph.dead_classes import TAKEN_OFF, dead_forward, given_back_without_graph
from mllint.semantic.graph.differentiability import dead_loss
from mllint.semantic.graph.gradient_terms import terms_of_gradients
from mllint.semantic.training import all_frozen

rule = Rule(
    code="ML204",
    message="the loss is cut from its graph: `backward()` reaches no parameter",
    help="call `backward()` on the loss itself",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)

_LONGEST_NAME = 24


@rule.on(cst.Module, mentions=("backward", "manual_backward", "requires_grad", "requires_grad_", "stop_gradient"))
def check(_: cst.Module, context: Context) -> Iterator[Finding]:
    """Report every place that cuts a graph, once, however many calls of ``backward()`` follow."""
    model, found = context.model, _found(context)
    for cut in found.values():
        yield Finding(cut.node, *_wording(cut))
    terms = {id(term.node): term for call in model.backward.calls for term in constant_terms(model, call)}
    for term in terms.values():
        if id(term.node) not in found:
            message = f"`.{term.way}` takes this part of the loss off its graph: nothing learns from it"
            yield Finding(term.node, message, "add the loss itself, or leave it out of the sum")
    for gradient in terms_of_gradients(model):
        yield Finding(
            gradient,
            "these gradients have no graph: nothing learns from the term computed of them",
            "write `create_graph=True`",
        )


@rule.on(cst.For, mentions=tuple(all_frozen.FLAGS), shape=all_frozen.freezes_each)
def check_frozen(loop: cst.For, context: Context) -> Iterator[Finding]:
    """Report a loop that freezes all parameters of what is trained behind it."""
    if all_frozen.is_trained_all_the_same(context.model, loop):
        assert isinstance(loop.iter, cst.Call)
        assert isinstance(loop.iter.func, cst.Attribute)
        owner = context.text(loop.iter.func.value)
        shown = f"`{owner}`" if len(owner) <= _LONGEST_NAME else "the module"
        message = f"all parameters of {shown} are frozen: the training behind this changes none"
        yield Finding(loop.iter, message, "leave out those that are to learn")


@rule.on(cst.With, mentions=("no_grad", "inference_mode"))
def check_class(statement: cst.With, context: Context) -> Iterator[Finding]:
    """Report what the ``forward`` of a loss gives back from within ``no_grad()``."""
    for value in given_back_without_graph(context.model, statement):
        yield Finding(
            value, "this loss has no graph: `backward()` gets no further", "compute it outside of `no_grad()`"
        )


@rule.on(cst.ClassDef)
def check_forward(node: cst.ClassDef, context: Context) -> Iterator[Finding]:
    """Report what takes all that the ``forward`` of a loss gives back off its graph."""
    loss = dead_forward(context.model, node)
    if loss is None or loss.origin.cuts[0].name not in TAKEN_OFF:
        return
    if not any(context.model.tree.is_inside(cut.node, node) for cut in _found(context).values()):
        name = loss.origin.cuts[0].name
        yield Finding(
            loss.node,
            f"`{name}()` takes this loss off its graph: `backward()` gets no further",
            "return the loss itself",
        )


def _found(context: Context) -> dict[int, Cut]:
    """The places that cut a graph on the way to some ``backward()``."""
    model = context.model
    data_cuts = context.paddle_version is None or context.paddle_version >= (3, 1)
    found: dict[int, Cut] = {}
    for call in model.backward.calls:
        cuts = Cuts(model, data_cuts).of_backward(call)
        if cuts and dead_loss(model, call) is None:  # else ML211 says what is wrong with the loss
            for cut in cuts:
                found.setdefault(id(cut.node), cut)
    for cut in (*remade(model), *returned_by_steps(model)):
        found.setdefault(id(cut.node), cut)
    return found


def _wording(cut: Cut) -> tuple[str, str]:
    if cut.way == "requires_grad = True":
        message = "`requires_grad = True` gives a loss no graph: `backward()` reaches no parameter"
        return message, "delete this, and find what took the graph away"
    effect = "raises" if cut.framework == "torch" and not cut.needs_gradient else "gets no further"
    if cut.within is not None:
        way = cut.way.removesuffix(" above")
        what = "compute the loss outside of `no_grad()` in" if way == "no_grad()" else "return the loss itself from"
        message = f"`{way}` in `{cut.within}` cuts the loss from its graph: `backward()` {effect}"
        return message, f"{what} `{cut.within}`"
    if cut.way == "no_grad()":
        return f"this is computed without a graph: `backward()` {effect}", "move the loss out of `no_grad()`"
    if cut.way == "no_grad() above":
        message = f"nothing in this loss has a graph, because of `no_grad()`: `backward()` {effect}"
        return message, "compute what is to learn outside of `no_grad()`"
    advice = "compute the loss of the output itself" if cut.of_output else "call `backward()` on the loss itself"
    return f"`{cut.way}` cuts the loss from its graph: `backward()` {effect}", advice
