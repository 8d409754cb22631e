"""What is surely wrong with a call that reads a file, to go by what the code does with what it reads."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.handling import is_unreached
from mllint.semantic.checkpoints.mistaken import entries_used, read_again, taken_for_module, unpacked
from mllint.semantic.checkpoints.never_written import never_written
from mllint.semantic.checkpoints.wording import words_of_absent, words_of_path, words_of_unpacking, words_of_use

if TYPE_CHECKING:
    from mllint.semantic.model import Model


def misread(model: "Model", call: cst.Call) -> Iterator[tuple[cst.BaseExpression, tuple[str, str]]]:
    """The places where what a call of ``load`` reads is taken for something else, each with a message and a help."""
    yield from (found for found in _taken_for_another(model, call) if not is_unreached(model, found[0]))


def _taken_for_another(model: "Model", call: cst.Call) -> Iterator[tuple[cst.BaseExpression, tuple[str, str]]]:
    mistaken = taken_for_module(model, call)
    if mistaken is not None:
        yield call, words_of_use(model, mistaken)
    shared = unpacked(model, call)
    if shared is not None:
        yield call, words_of_unpacking(model, shared)
    again = read_again(model, call)
    if again is not None:
        yield call, words_of_path(model, again)
    for used in entries_used(model, call):
        yield used.item, words_of_use(model, used.mistaken, used.key)
    for item, absent, saved in never_written(model, call):
        yield item, words_of_absent(model, absent, saved)
