"""Basic and advanced indexing: what gives a view of a tensor or array, and what surely gives a copy."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.tensors import is_one_size
from mllint.semantic.names.conditions import verdicts
from mllint.semantic.names.scopes import Binding, BindingKind, all_assigned, only_assigned
from mllint.semantic.names.uses import uses
from mllint.semantic.names.writes import is_basic_index
from mllint.semantic.values import Array, Batch, Elements, Number, Output, Repeated, Symbol, Tensor
from mllint.syntax.shape import argument, dotted_path, integer_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 8
"""Through how many names an index is followed."""
_COMPARING = frozenset({
    "eq", "ne", "gt", "lt", "ge", "le", "isnan", "isinf", "isfinite", "logical_not", "logical_and", "logical_or",
    "logical_xor", "bool", "equal", "not_equal", "greater_than", "less_than", "greater_equal", "less_equal", "isclose",
    "greater", "less", "in1d", "isin",
})  # fmt: skip
# Methods that give the same Booleans in another shape or elsewhere.
_SHAPING = frozenset({
    "unsqueeze", "squeeze", "expand", "expand_as", "view", "view_as", "reshape", "flatten", "repeat", "t", "transpose",
    "permute", "clone", "detach", "contiguous", "cuda", "cpu", "any", "all", "numpy",
})  # fmt: skip
# Functions that give one or more indexes a dimension, never a single number.
_INDEXES = frozenset({
    "randperm", "arange", "nonzero", "argwhere", "flatnonzero", "permutation", "triu_indices", "tril_indices",
    "LongTensor", "argsort", "unique",
})  # fmt: skip
_FINDING = frozenset({"argmax", "argmin"})
# They give the indexes beside the values. Paddle's `sort` and numpy's give the values alone.
_WITH_INDEXES = frozenset({"topk"})
_SORTING = frozenset({"sort"})
_DRAWING = frozenset({"randint"})
# Functions and methods that take nothing but vectors.
_OF_VECTORS = frozenset({"bincount"})
_TRYING = (cst.Try, cst.TryStar, cst.Match, cst.Lambda)
_BOOLEANS = frozenset({"torch.bool", "paddle.bool", "numpy.bool_", "numpy.bool", "builtins.bool"})
_COPYING_METHODS = frozenset({"index_select", "masked_select", "gather", "take_along_dim", "take_along_axis"})
# Through these a write goes on to what they are taken of.
_VIEWING = frozenset({"view", "squeeze", "unsqueeze", "detach", "transpose", "permute", "t"})
_VIEWING_ATTRIBUTES = frozenset({"data", "T", "mT"})


def copied(model: "Model", node: cst.BaseExpression, is_tensor: bool = False) -> cst.BaseExpression | None:
    """The part of an expression that surely makes a copy of a tensor or array that is kept elsewhere.

    What is written to the expression goes to that copy. ``None`` where it may be a view, or is no tensor.
    ``is_tensor``: the expression is known to be a tensor from what is done with it.
    """
    while True:
        match node:
            case cst.Subscript():
                if is_advanced(model, node, is_tensor):
                    return node if _is_kept(node.value) else None
                node = node.value
            case cst.Attribute(attr=cst.Name(value=name)) if name in _VIEWING_ATTRIBUTES:
                node = node.value
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=name))):
                if name in _COPYING_METHODS and isinstance(model.value(receiver), Tensor):
                    return node if _is_kept(receiver) else None
                if name not in _VIEWING or not isinstance(model.value(receiver), (Tensor, Batch)):
                    return None
                node = receiver
            case _:
                return None


def _is_kept(node: cst.BaseExpression) -> bool:
    """Whether a name or attribute holds the tensor, so that a write to it would be seen."""
    while isinstance(node, (cst.Subscript, cst.Attribute, cst.Call)):
        if isinstance(node, cst.Call):
            is_view = isinstance(node.func, cst.Attribute) and node.func.attr.value in _VIEWING
            if not is_view:
                return False
            assert isinstance(node.func, cst.Attribute)
            node = node.func
        node = node.value
    return isinstance(node, cst.Name)


def is_advanced(model: "Model", node: cst.Subscript, is_tensor: bool = False) -> bool:
    """Whether a tensor or array is surely indexed by a mask, a list or a tensor with a dimension: that copies.

    ``is_tensor``: what the index gives is a tensor, so that the base is one if nothing is known of it.
    """
    if is_basic_index(node):
        return False
    base = model.value(node.value)
    only = subscript_index(node)
    is_unknown = isinstance(base, (Output, type(None)))
    if is_unknown and only is not None and isinstance(model.value(only), Tensor) and is_mask(model, only):
        return True  # nothing but a tensor is asked with a tensor of Booleans
    if is_tensor and is_unknown:
        return only is not None and (_compares(model, only, node.value) or _copies(model, only))
    if not (isinstance(base, (Tensor, Array)) or (isinstance(base, Batch) and not base.opaque)):
        return False
    if isinstance(base, Tensor) and base.or_number:
        return False
    if len(node.slice) == 1 and isinstance(subscript_index(node), cst.Tuple):
        index = subscript_index(node)
        assert isinstance(index, cst.Tuple)
        parts = [element.value for element in index.elements]
    else:
        indexes = [element.slice for element in node.slice]
        parts = [index.value for index in indexes if isinstance(index, cst.Index) and index.star is None]
    return any(_copies(model, part) or _is_yes_or_no(model, part) for part in parts)


def _is_yes_or_no(model: "Model", node: cst.BaseExpression, depth: int = 0) -> bool:
    """Whether an expression is what comparisons give: a mask, or one ``bool``, with which an array is copied, too."""
    match node:
        case cst.Comparison():
            return True
        case cst.BinaryOperation(operator=cst.BitAnd() | cst.BitOr() | cst.BitXor()):
            return _is_yes_or_no(model, node.left, depth) and _is_yes_or_no(model, node.right, depth)
        case cst.Name() if depth <= MAX_STEPS:
            values = all_assigned(model, node)
            return bool(values) and all(_is_yes_or_no(model, value, depth + 1) for value in values)
    return False


def _compares(model: "Model", index: cst.BaseExpression, base: cst.BaseExpression) -> bool:
    """Whether an index asks the items of the base: ``x[x < 0]``, ``mask = x != x``."""
    path = dotted_path(base)
    if isinstance(index, cst.Name):
        kept = only_assigned(model, index)
        return isinstance(kept, cst.Comparison) and _compares(model, kept, base)
    if path is None or not isinstance(index, cst.Comparison) or len(index.comparisons) != 1:
        return False
    is_question = not isinstance(index.comparisons[0].operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn))
    return is_question and path in (dotted_path(index.left), dotted_path(index.comparisons[0].comparator))


def _copies(model: "Model", index: cst.BaseExpression) -> bool:
    """Whether an index is surely none of number, slice, ``None``, ``...`` and 0-d tensor of a number."""
    if isinstance(index, cst.List):
        return all(isinstance(element, cst.Element) for element in index.elements)
    if is_mask(model, index) or _is_called(model, index, _INDEXES) or _is_found_along_dimension(model, index):
        return True
    if _is_beside_values(model, index) or _is_drawn(model, index):
        return True
    if isinstance(index, cst.Subscript) and len(index.slice) == 1 and isinstance(index.slice[0].slice, cst.Slice):
        return _copies(model, index.value)  # some of several indexes: `torch.randperm(n)[:k]`
    if isinstance(index, cst.Name):
        # What is kept in a name is as certain as what stands in the brackets.
        kept = only_assigned(model, index)
        if isinstance(kept, (cst.Subscript, cst.Call, cst.Attribute)) and _copies(model, kept):
            return True
    if _is_part_of_indexes(model, index) or _is_array_of_list(model, index):
        return True
    value = model.value(index)
    if isinstance(value, Tensor):
        has_dimension = value.scalar is False or (isinstance(index, cst.Name) and _has_dimension_by_use(model, index))
        return has_dimension and not value.or_number
    if isinstance(value, Elements):
        return value.mutable and bool(value.items) and all(isinstance(item, Number) for item in value.items)
    if isinstance(value, Repeated):
        return value.kind in ("list", "range") and isinstance(value.item, Number) and _is_list(model, index)
    return False


def _is_found_along_dimension(model: "Model", node: cst.BaseExpression) -> bool:
    """``x.argmax(dim=1)``: one index for each of what lies along the other dimensions, of which there are some."""
    if not isinstance(node, cst.Call) or not _is_called(model, node, _FINDING):
        return False
    position = 1 if isinstance(model.value(node.func), Symbol) else 0
    given = argument(node, position, "dim") or argument(node, None, "axis")
    along = None if given is None else integer_literal(given.value)
    return along is not None and along not in (0, -1)


def _is_beside_values(model: "Model", node: cst.BaseExpression) -> bool:
    """``x.topk(k)[1]``, ``x.sort().indices``, or the second name of ``values, indexes = torch.topk(x, k)``."""
    match node:
        case cst.Subscript(value=pair):
            is_second = integer_literal(subscript_index(node)) == 1
        case cst.Attribute(value=pair, attr=cst.Name(value=name)):
            is_second = name == "indices"
        case cst.Name():
            unpacked = _unpacked(model, node)
            is_second = unpacked is not None and unpacked.path == (1,)
            pair = node if unpacked is None or unpacked.value is None else unpacked.value
        case _:
            return False
    if not is_second or not isinstance(pair, cst.Call):
        return False
    return _is_called(model, pair, _WITH_INDEXES) or (
        _is_called(model, pair, _SORTING) and isinstance(model.value(pair), (Elements, Repeated))
    )


def _is_drawn(model: "Model", node: cst.BaseExpression) -> bool:
    """``torch.randint(0, n, (5,))``: as many as its shape says, in at least one dimension."""
    if not isinstance(node, cst.Call) or not _is_called(model, node, _DRAWING):
        return False
    return any(isinstance(arg.value, (cst.Tuple, cst.List)) and arg.value.elements for arg in node.args)


def _is_part_of_indexes(model: "Model", node: cst.BaseExpression) -> bool:
    """``np.where(mask)[0]``, ``torch.nonzero(mask)[:, 0]``, ``nonzero(mask).squeeze(1)``: never a single number."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.args:
        is_reshaped = node.func.attr.value in ("squeeze", "view", "reshape")
        return is_reshaped and _is_called(model, node.func.value, frozenset({"nonzero", "argwhere"}))
    if isinstance(node, cst.Name):
        pair = _unpacked(model, node)
        return pair is not None and len(pair.path) == 1 and _gives_indexes(model, pair.value)
    if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Call):
        return False
    if len(node.slice) > 1:
        is_column = isinstance(node.slice[0].slice, cst.Slice)
        return is_column and _is_called(model, node.value, frozenset({"nonzero", "argwhere"}))
    return _gives_indexes(model, node.value) and isinstance(subscript_index(node), cst.Integer)


