"""## What it does

Finds Paddle's `optimizer.minimize(loss)` in dynamic mode where nobody has called `loss.backward()`.

## Why is this bad?

In a static graph `minimize` adds the computation of the gradients. In dynamic mode, the default since Paddle 2.0, it
only updates with the gradients that are there, as `step()` does: without `backward()` there are none, and no weight
moves. It returns two empty lists, and nothing is raised. `scaler.minimize(optimizer, scaled)` is the same.

## Example

```python
import paddle
from paddle import nn

network = nn.Linear(3, 1)
optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=network.parameters())
for _ in range(100):
    loss = network(paddle.rand([8, 3])).square().mean()
    optimizer.minimize(loss)
    optimizer.clear_grad()
```

## Use instead

```python
import paddle
from paddle import nn

network = nn.Linear(3, 1)
optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=network.parameters())
for _ in range(100):
    loss = network(paddle.rand([8, 3])).square().mean()
    loss.backward()
    optimizer.minimize(loss)
    optimizer.clear_grad()
```

## What it leaves alone

Static graphs: optimizers that are made without `parameters=` (which dynamic mode does not accept), and files that name
`enable_static`, `program_guard`, `Program` or `fluid`. Losses that come from somewhere else, such as an argument of a
function that nobody in sight calls, where `backward()` may have been called already; and whatever comes behind a call
that is given the loss or the optimizer and cannot be looked into. `minimize` of other libraries.

## Fix safety

Unsafe: with `backward()` the model begins to learn.

## References

- [paddle.optimizer.Optimizer.minimize](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/Optimizer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, insert_before
from mllint.rule import Finding, Rule
from mllint.semantic.training.never_computed import loss_without_backward
from mllint.syntax.shape import dotted_path

rule = Rule(
    code="ML319",
    message="`minimize` computes no gradients in dynamic mode: no weight is trained",
    help="call `backward()` of the loss before `minimize`",
    frameworks=frozenset({"paddle"}),
    since="0.1.0",
    applicability=Applicability.UNSAFE,
)


@rule.on_method("minimize")
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call that has nothing to go by."""
    loss = loss_without_backward(context.model, call)
    if loss is None:
        return
    path = dotted_path(loss)
    text = None if path is None else f"{path}.backward()"
    yield Finding(
        call,
        help=None if text is None else f"write `{text}` before it",
        fix=lambda: _fix(call, text, context),
    )


def _fix(call: cst.Call, text: str | None, context: Context) -> NodeFix | None:
    statement = context.statement(call)
    if text is None or not isinstance(context.parent(statement), cst.SimpleStatementLine):
        return None
    edit = insert_before(statement, text + context.line_break(statement))
    return NodeFix(f"insert `{text}`", (edit,), Applicability.UNSAFE)
