"""## What it does

Finds evaluations of a model that is in training mode on every way there:

- **Loops** over data in which nothing trains, also in the functions that they call: under `no_grad()`, over a loader
  whose dataset was made for evaluation (`train=False`, `split="test"`), over what is called test or validation data, in
  a function that is called an evaluation, or when all training of the run is over; or whose model has weights from a
  file, and every output of it is detached, or made a number.
- **Single forward passes** under `no_grad()` of what is called test or validation data, in a function called an
  evaluation, or when all training is over, also in a function that is called there; of such data also with a graph when
  all training is over; and of a batch of it, `next(iter(test_loader))`, amid the training.
- **The first call** of a model that gets its weights from a file, or is pretrained, where nothing in the run trains:
  also of one that an object keeps, whoever makes the object.
- **Evaluations with `train()` behind them** in the same function, which is to put the model back, and no `eval()`.
- **Methods of an object** that nobody in sight calls, where another one trains the same network and leaves it in
  training mode, or a loop elsewhere calls both by turns, and its layers ask for it, or a third method calls `eval()`.
- **Calls of `train()`** in an evaluation of a model that is trained there, or by another method of its object, where
  nothing in it switches back, and the output of each batch is held against data that the model was not given.
- **`torch.jit.trace()`** whose result is saved: it has written down what the layers do in training, and `eval()`
  changes nothing in what is loaded.

The model is one whose own training goes on before, or a deep copy of it, or that is seen to have dropout or batch
normalization and that nothing has switched since it was made, whoever hands it on: a dict, `args`, `partial`, a lambda.
Where a setting picks its class, or its weights for an `AutoModel`, it is enough that the run calls its `train()` or
`eval()` anywhere: who does that takes the mode to matter. Who calls `train()` when a round is over means the next one,
and not what comes behind the loop. Methods that call its layers, `model.encode(x)`, count as forward passes. Of several
calls of the function around, or of several modules that are trained together, one that is forgotten is enough. Where
another method of its class, or of a base class, calls `eval()` of it, that tells that the layers ask for their mode.

## Why is this bad?

In training mode dropout goes on dropping, so that the numbers are worse than the model and change from run to run, and
batch normalization uses the statistics of each validation batch, and **puts them into its running statistics**: the
validation data goes into the model that is saved. `no_grad()` changes none of that.

## Example

```python
import torch
from torch import nn


def accuracy(path, loader):
    network = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.2), nn.Linear(16, 4))
    network.load_state_dict(torch.load(path, weights_only=True))
    with torch.no_grad():
        hits = [network(inputs).argmax(1) == labels for inputs, labels in loader]
    return torch.cat(hits).float().mean()
```

## Use instead

```python
import torch
from torch import nn


def accuracy(path, loader):
    network = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.2), nn.Linear(16, 4))
    network.load_state_dict(torch.load(path, weights_only=True))
    network.eval()
    with torch.no_grad():
        hits = [network(inputs).argmax(1) == labels for inputs, labels in loader]
    return torch.cat(hits).float().mean()
```

## What it leaves alone

Evaluations before which the model may be switched, also by callers, in other files too, by its constructor, by what
made it, by a decorator, by a class of contexts, or by what is handed on to be called: `switch = model.eval`; functions
that nobody in the project calls, but for models that are loaded there and the methods above.

Models in sight of which no layer is known to ask for its mode: whose dropout drops nothing by default or by settings in
the file, whose layers are left out by what their constructors are given, or that its constructor has put to evaluation
mode, as long as nobody calls `train()`; calls that do not fit `forward` any more, or that tell it what they are for,
`model(x, train=False)`, unless that only chooses the result. Models out of sight, unless somebody calls their `eval()`
elsewhere, or their `train()` each time, and those that are given parts out of sight, unless somebody calls their
`eval()`, but as one does with what has no such layers. Models that `from_pretrained` of transformers gave, as long as
nothing puts them to training mode. Beside what is trained, what nothing updates: a teacher, the network of a perceptual
loss, what makes inputs. `torch.jit.script`, that can still be switched, and Paddle's `jit.save`, which does so itself.

What is meant: `train()` called by who calls the evaluation, or a switch that is left as a comment, also in a file
beside that switches nothing, of the same attribute; a `train()` in an evaluation that draws several outputs of a batch,
reads none, or has a comment that says why. Outputs that nobody reads, or only for their shape; input that is the same
in every round, or made up. Where several optimizers step, as for adversaries, what is made of a single batch, or when
the training is over, of noise, and text that is drawn word by word, `torch.multinomial(...)`. Tests.

## Fix safety

Unsafe: `eval()` is called before the loop, and `train()` after it unless a script trains nothing, and the numbers are
others from then on. There is none where the class has a `train` of its own that takes more than the mode: PyTorch's
`eval()` is `train(False)`, and neither framework could switch back.

## References

- [torch.nn.Module.eval](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval)
- [Locally disabling gradient computation](https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval)
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

import re
from collections.abc import Callable, Iterable, Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, insert_after, insert_before
from mllint.knowledge.words import LOADING
from mllint.rule import Finding, Rule
from mllint.semantic.training import in_training_mode, single_evaluations
from mllint.semantic.training.data_loops import may_evaluate
from mllint.semantic.training.evaluation import trains_too
from mllint.semantic.training.inferences import (
    inferences,
    inferences_elsewhere_loaded,
    is_traced_in_training_mode,
    may_train,
)
from mllint.semantic.training.pretrained_parts import PRETRAINED, inferences_ready_made
from mllint.semantic.training.single_passes import OFF, SWITCH, switches_gradients_off
from mllint.semantic.training.trained_for_evaluation import switch_for_evaluation

_HELP_SWITCH = "call `eval()` here, and `train()` before the training goes on"
_MEANS_IT = re.compile(r"(?i)eval|drop|norm|\bbn|statist|loss|sampl|stochas|uncertain").search
"""What a comment speaks of who wants training mode in an evaluation; others only say what is called."""
_TRACED = "the model is traced in training mode: what is saved stays in it, `eval()` or not"
_HELP_LOADED = "call `eval()` of the model when its weights are loaded"
_HELP = "call `eval()` of the model before it, and `train()` before the training goes on"
_HELP_TRAINED = "call `eval()` of the model before this loop, and `train()` before the training goes on"
_Fix = Callable[[], NodeFix | None] | None
_HELP_OWN_TRAIN = "the `train` of the class is no switch: give it another name, and then call `eval()`"

rule = Rule(
    code="ML310",
    message="the model is evaluated in training mode",
    help="call `eval()` of the model before this loop",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)


@rule.on(cst.For)
def check(loop: cst.For, context: Context) -> Iterator[Finding]:
    """Report the loop over the data."""
    if not may_evaluate(context.model, loop):
        return
    if in_training_mode.evaluates_in_training_mode(context.model, loop):
        help_ = _HELP_TRAINED if _is_in_training(loop, context) else rule.help
        yield from _of([loop], help_, context, lambda: _fix(loop, context))
    elif (switch := switch_for_evaluation(context.model, loop)) and not any(map(_MEANS_IT, context.comments(switch))):
        yield Finding(switch, "this puts the model to training mode for an evaluation", _HELP_SWITCH)


@rule.on(cst.With, cst.FunctionDef, mentions=(*OFF, SWITCH))
def check_block(block: cst.With | cst.FunctionDef, context: Context) -> Iterator[Finding]:
    """Report the forward passes of all the data at once, in a block or a function without gradients."""
    if not switches_gradients_off(block):
        return
    yield from _of(single_evaluations.single_evaluations(context.model, block), _HELP, context)
    yield from _of(inferences_elsewhere_loaded(context.model, block.body), _HELP_LOADED, context)


@rule.on(cst.FunctionDef)
def check_evaluation(function: cst.FunctionDef, context: Context) -> Iterator[Finding]:
    """Report those in a function that is called an evaluation."""
    yield from _of(single_evaluations.evaluations_with_graph(context.model, function), _HELP, context)


@rule.on_method(*LOADING)
def check_loaded(load: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the first call of a module that is only loaded and used."""
    yield from _of(inferences(context.model, load), _HELP_LOADED, context)


