"""## What it does

Finds gradient flags that are set where no parameter sees them: on a module (`model.backbone.requires_grad = False`,
`layer.stop_gradient = True`), on `parameter.data`, on the values of `state_dict()`, on the pairs of
`named_parameters()`, on all that `parameters()` gives at once, or on the tensor that a parameter is made of:
`Parameter(torch.zeros(3, requires_grad=False))`; also on a tensor of PyTorch that is computed of what has gradients,
which is refused. And what PyTorch's `state_dict()` gives is asked for what only
parameters have: `if value.requires_grad`, `value.grad is not None`. And flags that a caller switches on or off, but
that are set where they are on alone, `if p.requires_grad: p.requires_grad = wanted`: nothing thaws what is frozen.

## Why is this bad?

Only parameters have such a flag. On a module the assignment makes a new attribute that nobody reads, and `.data` and
`state_dict()` give new tensors whose flags the parameters do not share. Everything goes on training, without an error.
(A pair of name and parameter takes no attribute, and raises; so does what `parameters()` gives.) `Parameter` has a flag
of its own, which is set unless it is told otherwise. For the same reason `requires_grad` of all that `state_dict()`
gives is `False`, and `grad` is `None`: a filter by it takes nothing, or everything.
`model.requires_grad_ = False` even destroys the method of that name, and `parameter.requires_grad_ = False` as well.

In Paddle `layer.stop_gradient`, `layer.trainable` and `layer.requires_grad` do nothing in any version. Before 3.2
no tensor has a `requires_grad`: to set it does nothing to a parameter, nor to another tensor in 3.0 and 3.1; in 2.6
that one raises.

## Example

```python
from torch import nn

model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
model[0].requires_grad = False
```

## Use instead

```python
from torch import nn

model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
model[0].requires_grad_(False)
```

## What it leaves alone

Parameters and other tensors, whose flag does work: `self.pos_embed.requires_grad = False`. (What is called somewhere,
what `children()` gives, of what somebody calls `eval()` or `parameters()`, also a function in sight that it is given
to, and what calls in sight give a function as a module, is one, even where nothing else is known of it.) Modules that
surely have no weights: there is nothing to freeze. Classes that define such a property, read the attribute themselves
or keep an option in it, `self.requires_grad = requires_grad`. The values of `state_dict()` in Paddle, which are the
parameters, and in PyTorch where the file says `keep_vars`, or sets their flag or gradient itself. `requires_grad` of a
tensor in Paddle, unless the project allows a version below 3.2, and where the file picks by it what it trains.

## Fix safety

Safe: the flag is set on the parameters, by `requires_grad_` in PyTorch and by a loop in Paddle. Unsafe on `self`, where
layers that are made further down would not be frozen, and where all parameters of what is frozen are given to somebody
to train: PyTorch raises when none of them is left. Unsafe in Paddle where it may thaw a layer (its `parameters()` hold
the running statistics of batch normalization, too), and on what is no parameter: a tensor that has a gradient from then
on cannot be changed in place. No fix is offered for the values of `state_dict()`, for pairs, and for `parameters()`.

## References

- [torch.nn.Module.requires_grad_](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.requires_grad_)
- [paddle.Tensor.stop_gradient](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import (
    NodeFix,
    assign_opposite,
    call_instead_of_assigning,
    delete_argument,
    insert_after,
    insert_before,
    is_in_parentheses,
    replace_between,
)
from mllint.rule import Finding, Rule
from mllint.semantic.graph import flags, one_way_flags
from mllint.semantic.graph.state_flags import ALWAYS, FLAGS, flags_of_state
from mllint.semantic.modules.weights import surely_has_none
from mllint.semantic.values import Tensor
from mllint.syntax.shape import argument, constant, dotted_path

rule = Rule(
    code="ML202",
    message="this freezes nothing: the flag belongs to the parameters",
    help="set the flag on every parameter",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_ALL_FLAGS = frozenset().union(*FLAGS.values())


@rule.on(cst.Assign, mentions=tuple(sorted(_ALL_FLAGS)))
def check(statement: cst.Assign, context: Context) -> Iterator[Finding]:
    """Report every target that is such a flag on something that has none."""
    for item in statement.targets:
        target = item.target
        if isinstance(target, cst.Attribute) and target.attr.value in _ALL_FLAGS:
            only = len(statement.targets) == 1 and not is_in_parentheses(target)
            yield from _check(statement, target, only, context)


@rule.on_call("torch.nn.Parameter")
def check_lost(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report a parameter of a tensor that is made with the flag off."""
    if (made := flags.call_with_lost_flag(context.model, call)) is not None:
        message = "`Parameter` does not ask its tensor for the flag: it is trained"
        yield Finding(call, message, "write `Parameter(..., requires_grad=False)`", fix=lambda: _outside(call, made))


@rule.on(cst.Module, mentions=("state_dict",))
def check_asked(_: cst.Module, context: Context) -> Iterator[Finding]:
    """Report the attributes of parameters that are read of the values of a state dict."""
    for asked in flags_of_state(context.model):
        yield Finding(asked, ALWAYS[asked.attr.value], "ask the parameters themselves: `model.named_parameters()`")


def _outside(call: cst.Call, made: cst.Call) -> NodeFix | None:
    """Give the flag to the parameter: it is not trained from then on."""
    inside = None if (flag := argument(made, None, "requires_grad")) is None else delete_argument(made, flag)
    edits = () if inside is None else (inside, insert_after(call.args[0].value, ", requires_grad=False"))
    return NodeFix("give the flag to the parameter", edits, Applicability.UNSAFE) if edits else None


