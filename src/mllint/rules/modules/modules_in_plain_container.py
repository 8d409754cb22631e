"""## What it does

Finds layers and parameters that a module keeps in a plain list, tuple, set or dict: `self.layers = [nn.Linear(3, 3)]`,
`self.heads = {}` with `self.heads["a"] = nn.Linear(3, 2)`, or the list that a function or method of the project fills
and returns, also among other things: `self.size, self.layers = make(3)`. Layers of PyTorch Geometric and DGL are known,
too. What one branch registers and another does not
is reported in the other. So is a list that a constructor is given and keeps, where its annotation says that modules
with weights are in it, `parts: Sequence[Part]`, or a call in sight gives it new ones.

## Why is this bad?

A module knows only what is assigned to its attributes. It does not look into lists: these layers are not in
`parameters()`, so no optimizer trains them; not in `state_dict()`, so they are not saved; and `to()`, `cuda()`,
`train()` and `eval()` do not reach them. Nothing fails as long as everything stays on the CPU.

## Example

```python
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(3, 3) for _ in range(4)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
```

## Use instead

```python
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
```

## What it leaves alone

Containers that are registered later (`self.layers = nn.ModuleList(self.layers)`, `nn.Sequential(*self.layers)`,
`add_module`, `setattr`), or whose elements are attributes of their own, or are put into something else that is
registered, or may be, also where a method or property gives the list out and somebody in the project asks for it who
does so. Dicts of which only the constructor takes entries, by a key that it is given: a table of choices, `layers =
list(self.known[kind].children())`. Layers without weights, and those whose weights are fixed ones that somebody has
moved: `conv.weight = nn.Parameter(kernel.cuda(), requires_grad=False)`. Modules that were made elsewhere and handed
over, but for such lists; and those, too, where a call gives a list that is registered. A list of one module that is
read as `self._teacher[0]`: that hides it on purpose. Containers whose elements somebody looks after by hand: gives
their `parameters()` to an optimizer, as they may do themselves, calls their `train()`, sets their weights as
attributes; who only moves them, `to(device)`, looks after none. What the method that makes it deletes again, once the
weights are in a parameter. Sequences of layers that are registered one by one, by `forward` too. Parameters that only
hold a place: `forward` sets the list anew, or nothing but its length is read. Files that build static graphs with
`paddle.static`, where the program holds the parameters.

## Fix safety

Safe where everything in the container is a module and it is only indexed, iterated and appended to. Checkpoints that
were saved before lack the layers, which is the defect. Unsafe for dicts with keys that are not written out, and for
tuples of one that are called: there the comma is taken away. No fix is offered where another method makes the attribute
anew: a plain list cannot take the place of a registered one.

## References

- [torch.nn.ModuleList](https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html)
- [paddle.nn.LayerList](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/LayerList_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, give_to, replace
from mllint.rule import Finding, Rule
from mllint.semantic.modules.containers import Container
from mllint.semantic.modules.contents import Contents, is_display
from mllint.semantic.names.receivers import method_of_receiver
from mllint.syntax.shape import assigns_attribute, followed, unpacks_into_attributes

rule = Rule(
    code="ML402",
    message="modules in a plain container are not registered",
    help="wrap them in `nn.ModuleList`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_WRAPPERS = {
    ("torch", "modules"): ("ModuleList", "ModuleDict"),
    ("torch", "parameters"): ("ParameterList", "ParameterDict"),
    ("paddle", "modules"): ("LayerList", "LayerDict"),
    ("paddle", "parameters"): ("ParameterList", "ParameterDict"),
}


@rule.on(cst.Assign, cst.AnnAssign, shape=assigns_attribute)
def check(statement: cst.Assign | cst.AnnAssign, context: Context) -> Iterator[Finding]:
    """Report the assignment of a container with fresh modules or parameters in it."""
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else statement.target
    if statement.value is not None and isinstance(target, cst.Attribute):
        yield from _of_attribute(statement, target, statement.value, (), context)


@rule.on(cst.Assign, shape=unpacks_into_attributes)
def check_unpacked(statement: cst.Assign, context: Context) -> Iterator[Finding]:
    """Report those of several attributes that get such a container: `self.size, self.layers = make(3)`."""
    target = statement.targets[0].target
    for index, element in enumerate(target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()):
        if isinstance(element, cst.StarredElement):
            return
        if isinstance(element.value, cst.Attribute):
            value, path = followed(statement.value, (index,))
            yield from _of_attribute(statement, element.value, value, path, context)


def _of_attribute(
    statement: cst.Assign | cst.AnnAssign,
    target: cst.Attribute,
    value: cst.BaseExpression,
    path: tuple[int | None, ...],
    context: Context,
) -> Iterator[Finding]:
    method = method_of_receiver(context.model, target.value)
    owner = None if method is None else method.owner
    if method is None or owner is None or owner.framework is None:
        return
    container = Container(owner, method, target.attr.value, value, path)
    if container.display is None:
        return
    contents = container.fill()
    what = "modules" if contents.modules else "parameters"
    if not (contents.modules or contents.parameters) or container.is_hidden_on_purpose or container.is_looked_after:
        return
    wrapper = _WRAPPERS[owner.framework, what][contents.is_keyed]
    if _is_called(container):
        if isinstance(container.display, cst.Tuple) and len(container.display.elements) == 1:
            message = "the comma at the end makes a tuple of it: it cannot be called, nor is it registered"
            yield Finding(statement, message, "take the comma away", fix=lambda: _without_comma(value, context))
        else:
            message = "this makes a tuple, which cannot be called, nor is it registered"
            yield Finding(statement, message, f"assign what is called to `{context.text(target)}` alone")
        return
    kind = container.kind
    which = f"this {kind}" if value is statement.value and not path else f"the {kind} `{target.attr.value}`"
    yield Finding(
        statement,
        f"the {what} in {which} are not registered with the module",
        _help(container, contents, what, wrapper),
        fix=None if path else lambda: _wrapped(value, container, contents, f"{owner.framework}.nn", wrapper, context),
    )


def _help(container: Container, contents: Contents, what: str, wrapper: str) -> str:
    if isinstance(container.display, cst.Tuple) and not contents.is_uniform:
        return "assign each of them to an attribute of its own"
    if contents.is_nested:
        return f"wrap each inner list in `nn.{wrapper}(...)`"
    # What registers takes nothing else, and for a dict no keys but text.
    return f"wrap it in `nn.{wrapper}(...)`" if contents.is_uniform else f"put the {what} into `nn.{wrapper}(...)`"


def _is_called(container: Container) -> bool:
    """Whether a tuple is called as if it were what it holds, as one that a comma makes: ``self.act = nn.ReLU(),``."""
    return isinstance(container.display, cst.Tuple) and any(isinstance(item, cst.Call) for item in container.reads)


def _without_comma(value: cst.BaseExpression, context: Context) -> NodeFix | None:
    if not isinstance(value, cst.Tuple) or not isinstance(value.elements[0], cst.Element) or value.lpar:
        return None
    edit = replace(value, context.text(value.elements[0].value))
    return NodeFix("take the comma away", (edit,), Applicability.UNSAFE)


def _wrapped(
    value: cst.BaseExpression, container: Container, contents: Contents, package: str, wrapper: str, context: Context
) -> NodeFix | None:
    """Wrap the container, where a list or dict of modules does all that is asked of it."""
    is_of_one_kind = contents.is_uniform and not contents.is_nested and not (contents.modules and contents.parameters)
    is_set = isinstance(container.display, (cst.Set, cst.SetComp))
    is_open = container.is_made_again or isinstance(value, cst.IfExp)
    if not is_of_one_kind or is_set or is_open or not container.is_used_alike:
        return None
    name, imported = context.need_import(package)
    trust = Applicability.SAFE if contents.has_plain_keys or not contents.is_keyed else Applicability.UNSAFE
    given = give_to(value, f"{name}.{wrapper}", is_container=is_display(context.model, value))
    edits = (*([imported] if imported else ()), *given)
    return NodeFix(f"wrap it in `nn.{wrapper}`", edits, trust)
