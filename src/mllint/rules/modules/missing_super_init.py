"""## What it does

Finds modules whose `__init__` does not call the `__init__` of the framework's class, calls it too late, or writes the
call so that it does something else: `super().__init__` without parentheses, `super().__init__(self)`, `super(Other,
self).__init__()`, `Base.__init__()` without `self`, `super().__init()`. Also constructors that Python does not take for
one, because of their name: `_init_`, `_init__`, `__int__(self, size)`. A class without a `forward` is one of these
modules where it registers something in any method, asks for what is registered (`self.parameters()`), or declares an
attribute that is to hold a module: `self.decoder: nn.Module = None`.

## Why is this bad?

`Module.__init__` makes the tables in which layers, parameters and buffers are kept. Before it has run, assigning a
layer raises ("cannot assign module before Module.__init__() call"; Paddle: "super().__init__() should be called
first"). A module that assigns only plain attributes is made without complaint and fails when it is called, moved or
asked for its parameters.

A method that is only nearly called `__init__` is never run. The framework's own constructor runs in its stead:
PyTorch's takes no arguments, and Paddle's takes the first two for a name and a type. Without arguments the module is
made, and fails where it reads what the method should have set.

## Example

```python
from torch import nn


class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(3, 4)
```

## Use instead

```python
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
```

## What it leaves alone

`nn.Module.__init__(self)`, `Base.__init__(self, ...)`, `super(Net, self).__init__()`, a call in another method that
`__init__` runs, and data classes with a `__post_init__`. Numbers, strings and lists that are set before the call
(plain tensors too on PyTorch). Constructors that only raise, and classes with a `__new__` or metaclass of their own,
or with a `__getattr__` that may give the tables of another module. Classes that are modules by name only: nothing is
registered or asked for, and there is no `forward` to call, none that a layer of the framework has either, or it is a
builder that makes objects of the module class from which it derives. Tests: one that passes does without the tables.
Methods of an odd name that the project mentions, and `__int__(self)`, which makes a number.

## Fix safety

Safe: without the call the module cannot be used. The call is written, completed or moved only where the next class
surely needs no arguments, and nothing is fixed where that is not known.

## References

- [torch.nn.Module](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html)
- [paddle.nn.Layer](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Layer_en.html)
"""

from collections.abc import Callable, Iterator
from functools import partial

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeEdit, NodeFix, add_call_parentheses, delete_line, insert_first, replace
from mllint.rule import Finding, Rule
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules import initialization
from mllint.semantic.modules.initialization import Form, Late, Mention
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

rule = Rule(
    code="ML401",
    message="`__init__` does not call `super().__init__()`",
    help="write `super().__init__()` as the first statement",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)


@rule.on(cst.ClassDef)
def check(node: cst.ClassDef, context: Context) -> Iterator[Finding]:
    """Report a constructor that leaves the module without its tables."""
    definition = context.model.class_info(node)
    if definition.framework is None or is_test_code(context.model):
        return  # a test that runs has no use for the tables
    method = definition.methods.get("__init__")
    if method is None:
        yield from _misspelled(definition, context)
    elif method.self_name is not None:
        yield from _constructor(definition, method, context)


def _misspelled(definition: ClassInfo, context: Context) -> Iterator[Finding]:
    for method in initialization.misspelled(definition):
        message = f"`{method.name}` is not `__init__`: nothing calls it"
        yield _finding(method.node.name, message, "write `__init__`", partial(_renamed, definition, method, context))


def _renamed(definition: ClassInfo, method: FunctionInfo, context: Context) -> tuple[NodeEdit, ...]:
    renamed = (replace(method.node.name, "__init__"),)
    if initialization.mentions(definition):
        return renamed
    return (*renamed, *_written(method, context)) if initialization.needs_no_arguments(definition) else ()


