"""## What it does

Finds statements that compute a new tensor and throw it away: `x.cuda()`, `x.to(device)`, `x.masked_fill(mask, value)`,
`torch.clamp(x, 0, 1)`, and the same for wrappers that return a new module, such as `torch.compile(model)`, for what
`torch.load(path)` reads, and for the new module that `load_from_checkpoint(path)` of a module of Lightning gives. So is
`torch.autograd.grad(loss, net.parameters())` in a function that takes a step of an optimizer.

## Why is this bad?

Methods of a *module* such as `model.cuda()` change the module. The methods of a *tensor* with the same names return a
new tensor and leave the old one as it was. Without an assignment nothing happens: the mask never masks, the values are
never clamped, and the tensor stays on the CPU until an operation with one on the GPU fails. A model that was read and
thrown away leaves the one with random weights to be evaluated. So does `model.load_from_checkpoint(path)`, a method of
the class that makes another `model`; Lightning 2.6 raises a `TypeError` when it is called on a model. And
`autograd.grad` only gives the gradients back: the `grad` of the parameters, which `step()` reads, stays `None`.

## Example

```python
import torch

images = torch.rand(4, 3)
images.to("cuda")
```

## Use instead

```python
import torch

images = torch.rand(4, 3)
images = images.to("cuda")
```

## What it leaves alone

Modules, optimizers, and everything that is not known to be a tensor, unless the method exists on tensors alone
(`masked_fill`, `unsqueeze`), or what `to()`, `cuda()` or `detach()` is called on is computed with as nothing but a
tensor is, `(predicted == labels).sum()`, `x.gt(0)`, or read as one, `x.data.numpy()`, `x.shape[0]`, or was cut out by a
method of arrays and tensors, `x = y.squeeze(1)`, or it is given another shape by its own (`x.view(x.shape[0], -1)`) or
by numbers, as arrays are, too (`x.squeeze(0)`), or `detach()` is called on what a network gives, in a project without a
`detach()` of its own. Calls with `out=` or `inplace=True`. `x.to(device)` where `x` was made on that `device`, is there
by `x = x.to(device)`, was made by a module that was moved there, is a copy of what was moved there on the same
condition, comes to the CPU as it is from a loader, or comes from a function of the project that ends with a move to the
same; nor where `x` is given to nothing but an `nn.DataParallel`, which copies it to its devices, to `copy_()`, or as an
index, which may be on the CPU. The parameters of a module that its own method moves: they go where the module goes.
`x.reshape(2, -1)` where all that reads `x` below has it shaped anew, also what is made of it number by number
(`one_hot(x, n).view(-1, n)`), takes out what has one row only, or asks whether it is close to another; `x.expand_as(y)`
of what is only computed with `y`, and `x.expand(size)` of what is for nothing but to change other tensors, `y[mask] +=
x`, which keep their shape; `torch.as_tensor(x)` of a part of a batch that the code uses as a tensor; `x.view(x.shape)`;
`x.float()` and `x.to(y.dtype)` of what was made of such numbers. `x.detach()` of what was computed under `no_grad()`,
or gets a gradient of its own below, as only a leaf does; `loss.detach()` behind `loss.backward()`, where nothing but
its number is read below. Batches that a loop over a loader does nothing else with: they are there for the time they
take. Losses of numbers that are drawn in the same statement. Tensors that are made in the same statement
(`torch.zeros(1).cuda()` starts CUDA; `torch.from_numpy(np.zeros(3))` starts nothing), but for another shape of what a
function of the project gives back, which nobody needs for what else that does. Parts of a batch of which the code reads
what no tensor has: a graph, with its `ndata`. Parameters that are declared as something of another library. What a
method of another kind gives, which may be called for what else it does: `self.act(x).long()`. Statements that are
timed, between two readings of the clock, right before `synchronize()` or in a file called a benchmark, where only what
moves a tensor is reported, or there to raise: under `pytest.raises`, alone in a `try`, to read a file that can be read
(also below `with open(...)` or an `if` in a `try` that goes on with nothing but to say so, to set a flag or to give
back a constant), or the same call as one there, in a test also in an `if` there, a module that a test compiles with
`torch.jit.script`, a function that is the last a test calls, or what stands below `if __name__ == "__main__":`, a call
that is written once more below, or for the same attribute in another method of the class, where its result is used.
Notes as they are typed into a console: `x.mean(0)` beside `x.size()` and `x[0]`, which only show something, and scripts
that drop one example after the other; a move is none of these.

What a tokenizer or processor gives that is told `return_tensors="pt"` (`"pd"` in Paddle) is a dict of tensors, which
has a `to()` of its own that works in place; its entries have none.

A thing that is a tensor on one of the ways that lead to the statement is reported, unless on another it is known to be
something that such a method changes: a module, for `sort()` a list. (An `embedding: Tensor | None = None` that was made
by another library where it is `None` is one.)

On Paddle before 3.0 `x.to(...)` changes the tensor itself, so it is left alone for such a target version.

## Fix safety

Safe for what moves a tensor or converts its type, and for a wrapper of a model: `x = x.cuda()` is all that the
statement can have been written for, and the numbers stay. So it is for a plain name of this function or module that is
not the variable of a loop over a list (there the assignment would be lost too), and for an attribute that is surely a
plain tensor: a tensor cannot be assigned to a registered parameter. Unsafe for what computes other numbers
(`masked_fill()`, `clamp()`, `relu()`, quantization): the code has run without, weights were perhaps trained without,
and where the statement itself is wrong, a mask the wrong way round, nobody has seen it yet. Unsafe for `detach()`,
because code below may rely on the graph that is still there, for another shape (`unsqueeze()`, `permute()`, pooling),
or another type or device on the way (`x.cpu().clamp(0, 1)`), because the code below has run with the one there is, for
`x.type(torch.FloatTensor)`, which takes the tensor to the CPU as well, for a thing that is a tensor on one of several
ways only, for a leaf that needs a gradient (the name would be bound to another tensor, which no optimizer knows), where
gradients are switched off but the tensor has a graph, and where another thing beside it, which may be no tensor, stays
where it is. No fix is offered where nothing reads the name below: the caller's tensor was to be changed, and another
name for it changes nothing.

## References

- [torch.Tensor](https://docs.pytorch.org/docs/stable/tensors.html)
- [torch.nn.Module.to](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to)
- [LightningModule.load_from_checkpoint](https://lightning.ai/docs/pytorch/stable/common/lightning_module.html#load-from-checkpoint)
- [paddle.Tensor](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, assign_result
from mllint.rule import Finding, Rule
from mllint.semantic.graph.discarded import Discarded, discarded
from mllint.syntax.shape import discarded_calls, may_discard

rule = Rule(
    code="ML101",
    message="the result of this tensor operation is discarded",
    help="assign the result",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_LONGEST = 100
"""How long a statement is shown in full."""


@rule.on(cst.Expr, shape=may_discard)
def check(statement: cst.Expr, context: Context) -> Iterator[Finding]:
    """Report the calls whose results a statement throws away."""
    for call in discarded_calls(statement.value):
        lost = discarded(context.model, statement, call, context.paddle_version)
        if lost is not None:
            yield _finding(statement, call, lost, context)


def _finding(statement: cst.Expr, call: cst.Call, lost: Discarded, context: Context) -> Finding:
    operand, written = context.text(lost.operand).strip(), context.text(call)
    message = f"the result of `{lost.what}` is discarded"
    if lost.is_gradient:
        return Finding(call, message, "call `backward()`: it fills the `grad` of the parameters that the step reads")
    if not lost.is_meant:
        return Finding(call, message, "assign the result to a name of its own and use that")
    if "\n" in written or len(operand) + len(written) > _LONGEST:
        written = f"{context.text(call.func)}(...)"
    trust = Applicability.SAFE if lost.keeps_numbers else Applicability.UNSAFE
    fix = NodeFix("assign the result", (assign_result(statement, operand),), trust)
    is_whole = statement.value is call and isinstance(lost.operand, (cst.Name, cst.Attribute))
    return Finding(call, message, f"write `{operand} = {written}`", (lambda: fix) if is_whole else None)
