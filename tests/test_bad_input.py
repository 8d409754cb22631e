"""Files and folders that are not as they should be: each is named, and the others go on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mllint.cli import cli

GOOD = b"import torch\n\nx = torch.zeros(3)\nx.cuda()\n"

# What is wrong with a file: (its bytes, the row of the one finding, how the message begins).
BAD: dict[str, tuple[bytes, int, str]] = {
    "syntax_error": (b"import torch\n\ndef f(:\n    pass\n", 3, "invalid syntax"),
    "unclosed": (b"import torch\nx = (1,\n", 2, "'(' was never closed"),
    "python_2": (b"import torch\nprint 'loss', loss\n", 2, "Missing parentheses in call to 'print'"),
    "python_2_raise": (b"import torch\n\nraise ValueError, 'x'\n", 3, "invalid syntax"),
    "nul": (b"import torch\nx = 1\0\n", 2, "source contains a NUL byte"),
    "undecodable": (b"import torch\n\nname = '\xe9'\n", 3, "byte 0xe9 is not valid utf-8"),
    "unknown_encoding": (b"# coding: klingon\nimport torch\n", 1, "unknown encoding"),
    "bytes_to_bytes": (b"# coding: base64\nimport torch\n", 1, "base64 is not an encoding of text"),
    "text_to_text": (b"# coding: rot13\nimport torch\n", 1, "rot13 is not an encoding of text"),
    "undefined_encoding": (b"# coding: undefined\nimport torch\n", 1, "undefined is not an encoding of text"),
    "false_encoding": (b"\xef\xbb\xbf# coding: latin-1\nimport torch\n", 1, "encoding problem"),
    "tabs_and_spaces": (b"import torch\nif x:\n        y\n\tz\n", 4, "inconsistent use of tabs"),
    "indentation": (b"import torch\n  x = 1\n", 2, "unexpected indent"),
    "nested_brackets": (b"import torch\nx = " + b"[" * 3000 + b"]" * 3000 + b"\n", 2, "more than 200 nested"),
    "long_sum": (b"import torch\nx = " + b" + ".join([b"a"] * 5000) + b"\n", 2, "an expression of more than"),
    "long_chain": (b"import torch\nx = a" + b".b()" * 5000 + b"\n", 2, "an expression of more than"),
    "merge_conflict": (
        b"import torch\n<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> dev\n",
        2,
        "`<<<<<<<` is the marker",
    ),
    "merge_conflict_end": (b"import torch\n\nx = 2\n>>>>>>> dev\n", 4, "`>>>>>>>` is the marker of a merge"),
    "merge_conflict_middle": (b"import torch\n\nx = 2\n=======\n", 4, "`=======` is the marker of a merge"),
    "converter": (b"import torch\ntry:\n>>>>>>    x.cuda()\nfinally:\n    pass\n", 3, "`>>>>>>` is the mark of a"),
    "shifted": (b"import torch\nx = 1 >>>>>>> 2\n", 2, "invalid syntax"),
    "json": (b'{"torch": [1, 2}\n', 1, "closing parenthesis '}' does not match"),
}
FINE: dict[str, bytes] = {
    "empty": b"",
    "one_comment": b"# torch",
    "no_final_newline": b"import torch\nx = 1",
    "only_blank": b"\n\n\t\n  \n# torch\n",
    "only_mark": b"\xef\xbb\xbf",
    "old_mac": b"import torch\rx = 1\r",
    "mixed_newlines": b"import torch\r\nx = 1\ny = 2\rz = 3",
    "form_feed": b"import torch\n\x0c\nx = 1\n",
    "form_feed_first": b"\x0cimport torch\nx = 1\n",
    "continued_line_first": b"\\\nimport torch\nx = 1\n",
    "latin_1": "# coding: latin-1\nimport torch\nname = 'é'\n".encode("latin-1"),
    "rewritten_utf_8": "# -*- coding: future_fstrings -*-\nimport torch\nname = 'é'\n".encode(),
    "python_2_without_framework": b"print 'hello'\n",
    "undecodable_without_framework": b"\xff\xfe\x00",
    "long_line": b"import torch\nx = '" + b"a" * 300_000 + b"'\n",
    "long_list": b"import torch\nx = [" + b"1, " * 20_000 + b"]\n",
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def findings(*arguments: str) -> tuple[int, list[tuple[str, str, int, str]]]:
    """The exit code, and file, code, row and message of every finding."""
    result = CliRunner().invoke(cli, [*arguments, "--output-format", "json"])
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert "Traceback" not in result.stderr
    entries = json.loads(result.stdout)
    return result.exit_code, [
        (os.path.basename(entry["filename"]), entry["code"], entry["location"]["row"], entry["message"])
        for entry in entries
    ]


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_gives_one_finding_of_one_line(name: str) -> None:
    data, row, message = BAD[name]
    Path("bad.py").write_bytes(data)
    code, found = findings("bad.py")
    assert code == 1
    ((file, rule, found_row, found_message),) = found
    assert (file, rule, found_row) == ("bad.py", "ML001", row)
    assert found_message.startswith(message)
    assert len(found_message.splitlines()) == 1
    assert found_message == found_message.rstrip(".")


@pytest.mark.parametrize("name", FINE)
def test_an_odd_file_is_no_bad_file(name: str) -> None:
    Path("odd.py").write_bytes(FINE[name])
    assert findings("odd.py") == (0, [])


def test_what_the_tree_does_not_print_has_findings_but_no_fixes() -> None:
    """LibCST loses a backslash between two statements: a place in the tree is none in the file."""
    data = b"import torch\nfrom torch import einsum\n\\\nfrom torch import nn\n\nx = torch.zeros(3)\nx.cuda()\ny = x\n"
    Path("lost.py").write_bytes(data)
    code, ((file, rule, row, _),) = findings("lost.py", "--fix", "--unsafe-fixes")
    assert (code, file, rule, row) == (1, "lost.py", "ML101", 7)
    assert Path("lost.py").read_bytes() == data


FORMER = b"""import torch
from torch import nn

