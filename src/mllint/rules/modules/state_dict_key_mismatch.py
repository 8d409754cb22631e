"""## What it does

Finds calls of `load_state_dict` (paddle: `set_state_dict`, `set_dict`, `load_dict`) whose keys surely are not those of
the module, by the classes, and by what the project saves to the file, or to each one, or entry, that may be loaded:

- a checkpoint such as `{"model": ..., "epoch": ...}` is loaded where one of its entries belongs, also where the
  function beside saves such ones, or all that the file saves of the module are such, and an option says that a training
  goes on with what is loaded. Where a file is only called like those that the project saves, `net.pt` and
  `net_{epoch}.pt`, or an option says which is read, and an entry of it is loaded, the class tells, if all that is saved
  of it is in one form: another fits none. So does another function that reads an option of the same name in the form
  in which all things of the receiver's name are saved, if nothing in the project writes the one that is read here;
- one file is loaded twice into the same thing, as a whole and an entry of it, one after the other;
- an entry is read, for whatever it is, that is never saved: not to that file, or not by the function that belongs to
  the one that reads, as `save_checkpoint` to `load_checkpoint` and `state_dict` to `load_state_dict`; one that is
  loaded at once also where the same code saves most of the other entries that are read (all of them, if a function is
  given the dict), and any where it saves all of them, in the same function or with the state of an optimizer that is
  loaded, or where what another file of the project saves has most of them, if all that it saves is known;
- the path of a file is an entry of another, `torch.load(checkpoint["model"])`, under which the project saves the state
  itself;
- a test asks for an entry, and another one is read, whose name is longer or shorter by a part:
  `if state["lr_scheduler"] is not None: scheduler.load_state_dict(state["scheduler"])`;
- a list is loaded, `[optimizer.state_dict() for optimizer in optimizers]`, where one of its states belongs;
- the keys of one side begin with `module.` or `_orig_mod.`, because `DataParallel`, `DistributedDataParallel` or
  `torch.compile` wraps it, and those of the other side do not; also where it is wrapped only under a condition, as
  `if torch.cuda.device_count() > 1`, and loaded from, or into, a module that never is, or where the code saves
  `net.module.state_dict()` under a key and loads what stands under it into that `net`, or where `module.` is taken
  off the keys of a file without a GPU only, though the module is in no wrapper with one, or where what is wrapped
  under a condition and saved is loaded into a module that always is, or into a bare one from the file of an option
  that other code always reads into the wrapper, or where a wrapped module was put into a wrapper again;
- the same where only a part of the module is in a wrapper, `net.encoder = DataParallel(net.encoder)`, and where the
  code reads single weights of the dict, which tell how its keys begin: `state["encoder.weight"].shape`;
- the dict is that of another class, is written by hand under other names, or has lost its prefix on the way, also
  where another file saves a module that holds the one it is loaded into, `WithLoss(net)`, or that makes one itself;
- the state of an optimizer is loaded into a module, or the reverse; also where two states are saved, or loaded, each
  for the other: `save(net, scheduler, optimizer)` of `def save(net, optimizer, scheduler)`, and where the very same
  goes into both, at once or through the functions that load them;
- the state of a model is saved a second time, under `optimizer`: `{"model": net.state_dict(), "optimizer":
  net.state_dict()}`;
- the whole checkpoint is loaded where the test around the load has found the state dict in it:
  `if "state_dict" in checkpoint:`;
- a whole module was saved, not its state dict, or the reverse: what `torch.load` reads is used as a module
  (`model = torch.load(path)`, `model.eval()`, `model.module`), and the code saves the state dict under that path, or
  under any path where an option says which, or in `save_model` beside `load_model`; a file is known by the default of
  such an option, or parameter, too; so is an entry used, `scheduler = checkpoint["scheduler"]`, `scheduler.step()`,
  under whose key the code saves the state, also by who calls the function that returns it;
- what is read is unpacked, `params, steps = paddle.load(path)`, and the code saves a dict to that path, or, with
  Paddle, nothing but dicts, or nothing: the pair was what `fluid.load_dygraph` returned;
- `model.state_dict(torch.load(path))`, or `model.state_dict(best)` of a state that was kept, is written for
  `load_state_dict`;
- an optimizer of Paddle is asked for `set_dict`, which layers have, and optimizers no longer;
- nothing is written to the path that is read, and the state of the same thing goes to one that nearly is it: a suffix
  is missing (`last` and `last.pth`), or a letter in the name of the folder (`weight/last.pth`, `weights/last.pth`);
- `full = model.state_dict()` was completed with the entries of a file, and then those entries alone are loaded.

## Why is this bad?

A strict load raises, but the entries that match have been loaded by then. With `strict=False`, and in paddle's
`set_state_dict`, nothing raises: the module keeps its random weights. PyTorch is silent about it, and paddle warns of
missing keys only. `state_dict` copies the weights into what it is given, and loads nothing. A dict has none of the
methods of a module, gives its keys when it is unpacked, and a file to which nothing is written is not there.

## Example

```python
import torch
from torch import nn

model = nn.Linear(8, 2)
torch.save({"model": model.state_dict(), "epoch": 3}, "last.pt")
model.load_state_dict(torch.load("last.pt"))
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(8, 2)
torch.save({"model": model.state_dict(), "epoch": 3}, "last.pt")
model.load_state_dict(torch.load("last.pt")["model"])
```

## What it leaves alone

Everything of which not all keys are known to differ: classes of other packages, layers under a condition that cannot be
decided, dicts that some function has changed, files that are written elsewhere. Loads under `try`, and loads of a dict
that the code has examined (`"model" in checkpoint`), or of which it reads another entry otherwise
(`checkpoint.get("net") or checkpoint["model"]`), but for the whole of it where the entry was found, and for one in the
`else` of a test that asks for something else as well (`"model" in checkpoint and resume`), or behind a question after
another entry, `if "amp" in checkpoint:`, that decides about its own lines only; so does one after the name of the file,
`if "best" in path:`. What an export saves of the file that it has read says nothing of that file, nor what the project
saves of one that is somebody else's: its path, or the name of the option that gives it, is of something pretrained; nor
how a path ends (`path + "_actor"`) of what other scripts save, nor the name alone where an option gives the folder and
its default is not in the path that is read (`"runs/vae/net.pt"`, `--out` of `runs/gan`). What stands under `if
scheduler is not None` in a function that no call gives one, and functions that nothing names, beside others that load
in their place. What an `except` loads after the same file was tried. What a loop over several files reads of each
before it saves to it, in another form perhaps. An entry of what another branch loads as it is, and one that other code
around writes into a file of such a name, or any file of the project that names the class where only that tells what is
read. Tests, which may be there for the error. Modules that are wrapped under a condition, where the function asks for
it, takes the module out, or is called before. The counter `num_batches_tracked`, which old files lack. With
`strict=False` a part that does not match is taken to be meant; only a load that can match nothing is reported.

## Fix safety

Unsafe: that the entry with the state dict is taken out of the checkpoint, or that the dict is loaded into the wrapped
module, is what was meant as far as this file shows it; the file on disk may be another one.

## References

- [torch.nn.Module.load_state_dict](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict)
- [Saving and loading models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html)
- [paddle.nn.Layer.set_state_dict](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Iterator
from functools import partial

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeEdit, NodeFix, append_trailer, replace
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints import saving
from mllint.semantic.checkpoints.handling import is_unreached
from mllint.semantic.checkpoints.loads import Load, is_optimizer_of_paddle, load_of
from mllint.semantic.checkpoints.misread import is_given_back, misread
from mllint.semantic.checkpoints.problems import Problem, one_sided_prefix, problem_of, state_instead
from mllint.semantic.checkpoints.shared_state import saved_twice
from mllint.semantic.checkpoints.wording import words, words_of_saved_twice
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.values import Module, StateDict
from mllint.syntax.shape import subscript_index

rule = Rule(
    code="ML422",
    message="the keys that are loaded are not those of the module",
    help="load a state dict with the keys of the module",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)

# Other names of `set_state_dict` that layers of Paddle have, and optimizers have not.
_OF_LAYERS = frozenset({"set_dict", "load_dict"})


@rule.on_method("load_state_dict", "set_state_dict", "set_dict", "load_dict")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report a load that surely does not fit."""
    if is_test_code(context.model):
        return  # which says itself that it fails, or expects it
    assert isinstance(call.func, cst.Attribute)
    value, method = context.value(call.func.value), call.func.attr
    if isinstance(value, StateDict):
        yield Finding(call, f"a state dict has no `{method.value}`", "call it on the module")
        return
    if method.value in _OF_LAYERS and is_optimizer_of_paddle(context.model, call.func.value):
        fix = partial(_under_name, method, "set_state_dict")
        yield Finding(call, f"an optimizer has no `{method.value}`", "write `set_state_dict`", fix=fix)
        return
    load = load_of(context.model, call)
    problem = None if load is None else problem_of(load)
    if load is None or problem is None or is_unreached(context.model, call):
        return
    message, help_ = words(load, problem)
    place = call if problem.shared is None or problem.shared.given is load.given else problem.shared.given
    yield Finding(place, message, help_ or rule.help, fix=lambda: _fix(load, problem))


