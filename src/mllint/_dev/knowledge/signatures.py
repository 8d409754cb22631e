"""The parameters and the annotated result of a framework's function, from its signature or its documentation."""

import inspect
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mllint.knowledge.schema import Returns


class Parameter(NamedTuple):
    """One parameter: ``star`` is ``""``, ``"*"`` or ``"**"``; ``default`` is source text or the value itself."""

    name: str
    required: bool
    keyword_only: bool = False
    star: str = ""
    default: Any = None


class Signature(NamedTuple):
    """What is known without calling: the parameters, and what the annotation says comes back."""

    parameters: tuple[Parameter, ...]
    returns: Returns | None

    def without_first(self) -> "Signature":
        """The same without its first parameter (`self`, or the tensor a method is called on)."""
        return self._replace(parameters=self.parameters[1:])

    def text(self) -> str:
        """The names, space-separated: ``*`` before the first keyword-only name, ``*name`` and ``**name`` kept."""
        names: list[str] = []
        star_written = False
        for parameter in self.parameters:
            if parameter.keyword_only and not star_written:
                names.append("*")
                star_written = True
            star_written = star_written or parameter.star == "*"
            names.append(parameter.star + parameter.name)
        return " ".join(names)


_RESULT_TYPES: tuple[tuple[str, Returns], ...] = (
    (r"(torch\.|paddle\.)?(Long|Bool|Float|Int)?Tensor", "tensor"),
    (
        r"(typing\.)?([tT]uple|[lL]ist|Sequence)\[ *('?(torch\.|paddle\.)?Tensor'?[, .]*)+\]",
        "tensors",
    ),
    (r"\(([A-Za-z]*Tensor( \w+)?,? ?)+\)", "tensors"),
    (r"[lL]ist of Tensors|Tensors?\[\]|seq(uence)? of Tensors", "tensors"),
    (r"(typing\.|typing_extensions\.)?Self|~?T", "self"),
    (r"None", "none"),
    (r"int|float|bool|number|Number|complex", "number"),
    (r"str", "string"),
    (r"(torch\.)?Size", "size"),
    (r"(torch\.)?dtype", "dtype"),
    (r"(torch\.)?device", "device"),
    (r"numpy\.ndarray|np\.ndarray|npt\.NDArray\[.*\]|ndarray", "array"),
    (r"(torch\.nn\.modules\.module\.|torch\.nn\.)?Module", "module"),
    (r"(collections\.abc\.|typing\.)?(Iterator|Generator)\[.*\]", "generator"),
)


def returns_of(annotation: str) -> Returns | None:
    """What an annotation or the text after ``->`` means; ``None`` where it does not say it plainly."""
    annotation = annotation.strip().strip("'\"").rstrip(".")
    for pattern, returns in _RESULT_TYPES:
        if re.fullmatch(pattern, annotation):
            return returns
    return None


def longest(signatures: list[Signature]) -> Signature:
    """Of all ways to call a function the one that names the most parameters; the first of equals."""
    return max(signatures, key=lambda it: len(it.parameters))


def signatures_of(function: Callable[..., Any], name: str) -> list[Signature]:
    """All ways to call a function that are written down, the most ordinary first; never empty."""
    documented = list(_documented(function, name))
    written = typing.get_overloads(function) if inspect.isfunction(function) else ()
    inspected = [signature for it in (*written, function) if (signature := _inspected(it)) is not None]
    inspected = [signature for signature in inspected if not _is_catch_all(signature)]
    if not inspected:
        return documented or [Signature((), None)]
    returns = next((it.returns for it in documented if it.returns is not None), None)
    return [it._replace(returns=it.returns or returns) for it in inspected]


def _is_catch_all(signature: Signature) -> bool:
    """Whether a signature says nothing: `(*args, **kwargs)`, in a method after `self`."""
    named = {parameter.name for parameter in signature.parameters if not parameter.star}
    return {parameter.star for parameter in signature.parameters} >= {"*", "**"} and named <= {"self"}


_STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}


def _inspected(function: Callable[..., Any]) -> Signature | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    parameters = tuple(
        Parameter(
            name=parameter.name,
            required=parameter.default is parameter.empty,
            keyword_only=parameter.kind is parameter.KEYWORD_ONLY,
            star=_STARS.get(parameter.kind.name, ""),
            default=None if parameter.default is parameter.empty else parameter.default,
        )
        for parameter in signature.parameters.values()
    )
    annotation = signature.return_annotation
    if annotation is signature.empty:
        return Signature(parameters, None)
    if annotation is None:
        return Signature(parameters, "none")
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return Signature(parameters, returns_of(text))


def _documented(function: Callable[..., Any], name: str) -> Iterator[Signature]:
    """The signatures written in a docstring: `name(a, b=1, *, c) -> Tensor`, also after `.. function::`."""
    for line in (inspect.getdoc(function) or "").splitlines():
        match = re.match(rf"\s*(?:\.\. function:: *)?(?:[\w.]+\.)?{re.escape(name)}\(", line)
        if match is None:
            continue
        inside, rest = _split_at_closing(line[match.end() :])
        if inside is None:
            continue
        parameters = _parse_parameters(inside)
        if parameters is not None:
            _, arrow, result = rest.partition("->")
            yield Signature(parameters, returns_of(result) if arrow else None)


def _split_at_closing(text: str) -> tuple[str | None, str]:
    depth = 1
    for index, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return text[:index], text[index + 1 :]
    return None, text


def _parse_parameters(inside: str) -> tuple[Parameter, ...] | None:
    """The parameters between the parentheses; ``None`` when the text is an example call, not a signature."""
    parameters: list[Parameter] = []
    keyword_only = False
    for part in map(str.strip, _split_at_commas(inside)):
        if part in ("", "/", "..."):
            continue
        if part == "*":
            keyword_only = True
            continue
        match = re.fullmatch(r"(\*{0,2})([A-Za-z_]\w*)\s*(:[^=]*)?(=\s*(.*))?", part)
        if match is None:
            return None
        star, name, _, default, value = match.groups()
        # Pages write keyword-only parameters such as `out` without the default that they have.
        parameters.append(Parameter(name, default is None and not keyword_only, keyword_only, star, value))
        keyword_only = keyword_only or star == "*"
    return tuple(parameters)


def _split_at_commas(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for index, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    yield text[start:]