def accuracy(model: nn.Module, loader, text="async=True"):
    for x, y in loader:
        y = y.cuda(async=True)
        x.cuda(non_blocking = True, async = (x, y))
        x = torch.zeros(3)
        x.cuda()
        yield text, x, y
"""


def test_a_file_for_a_former_python_is_checked_but_for_its_fixes() -> None:
    Path("former.py").write_bytes(FORMER)
    code, found = findings("former.py", "--fix", "--unsafe-fixes")
    assert code == 1
    assert [(rule, row) for _, rule, row, _ in found] == [("ML001", 6), ("ML101", 9)]
    assert found[0][3] == "`async` is a keyword since Python 3.7: no later Python can run this file"
    assert Path("former.py").read_bytes() == FORMER
    # What is wrong beside it is said instead.
    Path("former.py").write_bytes(FORMER + b"x = 0755\n")
    assert [rule for _, rule, _, _ in findings("former.py")[1]] == ["ML001"]


@pytest.mark.parametrize("head", [b"", b"# a \xb7 b\n", b"#\n# \xb7\n", b"# coding: utf-8\n", b"\xef\xbb\xbf"])
def test_a_comment_that_is_no_text_costs_the_fixes_only(head: bytes) -> None:
    """Python imports such a file, and runs it only where it says that it is UTF-8."""
    data = head + GOOD + b"y = 1  # a \xb7 b\nx.cuda()\n"
    rows = [("ML101", 4 + head.count(b"\n")), ("ML101", 6 + head.count(b"\n"))]
    Path("odd.py").write_bytes(data)
    code, found = findings("odd.py", "--fix", "--unsafe-fixes")
    assert (code, [(rule, row) for _, rule, row, _ in found if rule != "ML001"]) == (1, rows)
    bad = [(row, message) for _, rule, row, message in found if rule == "ML001"]
    message = "byte 0xb7 is not valid utf-8: Python imports this file, but does not run it"
    first = 1 + data[: data.index(b"\xb7")].count(b"\n")
    is_declared = b"coding" in head or head.startswith(b"\xef")
    assert bad == ([] if is_declared else [(first, message)])
    assert Path("odd.py").read_bytes() == data
    # As Python has it, where there is no framework to import.
    Path("plain.py").write_bytes(head + b"y = 1  # a \xb7 b\n")
    assert findings("plain.py") == (0, [])
    run, imported = (
        subprocess.run([sys.executable, *how], capture_output=True, check=False).returncode
        for how in (["plain.py"], ["-c", "import plain"])
    )
    assert (run == 0, imported) == (is_declared, 0)


def test_a_parameter_that_is_there_twice_is_no_python() -> None:
    """Python parses it, and compiles it in no version; the rest is checked, without fixes."""
    data = GOOD + b"'\xc3\xa9'; f = lambda a, *, b, a: a\ndef g(self, a, *b, c=1, **d):\n    x.cuda()\n"
    Path("twice.py").write_bytes(data)
    code, found = findings("twice.py", "--fix", "--unsafe-fixes")
    assert (code, [(rule, row) for _, rule, row, _ in found]) == (1, [("ML101", 4), ("ML001", 5), ("ML101", 7)])
    assert found[1][3].startswith("duplicate ")
    assert found[1][3].endswith("'a' in function definition")
    assert Path("twice.py").read_bytes() == data
    with pytest.raises(SyntaxError, match="duplicate "):
        compile(data, "twice.py", "exec")


COMMANDS = b"""import torch
%matplotlib inline
!pip install 'torch \\
    --quiet
