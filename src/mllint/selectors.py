"""Selectors: how rules are named in options and settings (code, prefix of codes, name, ``ALL``)."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_CODE = re.compile(r'^    code="(ML\d{3})",$', re.MULTILINE)


class UnknownSelectorError(ValueError):
    """A selector names no rule; ``selector`` is its text."""

    def __init__(self, selector: str) -> None:
        super().__init__(f"unknown rule selector `{selector}`")
        self.selector = selector


@cache
def listed_rules() -> tuple[tuple[str, str], ...]:
    """Code and name of each rule by the look of its file: nothing is imported, and with the rules no parser."""
    found = []
    for path in sorted(Path(__file__).with_name("rules").glob("*/*.py")):
        code = _CODE.search(path.read_text("utf-8"))
        if code is not None:
            found.append((code[1], path.stem.replace("_", "-")))
    return tuple(sorted(found))


def names(selector: str, code: str, name: str) -> bool:
    """Whether a selector names the rule with this code and this name."""
    return selector == "ALL" or selector == name or (selector[:2].upper() == "ML" and code.startswith(selector.upper()))


def is_broad(selector: str) -> bool:
    """Whether a selector names all rules at once."""
    return selector in ("ALL", "ML")


def specificity(selector: str, name: str) -> int:
    """How exactly a selector that names a rule does so: one that names it alone wins over one that names many."""
    return 1 if is_broad(selector) else 100 if selector == name else len(selector)


def best(selectors: Iterable[str], code: str, name: str) -> int:
    """How exactly the most exact of the selectors names the rule; 0 where none does."""
    return max((specificity(selector, name) for selector in selectors if names(selector, code, name)), default=0)
