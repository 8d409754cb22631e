"""Suppression comments: flake8's own verdict for `noqa`, and where mllint's own comments reach."""

import io
import subprocess
import sys
from argparse import Namespace

import pytest
from flake8.processor import FileProcessor
from flake8.violation import Violation
from hypothesis import given
from hypothesis import strategies as st

from mllint.syntax.layout import layout_of
from mllint.syntax.source import Source
from mllint.syntax.suppressions import Suppressions

OPTIONS = Namespace(
    hang_closing=False,
    indent_size=4,
    max_line_length=79,
    max_doc_length=None,
    verbose=0,
    disable_noqa=False,
)


def suppressions(text: str, *, noqa: bool = True) -> Suppressions:
    return Suppressions(Source(text, "train.py"), noqa=noqa)


def silenced_rows(text: str, code: str = "ML101", name: str = "discarded-tensor-result") -> list[int]:
    source = Source(text, "train.py")
    found = Suppressions(source)
    return [row for row in range(1, source.rows + 1) if found.silences(code, row, name)]


def flake8_silences(text: str, code: str, row: int) -> bool:
    """What flake8 itself would do with a finding of this code on this row."""
    lines = io.StringIO(text, newline=None).readlines()
    line = FileProcessor("train.py", OPTIONS, lines).noqa_line_for(row)
    # Outside of its mapping flake8 reads the physical line from the disk.
    line = lines[row - 1] if line is None else line
    return Violation(code, "train.py", row, 1, "", line).is_inline_ignored(False)


# --- noqa -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "silent"),
    [
        ("# noqa", True),
        ("# NoQA", True),
        ("# noqa: ML101", True),
        ("# NOQA:ML101", True),
        ("# noqa: ML1", True),
        ("# noqa:E501,ML1", True),
        ("# noqa: E501 ML101", True),
        ("# noqa: ML", True),
        ("# noqa : E501", True),
        ("# type: ignore # noqa: ML101", True),
        ("# noqa: ML102", False),
        ("# noqa: E501", False),
        ("#noqa", False),
        ("#noqa: ML101", False),
        ("#  noqa: ML101", False),
        ("# noqa: ml101", False),
        ("# noqa: E501 some reason ML101", False),
    ],
)
def test_noqa_is_read_as_flake8_reads_it(comment: str, silent: bool) -> None:
    text = f"x.cuda()  {comment}\n"
    assert suppressions(text).silences("ML101", 1) is silent
    assert flake8_silences(text, "ML101", 1) is silent


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a = 1\nx.cuda()  # noqa\nb = 2\n", [2]),
        ("f(\n    x,\n)  # noqa\n", [3]),
        ("f(  # noqa\n    x,\n)\n", [1]),
        ('x = """\na\n"""  # noqa\ny = 1\n', [1, 2, 3]),
        ('x = """\n# noqa\n"""\ny = 1\n', [1, 2, 3]),
        ("x = 1 + \\\n    2  # noqa\ny = 1\n", [1, 2]),
        ("x = 1 + \\\r\n    2  # noqa\r\ny = 1\r\n", [1, 2]),
        ("x = 1  # noqa\ry = 1\r", [1]),
        ("x = '# noqa'\n", [1]),
        ("x = 1  # noqa", [1]),
        ("def f(:\n  '''\n  x  # noqa\n", [3]),
    ],
)
def test_noqa_reaches_the_chunk(text: str, rows: list[int]) -> None:
    assert silenced_rows(text) == rows
    last_row = Source(text, "train.py").rows
    assert [row for row in range(1, last_row + 1) if flake8_silences(text, "ML101", row)] == rows


FRAGMENTS = st.lists(
    st.sampled_from(
        ["x = 1", "f(", ")", "[", "]", '"""', "'''", "'a'", "\\", "\n", "\n", "\n", "\r\n", "    ",
         "# noqa", "# noqa: ML1", "# noqa:E5", "#noqa", "if x:", "\t", "\f", ";", "é", "\x0b"]
    ),
    max_size=25,
)  # fmt: skip


