"""Reading the generated tables: text with one row a line, turned into values only where somebody asks.

``torch.txt`` and ``paddle.txt`` have one section for each table, under its name in brackets. They are text because a
module of a few thousand calls costs ten times as much to import.
"""

import re
from functools import cache
from pathlib import Path
from typing import cast

from mllint.knowledge.schema import Class, Function, Kind, LayerState, Returns

FRAMEWORKS = ("torch", "paddle")


@cache
def table(framework: str, name: str) -> dict[str, str]:
    """One table: the first word of each row -> the rest of the row.

    Raises:
        KeyError: there is no such framework or table.
    """
    if framework not in FRAMEWORKS:
        raise KeyError(framework)
    rows = {}
    for line in sections(framework)[name].splitlines():
        key, _, rest = line.partition(" ")
        rows[key] = rest
    return rows


@cache
def sections(framework: str) -> dict[str, str]:
    """The text of each table of a framework, and the ``VERSION`` that they are about."""
    text = Path(__file__).with_name(f"{framework}.txt").read_text("utf-8")
    _, *parts = re.split(r"^\[([A-Z_]+)\]$", text, flags=re.MULTILINE)
    return {name: body.strip("\n") for name, body in zip(parts[::2], parts[1::2], strict=True)}


def read_function(rest: str) -> Function:
    """The row of a function or method, from what follows its name."""
    returns, _, parameters = rest.partition(" ")
    return Function(cast("Returns", returns), parameters)  # a test holds the words to the schema


def read_class(rest: str) -> Class:
    """The row of a class, from what follows its name."""
    kind, called, *parameters = rest.split(" ", 2)
    return Class(cast("Kind", kind), "".join(parameters), cast("Returns", called))


def read_layer_state(rest: str) -> LayerState:
    """The row of a layer's state, from what follows its name."""
    _, *fields = (field.strip() for field in rest.split("|"))
    keys: tuple[str, ...] = ()
    switches: list[tuple[str, bool, tuple[str, ...]]] = []
    depends: tuple[str, ...] = ()
    for field in fields:
        head, *words = field.split(" ")
        if head == "sized":
            return LayerState((), sized=True)
        if head == "keys":
            keys = tuple(words)
        elif head == "depends":
            depends = tuple(words)
        else:
            parameter, _, value = head.partition("=")
            switches.append((parameter, value == "True", tuple(words)))
    return LayerState(keys, tuple(switches), depends)
