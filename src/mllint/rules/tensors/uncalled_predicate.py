"""## What it does

Finds predicates such as `torch.cuda.is_available` or `torch.distributed.is_initialized` whose truth is asked for
without a call.

## Why is this bad?

A function is true, whatever it would say if it were called. Code behind `if torch.cuda.is_available:` runs on machines
without a GPU as well and fails there later; `if not dist.is_initialized:` never initialises anything.

## Example

```python
import torch

device = "cuda" if torch.cuda.is_available else "cpu"
```

## Use instead

```python
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
```

## What it leaves alone

A predicate that is handed on as a function, kept in a variable that is called, or replaced in a test. Attributes that
hold a bool and look like predicates: `x.is_cuda`, `x.is_leaf`, `model.training`, `torch.backends.cudnn.enabled`.

A variable that holds a predicate is reported only where its truth is asked for as well.

## Fix safety

Safe: the parentheses are added. The code that never ran before runs from then on, or the other way round, as was meant.
Unsafe where an object keeps the predicate and its class does not test it: another file may call it.

## References

- [torch.cuda.is_available](https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_available.html)
- [torch.distributed.is_initialized](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.is_initialized)
- [paddle.device.is_compiled_with_cuda](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/device/is_compiled_with_cuda_en.html)
"""

from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, add_call_parentheses
from mllint.rule import Finding, Rule
from mllint.semantic.expressions.truth import compared_to_bool, is_tested
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.values import Batch, Instance, Method, Module, Symbol, Tensor
from mllint.syntax.shape import dotted_path

rule = Rule(
    code="ML105",
    message="a predicate is not called: a function is always true",
    help="add `()`",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    applicability=Applicability.SAFE,
)

# Functions without required arguments, in whatever module of the framework they stand (`torch.cuda`, `torch.xpu`...).
_FUNCTIONS = frozenset({
    "is_available", "is_initialized", "is_built", "is_bf16_supported", "is_tf32_supported", "is_grad_enabled",
    "is_inference_mode_enabled", "is_anomaly_enabled", "is_autocast_enabled", "is_autocast_cpu_enabled",
    "is_autocast_cache_enabled", "are_deterministic_algorithms_enabled", "is_warn_always_enabled",
    "is_deterministic_algorithms_warn_only_enabled", "is_mpi_available", "is_nccl_available", "is_gloo_available",
    "is_ucc_available", "is_xccl_available", "is_torchelastic_launched", "is_scripting", "is_tracing", "is_compiling",
    "is_dynamo_compiling", "is_exporting", "is_in_onnx_export", "is_current_stream_capturing",
    "is_compiled_with_cuda", "is_compiled_with_rocm", "is_compiled_with_xpu", "is_compiled_with_npu",
    "is_compiled_with_cinn", "is_compiled_with_distribute", "in_dynamic_mode", "in_dynamic_or_pir_mode",
    "in_dygraph_mode", "in_pir_mode", "is_float16_supported", "is_bfloat16_supported",
})  # fmt: skip
# Methods of tensors without required arguments.
_METHODS = frozenset({
    "is_contiguous", "is_floating_point", "is_complex", "is_integer", "is_shared", "is_pinned", "is_inference",
    "is_signed", "is_coalesced", "is_sparse_coo", "is_sparse_csr", "is_dense",
})  # fmt: skip
_WORDS = _FUNCTIONS | _METHODS
# Arguments that are flags, whatever takes them.
_FLAGS = frozenset({
    "pin_memory", "enabled", "persistent_workers", "use_cuda", "use_gpu", "cuda", "gpu", "use_amp", "amp", "fp16",
    "bf16",
})  # fmt: skip
_LONGEST_NAME = 42
_TEST_DECORATORS = frozenset({"unittest.skipIf", "unittest.skipUnless"})


@rule.on(cst.Module, mentions=tuple(sorted(_WORDS)))
def check(module: cst.Module, context: Context) -> Iterator[Finding]:
    """Report every mention of a predicate that is asked for its truth, itself or through a variable."""
    for word in sorted(_WORDS | _aliases(context)):
        for name in context.model.names_by_word.get(word, ()):
            parent = context.parent(name)
            is_path = isinstance(parent, cst.Attribute) and parent.attr is name
            mention = parent if is_path and isinstance(parent, cst.Attribute) else name
            if _may_be_asked(mention, context) and _is_predicate(mention, context):
                yield from _finding(mention, context)


def _aliases(context: Context) -> set[str]:
    """The names under which the file imports predicates."""
    return {
        alias.evaluated_alias
        for alias in context.nodes(cst.ImportAlias)
        if alias.evaluated_alias is not None and alias.evaluated_name in _FUNCTIONS
    }


def _may_be_asked(mention: cst.BaseExpression, context: Context) -> bool:
    """Whether the place is not at once something else: a call, an import, the target of an assignment."""
    parent = context.parent(mention)
    if isinstance(parent, (cst.ImportAlias, cst.Attribute, cst.AssignTarget, cst.FunctionDef, cst.Param, cst.Expr)):
        return False
    return not (isinstance(parent, cst.Call) and parent.func is mention)


