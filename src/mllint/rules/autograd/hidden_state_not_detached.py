"""## What it does

Finds training loops that hand the hidden state of a recurrent network from one iteration to the next without
`detach()`, and call `backward()` in every iteration. Also where the network, or a part of it, keeps the state itself:
`output, self.hidden = self.rnn(x, self.hidden)`.

## Why is this bad?

The hidden state hangs on the graph of the iteration that computed it, and through that on all earlier ones. The second
`backward()` walks into the graph of the first, which has been freed: "Trying to backward through the graph a second
time". `retain_graph=True` is no way out. In PyTorch the next error is that a weight "has been modified by an inplace
operation", by `optimizer.step()`; and every iteration takes longer than the one before.

What the text says is kept by `detach()`: the state goes on, its history is cut. That is called truncated
backpropagation through time.

## Example

```python
import torch
from torch import nn

network = nn.GRU(3, 4)
hidden = None
for _ in range(10):
    output, hidden = network(torch.rand(5, 2, 3), hidden)
    output.mean().backward()
```

## Use instead

```python
import torch
from torch import nn

network = nn.GRU(3, 4)
hidden = None
for _ in range(10):
    output, hidden = network(torch.rand(5, 2, 3), hidden)
    output.mean().backward()
    hidden = hidden.detach()
```

## What it leaves alone

States that the loop detaches, or begins anew on any path; states that are given to a function which may do so. Loops in
which `backward()` comes after the loop or only in some iterations. Modules of which it is not known that they hand the
state on, and those that keep it where something that the loop calls may begin it anew. `retain_graph=True` in Paddle,
and in PyTorch where the loop does not step the optimizer: all iterations are differentiated on purpose.

## Fix safety

Unsafe: the state is detached behind the `backward()` call. No gradient goes into earlier iterations then, which is what
nearly all code of this kind wants.

## References

- [PyTorch FAQ: My model reports "cuda runtime error(2): out of memory"](https://docs.pytorch.org/docs/stable/notes/faq.html)
- [torch.Tensor.detach](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, delete_argument, insert_line_after
from mllint.rule import Finding, Rule
from mllint.semantic.graph.hidden_state import Carried, carried_over
from mllint.semantic.graph.kept_state import kept_by_module
from mllint.semantic.graph.losses import retaining
from mllint.semantic.values import Tensor

rule = Rule(
    code="ML212",
    message="the hidden state brings the graph of earlier iterations along",
    help="detach the hidden state in every iteration",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)

_LONGEST_MESSAGE = 88


@rule.on_method("backward", "manual_backward")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call of the recurrent module, which is given the state as it is."""
    carried = carried_over(context.model, call) or kept_by_module(context.model, call)
    if carried is None:
        return
    names = "`, `".join(carried.names)
    verb = "keep" if len(carried.names) > 1 else "keeps"
    end = "their weights have changed" if carried.is_kept else "the second `backward()` raises"
    message = f"`{names}` {verb} the graph of earlier iterations: {end}"
    if len(message) > _LONGEST_MESSAGE:
        message = f"this state keeps the graph of earlier iterations: {end}"
    text = _detached(carried)
    yield Finding(
        carried.call,
        message,
        f"write `{text}` in every iteration" if text else f"detach `{names}` in every iteration",
        fix=lambda: _fix(call, text, context),
    )


def _detached(carried: Carried) -> str | None:
    """The statement that cuts the history of the state."""
    if carried.value is None:
        return None
    if isinstance(carried.value, Tensor):
        return f"{', '.join(carried.names)} = {', '.join(f'{name}.detach()' for name in carried.names)}"
    name = carried.names[0]
    return f"{name} = tuple(state.detach() for state in {name})" if len(carried.names) == 1 else None


def _fix(call: cst.Call, text: str | None, context: Context) -> NodeFix | None:
    statement = context.statement(call)
    line = context.parent(statement)
    if text is None or not isinstance(line, cst.SimpleStatementLine):
        return None
    detach = insert_line_after(line, text, context.line_break(statement))
    kept = retaining(context.model, call)
    needless = None if kept is None else delete_argument(call, kept)  # with the history cut nothing needs the graph
    edits = (detach,) if needless is None else (needless, detach)
    return NodeFix("detach the state", edits, Applicability.UNSAFE)
