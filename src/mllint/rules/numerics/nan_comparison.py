"""## What it does

Finds comparisons with NaN: `==`, `!=`, `is` and `in` with `float("nan")`, `math.nan`, `np.nan`, `torch.nan` or
`paddle.nan` on either side.

## Why is this bad?

NaN equals nothing, itself included. `x == nan` is always false and `x != nan` always true, for numbers, arrays and
tensors alike, so the check never finds what it looks for. `x is nan` asks whether `x` is that one object: what comes
out of a computation never is. `x in [nan]` asks both, and finds at most that very object.

## Example

```python
import torch

loss = torch.ones(3).mean()
if loss == float("nan"):
    raise ValueError("the loss is NaN")
```

## Use instead

```python
import torch

loss = torch.ones(3).mean()
if torch.isnan(loss):
    raise ValueError("the loss is NaN")
```

## What it leaves alone

`x != x`, which is a right (if terse) test for NaN. `x is np.nan` where `x` is a parameter whose default is that very
object: there the identity is the point.

## Fix safety

Safe where the operand is known: a tensor gets its framework's `isnan`, an array `np.isnan`, a number `math.isnan`;
`!=` becomes `~` or `not` in front of it. Unsafe where it is not known: then the function follows the constant that was
written, and that function may not take what the operand turns out to be.

## References

- [torch.isnan](https://docs.pytorch.org/docs/stable/generated/torch.isnan.html)
- [paddle.isnan](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/isnan_en.html)
- [math.isnan](https://docs.python.org/3/library/math.html#math.isnan)
"""

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeEdit, NodeFix, delete_before, insert_after, insert_before, replace_between
from mllint.rule import Finding, Rule
from mllint.semantic.scopes import BindingKind
from mllint.semantic.values import Array, Number, Tensor
from mllint.syntax.shape import string_literal

rule = Rule(
    code="ML501",
    message="comparison with NaN is always false",
    help="use `isnan`",
    frameworks=frozenset({"torch", "paddle", "numpy"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_CONSTANTS = {
    "math.nan": "math",
    "numpy.nan": "numpy",
    "numpy.NaN": "numpy",
    "numpy.NAN": "numpy",
    "torch.nan": "torch",
    "paddle.nan": "paddle",
}
_EQUALITY = (cst.Equal, cst.NotEqual)
_IDENTITY = (cst.Is, cst.IsNot)
_MEMBERSHIP = (cst.In, cst.NotIn)
_NEGATED = (cst.NotEqual, cst.IsNot, cst.NotIn)


@rule.on(cst.Comparison, mentions=("nan", "NaN", "NAN", "Nan", "NAn"))
def check(node: cst.Comparison, context: Context) -> Iterator[Finding]:
    """Report the comparison when a NaN stands on either side of one of its operators."""
    left = node.left
    for part in node.comparisons:
        right = part.comparator
        if isinstance(part.operator, _EQUALITY + _IDENTITY):
            for operand, other in ((left, right), (right, left)):
                library = _nan_library(other, context)
                if library is not None and not (
                    isinstance(part.operator, _IDENTITY) and _defaults_to_nan(operand, context)
                ):
                    yield _finding(node, part.operator, operand, other, library, context)
                    return
        elif isinstance(part.operator, _MEMBERSHIP) and isinstance(right, (cst.List, cst.Tuple, cst.Set)):
            for element in right.elements:
                library = _nan_library(element.value, context)
                if library is not None:
                    alone = len(right.elements) == 1
                    yield _finding(node, part.operator, left, right if alone else None, library, context)
                    return
        left = right


def _nan_library(node: cst.BaseExpression, context: Context) -> str | None:
    """Whose NaN an expression is: ``math``, ``numpy``, ``torch`` or ``paddle``; ``None`` when it is not one."""
    if isinstance(node, cst.Call):
        text = string_literal(node.args[0].value) if len(node.args) == 1 else None
        if text is not None and text.strip().lstrip("+-").lower() == "nan":
            return "math" if context.qualified_name(node.func) == "builtins.float" else None
        return None
    name = context.qualified_name(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    if isinstance(node, cst.Name):
        bindings = context.bindings(node)
        if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGN and isinstance(bindings[0].value, cst.Call):
            return _nan_library(bindings[0].value, context)
    return None


def _defaults_to_nan(operand: cst.BaseExpression, context: Context) -> bool:
    """Whether the operand is a parameter whose default is NaN: then ``is`` tells whether it was given."""
    return any(
        isinstance(binding.node, cst.Param)
        and binding.node.default is not None
        and _nan_library(binding.node.default, context) is not None
        for binding in context.bindings(operand)
    )


def _finding(
    node: cst.Comparison,
    operator: cst.BaseCompOp,
    operand: cst.BaseExpression,
    nan: cst.BaseExpression | None,
    library: str,
    context: Context,
) -> Finding:
    negated = isinstance(operator, _NEGATED)
    outcome = "true" if negated else "false"
    if isinstance(operator, _EQUALITY):
        message = f"comparison with NaN is always {outcome}"
    else:
        message = f"NaN is compared by identity: {outcome} for every NaN that is computed"
    function, certain = _function(operand, library, context)
    prefix = ("not " if function == "math" else "~") if negated else ""
    shown = f"{prefix}{function}.isnan(...)"
    if nan is None or len(node.comparisons) > 1:
        return Finding(node, message, f"write `{shown}`")
    return Finding(
        node,
        message,
        f"write `{shown}`",
        fix=lambda: _fix(node, operand, nan, function, negated, certain, context),
    )


def _function(operand: cst.BaseExpression, library: str, context: Context) -> tuple[str, bool]:
    """The library whose ``isnan`` takes the operand, and whether that is certain."""
    value = context.value(operand)
    if isinstance(value, Tensor) and not value.or_number:
        return value.framework, True
    if isinstance(value, Array):
        return "numpy", True
    if isinstance(value, Number):
        return "math", True
    return library, False


def _fix(
    node: cst.Comparison,
    operand: cst.BaseExpression,
    nan: cst.BaseExpression,
    function: str,
    negated: bool,
    certain: bool,
    context: Context,
) -> NodeFix:
    module, import_edit = context.need_import(function)
    # `not` and `~` bind as the comparison did, or closer: `not` where the result is one truth value, `~` else.
    prefix = ("not " if function == "math" else "~") if negated else ""
    opening = f"{prefix}{module}.isnan("
    edits: list[NodeEdit] = []
    if operand is node.left:
        edits += (insert_before(operand, opening), replace_between(operand, nan, ")"))
    else:
        edits += (replace(delete_before(nan, operand), content=opening), insert_after(operand, ")"))
    if import_edit is not None:
        edits.append(import_edit)
    applicability = Applicability.SAFE if certain else Applicability.UNSAFE
    return NodeFix(f"use `{module}.isnan`", tuple(edits), applicability)
