"""## What it does

Finds loops that evaluate a model which is in training mode on every way there.

A loop evaluates when nothing in it, or in the functions of the project that it calls, computes, clears or clips
gradients or steps an optimizer, and when one of these holds: it runs under `no_grad()`; the dataset of its loader was
made for evaluation (`train=False`, `split="test"`); the loader is called test or validation data, or the function
around the loop an evaluation, and nothing unknown in the loop is given the model, or what has a graph. The model counts
as one in training mode when its own training goes on before, or when its class is seen to have dropout or batch
normalization and nothing has switched it since it was made; of the classes of which a function makes one or another,
one is enough. Of one whose class is out of sight, because a setting picks it, it is enough that the training calls its
`train()`: who does that takes the mode to matter. Of several calls of the function around the loop one is enough, if
none comes in evaluation mode; where one does, all others have to be without gradients and in training mode. A method of
the model that calls layers, `model.encode(x)`, is a forward pass of these layers. Of several modules that are trained
together and called in the loop, one is enough that is not switched while the others are. Under `no_grad()`, and when
all training of the run is over, what it runs over may be anything but a list of its own. Where each sample of test data
is compared with all of other data, the loop over these counts.

A forward pass under `no_grad()` that is in no loop over data evaluates, too, where what it is given is called test or
validation data or is a batch of it, or where the function around it is called after evaluation or all training of the
run is over, and the model is seen to have dropout or batch normalization; in such a function also with a graph, where
nothing is trained with it. So does one of a batch that is drawn from test or validation data in the training of the
model, `next(iter(test_loader))`. So does the first call of such a model that is made, gets its weights from a file
(`load_state_dict(torch.load(path))`), also through a function of the project or key by key, and is called, where
nothing in the whole run trains, or of a method of it that calls layers to which the mode matters (`model.decode(x)`);
also where an object keeps it and nothing in its file, or in those that import it, switches a mode. Where only one of
those who call a function to infer forgets to switch, its call is reported. A pretrained model of torchvision, timm or
Paddle is one that has its weights from a file; a `Sequential` of its first children is this model without its head.

An evaluation that calls `train()` of the model itself, right there or in the round, is reported at that call: where the
model is trained in the same run, nothing in the evaluation switches it back, and the one output of each batch is held
against data that the model was not given, such as its targets.

`torch.jit.trace()` of a model with such layers, which nothing has switched, is reported where what it gives is saved: a
trace has written down what the layers do in training, and `eval()` changes nothing in what is loaded.

## Why is this bad?

In training mode dropout goes on dropping, so that the numbers are worse than the model and change from run to run, and
batch normalization uses the statistics of each validation batch, and **puts them into its running statistics**: the
validation data goes into the model that is saved. `no_grad()` changes none of that, it only stops autograd.

## Example

```python
import torch
from torch import nn
from torch.utils.data import DataLoader


def train(training: DataLoader, validation: DataLoader) -> None:
    network = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.2), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(network.parameters())
    for _ in range(10):
        network.train()
        for inputs, labels in training:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs), labels).backward()
            optimizer.step()
        with torch.no_grad():
            for inputs, labels in validation:
                print(nn.functional.cross_entropy(network(inputs), labels))
```

## Use instead

```python
import torch
from torch import nn
from torch.utils.data import DataLoader


def train(training: DataLoader, validation: DataLoader) -> None:
    network = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.2), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(network.parameters())
    for _ in range(10):
        network.train()
        for inputs, labels in training:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs), labels).backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            for inputs, labels in validation:
                print(nn.functional.cross_entropy(network(inputs), labels))
```

## What it leaves alone

Loops before which the model may be switched to evaluation mode, also by those who call the function, in other files of
the project too; functions that nobody in the project calls, but for models that are loaded there. Models in sight of
which no layer is known to ask for its mode, such as those whose only dropout drops nothing by default, is there only
where a setting says so, or is left out by constructors for what they are given. Models that `from_pretrained` of
transformers gave, and modules that are made of these, as long as nothing puts them to training mode, or it is not known
to which family they belong. Loops before which a model was switched to training mode by who calls the evaluation, or
its switch to evaluation mode was taken out and left as a comment: to recompute the statistics of batch normalization,
or to sample with dropout, is done like that, as is a call of `train()` in an evaluation that draws several outputs of a
batch, reads none, gives the model the targets, or has a comment that says why. Tests. Loops that drop the output, or
never read it, as where a hook is what is wanted; and loaded models that are given the same input in every round, or one
that is made up for its shape, which a buffer of zeros is not that data is put into. Beside what is trained, models that
nothing updates decide nothing: the network of a perceptual loss, a teacher. Containers of models that have names of
their own, where one of these is switched, and modules without such a layer of their own that are made of one that is in
evaluation mode. Parts that an object keeps of a model which its base class switches. Where several optimizers step, as
for adversaries, what is made of a drawn batch, or when the training is over: it is only looked at. What
`torch.jit.script` gives, which can be switched when it is loaded, and Paddle's `jit.save`, which switches by itself.

## Fix safety

Unsafe: `eval()` is called before the loop, and `train()` after it unless a script trains nothing, and the numbers are
others from then on.

## References

- [torch.nn.Module.eval](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval)
- [Locally disabling gradient computation](https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval)
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

import re
from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, insert_after, insert_before
from mllint.rule import Finding, Rule
from mllint.semantic.training.data_loops import may_evaluate
from mllint.semantic.training.evaluation import evaluated_module, evaluates_in_training_mode, trains_too
from mllint.semantic.training.inferences import LOADS, inferences, inferences_elsewhere_loaded, may_train
from mllint.semantic.training.ready_made import PRETRAINED, inferences_ready_made
from mllint.semantic.training.single_evaluations import (
    OFF,
    evaluations_of_drawn_batches,
    evaluations_with_graph,
    single_evaluations,
    switches_gradients_off,
)
from mllint.semantic.training.traces import is_traced_in_training_mode
from mllint.semantic.training.trained_for_evaluation import switch_for_evaluation

_HELP_SWITCH = "call `eval()` here, and `train()` before the training goes on"
_MEANS_IT = re.compile(r"(?i)eval|drop|norm|\bbn|statist|loss|sampl|stochas|uncertain").search
"""What a comment speaks of who wants training mode in an evaluation; others only say what is called."""
_TRACED = "the model is traced in training mode: what is saved stays in it, `eval()` or not"
_HELP_LOADED = "call `eval()` of the model when its weights are loaded"
_HELP = "call `eval()` of the model before it, and `train()` before the training goes on"
_HELP_TRAINED = "call `eval()` of the model before this loop, and `train()` before the training goes on"

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
    if evaluates_in_training_mode(context.model, loop):
        yield Finding(
            loop, help=_HELP_TRAINED if _is_in_training(loop, context) else None, fix=lambda: _fix(loop, context)
        )
    elif (switch := switch_for_evaluation(context.model, loop)) and not any(map(_MEANS_IT, context.comments(switch))):
        yield Finding(switch, "this puts the model to training mode for an evaluation", _HELP_SWITCH)


@rule.on(cst.With, cst.FunctionDef, mentions=OFF)
def check_block(block: cst.With | cst.FunctionDef, context: Context) -> Iterator[Finding]:
    """Report the forward passes of all the data at once, in a block or a function without gradients."""
    if not switches_gradients_off(block):
        return
    for call in single_evaluations(context.model, block):
        yield Finding(call, help=_HELP)
    for call in inferences_elsewhere_loaded(context.model, block.body):
        yield Finding(call, help=_HELP_LOADED)


@rule.on(cst.FunctionDef)
def check_evaluation(function: cst.FunctionDef, context: Context) -> Iterator[Finding]:
    """Report those in a function that is called an evaluation."""
    for call in evaluations_with_graph(context.model, function):
        yield Finding(call, help=_HELP)


@rule.on_method(*LOADS)
def check_loaded(load: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the first call of a module that is only loaded and used."""
    for call in inferences(context.model, load):
        yield Finding(call, help=_HELP_LOADED)