def show():
    !ls "
    listed = !ls
    %cd /content
    return listed
x = torch.zeros(3)
x.cuda()
"""


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_the_commands_of_a_notebook_that_was_saved_as_a_program_are_passed_over(newline: bytes) -> None:
    text = COMMANDS.replace(b"\n", newline)
    Path("notebook.py").write_bytes(text)
    code, found = findings("notebook.py", "--fix", "--unsafe-fixes")
    assert (code, [(rule, row) for _, rule, row, _ in found]) == (1, [("ML101", 11)])
    assert Path("notebook.py").read_bytes() == text
    Path("notebook.py").write_bytes(text + b"print x" + newline)
    assert [(rule, row) for _, rule, row, _ in findings("notebook.py")[1]] == [("ML101", 11), ("ML001", 12)]
    Path("notebook.py").write_bytes(text + b"x = (1" + newline + b"% y z)" + newline)
    assert [(rule, row) for _, rule, row, _ in findings("notebook.py")[1]] == [("ML001", 12)]


def test_what_needs_the_comments_of_a_file_for_a_former_python_is_left_out() -> None:
    Path("cells.py").write_text("import torch\n\nw = torch.zeros(3)\nprint w\n# %%\nw.exp()\n# %%\nw.cos()\n")
    assert [rule for _, rule, _, _ in findings("cells.py")[1]] == ["ML001"]


def test_what_to_write_for_a_former_python() -> None:
    Path("keyword.py").write_text("import torch\nx = torch.zeros(3).cuda(async=True)\n", encoding="utf-8")
    Path("statement.py").write_text("import torch\nprint torch\n", encoding="utf-8")
    shown = CliRunner().invoke(cli, ["keyword.py", "statement.py"]).stdout
    keyword, statement = (line for line in shown.splitlines() if line.startswith("help: "))
    assert keyword.startswith("help: write `non_blocking=` for `async=`")
    assert statement.startswith("help: mend the syntax;")


STEPPED_FIRST = """import torch
from torch import nn, optim

def train(net: nn.Module, loader):
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 10)
    for _ in range(30):
        scheduler.step()
        for x in loader:
            x = x.cuda({})
            optimizer.zero_grad()
            net(x).mean().backward()
            optimizer.step()
"""


def test_what_python_no_longer_reads_is_written_for_the_pytorch_of_its_time() -> None:
    """Until PyTorch 1.1 schedulers stepped first."""
    Path("present.py").write_text(STEPPED_FIRST.format("non_blocking=True"))
    assert [rule for _, rule, _, _ in findings("present.py")[1]] == ["ML307"]
    Path("former.py").write_text(STEPPED_FIRST.format("async=True"))
    assert [rule for _, rule, _, _ in findings("former.py")[1]] == ["ML001"]
    Path("pyproject.toml").write_text('[tool.mllint.target-version]\ntorch = "1.4"\n')
    assert {rule for _, rule, _, _ in findings("former.py")[1]} == {"ML001", "ML307"}


def test_a_name_that_became_a_keyword_is_said_so_and_read() -> None:
    text = """import torch

def moved(x, gpu=None, async=False):
    if async:
        x = x.cuda(gpu, async)
    moved.async = async
    return x

async def ours(other):
    async with other:
        y = torch.zeros(3)
        y.cuda()
        return moved(y, async=True)
