"""## What it does

Finds `backward(retain_graph=True)` on a graph through which no second backward pass goes.

## Why is this bad?

`backward()` frees what the forward pass saved as it walks the graph. With `retain_graph=True` all of it stays in
memory, as long as somebody holds the loss: in a training loop until the loss of the next iteration takes its place, so
that two graphs are in memory at once. The gradients are the same.

It is often added because of the error "Trying to backward through the graph a second time". What that error says is
that something was carried over from the last backward pass; `detach()` it there.

## Example

```python
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    optimizer.zero_grad()
    loss = model(torch.rand(8, 3)).pow(2).mean()
    loss.backward(retain_graph=True)
    optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    optimizer.zero_grad()
    loss = model(torch.rand(8, 3)).pow(2).mean()
    loss.backward()
    optimizer.step()
```

## What it leaves alone

A graph of which any part may be used by another backward pass: two losses of one output, several outputs of one pass, a
GAN whose generator learns from the same images, `create_graph`, a loss that is returned, stored or handed to a function
that is not known, a pass in a `lambda`, which may be called again. A pass above that walks what its own round has made
is over by then, and does not count. Losses of which a part was computed before this iteration, by a function or method
that is not known, or by a module that keeps a state between its calls. (What each call leaves in an attribute is none
where nobody else reads it, and each call makes it anew before it reads it itself.) Modules of which nothing is known
where the function runs another backward pass behind this one, unless in PyTorch a step changes their weights in every
round, before any other one: no later pass can go through the graph then. So it is, in PyTorch, with whatever else is
out of sight, where a step follows the last backward pass of every round. What methods hand on in attributes, unless all
backward passes of the class are understood, share nothing, and the attributes are set anew in each of its rounds. What
a function is given, where its callers are not seen, in its file or one that imports it. What a loop takes from a loader
counts as data, also where only the name of the loader says that it is one, as do the items of what is called a data
set; what is read out of a file, numbers and options that a constructor is given and nobody calls, and what is called
`args`, `config` or the like where nothing else is known of it, count as settings. A function of the project may be
given the loss to look at it. A graph that goes through no module, of which there is next to nothing to keep, and a
function that looks at the gradients of its input, once, and returns without a step. Tests, and what a module tries out
once, right under `if __name__ == "__main__":` and in no loop.

## Fix safety

Unsafe: the argument is deleted. Where a second backward pass is hidden from this file, it raises then.

## References

- [torch.Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html)
- [paddle.Tensor.backward](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, delete_argument
from mllint.rule import Finding, Rule
from mllint.semantic.files.testing import is_test_code, is_tried_out
from mllint.semantic.graph.graph_slice import GraphSlice
from mllint.semantic.graph.losses import loss_of, retaining
from mllint.semantic.training.looked_through import only_looks
from mllint.semantic.training.stale_weights import weights_change_every_round
from mllint.semantic.values import Instance, Module

rule = Rule(
    code="ML210",
    message="`retain_graph=True` keeps the graph for a second backward pass that never comes",
    help="leave out `retain_graph`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    by_default=False,
    applicability=Applicability.UNSAFE,
)


@rule.on_method("backward", "manual_backward")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call, where its graph is surely spent by it."""
    kept, loss = retaining(context.model, call), loss_of(call)
    if kept is None or loss is None or context.model.gradients.off(call) is not False or is_test_code(context.model):
        return
    if call not in context.model.backward.calls or _is_no_method_of_tensor(call, kept, loss, context):
        return
    if only_looks(context.model, call):
        return
    graph = GraphSlice(context.model, loss, call, weights_change_every_round(context.model, call))
    if not graph.is_open and graph.is_deep and graph.is_spent_once and not is_tried_out(context.model, call):
        yield Finding(call, fix=lambda: _without(call, kept))


def _is_no_method_of_tensor(call: cst.Call, kept: cst.Arg, loss: cst.BaseExpression, context: Context) -> bool:
    """Whether an object of another kind is asked for a pass through the graph of what it is given.

    A tensor is given no more than a gradient before the option.
    """
    if not isinstance(call.func, cst.Attribute) or loss is not call.func.value:
        return False
    positional = [arg for arg in call.args if arg.keyword is None]
    has_more = kept.keyword is not None and len(positional) > 1
    return has_more or isinstance(context.value(loss), (Instance, Module))


def _without(call: cst.Call, kept: cst.Arg) -> NodeFix | None:
    edit = delete_argument(call, kept)
    return None if edit is None else NodeFix("leave out `retain_graph`", (edit,), Applicability.UNSAFE)
