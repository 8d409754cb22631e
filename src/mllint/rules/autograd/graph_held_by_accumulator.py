"""## What it does

Finds running totals and lists that keep tensors with their autograd graph from one iteration to the next: `total +=
loss`, `total += loss.mean()`, `totals[name] = totals.get(name, 0) + loss`, `losses.append(loss)`, `rows.append((step,
loss))`, `outputs = torch.cat((outputs, output))`, and `outputs.append(output)` after `output["loss"].backward()`, also
where the total begins with the first loss: `if i == 0: total = loss`. Objects of the project that collect what they are
given: `meter.update(loss)`, `meter(loss)`, `meter["loss"] = loss`. Totals that are tensors, and added to in place:
`sums.index_add_(0, groups, losses)`. And buffers of a module to which a forward pass or a training step adds something
with its graph: `self.running_mean.mul_(0.9).add_(0.1 * mean)`, `self.queue[:n] = features`; and attributes that begin
as `None` or a tensor, and that `forward` makes of themselves: `self.level = 0.9 * self.level + self.gate(x)`.

## Why is this bad?

A loss knows how it was computed. As long as somebody holds it, its graph stays in memory. After `loss.backward()` the
saved activations are gone and little is left: the nodes of the graph, one more set in every iteration, and what the
steps of the value itself saved, if it is no part of that loss. So it is with `net.rec_loss`, one of the terms that
`forward` gives back a sum of, behind a method that ran that `backward()`. Where none is called, in a validation loop,
every activation of every batch stays until the epoch ends: there the message says "the whole graph".

## Example

```python
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for _ in range(100):
    optimizer.zero_grad()
    loss = model(torch.rand(8, 3)).square().mean()
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
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for _ in range(100):
    optimizer.zero_grad()
    loss = model(torch.rand(8, 3)).square().mean()
    loss.backward()
    optimizer.step()
    total += loss.item()
print(total / 100)
```

## What it leaves alone

Totals that need their graph: those on which `backward()` is called, or from which something is computed on which it is.
Loops under `no_grad` or `inference_mode`, also where only the caller is, or the method that adds. Loops that neither
call `backward()` nor run over a data loader, unless they stand in a function that calls `eval()`, or that only prints
the total or a table of totals, as a script may: a sum of the losses of several heads is one loss. Sums over the
parameters of a model that begin right before the loop. Tests, whose few losses live no longer than they do. Totals that
the loop sets back with the gradients, where these are added up over several batches (`zero_grad()` under the same `if`,
or `accelerator.sync_gradients`), and what a handful of rounds adds: `for images in (real, fake)`, `range(rounds)` where
the calls in the file give five. What begins anew with each batch and gets no more than its spent losses: one of each
model in `for net, optimizer in zip(nets, optimizers)`. A list of a function that nobody reads, in a loop neither over a
data loader nor with a `backward()`. A list that is kept short: a `deque` of a length. What a test has told to be no
tensor, or the number zero, and what is made of an `item()` or `float()` and something unknown. Buffers of a module
without weights, which may be given data alone, and those that may be a state that is learned through: another method
begins them anew, or `forward` goes on with them; but not those that are brought up to date under `if self.training`, or
of modules that the project makes and of which nobody else names them. No buffers, and named or set by others. What a
criterion of unknown class gives beside the loss, and goes into no loss: a measure perhaps, `loss, hits = criterion(x)`.
Under `with set_grad_enabled(phase == "train"):` gradients count as on where a `backward()` stands in it, or behind it
under the same test, but for what another branch of that test holds.

A value that is called a loss counts as attached where it goes into what `backward()` is called on, even if nothing else
is known of it. So do a tensor that is one term of that sum, `kld` of `bce + beta * kld`, a sum with such a term, and
one that a function of the project gives back beside the sum, `loss, bce, kld = criterion(...)`; in a loop that trains,
what is called a loss among the things that a network gives with gradients on; the losses that a loop in the round goes
through, `for name, loss in losses.items()`, beside `sum(losses.values()).backward()`; what is appended to a list on
whose last item the same round calls `backward()`, for `losses[-1].backward()` needs none of the older ones; and what
also goes into a list of which the round spends the sum, `torch.stack(losses).mean()`.

## Fix safety

Safe: `.item()` where the total is a number before and is only used as one, also by those who get it from the function
or read it of the object, and by the functions of the project that they give it to, `.detach()` where it is used as a
tensor. `.detach()` keeps every bit of the total. `.item()` adds up in Python's own floats, which are more exact, so the
last digits may differ; and it waits for the GPU. None is offered where `backward()` is called on the list's last item,
for that has to be the loss; what a second collection takes out of the first is mended with the first. Unsafe for what a
function of the project gives back after its own `backward()`: it may be `None` on some way.

## References

- [PyTorch FAQ: My model reports "cuda runtime error(2): out of memory"](https://docs.pytorch.org/docs/stable/notes/faq.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, append_trailer, binds_trailers
from mllint.rule import Finding, Rule
from mllint.semantic.graph.accumulation import Accumulator
from mllint.semantic.graph.additions import METHODS, added_by_method, augmented, first_values, is_set_back, joined
from mllint.semantic.graph.held_graphs import holds_graph, is_second_hand, may_be_number, spent_entry
from mllint.semantic.graph.losses import retaining
from mllint.semantic.graph.meters import fed
from mllint.semantic.graph.spent_in_calls import is_spent_in_call
from mllint.semantic.graph.terms import is_summed
from mllint.semantic.modules.running_buffers import added_with_graph
from mllint.semantic.names.writes import updates_attribute
from mllint.semantic.values import Tensor
from mllint.syntax.shape import adds, detaches, feeds, joins

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
    yield from _finding(node, augmented(context.model, node), context)


@rule.on(cst.Assign, mentions=("cat", "stack"), shape=joins)
def check_joined(node: cst.Assign, context: Context) -> Iterator[Finding]:
    """Report ``outputs = torch.cat((outputs, output))``."""
    yield from _finding(node, joined(context.model, node), context)


@rule.on_method(*METHODS)
def check_method(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report ``losses.append(loss)`` and ``sums.index_add_(0, groups, losses)``."""
    yield from _finding(call, added_by_method(context.model, call), context)