@given(FRAGMENTS)
def test_agrees_with_flake8_on_any_text(fragments: list[str]) -> None:
    text = "".join(fragments)
    source = Source(text, "train.py")
    found = Suppressions(source)
    for row in range(1, source.rows + 1):
        if source.line(row):
            assert found.silences("ML101", row) is flake8_silences(text, "ML101", row), row


@pytest.mark.parametrize(
    ("text", "skipped"),
    [
        ("# flake8: noqa\nx = 1\n", True),
        ("x = 1\n    # FLAKE8: NOQA\n", True),
        ("# flake8: noqa: E501\n", True),
        ('def f():\n    """Doc.\n\n    # flake8: noqa\n    """\n', True),
        ("x = 1  # flake8: noqa\n", False),
        ("# flake8 noqa\n", False),
        ("x = 1\n", False),
    ],
)
def test_file_is_skipped_where_flake8_skips_it(text: str, skipped: bool) -> None:
    assert suppressions(text).file_is_skipped is skipped
    assert not suppressions(text, noqa=False).file_is_skipped
    processor = FileProcessor("train.py", OPTIONS, text.splitlines(keepends=True))
    assert processor.should_ignore_file() is skipped


def test_without_noqa_only_own_comments_count() -> None:
    text = "x.cuda()  # noqa\ny.cuda()  # mllint: ignore[ML101]\n"
    found = suppressions(text, noqa=False)
    assert not found.silences("ML101", 1)
    assert found.silences("ML101", 2)


# --- mllint's own comments ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selectors", "silent"),
    [
        ("ML101", True),
        ("ml101", True),
        ("ML1", True),
        ("ML", True),
        ("ML201, ML101", True),
        ("ML201,ML101", True),
        (" ML101 ", True),
        ("discarded-tensor-result", True),
        ("nan-comparison, discarded-tensor-result", True),
        ("ALL", True),
        ("all", False),
        ("ML201", False),
        ("ML1010", False),
        ("M", False),
        ("discarded", False),
        ("", False),
        (",", False),
    ],
)
def test_selectors(selectors: str, silent: bool) -> None:
    rows = silenced_rows(f"x.cuda()  # mllint: ignore[{selectors}] kept for its side effect\n")
    assert rows == ([1] if silent else [])


@pytest.mark.parametrize(
    ("comment", "silent"),
    [
        ("# mllint: ignore[ML101]", True),
        ("#mllint:ignore[ML101]", True),
        ("# type: ignore  # mllint: ignore[ML101]", True),
        ("# mllint: ignore[ML201] # mllint: ignore[ML101]", True),
        ("# mllint: ignore", False),
        ("# mllint: ignore ML101", False),
        ("# mllint ignore[ML101]", False),
        ("# MLLINT: ignore[ML101]", False),
        ("; '# mllint: ignore[ML101]'", False),
    ],
)
def test_form(comment: str, silent: bool) -> None:
    assert silenced_rows(f"x.cuda()  {comment}\n") == ([1] if silent else [])


