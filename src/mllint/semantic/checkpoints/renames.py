"""What loops, comprehensions and functions do to the keys of a dict, found by doing it to one key at a time."""

from typing import TYPE_CHECKING, Any

import libcst as cst

from mllint.semantic.construction.builder import Construction
from mllint.semantic.construction.operators import truth
from mllint.semantic.construction.parts import Entries, Mark
from mllint.semantic.construction.state_keys import Rename
from mllint.semantic.expressions.arguments import functions_called
from mllint.syntax.iteration import run_over
from mllint.syntax.shape import last_word, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_VIEWS = ("items", "keys", "copy")
_COPIES = frozenset({"dict", "OrderedDict", "deepcopy"})


def source_of(iterable: cst.BaseExpression) -> cst.BaseExpression | None:
    """The dict over which a loop goes: ``sd`` of ``list(sd.items())``."""
    while isinstance(iterable, cst.Call):
        function, behind = iterable.func, run_over(iterable)
        if isinstance(function, cst.Attribute) and function.attr.value in _VIEWS and not iterable.args:
            iterable = function.value
        elif len(iterable.args) == 1 and last_word(function) in _COPIES:
            iterable = iterable.args[0].value
        elif behind is not iterable:
            iterable = behind
        else:
            break
    return iterable


def _is_over_pairs(iterable: cst.BaseExpression) -> bool:
    node = run_over(iterable)
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "items"


def _round(target_is_pair: bool, key: str) -> Any:
    return (key, Mark.TENSOR) if target_is_pair else key


def loop_rename(loop: cst.For, name: str, model: "Model", *, in_place: bool) -> Rename:
    """What a loop over a dict makes of one key in the dict called ``name``, which it fills or changes."""
    over_pairs = _is_over_pairs(loop.iter)

    def rename(key: str) -> tuple[str, ...] | None:
        filled = Entries({key: Mark.TENSOR} if in_place else {})
        Construction().round_of(loop, _round(over_pairs, key), {name: filled}, model)
        return None if filled.is_open else tuple(item for item in filled.values if isinstance(item, str))

    return Rename(rename, _words(loop.body, model))


def comprehension_rename(node: cst.DictComp, model: "Model") -> Rename:
    """What a dict comprehension over a dict makes of one key."""
    over_pairs = _is_over_pairs(node.for_in.iter)

    def rename(key: str) -> tuple[str, ...] | None:
        names = _names(node.for_in.target, _round(over_pairs, key))
        for condition in node.for_in.ifs:
            holds = truth(Construction().value_with(condition.test, names, model))
            if holds is not True:
                return () if holds is False else None
        value = Construction().value_with(node.key, names, model)
        return (value,) if isinstance(value, str) else None

    return Rename(rename, _words(node, model))


def _words(code: cst.CSTNode, model: "Model") -> frozenset[str]:
    """The texts in some code, and in the functions of the project that it calls."""
    words, seen, pending = set[str](), set[int](), [(code, model)]
    while pending:
        code, model = pending.pop()
        if id(code) not in seen:
            seen.add(id(code))
            words.update(text for part in subtree(code) if (text := string_literal(part)))
            pending += [(info.node.body, info.model) for info in functions_called(model, code)]
    return frozenset(words)


def _names(target: cst.BaseExpression, value: Any) -> dict[str, Any]:
    if isinstance(target, cst.Name):
        return {target.value: value}
    if isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, tuple) and len(target.elements) == len(value):
        pairs = zip(target.elements, value, strict=True)
        return {item.value.value: part for item, part in pairs if isinstance(item.value, cst.Name)}
    return {}


def prefix_removal(prefix: str) -> Rename:
    """Taking a prefix off every key that has it."""
    return Rename(lambda key: (key.removeprefix(prefix),))
