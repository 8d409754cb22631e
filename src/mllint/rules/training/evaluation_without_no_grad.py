"""## What it does

Finds loops that evaluate a model over a loader and record a graph of every forward pass, though nobody computes
gradients from it; and evaluations of all the data at once that do.

A loop evaluates when nothing in it, or in the functions of the project that it calls, computes or clears gradients or
steps an optimizer (to clip what nobody computes is ML305), and when one of these holds: the model is in evaluation mode
on every way there, also as `from_pretrained` of transformers gives it, where the run makes it, keeps it to itself and
trains nothing; the dataset of the loader was made for evaluation (`train=False`, `split="test"`); the loader is called
test or validation data, or the function around the loop an evaluation, and the same model is trained in another loop,
or is made, loaded from a file and never trained by what runs; every output of the model is detached, or made a number,
wherever the code reads it, be it in a function that is given it. A name alone is never enough. Of a function for both,
`run(loader, train=False)`, the branches count that its caller chooses, also one in another file, and a loop over a few
literals, `for phase in ("train", "val")`, counts round by round. Data may also be taken in slices,
`network(inputs[start:end])`, one by one, `network(inputs[i])` in a loop over `range(len(inputs))`, or collected in a
list until a batch is full. A `while` counts where the model is in evaluation mode. A method of the model that calls
layers, `network.encode(x)` or `network.decode(**batch)`, is a forward pass as well, also where the model is one of
several, or of a class out of sight: then modules of the project call layers in their method of that name, and none does
more there. Where some of those who call the function switch gradients off, or have frozen the model, and one forgets
to, also in another file, the loop is reported, too.

A forward pass of all the data at once is in no loop over it. It counts where the function around it is called an
evaluation, the model is in evaluation mode on every way there, and the run trains it, too. So does one of any model in
evaluation mode whose output the code detaches, or makes a number, wherever it reads it: `network.eval()`, then
`network(image).softmax(1).detach().numpy()`, in Paddle without the `detach()`; in a function that trains, of the model
that it trains. So does one of a method of such a model that calls its layers, and one in a method of a predictor: an
object that trains nothing, whose constructor puts the model to evaluation mode. In a loop that counts, or generates one
token after the other, it may also read nothing but the `argmax()`.

## Why is this bad?

`eval()` switches layers to another behaviour; it does not stop autograd. Without `no_grad()` every forward pass keeps
all activations until its output is gone. That takes a multiple of the memory, so that an evaluation runs out of memory
with a batch size that would fit, and what is collected from the outputs keeps the graphs of all batches.

## Example

```python
import torch
from torch import nn


def evaluate(network: nn.Module, loader) -> float:
    network.eval()
    correct = 0
    for inputs, labels in loader:
        correct += (network(inputs).argmax(1) == labels).sum().item()
    return correct / len(loader)
```

## Use instead

```python
import torch
from torch import nn


@torch.no_grad()
def evaluate(network: nn.Module, loader) -> float:
    network.eval()
    correct = 0
    for inputs, labels in loader:
        correct += (network(inputs).argmax(1) == labels).sum().item()
    return correct / len(loader)
```

## What it leaves alone

- What runs under `no_grad()` or `inference_mode()`, also in all of the functions that call it, in other files too, or
  under something that cannot be looked into; an `except` whose `try` did it there; branches of `is_grad_enabled()`.
- Who wants gradients: a word of them in the loop (`grad`, `requires_grad`, hooks), results that go into a `backward()`
  later, a function that looks at the graph itself (`grad_fn`, torchviz's `make_dot`), a library that may attack the
  model or is told what became of its output (`learner.adapt(loss)`), a module in training mode that is given the
  output. (`to_tensor(inputs, stop_gradient=True)` wants none, and still gets a graph, for the parameters.)
- Models that record none: without parameters, frozen, made without gradients, or whose class computes gradients itself,
  and sequences and models that are not known where `forward` of a module does so that is imported there, or behind
  that; `generate()` of transformers and PaddleNLP, Paddle's `jit.load`, `torch.jit.freeze()`, quantized and compiled
  ones, those of ultralytics and poptorch, and those whose output PyTorch's `numpy()` reads as it is.
- What is not known: methods of a name that no other class has, functions that are handed on (but for commands of
  `argparse`) or picked by name, networks of another framework.
- What keeps no more than one graph: the only pass of a script that trains nothing, loops that are left after a few
  batches (`if step == 5: break`) or run over a few literals, inputs that are made up, tests, each item of a dict in a
  method of a module.
- What nobody runs: functions that are defined anew, or that nothing names where another one evaluates in their place.
  Loops in which nothing but a loss is called. What stands right behind a reported statement.
- Trainers of other frameworks, `volatile` variables, projects for a PyTorch before 0.4 and `paddle.fluid`.

## Fix safety

Safe: the decorator is put on the function where nothing else in it, or in what it calls, wants gradients. Unsafe where
the file of the model's class asks for gradients by `autograd.grad`, or, of a model that is not known, any module of the
project: it may need them for what it puts out. No fix is offered where the function also gives the model, or what holds
it, to somebody out of sight, who may train it, calls what is there to be overridden, or may attack the model.

## References

- [torch.no_grad](https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html)
- [paddle.no_grad](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/no_grad_en.html)
"""

