"""## What it does

Finds predicates such as `torch.cuda.is_available` or `torch.distributed.is_initialized` whose truth is asked for
without a call. Also `self.train` and `self.eval` of a module where `self.training` is meant.

## Why is this bad?

A function is true, whatever it would say if it were called. Code behind `if torch.cuda.is_available:` runs on machines
without a GPU as well and fails there later; `if not dist.is_initialized:` never initialises anything. In a module
`if self.train:` is true after `eval()`, too. So is what is given on, `F.dropout(x, training=self.train)`, in Paddle;
PyTorch raises there.

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
Unsafe where an object keeps the predicate and its class does not test it: another file may call it. Unsafe for
`train`, which becomes `training`: what was done in both modes is done in one from then on.

## References

- [torch.cuda.is_available](https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_available.html)
- [torch.distributed.is_initialized](https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.is_initialized)
- [torch.nn.Module.train](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.train)
- [paddle.device.is_compiled_with_cuda](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/device/is_compiled_with_cuda_en.html)
"""

from collections.abc import Iterable, Iterator

import libcst as cst

from mllint.context import Context
from mllint.diagnostics import Applicability
from mllint.edits import NodeFix, add_call_parentheses, rename_attribute
from mllint.knowledge.words import MODES
from mllint.rule import Finding, Rule
from mllint.semantic.expressions.truth import compared_to_bool, is_asked, may_be_called_elsewhere
from mllint.semantic.names.uses import whole
from mllint.semantic.values import Batch, Function, Method, Module, Symbol, Tensor
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
_LONGEST_NAME = 42


@rule.on(cst.Module, mentions=tuple(sorted(_WORDS)))
def check(module: cst.Module, context: Context) -> Iterator[Finding]:
    """Report every mention of a predicate that is asked for its truth, itself or through a variable."""
    for mention in _mentions(_WORDS | _aliases(context), context):
        if _is_predicate(mention, context):
            yield from _finding(mention, context)


@rule.on(cst.Module, mentions=MODES)
def check_mode(module: cst.Module, context: Context) -> Iterator[Finding]:
    """Report every method that switches the mode of a module where the mode itself is asked for, or given on."""
    for mention in _mentions(MODES, context):
        if not isinstance(mention, cst.Attribute):
            continue
        is_meant = is_asked(context.model, mention) or _is_given_as_mode(mention, context)
        if is_meant and _switches(mention, context):
            yield _mode_finding(mention, context)


def _mentions(words: Iterable[str], context: Context) -> Iterator[cst.BaseExpression]:
    """Where the file mentions one of several names, alone or as an attribute, without calling it at once."""
    for word in sorted(words):
        for name in context.model.names_by_word.get(word, ()):
            mention = whole(context.model, name)
            if _may_be_asked(mention, context):
                yield mention


def _is_given_as_mode(mention: cst.Attribute, context: Context) -> bool:
    """Whether a function is told the mode: ``dropout(x, training=self.train)``. In PyTorch that raises."""
    arg = context.parent(mention)
    is_given = isinstance(arg, cst.Arg) and arg.keyword is not None and arg.keyword.value == "training"
    return is_given and context.model.framework == "paddle"


def _switches(mention: cst.Attribute, context: Context) -> bool:
    """Whether it is surely the method of a module: a class that is not known may keep a flag of that name."""
    match context.value(mention):
        case Method(receiver=Module(definition=None)):
            return True
        case Method(receiver=Module(definition=definition)) if definition is not None:
            return not definition.has_unknown_base
        case Function(receiver=Module()):
            return True
    return False


def _mode_finding(mention: cst.Attribute, context: Context) -> Finding:
    written, holder = context.text(mention), context.text(mention.value)
    message = f"`{written}` is a method, and always true"
    if mention.attr.value == "eval":
        return Finding(mention, message, f"write `not {holder}.training`")
    fix = NodeFix("ask for the mode", (rename_attribute(mention, "training"),), Applicability.UNSAFE)
    return Finding(mention, message, f"write `{holder}.training`", fix=lambda: fix)


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
    return context.model.tree.call_of(mention) is None


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
    elif is_asked(context.model, mention):
        message = f"`{shown}` is not called: a function is always true"
    else:
        return
    trust = Applicability.UNSAFE if may_be_called_elsewhere(context.model, mention) else Applicability.SAFE
    yield Finding(
        mention,
        message,
        f"write `{written}()`",
        fix=lambda: NodeFix("add `()`", add_call_parentheses(mention), trust),
    )
