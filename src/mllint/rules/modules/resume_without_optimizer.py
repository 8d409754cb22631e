"""## What it does

Finds checkpoints with a model and an epoch, but without the optimizer, in files that resume training from them, also by
functions that another file calls, and
loads of checkpoints in which the state of the optimizer is, as the code beside them saves it, and is left there: the
same function loads the state of a scheduler or of another optimizer, or reads the epoch to go on from it, or to give it
back to a caller that goes on from it with the optimizer, or it is given the optimizer and does nothing with it. And
checkpoints with several networks and one of their optimizers, which is loaded back, but not the other, as that of the
discriminator beside that of the generator, and those of PyTorch with the optimizer, but without the scheduler, which
counts its steps from the beginning then (in Paddle its state is in that of the optimizer).

## Why is this bad?

Adam, RMSprop and SGD with momentum keep running averages of the gradients, and the scheduler's learning rate is in the
optimizer as well. When training is resumed with the weights alone, these begin anew: the loss jumps, the learning rate
is the first one again, and the run is another one than it would have been without the break.

## Example

```python
import torch
from torch import nn

model = nn.Linear(3, 4)
optimizer = torch.optim.Adam(model.parameters())
checkpoint = torch.load("checkpoint.pt")
model.load_state_dict(checkpoint["model"])
for epoch in range(checkpoint["epoch"] + 1, 100):
    optimizer.zero_grad()
    model(torch.rand(2, 3)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "epoch": epoch}, "checkpoint.pt")
```

## Use instead

```python
import torch
from torch import nn

model = nn.Linear(3, 4)
optimizer = torch.optim.Adam(model.parameters())
checkpoint = torch.load("checkpoint.pt")
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
for epoch in range(checkpoint["epoch"] + 1, 100):
    optimizer.zero_grad()
    model(torch.rand(2, 3)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "checkpoint.pt")
```

## What it leaves alone

Checkpoints from which nobody resumes: the file reads no epoch back, or only prints it. SGD without momentum, which
keeps nothing. Files that save or load the state of an optimizer anywhere, but in a subclass that saves in the place of
its base, and but for those that save one of several optimizers whose networks are all in the checkpoint, or save it and
mention its key nowhere else. Loads whose dict
somebody else gets as well, and files in which a comment says that the state is not loaded. Files that save or load all
of a training at once, by Accelerate's `save_state`. Optimizers that each epoch makes anew, or that are only made below
the place that saves, where the weights to begin with are kept. Schedulers that are told the epoch, by `last_epoch` or
in `step`, that are stepped at several places, made under a condition, or watch a metric. Checkpoints of which a part is
not known. Files that use what loads, and step optimizers only in functions whose names nobody says: they test.

## Fix safety

No fix is offered: the state has to be saved and loaded, at two places.

## References

- [Saving and loading a general checkpoint](https://docs.pytorch.org/tutorials/recipes/recipes/saving_and_loading_a_general_checkpoint.html)
- [paddle.optimizer.Optimizer.set_state_dict](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/optimizer/Optimizer_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.checkpoints import saving
from mllint.semantic.checkpoints.left_in_file import left_in_file
from mllint.semantic.checkpoints.resuming import lacks_optimizer, left_out, left_out_scheduler
from mllint.syntax.shape import called_on, dotted_path, last_word

rule = Rule(
    code="ML430",
    message="training is resumed from this checkpoint, which lacks the state of the optimizer",
    help='save `"optimizer": optimizer.state_dict()` too, and load it back',
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
)


@rule.on_method("load_state_dict", "set_state_dict")
def check_load(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call that loads a network of such a checkpoint."""
    left = left_in_file(context.model, call)
    if left is not None:
        written = f'{left.optimizer}.{last_word(call.func)}({context.text(left.holder)}["{left.key}"])'
        how = f"hand `{left.optimizer}` to the function, and load it" if left.is_of_caller else "load it here as well"
        message = f"training is resumed from this checkpoint, and nothing loads its `{left.key}`"
        yield Finding(call, message, f"{how}: `{written}`")


@rule.on(cst.Call, mentions=saving.WORDS, shape=saving.may_save)
def check(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report the call that saves such a checkpoint."""
    lacking = lacks_optimizer(context.model, call)
    if lacking is not None:
        home, made = lacking
        statement = home.tree.parent(made)
        path = dotted_path(statement.targets[0].target) if isinstance(statement, cst.Assign) else None
        stepped = [called_on(step) for step in home.calls_by_word.get("step", ())]
        name = path if path in [dotted_path(item) for item in stepped if item is not None] else "optimizer"
        yield Finding(call, help=f'save `"optimizer": {name}.state_dict()` too, and load it back')
    elif (path := left_out(context.model, call) or left_out_scheduler(context.model, call)) is not None:
        yield Finding(
            call,
            f"training is resumed from this checkpoint, which lacks the state of `{path}`",
            f"save `{path}.state_dict()` too, and load it back",
        )
