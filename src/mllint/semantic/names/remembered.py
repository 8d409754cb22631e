"""Questions about a file that are answered once: each place that asks would else look through all of it again."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_P = ParamSpec("_P")
_T = TypeVar("_T")


def worked_out_once(question: "Callable[Concatenate[Model, _P], _T]") -> "Callable[Concatenate[Model, _P], _T]":
    """The question, which is worked out once for a file and what else it is given; never while it is worked out."""

    @wraps(question)
    def answer(model: "Model", /, *asked: _P.args, **by_name: _P.kwargs) -> _T:
        known, key = model.remembered, (question, asked)
        if key not in known:
            known[key] = question(model, *asked, **by_name)
        found: _T = known[key]
        return found

    return answer
