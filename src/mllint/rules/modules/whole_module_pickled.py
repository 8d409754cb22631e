"""## What it does

Finds whole modules, optimizers and schedulers that are saved instead of their state: `torch.save(model, path)`.

## Why is this bad?

What is written is a pickle that names the class of the module and the file in which it stands. It cannot be read after
either was renamed or moved, nor by a program that does not have them, and reading it means running what is in the file:
`torch.load` refuses it since PyTorch 2.6 unless it is told `weights_only=False`. A class in a function and a lambda in
an attribute cannot be saved this way at all. `paddle.save` refuses every layer with a `ValueError`.

## Example

```python
import torch
from torch import nn

model = nn.Linear(3, 4)
torch.save(model, "model.pt")
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(3, 4)
torch.save(model.state_dict(), "model.pt")
```

## What it leaves alone

Modules that are scripted, traced, exported or quantized, whose code belongs to them. What is written into memory
(`io.BytesIO`), to be read at once. Tests: there it is tried out whether a module can be pickled. Files that read with
`weights_only=False` or allow classes by `add_safe_globals`: whole modules are meant there. What all code around that
reads the very file reads so, or, where none does, what a load of files of its ending does: `if path.endswith(".net"):
net = torch.load(path, weights_only=False)`. What another pickler writes, or reads in the same file
(`pickle_module=dill`): it may keep the class, and `torch.load` asks it alone. Copies that are made for the checkpoint,
`{"model": deepcopy(model).half()}`. A branch beside one that saves a `state_dict()`: there somebody chooses. In files
of torch a module of which the same function, or the one of the project that is called to save it, saves the state as
well. Modules into which the same function has put other parts (`setattr(net, name, layer)`, `add_module`), as to prune
them: no class builds them so. What is not surely a module.

## Fix safety

Unsafe: `.state_dict()` is added. The code that reads the file must change with it: it has to make the module and load
the state into it, `model.load_state_dict(torch.load(path))`. Files that were written before stay what they are. No fix
is offered where the same file reads a module back under that name, nor for one of several things that a function of the
project saves, nor where a list of modules is saved that the code uses otherwise, too.

## References

- [Saving and loading models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html)
- [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
- [paddle.save](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/save_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, append_trailer
from mllint.knowledge import lookup
from mllint.knowledge.words import STATEFUL
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints import saving
from mllint.semantic.checkpoints.loads import is_read_back
from mllint.semantic.checkpoints.refused import is_meant_whole
from mllint.semantic.construction.constants import constant_of
from mllint.semantic.events.places import as_itself
from mllint.semantic.files.testing import is_in_a_test, is_test_code
from mllint.semantic.values import Loaded, Module, Object
from mllint.syntax.shape import argument, dotted_path

rule = Rule(
    code="ML427",
    message="a whole module is pickled",
    help="save `model.state_dict()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)

_LONGEST_NAME = 20
_REFUSED_SINCE = (2, 6)
"""The version of PyTorch from which on ``torch.load`` reads no class unless it is told to."""
_SAVERS = frozenset({"torch.save", "paddle.save"})
# Parts of the names of functions that give modules which carry their own code.
_SELF_CONTAINED = ("jit", "quantiz", "export", "fx.", "onnx", "trace")
_ALLOWING = ("add_safe_globals", "safe_globals")


@rule.on(cst.Call, mentions=saving.WORDS, shape=saving.may_save)
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report every part of what a call saves that is a whole module."""
    what = saving.saved(context.model, call)
    inside = None if what is None or what.parameter is None else what.parameter[0].value(what.parameter[1])
    if what is None or what.saver not in _SAVERS or _goes_to_memory(call, context) or _is_pickled(inside, context):
        return  # what a function of the project pickles is judged there
    if is_test_code(context.model) or is_in_a_test(context.model, call) or _names_pickler(call, context):
        return  # whether it can be pickled is what is tested; another pickler may write the class, too
    handed_on = [] if what.parameter is None else [what.parameter]
    seen: set[int] = set()
    found = saving.parts(context.model, what.node)
    for part in found:
        value = context.value(part.place) or _or_loaded(part.place, context)
        if id(part.place) in seen or not _is_pickled(value, context):
            continue
        seen.add(id(part.place))
        assert isinstance(value, (Module, Object))
        is_copy = bool(part.keys) and _is_copied(part.place, context)
        is_choice = value.framework != "paddle" and (
            any(saving.saves_state_otherwise(model, node) for model, node in ((context.model, call), *handed_on))
            or any(saving.saves_state_beside(model, node) for model, node in ((context.model, part.place), *handed_on))
        )
        is_meant = is_copy or is_choice or _is_deliberate(context) or is_meant_whole(context.model, call)
        if not (is_meant or saving.saves_rebuilt(context.model, call)):
            is_list = part.listed is not None  # the other parts are meant as well
            seen.update(id(item.place) for item in found if is_list and item.listed is part.listed)
            is_back = is_read_back(context.model, as_itself(part.place))
            is_mendable = saving.saves_one(context.model, call) and not is_back
            yield _finding(part, value, context, is_mendable=is_mendable)