def _gives_indexes(model: "Model", node: cst.BaseExpression | None) -> bool:
    """Whether an expression is a tuple of indexes, for each dimension those along it: ``np.where(mask)``."""
    if not isinstance(node, cst.Call):
        return False
    of_array = isinstance(model.value(node), (Array, Elements)) or (
        (model.qualified_name(node.func) or "").startswith("numpy.")
    )
    if of_array and _is_called(model, node, frozenset({"nonzero"})):
        return True
    return len(node.args) == 1 and _is_called(model, node, frozenset({"where"}))


def _unpacked(model: "Model", node: cst.Name) -> Binding | None:
    """What alone binds a name, if that is a part of what is unpacked there: ``rows, columns = np.where(mask)``."""
    bindings = model.reaching(node)
    only = bindings[0] if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGN else None
    return only if only is not None and only.path and only.value is not None else None


def _has_dimension_by_use(model: "Model", index: cst.Name) -> bool:
    """Whether something else is done with a tensor that raises without a dimension: ``len(index)``, ``index[:5]``."""
    bindings = model.reaching(index)
    return bool(bindings) and all(
        any(
            use is not index and _needs_dimension(model, use) and _is_done_too(model, use, index)
            for use in uses(model, binding)
        )
        for binding in bindings
    )


def _needs_dimension(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether what stands around a tensor raises where that is 0-d."""
    parent = model.tree.parent(node)
    match parent:
        case cst.Subscript(value=base) if base is node:
            first = parent.slice[0].slice
            return isinstance(first, cst.Slice) or (
                isinstance(first, cst.Index) and integer_literal(first.value) is not None
            )
        case cst.Attribute(value=base, attr=cst.Name(value="shape")) if base is node:
            entry = model.tree.parent(parent)
            return isinstance(entry, cst.Subscript) and entry.value is parent and is_one_size(entry)
        case cst.Attribute(value=base, attr=cst.Name(value=name)) if base is node:
            call = model.tree.call_of(parent)
            is_size = name == "size" and call is not None and len(call.args) == 1
            return (is_size and model.framework == "torch") or (call is not None and name in _OF_VECTORS)
        case cst.For(iter=iterated) | cst.CompFor(iter=iterated) if iterated is node:
            return True
        case cst.Arg():
            around = model.tree.parent(parent)
            if not isinstance(around, cst.Call) or around.args[0] is not parent:
                return False
            library, _, last = (model.library_name(around.func) or _builtin_name(model, around)).rpartition(".")
            return (library, last) == ("builtins", "len") or (library in ("torch", "paddle") and last in _OF_VECTORS)
    return False


def _builtin_name(model: "Model", call: cst.Call) -> str:
    return (model.qualified_name(call.func) or "") if isinstance(call.func, cst.Name) else ""


def _is_done_too(model: "Model", use: cst.BaseExpression, index: cst.Name) -> bool:
    """Whether nothing decides about a use that does not decide in the same way about the place of the index."""
    known = {(id(test), outcome) for test, outcome in verdicts(model, index)}
    if not all((id(test), outcome) in known for test, outcome in verdicts(model, use)):
        return False
    return model.scope_of(use) is model.scope_of(index) and all(
        model.tree.is_inside(index, around) for around in model.tree.ancestors(use) if isinstance(around, _TRYING)
    )


def _is_array_of_list(model: "Model", node: cst.BaseExpression) -> bool:
    """``np.array([0, 2])``."""
    if not isinstance(node, cst.Call) or not node.args:
        return False
    name = model.qualified_name(node.func)
    return name in ("numpy.array", "numpy.asarray") and isinstance(node.args[0].value, (cst.List, cst.ListComp))


def _is_list(model: "Model", index: cst.BaseExpression) -> bool:
    """Whether an expression is a list, not only something to loop over: ``range`` and a comprehension are."""
    if isinstance(index, cst.ListComp):
        return True
    if isinstance(index, cst.Call):
        return model.qualified_name(index.func) in ("builtins.range", "builtins.list")
    values = all_assigned(model, index) if isinstance(index, cst.Name) else []
    return bool(values) and all(
        isinstance(value, (cst.ListComp, cst.Call)) and _is_list(model, value) for value in values
    )


def is_mask(model: "Model", node: cst.BaseExpression, depth: int = 0) -> bool:
    """Whether an expression is surely a tensor or array of Booleans."""
    if depth > MAX_STEPS or not isinstance(model.value(node), (Tensor, Array)):
        return False
    match node:
        case cst.Comparison():
            return True
        case cst.UnaryOperation(operator=cst.BitInvert()):
            return is_mask(model, node.expression, depth + 1)
        case cst.BinaryOperation(operator=cst.BitAnd() | cst.BitOr() | cst.BitXor()):
            return is_mask(model, node.left, depth + 1) or is_mask(model, node.right, depth + 1)
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=name))) if name in _SHAPING:
            return is_mask(model, receiver, depth + 1)
        case cst.Call():
            dtype = argument(node, None, "dtype")
            is_made = dtype is not None and model.qualified_name(dtype.value) in _BOOLEANS
            return is_made or _is_called(model, node, _COMPARING)
        case cst.Name() | cst.Attribute():
            values = all_assigned(model, node)
            return bool(values) and all(is_mask(model, value, depth + 1) for value in values)
    return False


def _is_called(model: "Model", node: cst.BaseExpression, names: frozenset[str], depth: int = 0) -> bool:
    """Whether an expression is the result of a function of a library, or method of a tensor, of such a name."""
    if isinstance(node, cst.Name):
        values = all_assigned(model, node) if depth <= MAX_STEPS else []
        return bool(values) and all(_is_called(model, value, names, depth + 1) for value in values)
    if not isinstance(node, cst.Call):
        return False
    callee = model.value(node.func)
    if isinstance(callee, Symbol):
        library, _, last = callee.name.rpartition(".")
        return last in names and library.partition(".")[0] in ("torch", "paddle", "numpy")
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value not in names:
        return False
    return isinstance(model.value(node.func.value), (Tensor, Array, Batch))
