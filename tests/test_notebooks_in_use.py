"""Notebooks through the command and the library: what is found in them, how it is told, and what is mended."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mllint import Settings, fix_source, lint_source
from mllint.cli import cli
from mllint.command import watch
from mllint.diagnostics import Status

IMPORT = "import torch\nfrom torch import nn\n"
BAD = "x = torch.zeros(3)\nx.cuda()\ny = x"
MENDED = "x = torch.zeros(3)\nx = x.cuda()\ny = x"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("", encoding="utf-8")
    return tmp_path


def book(*cells: str | dict[str, Any], indent: int | None = 1, **dumped: Any) -> str:
    """A notebook: what is text is a cell of code; of ``# `` and a title one of text."""
    made = []
    for number, item in enumerate(cells):
        if isinstance(item, dict):
            made.append(item)
            continue
        lines = item.splitlines(keepends=True)
        if item.startswith("## "):
            made.append({"cell_type": "markdown", "id": f"c{number}", "metadata": {}, "source": lines})
        else:
            code = {"execution_count": number, "metadata": {}, "outputs": [{"torch": 1.0, "text": ["é"]}]}
            made.append({"cell_type": "code", "id": f"c{number}", **code, "source": lines})
    metadata = {"language_info": {"name": "python"}, "kernelspec": {"name": "python3", "display_name": "Python 3"}}
    whole = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=indent, ensure_ascii=False, **dumped) + "\n"


def write(path: str, *cells: str | dict[str, Any], **style: Any) -> bytes:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    data = book(*cells, **style).encode()
    Path(path).write_bytes(data)
    return data


def sources(path: str) -> list[str]:
    return ["".join(item["source"]) for item in json.loads(Path(path).read_bytes())["cells"]]


