"""## What it does

Finds tensors that are to be learned and are no leaves: `w = torch.randn(3, requires_grad=True) * 0.01`,
`w = torch.zeros(3, requires_grad=True).to(device)`, `self.w = nn.Parameter(torch.zeros(3)).cuda()`. The leaf
may also lose its name to what is computed from it: `w = w.cuda()`, or that be moved under its own name later. What the
list of an optimizer is made of, or grows by, need not have a name: `[torch.zeros(3, requires_grad=True).cuda()]`.

And tensors that an optimizer is given though they want no gradient at all: `codes = torch.randn(3)`, `Adam([codes])`.

## Why is this bad?

The leaf is the tensor inside the expression, and nobody holds it. What is kept was computed from it: its `grad` stays
`None`, an optimizer refuses it ("can't optimize a non-leaf Tensor"), and a module does not register it as a parameter:
it is neither trained nor saved. On the CPU `.to(device)` gives the leaf itself, and the same code fails on a GPU only.

A tensor that wants no gradient is taken by an optimizer of PyTorch or Paddle without a word. Its gradient is `None`,
and so each step leaves it as it was made.

## Example

```python
import torch

w = torch.randn(3, requires_grad=True) * 0.01
optimizer = torch.optim.SGD([w], lr=0.1)
```

## Use instead

```python
import torch

w = (torch.randn(3) * 0.01).requires_grad_()
optimizer = torch.optim.SGD([w], lr=0.1)
```

## What it leaves alone

Tensors of which nobody reads `grad` and that no optimizer is given, such as the inputs of a test. Tensors with
`retain_grad()`. Methods that do nothing in most code: `.float()`, `.cpu()`, `.contiguous()`.

Tensors without a gradient in files that say of any tensor, later than where it is made, whether it wants one, that
write `grad`, or that never call `backward()`; those that nothing is computed from, as they only make an optimizer
possible; and all attributes of objects.

## Fix safety

Unsafe: `requires_grad_()` goes behind the whole expression, or the expression into `Parameter(...)`. The values stay as
they are. A module gets a parameter that it did not have before, and with it a key in its state dict. There is no fix
for a leaf that was made in a line of its own. In Paddle the flag is set in a line below.

## References

- [torch.Tensor.is_leaf](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_leaf.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeEdit, NodeFix, append_trailer, binds_trailers, insert_after, insert_before, replace_between
from mllint.rule import Finding, Rule
from mllint.semantic.graph.lost_leaves import LostLeaf, lost_element, lost_later, lost_leaf, says_leaf
from mllint.semantic.graph.never_learned import is_never_learned
from mllint.syntax.shape import argument, dotted_path

rule = Rule(
    code="ML209",
    message="what is kept is no leaf: it gets no gradient",
    help="make the leaf last",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)


@rule.on(cst.Call, mentions=("requires_grad", "Parameter", "requires_grad_"), shape=says_leaf)
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the assignment, or the element of a list, that keeps a tensor in place of the leaf that a call makes."""
    element = lost_element(context.model, call)
    if element is not None:
        yield _finding(element.kept, element, context)
        return
    statement = context.statement(call)
    if not isinstance(statement, cst.Assign):
        return
    if statement.value is call:
        for later, lost in lost_later(context.model, statement):
            yield _finding(later, lost, context)
        return
    found = lost_leaf(context.model, statement)
    if found is not None:
        yield _finding(statement, found, context)


@rule.on(cst.Assign, mentions=("optim", "optimizer"))
def check_plain(statement: cst.Assign, context: Context) -> Iterator[Finding]:
    """Report the assignment of a tensor without gradient that an optimizer is given."""
    if is_never_learned(context.model, statement):
        is_paddle = context.model.framework == "paddle"
        yield Finding(
            statement,
            "this tensor wants no gradient: the optimizer that is given it never moves it",
            "set its `stop_gradient = False`" if is_paddle else "write `.requires_grad_()` behind the whole expression",
            fix=lambda: _wanting(statement, context),
        )


def _wanting(statement: cst.Assign, context: Context) -> NodeFix | None:
    """Make a tensor want its gradient, where it is made."""
    if context.model.framework != "paddle":
        edits = append_trailer(statement.value, ".requires_grad_()")
        return NodeFix("let it want a gradient", tuple(edits), Applicability.UNSAFE)
    line, name = context.parent(statement), dotted_path(statement.targets[0].target)
    if not isinstance(line, cst.SimpleStatementLine):
        return None
    flag = f"{context.line_break(statement)}{name}.stop_gradient = False"
    return NodeFix("let it want a gradient", (insert_after(context.line_end(statement), flag),), Applicability.UNSAFE)


def _finding(place: cst.CSTNode, found: LostLeaf, context: Context) -> Finding:
    if found.is_parameter:
        message = f"the parameter inside is lost: what `{found.by}` gives is no parameter"
        advice = f"write `{context.text(found.leaf.func)}(...)` around the whole expression"
    else:
        message = f"what `{found.by}` gives is no leaf: its `grad` stays `None`, no optimizer takes it"
        advice = "write `.requires_grad_()` behind the whole expression"
    if found.by == "arithmetic":
        message = message.replace("`arithmetic`", "arithmetic")
    elif found.by == "to()":  # on the device where it was made it gives the leaf itself
        message = message.replace("what `to()` gives", "what `to()` moves")
    return Finding(place, message, advice, fix=lambda: _fix(found))


def _fix(found: LostLeaf) -> NodeFix | None:
    if found.is_apart:
        return None  # on another way the leaf may still be there
    if found.is_parameter:
        return _around(found)
    flag = argument(found.leaf, None, "requires_grad")
    position = found.leaf.args.index(flag) if flag is not None else 0
    if flag is None or position == 0:
        return None
    without = replace_between(found.leaf.args[position - 1].value, flag.value, "")
    edits = (without, *append_trailer(found.kept, ".requires_grad_()"))
    return NodeFix("make the leaf last", edits, Applicability.UNSAFE)


def _around(found: LostLeaf) -> NodeFix | None:
    """``Parameter(x).cuda()`` becomes ``Parameter(x.cuda())``: the closing bracket moves."""
    inner, node = found.leaf.args, found.kept
    while node is not found.leaf:
        if node.lpar:
            return None
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            node = node.func.value
        elif isinstance(node, cst.BinaryOperation):
            node = node.left
        else:
            return None  # the call does not stand at the beginning
    if len(inner) != 1 or inner[0].keyword is not None or inner[0].star or found.leaf.lpar:
        return None
    data = inner[0].value
    edits: list[NodeEdit] = [replace_between(data, found.leaf, "" if binds_trailers(data) else ")")]
    if not binds_trailers(data):
        edits.append(insert_before(data, "("))
    edits.append(insert_after(found.kept, ")"))
    return NodeFix("make the parameter last", tuple(edits), Applicability.UNSAFE)
