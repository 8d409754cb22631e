"""## What it does

Finds `load_state_dict` called with the path of a file: `model.load_state_dict("model.pt")`; also with what a function
is given, where that is a text by default: `def load(path="model.pt")`. And with a part of what was read out of a file
of plain text, `yaml.safe_load(stream)["weights"]`, in which no tensor can be, or with a text in a dict of settings
that the calls of the function give it. And what belongs to `torch.load`: `load_state_dict(state, map_location=device)`,
and `torch.load_state_dict(...)`, which does not exist. And a call that is given nothing: `model.load_state_dict()`.

## Why is this bad?

It wants the dict that `torch.load` or `paddle.load` reads from the file. With a path PyTorch raises a `TypeError` and
Paddle an `AttributeError`, without anything both raise a `TypeError`, often only at the end of a long run or on the
machine where the model is served. It has none of the options of `torch.load` either: what is loaded goes to where the
parameters are.

## Example

```python
from torch import nn
import torch

model = nn.Linear(3, 4)
model.load_state_dict("model.pt")
```

## Use instead

```python
from torch import nn
import torch

model = nn.Linear(3, 4)
model.load_state_dict(torch.load("model.pt"))
```

## What it leaves alone

Arguments that are not surely a string or a `pathlib` path, and receivers that are not surely a module, an optimizer, a
scheduler or a scaler: other libraries have methods of this name that do take a path. A call without anything in a file
that has such a method itself, or of a class of which not all bases are known.

## Fix safety

Safe: the call raised before. Which device the tensors are read to, and whether the file may hold more than tensors
(`weights_only`), stays with the defaults of the installed version. Unsafe for what a function is given, who calls it
may give the dict, for settings, and where what is loaded into came out of a file itself. An option that does not exist
is given to the `torch.load` that is called there, or taken out.

## References

- [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
- [paddle.load](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/load_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, delete_argument, insert_after, wrap
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints.settings import is_setting
from mllint.semantic.expressions.new_results import is_defined_beside
from mllint.semantic.values import Loaded, Module, Object, Text, Value, is_object, own_method
from mllint.syntax.shape import argument, string_literal

rule = Rule(
    code="ML421",
    message="`load_state_dict` is given a path instead of a state dict",
    help="load the file first",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_OF_LOAD = frozenset({"map_location", "weights_only", "pickle_module", "mmap"})


@rule.on_method("load_state_dict", "set_state_dict", "set_dict", "load_dict")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call when its first argument is a string or path."""
    assert isinstance(call.func, cst.Attribute)
    receiver = context.value(call.func.value)
    method = call.func.attr.value
    given = argument(call, 0, "state_dict")
    if given is None:
        if not call.args and isinstance(receiver, (Module, Object)) and not _is_own(receiver, method, context):
            read = f"write `{method}({receiver.framework or 'torch'}.load(...))`"
            yield Finding(call, f"`{method}` is given nothing to load", read)
        return
    value = context.value(given.value)
    option = _option_of_load(call)
    if option is not None and _is_something_read(receiver, value, method, context):
        yield _refused(call, given.value, option, Applicability.UNSAFE, context)
    if not isinstance(receiver, (Module, Object)) or own_method(receiver, method) is not None:
        return
    option = option if receiver.framework == "torch" else None
    is_path = isinstance(value, Text) or is_object(value, "path")
    is_told = is_path or (isinstance(receiver, Module) and is_setting(context.model, given.value))
    if not is_told and not _is_path_by_default(given.value, context):
        if option is not None:
            yield _refused(call, given.value, option, Applicability.SAFE, context)
        return
    module, import_edit = context.need_import(receiver.framework or "torch")
    edits = wrap(given.value, f"{module}.load(", ")")
    trust = Applicability.SAFE if is_path else Applicability.UNSAFE
    fix = NodeFix("load the file", edits if import_edit is None else (*edits, import_edit), trust)
    path = context.short_text(given.value)
    with_option = path if option is None else f"{path}, {context.text(option)}"
    yield Finding(
        call,
        f"`{method}` is given a path instead of a state dict",
        f"write `{method}({module}.load({with_option}))`",
        fix=None if option is not None else lambda: fix,
    )


@rule.on_call("torch.load_state_dict")
def check_function(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call of a function that PyTorch does not have."""
    message = "`torch` has no `load_state_dict`: it is a method of the module"
    yield Finding(call, message, "make the module first, and call `load_state_dict(...)` of that")


def _is_own(receiver: Module | Object, method: str, context: Context) -> bool:
    """Whether a class may have a method of its own that a call of something is for: also one derived in this file."""
    things = (receiver, *receiver.others) if isinstance(receiver, Module) else ()
    classes = [thing.definition for thing in things if thing.definition is not None]
    return method in context.model.function_names or any(
        definition.has_unknown_base or definition.method(method) is not None for definition in classes
    )


def _option_of_load(call: cst.Call) -> cst.Arg | None:
    """The option that is one of ``torch.load``: the method refuses it."""
    return next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value in _OF_LOAD), None)


def _is_something_read(receiver: Value | None, value: Value | None, method: str, context: Context) -> bool:
    """Whether something unknown, or out of a file, is given what comes out of a file, as modules are."""
    is_own = method in context.model.function_names or is_defined_beside(context.model, method)
    is_torch = isinstance(value, Loaded) and context.model.imports("torch")
    return is_torch and not is_own and (receiver is None or isinstance(receiver, Loaded))


def _refused(
    call: cst.Call, given: cst.BaseExpression, option: cst.Arg, trust: Applicability, context: Context
) -> Finding:
    name = context.text(option.keyword) if option.keyword is not None else ""

    def fix() -> NodeFix | None:
        deleted = delete_argument(call, option)
        if deleted is None:
            return None
        is_load = isinstance(given, cst.Call) and context.library_name(given.func) == "torch.load"
        if not isinstance(given, cst.Call) or not is_load or argument(given, None, name) is not None:
            return NodeFix(f"drop `{name}`", (deleted,), trust)
        moved = insert_after(given.args[-1].value, f", {name}={context.text(option.value)}")
        return NodeFix(f"give `{name}` to `torch.load`", (moved, deleted), trust)

    message = f"`{name}` is an option of `torch.load`, not of this: it raises"
    return Finding(call, message, f"give `{name}` to `torch.load`, if it is needed there", fix=fix)


def _is_path_by_default(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is what a function is given, as it is, and a text where nothing is given."""
    bindings = context.bindings(node)
    default = bindings[0].node.default if len(bindings) == 1 and isinstance(bindings[0].node, cst.Param) else None
    return default is not None and bool(string_literal(default))