@rule.on(cst.Expr, cst.Assign, shape=feeds)
def check_meter(statement: cst.Expr | cst.Assign, context: Context) -> Iterator[Finding]:
    """Report ``meter.update(loss)``, ``meter["loss"] = loss`` where a class of the project collects such things."""
    found = [item for meter in fed(context.model, statement) for item in _finding(meter.node, meter, context)]
    if len(found) > 1 and all(finding.fix is not None for finding in found):
        yield _together(found)
    else:
        yield from found[:1]


@rule.on(cst.Assign, cst.AugAssign, cst.Expr, shape=updates_attribute)
def check_state(statement: cst.Assign | cst.AugAssign | cst.Expr, context: Context) -> Iterator[Finding]:
    """Report what a forward pass adds with its graph to a buffer or a state of the module."""
    kept = added_with_graph(context.model, statement)
    total = None if kept is None or isinstance(statement, cst.Expr) else augmented(context.model, statement)
    if kept is None or (total is not None and holds_graph(total)):
        return
    # Where the result hangs on it, what this call adds may be learned through.
    help_ = f"detach `{kept.key}` before" if kept.is_read_on else "detach what is added, or add it under `no_grad()`"
    cut, trust = (kept.before, Applicability.UNSAFE) if kept.is_read_on else (kept.added, Applicability.SAFE)
    fix = None if cut is None else NodeFix("add `.detach()`", append_trailer(cut, ".detach()"), trust)
    message = f"`{kept.key}` keeps the graph nodes of every call alive"
    yield Finding(statement, message, help_, fix=None if fix is None else (lambda: fix))


def _together(found: list[Finding]) -> Finding:
    """One finding for all that a statement gives to a meter: what mends one alone would leave the others."""
    first = found[0]
    fixes = [fix for finding in found if finding.fix is not None and (fix := finding.fix()) is not None]
    helps = [str(finding.help) for finding in found]
    text = " and ".join((helps[0], *(item.removeprefix("write ") for item in helps[1:])))
    trust = max((fix.applicability for fix in fixes), key=lambda item: item is Applicability.UNSAFE)
    fix = NodeFix(fixes[0].message, tuple(edit for item in fixes for edit in item.edits), trust)
    return Finding(first.node, first.message, text, fix=lambda: fix)


def _finding(node: cst.CSTNode, accumulator: Accumulator | None, context: Context) -> Iterator[Finding]:
    if accumulator is None or not holds_graph(accumulator) or is_second_hand(accumulator):
        return
    value = context.value(accumulator.added)
    is_spent = accumulator.is_done_with or accumulator.hangs_on_spent or is_spent_in_call(accumulator)
    is_whole = accumulator.spent_last is not None and retaining(context.model, accumulator.spent_last)
    # In a loop that calls `backward()` on something else, that may have freed a part of it.
    other = "graph" if accumulator.trains and not is_whole else "whole graph"
    kept = "graph nodes" if is_spent and not is_whole else other
    turns = "many iterations" if is_set_back(accumulator) else "every iteration"
    message = f"`{accumulator.key}` keeps the {kept} of {turns if accumulator.is_in_loop else 'every call'} alive"
    is_one_number = isinstance(value, Tensor) and bool(value.scalar or value.one_element)
    as_number = is_one_number and accumulator.is_number
    method = "item" if as_number else "detach"
    part = accumulator.attached_part if as_number else accumulator.added
    bare = context.text(part).strip()
    bare = "..." if len(bare) > 80 or "\n" in bare else bare
    text = bare if bare == "..." or binds_trailers(part) else f"({bare})"
    # A function that trains may give back no loss at all where it did nothing.
    trust = Applicability.UNSAFE if accumulator.comes_back_spent else Applicability.SAFE
    if accumulator.spent_last is not None:  # it needs what is added as it is
        yield Finding(node, message, f"give the loss a name, call `backward()` on that, and append its `.{method}()`")
        return
    entry = None if isinstance(value, Tensor) else spent_entry(accumulator)
    if entry is not None:
        yield Finding(node, message, f"detach `{context.text(entry)}` before, or add what is needed of it")
        return
    if not isinstance(value, Tensor) and is_summed(accumulator):
        yield Finding(node, message, f"detach each loss in `{text}` before, or add what is needed of it")
        return
    first = [item.value for item in first_values(accumulator) if item.value is not None and not detaches(item.value)]
    edits = [edit for item in (part, *first) for edit in append_trailer(item, f".{method}()")]
    fix = NodeFix(f"add `.{method}()`", tuple(edits), trust)
    is_tensor = all(isinstance(item, Tensor) and not item.or_number for item in (value, *map(context.value, first)))
    written = f"`{text}.{method}()`"
    if not is_tensor and any(may_be_number(context.model, item) for item in (part, *first)):  # which has neither method
        written = f"`float({bare})`" if as_number else f"{written} where it is no number"
    help_ = f"write {written}" + (", also where it begins" if first else "")
    yield Finding(node, message, help_, fix=(lambda: fix) if is_tensor else None)
