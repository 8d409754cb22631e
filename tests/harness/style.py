"""The style of everything that mllint says in one line."""

import re


def assert_style(text: str, length: int) -> None:
    """One line, lower case, code in backticks, no final full stop, not longer than this."""
    assert text, "empty"
    assert len(text) <= length, f"{len(text)} characters: {text}"
    assert "\n" not in text
    assert text == text.strip()
    assert text.count("`") % 2 == 0, f"a backtick is missing: {text}"
    assert not text.endswith("."), text
    # `NaN`, `DDP` and `DataParallel` are names; `The` is the beginning of a sentence.
    assert not re.match(r"[A-Z][a-z]*\b", text), f"begins in upper case: {text}"
