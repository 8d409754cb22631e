"""What gradient flags are called by mistake, names that nobody can mean by anything else; and tensors that ask for no
gradient whatever is said.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.changes import changes_in_place
from mllint.semantic.names.scopes import all_assigned, only_assigned
from mllint.semantic.names.spelling import distance
from mllint.semantic.values import Tensor
from mllint.syntax.shape import constant, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

FLAGS = ("requires_grad", "stop_gradient")
SIGNS = ("requ", "reqi", "reqe", "reqr", "reui", "rqui", "stop_", "stops_", "stopg", "stopG", "sotp_", "stpo_")
"""With these letters each name begins that is taken for a flag: the rule waits for them."""
_METHODS = frozenset({"requires_grad_", "stop_gradient_"})
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_STOPS = frozenset({"stop", "stops", "sotp", "stpo"})
"""Not the other words of these letters: `post_grad`."""
_TAILS = frozenset({
    "grad", "grads", "gradient", "gradients", "graad", "grrad", "ggrad", "gradd", "gard", "garad", "grda", "gra", "gad",
    "grd",
})  # fmt: skip
"""`grad` and what slips make of it. Not the other words that are as near: `graph`, `grid`, `group`."""
_OTHER_WORDS = frozenset({"grading", "gradings"})
_SHORTEST_GRADIENT = 6
_MOST_APART = 2


def is_assigned(node: cst.AssignTarget | cst.AnnAssign) -> bool:
    """Whether something is assigned to an attribute that is called nearly as a flag is."""
    target = node.target
    if target.__class__ is cst.Attribute:
        return meant(target) is not None
    return any(meant(item) is not None for item in attributes_of(target))


def is_argument(arg: cst.Arg) -> bool:
    """Whether an argument is called nearly as a flag is."""
    return arg.keyword is not None and misspelled(arg.keyword.value) is not None


def attributes_of(target: cst.BaseExpression) -> Iterator[cst.Attribute]:
    """The attributes that an assignment to a target sets, those in a tuple included."""
    if type(target) is cst.Attribute:
        yield target
    elif type(target) is cst.Tuple or type(target) is cst.List:
        for element in target.elements:
            yield from attributes_of(element.value)


def meant(target: cst.Attribute) -> str | None:
    """The flag that is surely meant by an attribute, or that its name begins with."""
    return misspelled(target.attr.value) or extended(target.attr.value)


@cache
def misspelled(name: str) -> str | None:
    """The gradient flag that is surely meant by another name: ``requires_grad`` by ``require_grads``."""
    if name in FLAGS or name in _METHODS or not name.startswith(SIGNS):
        return None
    word = _HUMP.sub("_", name).lower()
    for head, tail in _splits(word):
        if head[0] == "r" and distance(head, "requires") <= _MOST_APART and (_is_grad(tail) or tail == "grade"):
            return "requires_grad"
        if head in _STOPS and _is_grad(tail):
            return "stop_gradient"
    return None


def _splits(word: str) -> list[tuple[str, str]]:
    """The two words that a name may be made of, with or without something between them."""
    head, _, tail = word.strip("_").partition("_")
    if tail:
        return [(head, tail.strip("_"))]
    return [(head[:at], head[at:]) for at in range(3, len(head) - 2) if head[at] == "g"]


def _is_grad(tail: str) -> bool:
    is_near = tail[:1] == "g" and len(tail) >= _SHORTEST_GRADIENT and tail.isalpha()
    is_near = is_near and tail not in _OTHER_WORDS
    return tail in _TAILS or (is_near and distance(tail.removesuffix("s"), "gradient") <= _MOST_APART)


@cache
def extended(name: str) -> str | None:
    """The gradient flag that a name begins with, before another word: ``stop_gradient_x``."""
    flag = next((flag for flag in FLAGS if name.startswith(f"{flag}_")), None)
    return flag if flag is not None and name not in _METHODS else None


def is_set_in_vain(model: "Model", target: cst.Attribute, value: cst.BaseExpression | None) -> bool:
    """Whether an attribute with an ``extended`` name is set on what the framework has made, and nobody asks for it.

    Where a project keeps notes of its own on tensors, it reads them somewhere.
    """
    if value is None or constant(value) not in (True, False):
        return False
    made = only_assigned(model, target.value)
    maker = model.library_name(made.func) if isinstance(made, cst.Call) else None
    is_tensor = isinstance(model.value(target.value), Tensor) or (maker or "").startswith(("paddle.", "torch."))
    name = re.escape(target.attr.value)
    asking = re.compile(rf"\b{name}\b(?!\s*=[^=])".encode())
    if not is_tensor or asking.search(model.source.text.encode()):
        return False
    return model.project is None or not model.project.is_written_anywhere(model.path, asking)


def is_new_without(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is a tensor that asked for no gradient when it was made."""
    # Filled with something further below it may hang on a graph: only then.
    made = [model.value(item) for item in all_assigned(model, node)] or [model.value(node)]
    return all(isinstance(item, Tensor) and item.attached is False and not item.parameter for item in made)


def is_changed_above(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether something has been put into a tensor further up than an expression names it: it may hang on a graph."""
    names = model.names_by_word.get(last_word(node) or "", ())
    here = next((at for at, name in enumerate(names) if model.tree.is_inside(name, node)), 0)
    return any(model.tree.is_inside(name, change) for change in changes_in_place(model, node) for name in names[:here])
