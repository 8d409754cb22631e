"""The name by which GitHub knows a line of source, so that an alert is the same alert when its line moves.

Code scanning hashes, for each line, the hundred characters that begin with it, blanks left out, and counts equal
hashes. A report that carries the same values as GitHub's own upload action would add can be uploaded in any way.
"""

import struct
from collections import Counter
from itertools import chain, repeat

_WINDOW = 100
_BASE = 37
_MASK = (1 << 64) - 1
_END_OF_FILE = 65535
_NEWLINE = ord("\n")


def line_hashes(data: bytes) -> list[str]:
    """One value (``HASH:NUMBER``) for each line of a file; the end of the file begins a line of its own."""
    characters, starts = _without_blanks(data.decode("utf-8", "replace"))
    prefix = [0]
    for character in chain(characters, repeat(0, _WINDOW)):
        prefix.append((prefix[-1] * _BASE + character) & _MASK)
    highest = pow(_BASE, _WINDOW, 1 << 64)
    seen: Counter[int] = Counter()
    named: list[str] = []
    for start in starts:
        value = (prefix[start + _WINDOW] - prefix[start] * highest) & _MASK
        seen[value] += 1
        named.append(f"{value:x}:{seen[value]}")
    return named


def _without_blanks(text: str) -> tuple[list[int], list[int]]:
    """The UTF-16 units of a text with no blanks and one kind of line end, and where each line begins among them."""
    # A blank between the two halves of a line end keeps them apart.
    encoded = text.encode("utf-16-le", "surrogatepass")
    units: list[int] = []
    starts = [0]
    after_return = False
    for (unit,) in struct.iter_unpack("<H", encoded):
        if unit in (0x20, 0x09) or (after_return and unit == _NEWLINE):
            after_return = False
            continue
        after_return = unit == 0x0D
        units.append(_NEWLINE if after_return else unit)
        if units[-1] == _NEWLINE:
            starts.append(len(units))
    units.append(_END_OF_FILE)
    return units, starts