def mllint(*arguments: str, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(cli, arguments, input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def found(*arguments: str) -> list[str]:
    """Where something is found, and what: the lines of ``concise`` without messages."""
    lines = mllint(*arguments, "--output-format=concise", "-q").stdout.splitlines()
    return [" ".join(line.split()[: 3 if ":cell " in line else 2]) for line in lines]


# -- what is found -------------------------------------------------------------------------------------------------


def test_names_flow_from_cell_to_cell_and_cells_are_counted_all() -> None:
    write("a.ipynb", "## Title", IMPORT, "x = torch.zeros(3)", "%%bash\nls", "%%time\nx.cuda()\ny = x")
    assert found("a.ipynb") == ["a.ipynb:cell 5:2:1: ML101"]


def test_the_last_value_of_a_cell_is_shown() -> None:
    write("a.ipynb", IMPORT + "x = torch.zeros(3)\nx.unsqueeze(0)", "net = nn.Linear(1, 1)\nnet.eval", "y = x")
    assert found("a.ipynb") == []
    write("a.ipynb", IMPORT + "x = torch.zeros(3)\nx.unsqueeze(0)\nnet = nn.Linear(1, 1)\nnet.eval\ny = x, net")
    assert found("a.ipynb") == ["a.ipynb:cell 1:4:1: ML101", "a.ipynb:cell 1:6:1: ML304"]


def test_a_cell_that_cannot_be_read_does_not_stop_the_others() -> None:
    write("a.ipynb", IMPORT, "x = <YOUR CODE>", BAD, "for y in x\n    pass")
    expected = ["a.ipynb:cell 2:1:5: ML001", "a.ipynb:cell 3:2:1: ML101", "a.ipynb:cell 4:1:11: ML001"]
    assert found("a.ipynb") == expected
    assert found("a.ipynb", "--fix") == [expected[0], expected[2]]
    assert sources("a.ipynb")[2] == MENDED
    write("b.ipynb", "x = <YOUR CODE>")  # of no framework
    assert found("b.ipynb") == []


def test_what_a_cell_that_cannot_be_read_may_do_is_not_missing() -> None:
    made = "net = nn.Linear(4, 2)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    loop = "for epoch in range(30):\n    optimizer.zero_grad()\n    net(torch.randn(8, 4)).mean().backward()"
    write("a.ipynb", IMPORT + made, loop, "z = (1)")
    assert found("a.ipynb") == ["a.ipynb:cell 1:4:13: ML323"]
    write("a.ipynb", IMPORT + made, loop, "optimizer.step(\nz = <CODE>")
    assert found("a.ipynb") == ["a.ipynb:cell 3:1:15: ML001"]


def test_cells_for_a_former_python_are_read() -> None:
    cells = (IMPORT, "x = torch.zeros(3)\ny = x == float('nan')", "!ls\nprint y")
    write("a.ipynb", *cells)
    assert found("a.ipynb", "--fix") == ["a.ipynb:cell 2:2:5: ML501", "a.ipynb:cell 3:2:1: ML001"]
    assert sources("a.ipynb") == list(cells)


BROKEN = {
    b'{"torch": }': "1:1: ML001 the notebook is not valid JSON: Expecting value",
    b'{"nbformat": 3, "torch": []}': "1:1: ML001 a notebook of format 3: mllint reads those of format 4",
    b'{"torch": ' + b"[" * 200_000: "1:1: ML001 the JSON of the notebook is nested too deep",
    b'{\n\n"torch": "\xff"}': "3:1: ML001 byte 0xff is not valid utf-8",
    b'{\n<<<<<<< HEAD\n"torch": 1}': "2:1: ML001 `<<<<<<<` is the marker of a merge conflict that nobody has resolved",
    '{"torch": 1}'.encode("utf-16"): "1:1: ML001 ",
}


def test_what_is_no_notebook_is_named_and_the_others_go_on() -> None:
    write("z.ipynb", IMPORT, BAD)
    before = Path("z.ipynb").read_bytes()
    for number, (data, message) in enumerate(BROKEN.items()):
        Path("a.ipynb").write_bytes(data)
        result = mllint("a.ipynb", "z.ipynb", "--output-format=concise", "--fix")
        if number < len(BROKEN) - 1:
            assert result.stdout.splitlines() == [f"a.ipynb:{message}"]
        assert result.exit_code == (1 if result.stdout else 0)
        assert Path("a.ipynb").read_bytes() == data
        assert "x = x.cuda()" in Path("z.ipynb").read_text("utf-8")
        Path("z.ipynb").write_bytes(before)


def test_notebooks_with_nothing_in_them_are_fine() -> None:
    for number, cells in enumerate(([], ["## Title"], [""], ["", "\n\n", "# torch"])):
        write(f"{number}.ipynb", *cells)
    Path("empty.ipynb").write_bytes(b"")
    result = mllint(".", "--extend-include=*.ipynb")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "No findings in 5 files.\n")


def test_a_notebook_of_a_library_that_others_import_is_no_module_of_the_project() -> None:
    Path("net.py").write_text(IMPORT + "\n\ndef make():\n    return torch.zeros(3)\n", encoding="utf-8")
    write("use.ipynb", "from net import make", "x = make()\nx.cuda()\ny = x", "import torch")
    assert found("use.ipynb") == ["use.ipynb:cell 2:2:1: ML101"]


# -- how it is told ------------------------------------------------------------------------------------------------


def test_people_are_told_the_cell() -> None:
    write("a.ipynb", IMPORT, "# before\n" + BAD)
    assert mllint("a.ipynb", "-q").stdout == (
        "ML101 [*] the result of `cuda()` is discarded\n"
        " --> a.ipynb:cell 2:3:1\n"
        "  |\n"
        "1 | # before\n"
        "2 | x = torch.zeros(3)\n"
        "3 | x.cuda()\n"
        "  | ^^^^^^^^\n"
        "4 | y = x\n"
        "  |\n"
        "help: write `x = x.cuda()`\n"
        "\n"
    )
    assert mllint("a.ipynb", "-q", "--output-format=grouped").stdout.splitlines()[1].startswith("  cell 2:3:1  ML101 ")


def test_programs_are_told_the_cell_in_json() -> None:
    write("a.ipynb", IMPORT, BAD)
    [item] = json.loads(mllint("a.ipynb", "--output-format=json").stdout)
    assert (item["cell"], item["location"], item["end_location"], item["noqa_row"]) == (
        2, {"row": 2, "column": 1}, {"row": 2, "column": 9}, 2,
    )  # fmt: skip
    [edit] = item["fix"]["edits"]
    assert edit == {
        "cell": 2, "content": "x = ", "location": {"row": 2, "column": 1}, "end_location": {"row": 2, "column": 1},
    }  # fmt: skip


READERS: dict[str, Callable[[str], tuple[int, int | None]]] = {
    "github": lambda text: tuple(map(int, re.findall(r"line=(\d+),col=(\d+)", text)[0])),  # type: ignore[arg-type,return-value]
    "pylint": lambda text: (int(text.split(":")[1]), None),
    "gitlab": lambda text: tuple(json.loads(text)[0]["location"]["positions"]["begin"].values()),  # type: ignore[return-value]
    "junit": lambda text: tuple(map(int, re.findall(r'line="(\d+)" column="(\d+)"', text)[0])),  # type: ignore[arg-type,return-value]
    "rdjson": lambda text: tuple(json.loads(text)["diagnostics"][0]["location"]["range"]["start"].values()),
    "sarif": lambda text: tuple(
        json.loads(text)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"].values()
    )[:2],  # type: ignore[return-value]
}


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("indent", [None, 1, 4])
def test_other_programs_are_told_the_rows_of_the_file(form: str, indent: int | None) -> None:
    data = write(
        "a.ipynb", IMPORT, "## Title", "s = 'é\"'; x = torch.zeros(3)\nif s:\n\tx.cuda()\ny = x", indent=indent
    )
    text = mllint("a.ipynb", f"--output-format={form}", "-q").stdout
    row, column = READERS[form](text)
    line = data.decode().split("\n")[row - 1]
    if form == "rdjson":
        line = line.encode().decode("latin-1")  # it counts bytes
    assert line[(column or line.index("x.cuda()") + 1) - 1 :].startswith("x.cuda()")
    assert "(cell 3)" in text
    assert "fixes" not in text
    assert "suggestions" not in text


def test_places_in_messages_name_cells() -> None:
    saving = "net = nn.Linear(1, 1)\ntorch.save({'net': net.state_dict()}, 'net.pt')"
    write(
        "a.ipynb", IMPORT, saving, "state = torch.load('net.pt', weights_only=True)\nnet.load_state_dict(state['nett'])"
    )
    for item in json.loads(mllint("a.ipynb", "--output-format=json").stdout):
        assert not re.search(r"(?<!, )line \d", item["message"] + item["help"])


# -- what is mended ------------------------------------------------------------------------------------------------

STYLES: dict[str, Callable[[str], str]] = {
    "indent 1": lambda text: text,
    "indent 2": lambda text: json.dumps(json.loads(text), indent=2, ensure_ascii=False),
    "indent 4, ASCII": lambda text: json.dumps(json.loads(text), indent=4),
    "one line": lambda text: json.dumps(json.loads(text), separators=(",", ":")),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "mark": lambda text: f"\ufeff{text}",
    "keys sorted": lambda text: json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n\n",
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("is_text", [False, True])
def test_only_changed_code_is_rewritten(style: str, is_text: bool) -> None:
    made = json.loads(book("## Ein Gruß", IMPORT, "s = 'é'\n%matplotlib inline\n" + BAD, "!ls\ny = '\\u00e9'"))
    for item in made["cells"] if is_text else ():
        item["source"] = "".join(item["source"])
    before = STYLES[style](json.dumps(made, indent=1, ensure_ascii=False))
    Path("a.ipynb").write_bytes(before.encode())
    assert mllint("a.ipynb", "--fix").exit_code == 0
    after = Path("a.ipynb").read_bytes().decode()
    assert after == before.replace("x.cuda()", "x = x.cuda()")
    assert mllint("a.ipynb", "--fix").exit_code == 0
    assert Path("a.ipynb").read_bytes().decode() == after


def test_an_import_goes_to_the_other_imports() -> None:
    training = (
        "best = None\nfor x, y in loader:\n    optimizer.zero_grad()\n    loss = net(x).sum()\n    loss.backward()\n"
        "    optimizer.step()\n    if loss.item() < 1:\n        best = net.state_dict()\nnet.load_state_dict(best)"
    )
    made = "net = nn.Linear(1, 1)\noptimizer = torch.optim.SGD(net.parameters(), 0.1)"
    write("a.ipynb", "!pip install torch", "%matplotlib inline\n# What is needed\nfrom torch import nn\nimport torch",
          made, training)  # fmt: skip
    assert found("a.ipynb") == ["a.ipynb:cell 4:8:16: ML424"]
    [item] = json.loads(mllint("a.ipynb", "--output-format=json").stdout)
    assert [edit["cell"] for edit in item["fix"]["edits"]] == [2, 4, 4]
    assert mllint("a.ipynb", "--fix").exit_code == 0
    assert sources("a.ipynb")[:3] == [
        "!pip install torch",
        "%matplotlib inline\n# What is needed\nimport copy\nfrom torch import nn\nimport torch",
        made,
    ]
    assert sources("a.ipynb")[3] == training.replace("net.state_dict()", "copy.deepcopy(net.state_dict())")


def test_an_unsafe_fix_is_made_when_asked_for() -> None:
    cells = (IMPORT, "x = torch.zeros(3)\nx.unsqueeze(0)\ny = x")
    before = write("a.ipynb", *cells)
    assert mllint("a.ipynb", "--fix").exit_code == 1
    assert Path("a.ipynb").read_bytes() == before
    assert mllint("a.ipynb", "--fix", "--unsafe-fixes").exit_code == 0
    assert sources("a.ipynb")[1] == cells[1].replace("x.unsq", "x = x.unsq")


def test_commands_in_a_function_that_is_mended_stay() -> None:
    made = IMPORT + "net = nn.Linear(1, 1)\ntest_loader = torch.utils.data.DataLoader(data)\nfiles = !ls"
    body = (
        "def test():",
        "    total = 0",
        "    net.eval()",
        "    for x, y in test_loader:",
        "        !nvidia-smi",
        "        %time out = net(x)",
        "        total += (out.argmax(1) == y).sum().item()",
        "    return total",
    )
    write("a.ipynb", made, "\n".join(body), "%time test()")
    assert found("a.ipynb") == ["a.ipynb:cell 2:4:5: ML311"]
    assert mllint("a.ipynb", "--fix").exit_code == 0
    assert sources("a.ipynb") == [made, "\n".join(("@torch.no_grad()", *body)), "%time test()"]


def test_a_difference_is_one_of_the_file() -> None:
    before = write("a.ipynb", IMPORT, BAD)
    result = mllint("a.ipynb", "--diff")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert [line for line in lines if line[:1] in "+-"][2:] == ['-    "x.cuda()\\n",', '+    "x = x.cuda()\\n",']
    assert Path("a.ipynb").read_bytes() == before


def test_standard_input_is_judged_by_its_content() -> None:
    text = book(IMPORT, BAD)
    result = mllint("--stdin-filename=a.ipynb", "-", "--output-format=concise", stdin=text)
    assert result.stdout.startswith("a.ipynb:cell 2:2:1: ML101 ")
    assert mllint("--stdin-filename=a.ipynb", "--fix", "-", stdin=text).stdout == text.replace("x.cuda", "x = x.cuda")
    # As an editor puts the cells together.
    result = mllint("--stdin-filename=a.ipynb", "-", "--output-format=concise", stdin=IMPORT + BAD)
    assert result.stdout.startswith("a.ipynb:4:1: ML101 ")
    assert mllint("-", stdin=text).exit_code == 0


def test_the_library_reads_notebooks() -> None:
    text = book(IMPORT, "x = (", BAD)
    result = lint_source(text, path="a.ipynb")
    assert result.status is Status.SYNTAX_ERROR
    places = [(item.code, item.location.cell, item.location.row) for item in result.diagnostics]
    assert places == [("ML001", 2, 1), ("ML101", 3, 2)]
    fixed = fix_source(text, path="a.ipynb")
    assert fixed.data.decode() == text.replace("x.cuda()", "x = x.cuda()")
    assert [item.location.cell for item in fixed.applied] == [3]
    assert [item.code for item in fixed.result.diagnostics] == ["ML001"]
    assert lint_source(text.encode(), path="a.ipynb", settings=Settings(ignore=("ML1",))).diagnostics[0].code == "ML001"
    assert lint_source(text).diagnostics == ()


# -- what is silenced, left out and remembered ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "cells",
    [
        (IMPORT, BAD.replace("cuda()", "cuda()  # noqa: ML101")),
        (IMPORT, BAD.replace("cuda()", "cuda()  # mllint: ignore[ML101] why not")),
        (IMPORT, BAD.replace("x.cuda()", "# mllint: ignore[ML101]\nx.cuda()")),
        (IMPORT, BAD, "# mllint: file-ignore[ML101]"),
        (IMPORT, BAD, "# flake8: noqa"),
        (IMPORT, BAD.replace("cuda()", "cuda()  # noqa"), "!echo \"it's\nz = 1"),
    ],
)
def test_comments_silence(cells: tuple[str, ...]) -> None:
    write("a.ipynb", *cells)
    assert found("a.ipynb") == []
    assert found("a.ipynb", "--fix") == []
    assert sources("a.ipynb") == list(cells)


def test_a_comment_above_the_border_of_a_cell_is_about_its_own() -> None:
    write("a.ipynb", IMPORT + "x = torch.zeros(3)\n# mllint: ignore[ML101]", "x.cuda()\ny = x")
    assert found("a.ipynb") == ["a.ipynb:cell 2:1:1: ML101"]


def test_comments_that_silence_nothing_are_found_and_taken_out() -> None:
    write("a.ipynb", IMPORT, "y = 1  # noqa: ML101", BAD.replace("cuda()", "cuda()  # noqa: ML101"))
    assert found("a.ipynb", "--extend-select=ML002") == ["a.ipynb:cell 2:1:8: ML002"]
    assert found("a.ipynb", "--extend-select=ML002", "--fix") == []
    assert sources("a.ipynb")[1:] == ["y = 1", BAD.replace("cuda()", "cuda()  # noqa: ML101")]


@pytest.mark.parametrize(
    ("option", "comment"),
    [("--add-noqa", "  # noqa: ML101"), ("--add-ignore=later", "  # mllint: ignore[ML101] later")],
)
def test_comments_are_added(option: str, comment: str) -> None:
    data = write("a.ipynb", IMPORT, "## Title", BAD)
    assert mllint("a.ipynb", option).exit_code == 0
    assert Path("a.ipynb").read_bytes() == data.replace(b"x.cuda()", f"x.cuda(){comment}".encode())
    assert found("a.ipynb") == []


def test_the_list_of_accepted_findings_counts_those_of_notebooks() -> None:
    write("a.ipynb", IMPORT, BAD)
    assert mllint("a.ipynb", "--suppress-all").exit_code == 0
    assert json.loads(Path("mllint-suppressions.json").read_bytes()) == {"a.ipynb": {"ML101": 1}}
    assert found("a.ipynb") == []
    write("a.ipynb", IMPORT, BAD, BAD)
    assert found("a.ipynb") == ["a.ipynb:cell 2:2:1: ML101", "a.ipynb:cell 3:2:1: ML101"]


def test_settings_hold_for_notebooks() -> None:
    write("nb/a.ipynb", IMPORT, BAD)
    write("nb/old/b.ipynb", IMPORT, BAD)
    write("nb/.ipynb_checkpoints/a-checkpoint.ipynb", IMPORT, BAD)
    include = "--extend-include=*.ipynb"
    assert found("nb", include) == ["nb/a.ipynb:cell 2:2:1: ML101", "nb/old/b.ipynb:cell 2:2:1: ML101"]
    assert found("nb", include, "--extend-exclude=old") == ["nb/a.ipynb:cell 2:2:1: ML101"]
    assert found("nb", include, "--per-file-ignores=*.ipynb:ML101") == []
    assert found("nb/old/b.ipynb", "--extend-exclude=old", "--force-exclude") == []
    assert mllint("nb", include, "--show-files").stdout.split() == ["nb/a.ipynb", "nb/old/b.ipynb"]
    assert mllint("nb/a.ipynb", "--show-files").stdout == "nb/a.ipynb\n"
    assert mllint("nb", "--show-files").stdout == ""
    assert 'extend-include = ["*.ipynb"]' in mllint("nb", include, "--show-settings").stdout


def test_many_processes_and_the_cache_tell_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        write(f"{number}.ipynb", IMPORT, "!ls", BAD, "x = (")
    monkeypatch.delenv("MLLINT_NO_CACHE")
    monkeypatch.setenv("MLLINT_CACHE_DIR", str(folder / "cache"))
    names = [f"{number}.ipynb" for number in range(6)]
    first = mllint(*names, "-j1").stdout
    assert first.count("ML101") == first.count("ML001") == 6
    monkeypatch.setattr("mllint.engine.lint", None)  # whoever asks it now fails
    assert mllint(*names, "-j1").stdout == first
    monkeypatch.undo()
    os.chdir(folder)
    assert mllint(*names, "-j2", "--no-cache").stdout == first


def test_a_watch_looks_at_notebooks() -> None:
    assert watch._matters(os.sep + os.path.join("a", "b.ipynb"), is_new=False)
    assert not watch._matters(os.sep + os.path.join("a", ".ipynb_checkpoints", "b.ipynb"), is_new=False)


def test_large_outputs_cost_little_more_than_their_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    image = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo" * 1_000_000}, "metadata": {}}
    code = {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [image], "source": IMPORT + BAD}
    write("a.ipynb", code, "y = 1")
    sizes: list[int] = []
    monkeypatch.setattr("mllint.syntax.ipython.syntax_tree", lambda text: sizes.append(len(text)))
    assert found("a.ipynb") == ["a.ipynb:cell 1:4:1: ML101"]
    assert max(sizes) < 1000
    result = mllint("a.ipynb", "--output-format=sarif", "-q")
    assert json.loads(result.stdout)["runs"][0]["results"][0]["partialFingerprints"]
