"""Colours, and what of a text may be shown on a terminal."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass


def wants_colour(choice: str, *, is_terminal: bool, environment: Mapping[str, str]) -> bool:
    """Whether to colour. ``choice`` (``auto``, ``always``, ``never``) goes before the environment.

    There ``NO_COLOR`` goes before ``FORCE_COLOR`` and ``CLICOLOR_FORCE``, and these before the
    question whether the text goes to a terminal.
    """
    if choice != "auto":
        return choice == "always"
    if environment.get("NO_COLOR"):
        return False
    if any(environment.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return is_terminal and environment.get("TERM") != "dumb"


@dataclass(frozen=True, slots=True)
class Style:
    """Paints pieces of text, or leaves them as they are."""

    enabled: bool = False

    def bold(self, text: str) -> str:
        """Emphasised text."""
        return self._paint("1", text)

    def code(self, text: str) -> str:
        """A rule's code, and the mark under what is wrong."""
        return self._paint("1;31", text)

    def frame(self, text: str) -> str:
        """Line numbers and the lines around an excerpt."""
        return self._paint("1;34", text)

    def hint(self, text: str) -> str:
        """What can be done."""
        return self._paint("1;36", text)

    def added(self, text: str) -> str:
        """A line that a fix adds."""
        return self._paint("32", text)

    def removed(self, text: str) -> str:
        """A line that a fix removes."""
        return self._paint("31", text)

    def _paint(self, codes: str, text: str) -> str:
        return f"\x1b[{codes}m{text}\x1b[0m" if self.enabled and text else text


_SHOWN_ONLY_BY_EFFECT = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def printable(text: str) -> str:
    """The text with every character that would steer a terminal replaced, one for one."""
    if text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    point = ord(character)
    if point < 0x20:
        return chr(0x2400 + point)
    return "\ufffd" if unicodedata.category(character) in _SHOWN_ONLY_BY_EFFECT else character


def width(text: str) -> int:
    """How many columns of a terminal the text fills."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
