"""## What it does

Finds tensors that are to be learned and are no leaves: `w = torch.randn(3, requires_grad=True) * 0.01`,
`w = torch.zeros(3, requires_grad=True).to(device)`, `self.w = nn.Parameter(torch.zeros(3)).cuda()`. The leaf
may also lose its name to what is computed from it: `w = w.cuda()`, or that be moved under its own name later. What the
list of an optimizer is made of, or grows by, need not have a name: `[torch.zeros(3, requires_grad=True).cuda()]`.

## Why is this bad?

The leaf is the tensor inside the expression, and nobody holds it. What is kept was computed from it: its `grad` stays
`None`, an optimizer refuses it ("can't optimize a non-leaf Tensor"), and a module does not register it as a parameter:
it is neither trained nor saved. On the CPU `.to(device)` gives the leaf itself, and the same code fails on a GPU only.

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

## Fix safety

Unsafe: `requires_grad_()` goes behind the whole expression, or the expression into `Parameter(...)`. The values stay as
they are. A module gets a parameter that it did not have before, and with it a key in its state dict. There is no fix
for a leaf that was made in a line of its own.

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
from mllint.syntax.shape import argument

rule = Rule(
    code="ML209",
    message="what is kept is no leaf: it gets no gradient",
    help="make the leaf last",
    frameworks=frozenset({"torch"}),
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
