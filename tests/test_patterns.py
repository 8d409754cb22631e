"""Regular expressions: none of them takes more than a moment, whatever the text is like."""

import importlib
import itertools
import pkgutil
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

import mllint

LENGTH = 4_000
"""How long a text is that is one thing over and over: a banner of ``#``, a table of blanks."""
_PARTS = ("#", " ", "\n", "\\\n", ")", "(", "a", ".", "=", "1", "'", '"', "_", "-", ",", "/", "%", "[", "\t")
_UNITS = tuple("".join(parts) for length in (1, 2) for parts in itertools.product(_PARTS, repeat=length))


def _patterns() -> Iterator[re.Pattern[Any]]:
    for module in pkgutil.walk_packages(mllint.__path__, "mllint."):
        # What only developers run, and what is run when it is imported.
        if module.name.startswith("mllint._dev") or module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            items = value if isinstance(value, (tuple, list, dict, set, frozenset)) else (value,)
            yield from (item for item in items if isinstance(item, re.Pattern))


PATTERNS = list(dict.fromkeys(_patterns()))


def test_the_patterns_are_found() -> None:
    assert len(PATTERNS) > 40


@pytest.mark.parametrize("pattern", PATTERNS, ids=range(len(PATTERNS)))
def test_no_text_takes_long(pattern: re.Pattern[Any]) -> None:
    written = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode()
    for unit in (*_UNITS, *re.findall(r"\w+", written)):
        text = unit * (LENGTH // len(unit))
        started = time.process_time()
        pattern.search(text if isinstance(pattern.pattern, str) else text.encode())
        assert time.process_time() - started < 1, unit