IGNORE = "# mllint: ignore[ML101] why"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        # Behind code: the line, or the chunk of a backslash or a multi-line string.
        (f"a = 1\nx.cuda()  {IGNORE}\nb = 2\n", [2]),
        (f"f(  {IGNORE}\n    x,\n)\n", [1]),
        (f"x = 1 + \\\n    y  {IGNORE}\nz = 1\n", [1, 2]),
        (f'x = """\na\n"""  {IGNORE}\ny = 1\n', [1, 2, 3]),
        (f"x = 1  {IGNORE}", [1]),
        # Alone above a statement: its first logical line.
        (f"{IGNORE}\nx.cuda()\ny = 1\n", [2]),
        (f"{IGNORE}\n\n# more\nx.cuda()\n", [4]),
        (f"{IGNORE}\nf(\n    x,\n)\ny = 1\n", [2, 3, 4]),
        (f"{IGNORE}\nfor x in (\n    y\n):\n    z\n", [2, 3, 4]),
        (f"if a:\n    {IGNORE}\n    x.cuda()\n    y\n", [3]),
        (f"if a:\n    x\n{IGNORE}\nelse:\n    y\n", [4]),
        (f"{IGNORE}\nx.cuda(); y.cuda()\n", [2]),
        # A decorated definition: down to its header.
        (f"{IGNORE}\n@a\n@b(\n    c\n)\ndef f():\n    pass\n", [2, 3, 4, 5, 6]),
        (f"@a\n{IGNORE}\ndef f():\n    pass\n", [3]),
        # Inside brackets: the next line of code.
        (f"f(\n    {IGNORE}\n    x,\n    y,\n)\n", [3]),
        (f"f(\n    {IGNORE}\n\n    # more\n    x,\n)\n", [5]),
        (f"f(\n    x,\n    {IGNORE}\n)\n", [4]),
        # About nothing.
        (f"x = 1\n{IGNORE}\n", []),
        (IGNORE, []),
        (f"x = '''\n{IGNORE}\n'''\ny = 1\n", []),
        # Line ends of every kind.
        (f"{IGNORE}\r\nx.cuda()\r\ny\r\n", [2]),
        (f"{IGNORE}\rx.cuda()\ry\r", [2]),
        (f"a\r{IGNORE}\nx.cuda()\r\ny", [3]),
        # What the tokenizer cannot read loses nothing that stands before it.
        (f"x.cuda()  {IGNORE}\ny = (\n", [1]),
        (f"x.cuda()  {IGNORE}\ny = '''\n", [1]),
        (f"if a:\n        x  {IGNORE}\n    y\n", [2]),
    ],
)
def test_reach(text: str, rows: list[int]) -> None:
    assert silenced_rows(text) == rows


def test_file_ignore_covers_the_file_from_anywhere() -> None:
    text = "x.cuda()\n\ny = 1  # mllint: file-ignore[ML101, nan-comparison] ported code\n"
    assert silenced_rows(text) == [1, 2, 3]
    assert silenced_rows(text, "ML501", "nan-comparison") == [1, 2, 3]
    assert silenced_rows(text, "ML201", "graph-held-by-accumulator") == []
    assert silenced_rows("'# mllint: file-ignore[ML101]'\n") == []


def test_layout_gives_each_comment_its_place() -> None:
    comments = layout_of("# a\nx = f(  # b\n    1)\n    # é c\n").comments
    assert [(c.row, c.column, c.text) for c in comments] == [
        (1, 0, "# a"),
        (2, 8, "# b"),
        (4, 4, "# é c"),
    ]


def test_nothing_is_tokenized_where_no_comment_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    def tokenized(text: str) -> None:
        raise AssertionError(text)

    monkeypatch.setattr("mllint.syntax.source.layout_of", tokenized)
    assert not suppressions("x.cuda()  # a comment\n").silences("ML101", 1)
    with pytest.raises(AssertionError):
        suppressions("x.cuda()  # noqa\n").silences("ML101", 1)


def test_flake8_is_not_imported_before_it_is_asked() -> None:
    program = (
        "import sys\n"
        "from mllint.syntax.source import Source\n"
        "from mllint.syntax.suppressions import Suppressions\n"
        "found = Suppressions(Source('x  # mllint: ignore[ML101]', 'a.py'))\n"
        "assert found.silences('ML101', 1) and not found.file_is_skipped\n"
        "assert 'flake8' not in sys.modules and 'libcst' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@given(st.text(max_size=60) | FRAGMENTS.map("".join))
def test_any_text_is_survived(text: str) -> None:
    found = suppressions(text + " # mllint: ignore[ML1] # noqa # flake8: noqa")
    assert found.file_is_skipped in (True, False)
    for row in range(-1, text.count("\n") + 4):
        assert found.silences("ML101", row, "name") in (True, False)
