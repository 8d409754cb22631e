"""Reading the generated tables: text with one row a line, turned into values only where somebody asks.

The tables are text because a module of a few thousand calls costs ten times as much to import.
"""

import importlib
from functools import cache
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
    text: str = vars(importlib.import_module(f"mllint.knowledge.{framework}_tables"))[name]
    rows = {}
    for line in text.splitlines():
        key, _, rest = line.partition(" ")
        rows[key] = rest
    rows.pop("", None)
    return rows


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
