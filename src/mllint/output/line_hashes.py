"""The name by which GitHub knows a line of source, so that an alert is the same alert when its line moves.

Code scanning hashes, for each line, the hundred characters that begin with it, blanks left out, and counts equal
hashes. A report that carries the same values as GitHub's own upload action would add can be uploaded in any way.
"""

import sys
from collections import Counter
from functools import lru_cache, reduce

_WINDOW = 100
_BASE = 37
_MASK = (1 << 64) - 1
_BEHIND = "\uffff" + "\0" * _WINDOW
"""What is read behind the end of the file."""
_ENCODING = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"


def line_hashes(data: bytes) -> list[str]:
    """One value (``HASH:NUMBER``) for each line of a file; the end of the file begins a line of its own."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").replace(" ", "").replace("\t", "")
    units = memoryview((text + _BEHIND).encode(_ENCODING, "surrogatepass")).cast("H")
    seen: Counter[int] = Counter()
    named: list[str] = []
    start = 0
    for line in text.split("\n"):
        value = _hash(units[start : start + _WINDOW].tobytes())
        seen[value] += 1
        named.append(f"{value:x}:{seen[value]}")
        start += len(line.encode(_ENCODING, "surrogatepass")) // 2 + 1
    return named


@lru_cache(maxsize=100_000)
def _hash(window: bytes) -> int:
    return reduce(lambda value, unit: (value * _BASE + unit) & _MASK, memoryview(window).cast("H"), 0)
