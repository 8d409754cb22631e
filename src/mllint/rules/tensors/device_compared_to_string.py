"""## What it does

Finds comparisons of a tensor's device with a string: `x.device == "cuda"`, `x.device in ("cpu", "mps")`, and
`x.place == "cpu"` in Paddle.

## Why is this bad?

A `torch.device` and a Paddle place are objects that equal no string. `==` is always false and `!=` always true, on
every device, without an error: the branch for the GPU never runs, or always does.

## Example

```python
import torch

x = torch.rand(2, 3)
if x.device == "cuda":
    print("on the GPU")
```

## Use instead

```python
import torch

x = torch.rand(2, 3)
if x.device.type == "cuda":
    print("on the GPU")
```

## What it leaves alone

Everything that is not surely a device: `args.device == "cuda"` and `self.device == "cpu"` are strings in most programs,
and what is only declared as a `torch.device` is often given as a string. A thing of which nothing else is known has a
device where it is moved under its own name, `x = x.to("cpu")`.
`x.device.type` and `str(x.device)`, which are strings. Paddle's `x.device` and `paddle.get_device()`, which are strings
too.

## Fix safety

Safe where the string names a kind of device: `.type` is what was meant (in Paddle `.is_cpu_place()` and the like; two
places do not equal each other before 3.1). Unsafe for a string with an index, `"cuda:0"`, and for one that is not
literal: it becomes `torch.device(...)`, and `torch.device("cuda")` does not equal `torch.device("cuda:0")`. So no
fix is offered for a string beside `torch.device("cuda")`: the help says `torch.device(name).type == "cuda"`. Unsafe for
the test of `a if ... else b` as well: one of the two values has never been used, and may not suit.

## References

- [torch.device](https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device)
- [paddle.Tensor.place](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor_en.html)
"""

import re
from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeEdit, NodeFix, append_trailer, delete_before, insert_before, replace_between, wrap
from mllint.rule import Finding, Rule
from mllint.semantic.expressions.hints import is_moved_to_itself
from mllint.semantic.values import Object, Other, Text
from mllint.syntax.comparison import Comparand, comparands, may_compare_text
from mllint.syntax.shape import dotted_path, string_literal