def _check(statement: cst.Assign, target: cst.Attribute, only: bool, context: Context) -> Iterator[Finding]:
    flag, owner = target.attr.value, target.value
    is_old = context.paddle_version is not None and context.paddle_version < (3, 2)
    if (module := flags.flagged_module(context.model, owner)) is not None:
        is_option = dotted_path(owner) == "self" and not isinstance(constant(statement.value), bool)
        is_used = flag != "requires_grad_" and (is_option or flags.is_own_field(context.model, target, module))
        if flag in FLAGS[module.framework] and not is_used and not surely_has_none(context.model, owner):
            yield from _on_module(statement, target, module.framework, only, context)
        return
    if flag == "requires_grad_" and flags.is_wanted_of_tensor(context.model, owner, statement.value):
        yield from _on_module(statement, target, "torch", only, context)
        return
    whole = owner.value if isinstance(owner, cst.Attribute) and owner.attr.value == "data" else None
    if whole is not None and flag == "requires_grad" and flags.is_parameter(context.model, whole):
        fix = NodeFix("leave out `.data`", (replace_between(whole, owner, ""),))
        message = "`.data` gives a new tensor: the flag of the parameter does not change"
        yield Finding(target, message, "leave out `.data`", fix=lambda: fix)
    elif flag == "requires_grad" and constant(statement.value) is False and flags.is_state_value(context.model, owner):
        message = "`state_dict()` gives new tensors: the flags of the parameters do not change"
        yield Finding(target, message, "write `for parameter in model.parameters()`")
    elif flag in FLAGS.get(context.model.framework or "", ()) and flags.is_named_parameter(context.model, owner):
        message = "`named_parameters()` gives pairs of name and parameter: setting a flag of a pair raises"
        yield Finding(target, message, "write `.parameters()`, or take the pair apart")
    elif flag in FLAGS.get(context.model.framework or "", ()) and flags.is_all_parameters(context.model, owner):
        message = "`parameters()` gives all of them: setting a flag of that raises"
        yield Finding(target, message, f"write `for parameter in {context.short_text(owner)}: ...`")
    elif flag == "requires_grad" and flags.is_refused(context.model, owner, statement):
        yield Finding(target, "only leaves let their flag be changed: this raises", "take what `.detach()` gives")
    elif flag == "requires_grad" and is_old and flags.is_meant_for_paddle(context.model, owner, statement):
        other = (lambda: _other_flag(statement, target, context)) if only else None
        message = "a tensor of Paddle has no `requires_grad` before 3.2: its flag does not change"
        yield Finding(target, message, "set `stop_gradient`, which means the opposite", fix=other)
    elif one_way_flags.only_freezes(context.model, target, statement.value):
        yield Finding(target, "what is frozen stays so: the test asks for the flag itself", "leave the test out")


def _other_flag(statement: cst.Assign, target: cst.Attribute, context: Context) -> NodeFix:
    """Set the flag that all versions of Paddle have. A tensor that gets a gradient by it cannot be changed in place."""
    value = context.value(target.value)
    trust = Applicability.SAFE if isinstance(value, Tensor) and value.parameter else Applicability.UNSAFE
    return NodeFix("set `stop_gradient`", assign_opposite(statement, target, "stop_gradient"), trust)


def _on_module(
    statement: cst.Assign, target: cst.Attribute, framework: str, only: bool, context: Context
) -> Iterator[Finding]:
    flag, owner = target.attr.value, dotted_path(target.value) or context.short_text(target.value)
    message = f"`{flag}` is set on a module: the flags of its parameters do not change"
    if flag == "requires_grad_":
        message = "`requires_grad_` is overwritten instead of called: no flag changes"
    value, is_flipped = constant(statement.value), framework != "torch" and flag != "stop_gradient"
    shown = value is not is_flipped if isinstance(value, bool) else "..."
    if framework == "torch":
        edits = call_instead_of_assigning(statement, target, "requires_grad_")
        fix = NodeFix("call `requires_grad_`", edits, _trust(target, context)) if only else None
        yield Finding(target, message, f"write `{owner}.requires_grad_({shown})`", fix=lambda: fix)
    else:
        advice = f"write `for parameter in {owner}.parameters(): parameter.stop_gradient = {shown}`"
        yield Finding(target, message, advice, fix=(lambda: _loop(statement, target, context)) if only else None)


def _loop(statement: cst.Assign, target: cst.Attribute, context: Context) -> NodeFix | None:
    """Set the flag on every parameter of a layer of Paddle: also on the statistics of batch normalization."""
    line = context.parent(statement)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1:
        return None
    name = "parameter" if "parameter" not in context.model.names_by_word else "each_parameter"
    gap = context.line_break(statement) + context.model.tree.module.default_indent
    edits = [insert_before(target.value, f"for {name} in "), insert_after(target.value, f".parameters():{gap}{name}")]
    if target.attr.value == "requires_grad":
        edits += assign_opposite(statement, target, "stop_gradient")
    freezes = constant(statement.value) is (target.attr.value == "stop_gradient")
    trust = _trust(target, context) if freezes else Applicability.UNSAFE
    return NodeFix("set the flag on every parameter", tuple(edits), trust)


def _trust(target: cst.Attribute, context: Context) -> Applicability:
    """How far setting the flags of all parameters may be trusted: an optimizer may be left without any."""
    is_unsafe = dotted_path(target.value) == "self" or flags.is_trained_whole(context.model, target)
    return Applicability.UNSAFE if is_unsafe else Applicability.SAFE
