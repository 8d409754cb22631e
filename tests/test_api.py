"""The library: source in, values out, nothing raised, nothing touched."""

import builtins
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mllint
from mllint import FixResult, Result, Settings, Status, fix_source, lint_source

MISTAKES = """\
import math
import torch

x = torch.zeros(3)
x.cuda()
print(x.sum() == math.nan)
"""


def codes(result: Result) -> list[str]:
    return [found.code for found in result.diagnostics]


def test_text_and_bytes_give_the_same() -> None:
    from_text = lint_source(MISTAKES)
    assert codes(from_text) == ["ML101", "ML501"]
    assert from_text == lint_source(MISTAKES.encode())
    assert from_text == lint_source(bytearray(MISTAKES.encode()))  # type: ignore[arg-type]
    assert from_text.status is Status.OK
    assert from_text.diagnostics[0].path == "<string>"
    assert lint_source(MISTAKES, "a/b.py").diagnostics[0].path == "a/b.py"


def test_settings_hold() -> None:
    assert codes(lint_source(MISTAKES, settings=Settings(select=("ML5",)))) == ["ML501"]
    assert codes(lint_source(MISTAKES, settings=Settings(ignore=("nan-comparison",)))) == ["ML101"]
    ignored = Settings(per_file_ignores=(("tests/*", ("ML101",)),))
    assert codes(lint_source(MISTAKES, "tests/a.py", ignored)) == ["ML501"]


def test_a_fix_gives_bytes_and_what_remains() -> None:
    fixed = fix_source(MISTAKES)
    assert b"x = x.cuda()" in fixed.data
    assert [found.code for found in fixed.applied] == ["ML101", "ML501"]
    assert fixed.result.diagnostics == ()
    again = fix_source(fixed.data)
    assert (again.data, again.applied) == (fixed.data, ())


def test_bytes_are_given_back_untouched_where_nothing_changes() -> None:
    data = b"\xef\xbb\xbfimport torch\r\n\ty = ("
    assert fix_source(data).data is data


def test_results_are_values() -> None:
    result, fixed = lint_source(MISTAKES), fix_source(MISTAKES)
    assert pickle.loads(pickle.dumps((result, fixed))) == (result, fixed)
    assert isinstance(fixed, FixResult)
    for value, name in ((result, "path"), (fixed, "data"), (result.diagnostics[0], "code")):
        with pytest.raises(AttributeError):
            setattr(value, name, "x")
    assert hash(result) == hash(lint_source(MISTAKES))


def test_a_selector_that_names_no_rule_is_said_and_not_raised() -> None:
    wrong = Settings(select=("ML777",))
    result = lint_source(MISTAKES, settings=wrong)
    assert result.status is Status.INTERNAL_ERROR
    assert [(found.code, found.message) for found in result.diagnostics] == [("ML000", "unknown rule selector `ML777`")]
    fixed = fix_source(MISTAKES, settings=wrong)
    assert (fixed.data, fixed.result, fixed.refused) == (
        MISTAKES.encode(),
        result,
        "unknown rule selector `ML777`",
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# coding: latin-1\n" + MISTAKES.replace("x.cuda()", "'é'; x.cuda()"), (6, 6)),
        ("# coding: utf-8\n" + MISTAKES.replace("x.cuda()", "'损'; x.cuda()"), (6, 6)),
        ("\ufeff" + MISTAKES, (5, 1)),
        (MISTAKES.replace("\n", "\r\n"), (5, 1)),
    ],
)
def test_text_is_read_as_a_file_would_hold_it(source: str, expected: tuple[int, int]) -> None:
    place = lint_source(source).diagnostics[0].location
    assert (place.row, place.column) == expected
    assert "x = x.cuda()" in fix_source(source).data.decode("latin-1")


