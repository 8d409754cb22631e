"""## What it does

Finds calls of `load_state_dict` (paddle: `set_state_dict`, `set_dict`, `load_dict`) whose keys surely are not those of
the module. What is certain is told from the classes, and from what the project itself saves to the file:

- a checkpoint such as `{"model": ..., "epoch": ...}` is loaded where one of its entries belongs, or an entry is read
  that is never saved;
- the keys of one side begin with `module.` or `_orig_mod.`, because `DataParallel`, `DistributedDataParallel` or
  `torch.compile` wraps it, and those of the other side do not;
- the dict is that of another class, is written by hand under other names, or has lost its prefix on the way;
- the state of an optimizer is loaded into a module, or the reverse;
- a whole module was saved, not its state dict;
- `full = model.state_dict()` was completed with the entries of a file, and then those entries alone are loaded.

## Why is this bad?

A strict load raises, but the entries that match have been loaded by then. With `strict=False`, and in paddle's
`set_state_dict`, nothing raises: the module keeps its random weights. PyTorch is silent about it, and paddle warns of
missing keys only.

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

Everything of which not all keys are known to differ: classes of other packages, layers under a condition that cannot
be decided, dicts that some function has changed, files that are written elsewhere. Loads under `try`, and loads of a
dict that the code has examined (`"model" in checkpoint`). The counter `num_batches_tracked`, which old files lack.
With `strict=False` a part that does not match is taken to be meant; only a load that can match nothing is reported.

## Fix safety

Unsafe: that the entry with the state dict is taken out of the checkpoint, or that the dict is loaded into the wrapped
module, is what was meant as far as this file shows it; the file on disk may be another one.

## References

- [torch.nn.Module.load_state_dict](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict)
- [Saving and loading models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html)
- [paddle.nn.Layer.set_state_dict](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Iterable, Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeEdit, NodeFix, append_trailer, replace
from mllint.knowledge import lookup
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints.contents import Absent, Record, State, Whole
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.checkpoints.problems import Problem, entries_for, problem_of
from mllint.semantic.state_keys import WRAPPER_PREFIXES, Mismatch
from mllint.semantic.values import Module, Object
from mllint.syntax.shape import string_literal, subscript_index

rule = Rule(
    code="ML422",
    message="the keys that are loaded are not those of the module",
    help="load a state dict with the keys of the module",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)

_SHOWN = 2


@rule.on_method("load_state_dict", "set_state_dict", "set_dict", "load_dict")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report a load that surely does not fit."""
    load = load_of(context.model, call)
    problem = None if load is None else problem_of(load)
    if load is None or problem is None:
        return
    message, help_ = _words(load, problem)
    yield Finding(call, message, help_, fix=lambda: _fix(load, problem))


def _words(load: Load, problem: Problem) -> tuple[str, str]:
    """What is wrong, and what to write."""
    saved = "the file" if problem.saved is None else problem.saved.place.seen_from(load.model)
    match problem.kind, problem.content:
        case "nested", Record() as record:
            maker = f"{record.place.seen_from(load.model)} builds" if problem.saved is None else f"{saved} saves"
            return (
                f"a whole checkpoint is loaded: {maker} it with {_list(record.items)}",
                f"load the entry that holds the state dict: {_list(problem.names)}",
            )
        case "read", _:
            return (
                f"a whole checkpoint is loaded: {_list(problem.names)} of it is read as well",
                "load the entry of the checkpoint that holds the state dict",
            )
        case "partial", _:
            return (
                f"a part is loaded: `{problem.names[0]}`, which was completed for this, is not used",
                f"load `{problem.names[0]}`",
            )
        case "absent", Absent(key, Record() as record):
            kept = _list(record.items) if record.items else "nothing"
            wanted = _list(entries_for(load, record)) if entries_for(load, record) else kept
            return f"`{key}` is never saved: {saved} saves {kept}", f"read the entry that is saved: {wanted}"
        case "absent", Absent(key, _):
            return (
                f"`{key}` is never saved: {saved} saves a state dict as it is",
                "load what was read from the file, without the key",
            )
        case "whole", Whole():
            place = "" if problem.saved is None else f": {saved} saves it"
            return f"a whole module is loaded as a state dict{place}", "give `.state_dict()` of the module"
        case "swapped", content:
            return _swapped(load, problem, content, saved)
    return _other_keys(load, problem, saved)


