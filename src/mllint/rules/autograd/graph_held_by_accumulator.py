"""## What it does

Finds running totals and lists that keep tensors with their autograd graph from one iteration to the next:
`total += loss`, `losses.append(loss)`.

## Why is this bad?

A loss knows how it was computed. As long as somebody holds it, its graph stays in memory. After `loss.backward()` the
saved activations are gone and little is left: the nodes of the graph, one more set in every iteration. Where no
`backward()` is called, in a validation loop, every activation of every batch stays until the epoch ends.

## Example

```python
import torch
from torch import nn

model = nn.Linear(3, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for _ in range(100):
    optimizer.zero_grad()
    loss = criterion(model(torch.rand(8, 3)), torch.rand(8, 1))
    loss.backward()
    optimizer.step()
    total += loss
print(total / 100)
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(3, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for _ in range(100):
    optimizer.zero_grad()
    loss = criterion(model(torch.rand(8, 3)), torch.rand(8, 1))
    loss.backward()
    optimizer.step()
    total += loss.item()
print(total / 100)
```

## What it leaves alone

Totals that need their graph: those on which `backward()` is called, or from which something is computed on which it
is. Loops under `no_grad` or `inference_mode`, also where only the caller is. Loops that neither call `backward()` nor
run over a data loader, unless they stand in a function that calls `eval()` or only prints the total: a sum of the
losses of several heads is one loss. Tests, whose few losses live no longer than they do.

A value that is called a loss counts as attached where it goes into what `backward()` is called on, even if nothing else
is known of it.

## Fix safety

Safe: `.item()` where the total is a number before and is only used as one, `.detach()` where it is used as a tensor.
`.detach()` keeps every bit of the total. `.item()` adds up in Python's own floats from then on, which are more exact
than the tensor's, so the last digits may differ; and it waits for the GPU: use `.detach()` where that matters.
Unsafe for what a function of the project gives back after its own `backward()`: it may be `None` on some way.

## References

- [PyTorch FAQ: My model reports "cuda runtime error(2): out of memory"](https://docs.pytorch.org/docs/stable/notes/faq.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, append_trailer, binds_trailers
from mllint.rule import Finding, Rule
from mllint.semantic.accumulation import Accumulator, appended, augmented
from mllint.semantic.hints import is_called_loss
from mllint.semantic.meters import fed
from mllint.semantic.testing import is_test_code
from mllint.semantic.values import Output, Tensor, Value
from mllint.syntax.shape import adds

rule = Rule(
    code="ML201",
    message="a total that outlives the iteration keeps the graph of every loss",
    help="add `loss.item()` or `loss.detach()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)


@rule.on(cst.AugAssign, cst.Assign, shape=adds)
def check_total(node: cst.AugAssign | cst.Assign, context: Context) -> Iterator[Finding]:
    """Report ``total += loss`` and ``total = total + loss``."""
    accumulator = augmented(context.model, node)
    if accumulator is not None:
        yield from _finding(node, accumulator, context)


@rule.on_method("append")
def check_list(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report ``losses.append(loss)``."""
    accumulator = appended(context.model, call)
    if accumulator is not None:
        yield from _finding(call, accumulator, context)


@rule.on_method("update", "add", "push", "record", "accumulate", "log", "put")
def check_meter(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report ``meter.update(loss)`` where the project's own class adds up what it is given."""
    meter = fed(context.model, call)
    if meter is not None:
        yield from _finding(call, meter, context)


def _finding(node: cst.CSTNode, accumulator: Accumulator, context: Context) -> Iterator[Finding]:
    value = context.value(accumulator.added)
    if not _keeps_graph(value, accumulator, context) or accumulator.needs_graph or is_test_code(context.model):
        return
    kept = "graph nodes" if accumulator.is_done_with else "whole graph"
    turn = "iteration" if accumulator.is_in_loop else "call"
    message = f"`{accumulator.key}` keeps the {kept} of every {turn} alive"
    as_number = accumulator.is_number and isinstance(value, Tensor) and bool(value.scalar or value.one_element)
    method = "item" if as_number else "detach"
    part = accumulator.attached_part if as_number else accumulator.added
    text = context.text(part).strip()
    text = "..." if len(text) > 80 or "\n" in text else text if binds_trailers(part) else f"({text})"
    # A function that trains may give back no loss at all where it did nothing.
    trust = Applicability.UNSAFE if accumulator.comes_back_spent else Applicability.SAFE
    fix = NodeFix(f"add `.{method}()`", append_trailer(part, f".{method}()"), trust)
    yield Finding(node, message, f"write `{text}.{method}()`", fix=(lambda: fix) if isinstance(value, Tensor) else None)


def _keeps_graph(value: Value | None, accumulator: Accumulator, context: Context) -> bool:
    """Whether what is added surely hangs on a graph, and the loop shows that nobody makes a loss of the collection."""
    if not isinstance(value, (Tensor, Output)) or value.attached is not True:
        return _is_spent_loss(value, accumulator, context)
    if accumulator.is_done_with or accumulator.runs_over_loader:
        return True
    if isinstance(value, Output) or not accumulator.is_in_loop:
        return False  # of what a module of unknown class gives, a part may hang on no graph
    if accumulator.trains or accumulator.is_only_reported:
        return True
    return bool(value.scalar or value.one_element) and accumulator.evaluates


def _is_spent_loss(value: Value | None, accumulator: Accumulator, context: Context) -> bool:
    """Whether it is called a loss, nothing else is known of it, and it goes into what ``backward()`` is called on."""
    is_unknown = value is None or (isinstance(value, (Tensor, Output)) and value.attached is None)
    return (
        is_unknown
        and is_called_loss(accumulator.core)
        and context.gradients_off(accumulator.node) is False
        and accumulator.is_done_with
        and not accumulator.may_be_cut
    )