@rule.on(cst.Module, mentions=("next", "backward", "minimize"))
def check_with_graph(file: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the forward passes of test data that record a graph: of a batch amid a training, or of all behind it."""
    yield from _of(single_evaluations.evaluations_of_drawn_batches(context.model), _HELP, context)
    yield from _of(single_evaluations.evaluations_behind_training(context.model), _HELP, context)


@rule.on(cst.Module, mentions=PRETRAINED)
def check_ready_made(file: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the first call of a model that is pretrained."""
    yield from _of(inferences_ready_made(context.model), _HELP_LOADED, context)


@rule.on_call("torch.jit.trace")
def check_traced(trace: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the trace of a model that is saved."""
    if is_traced_in_training_mode(context.model, trace):
        yield Finding(trace, _TRACED, "call `eval()` of the model before it is traced")


def _of(places: Iterable[cst.For | cst.Call], help_: str, context: Context, fix: _Fix = None) -> Iterator[Finding]:
    """The findings at some places; who cannot switch the model as it is gets another advice, and no fix."""
    for place in places:
        if in_training_mode.lacks_switch(context.model, place):
            yield Finding(place, help=_HELP_OWN_TRAIN)
        else:
            yield Finding(place, help=help_, fix=fix)


def _is_in_training(loop: cst.For, context: Context) -> bool:
    """Whether a run that comes by the loop may train."""
    return any(may_train(found.run) for found in context.model.runs.loops_at(loop))


def _fix(loop: cst.For, context: Context) -> NodeFix | None:
    module = None if trains_too(context.model, loop) else in_training_mode.evaluated_module(context.model, loop)
    if module is None:
        return None
    line_break, end = context.line_break(loop), context.line_end(loop)
    switch = insert_before(loop, f"{module}.eval()" + line_break)
    goes_on = _is_in_training(loop, context) and not in_training_mode.is_switched_on_behind(context.model, loop)
    back = (insert_after(end, f"{line_break}{module}.train()"),) if goes_on else ()
    what = f"switch to evaluation mode {'for' if back else 'before'} this loop"
    return NodeFix(what, (switch, *back), Applicability.UNSAFE)
