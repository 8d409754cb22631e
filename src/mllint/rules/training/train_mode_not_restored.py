"""## What it does

Finds models that are switched to evaluation mode in a training loop and never back, so that the rest of the training
runs in evaluation mode: for an evaluation, also by an object that is made or called for it, to be saved, or for nothing
at the end of a round. So are models that one method of an object switches for an evaluation and another one trains,
where a loop in another file calls both by turns and nobody says `train()`. And models of transformers that are trained
in the evaluation mode in which `from_pretrained` leaves them, also as part of another module.

## Why is this bad?

In evaluation mode dropout does nothing, and batch normalization uses its running statistics and no longer updates
them. The first epoch trains the network that was meant, all others a different one. Nothing is raised, and the loss
even looks better.

## Example

```python
import torch
from torch import nn

network = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.Linear(3, 1))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for epoch in range(10):
    optimizer.zero_grad()
    network(torch.rand(8, 3)).square().mean().backward()
    optimizer.step()
    network.eval()
    with torch.no_grad():
        print(network(torch.rand(8, 3)).square().mean())
```

## Use instead

```python
import torch
from torch import nn

network = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.Linear(3, 1))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for epoch in range(10):
    network.train()
    optimizer.zero_grad()
    network(torch.rand(8, 3)).square().mean().backward()
    optimizer.step()
    network.eval()
    with torch.no_grad():
        print(network(torch.rand(8, 3)).square().mean())
```

## What it leaves alone

Loops in which the model, or what it was made with, `Wrapper(net)`, may be switched back at any place, also in a
function or method of the project that is called there, by a decorator or a context, by what is handed on to be called
(`model.apply(lambda part: part.train())`), or in a call that is given the model and cannot be looked into, or in a
method of an unknown class that is named for it (`model.adapters_train()`); but for a place that is only reached where a
score is better. Models that are in evaluation mode before the loop begins, or are switched right before they are
trained, with no evaluation between: to fine-tune with frozen batch normalization is done like that; or that one round
alone switches, `if epoch == last:`. Models in which surely no layer asks for its mode. Models that no optimizer in the
loop updates (teachers, averaged copies, target networks; whatever the optimizer has, those that get the weights of what
is trained), parts of a model, models that every round makes anew, and trainings that a trainer of another framework
runs (Lightning, DeepSpeed and their like, unless all that a file imports of them reads checkpoints; Accelerate switches
no modes). Evaluations in which a module computes no gradients of itself, because it asks `if self.training:`.

What is only called `model` or `net`, because it is a parameter of a function that nobody in the file calls, counts as
a module where it is switched and called.

## Fix safety

Unsafe: `train()` is called at the beginning of every round of the loop, and the training is another one from then on.

## References

- [torch.nn.Module.eval](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval)
- [PreTrainedModel.from_pretrained](https://huggingface.co/docs/transformers/main_classes/model)
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, insert_before
from mllint.knowledge.words import UPDATING
from mllint.rule import Finding, Rule
from mllint.semantic.events.kinds import may_have_mode
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.modules.switched_off import switches_off
from mllint.semantic.training.data_loops import is_named_as_module
from mllint.semantic.training.left_in_evaluation import trained_in_evaluation_mode
from mllint.semantic.training.nearby import is_switched_back
from mllint.semantic.training.pretrained_parts import is_trained_with_part_as_loaded, may_hold_pretrained
from mllint.semantic.training.runs import Occurrence
from mllint.semantic.training.sisters import leaves_sister_in_evaluation
from mllint.semantic.training.training_modes import is_as_loaded, is_trained_as_loaded
from mllint.semantic.values import Module
from mllint.syntax.shape import dotted_path

_AS_LOADED = "the model is trained in evaluation mode, in which `from_pretrained` leaves it"
_PART_AS_LOADED = "a part of the model is trained in evaluation mode, as `from_pretrained` leaves it"
_HELP_BACK = "call `train()` of the model when this evaluation is over"
_HELP_LOADED = "call `train()` of the model before the training loop"

rule = Rule(
    code="ML312",
    message="the model stays in evaluation mode while the loop goes on training it",
    help="call `train()` of the model at the beginning of every round",
    frameworks=frozenset({"torch", "paddle", "transformers"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)


@rule.on_method("eval", "train")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call that switches to evaluation mode."""
    if not switches_off(call):
        return
    assert isinstance(call.func, cst.Attribute)
    if is_switched_back(context.model, call) or not may_have_mode(context.value(call.func.value)):
        return
    occurrences = context.model.runs.at(call, accelerated=True)
    if not any(item.event.kind is Kind.EVAL for item in occurrences):
        return
    found = (trained_in_evaluation_mode(item.run, item.event) for item in occurrences)
    trained = next((event for event in found if event is not None), None)
    if trained is not None:
        yield Finding(call, fix=lambda: _fix(call, trained, context))
    elif any(leaves_sister_in_evaluation(item.run, item.event) for item in occurrences):
        yield Finding(call, help=_HELP_BACK)


@rule.on(cst.Call, mentions=UPDATING)
def check_loaded(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the forward pass that trains a model as `from_pretrained` gave it, or one that holds such a model."""
    path = dotted_path(call.func)
    if path is None or context.model.calls_by_word.keys().isdisjoint(UPDATING):
        return
    called = context.value(call.func) if is_named_as_module(context.model, path) else None
    if not isinstance(called, Module):
        return
    if "from_pretrained" in context.model.calls_by_word and context.model.runs.always(call, _is_trained_as_loaded):
        yield Finding(call, _AS_LOADED, _HELP_LOADED)
        return
    is_holder = called.definition is not None and may_hold_pretrained(called.definition)
    if is_holder and context.model.runs.always(call, _is_trained_with_part_as_loaded):
        yield Finding(call, _PART_AS_LOADED, _HELP_LOADED)


def _is_trained_as_loaded(occurrence: Occurrence) -> bool:
    run, event = occurrence.run, occurrence.event
    return event.kind is Kind.FORWARD and is_as_loaded(event) and is_trained_as_loaded(run, event)


def _is_trained_with_part_as_loaded(occurrence: Occurrence) -> bool:
    return is_trained_with_part_as_loaded(occurrence.run, occurrence.event)


def _fix(call: cst.Call, trained: Event, context: Context) -> NodeFix | None:
    """Switch back at the beginning of the loop, if that stands in the same function as both calls."""
    function = context.model.enclosing_function(call)
    assert isinstance(call.func, cst.Attribute)
    path = dotted_path(call.func.value)
    loop = next((item for item in context.ancestors(call) if isinstance(item, (cst.For, cst.While))), None)
    if path is None or loop is None or not isinstance(loop.body, cst.IndentedBlock):
        return None
    if trained.frame.model is not context.model or loop not in context.ancestors(trained.node):
        return None
    if context.model.enclosing_function(trained.node) is not function:
        return None
    first = loop.body.body[0]
    target = first.body[0] if isinstance(first, cst.SimpleStatementLine) else first
    text = f"{path}.train()" + context.line_break(target)
    return NodeFix("switch back to training in every round", (insert_before(target, text),), Applicability.UNSAFE)
