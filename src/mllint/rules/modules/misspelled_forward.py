"""## What it does

Finds modules that have no `forward`, but a method whose name is nearly that: `foward`, `farward`, `__forward__`. Also
those that have the `forward` of a base, where the name is one letter off and nobody calls the method, and those whose
`forward` is indented into another method, as a function that nobody has.

## Why is this bad?

Calling a module runs its method `forward`. A module without one is made without complaint, and raises
`NotImplementedError` when it is called. One whose base has a `forward` runs that one, without a word.

## Example

```python
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def foward(self, x):
        return self.fc(x)
```

## Use instead

```python
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)

    def forward(self, x):
        return self.fc(x)
```

## What it leaves alone

Classes with a `forward` of their own or one that is assigned, or with a `__call__`; bases of which nothing is known;
abstract classes, whose `forward` is written in a subclass; methods that the file calls by the odd name, those that are
another name for `forward` and call it themselves, and `_forward`, which somebody has put aside. Misspelled constructors
are found by ML401.

## Fix safety

None for a function that has to be indented less. Else safe where the module has no `forward`: nothing can have called
the method as that before, and nothing in the file calls it by its present name. Unsafe where the base has one: another
method runs from then on.

## References

- [torch.nn.Module.forward](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.forward)
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, replace
from mllint.knowledge import lookup
from mllint.rule import Finding, Rule
from mllint.semantic.names.classes import PLAIN_BASES
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.spelling import distance
from mllint.syntax.shape import dotted_path, is_super_call
from mllint.syntax.walk import subtree

rule = Rule(
    code="ML405",
    message="this method is not `forward`, and the module has none",
    help="write `forward`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_CALLED = ("forward", "__call__", "__getattr__", "__getattribute__", "_call_impl")
# Words that mean something else.
_OTHER_WORDS = frozenset({"toward", "towards", "forwarder", "forwarded"})


@rule.on(cst.ClassDef)
def check(node: cst.ClassDef, context: Context) -> Iterator[Finding]:
    """Report the method that was meant to be ``forward``."""
    yield from _check_nested(node, context)
    names = [
        statement.name
        for statement in node.body.body
        if isinstance(statement, cst.FunctionDef) and _is_nearly_forward(statement.name.value)
    ]
    if len(names) != 1:
        return
    definition = context.model.class_info(node)
    if definition.framework is None or _goes_on(names[0], definition) or _is_used(names[0], definition, context):
        return
    renamed = (replace(names[0], "forward"),)
    if _has_no_forward(definition):
        fix = NodeFix("rename to `forward`", renamed)
        yield Finding(names[0], f"`{names[0].value}` is not `forward`, and the module has none", fix=lambda: fix)
    elif _has_only_that_of_base(names[0], definition):
        unsafe = NodeFix("rename to `forward`", renamed, Applicability.UNSAFE)
        yield Finding(names[0], f"`{names[0].value}` is not `forward`: that of the base runs", fix=lambda: unsafe)


def _check_nested(node: cst.ClassDef, context: Context) -> Iterator[Finding]:
    """Report a ``forward`` that stands in a method, as a function that nobody has."""
    for method in node.body.body:
        if not isinstance(method, cst.FunctionDef):
            continue
        for function in method.body.body:
            if not isinstance(function, cst.FunctionDef) or function.name.value != "forward" or function.decorators:
                continue
            parameters = function.params.params
            definition = context.model.class_info(node)
            takes_self = bool(parameters) and parameters[0].name.value == "self"
            is_module = takes_self and definition.framework is not None
            if is_module and not _is_mentioned(function, context) and _has_no_forward(definition):
                message = f"this `forward` is a function in `{method.name.value}`: the module has none"
                yield Finding(function.name, message, "indent it less, as a method of the class")


def _is_mentioned(function: cst.FunctionDef, context: Context) -> bool:
    """Whether the method around a function has another use for its name."""
    around = context.model.enclosing_function(function)
    mentions = (name for name in context.model.names_by_word.get("forward", ()) if name is not function.name)
    return any(context.model.enclosing_function(name) in (around, function) for name in mentions)


def _is_nearly_forward(name: str) -> bool:
    word = name.strip("_").lower()
    is_put_aside = name.startswith("_") and not name.startswith("__")
    if name == "forward" or is_put_aside or word in _OTHER_WORDS or not word.isalpha():
        return False
    return abs(len(word) - len("forward")) <= 2 and distance(word, "forward") <= 2


def _has_no_forward(definition: ClassInfo) -> bool:
    """Whether calling an instance surely finds no ``forward``, in this class or one that derives from it here."""
    members = definition.members
    if not members.has_only_plain_bases or members.subclasses or members.sets_computed_names:
        return False
    if any(name.startswith("forward_") for name in definition.methods):
        return False  # it has a method for each of its passes: `forward_encoder`, and is never called itself
    return all(definition.method(name) is None for name in _CALLED) and not any(
        True for _ in members.assignments("forward")
    )


def _has_only_that_of_base(name: cst.Name, definition: ClassInfo) -> bool:
    """Whether a method one letter off stands beside the ``forward`` of a base, and nobody can mean it by its name."""
    method, members = definition.methods[name.value], definition.members
    if "forward" in definition.methods or name.value == "forwards" or distance(name.value, "forward") != 1:
        return False
    if definition.has_unknown_base or members.subclasses or members.sets_computed_names or method.decorators:
        return False
    set_later = (item for item in members.assignments("forward") if not isinstance(item.node, cst.FunctionDef))
    if definition.method("__call__") is not None or any(True for _ in set_later):
        return False
    known = [lookup.class_(base) for base in definition.library_bases if base not in PLAIN_BASES]
    is_layer = any(item is not None and item.kind in ("layer", "loss", "rnn") for item in known)
    inherits = None not in known and (is_layer or definition.method("forward") is not None)
    return inherits and len(method.parameters) > 1 and not members.may_be_read_elsewhere(name.value)


def _goes_on(name: cst.Name, definition: ClassInfo) -> bool:
    """Whether a method is another name for `forward`: it calls that of its object, and would call itself by that name.

    Or it gives back what that of the base makes of the same arguments.
    """
    method = definition.methods[name.value]
    own = (method.self_name, f"{method.self_name}.forward")
    if any(isinstance(part, cst.Call) and dotted_path(part.func) in own for part in subtree(method.node.body)):
        return True
    value = method.scope.returns[0].value if len(method.scope.returns) == 1 else None
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute):
        return False
    is_of_base = is_super_call(value.func.value) and value.func.attr.value == "forward"
    return is_of_base and all(isinstance(arg.value, cst.Name) for arg in value.args)


def _is_used(name: cst.Name, definition: ClassInfo, context: Context) -> bool:
    """Whether the file mentions the method by its present name."""
    for mention in context.model.names_by_word.get(name.value, ()):
        parent = context.parent(mention)
        scope = context.model.scope_of(mention).node
        if isinstance(parent, cst.FunctionDef) or (isinstance(scope, cst.ClassDef) and scope is not definition.node):
            continue
        method = method_of_receiver(context.model, parent.value) if isinstance(parent, cst.Attribute) else None
        if method is None or definition.members.is_related(method):
            return True
    return False
