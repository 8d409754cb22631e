"""The contract with flake8, point by point, with the real flake8.

A process that lints several times with several option lists (`DRIVER`) saves most of the start-up
time; each of its runs is a whole flake8 run.
"""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mllint.flake8_plugin import Plugin
from mllint.flake8_session import _original_bytes

DRIVER = """
import contextlib, io, json, sys
from flake8.main.cli import main
for arguments in json.load(sys.stdin):
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(output):
        main(arguments)
    output.flush()
    print(json.dumps(output.buffer.getvalue().decode().splitlines()))
"""

EXTRA_RULES = """
import libcst as cst
import mllint.registry
from mllint.rule import Finding, Rule

def rule(code, module):
    return Rule(code=code, message="a name", help="h", frameworks=frozenset({"torch"}),
                since="0.1.0", module=module)

advice = rule("ML901", "mllint.rules.advice")
@advice.on(cst.Import)
def check(node, context):
    yield Finding(node)

failing = rule("ML199", "mllint.rules.failing")
@failing.on(cst.Import)
def fail(node, context):
    raise ZeroDivisionError("first\\nsecond")

known = mllint.registry.all_rules()
mllint.registry.all_rules = lambda: tuple(
    sorted((*known, advice, *EXTRA), key=lambda rule: rule.code))
"""
"""A `sitecustomize` that adds rules to the registry, in worker processes too."""

FINDING = "import torch\nx = torch.zeros(3)\nx.cuda()\n"
SHOWN = "./train.py:3:1: ML101"


