"""## What it does

Finds training loops that step the optimizer only in every n-th round, or behind an inner loop, so that the gradients of
n batches add up, but clear the gradients in every round. Also where the test for every n-th round asks for the number
of a loop further out, `if epoch % n == 0`, though the loss of each batch is divided by n.

## Why is this bad?

What was accumulated is thrown away. Each step uses the gradient of the last batch alone; the work for the other n - 1
batches is lost, and where the loss is divided by n, the step is n times too small. Nothing is raised.

## Example

```python
import torch
from torch import nn

network = nn.Linear(3, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for number in range(100):
    optimizer.zero_grad()
    loss = network(torch.rand(8, 3)).square().mean() / 4
    loss.backward()
    if (number + 1) % 4 == 0:
        optimizer.step()
```

## Use instead

```python
import torch
from torch import nn

network = nn.Linear(3, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for number in range(100):
    loss = network(torch.rand(8, 3)).square().mean() / 4
    loss.backward()
    if (number + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## What it leaves alone

Loops in which gradients are cleared only in some rounds, or in which a step is also taken in the others; loops with
several optimizers that step under different tests, which may take turns; steps under a test that does not count rounds,
such as one for finite losses; `backward()` under the same test as the step; a test on the number of a loop further out
(`if epoch % 2`), unless the rounds divide the loss by the same number; rounds that an error may interrupt without
ending the loop; and loops that a trainer of another framework runs (Lightning, Accelerate, DeepSpeed and their like),
but for modules of Lightning that say `self.automatic_optimization = False`. Of inner loops also those that are left
early, that step themselves unless a setting decides between the two steps (`if together:`), and all in files that read
`grad`, for what is cleared may have been kept.

A test counts rounds if it holds `%` of something that is not the number of another loop, or compares what is added to
somewhere (`rounds += 1`); it may be a variable, an argument, or a function of the project. It may also send the other
rounds on, by `continue`, or by a `return` from the function that steps. Both may stand
under a setting, `if self.amp:`, that is the same in every round.

## Fix safety

Unsafe: the call is moved behind the step, and what the training does changes with that.

## References

- [PyTorch: gradient accumulation](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation)
- [paddle.optimizer.Optimizer.clear_grad](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/Optimizer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, delete_statement, insert_after
from mllint.rule import Finding, Rule
from mllint.semantic.events.steps import Event, events
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.training.gradient_rounds import step_counted_further_out, step_in_some_rounds
from mllint.syntax.shape import called_on

_FURTHER_OUT = "the test around the step counts the rounds of another loop: nothing adds up in this one"

rule = Rule(
    code="ML303",
    message="the gradients are cleared in every round, the step is taken in some: nothing adds up",
    help="clear the gradients after the step, under the same condition",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)


@rule.on_method("zero_grad", "clear_grad", "clear_gradients")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call that clears the gradients."""
    step = step_in_some_rounds(context.model, call)
    if step is not None:
        yield Finding(call, fix=lambda: _fix(call, step, context))
    elif step_counted_further_out(context.model, call) is not None:
        yield Finding(call, _FURTHER_OUT, "count the rounds of this loop, and clear the gradients after the step")


def _fix(call: cst.Call, step: Event, context: Context) -> NodeFix | None:
    """Move the statement behind the step."""
    node = context.model.runs.node_here(step)
    inside = events(step.loops[-1].body) if step.loops else ()
    if node is None or any(
        item.kind is step.kind and item is not step and item.concerns(step.thing) for item in inside
    ):
        return None  # the gradients would have to be cleared behind each of the steps
    statement, place = context.statement(call), context.statement(node)
    line = context.parent(statement)
    block = None if line is None else context.parent(line)
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(statement, cst.Expr) or len(line.body) != 1:
        return None
    if block is None or not isinstance(context.parent(place), cst.SimpleStatementLine):
        return None
    if context.function(place) != context.function(statement):
        return None
    if _is_of_each(call, place, context) or _is_of_each(node, statement, context):
        return None
    deleted = delete_statement(line, getattr(block, "body", ()))
    if deleted is None:
        return None
    text = context.text(statement)
    moved = insert_after(context.line_end(place), context.line_break(place) + text)
    return NodeFix(f"move `{text}` behind the step", (deleted, moved), Applicability.UNSAFE)


def _is_of_each(call: cst.CSTNode, place: cst.CSTNode, context: Context) -> bool:
    """Whether a loop that is not around another place gives what is called: ``for each in (first, second): ...``."""
    receiver = called_on(call)
    bindings = () if receiver is None else context.bindings(receiver)
    loops = (binding.node for binding in bindings if binding.kind is BindingKind.LOOP)
    return any(not context.model.tree.is_inside(place, loop) for loop in loops)
