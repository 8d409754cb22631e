"""A rule's documentation as its docstring holds it: the sections, and the code in them."""

import re
from dataclasses import dataclass

from mllint.rule import Rule

HEADINGS = (
    "What it does",
    "Why is this bad?",
    "Example",
    "Use instead",
    "What it leaves alone",
    "Fix safety",
    "References",
)
"""The sections of every page, in this order."""

_HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class PageError(ValueError):
    """A page that does not have the sections every page has."""


@dataclass(frozen=True, slots=True)
class RulePage:
    """The sections of one page, by heading."""

    sections: dict[str, str]

    @classmethod
    def of(cls, rule: Rule) -> "RulePage":
        """Read the docstring of the rule's module.

        Raises:
            PageError: a section is missing, empty, unknown or out of order.
        """
        before, *parts = _HEADING.split(rule.docs.strip() + "\n")
        sections = dict(zip(parts[::2], (text.strip() for text in parts[1::2]), strict=True))
        if before.strip() or tuple(parts[::2]) != HEADINGS:
            raise PageError(f"{rule.name}: the headings must be {', '.join(HEADINGS)}")
        empty = [heading for heading, text in sections.items() if not text]
        if empty:
            raise PageError(f"{rule.name}: nothing under {', '.join(empty)}")
        return cls(sections)

    def code(self, heading: str) -> list[str]:
        """The Python blocks of a section."""
        return _BLOCK.findall(self.sections[heading] + "\n")
