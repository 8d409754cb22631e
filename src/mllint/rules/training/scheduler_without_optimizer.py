"""## What it does

Finds learning-rate schedulers of Paddle that are stepped, and that no optimizer was ever given.

## Why is this bad?

A scheduler of PyTorch is given its optimizer, `StepLR(optimizer, 10)`. One of Paddle only works out a number; the
optimizer has to be given the scheduler, as its `learning_rate`, or by `set_lr_scheduler`. Where it has a number of its
own, or one that was asked of it, `learning_rate=optimizer.get_lr()`, it keeps that for the whole training, and
`scheduler.step()` changes what nobody reads. Nothing is reported. It happens where code was taken over from PyTorch.

## Example

```python
import paddle
from paddle import nn

model = nn.Linear(4, 2)
optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=model.parameters())
scheduler = paddle.optimizer.lr.StepDecay(learning_rate=optimizer.get_lr(), step_size=10)

for epoch in range(30):
    model(paddle.randn([8, 4])).mean().backward()
    optimizer.step()
    optimizer.clear_grad()
    scheduler.step()
```

## Use instead

```python
import paddle
from paddle import nn

model = nn.Linear(4, 2)
scheduler = paddle.optimizer.lr.StepDecay(learning_rate=0.1, step_size=10)
optimizer = paddle.optimizer.SGD(learning_rate=scheduler, parameters=model.parameters())

for epoch in range(30):
    model(paddle.randn([8, 4])).mean().backward()
    optimizer.step()
    optimizer.clear_grad()
    scheduler.step()
```

## What it leaves alone

Schedulers that anything else gets hold of: a call, a list, another name, an attribute that other code may read. Those
whose rate is read where anything sets rates by hand, `optimizer.set_lr(scheduler.get_lr())`. Files that train nothing,
in which somebody looks at what a schedule gives, and tests.

## Fix safety

No fix is offered: the optimizer is made before the scheduler, or by somebody else.

## References

- [paddle.optimizer.lr.LRScheduler](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/lr/LRScheduler_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.training.schedulers_of_none import schedulers_of_none

rule = Rule(
    code="ML325",
    message="no optimizer was given this scheduler: its steps change no learning rate",
    help="give it to the optimizer, as its `learning_rate`",
    frameworks=frozenset({"paddle"}),
    since="0.1.0",
)


@rule.on(cst.Module, mentions=("step",))
def check(_: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the calls that make such schedulers."""
    for call in schedulers_of_none(context.model):
        yield Finding(call)
