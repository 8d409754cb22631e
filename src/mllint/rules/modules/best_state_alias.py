"""## What it does

Finds state dicts that are kept, as the best or the first, without being copied: `best_state = model.state_dict()`,
also where a method hands them to another method of the object, which keeps them, or where the code that trains asks
the object for them: `model.load_state_dict(stopper.best_state)`. And models that are kept so themselves, or in a
shallow copy: `best_model = model`, `best_model = copy.copy(model)`, in the rounds of a loop that do better. And
weights that are put into a list in each round of a training: `history.append(net.fc.weight.detach().numpy())`,
`history.append(net.state_dict()["fc.weight"])`, also a leaf that is changed by hand, `w.data -= rate * w.grad`.

## Why is this bad?

`state_dict()` gives the tensors of the model themselves. Training goes on changing them, so what is loaded at the end
as the best state is the last one, silently, and early stopping restores nothing. A shallow copy (`.copy()`,
`dict(...)`, `{k: v.cpu() for ...}` on the CPU) holds the same tensors. The state of an optimizer is shared in the same
way. So do `detach()` and `data`, and in PyTorch `numpy()`, give the memory of the weight itself, and `cpu()` on the
CPU: behind the loop all entries of such a list are the last weights.

## Example

```python
import torch
from torch import nn


def train(model: nn.Module, loader, optimizer, epochs, evaluate):
    best_accuracy = 0.0
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        accuracy = evaluate(model)
        if accuracy > best_accuracy:
            best_accuracy = accuracy
            best_state = model.state_dict()
    model.load_state_dict(best_state)
```

## Use instead

```python
import copy
import torch
from torch import nn


def train(model: nn.Module, loader, optimizer, epochs, evaluate):
    best_accuracy = 0.0
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        accuracy = evaluate(model)
        if accuracy > best_accuracy:
            best_accuracy = accuracy
            best_state = copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
```

## What it leaves alone

State dicts that are saved or loaded into another model at once, also as an entry of a checkpoint that an object keeps.
Copies: `copy.deepcopy`, `v.clone()`, a change of dtype, `v.cpu()` in a file that uses the GPU, or moves things
`to(device)`. Models that are made anew in every round of the loop. State dicts that nobody in the project uses after
the model has changed, or where that is not certain. What the last phase of every epoch keeps (`if phase == "val"` in a
loop over `["train", "val"]`): behind the loop it is the model's own state. Models that are kept where something is
loaded into them afterwards, or where a round may make another one. Weights of which a copy is put into the list
(`clone()`, `copy()`, `tolist()`, `np.array(...)`, Paddle's `numpy()`), that a round makes anew, moves or gives other
numbers by `w.data = ...`, or that come by `cpu()` in a file that uses the GPU or of a module that a function is given;
and lists of which nobody reads more than the last entry, or of which entries are taken out. Tests.

## Fix safety

None where the model itself is kept. Else safe: the state dict, or the weight, is copied where it is kept. That takes
the memory of one more model, or of one more weight in each round. There is no fix where what is called the best is kept
once only, before the training: a copy of the first weights would undo it.

## References

- [Saving and loading models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html)
- [torch.nn.Module.state_dict](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.state_dict)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeEdit, NodeFix, append_trailer, insert_before, rename_attribute, replace_between, wrap
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints.aliases import Alias, alias_of
from mllint.semantic.checkpoints.histories import ADDING, kept_again_and_again, may_keep_weight
from mllint.semantic.checkpoints.kept_models import BEST, keeps_best, kept_model
from mllint.semantic.checkpoints.snapshots import Snapshot
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.values import Module, Object
from mllint.syntax.shape import dotted_path, string_literal

rule = Rule(
    code="ML424",
    message="the state dict is kept without being copied: training goes on changing it",
    help="write `copy.deepcopy(model.state_dict())`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_LONGEST_MESSAGE = 88


@rule.on_method("state_dict")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call when its result is kept and used after the model has changed."""
    assert isinstance(call.func, cst.Attribute)
    path = dotted_path(call.func.value)
    alias = alias_of(context.model, call) if path is not None and not call.args else None
    if alias is None or is_test_code(context.model) or (alias.only_on_cpu and _uses_gpu(context)):
        return
    snapshot = Snapshot(context.model, alias)
    if not _shares_tensors(call.func.value, snapshot, context) or not snapshot.is_stale:
        return
    message = _message(alias, snapshot, of_optimizer=isinstance(context.value(call.func.value), Object))
    if snapshot.is_never_renewed:  # a copy of the first weights would undo the training
        yield Finding(call, message, "keep a copy where the model is at its best")
        return
    help_ = f"write `copy.deepcopy({path}.state_dict())`"
    yield Finding(call, message, help_, fix=lambda: _fix(alias, context))