@rule.on(cst.Module, mentions=("next",))
def check_drawn(file: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the forward passes of a batch of test data that is drawn in a training."""
    for call in evaluations_of_drawn_batches(context.model):
        yield Finding(call, help=_HELP)


@rule.on(cst.Module, mentions=PRETRAINED)
def check_ready_made(file: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the first call of a model that is pretrained."""
    for call in inferences_ready_made(context.model):
        yield Finding(call, help=_HELP_LOADED)


@rule.on_call("torch.jit.trace")
def check_traced(trace: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the trace of a model that is saved."""
    if is_traced_in_training_mode(context.model, trace):
        yield Finding(trace, _TRACED, "call `eval()` of the model before it is traced")


def _is_in_training(loop: cst.For, context: Context) -> bool:
    """Whether a run that comes by the loop may train."""
    return any(may_train(found.run) for found in context.model.runs.loops_at(loop))


def _fix(loop: cst.For, context: Context) -> NodeFix | None:
    if trains_too(context.model, loop):
        return None
    module = evaluated_module(context.model, loop)
    if module is None:
        return None
    line_break, end = context.line_break(loop), context.line_end(loop)
    switch = insert_before(loop, f"{module}.eval()" + line_break)
    if not _is_in_training(loop, context):
        return NodeFix("switch to evaluation mode before this loop", (switch,), Applicability.UNSAFE)
    edits = (switch, insert_after(end, f"{line_break}{module}.train()"))
    return NodeFix("switch to evaluation mode for this loop", edits, Applicability.UNSAFE)