"""
    Path("former.py").write_text(text)
    found = findings("former.py")[1]
    assert [(rule, row) for _, rule, row, _ in found] == [("ML001", 3), ("ML101", 12)]
    assert found[0][3] == "`async` is a keyword since Python 3.7: no later Python can run this file"
    # So it is where the rest cannot be read either.
    Path("former.py").write_text(text + "x = = 2\n")
    assert findings("former.py")[1] == found[:1]
    Path("former.py").write_text("import torch\n\nx = 0755  # async\n")
    assert "async" not in findings("former.py")[1][0][3]


@pytest.mark.parametrize("text", ["print np.nan", "x = = np.nan", "x = np.nan  # \xff"])
def test_a_file_that_names_no_framework_is_somebody_elses(text: str) -> None:
    """Although how NaN is compared is told of numpy, too."""
    for imported, code in (("numpy as np", 0), ("torch as np", 1)):
        Path("other.py").write_bytes(f"import {imported}\n\n{text}\n".encode("latin-1"))
        exit_code, found = findings("other.py")
        assert (exit_code, [rule for _, rule, _, _ in found]) == (code, ["ML001"] * code)
    Path("other.py").write_text("class Net(Base):\n    def forward(self, x):\n        print x\n")
    assert findings("other.py") == (0, [])


def test_what_is_read_of_a_file_without_a_framework_is_said() -> None:
    Path("other.py").write_text("import numpy as np\n\nprint 1\nprint(np.ones(3) == np.nan)\n")
    assert [(rule, row) for _, rule, row, _ in findings("other.py")[1]] == [("ML501", 4)]


def test_statements_of_python_2_are_read_as_they_are_meant() -> None:
    text = """import torch

x = torch.zeros(3)
if x.sum() > 0: print "\xe9", x.cuda(), ; x.cuda()
print "%s %s" % (
    1,
    x.sum()[0]), x  # the sum
try:
    exec "pass"
except (ValueError, KeyError), error:
    raise ValueError, "no"