rule = Rule(
    code="ML103",
    message="a device never equals a string",
    help="compare `.type` with the string",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_TYPES = frozenset({"cpu", "cuda", "mps", "xpu", "meta", "npu", "hpu", "mlu", "ipu", "xla", "mtia", "vulkan", "musa"})
_LIKE_DEVICE = re.compile(r"dev|gpu|cuda|place", re.IGNORECASE)
_MAX_DEPTH = 4
_PLACES = {"cpu": "is_cpu_place", "gpu": "is_gpu_place", "cuda": "is_gpu_place", "xpu": "is_xpu_place"}


@rule.on(cst.Comparison, mentions=("device", "place"), shape=may_compare_text)
def check(node: cst.Comparison, context: Context) -> Iterator[Finding]:
    """Report the comparison when a device stands on one side and nothing but strings on the other."""
    for pair in comparands(node):
        if _is_device(pair.operand, context) and all(_is_string(other, context) for other in pair.others):
            finding = _of_place if _is_place(pair.operand, context) else _of_device
            yield finding(node, pair, context)
            return


def _message(pair: Comparand) -> str:
    outcome = "true" if pair.is_negated else "false"
    return f"a device never equals a string: the comparison is always {outcome}"


def _of_device(node: cst.Comparison, pair: Comparand, context: Context) -> Finding:
    path = dotted_path(pair.operand) or context.text(pair.operand)
    message = _message(pair)
    if all(string_literal(other) in _TYPES for other in pair.others):
        fix = NodeFix("compare the type", append_trailer(pair.operand, ".type"), _trust(node, context))
        return Finding(node, message, f"compare `{path}.type` with it", None if pair.is_identity else lambda: fix)
    made, other = _made_of(pair.operand, context), context.text(pair.others[0])
    if made in _TYPES and not pair.is_membership:  # `cuda:0` equals no `cuda`
        sign = "!=" if pair.is_negated else "=="
        return Finding(node, message, f'write `torch.device({other}).type {sign} "{made}"`')
    help_ = f"compare with `torch.device(...)`, or `{path}.type` with the kind of device"
    help_ = help_ if made is None else f"write `torch.device({other})` for the string"
    is_other = pair.is_identity or pair.is_membership
    return Finding(node, message, help_, None if is_other else lambda: _device_fix(pair, context))


def _made_of(node: cst.BaseExpression, context: Context) -> str | None:
    """The text of which an expression makes a device right there: ``torch.device("cuda")``."""
    is_made = isinstance(node, cst.Call) and len(node.args) == 1 and context.library_name(node.func) == "torch.device"
    return string_literal(node.args[0].value) if is_made and isinstance(node, cst.Call) else None


def _of_place(node: cst.Comparison, pair: Comparand, context: Context) -> Finding:
    method = _PLACES.get(string_literal(pair.others[0]) or "")
    path = dotted_path(pair.operand) or ""
    return Finding(
        node,
        _message(pair),
        f"write `{path}.{method or 'is_gpu_place'}()`",
        fix=None
        if method is None or pair.is_membership
        else lambda: _place_fix(node, pair, method, _trust(node, context)),
    )


def _is_device(node: cst.BaseExpression, context: Context, depth: int = 0) -> bool:
    """Whether an expression is surely a device: of a tensor, or made by `torch.device`, not only declared as one.

    Most comparisons are about something else, so what a thing is asked only where it is spelled like a device.
    """
    if depth > _MAX_DEPTH:
        return False
    match node:
        case cst.Attribute(attr=cst.Name(value="device" | "place")) if context.value(node) == Other("device"):
            return True
        case cst.Attribute(attr=cst.Name(value="device")) if is_moved_to_itself(context.model, node.value):
            return True
        case cst.IfExp():
            return all(_is_device(part, context, depth + 1) for part in (node.body, node.orelse))
        case cst.Call():
            value = context.value(node) if _LIKE_DEVICE.search(dotted_path(node.func) or "") else None
            return value == Other("device") or (isinstance(value, Object) and value.name == "torch.device")
        case cst.Name() | cst.Attribute():
            bindings = context.bindings(node)
            if not bindings and _LIKE_DEVICE.search(dotted_path(node) or ""):
                value = context.value(node)
                return isinstance(value, Object) and value.name == "torch.device" and value.call is not None
            return bool(bindings) and all(
                item.value is not None and not item.path and _is_device(item.value, context, depth + 1)
                for item in bindings
            )
    return False


def _is_place(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the device is one of Paddle's."""
    if isinstance(node, cst.Attribute):
        return node.attr.value == "place"
    return context.model.framework == "paddle"


def _is_string(node: cst.BaseExpression, context: Context) -> bool:
    """Whether an expression is a string, whatever its callers think: a literal, or made on the spot."""
    value = context.value(node)
    return isinstance(value, Text) and (value.literal is not None or not isinstance(node, (cst.Name, cst.Attribute)))


def _trust(node: cst.Comparison, context: Context) -> Applicability:
    """Unsafe where the comparison chooses a value: nobody has ever seen the other one at work."""
    chosen = context.parent(node)
    return Applicability.UNSAFE if isinstance(chosen, cst.IfExp) and chosen.test is node else Applicability.SAFE


def _device_fix(pair: Comparand, context: Context) -> NodeFix:
    module, import_edit = context.need_import("torch")
    edits = wrap(pair.others[0], f"{module}.device(", ")")
    every = edits if import_edit is None else (*edits, import_edit)
    return NodeFix("compare with a device", every, Applicability.UNSAFE)


def _place_fix(node: cst.Comparison, pair: Comparand, method: str, trust: Applicability) -> NodeFix:
    edits: list[NodeEdit] = []
    if pair.operand is node.left:
        edits.append(replace_between(pair.operand, pair.others[0], f".{method}()"))
    else:
        edits += (delete_before(pair.others[0], pair.operand), *append_trailer(pair.operand, f".{method}()"))
    if pair.is_negated:
        edits.append(insert_before(node.left, "not "))
    return NodeFix(f"ask `{method}()`", tuple(edits), trust)