def flake8(
    folder: Path, *arguments: str, stdin: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """One run of flake8 in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "flake8", *arguments],
        cwd=folder,
        input=stdin,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def flake8_runs(folder: Path, *runs: Sequence[str], **environment: str) -> list[list[str]]:
    """The output lines of several runs of flake8 in one process."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        cwd=folder,
        input=json.dumps([list(arguments) for arguments in runs]),
        env=os.environ | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def codes(lines: Sequence[str]) -> list[str]:
    return [line.split(": ", 1)[1].split()[0] for line in lines]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one finding and no configuration of anybody."""
    (tmp_path / "train.py").write_text(FINDING, encoding="utf-8")
    (tmp_path / "setup.cfg").write_text("[flake8]\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    return tmp_path


def extra_rules(folder: Path, extra: str = "") -> dict[str, str]:
    """The environment in which mllint has the extra rules, made of a folder outside of the project."""
    site = folder.parent / f"{folder.name}-site"
    site.mkdir()
    program = EXTRA_RULES.replace("EXTRA", f"[{extra}]")
    (site / "sitecustomize.py").write_text(program, encoding="utf-8")
    return {"PYTHONPATH": str(site)}


# --- Registration ---------------------------------------------------------------------------------


def test_entry_point_loads_and_has_a_code_that_flake8_accepts() -> None:
    (entry,) = (
        entry
        for entry in importlib.metadata.entry_points(group="flake8.extension")
        if entry.dist is not None and entry.dist.name == "flake8-mllint"
    )
    assert re.fullmatch(r"[A-Z]{1,3}[0-9]{0,3}", entry.name)
    assert entry.load() is Plugin
    assert (Plugin.name, Plugin.version) == ("mllint", importlib.metadata.version("flake8-mllint"))


def test_flake8_reports_by_default(project: Path) -> None:
    done = flake8(project)
    assert done.stdout.startswith(SHOWN)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    assert done.returncode == 1


# --- Selection ------------------------------------------------------------------------------------


def test_flake8_selection_holds_and_advice_stays_off_unless_named(project: Path) -> None:
    off: list[list[str]] = [
        [],
        ["--ignore=E203"],
        ["--select=ML"],
        ["--extend-select=ML"],
        ["--select=ML,E"],
        ["--select=M"],
        ["--extend-select=ML1"],
        ["--isolated"],
    ]
    on = [
        ["--select=ML9"],
        ["--select=ML901"],
        ["--extend-select=ML901"],
        ["--select=ML90", "--ignore=E203"],
        ["--select=E,ML9", "--extend-select=F"],
    ]
    other = [
        ["--select=E,F"],
        ["--extend-ignore=ML"],
        ["--ignore=ML1"],
        ["--per-file-ignores=train.py:ML101"],
        ["--select=ML999,ML101"],
    ]
    found = [codes(lines) for lines in flake8_runs(project, *off, *on, *other, **extra_rules(project))]
    assert found[: len(off)] == [["ML101"]] * len(off)
    assert ["ML901" in run for run in found[len(off) : len(off) + len(on)]] == [True] * len(on)
    assert found[len(off) + len(on) :] == [[], [], [], [], ["ML101"]]


@pytest.mark.slow
def test_settings_of_the_project_hold_and_may_choose_advice(project: Path) -> None:
    table = '[tool.mllint.lint]\nselect = ["ML5", "ML901"]\n'
    (project / "pyproject.toml").write_text(table, encoding="utf-8")
    runs = flake8_runs(project, [], ["--extend-select=ML101"], ["--select=ML1"], **extra_rules(project))
    assert [codes(lines) for lines in runs] == [["ML901"], ["ML901", "ML101"], ["ML101"]]


@pytest.mark.slow
def test_nearest_settings_decide(project: Path) -> None:
    below = project / "below"
    below.mkdir()
    (below / "train.py").write_text(FINDING, encoding="utf-8")
    (below / "pyproject.toml").write_text('[tool.mllint.lint]\nignore = ["ML101"]\n', encoding="utf-8")
    assert [line[: len(SHOWN)] for line in flake8(project).stdout.splitlines()] == [SHOWN]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[tool.mllint.lint]\nselct = []\n", "selct"),
        ('[tool.mllint.lint]\nselect = ["ML5", "nonsense"]\n', "nonsense"),
        ("[tool.mllint\n", "TOML"),
    ],
)
def test_settings_that_cannot_be_used_are_one_finding(project: Path, table: str, message: str) -> None:
    (project / "pyproject.toml").write_text(table, encoding="utf-8")
    done = flake8(project)
    (line,) = done.stdout.splitlines()
    assert line.startswith("./train.py:1:1: ML000 ")
    assert message in line
    assert done.stderr == ""


# --- Options --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_target_versions_come_from_options_and_configuration(project: Path) -> None:
    assert flake8(project, "--mllint-target-torch=2.6").stdout.startswith(SHOWN)
    done = flake8(project, "--mllint-target-torch=new")
    assert done.returncode == 2
    assert "argument --mllint-target-torch: 'new' is not a version such as 2.6" in done.stderr
    (project / "setup.cfg").write_text("[flake8]\nmllint-target-paddle = old\n", encoding="utf-8")
    done = flake8(project)
    assert done.returncode == 2
    assert "argument --mllint-target-paddle: 'old' is not a version such as 2.6" in done.stderr


def test_options_reach_the_core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Plugin, "_choice", Plugin._choice)
    options = Namespace(
        select=None,
        extend_select=["ML", "ML5", "E5"],
        mllint_target_torch="2.6",
        mllint_target_paddle=None,
        mllint_no_cache=True,
    )
    Plugin.parse_options(None, options, None)
    targets = []

    def lint(*arguments: object, **keywords: object) -> object:
        targets.append((keywords["targets"], keywords["noqa"]))
        raise ZeroDivisionError("stop")

    monkeypatch.setattr("mllint.engine.lint", lint)
    found = list(Plugin(None, str(tmp_path / "a.py"), ["import torch\n"]).run())
    assert [(targets[0][0].torch, targets[0][0].paddle, targets[0][1])] == [((2, 6), None, False)]
    assert found == [(1, 0, "ML000 mllint failed on this file: ZeroDivisionError('stop')", Plugin)]


# --- Places and text ------------------------------------------------------------------------------

ODD_FILES = {
    "ascii.py": FINDING.encode(),
    "wide.py": "import torch\nx = torch.zeros(3)\ns = 'é𝄞漢'; x.cuda()\n".encode(),
    "crlf.py": FINDING.replace("\n", "\r\n").encode(),
    "cr.py": FINDING.replace("\n", "\r").encode(),
    "mark.py": b"\xef\xbb\xbf" + FINDING.encode(),
    "latin.py": b"# coding: latin-1\n" + FINDING.encode() + b"s = '\xe9\xff'; x.cuda()\n",
    "koi.py": f"# coding: koi8-r\n{FINDING}s = 'ж'; x.cuda()\n".encode("koi8-r"),
    "undecodable.py": FINDING.encode() + b"# \xe9\n",
    "of_others.py": b"import numpy as np\nx = np.nan  # \xe9\n",
    "unknown_coding.py": b"# coding: klingon\n" + FINDING.encode(),
    "formfeed.py": b"import torch\n\x0cx = torch.zeros(3)\nx.cuda()\x0c\n",
    "separators.py": "import torch\nx = torch.zeros(3)\ns = '\x1c\x85\u2028'\nx.cuda()\n".encode(),
    "unfinished.py": FINDING.encode().rstrip(),
    "empty.py": b"",
    "blank.py": b"\n\n",
    "word.py": b"torch",
    "noqa.py": FINDING.replace("x.cuda()", "x.cuda()  # noqa: ML101").encode(),
    "blanket.py": FINDING.replace("x.cuda()", "x.cuda()  # NoQA").encode(),
    "tight.py": FINDING.replace("x.cuda()", "x.cuda()  #noqa").encode(),
    "own.py": FINDING.replace("x.cuda()", "x.cuda()  # mllint: ignore[ML101] why").encode(),
    "own_file.py": b"# mllint: file-ignore[ML1]\n" + FINDING.encode(),
    "skipped.py": b"# flake8: noqa\n" + FINDING.encode(),
    "multiline.py": b"import torch\nx = torch.zeros(3)\nx.to('''\n# noqa\n''')\n",
    "closing.py": b"import torch\nx = torch.zeros(3)\nx.to(\n    0,\n)  # noqa\n",
    "python2.py": b"import torch\nprint 'x'\n",
    "broken.py": FINDING.encode() + b"x = (\n",
    "tabs.py": b"import torch\nif 1:\n        x = 1\n\ty = 2\n",
    "nul.py": FINDING.encode() + b"\0\n",
    "long_sum.py": FINDING.encode() + b"y = " + b" + ".join([b"x"] * 200) + b"\n",
    "deep.py": FINDING.encode() + b"y = " + b"(" * 150 + b"x" + b")" * 150 + b"\n",
    "notebook.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "source": ["import torch\n", "x.cuda()"], "outputs": []}], "nbformat": 4}
    ).encode(),
}  # fmt: skip

NOT_FOR_PLUGINS = {"python2.py", "broken.py", "tabs.py", "nul.py"}
"""Files whose syntax flake8 itself rejects, so that it asks no plugin (some only with some Pythons)."""


@pytest.fixture(scope="module")
def odd_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "pyproject.toml").write_text("", encoding="utf-8")
    for name, content in ODD_FILES.items():
        (folder / name).write_bytes(content)
    return folder


Place = tuple[str, int, int, str]


def places(lines: Sequence[str]) -> set[Place]:
    found = set()
    for line in lines:
        match = re.match(r"(?:\./)?([^:]+):(\d+):(\d+): (\w+)", line)
        assert match is not None, line
        if match[4].startswith("ML"):
            found.add((match[1], int(match[2]), int(match[3]), match[4]))
    return found


@pytest.mark.slow
def test_any_file_is_survived_and_seen_as_the_command_sees_it(odd_files: Path) -> None:
    done = flake8(odd_files, "--isolated", "-j1", *ODD_FILES)
    assert "Traceback" not in done.stderr
    assert "failed during execution" not in done.stdout
    by_flake8 = places(done.stdout.splitlines())
    assert by_flake8 >= {
        ("ascii.py", 3, 1, "ML101"),
        ("wide.py", 3, 12, "ML101"),
        ("latin.py", 5, 11, "ML101"),
        ("koi.py", 5, 10, "ML101"),
        ("mark.py", 3, 1, "ML101"),
        ("tight.py", 3, 1, "ML101"),
        ("closing.py", 3, 1, "ML101"),
        ("deep.py", 3, 1, "ML101"),
        ("undecodable.py", 4, 1, "ML001"),
        ("unknown_coding.py", 1, 1, "ML001"),
    }
    silent = {"noqa.py", "blanket.py", "own.py", "own_file.py", "skipped.py", "multiline.py", "empty.py",
              "notebook.ipynb", "of_others.py"}  # fmt: skip
    assert not silent & {place[0] for place in by_flake8}
    for name, row, column, _ in by_flake8:
        assert 1 <= row <= max(1, len(ODD_FILES[name].splitlines())) or name == "separators.py"
        assert column >= 1

    command = subprocess.run(
        [sys.executable, "-m", "mllint", "check", "--isolated", "--no-cache", "--output-format=concise",
         *ODD_FILES],
        cwd=odd_files, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert command.returncode == 1, command.stderr
    by_command = places(command.stdout.splitlines())
    assert not any(place[0] == "notebook.ipynb" for place in by_command)  # flake8 takes it for Python
    assert {place for place in by_command if place[0] not in NOT_FOR_PLUGINS} == {
        place for place in by_flake8 if place[0] not in NOT_FOR_PLUGINS
    }


@pytest.mark.slow
def test_noqa_is_left_to_flake8(odd_files: Path) -> None:
    files = ["noqa.py", "blanket.py", "skipped.py", "multiline.py", "own.py", "own_file.py"]
    (lines,) = flake8_runs(odd_files, ["--isolated", "--select=ML", "--disable-noqa", *files])
    assert places(lines) == {
        ("noqa.py", 3, 1, "ML101"),
        ("blanket.py", 3, 1, "ML101"),
        ("skipped.py", 4, 1, "ML101"),
        ("multiline.py", 3, 1, "ML101"),
    }


@pytest.mark.slow
def test_standard_input_under_any_name(project: Path) -> None:
    runs = [
        (["-"], "stdin"),
        (["--stdin-display-name=train.py", "-"], "train.py"),
        (["--stdin-display-name=no/such/folder/x.py", "-"], "no/such/folder/x.py"),
        # How an editor sends the cells of a notebook.
        (["--stdin-display-name=book.ipynb", "-"], "book.ipynb"),
    ]
    for arguments, name in runs:
        done = flake8(project, *arguments, stdin="import torch\n\ny = torch.zeros(3)\ny.cuda()\n")
        assert done.stdout.startswith(f"{name}:4:1: ML101 "), (name, done.stdout, done.stderr)
        assert done.stderr == ""


@pytest.mark.slow
def test_sibling_files_are_looked_up_for_buffers_of_files_that_exist(project: Path) -> None:
    (project / "models.py").write_text("from torch import nn\n\n\nclass Net(nn.Module):\n    pass\n", encoding="utf-8")
    buffer = "import torch\nfrom models import Net\n\nnet = Net()\nnet = net.load_state_dict({})\n"
    (project / "train.py").write_text(buffer, encoding="utf-8")
    from_disk = flake8(project, "--select=ML", "train.py").stdout
    from_buffer = flake8(project, "--select=ML", "--stdin-display-name=train.py", "-", stdin=buffer).stdout
    assert "ML420" in from_disk
    assert from_buffer == from_disk


@pytest.mark.parametrize(
    "text",
    [
        "torch = " + " + ".join(["x"] * 5000),
        "torch = " + "(" * 5000 + ")" * 5000,
        "torch = " + "-" * 20000 + "x",
        "torch\0",
        "torch\ud800",
        "print torch",
        "if torch:\n        x\n\ty\n",
        "torch\n" * 20000,
        "  torch",
        "'torch",
    ],
)
def test_plugin_survives_what_flake8_itself_may_not(text: str) -> None:
    """Newer flake8 and Python versions may let such text through to plugins."""
    assert_well_formed(text)


@given(st.text(max_size=200))
def test_plugin_survives_any_text(text: str) -> None:
    assert_well_formed("import torch\n" + text)


def assert_well_formed(text: str) -> None:
    lines = text.splitlines(keepends=True)
    for row, column, message, kind in Plugin(None, "stdin", lines).run():
        assert 1 <= row <= len(lines)
        assert column >= 0
        assert re.fullmatch(r"ML[0-9]{3} [^\n]+", message)
        assert "ML000" not in message
        assert kind is Plugin


@pytest.mark.parametrize(
    ("row", "column", "shown"),
    [(0, 0, (1, 0)), (99, 3, (2, 2)), (2, -4, (2, 0))],
)
def test_places_stay_inside_of_the_buffer(
    monkeypatch: pytest.MonkeyPatch, row: int, column: int, shown: tuple[int, int]
) -> None:
    monkeypatch.setattr(Plugin, "_findings", lambda self: [(row, column - 1, "ML101 x")])
    found = list(Plugin(None, "a.py", ["import torch\n", "x\n"]).run())
    assert [item[:2] for item in found] == [shown]


@pytest.mark.slow
def test_text_is_one_line_and_begins_with_a_code(odd_files: Path) -> None:
    (lines,) = flake8_runs(odd_files, ["--isolated", "--format=%(code)s|%(text)s", *ODD_FILES])
    own = [line for line in lines if line.startswith("ML")]
    assert len(own) > 10
    for line in own:
        assert re.fullmatch(r"ML[0-9]{3}\|\S.*", line)


# --- Failures -------------------------------------------------------------------------------------


def test_a_failing_rule_neither_hangs_the_workers_nor_costs_a_result(project: Path) -> None:
    for index in range(4):
        (project / f"more{index}.py").write_text(FINDING, encoding="utf-8")
    done = flake8(project, "-j2", **extra_rules(project, "failing"))
    assert done.stderr == ""
    found = sorted(re.sub(r"^\./(\w+)\.py", r"\1", line) for line in done.stdout.splitlines())
    assert len(found) == 10
    message = "ML000 rule ML199 `failing` failed here: ZeroDivisionError: first second"
    assert found[0] == f"more0:1:1: {message}"
    assert found[1].startswith("more0:3:1: ML101 ")


@pytest.mark.parametrize("error", ["ZeroDivisionError('a\\nb')", "RecursionError()", "SyntaxError('x')"])
def test_a_failing_core_is_one_finding(project: Path, error: str) -> None:
    site = project.parent / f"{project.name}-site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        f"import mllint.engine\ndef lint(*a, **k):\n    raise {error}\nmllint.engine.lint = lint\n",
        encoding="utf-8",
    )
    (project / "other.py").write_text(FINDING, encoding="utf-8")
    done = flake8(project, "-j2", PYTHONPATH=str(site))
    assert done.stderr == ""
    name = error.partition("(")[0]
    assert [line.partition(name)[0] for line in sorted(done.stdout.splitlines())] == [
        "./other.py:1:1: ML000 mllint failed on this file: ",
        "./train.py:1:1: ML000 mllint failed on this file: ",
    ]


# --- Processes and time ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_options_reach_worker_processes(project: Path, method: str) -> None:
    (project / "other.py").write_text(FINDING, encoding="utf-8")
    (project / "run.py").write_text(
        "import multiprocessing, sys\n"
        "from flake8.main.cli import main\n"
        "if __name__ == '__main__':\n"
        f"    multiprocessing.set_start_method({method!r})\n"
        "    main(['-j2', '--select=ML9', 'train.py', 'other.py'])\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "run.py"],
        cwd=project, env=os.environ | extra_rules(project), capture_output=True, text=True,
        encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert sorted(done.stdout.splitlines()) == [
        "other.py:1:1: ML901 a name", "train.py:1:1: ML901 a name",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "options", "loaded"),
    [
        ("import os\nos.getcwd()\n", [], False),
        ("import numpy\nnumpy.zeros(3)\n", [], False),
        (FINDING, ["--select=E"], False),
        (FINDING, [], True),
    ],
)
def test_nothing_heavy_is_imported_in_vain(project: Path, text: str, options: list[str], loaded: bool) -> None:
    (project / "train.py").write_text(text, encoding="utf-8")
    program = (
        "import sys\nfrom flake8.main.cli import main\n"
        f"main({['-j1', *options, 'train.py']!r})\n"
        "heavy = {'libcst', 'msgspec', 'click', 'rich', 'mllint.registry'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project, capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip
    expected = "['libcst', 'mllint.registry', 'msgspec']" if loaded else "[]"
    assert done.stderr.strip() == expected


# --- Bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"torch = '\xc3\xa9'\r\n", "torch = 'é'\n"),
        (b"torch = 1\r\nx = 2\n", "torch = 1\nx = 2\n"),
        (b"\xef\xbb\xbftorch = 1\n", "torch = 1\n"),
        (b"# coding: latin-1\ntorch = '\xe9'\n", "# coding: latin-1\ntorch = 'é'\n"),
    ],
)
def test_bytes_of_text_that_was_read_well(content: bytes, text: str) -> None:
    assert _original_bytes("a.py", text, content) is content
    shown = content.replace(b"\r\n", b"\n").removeprefix(b"\xef\xbb\xbf")
    assert _original_bytes("stdin", text, None) == shown
    assert _original_bytes("a.py", f"{text}\n", content) == shown + b"\n"  # a buffer that is not saved yet


def test_bytes_of_text_that_was_misread(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    content = b"torch = '\xe9'\r\n"
    assert _original_bytes(str(file), "torch = 'é'\n", content) == content
    # A buffer of the same name is not the file.
    assert _original_bytes(str(file), "torch = 'è'\n", content) == "torch = 'è'\n".encode()
    assert _original_bytes("a\0b", "é\n", None) == "é\n".encode()
