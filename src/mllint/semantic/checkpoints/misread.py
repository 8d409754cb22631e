"""What is surely wrong with a call that reads a file, to go by what the code does with what it reads, or is given it
back.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.handling import is_unreached
from mllint.semantic.checkpoints.mistaken import entries_used, read_again, taken_for_module, unpacked
from mllint.semantic.checkpoints.never_written import never_written
from mllint.semantic.checkpoints.wording import words_of_absent, words_of_path, words_of_unpacking, words_of_use
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Instance, Loaded, Module, StateDict, own_method
from mllint.syntax.shape import last_word

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


def is_given_back(model: "Model", call: cst.Call) -> bool:
    """Whether a call of ``state_dict``, for nothing but its effect, is given what was read, or the state of a thing.

    ``net.state_dict(torch.load(path))`` copies the weights of the module into the dict, and leaves the module as it is.
    """
    if len(call.args) != 1 or call.args[0].star or not isinstance(model.tree.parent(call), cst.Expr):
        return False
    given = call.args[0].value
    value = model.value(given)
    is_state = isinstance(value, StateDict) and not _is_read_below(model, call, given)  # else of two modules, together
    is_read = isinstance(value, Loaded) or (value is None and _is_of_old_file(model, given))
    return (is_state or is_read) and not _is_own(model, call.func)


def _is_of_old_file(model: "Model", given: cst.BaseExpression) -> bool:
    """Whether a name is bound to a part of what old Paddle read."""
    read = [binding.value for binding in model.reaching(given)]
    return bool(read) and all(isinstance(node, cst.Call) and last_word(node.func) == "load_dygraph" for node in read)


def _is_read_below(model: "Model", call: cst.Call, given: cst.BaseExpression) -> bool:
    """Whether the function reads what a call is given once more, behind it or in the next round of a loop."""
    scope = model.scope_of(call)
    others = (node for binding in model.reaching(given) for node in uses(model, binding) if node is not given)
    places = [scope.place_of(node) for node in others if model.scope_of(node) is scope]
    here = scope.place_of(call)
    return here is None or any(place is None or place[1] > here[1] for place in places)


def _is_own(model: "Model", method: cst.BaseExpression) -> bool:
    """Whether a class of the project says what its ``state_dict`` does."""
    owner = model.value(method.value) if isinstance(method, cst.Attribute) else None
    if isinstance(owner, (Module, Instance)) and owner.definition is not None:
        return own_method(owner, "state_dict") is not None
    return owner is None and "state_dict" in model.function_names
