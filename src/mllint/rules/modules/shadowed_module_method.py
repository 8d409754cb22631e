"""## What it does

Finds attributes of a module that take the name of one of its methods: `self.train = True`, `self.parameters = []`,
`self.modules = nn.ModuleList()`.

## Why is this bad?

A number, string or list under such a name hides the method from everybody who calls it, the framework included:
`model.eval()` calls `train`, an outer module calls `state_dict` of the inner one, and both fail with "object is not
callable".

With a layer it is the other way round: it is registered, but `self.modules` stays the method, so that
`for m in self.modules` fails. A parameter or buffer is refused with a `KeyError` (PyTorch).

## Example

```python
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.train = True
```

## Use instead

```python
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.is_training_run = True
```

## What it leaves alone

Functions and methods, which replace the method on purpose (`self.forward = self._forward`); classes that define the
name as a property. Names that nothing but the user's own code calls, such as `cuda`, `type` or `half`, as long as
neither the file nor one that imports it calls them on a module of this class (an outer module moves its parts without
them); methods that Paddle has only since a later version. Tests.

## Fix safety

No fix is offered: the new name is used wherever the attribute is read, in other files too.

## References

- [torch.nn.Module](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html)
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

import re
from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.expressions.truth import is_worked_out
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules.other_objects import is_asked_of_objects
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import (
    ClassObject,
    Function,
    Instance,
    Method,
    Module,
    Object,
    Other,
    Symbol,
    Tensor,
    own_method,
)
from mllint.syntax.shape import dotted_path, last_word, targets_of

rule = Rule(
    code="ML407",
    message="this attribute hides a method of the module",
    help="give the attribute another name",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)

# What the framework itself, a wrapper, an optimizer or every training script calls.
_CALLED = {
    "torch": frozenset({
        "train", "eval", "parameters", "named_parameters", "children", "named_children", "modules", "named_modules",
        "buffers", "named_buffers", "state_dict", "load_state_dict", "apply", "to", "zero_grad",
        "register_buffer", "register_parameter", "add_module", "register_module",
    }),
    "paddle": frozenset({
        "train", "eval", "parameters", "named_parameters", "children", "named_children", "sublayers",
        "named_sublayers", "buffers", "named_buffers", "state_dict", "set_state_dict", "apply", "to", "add_sublayer",
        "add_parameter", "create_parameter", "register_buffer", "clear_gradients", "full_name", "modules",
    }),
}  # fmt: skip
# What only the user's own code calls: an outer module moves and converts its parts by `_apply`.
_CALLED_BY_HAND = frozenset({"cuda", "cpu", "type", "float", "double", "half", "bfloat16"})
_IN_PADDLE_SINCE_3_3 = frozenset({"cuda", "cpu", "modules", "named_modules", "type", "double", "half"})
# What holds the settings of a program: its attributes are flags, names and numbers.
_SETTINGS = re.compile(r"(?i)(arg|opt|conf|cfg|param|flag|setting)[a-z]*\.")
_ALL_WORDS = _CALLED["torch"] | _CALLED["paddle"] | _CALLED_BY_HAND
_WORDS = tuple(sorted(_ALL_WORDS))


def _may_hide(statement: cst.Assign | cst.AnnAssign) -> bool:
    """Whether a name or attribute that is assigned is called like a method of modules."""
    if statement.__class__ is cst.Assign:
        return any((last_word(item.target) or "") in _ALL_WORDS for item in statement.targets)
    return (last_word(statement.target) or "") in _ALL_WORDS  # type: ignore[union-attr]


@rule.on(cst.Assign, cst.AnnAssign, mentions=_WORDS, shape=_may_hide)
def check(statement: cst.Assign | cst.AnnAssign, context: Context) -> Iterator[Finding]:
    """Report an attribute of a module that has the name of one of its methods."""
    if statement.value is None or is_test_code(context.model):
        return
    for target in targets_of(statement):
        name = last_word(target)
        module = _owner(target, statement, context) if name in _WORDS else None
        if name is None or module is None or not _is_method(module, name, context):
            continue
        if _is_set_by_class(target, module, name, context):
            continue
        found = context.value(statement.value)
        if isinstance(found, Module):
            message = f"`{name}` stays the method of the module: the layer is out of reach by that name"
            yield Finding(statement, message)
        elif isinstance(found, Tensor) and found.parameter and found.framework == "torch":
            yield Finding(statement, f"`{name}` is a method of the module: a parameter of that name is refused")
        elif _is_plain(statement.value, context) and not _is_replaced(module, name, statement.value, context):
            yield Finding(statement, f"this hides the method `{name}` of the module")


def _owner(target: cst.BaseExpression, statement: cst.CSTNode, context: Context) -> Module | None:
    """The module whose attribute is assigned, by an instance or in the body of its class."""
    if isinstance(target, cst.Attribute):
        value = context.value(target.value)
    else:
        scope = context.model.scope_of(statement).node
        value = context.model.class_info(scope).instance() if isinstance(scope, cst.ClassDef) else None
    return value if isinstance(value, Module) and not value.wrappers else None


def _is_set_by_class(target: cst.BaseExpression, module: Module, name: str, context: Context) -> bool:
    """Whether code elsewhere sets an attribute that the class itself has put there: it is reported in the class."""
    if not isinstance(target, cst.Attribute) or method_of_receiver(context.model, target.value) is not None:
        return False
    return module.definition is not None and any(
        item.method is not None and item.method.name == "__init__"
        for item in module.definition.members.assignments(name)
    )


def _is_method(module: Module, name: str, context: Context) -> bool:
    """Whether a module has such a method, and somebody calls it."""
    own = own_method(module, name)
    if own is not None and own.is_property:
        return False
    if module.framework == "paddle" and name in _IN_PADDLE_SINCE_3_3 and (context.paddle_version or (3, 3)) < (3, 3):
        return False
    if name in _CALLED[module.framework] or module.definition is None:
        return name in _CALLED[module.framework]
    return name in _CALLED_BY_HAND and is_asked_of_objects(module.definition, context.model, name)


def _is_plain(value: cst.BaseExpression, context: Context) -> bool:
    """Whether what is assigned is surely, or by all that is seen, nothing that can be called."""
    found = context.value(value)
    if isinstance(found, (Function, ClassObject, Symbol, Instance, Method, Object, Other)) or isinstance(
        value, cst.Lambda
    ):
        return False
    if found is not None:
        return True
    if isinstance(value, cst.Name):
        return any(item.kind is BindingKind.PARAMETER for item in context.bindings(value))
    if isinstance(value, cst.Attribute):
        return _SETTINGS.search(dotted_path(value) or "") is not None
    if isinstance(value, cst.IfExp):
        return _is_plain(value.body, context) and _is_plain(value.orelse, context)
    return isinstance(value, (cst.Comparison, cst.UnaryOperation)) or is_worked_out(context.model, value)


def _is_replaced(module: Module, name: str, value: cst.BaseExpression, context: Context) -> bool:
    """Whether the class puts something there that can be called, or calls what may be a function."""
    if module.definition is None:
        return False
    members = module.definition.members
    if any(item.value is not None and not _is_plain(item.value, context) for item in members.assignments(name)):
        return True
    is_called = any(read.method.model.tree.call_of(read.node) is not None for read in members.reads(name))
    return is_called and context.value(value) is None