def _is_predicate(mention: cst.BaseExpression, context: Context) -> bool:
    match context.value(mention):
        case Symbol(name=name):
            return name.partition(".")[0] in ("torch", "paddle") and name.rpartition(".")[2] in _FUNCTIONS
        case Method(receiver=Tensor() | Batch(), name=name):
            return name in _METHODS
    return False


def _finding(mention: cst.BaseExpression, context: Context) -> Iterator[Finding]:
    written = dotted_path(mention) or "...." + context.text(mention).rpartition(".")[2]
    shown = written if len(written) <= _LONGEST_NAME else written.rpartition(".")[2]
    if compared_to_bool(context.model, mention) is not None:
        message = f"`{shown}` is not called: a function equals no bool"
    elif _is_asked(mention, context):
        message = f"`{shown}` is not called: a function is always true"
    else:
        return
    # Who takes it from an object may stand in another file, and call it; unless its truth is asked for in this one.
    is_unsafe = _attributes_given(mention, context) and not _is_tested_later(mention, context)
    trust = Applicability.UNSAFE if is_unsafe else Applicability.SAFE
    yield Finding(
        mention,
        message,
        f"write `{written}()`",
        fix=lambda: NodeFix("add `()`", add_call_parentheses(mention), trust),
    )


def _is_asked(mention: cst.BaseExpression, context: Context) -> bool:
    """Whether the truth of a mention is asked for: where it stands, by what it is given to, or through a variable."""
    if is_tested(context.model, mention) or _is_flag(mention, context):
        return True
    parent, above = context.parent(mention), _assigned_by(mention, context)
    conjunction = isinstance(parent, cst.BooleanOperation) and isinstance(parent.operator, cst.And)
    if above is None:
        return conjunction
    if any(_is_called_somewhere(word, context) for word in _attributes_given(mention, context)):
        return False
    if any(_is_called(node, context) for node in _reads(above, context)):
        return False
    return conjunction or _is_tested_later(mention, context)


def _reads(statement: cst.Assign | cst.AnnAssign, context: Context) -> list[cst.BaseExpression]:
    """Where what a statement binds is read."""
    return [node for binding in bound_by(context.model, statement) for node in uses(context.model, binding)]


def _is_tested_later(mention: cst.BaseExpression, context: Context) -> bool:
    """Whether the truth of the variable that gets a mention is asked for."""
    statement = _assigned_by(mention, context)
    read = [] if statement is None else _reads(statement, context)
    return any(is_tested(context.model, node) or _is_flag(node, context) for node in read)


def _assigned_by(mention: cst.BaseExpression, context: Context) -> cst.Assign | cst.AnnAssign | None:
    """The assignment of a mention, or of the conjunction that it is a part of."""
    held: cst.CSTNode = mention
    above = context.parent(held)
    while isinstance(above, cst.BooleanOperation):
        held, above = above, context.parent(above)
    return above if isinstance(above, (cst.Assign, cst.AnnAssign)) and above.value is held else None


def _attributes_given(mention: cst.BaseExpression, context: Context) -> list[str]:
    """The names of the attributes of objects of the project that get a mention, or a conjunction with it."""
    match _assigned_by(mention, context):
        case cst.Assign(targets=targets):
            found = [item.target for item in targets]
        case cst.AnnAssign(target=target):
            found = [target]
        case _:
            found = []
    return [target.attr.value for target in found if isinstance(target, cst.Attribute) and _is_own(target, context)]


def _is_own(attribute: cst.Attribute, context: Context) -> bool:
    """Whether an attribute is one of an object of a class of the project."""
    owner = context.value(attribute.value)
    return isinstance(owner, (Instance, Module)) and owner.definition is not None


def _is_called_somewhere(word: str, context: Context) -> bool:
    """Whether an attribute of this name of some object of the project is called in the file."""
    calls = context.model.calls_by_word.get(word, ())
    return any(isinstance(call.func, cst.Attribute) and _is_own(call.func, context) for call in calls)


def _is_called(node: cst.BaseExpression, context: Context) -> bool:
    parent = context.parent(node)
    return isinstance(parent, cst.Call) and parent.func is node


def _is_flag(node: cst.BaseExpression, context: Context) -> bool:
    """Whether an expression is given for an argument that is a flag."""
    arg = context.parent(node)
    call = context.parent(arg) if isinstance(arg, cst.Arg) else None
    if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call):
        return False
    if arg.keyword is None:
        return call.args[0] is arg and context.qualified_name(call.func) in _TEST_DECORATORS
    # `argparse` does not call a default; `click` does.
    is_option = isinstance(call.func, cst.Attribute) and call.func.attr.value == "add_argument"
    return arg.keyword.value in _FLAGS or (arg.keyword.value == "default" and is_option)
