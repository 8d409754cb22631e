"""## What it does

Finds training loops that compute gradients and step an optimizer in every round, but never clear the gradients, or
clear them once for all the batches of a loader, in every tenth round only, or in one branch of two that make the loss.
And methods that compute gradients and step with an optimizer which their object keeps, where nothing in the class, or
in the files that import it, ever clears them. And loops that update by hand, `weight -= rate * weight.grad`, with a
gradient that nobody clears, or call a method that does so in every round. And closures that do not clear what they
compute, for an optimizer that calls them several times in one step: `LBFGS`. Where the step is in a function of the
project, and some of those who call it in a loop clear the gradients, the calls of the others are reported.

And, where networks play against each other, the step of one whose gradients are cleared behind that step only: the loss
of the other, which goes through it, has left gradients there before its own loss adds to them, or adds some behind its
own; also in a method that is called for each batch. And, where one optimizer steps twice in a body that clears its
gradients, the step that also uses those which the other step has used already. And gradients that an evaluation leaves
to the next training: by a function for both, `run_epoch(loader, optimizer=None)`, which leaves out the step and what
clears them, but not `backward()`.

## Why is this bad?

`backward()` adds to the gradients that are there. Without `zero_grad()` every step moves the weights along the sum of
all gradients since the beginning of the training: it behaves like a learning rate that grows with every batch. Nothing
is raised.

## Example

```python
import torch
from torch import nn

network = nn.Linear(3, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(100):
    loss = network(torch.rand(8, 3)).square().mean()
    loss.backward()
    optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

network = nn.Linear(3, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(100):
    loss = network(torch.rand(8, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## What it leaves alone

Loops in which anything may clear the gradients: `zero_grad()` or `clear_grad()` of the optimizer or of a module, at any
place in the loop, or in a loop around one that does not run over a loader; in a function or method of the project that
is called from there, in a closure that is given to `step()`; `parameter.grad = None`; a call that is given the
optimizer and cannot be looked into (not one that by its name saves or logs, nor `with trainer.precision():`, where all
methods of that name in the project speak of no training), or whose name says that it clears gradients
(`clear_grads(model)`), or in every round one of an object of an unknown class that was given it before, but for
`schedule.step()`.
Loops that make their optimizer anew in every round (loops inside them are looked at), loops with one round, loops in
functions that are called after what they measure (`benchmark`, `profile`, `memory`), loops of equal rounds by whose
number the time is divided, `(time.time() - start) / repeats`, and loops that a trainer of another framework runs
(Lightning, DeepSpeed and their like; Accelerate leaves the gradients to the script, and so does Lightning to a module
that says `self.automatic_optimization = False`). Methods beside which a file clears
the gradients of what another object keeps: `agent.network.zero_grad()`. Of two steps of one optimizer (in Paddle
`minimize()` and `step()`) the last is reported. Optimizers of a class of the project with a `step` that may clear the
gradients, calls what cannot be looked into, or does not use them, and those that are given a closure. What may be
cleared out of sight: by a function or lambda of the file that somebody is given (`@bus.on("round")`), or by whoever is
given the object that has the optimizer (`listener.begins(self)`). By hand: tensors
that every round makes anew, and functions in which, or in what they call, anything is named after clearing.

Of networks that play against each other those that anything freezes or thaws, losses in functions that speak of
gradients otherwise (`autograd.grad`, `backward(inputs=...)`), optimizers of which it is not known which networks they
have, and losses that are not made right there of what the network gives.

Gradients of an evaluation that are cleared before the training computes its own, or that anything in the evaluation, or
in what it calls, reads or asks for otherwise; and networks that are trained in evaluation mode.
An optimizer that is only known by its name, because it is a parameter of a function that nobody in the file calls,
counts as one where the loop computes gradients too. What is given a part of the batch, `network.backward(labels)`,
computes them by hand, and may write them anew.

## Fix safety

Unsafe: `zero_grad()` (in Paddle `clear_grad()`) is put behind the step, and what the training does changes with that.
No fix is offered where the loss of another network leaves gradients behind the step, too.

## References

- [Zeroing out gradients in PyTorch](https://docs.pytorch.org/tutorials/recipes/recipes/zeroing_out_gradients.html)
- [paddle.optimizer.Optimizer.clear_grad](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/Optimizer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, insert_line_after
from mllint.rule import Finding, Rule
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.flow import optimizer_of
from mllint.semantic.training.foreign_gradients import uses_foreign_gradients
from mllint.semantic.training.forgetful_callers import forgetful_calls, forgetful_calls_of_others
from mllint.semantic.training.left_gradients import is_left_by_evaluation
from mllint.semantic.training.updates_by_hand import updates_by_hand
from mllint.semantic.training.used_again import precedes_another_step, uses_gradients_again
from mllint.semantic.training.zeroing import accumulates_without_end
from mllint.semantic.values import Object

_FURTHER_OUT = "the gradients are cleared outside of the loop: every step uses the sum of its rounds"
_SELDOM = "the gradients are cleared in some rounds only: the steps between use their sum"
_ONE_SIDE = "the gradients are cleared on one branch only: steps of the other one use their sum"
_MESSAGES = {"further out": _FURTHER_OUT, "on one side": _ONE_SIDE, "in some rounds": _SELDOM}
_IN_CLOSURE = "the closure never clears the gradients: they add up over its calls in one step"
_IN_THIS_LOOP = "the gradients are never cleared in this loop: each step uses the sum of its rounds"
_AGAIN = "this step also uses the gradients that the step before it has used already"
_LIKE_OTHERS = "clear them in every round, as others do who call this"
_OF_EVALUATION = "where this evaluates, its gradients stay, and the training adds its own to them"
_FOREIGN = "this step also uses the gradients that another network's loss has {}"

rule = Rule(
    code="ML301",
    message="the gradients are never cleared: every step uses the sum over all rounds",
    help="call `zero_grad()` of the optimizer in every round",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)


@rule.on_method("step", "minimize")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the step of the optimizer."""
    clearing = accumulates_without_end(context.model, call)
    if is_test_code(context.model):
        return
    if clearing is None:
        yield from _of_another(call, context)
        for caller in forgetful_calls(context.model, call):
            yield Finding(caller, _IN_THIS_LOOP, _LIKE_OTHERS, fix=None)
        return
    optimizer = optimizer_of(context.model, call)
    if optimizer is not None and precedes_another_step(context.model, call, optimizer):
        return
    method = "zero_grad"
    if context.model.framework == "paddle":
        method = "clear_gradients" if _is_of_fluid(optimizer, context) else "clear_grad"
    text = None if optimizer is None else f"{context.text(optimizer)}.{method}()"
    if clearing == "not in closure":
        yield Finding(call, _IN_CLOSURE, f"write `{text or f'{method}()'}` at the beginning of the closure")
        return
    yield Finding(
        call,
        message=_MESSAGES.get(clearing),
        help=None if text is None else f"write `{text}` before `backward()`, in every round",
        # Behind the step would be too early where another network's loss comes before the next round.
        fix=None if uses_foreign_gradients(context.model, call) else lambda: _fix(call, text, context),
    )