print
print >>None, x
x.cuda()
print x
"""
    Path("former.py").write_text(text, encoding="utf-8")
    code, found = findings("former.py")
    assert code == 1
    assert found[0][1:] == ("ML001", 4, "Missing parentheses in call to 'print'. Did you mean print(...)?")
    assert [(rule, row) for _, rule, row, _ in found[1:]] == [("ML101", 4), ("ML102", 7), ("ML101", 14)]
    assert Path("former.py").read_text(encoding="utf-8") == text


def test_reading_what_python_2_can_run_ends() -> None:
    """Each statement takes one more look at the whole file."""
    Path("former.py").write_text("import torch\n" + "print torch\n" * 20_000)
    assert [(rule, row) for _, rule, row, _ in findings("former.py")[1]] == [("ML001", 2)]


def test_a_file_for_a_former_python_says_what_it_has_to_others() -> None:
    Path("setup.cfg").write_text("")
    Path("nets.py").write_bytes(
        FORMER.replace(b"        x.cuda()\n", b"") + b"\n\ndef make():\n    return torch.zeros(3)\n"
    )
    Path("main.py").write_text("from nets import make\nimport torch\n\nx = make()\nx.cuda()\nprint(x)\n")
    assert [(file, rule) for file, rule, _, _ in findings("main.py")[1]] == [("main.py", "ML101")]


def test_a_file_for_a_former_python_may_have_comments_that_silence() -> None:
    Path("former.py").write_bytes(FORMER.replace(b"x.cuda()\n", b"x.cuda()  # noqa: ML101\n"))
    assert [rule for _, rule, _, _ in findings("former.py")[1]] == ["ML001"]


@pytest.mark.parametrize("deep", ["z = " + "+".join("y" * 900), "if y: pass\n" + "elif y: pass\n" * 1900])
def test_what_nests_deep_has_findings_with_every_python(deep: str) -> None:
    Path("deep.py").write_text(f"import torch\nx = torch.zeros(3)\nx.cuda()\ny = x\n{deep}\n")
    assert [(rule, row) for _, rule, row, _ in findings("deep.py")[1]] == [("ML101", 3)]


def test_all_of_them_at_once_and_the_others_go_on() -> None:
    for name, (data, _, _) in BAD.items():
        Path(f"{name}.py").write_bytes(data)
    for name, data in FINE.items():
        Path(f"{name}.py").write_bytes(data)
    Path("zz_good.py").write_bytes(GOOD)
    Path("a_good.py").write_bytes(GOOD)
    code, found = findings(".")
    assert code == 1
    assert {file for file, rule, _, _ in found if rule == "ML001"} == {f"{name}.py" for name in BAD}
    assert [file for file, rule, _, _ in found if rule == "ML101"] == ["a_good.py", "zz_good.py"]


@pytest.mark.parametrize("option", ["--fix", "--diff"])
def test_a_bad_file_is_never_changed(option: str) -> None:
    for name, (data, _, _) in BAD.items():
        Path(f"{name}.py").write_bytes(data)
    result = CliRunner().invoke(cli, [option, "--unsafe-fixes", "."])
    assert result.exit_code == 1
    for name, (data, _, _) in BAD.items():
        assert Path(f"{name}.py").read_bytes() == data


@pytest.mark.parametrize("form", ["full", "concise"])
def test_people_see_where_it_is(form: str) -> None:
    for name, (data, _, _) in BAD.items():
        Path(f"{name}.py").write_bytes(data)
    result = CliRunner().invoke(cli, [".", "--output-format", form])
    for name, (_, row, message) in BAD.items():
        assert f"{name}.py:{row}:" in result.stdout
        assert message in result.stdout
    assert max(map(len, result.stdout.splitlines())) < 400


def test_paths_that_cannot_be_read() -> None:
    Path("good.py").write_bytes(GOOD)
    Path("dangling.py").symlink_to("gone.py")
    Path("ring.py").symlink_to("ring2.py")
    Path("ring2.py").symlink_to("ring.py")
    Path("loop").symlink_to(".")
    code, found = findings(".", "missing.py", "missing/")
    assert code == 1
    assert found == [
        ("dangling.py", "ML003", 1, "cannot be read: the symbolic link leads nowhere"),
        ("good.py", "ML101", 4, "the result of `cuda()` is discarded"),
        ("missing.py", "ML003", 1, "cannot be read: no such file or folder"),
        ("missing", "ML003", 1, "cannot be read: no such file or folder"),
        ("ring.py", "ML003", 1, "cannot be read: the symbolic links go round in a circle"),
        ("ring2.py", "ML003", 1, "cannot be read: the symbolic links go round in a circle"),
    ]
    assert findings("dangling.py")[0] == 1
    assert findings("missing.py", "--exit-zero")[0] == 2
    assert findings("missing.py", "good.py", "--exit-zero")[0] == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read() -> None:
    Path("good.py").write_bytes(GOOD)
    Path("locked.py").write_bytes(GOOD)
    Path("locked.py").chmod(0)
    code, found = findings(".")
    assert code == 1
    assert [(file, rule) for file, rule, _, _ in found] == [("good.py", "ML101"), ("locked.py", "ML003")]


def test_a_folder_without_python() -> None:
    Path("docs").mkdir()
    Path("docs/readme.md").write_text("x")
    result = CliRunner().invoke(cli, ["docs"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "mllint: warning: no Python files found\nNo findings in 0 files.\n"
    assert json.loads(CliRunner().invoke(cli, ["docs", "--output-format", "json"]).stdout) == []
    assert CliRunner().invoke(cli, ["docs", "-q"]).stderr == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.mllint\n", "is not valid TOML"),
        ("[tool.mllint]\nselct = []\n", "unknown key `tool.mllint.selct` (did you mean `select`?"),
        ("[tool.mllint]\nselect = ['ML777']\n", "`tool.mllint.select`: `ML777` names no rule"),
        ("[tool.mllint]\nselect = 'ML1'\n", "`tool.mllint.select`: expected `array`, got `str`"),
    ],
)
def test_a_broken_configuration_costs_its_own_files(text: str, message: str) -> None:
    Path("a").mkdir()
    Path("a/good.py").write_bytes(GOOD)
    Path("b").mkdir()
    Path("b/good.py").write_bytes(GOOD)
    Path("b/pyproject.toml").write_text(text)
    result = CliRunner().invoke(cli, [".", "--output-format", "concise"])
    assert result.exit_code == 2
    assert result.stdout == "a/good.py:4:1: ML101 [*] the result of `cuda()` is discarded\n"
    (error, _) = result.stderr.splitlines()
    assert error.startswith("mllint: error: ")
    assert f"b/pyproject.toml: {message}" in error
    assert CliRunner().invoke(cli, ["b", "--exit-zero"]).exit_code == 2
    assert CliRunner().invoke(cli, ["b", "--isolated", "--exit-zero"]).exit_code == 0


@pytest.mark.slow
def test_a_very_long_file() -> None:
    Path("long.py").write_bytes(GOOD + b"y = torch.ones(2) + x\n" * 100_000 + b"y.cuda()\n")
    code, found = findings("long.py")
    assert code == 1
    assert [row for _, _, row, _ in found] == [4, 100_005]


@pytest.mark.parametrize(
    ("row", "begin"),
    [
        ("<<<<<<< HEAD", "keep one of the two"),
        (">>>>>>    x", "convert the rows"),
        ("x = (", "mend"),
    ],
)
def test_the_help_says_what_to_do_with_rows_that_are_no_python(row: str, begin: str) -> None:
    Path("bad.py").write_text(f"import torch\n{row}\n")
    result = CliRunner().invoke(cli, ["bad.py", "--output-format", "json"])
    ((entry),) = json.loads(result.stdout)
    assert entry["help"].startswith(begin)
    assert entry["help"].endswith("nothing else in this file was checked")