def _constructor(definition: ClassInfo, method: FunctionInfo, context: Context) -> Iterator[Finding]:
    mentions = initialization.mentions(definition)
    right = [mention for mention in mentions if mention.form is Form.RIGHT]
    if not right:
        flawed = next((mention for mention in mentions if mention.form is not Form.ELSEWHERE), None)
        otherwise = initialization.may_be_initialized_otherwise(definition, method)
        if not otherwise and (flawed is not None or initialization.needs_it(definition, method)):
            yield _missing(definition, method, flawed, context)
        return
    late = initialization.called_late(definition, method, right)
    mixin = initialization.ends_in_mixin(definition)
    if late is not None:
        yield _late(definition, method, late, context)
    elif (
        mixin is not None
        and not initialization.makes_its_base(definition)
        and initialization.needs_it(definition, method)
        and all(initialization.is_super(context.model, mention) for mention in right)
    ):
        owner = f"{mixin.owner.name}.__init__" if mixin.owner is not None else "__init__"
        yield Finding(
            right[0].attribute,
            f"`super().__init__()` ends in `{owner}` and never reaches the module's",
            f"call `super().__init__()` in `{owner}` too",
        )
    elif initialization.is_given_self(definition, right[0]):
        call = context.parent(right[0].attribute)
        assert isinstance(call, cst.Call)
        fix = NodeFix("drop `self`", (replace(call.args[0], ""),))
        yield Finding(call, "`super().__init__` is given `self` twice", "write `super().__init__()`", lambda: fix)


def _missing(definition: ClassInfo, method: FunctionInfo, flawed: Mention | None, context: Context) -> Finding:
    suits = initialization.needs_no_arguments(definition)
    if flawed is None:
        return _finding(method.node.name, rule.message, rule.help, lambda: _written(method, context) if suits else ())
    attribute, call = flawed.attribute, context.parent(flawed.attribute)
    match flawed.form:
        case Form.UNCALLED:
            message = "`super().__init__` is not called"
            return _finding(
                attribute, message, "add the parentheses", lambda: add_call_parentheses(attribute) if suits else ()
            )
        case Form.MISSPELLED:
            message = f"`{context.text(attribute)}` is not `__init__`: no base class has it"
            return _finding(attribute, message, "write `__init__`", lambda: (replace(attribute.attr, "__init__"),))
        case Form.NO_OBJECT:
            message = f"`{context.text(attribute.value)}.__init__` is not given `self`"
        case Form.OTHER_OBJECT:
            message = "another object is initialized here, not this module"
            suits = suits and isinstance(call, cst.Call) and not call.args
        case _:
            message, suits = f"`{context.text(attribute.value)}.__init__` does not initialize this module", True
    return _finding(attribute, message, "write `super().__init__()`", lambda: _by_super(attribute) if suits else ())


def _written(method: FunctionInfo, context: Context) -> tuple[NodeEdit, ...]:
    return (insert_first(method.node, "super().__init__()", context.line_break(method.node.body.body[0])),)


def _by_super(attribute: cst.Attribute) -> tuple[NodeEdit, ...]:
    return (replace(attribute.value, "super()"),)


def _finding(node: cst.CSTNode, message: str, help_text: str, edits: Callable[[], tuple[NodeEdit, ...]]) -> Finding:
    """A finding whose fix has these edits; none where there are none."""

    def fix() -> NodeFix | None:
        found = edits()
        return NodeFix(help_text, found) if found else None

    return Finding(node, message, help_text, fix)


def _late(definition: ClassInfo, method: FunctionInfo, late: Late, context: Context) -> Finding:
    return Finding(
        late.call,
        f"`self.{late.needs}` comes before the `__init__` of the base class has run",
        "call it first",
        fix=lambda: _moved(definition, method, late, context),
    )


def _moved(definition: ClassInfo, method: FunctionInfo, late: Late, context: Context) -> NodeFix | None:
    """Make the call the first statement, where it is a line of its own and what it runs reads no attribute."""
    line = context.parent(context.statement(late.call))
    body = list(method.node.body.body)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1 or line not in body[1:]:
        return None
    if initialization.next_initializer(definition) not in initialization.ROOTS or len(late.call.args) > 1:
        return None
    dropped = delete_line(line, body[body.index(line) - 1])
    written = insert_first(method.node, context.text(late.call), context.line_break(line))
    return None if dropped is None else NodeFix("call it first", (written, dropped))
