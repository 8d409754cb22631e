"""## What it does

Finds comparisons with NaN: `==`, `!=`, `is` and `in` with `float("nan")`, `math.nan`, `np.nan`, `torch.nan` or
`paddle.nan` on either side, or a name, an attribute of a class or an entry of a dict that always stands for one; and
the same as functions and methods: `torch.eq(x, nan)`, `x.ne(nan)`.

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

`x != x`, which is a right (if terse) test for NaN. `x is np.nan` where `x` may be that very object, because it is the
default of a parameter or of `get(key, np.nan)`, what the variable began as, or what a function of the file gives or is
given: there the identity is the point. So it may be where nothing is known of `x`: pandas keeps the object that stands
for a missing cell. Comparisons that do no harm since `isnan` stands beside them: `x == np.nan or
np.isnan(x)`. Lists and dicts that are asked for `np.nan`: they find the object that was put in.

## Fix safety

Safe where the operand is known: a tensor gets its framework's `isnan`, an array `np.isnan`, a number `math.isnan`;
`!=` becomes `~` or `not` in front of it. Unsafe for an array of strings or objects, and where the operand is not known:
then the function follows the constant that was written, and may not take what the operand turns out to be. No fix is
offered for `is` and `in` of an operand that is not known: who writes that often does so since there are strings or
`None` beside the numbers.

## References

- [torch.isnan](https://docs.pytorch.org/docs/stable/generated/torch.isnan.html)
- [paddle.isnan](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/isnan_en.html)
- [math.isnan](https://docs.python.org/3/library/math.html#math.isnan)
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, keep_only
from mllint.rule import Finding, Rule
from mllint.semantic.graph.nan import is_asked_beside, library_of_nan, may_be_that_object, may_hold_objects
from mllint.semantic.values import Array, Number, Tensor
from mllint.syntax.comparison import NEGATED, may_compare_numbers
from mllint.syntax.shape import last_word

rule = Rule(
    code="ML501",
    message="comparison with NaN is always false",
    help="use `isnan`",
    frameworks=frozenset({"torch", "paddle", "numpy"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_SPELLINGS = ("nan", "NaN", "NAN", "Nan", "NAn")
_IDENTITY, _EQUALITY = (cst.Is, cst.IsNot), (cst.Equal, cst.NotEqual)
# Functions and methods that compare element by element, and whether they ask for the opposite.
_FUNCTIONS = {"eq": False, "equal": False, "ne": True, "not_equal": True}
_MODULES = frozenset({"torch", "paddle", "numpy"})
_BINDS_CLOSER = (cst.Attribute, cst.Subscript, cst.Call, cst.BinaryOperation, cst.UnaryOperation)
_CONDITIONS = (cst.If, cst.While, cst.Assert, cst.BooleanOperation)
_Operand: TypeAlias = cst.BaseExpression


class _Test(NamedTuple):
    """One comparison: what is compared, whose NaN with, and how.

    ``is_searched``: the operand is looked through for NaN. ``can_fix``: the operand alone says all.
    """

    whole: _Operand
    operand: _Operand
    library: str
    negated: bool
    by_identity: bool = False
    is_searched: bool = False
    can_fix: bool = True


@rule.on(cst.Comparison, mentions=_SPELLINGS, shape=may_compare_numbers)
def check(node: cst.Comparison, context: Context) -> Iterator[Finding]:
    """Report the comparison when a NaN stands on either side of one of its operators."""
    left = node.left
    for part in node.comparisons:
        test = None
        if isinstance(part.operator, (cst.In, cst.NotIn)):
            test = _membership(node, left, part, context)
        elif isinstance(part.operator, _EQUALITY + _IDENTITY):
            test = _equality(node, left, part, context)
        if test is not None:
            yield _finding(test._replace(can_fix=test.can_fix and len(node.comparisons) == 1), context)
            return
        left = part.comparator


@rule.on(cst.Call, mentions=_SPELLINGS, shape=lambda call: last_word(call.func) in _FUNCTIONS)
def check_call(call: cst.Call, context: Context) -> Iterator[Finding]:
    """Report ``torch.eq(x, nan)``, ``x.ne(nan)`` and their like."""
    if any(arg.star for arg in call.args):
        return
    qualified = context.library_name(call.func)
    if qualified is None and isinstance(call.func, cst.Attribute) and len(call.args) == 1:
        operands = [(call.func.value, call.args[0].value)]
    elif qualified is not None and qualified.partition(".")[0] in _MODULES and len(call.args) == 2:
        first, second = call.args[0].value, call.args[1].value
        operands = [(first, second), (second, first)]
    else:
        return
    for operand, other in operands:
        library = library_of_nan(context.model, other)
        if library is not None:
            yield _finding(_Test(call, operand, library, _FUNCTIONS[last_word(call.func) or ""]), context)
            return


def _equality(node: cst.Comparison, left: _Operand, part: cst.ComparisonTarget, context: Context) -> _Test | None:
    by_identity = isinstance(part.operator, _IDENTITY)
    for operand, other in ((left, part.comparator), (part.comparator, left)):
        library = library_of_nan(context.model, other)
        if library is None or (by_identity and may_be_that_object(context.model, operand, other)):
            continue
        if by_identity or not is_asked_beside(context.model, operand):
            return _Test(node, operand, library, type(part.operator) in NEGATED, by_identity)
    return None


def _membership(node: cst.Comparison, left: _Operand, part: cst.ComparisonTarget, context: Context) -> _Test | None:
    """A NaN among the candidates of ``x in [...]``, or looked for in a tensor or array."""
    negated, right = type(part.operator) in NEGATED, part.comparator
    if isinstance(right, (cst.List, cst.Tuple, cst.Set)):
        for element in right.elements:
            library = library_of_nan(context.model, element.value)
            if library is not None and not may_be_that_object(context.model, left, element.value):
                return _Test(node, left, library, negated, by_identity=True, can_fix=len(right.elements) == 1)
    library = library_of_nan(context.model, left)
    is_array = isinstance(context.value(right), (Tensor, Array))
    if library is not None and (is_array or isinstance(left, cst.Call)):
        return _Test(node, right, library, negated, by_identity=True, is_searched=True, can_fix=is_array)
    return None


def _finding(test: _Test, context: Context) -> Finding:
    outcome = "true" if test.negated else "false"
    by_identity = f"NaN is compared by identity: {outcome} for every NaN that is computed"
    message = by_identity if test.by_identity else f"comparison with NaN is always {outcome}"
    library, is_certain = _library(test, context)
    module, import_edit = context.need_import(library)
    before, after = f"{module}.isnan(", ").any()" if test.is_searched else ")"
    # `not` where the result is one truth value, `~` else; both bind as a comparison does, or closer.
    is_one = library == "math" or test.is_searched or isinstance(context.parent(test.whole), _CONDITIONS)
    sign = "" if not test.negated else "not " if is_one else "~"
    before = sign + before
    if sign and isinstance(test.whole, cst.Call) and isinstance(context.parent(test.whole), _BINDS_CLOSER):
        before, after = f"({before}", f"{after})"
    text = context.short_text(test.operand)
    shown = f"`{before}{text}{after}`"
    if test.can_fix and (is_certain or test.is_searched or not test.by_identity):
        edits = (*keep_only(test.whole, test.operand, before, after), *([import_edit] if import_edit else []))
        fix = NodeFix(f"use `{module}.isnan`", edits, Applicability.SAFE if is_certain else Applicability.UNSAFE)
        return Finding(test.whole, message, f"write {shown}", fix=lambda: fix)
    if test.is_searched:
        return Finding(test.whole, message, f"write `{sign}any({module}.isnan(value) for value in {text})`")
    advice = f"write {shown}, where it can only be a number"
    return Finding(test.whole, message, advice if test.can_fix else f"test for NaN apart from the rest: {shown}")


def _library(test: _Test, context: Context) -> tuple[str, bool]:
    """The library whose ``isnan`` takes the operand, and whether that is certain."""
    value = context.value(test.operand)
    if isinstance(value, Tensor) and not value.or_number:
        return value.framework, True
    if isinstance(value, Array):
        return "numpy", not may_hold_objects(context.model, test.operand)
    return ("math", True) if isinstance(value, Number) else (test.library, False)