@rule.on(cst.Assign, mentions=(BEST,), shape=keeps_best)
def check_model(statement: cst.Assign, context: Context) -> Iterator[Finding]:
    """Report the module itself where it is kept as the best."""
    snapshot = None if is_test_code(context.model) else kept_model(context.model, statement)
    if snapshot is not None:
        said = "is the model itself: training goes on changing it"
        if isinstance(statement.value, cst.Call):
            said = "is a shallow copy: training goes on changing its weights"
        message = f"`{snapshot.key}` {said}"
        message = message if len(message) <= _LONGEST_MESSAGE else f"this {said}"
        yield Finding(snapshot.owner, message, f"write `copy.deepcopy({snapshot.path})`")


@rule.on(cst.Call, mentions=(ADDING,), shape=may_keep_weight)
def check_history(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report a weight that is put into a list in each round, where all entries are the same memory."""
    kept = None if is_test_code(context.model) else kept_again_and_again(context.model, call)
    if kept is None or (kept.only_on_cpu and _uses_gpu(context)):
        return
    where = "on the CPU " if kept.only_on_cpu else ""
    said = "each round puts the same memory into"
    message = f"{where}{said} `{kept.rows}`: training goes on changing it"
    message = message if len(message) <= _LONGEST_MESSAGE else f"{where}{said} this list: training goes on changing it"
    copying = ".copy()" if kept.is_array else ".clone()"
    fix = NodeFix("copy the numbers", append_trailer(kept.part, copying))
    yield Finding(kept.part, message, f"append a copy, by `{copying}`", fix=lambda: fix)


def _message(alias: Alias, snapshot: Snapshot, *, of_optimizer: bool) -> str:
    where = "on the CPU " if alias.only_on_cpu else ""
    written = f"what is written into the {'optimizer' if of_optimizer else 'model'} is in it, too"
    said = f"is no copy: {written if snapshot.is_only_overwritten else 'training goes on changing it'}"
    message = f"{where}`{snapshot.key}` {said}"
    return message if len(message) <= _LONGEST_MESSAGE else f"{where}this state dict {said}"


def _shares_tensors(owner: cst.BaseExpression, snapshot: Snapshot, context: Context) -> bool:
    match context.value(owner):
        case Module(definition=definition):
            return definition is None or definition.method("state_dict") is None
        case Object(kind="optimizer") as optimizer:
            # Before its first step an optimizer has no tensors to share.
            return optimizer.framework == "torch" and snapshot.is_taken_in_loop
        case None:
            is_kept = snapshot.is_taken_in_loop or "opt" not in snapshot.path.lower()
            if snapshot.is_called_a_model and (snapshot.is_best_of_several_calls or snapshot.is_loaded_elsewhere):
                return True
            return (snapshot.is_loaded_back and is_kept) or (snapshot.is_taken_in_loop and snapshot.is_of_a_model)
    return False


def _uses_gpu(context: Context) -> bool:
    """Whether the file moves things to a GPU, or to any device there is, so that `cpu()` copies from there."""
    calls = context.model.calls_by_word
    if "cuda" in calls or context.model.imports("accelerate"):
        return True
    moved = (dotted_path(arg.value) or "" for move in calls.get("to", ()) for arg in move.args)
    if any(path.endswith("device") for path in moved):
        return True
    texts = (string_literal(node) or "" for node in context.nodes(cst.SimpleString))
    return any(text.startswith(("cuda", "gpu")) for text in texts)


def _fix(alias: Alias, context: Context) -> NodeFix:
    call = alias.call
    parent = context.parent(call)
    outer = None if parent is None else context.parent(parent)
    if isinstance(parent, cst.Attribute) and parent.attr.value == "items":
        display = next(item for item in context.ancestors(parent) if isinstance(item, cst.DictComp))
        return NodeFix("clone the tensors", append_trailer(display.value, ".clone()"))
    shallow = outer.func if isinstance(outer, cst.Call) else None
    if isinstance(shallow, cst.Attribute) and context.qualified_name(shallow) == "copy.copy":
        return NodeFix("copy the tensors too", (rename_attribute(shallow, "deepcopy"),))
    module, import_edit = context.need_import("copy")
    edits: tuple[NodeEdit, ...] = wrap(call, f"{module}.deepcopy(", ")")
    if isinstance(parent, cst.Attribute) and parent.attr.value == "copy" and isinstance(outer, cst.Call):
        edits = (insert_before(call, f"{module}.deepcopy("), replace_between(call, outer, ")"))
    return NodeFix("copy the state dict", edits if import_edit is None else (*edits, import_edit))