def _swapped(load: Load, problem: Problem, content: object, saved: str) -> tuple[str, str]:
    if problem.names:
        return f"`{problem.names[0]}` is the state of something else by its name", "load the state of the same object"
    kind = _kind(content.owner) if isinstance(content, State) else "another object"
    place = "" if problem.saved is None else f" ({saved} saves it)"
    return f"the state of {kind} is loaded into {_kind(load.value)}{place}", "load the state of the same object"


def _kind(value: object) -> str:
    name = value.kind if isinstance(value, Object) else "module"
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _other_keys(load: Load, problem: Problem, saved: str) -> tuple[str, str]:
    mismatch = problem.mismatch
    assert mismatch is not None
    keys = "the keys" if problem.saved is None else f"the keys that {saved} saves"
    prefix = _prefix(problem, load)
    if prefix is not None:
        given, of_given = prefix
        if of_given:
            return (
                f"{keys} begin with `{given}`, those of the module do not",
                f'take the prefix off: `{{k.removeprefix("{given}"): v for k, v in state.items()}}`',
            )
        return (
            f"{keys} do not begin with `{given}`, those of the wrapped module do",
            f"load into the module that is wrapped: `.{given.removesuffix('.')}`",
        )
    source = "the dict" if problem.saved is None else f"what {saved} saves"
    return f"{source} {_difference(mismatch, 88 - len(source))}", rule.help


def _difference(mismatch: Mismatch, room: int) -> str:
    """In which keys the two sides differ, with as many names as there is room for."""
    text = "has none of the keys of the module"
    for shown in range(_SHOWN + 1):
        parts = [f"lacks {_list(mismatch.missing, shown)}"] if mismatch.missing else []
        parts += [f"adds {_list(mismatch.unexpected, shown)}"] if mismatch.unexpected else []
        longer = ", ".join(parts)
        if parts and len(longer) < room:
            text = longer
    return text


def _prefix(problem: Problem, load: Load) -> tuple[str, bool] | None:
    """The prefix that only one side has, and whether that is the side that is loaded."""
    content = problem.content
    wrapper = lookup.wrapper(load.value.wrappers[0]) if isinstance(load.value, Module) and load.value.wrappers else None
    for prefix in WRAPPER_PREFIXES:
        wanted = wrapper is not None and wrapper.prefix == prefix
        given = isinstance(content, State) and _all_begin_with(content, prefix)
        if wanted != given:
            return prefix, given
    return None


def _all_begin_with(content: State, prefix: str) -> bool:
    keys = (*content.keys.certain, *content.keys.open)
    return bool(keys) and all(key.startswith(prefix) for key in keys)


def _list(names: Iterable[str], shown: int = _SHOWN) -> str:
    every = sorted(names)
    if shown == 0:
        return f"{len(every)} key{'s' if len(every) > 1 else ''}"
    listed = ", ".join(f"`{name}`" for name in every[:shown])
    return listed if len(every) <= shown else f"{listed} and {len(every) - shown} more"


def _fix(load: Load, problem: Problem) -> NodeFix | None:
    edits: tuple[NodeEdit, ...] = ()
    content = problem.content
    if problem.kind == "nested" and len(problem.names) == 1:
        edits = append_trailer(load.given, f'["{problem.names[0]}"]')
        return NodeFix(f"load the entry `{problem.names[0]}`", edits, Applicability.UNSAFE)
    if problem.kind == "partial":
        return NodeFix(f"load `{problem.names[0]}`", (replace(load.given, problem.names[0]),), Applicability.UNSAFE)
    if problem.kind == "absent" and isinstance(content, Absent) and isinstance(content.holder, Record):
        states = entries_for(load, content.holder)
        index = subscript_index(load.given) if isinstance(load.given, cst.Subscript) else None
        if len(states) == 1 and index is not None and string_literal(index) == content.key:
            return NodeFix(f"read `{states[0]}`", (replace(index, f'"{states[0]}"'),), Applicability.UNSAFE)
    if problem.kind == "keys" and (prefix := _prefix(problem, load)) is not None and not prefix[1]:
        assert isinstance(load.value, Module)
        if len(load.value.wrappers) == 1:
            attribute = prefix[0].removesuffix(".")
            edits = append_trailer(load.receiver, f".{attribute}")
            return NodeFix("load into the module that is wrapped", edits, Applicability.UNSAFE)
    return None
