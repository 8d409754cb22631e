"""The style of everything that mllint says in one line."""


def assert_style(text: str, length: int) -> None:
    """One line, lower case, code in backticks, no final full stop, not longer than this."""
    assert text, "empty"
    assert len(text) <= length, f"{len(text)} characters: {text}"
    assert "\n" not in text
    assert text == text.strip()
    assert text.count("`") % 2 == 0, f"a backtick is missing: {text}"
    assert not text.endswith("."), text
    first_word = text.partition(" ")[0]
    lower = text[0].islower() or text[0] == "`" or text[0].isdigit()
    assert lower or first_word.isupper(), f"begins in upper case: {text}"
