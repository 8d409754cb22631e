"""## What it does

Finds modules that are moved to the GPU and then called with a tensor that stays on the CPU: it was made there and not
moved, or moved by a statement that drops the result (`x.cuda()`), also for the first round of a loop only. The hidden
state of a recurrent network is such an input, and so is what attention looks at.

## Why is this bad?

`model.cuda()` moves the weights in place. A tensor is not changed by `x.cuda()`: the moved copy is what the call gives
back. The first layer with a weight raises "Expected all tensors to be on the same device". On a machine without GPU
everything works, so that the error comes late.

The rule is about PyTorch alone.

## Example

```python
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(3, 4).to(device)
images = torch.rand(8, 3)
output = model(images)
```

## Use instead

```python
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(3, 4).to(device)
images = torch.rand(8, 3).to(device)
output = model(images)
```

## What it leaves alone

Everything that does not stand in one function. Modules without weights, in `DataParallel`, or whose own code says a
word about devices; arguments of which it is not seen that they meet a weight, such as the lengths of sequences, which
belong on the CPU. Files that change the default device, or register hooks that see an input first. Batches of a loader,
unless the dataset is one of torchvision, or the function moves the batch in vain.

## Fix safety

No fix is offered: the tensor can be moved where it is made, or where it is used.

## References

- [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
- [torch.nn.Module.to](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.graph.devices import left_behind
from mllint.semantic.values import Elements
from mllint.syntax.shape import dotted_path

rule = Rule(
    code="ML107",
    message="the module is on the GPU, its input is on the CPU",
    help="move the input to the device of the module",
    frameworks=frozenset({"torch"}),
    since="0.1.0",
)


@rule.on_method("cuda", "to")
def check(move: cst.Call, context: Context) -> Iterator[Finding]:
    """Report every call of the module that is moved, which gives it a tensor on the CPU."""
    for found in left_behind(context.model, move):
        name = dotted_path(found.argument)
        assert isinstance(move.func, cst.Attribute)
        target = ", ".join(context.text(arg.value) for arg in move.args[:1])
        how = f"{move.func.attr.value}({target})"
        if name is None:
            yield Finding(
                found.call, f"`{found.module}` is on the GPU, its input on the CPU", f"append `.{how}` to the input"
            )
        else:
            message = f"`{found.module}` is on the GPU, its input `{name}` stays on the CPU"
            moved = f"{name}.{how}"
            if isinstance(context.value(found.argument), Elements):
                moved = f"tuple(state.{how} for state in {name})"
            yield Finding(found.call, message, f"write `{name} = {moved}` before")
