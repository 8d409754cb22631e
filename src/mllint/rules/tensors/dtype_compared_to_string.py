"""## What it does

Finds comparisons of a tensor's dtype with a string or with a NumPy dtype: `x.dtype == "float32"`,
`x.dtype in (np.float16, np.float32)`.

## Why is this bad?

The dtypes of PyTorch and Paddle are objects of their own that equal neither. `==` is always false and `!=` always true,
without an error. With a NumPy array the same line is right, which is where it often comes from.

## Example

```python
import torch

mask = torch.ones(2, 3).bool()
if mask.dtype != "bool":
    mask = mask > 0
```

## Use instead

```python
import torch

mask = torch.ones(2, 3).bool()
if mask.dtype != torch.bool:
    mask = mask > 0
```

## What it leaves alone

Everything that is not surely the dtype of a tensor: arrays of NumPy, data frames, `args.dtype == "fp16"`. A thing of
which nothing else is known counts as one where it is moved under its own name, `x = x.to("cpu")`. What is handed to
another library where the test holds (`Image.fromarray(x)`) is an array, whatever an annotation says.
`str(x.dtype)`, `x.type()`, `paddle.get_default_dtype()` and `layer._dtype`, which are strings.

## Fix safety

Safe: the string or the NumPy dtype becomes the framework's dtype of that name. No fix is offered for a name that is no
dtype, and where the other side is not written out.

## References

- [torch.dtype](https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.dtype)
- [paddle.Tensor.dtype](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/Tensor_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeEdit, NodeFix, replace
from mllint.rule import Finding, Rule
from mllint.semantic.expressions.hints import is_moved_to_itself
from mllint.semantic.values import Batch, Object, Other, Output, Symbol, Tensor, Text
from mllint.syntax.comparison import Comparand, comparands
from mllint.syntax.shape import last_word, string_literal

rule = Rule(
    code="ML104",
    message="a dtype never equals a string or a NumPy dtype",
    help="compare with the framework's own dtype",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

_NAMES = frozenset({
    "float16", "bfloat16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool", "complex64",
    "complex128",
})  # fmt: skip
# Other names of theirs: those of torch, those of NumPy, and what people write.
_ALIASES = {
    "half": "float16", "float": "float32", "double": "float64", "short": "int16", "int": "int32", "long": "int64",
    "bool_": "bool", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
}  # fmt: skip


def _may_be_dtypes(node: cst.Comparison) -> bool:
    """Whether a comparison looks as if it were about dtypes: what things are is asked of those only."""
    return any(_may_be_dtype(pair) for pair in comparands(node))


@rule.on(cst.Comparison, mentions=("dtype", *sorted(_NAMES)), shape=_may_be_dtypes)
def check(node: cst.Comparison, context: Context) -> Iterator[Finding]:
    """Report the comparison when a dtype stands on one side and nothing but strings or NumPy dtypes on the other."""
    for pair in comparands(node):
        framework = _framework(pair.operand, context) if _may_be_dtype(pair) else None
        if framework is not None:
            kinds = {_kind(other, context) for other in pair.others}
            if None not in kinds and not (kinds == {"numpy"} and _goes_on_as_array(node, pair.operand, context)):
                yield _finding(node, pair, kinds, framework, context)
            return


def _goes_on_as_array(node: cst.Comparison, operand: cst.BaseExpression, context: Context) -> bool:
    """Whether what follows a test hands the thing to another library: ``Image.fromarray(x)`` takes no tensor."""
    branch, owner = context.parent(node), operand.value if isinstance(operand, cst.Attribute) else None
    if not isinstance(branch, cst.If) or not isinstance(owner, cst.Name):
        return False
    for call in context.model.tree.calls_in(branch.body):
        name = context.qualified_name(call.func) or "torch"
        is_given = any(isinstance(arg.value, cst.Name) and arg.value.value == owner.value for arg in call.args)
        if is_given and name.partition(".")[0] not in ("torch", "paddle", "builtins"):
            return True
    return False


def _may_be_dtype(pair: Comparand) -> bool:
    if pair.operand.__class__ is cst.Attribute and pair.operand.attr.value == "dtype":
        return True
    for other in pair.others:
        name = last_word(other) or string_literal(other)
        if name is not None and _canonical(name) is not None:
            return True
    return False


def _framework(node: cst.BaseExpression, context: Context) -> str | None:
    """The framework of which an expression is a dtype; ``None`` for everything else."""
    match context.value(node):
        case Other(kind="dtype"):
            owner = context.value(node.value) if isinstance(node, cst.Attribute) else None
            return owner.framework if isinstance(owner, (Tensor, Batch, Output)) else context.model.framework
        case None if isinstance(node, cst.Attribute) and node.attr.value == "dtype":
            return "torch" if is_moved_to_itself(context.model, node.value) else None
        case Symbol(name=name) | Object(kind="dtype", name=name):
            root, _, last = name.partition(".")
            return root if root in ("torch", "paddle") and (last in _NAMES or last == "dtype") else None
    return None


def _kind(node: cst.BaseExpression, context: Context) -> str | None:
    """Whether an expression is a string (a literal, or made on the spot) or a NumPy dtype."""
    match context.value(node):
        case Text(literal=literal):
            return "string" if literal is not None or not isinstance(node, (cst.Name, cst.Attribute)) else None
        case Symbol(name=name):
            root, _, last = name.partition(".")
            return "numpy" if root == "numpy" and _canonical(last) is not None else None
    return None


def _canonical(name: str) -> str | None:
    """The name that both frameworks have for the dtype which somebody calls so."""
    name = name.lower().removeprefix("torch.").removeprefix("paddle.").removeprefix("np.")
    return name if name in _NAMES else _ALIASES.get(name)


def _finding(
    node: cst.Comparison, pair: Comparand, kinds: set[str | None], framework: str, context: Context
) -> Finding:
    what = "a string" if kinds == {"string"} else "a NumPy dtype" if kinds == {"numpy"} else "these"
    outcome = "true" if pair.is_negated else "false"
    names = [_named(other, context) for other in pair.others]
    known = [name for name in names if name is not None]
    return Finding(
        node,
        f"a dtype never equals {what}: the comparison is always {outcome}",
        f"write `{framework}.{known[0] if known else 'float32'}`",
        fix=(lambda: _fix(pair, known, framework, context)) if len(known) == len(names) else None,
    )


def _named(node: cst.BaseExpression, context: Context) -> str | None:
    """The dtype that a literal or the name of a NumPy dtype names."""
    text = string_literal(node)
    if text is not None:
        return _canonical(text)
    value = context.value(node)
    return _canonical(value.name.rpartition(".")[2]) if isinstance(value, Symbol) else None


def _fix(pair: Comparand, names: list[str], framework: str, context: Context) -> NodeFix:
    module, import_edit = context.need_import(framework)
    edits: list[NodeEdit] = [replace(other, f"{module}.{name}") for other, name in zip(pair.others, names, strict=True)]
    if import_edit is not None:
        edits.append(import_edit)
    return NodeFix(f"compare with {'dtypes' if len(names) > 1 else 'the dtype'} of {framework}", tuple(edits))
