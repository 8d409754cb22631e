"""Comments written for findings: where they go, what they change, and that they silence."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from mllint.cli import cli
from mllint.command.annotate import Annotation, CommentForm, with_comments
from mllint.engine import lint
from mllint.registry import select
from mllint.syntax.source import Source

RULES = select(("ML",), ())
HEAD = "import torch\nx = torch.zeros(3)\n"
NOQA, IGNORE = Annotation(CommentForm.NOQA), Annotation(CommentForm.IGNORE)


def annotated(text: str, annotation: Annotation) -> str:
    source = Source(text, "a.py")
    return with_comments(source, lint(text.encode(), "a.py", RULES).diagnostics, annotation)


def is_silent(text: str) -> bool:
    return lint(text.encode(), "a.py", RULES).diagnostics == ()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty folder in which every test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mllint(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


PLACES = [
    ("x.cuda()\n", "x.cuda()  @ML101\n"),
    ("x.cuda()", "x.cuda()  @ML101"),
    ("x.cuda()   \n", "x.cuda()  @ML101   \n"),
    ("x.cuda()\r\ny = 1\r\n", "x.cuda()  @ML101\r\ny = 1\r\n"),
    ("x.cuda()\ry = 1\r", "x.cuda()  @ML101\ry = 1\r"),
    ("x.cuda()  # to the GPU\n", "x.cuda()  # to the GPU  @ML101\n"),
    ("x.masked_fill(\n    x > 0,\n    1,\n)\n", "x.masked_fill(  @ML101\n    x > 0,\n    1,\n)\n"),
    ("x \\\n    .cuda()\n", "x \\\n    .cuda()  @ML101\n"),
    ("x.masked_fill(x > 0, '''\n1\n''')\n", "x.masked_fill(x > 0, '''\n1\n''')  @ML101\n"),
    ("x.cuda(); y = x == float('nan')\n", "x.cuda(); y = x == float('nan')  @ML101, ML501\n"),
    ("x.cuda(); x.cpu()\n", "x.cuda(); x.cpu()  @ML101\n"),
    ("if x:\n\tx.cuda()\n", "if x:\n\tx.cuda()  @ML101\n"),
    ("y = 'é损'; x.cuda()\n", "y = 'é损'; x.cuda()  @ML101\n"),
    ("y = 1\n", "y = 1\n"),
]


@pytest.mark.parametrize(("before", "after"), PLACES)
@pytest.mark.parametrize("annotation", [NOQA, IGNORE])
def test_a_comment_stands_where_it_is_read(before: str, after: str, annotation: Annotation) -> None:
    opening, closing = ("# noqa: ", "") if annotation is NOQA else ("# mllint: ignore[", "]")
    expected = HEAD + re.sub(r"@((?:ML\d+(?:, )?)+)", lambda match: opening + match[1] + closing, after)
    found = annotated(HEAD + before, annotation)
    assert found == expected
    assert is_silent(found)
    assert annotated(found, annotation) == found


@pytest.mark.parametrize(
    ("before", "after", "annotation"),
    [
        ("x.cuda()  # noqa: E501\n", "x.cuda()  # noqa: E501, ML101\n", NOQA),
        ("x.cuda()  # noqa:E501 long line\n", "x.cuda()  # noqa:E501, ML101 long line\n", NOQA),
        ("x.cuda()  # mllint: ignore[ML501] why\n", "x.cuda()  # mllint: ignore[ML501, ML101] why\n", IGNORE),
        ("x.cuda()  # mllint: ignore[]\n", "x.cuda()  # mllint: ignore[ML101]\n", IGNORE),
        ("x.cuda()  # noqa: E501\n", "x.cuda()  # noqa: E501  # mllint: ignore[ML101]\n", IGNORE),
        ("x.cuda()  # mllint: ignore[ML501]\n", "x.cuda()  # mllint: ignore[ML501]  # noqa: ML101\n", NOQA),
    ],
)
def test_a_comment_that_is_there_gets_the_codes(before: str, after: str, annotation: Annotation) -> None:
    found = annotated(HEAD + before, annotation)
    assert found == HEAD + after
    assert is_silent(found)


def test_where_flake8_reads_something_else_no_noqa_is_written() -> None:
    text = f"{HEAD}x.masked_fill(x > 0, '# noqa: E501')\n"
    assert annotated(text, NOQA) == text
    assert is_silent(annotated(text, IGNORE))


def test_the_reason_follows() -> None:
    text = f"{HEAD}x.cuda()\n"
    assert annotated(text, Annotation(CommentForm.NOQA, "ported")).endswith("x.cuda()  # noqa: ML101 ported\n")
    assert annotated(text, Annotation(CommentForm.IGNORE, "see #1")).endswith("  # mllint: ignore[ML101] see #1\n")


STATEMENTS = st.lists(
    st.sampled_from(
        ["x.cuda()", "; ", "y = 1", "x.masked_fill(", "x > 0, ", "1)", "\n", "\n", "  # why", "  # noqa: E501",
         "'''", "\\\n", "\r\n", "\t", "  # mllint: ignore[ML501]", "if x: ", "[", "]", " == float('nan')"]
    ),
    max_size=20,
)  # fmt: skip


@given(STATEMENTS, st.sampled_from([NOQA, IGNORE]))
def test_comments_are_all_that_is_added(fragments: list[str], annotation: Annotation) -> None:
    text = HEAD + "".join(fragments)
    result = lint(text.encode(), "a.py", RULES)
    if any(item.is_own for item in result.diagnostics):
        return
    found = with_comments(Source(text, "a.py"), result.diagnostics, annotation)
    position = 0
    for character in text:
        position = found.index(character, position) + 1
    after = lint(found.encode(), "a.py", RULES)
    assert after.status is result.status
    if annotation is IGNORE:
        assert after.diagnostics == ()
    assert with_comments(Source(found, "a.py"), after.diagnostics, annotation) == found


# --- from the command line ------------------------------------------------------------------------


def test_files_are_annotated_byte_for_byte() -> None:
    before = b"\xef\xbb\xbfimport torch\r\nx = torch.zeros(3)\r\nx.cuda()\r\n\t# \xc3\xa9 end"
    Path("a.py").write_bytes(before)
    Path("b.py").write_text("import torch\n", encoding="utf-8")
    stamp = Path("b.py").stat().st_mtime_ns
    result = mllint("--add-noqa", ".")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Silenced 1 finding with comments in 1 file, 0 left.\n"
    assert Path("a.py").read_bytes() == before.replace(b"x.cuda()", b"x.cuda()  # noqa: ML101")
    assert Path("b.py").stat().st_mtime_ns == stamp
    again = mllint("--add-noqa", ".")
    assert (again.exit_code, again.stderr) == (0, "No findings in 2 files.\n")


def test_reasons_and_paths_are_kept_apart() -> None:
    Path("a.py").write_text(f"{HEAD}x.cuda()\n", encoding="utf-8")
    Path("b.py").write_text(f"{HEAD}x.cuda()\n", encoding="utf-8")
    assert mllint("--add-ignore", "a.py").exit_code == 0
    assert Path("a.py").read_text("utf-8").endswith("x.cuda()  # mllint: ignore[ML101]\n")
    assert mllint("--add-ignore=old code", "b.py").exit_code == 0
    assert Path("b.py").read_text("utf-8").endswith("x.cuda()  # mllint: ignore[ML101] old code\n")


def test_what_is_not_reported_gets_no_comment() -> None:
    source = f"{HEAD}x.cuda()\ny = x == float('nan')\n"
    Path("a.py").write_text(source, encoding="utf-8")
    mllint("--suppress-rule", "ML5", "a.py")
    assert mllint("--add-noqa", "--severity", "ML1=info", "--min-severity", "warning", "a.py").exit_code == 0
    assert Path("a.py").read_text("utf-8") == source
    assert mllint("--add-noqa", "a.py").exit_code == 0
    assert Path("a.py").read_text("utf-8") == source.replace("x.cuda()", "x.cuda()  # noqa: ML101")


def test_what_cannot_be_silenced_is_reported() -> None:
    Path("a.py").write_text(f"{HEAD}x.masked_fill(x > 0, '# noqa: E501')\nx.cuda()\n", encoding="utf-8")
    Path("b.py").write_text("import torch\ndef f(:\n", encoding="utf-8")
    result = mllint("--add-noqa", "--output-format", "concise", ".")
    assert result.exit_code == 1
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [["a.py:3:1:", "ML101"], ["b.py:2:7:", "ML001"]]
    assert result.stderr.startswith("Silenced 1 finding with comments in 1 file, 2 left.")


def test_a_reason_that_the_encoding_lacks_changes_nothing() -> None:
    data = f"# coding: latin-1\n{HEAD}x.cuda()  # é\n".encode("latin-1")
    Path("a.py").write_bytes(data)
    result = mllint("--add-noqa=损", "a.py")
    assert result.exit_code == 1
    assert "a.py: no comment was written: " in result.stderr
    assert Path("a.py").read_bytes() == data


@pytest.mark.parametrize(
    "arguments", [["--add-noqa", "--add-ignore"], ["--add-noqa", "--fix"], ["--add-noqa=a\nb"], ["--add-ignore", "-"]]
)
def test_what_cannot_be_done(arguments: list[str]) -> None:
    Path("a.py").write_text(f"{HEAD}x.cuda()\n", encoding="utf-8")
    assert mllint(*arguments, *([] if "-" in arguments else ["a.py"])).exit_code == 2
    assert Path("a.py").read_text("utf-8") == f"{HEAD}x.cuda()\n"


def test_a_file_that_cannot_be_written_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.py").write_text(f"{HEAD}x.cuda()\n", encoding="utf-8")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    result = mllint("--add-noqa", "--output-format", "concise", "a.py")
    assert result.exit_code == 2
    assert result.stdout.startswith("a.py:3:1: ML101")
