"""A file that is parsed in pieces has the tree that it has as a whole."""

import contextlib

import libcst as cst
import pytest

from harness.cases import FIXTURES
from mllint._dev.scaling import source
from mllint.syntax import parse as parsing
from mllint.syntax import pieces as cutting
from mllint.syntax.parse import ParseError, parsable, parse
from mllint.syntax.pieces import UncertainError, joined, pieces
from mllint.syntax.source import Source

ODD = {
    "a string with a program": 'x = 1\n\ntext = """\n\ndef f():\n    pass\n\n"""\n\ndef g():\n    pass\n',
    "brackets over blank lines": "x = [\n\n1,\n\n]\nif x:\n    pass\n\nimport a\n",
    "a continued line": "x = 1 + \\\n\\\n2\nimport a\n\nimport b\n",
    "a decorator on its own": "import a\n\n@a.b\n\ndef f():\n    pass\n\nimport b\n",
    "else behind a blank line": "import a\n\nif a:\n    b()\n\nelse:\n    c()\n\nwhile a:\n    b()\n\nelse:\n    c()\n",
    "comments of all indentations": (
        "import a\n# 1\n\ndef f():\n    pass\n    # 2\n  # 3\n# 4\n\n# 5\n"
        "class A:\n    # 6\n    x = 1\n\n    # 7\n\n# 8\n"
    ),
    "blanks in blank lines": "import a\n  \ndef f():\n    pass\n    \n\nimport b\n\t\nimport c\n",
    "tabs and spaces": "def f():\n\tpass\n\ndef g():\n    pass\n\ndef h():\n  pass\n",
    "line ends of Windows": "import a\r\n\r\n# 1\r\ndef f():\r\n    pass\r\n\r\n\r\nimport b\r\n",
    "line ends of two kinds": "import a\r\n\r\ndef f():\n    pass\n\nimport b\r\n",
    "one line after the other": "import a\nimport b\nfor c in a: b()\nimport d",
    "a header and a footer": "#!/usr/bin/env python\n# 1\n\n# 2\nimport a\n\nimport b\n# 3\n\n# 4",
    "no block in the first piece": "import a\n\nimport b\n\ndef f():\n  pass\n\ndef g():\n  pass\n",
    "semicolons": "import a; import b\nimport c;\nimport d\n",
    "form feeds": "import a\n\f\ndef f():\n    pass\n\f\nimport b\n",
    "empty": "",
    "a comment": "# 1\n",
}


def _in_pieces(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> cst.Module | None:
    """The tree of all pieces; ``None`` where the text is not parsed in pieces."""
    monkeypatch.setattr(cutting, "SIZE", size)
    parts = pieces(text)
    assert "".join(parts) == text
    assert all(len(part) >= size for part in parts[:-1])
    with contextlib.suppress(UncertainError, cst.ParserSyntaxError):
        return joined([cst.parse_module(part) for part in parts]) if len(parts) > 1 else None
    return None


@pytest.mark.parametrize("size", [1, 20])
@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_texts(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = parsable(text)
    found = _in_pieces(text, size, monkeypatch)
    assert found is None or found.deep_equals(cst.parse_module(text))


def test_fixtures(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    for path in sorted(FIXTURES.rglob("*.py"))[::6]:
        text = parsable(Source.from_bytes(path.read_bytes(), str(path)).text)
        found = _in_pieces(text, 300, monkeypatch)
        if found is not None:
            count += 1
            assert found.deep_equals(cst.parse_module(text)), path
    assert count > 50


def test_odd_texts_are_cut_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {name for name, text in ODD.items() if _in_pieces(parsable(text), 1, monkeypatch) is None}
    assert whole == {
        "a string with a program", "a decorator on its own", "tabs and spaces", "line ends of two kinds",
        "blanks in blank lines", "empty", "a comment",
    }  # fmt: skip


def test_a_large_file_is_never_shown_to_the_parser_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native parser's memory is ten times that of the tree."""
    text = source(10_000, mistakes=True)
    shown: list[int] = []
    real = cst.parse_module

    def parse_module(part: str) -> cst.Module:
        shown.append(len(part))
        return real(part)

    monkeypatch.setattr(parsing.cst, "parse_module", parse_module)
    module = parse(Source.from_bytes(text.encode(), "large.py"))
    assert module.code == text
    assert sum(shown) == len(text)
    assert max(shown) < 2.5 * cutting.SIZE


def test_an_error_has_its_row_in_the_file() -> None:
    rows = [f"def f{number}():\n    return {number}\n" for number in range(20_000)]
    rows[15_000] = "def f(:\n    pass\n"
    with pytest.raises(ParseError) as caught:
        parse(Source.from_bytes("\n".join(rows).encode(), "large.py"))
    assert (caught.value.row, caught.value.column) == (45_001, 7)


def test_a_small_file_is_parsed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "pieces", None)
    assert parse(Source.from_bytes(b"import a\n\nimport b\n" * 100, "small.py")).body