def _or_loaded(node: cst.BaseExpression, context: Context) -> Module | None:
    """The module that an expression is wherever it has not been read from such a file."""
    found = context.model.alternatives(node) if isinstance(node, cst.Name) else ()
    modules = [value for value in found if isinstance(value, Module)]
    is_known = len(found) > 1 and all(isinstance(value, (Module, Loaded)) for value in found)
    return modules[0] if is_known and len(modules) == 1 else None


def _is_pickled(value: object, context: Context) -> bool:
    """Whether a value is a module, or something else with a state, that is pickled with a reference to its class."""
    if isinstance(value, Object):
        return value.kind in STATEFUL
    if not isinstance(value, Module) or any("jit" in name for name in value.wrappers):
        return False
    made_by = None if value.call is None or value.definition is not None else context.qualified_name(value.call.func)
    return made_by is None or not any(word in made_by.lower() for word in _SELF_CONTAINED)


def _goes_to_memory(call: cst.Call, context: Context) -> bool:
    """Whether what is written goes into a buffer in memory."""
    where = argument(call, 1, "f")
    made = [] if where is None else [where.value, *(binding.value for binding in context.bindings(where.value))]
    return any(isinstance(node, cst.Call) and context.qualified_name(node.func) == "io.BytesIO" for node in made)


def _is_deliberate(context: Context) -> bool:
    """Whether the file also reads whole modules, as it has to since PyTorch 2.6."""
    calls = context.model.calls_by_word
    if any(word in calls for word in _ALLOWING):
        return True
    loads = calls.get("load", ())
    given = (argument(call, None, "weights_only") for call in loads)
    is_allowed = any(arg is not None and constant_of(context.model, arg.value) is False for arg in given)
    return is_allowed or any(_names_pickler(call, context) for call in loads)


def _names_pickler(call: cst.Call, context: Context) -> bool:
    """Whether another module than `pickle` does the work: `torch.save(model, path, pickle_module=dill)`."""
    given = argument(call, None, "pickle_module")
    return given is not None and context.qualified_name(given.value) != "pickle"


def _is_copied(node: cst.BaseExpression, context: Context) -> bool:
    """Whether a module is copied for the file (`deepcopy(model).half()`): who does that means the module."""
    while isinstance(node, cst.Call):
        if context.qualified_name(node.func) == "copy.deepcopy":
            return True
        if not isinstance(node.func, cst.Attribute):
            return False
        node = node.func.value
    return False


def _finding(part: saving.Part, value: Module | Object, context: Context, *, is_mendable: bool) -> Finding:
    node, is_list = part.listed or part.place, part.listed is not None
    path = dotted_path(node)
    kind = "list" if is_list else "module" if isinstance(value, Module) else value.kind
    before = "what is in " if is_list else ""
    is_short = path is not None and len(before + path) <= _LONGEST_NAME
    subject = before + (f"`{path}`" if is_short else f"the {kind}")
    is_refused = context.torch_version is None or context.torch_version >= _REFUSED_SINCE
    needed = "its class and `weights_only=False`" if is_refused else "its class under the same path"
    message = f"{subject} is pickled whole: loading needs {needed}"
    if value.framework == "paddle":
        message = f"{subject} is saved whole: `paddle.save` raises a `ValueError`"
    if is_list:
        return Finding(
            node, message, "save the `state_dict()` of each, and load that into each with `load_state_dict()`"
        )
    wrapper = lookup.wrapper(value.wrappers[0]) if isinstance(value, Module) and value.wrappers else None
    inner = f".{wrapper.attribute}" if wrapper is not None and wrapper.prefix and wrapper.attribute else ""
    trailer = f"{inner}.state_dict()"
    fix = NodeFix("save the state", append_trailer(node, trailer), Applicability.UNSAFE)
    # What reads the file gets keys and tensors from then on.
    method = "set_state_dict" if value.framework == "paddle" else "load_state_dict"
    read = "..." if part.keys else f"{value.framework or 'torch'}.load(...)"
    help_ = f"save `{path or kind}{trailer}`, and load it by `{path or kind}{inner}.{method}({read})`"
    return Finding(node, message, help_, fix=(lambda: fix) if is_mendable else None)
