"""## What it does

Finds state dicts of a module inside `DataParallel`, `DistributedDataParallel` or `torch.compile` that are saved with
`torch.save`, alone or as an entry of a checkpoint. And those that an `if` takes alike in both branches, though it asks
whether the module is in a wrapper: `net.state_dict() if hasattr(net, "module") else net.state_dict()`.

## Why is this bad?

The wrapper holds the module as an attribute, so every key in the file begins with `module.` or `_orig_mod.`. The bare
module does not load such a file: a strict load raises "Missing key(s) ... Unexpected key(s)", and with `strict=False`
nothing is loaded and nobody is told.

## Example

```python
import torch
from torch import nn

model = nn.DataParallel(nn.Linear(8, 2))
torch.save(model.state_dict(), "model.pt")
```

## Use instead

```python
import torch
from torch import nn

model = nn.DataParallel(nn.Linear(8, 2))
torch.save(model.module.state_dict(), "model.pt")
```

## What it leaves alone

Files that are loaded back into a wrapped module, as code that resumes training does, if no other script, which saves
nothing, loads into the bare one, and no other branch loads the same file into a module that is made alike and not
wrapped; and projects that take the prefix off somewhere. A module that is wrapped only under a condition, there or by
who calls the function, is reported where the project loads what was saved into the bare module or into the one inside
(`model.module.load_state_dict`), or loads files of any name into that class and saves none of it unwrapped, or where
the program loads a file of any name into the very module before it is wrapped, also in a method that is called first,
or a function that is given it or returns it, whichever function or file wraps it, and though the code takes the module
out for something else (`self.inside = net.module if wrapped else net`); not where the path is called after weights of
others, or the file is a published one (`resnet50-19c8e357.pth`), nor where another file may be read as it was saved,
nor where the condition asks for an argument that no call of the project gives (`if world_size > 1` of `world_size=1`).
What is taken out of one wrapper (`model.module if ddp else model`) may still be in another: a compiled module is.
`model.compile()` wraps nothing, nor does `torch.jit.script`, and the `DataParallel` of paddle adds no prefix.
`AveragedModel` has a state of its own besides the module.

## Fix safety

Safe where the module surely is wrapped at that place: the keys of the file lose the prefix. Where the wrapped module
comes in as an argument, of the function or of the constructor, the fix is unsafe, because another caller may pass a
bare one; so it is of a name of the script in a function, which may be called earlier. No fix is offered where the
module is wrapped only under a condition, or the file is loaded back into a wrapped one.

## References

- [Saving and loading models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html#saving-torch-nn-dataparallel-models)
- [torch.nn.parallel.DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
- [torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, append_trailer
from mllint.knowledge import lookup
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.taken_alike import is_read_bare_beside, is_taken_alike
from mllint.semantic.checkpoints.wrapped import (
    WrappedSave,
    is_handed_in,
    is_into_the_inside,
    is_loaded_bare,
    is_loaded_wrapped,
    is_read_by_class,
    is_taken_off,
    loads_around,
    may_read,
    wrapped_save,
)
from mllint.semantic.names.conditions import is_in_another_branch

rule = Rule(
    code="ML426",
    message="the state dict of a wrapped module is saved",
    help="save the state dict of the module inside",
    frameworks=frozenset({"torch"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

# It counts how many models it averages, and that belongs to what is saved.
_OWN_STATE = "torch.optim.swa_utils.AveragedModel"


@rule.on_method("state_dict")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call that gives the state dict of a wrapped module, where the result goes into a file."""
    if is_taken_alike(context.model, call):
        yield Finding(call, "the state dict is the same in both branches, though one has found a wrapper", rule.help)
        return
    save = wrapped_save(context.model, call)
    if save is None or _OWN_STATE in save.wrappers or not _is_wrong(save, context):
        return
    wrapper = save.wrappers[0].rpartition(".")[2]
    inside = "".join(f".{attribute}" for attribute in _attributes(save))
    receiver = context.text(save.receiver)
    name = receiver if len(receiver) < 30 and "\n" not in receiver else "model"
    if save.is_certain:
        yield Finding(
            call,
            f"the keys that are saved begin with `{save.prefix}`: the module is in `{wrapper}`",
            f"write `{receiver}{inside}.state_dict()`" if len(receiver) < 60 else rule.help,
            fix=lambda: None if _is_loaded_back(context) else _fix(save, context),
        )
    else:
        yield Finding(
            call,
            f"the saved keys begin with `{save.prefix}` if the module is in `{wrapper}`",
            f'save the state dict of the module inside: `getattr({name}, "{inside[1:]}", {name}).state_dict()`',
        )


def _is_wrong(save: WrappedSave, context: Context) -> bool:
    """Whether nothing around loads the file the way it was saved, or something surely loads it otherwise."""
    if is_taken_off(context.model):
        return False
    loads = list(loads_around(context.model))
    into_wrapped = [load for load in loads if is_loaded_wrapped(load)]
    wrapping = [load.model for load in into_wrapped]
    bare = [load for load in loads if is_loaded_bare(load, save) and may_read(load, save)]
    if wrapping:
        # It fits where training is resumed, and not where the trained module is used, in a file that saves none.
        saving = [saved.place.model for saved in context.model.surroundings.saved]
        others = [load for load in bare if not is_into_the_inside(load) and load.model not in (*wrapping, *saving)]
        beside = ((load, other) for load in into_wrapped for other in loads if save.is_certain)
        return any(is_read_by_class(load, save) for load in others) or any(
            is_read_bare_beside(save, load, other) for load, other in beside
        )
    return save.is_certain or any(not is_into_the_inside(load) or _is_all(load, loads, save) for load in bare)


def _is_loaded_back(context: Context) -> bool:
    """Whether some code around loads into a wrapped module, as it is saved: that would have to change as well."""
    return any(is_loaded_wrapped(load) for load in loads_around(context.model))


def _is_all(load: Load, loads: list[Load], save: WrappedSave) -> bool:
    """Whether all loads in the file that saves go into the module inside, wherever it is wrapped, as one does."""
    model = load.model
    others = [other for other in loads if other.model is model and is_loaded_wrapped(other) is None]
    return save.call_model is model and all(
        is_in_another_branch(model, other.call, load.call) for other in others if may_read(other, save)
    )


def _attributes(save: WrappedSave) -> list[str]:
    """The attributes that lead from the outermost wrapper to the module."""
    wrappers = [lookup.wrapper(name) for name in save.wrappers]
    return [wrapper.attribute for wrapper in wrappers if wrapper is not None and wrapper.attribute is not None]


def _fix(save: WrappedSave, context: Context) -> NodeFix:
    inside = "".join(f".{attribute}" for attribute in _attributes(save))
    # A name that nothing binds here is bound when the function runs, it seems.
    is_of_script = isinstance(save.receiver, cst.Name) and not context.bindings(save.receiver)
    return NodeFix(
        f"save the state dict of `{inside}`",
        append_trailer(save.receiver, inside),
        Applicability.UNSAFE if is_of_script or is_handed_in(save) else Applicability.SAFE,
    )