from collections.abc import Iterable, Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, insert_before
from mllint.rule import Finding, Rule
from mllint.semantic.files.testing import is_in_test_of_tests, is_test_code
from mllint.semantic.training import evaluation, few_rounds
from mllint.semantic.training.adversaries import is_fed_out_of_sight
from mllint.semantic.training.data_loops import may_evaluate, may_evaluate_each, may_evaluate_until_done
from mllint.semantic.training.data_rounds import AnyLoop, code_of
from mllint.semantic.training.kept_inferences import inferences_of_kept
from mllint.semantic.training.recorded_passes import evaluations_recorded, inferences_recorded
from mllint.semantic.training.wanted_gradients import switches_off_itself
from mllint.semantic.values import Output, Tensor

_COLLECTED = "this evaluates, and keeps the graphs of all forward passes"
_ALL_AT_ONCE = "this evaluates, but records a graph of the forward pass"
_OF_BOTH = "this loop records a graph of every forward pass also when it only evaluates"

rule = Rule(
    code="ML311",
    message="this loop evaluates, but records a graph of every forward pass",
    help="run it under `no_grad()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)


@rule.on(cst.For)
def check(loop: cst.For, context: Context) -> Iterator[Finding]:
    """Report the loop over the data."""
    if _is_asked(context) and may_evaluate(context.model, loop):
        yield from _of_loop(loop, context)


@rule.on(cst.While, mentions=("eval",))
def check_until_done(loop: cst.While, context: Context) -> Iterator[Finding]:
    """Report the loop that goes on with a model in evaluation mode until something is done."""
    if _is_asked(context) and may_evaluate_until_done(context.model, loop):
        yield from _of_loop(loop, context)


@rule.on(cst.CompFor)
def check_collected(clause: cst.CompFor, context: Context) -> Iterator[Finding]:
    """Report the comprehension over a loader, the first of several."""
    if _is_asked(context) and may_evaluate_each(context.model, clause):
        yield from _of_loop(clause, context)


@rule.on(cst.FunctionDef, mentions=("eval",))
def check_whole(function: cst.FunctionDef, context: Context) -> Iterator[Finding]:
    """Report the forward passes of all the data at once."""
    if _is_asked(context) and not is_in_test_of_tests(context.model, function):
        yield from _of_calls(evaluations_recorded(context.model, function), context)


@rule.on_method("eval")
def check_switched(switch: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the forward passes behind a switch to evaluation mode that nobody wants a graph of."""
    if _is_asked(context) and not is_in_test_of_tests(context.model, switch):
        yield from _of_calls(inferences_recorded(context.model, switch), context)
        yield from _of_calls(inferences_of_kept(context.model, switch), context)


def _is_asked(context: Context) -> bool:
    """Not in a test, where a few samples are gone with it, nor where `eval()` is all that there is."""
    return not is_test_code(context.model) and not switches_off_itself(context.model, context.torch_version)


def _of_loop(loop: AnyLoop, context: Context) -> Iterator[Finding]:
    model = context.model
    place, message = code_of(model, loop), rule.message
    if isinstance(place, cst.ListComp):
        value = context.value(place.elt)
        message = _COLLECTED if isinstance(value, (Tensor, Output)) and value.attached else message
    if not few_rounds.evaluates_more(model, loop) or few_rounds.is_in_another(model, loop):
        return
    if evaluation.trains_too(model, loop):
        help_ = "where it only evaluates, run it under `no_grad()`, or `set_grad_enabled(False)`"
        yield Finding(place, _OF_BOTH, help_)
    elif is_fed_out_of_sight(model, loop):  # perhaps an attack on another model, which needs gradients
        yield Finding(place, message, f"put the calls of the model under `with {_framework(context)}.no_grad():`")
    else:
        function = evaluation.only_evaluating(model, loop)
        yield Finding(place, message, _help(context, function, "the loop"), fix=lambda: _fix(loop, function, context))


def _of_calls(calls: Iterable[cst.Call], context: Context) -> Iterator[Finding]:
    for call in calls:
        if not evaluation.is_let_be(context.model, call) and not few_rounds.is_of_few_rounds(context.model, call):
            function = evaluation.only_evaluating(context.model, call)
            yield Finding(call, _ALL_AT_ONCE, _help(context, function, "the call"))


def _help(context: Context, function: cst.FunctionDef | None, what: str) -> str:
    """What to write, on the function that only evaluates, or around the place."""
    framework = _framework(context)
    decorated = f"put {what}" if function is None else f"put `@{framework}.no_grad()` on the function, or {what}"
    return f"{decorated} under `with {framework}.no_grad():`"


def _framework(context: Context) -> str:
    """What the help speaks of; packages that work with torch are imported beside Paddle, too, for their tokenizers."""
    is_paddle = context.model.imports("paddle") and not context.model.imports("torch")
    return context.model.framework or ("paddle" if is_paddle else "torch")


def _fix(loop: AnyLoop, function: cst.FunctionDef | None, context: Context) -> NodeFix | None:
    framework = context.model.framework
    if function is None or framework is None:
        return None
    name, edit = context.need_import(framework)
    text = f"@{name}.no_grad()" + context.line_break(function)
    edits = (insert_before(function, text),) if edit is None else (edit, insert_before(function, text))
    trust = Applicability.UNSAFE if evaluation.may_need_the_graph(context.model, loop) else Applicability.SAFE
    return NodeFix("run the function under `no_grad()`", edits, trust)