@pytest.mark.parametrize(
    "source",
    [
        "# coding: latin-1\nimport torch\n'损'",  # a character that the declared encoding lacks
        "# coding: no-such-thing\nimport torch\n",
        "import torch\n'\udcff'",
        "import torch\n\0",
        "import torch\nprint 'py2'",
        "import torch\nif x:\n\ty\n        z\n",
        b"import torch\n\xff\n",
        b"\xff\xfei\0m\0p\0o\0r\0t\0 \0t\0o\0r\0c\0h\0",
        "import torch\nx = " + "(" * 5000 + ")" * 5000,
        "import torch\nx = " + " + ".join(["a"] * 5000),
        "import torch\n" + "".join(f"{' ' * depth}if x:\n" for depth in range(150)) + " " * 150 + "pass\n",
        "import torch\nx" + ".a" * 5000,
        "import torch\nx = [" + "1, " * 5000 + "]",
        "import torch\n" + "if x: pass\nel" * 2100 + "se: pass",
    ],
)
def test_nothing_is_raised(source: str | bytes) -> None:
    result = lint_source(source)
    assert result.status in (Status.OK, Status.SYNTAX_ERROR, Status.SKIPPED)
    assert len(result.diagnostics) == (result.status is Status.SYNTAX_ERROR)
    fixed = fix_source(source, unsafe=True)
    assert fixed.result == result
    assert fixed.applied == ()


@settings(max_examples=150)
@given(st.text(max_size=60) | st.binary(max_size=60), st.booleans())
def test_nothing_is_raised_whatever_comes(source: str | bytes, unsafe: bool) -> None:
    start: str | bytes = MISTAKES if isinstance(source, str) else MISTAKES.encode()
    whole = start + source  # type: ignore[operator]
    result = lint_source(whole)
    assert isinstance(result, Result)
    assert isinstance(fix_source(whole, unsafe=unsafe).data, bytes)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are opened while the test runs, as far as Python opens them."""
    lint_source(MISTAKES)  # loads the rules
    fix_source(MISTAKES)
    names: list[str] = []

    def watch(module: object, name: str) -> None:
        original = getattr(module, name)

        def spy(*arguments: object, **options: object) -> object:
            names.append(str(arguments[0]))
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, spy)

    watch(builtins, "open")
    watch(io, "open")
    for name in ("stat", "scandir", "listdir"):
        watch(os, name)
    return names


def test_the_disk_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net.py").write_text("import torch\n")
    (tmp_path / "pyproject.toml").write_text("[tool.mllint]\nselect = []\n")
    monkeypatch.chdir(tmp_path)
    opened.clear()
    source = "from net import Net\n" + MISTAKES
    assert codes(lint_source(source, str(tmp_path / "main.py"))) == ["ML101", "ML501"]
    fix_source(source, str(tmp_path / "main.py"))
    assert opened == []
    assert capfd.readouterr() == ("", "")


def test_sibling_files_are_looked_up_in_a_given_project(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    sibling = tmp_path / "models" / "net.py"
    sibling.write_text("import torch\n\n\ndef noise() -> torch.Tensor:\n    return torch.zeros(3)\n")
    source = "import torch\nfrom models.net import noise\n\nx = noise()\nx.cuda()\n"
    path = str(tmp_path / "main.py")
    project = Settings(project_root=str(tmp_path))
    assert codes(lint_source(source, path)) == []
    found = lint_source(source, path, project)
    assert codes(found) == ["ML101"]
    assert found.dependencies == (str(sibling),)
    sibling.write_text("def noise():\n    return object()\n")
    assert codes(lint_source(source, path, project)) == []


@pytest.mark.parametrize("odd", ["/no/such/folder", "a\0b", "\ud800", ""])
def test_a_project_or_path_that_cannot_be(odd: str) -> None:
    source = "from net import Net\n" + MISTAKES
    for path, root in ((odd, "."), ("a.py", odd), (odd, odd)):
        settings = Settings(project_root=root)
        assert codes(lint_source(source, path, settings)) == ["ML101", "ML501"]
        assert len(fix_source(source, path, settings).applied) == 2


def test_importing_the_package_loads_nothing() -> None:
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import mllint\n"
        "assert mllint.__version__\n"
        "new = {name for name in set(sys.modules) - before if name.startswith(('mllint', 'libcst', 'msgspec'))}\n"
        "assert new == {'mllint', 'mllint.version'}, new\n"
        "assert 'lint_source' in dir(mllint)\n"
        "from mllint import Settings, Diagnostic\n"
        "assert 'libcst' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_everything_promised_is_there() -> None:
    for name in mllint.__all__:
        assert getattr(mllint, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'lint_sauce'"):
        mllint.lint_sauce  # type: ignore[attr-defined]  # noqa: B018