@rule.on_call("torch.load", "paddle.load")
def check_read(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report a call that reads a dict, as the code saves it, where what is read is used as a module, or unpacked."""
    if not is_test_code(context.model):
        for node, said in misread(context.model, call):
            yield Finding(node, *said)


@rule.on(cst.Call, mentions=saving.WORDS, shape=saving.may_save)
def check_saved(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report a state that is saved under the key of an optimizer beside the same one under its own."""
    if not is_test_code(context.model):
        for state in saved_twice(context.model, call):
            yield Finding(state.node, *words_of_saved_twice(state))


@rule.on_method("state_dict")
def check_given_back(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report `model.state_dict(state)` of a state that was read or kept: nothing is loaded."""
    assert isinstance(call.func, cst.Attribute)
    if is_given_back(context.model, call):
        method = "set_state_dict" if context.model.framework == "paddle" else "load_state_dict"
        message = "nothing is loaded: `state_dict` copies the weights into what it is given"
        yield Finding(call, message, f"write `{method}`", fix=partial(_under_name, call.func.attr, method))


def _under_name(written: cst.Name, method: str) -> NodeFix:
    return NodeFix(f"write `{method}`", (replace(written, method),), Applicability.UNSAFE)


def _fix(load: Load, problem: Problem) -> NodeFix | None:
    edits: tuple[NodeEdit, ...] = ()
    if problem.kind in ("nested", "found") and len(problem.names) == 1:
        edits = append_trailer(load.given, f'["{problem.names[0]}"]')
        return NodeFix(f"load the entry `{problem.names[0]}`", edits, Applicability.UNSAFE)
    if problem.kind == "partial":
        return NodeFix(f"load `{problem.names[0]}`", (replace(load.given, problem.names[0]),), Applicability.UNSAFE)
    index = subscript_index(load.given) if isinstance(load.given, cst.Subscript) else None
    if index is not None and (state := state_instead(load, problem)) is not None:
        return NodeFix(f"read `{state}`", (replace(index, f'"{state}"'),), Applicability.UNSAFE)
    if problem.kind == "keys" and (prefix := one_sided_prefix(load, problem)) is not None and not prefix[1]:
        assert isinstance(load.value, Module)
        if len(load.value.wrappers) == 1:
            attribute = prefix[0].removesuffix(".")
            edits = append_trailer(load.receiver, f".{attribute}")
            return NodeFix("load into the module that is wrapped", edits, Applicability.UNSAFE)
    return None