@rule.on_method("backward")
def check_evaluation(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the gradients that an evaluation leaves to the training."""
    if not is_test_code(context.model) and is_left_by_evaluation(context.model, call):
        yield Finding(call, _OF_EVALUATION, "compute none where it evaluates: leave out `backward()` with the step")


@rule.on(cst.Module, mentions=("optim",))
def check_helpers(_: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the call of a function in another file that steps the optimizer."""
    if not is_test_code(context.model):
        for call in forgetful_calls_of_others(context.model):
            yield Finding(call, _IN_THIS_LOOP, _LIKE_OTHERS, fix=None)


@rule.on(cst.Module, mentions=("grad",))
def check_by_hand(_: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the update of a parameter without an optimizer."""
    if is_test_code(context.model):
        return
    for update, owner in updates_by_hand(context.model):
        clearing = f"{owner}.clear_grad()" if context.model.framework == "paddle" else f"{owner}.grad = None"
        yield Finding(update, help=f"write `{clearing}` behind it, in every round")


def _of_another(step: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the step that uses gradients of another network's loss, or those that another step has used."""
    foreign = uses_foreign_gradients(context.model, step)
    if foreign is None and not uses_gradients_again(context.model, step):
        return
    message = _AGAIN if foreign is None else _FOREIGN.format(foreign)
    if foreign == "added":
        yield Finding(step, message, f"call `{context.text(step.func)}()` before the other loss is computed")
        return
    optimizer = optimizer_of(context.model, step)
    method = "clear_grad" if context.model.framework == "paddle" else "zero_grad"
    written = method if optimizer is None else f"{context.text(optimizer)}.{method}"
    yield Finding(step, message, f"call `{written}()` before the `backward()` of its own loss")


def _is_of_fluid(optimizer: cst.BaseExpression | None, context: Context) -> bool:
    """Whether an optimizer is one of before Paddle 2.0, whose method has another name."""
    value = None if optimizer is None else context.value(optimizer)
    made = value.call if isinstance(value, Object) else None
    name = None if made is None else context.qualified_name(made.func)
    return "fluid" in name if name is not None else "fluid" in context.model.names_by_word


def _fix(call: cst.Call, text: str | None, context: Context) -> NodeFix | None:
    statement = context.statement(call)
    line = context.parent(statement)
    if text is None or not isinstance(line, cst.SimpleStatementLine):
        return None
    edit = insert_line_after(line, text, context.line_break(statement))
    return NodeFix("clear the gradients after the step", (edit,), Applicability.UNSAFE)
