"""Notebooks as text: which cells are a program, what IPython adds to Python, and the way back into the file."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mllint.diagnostics import Location
from mllint.syntax.cells import NotebookSource
from mllint.syntax.gate import is_notebook, may_concern_rules
from mllint.syntax.ipython import reading_of
from mllint.syntax.notebook import Notebook
from mllint.syntax.source import DecodingError, Source, UnwritableError, syntax_tree


def cell(source: str | list[str], kind: str = "code", **metadata: Any) -> dict[str, Any]:
    lines = source.splitlines(keepends=True) if isinstance(source, str) else source
    made: dict[str, Any] = {"cell_type": kind, "metadata": metadata, "source": lines}
    return {**made, "execution_count": None, "outputs": []} if kind == "code" else made


def notebook(*cells: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def source_of(*cells: str | dict[str, Any], **metadata: Any) -> Source:
    made = (cell(item) if isinstance(item, str) else item for item in cells)
    return Source.from_bytes(json.dumps(notebook(*made, **metadata)).encode(), "book.ipynb")


def program(*cells: str | dict[str, Any], **metadata: Any) -> list[str]:
    """The lines of the program that is made of cells, without the comments between them."""
    lines = source_of(*cells, **metadata).program.splitlines()
    return [line for line in lines if not line.startswith("# %% cell")]


# -- what is a notebook --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "path", "expected"),
    [
        (b'{"cells": []}', "a.ipynb", True),
        (b'\xef\xbb\xbf\r\n {"cells": []}', "a.ipynb", True),
        (b'{"cells": []}', "a.py", False),
        (b"import torch\n", "a.ipynb", False),  # the cells, as an editor puts them together
        (b"", "a.ipynb", False),
    ],
)
def test_name_and_content_make_a_notebook(data: bytes, path: str, expected: bool) -> None:
    assert is_notebook(data, path) is expected


REFUSED = {
    '{"nbformat": 4, "cells": [}': (1, "the notebook is not valid JSON: Expecting value"),
    '{"nbformat": 4,\n "cells": [],\n}': (3, "the notebook is not valid JSON: Expecting property name"),
    '{"nbformat": 4 "cells": []}': (1, "the notebook is not valid JSON: Expecting ',' delimiter"),
    '{"nbformat" 4}': (1, "the notebook is not valid JSON: Expecting ':' delimiter"),
    '{"nbformat": 4, "cells": []} x': (1, "the notebook is not valid JSON: Extra data"),
    '{"nbformat": 4, "cells": [{"source": "a\n"}]}': (1, "the notebook is not valid JSON: Invalid control character"),
    '{"nbformat": 4, "cells": [{"source": "a': (1, "the notebook is not valid JSON: Unterminated string"),
    '{"nbformat": 4, "cells": [': (1, "the notebook is not valid JSON: Expecting value"),
    '{\n<<<<<<< HEAD\n "nbformat": 4,\n': (2, "`<<<<<<<` is the marker of a merge conflict"),
    '{"nbformat": 3, "worksheets": []}': (1, "a notebook of format 3: mllint reads those of format 4"),
    '{"nbformat": 5, "cells": []}': (1, "a notebook of format 5: mllint reads those of format 4"),
    '{"cells": []}': (1, "this JSON is no notebook: it has no `nbformat`"),
    '{"nbformat": 4}': (1, "this JSON is no notebook: it has no `cells`"),
    '{"nbformat": 4, "cells": {}}': (1, "this JSON is no notebook: it has no `cells`"),
    '{"nbformat": 4, "cells": [{"source": ""}, {}]}': (1, "cell 2 of the notebook has no `source` that is text"),
    '{"nbformat": 4, "cells": [{"source": [1]}]}': (1, "cell 1 of the notebook has no `source` that is text"),
    '{"nbformat": 4, "cells": [null]}': (1, "cell 1 of the notebook has no `source` that is text"),
    '{"nbformat": 4, "cells": ' + "[" * 200_000: (1, "the JSON of the notebook is nested too deep"),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_what_is_no_notebook_is_refused_with_its_row(text: str) -> None:
    row, message = REFUSED[text]
    with pytest.raises(DecodingError) as caught:
        Source.from_bytes(text.encode(), "book.ipynb")
    assert (caught.value.row, str(caught.value)[: len(message)]) == (row, message)
    assert caught.value.help is not None


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(DecodingError, match="byte 0xe9 is not valid utf-8"):
        Source.from_bytes(b'{"nbformat": 4, "cells": [{"source": "\xe9"}]}', "book.ipynb")


def test_only_what_stands_in_cells_concerns_rules() -> None:
    shown = {**cell("print(1)"), "outputs": [{"text": "torch"}]}
    data = json.dumps(notebook(cell("about torch", "markdown"), shown)).encode()
    assert may_concern_rules(data)
    assert not may_concern_rules(data, "book.ipynb")
    assert may_concern_rules(json.dumps(notebook(cell("import torch"))).encode(), "book.ipynb")
    assert may_concern_rules(b'{"torch"', "book.ipynb")


# -- which cells are read ------------------------------------------------------------------------------------------


def test_cells_of_python_are_one_program() -> None:
    assert program("x = 1", cell("# Title", "markdown"), "y = x\n", cell("z", "raw")) == ["x = 1", "y = x", ""]
    assert program() == []
    assert program(cell("# Title", "markdown")) == []
    assert program("") == [""]


@pytest.mark.parametrize(
    "metadata",
    [
        {"language_info": {"name": "R"}},
        {"language_info": {"name": "julia"}, "kernelspec": {"language": "python"}},
        {"kernelspec": {"language": "c++"}},
    ],
)
def test_a_notebook_of_another_language_is_no_program(metadata: dict[str, Any]) -> None:
    assert program("x <- 1", **metadata) == []


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"language_info": {"name": "python"}},
        {"language_info": {"name": "ipython3"}},
        {"kernelspec": {"language": "python"}, "language_info": {}},
        {"kernelspec": None, "language_info": "none"},
    ],
)
def test_a_notebook_is_of_python_unless_it_says_otherwise(metadata: dict[str, Any]) -> None:
    assert program("x = 1", **metadata) == ["x = 1"]


def test_single_cells_may_be_of_another_language() -> None:
    sql = cell("select 1", vscode={"languageId": "sql"})
    python = cell("x = 1", vscode={"languageId": "python"})
    assert program(sql, python, cell("1 / 0", tags=["raises-exception"])) == ["x = 1"]


# -- what IPython adds ---------------------------------------------------------------------------------------------

READ = [
    ("!pip install torch\nx = 1", "0#ip install torch\nx = 1"),
    ("%matplotlib inline", "0#atplotlib inline"),
    ("% matplotlib inline", "0#matplotlib inline"),
    ("!", "0"),
    ("?", "0"),
    ("!x\n", "0#\n"),
    ("if colab:\n    !ls\n    %cd x\nelse:\n\t!ls", "if colab:\n    0#s\n    0#d x\nelse:\n\t0#s"),
    ("!a \\\n  b \\\n  c\nx = 1", "0# \\\n# b \\\n# c\nx = 1"),
    ("files = !ls -l\na, b = %magic 1", "files = _#s -l\na, b = _#agic 1"),
    ("self.files[0] = !ls", "self.files[0] = _#s"),
    ("x?", "0#"),
    ("?x.y\nx.y??\nprint(x)?  # help", "0#.y\n0#y??\n0#int(x)?  # help"),
    ("%%time\nx = 1", "#%time\nx = 1"),
    ("\n%%capture out\n%%timeit -n 2\nx = 1", "\n#%capture out\n#%timeit -n 2\nx = 1"),
    ("%time x = f()\ny = x", "1;    x = f()\ny = x"),
    ("if x:\n    %timeit f(x)", "if x:\n    1;      f(x)"),
    ("!ls\n!ls\n%time x = f()\n!ls", "0#s\n0#s\n1;    x = f()\n0#s"),
    ("%timeit -n 3 f(x)", "0#imeit -n 3 f(x)"),
    ("%time for x in y: pass", "0#ime for x in y: pass"),
    ("%time", "0#ime"),
    ("x = (a\n% b)", "x = (a\n% b)"),
    ("x = '''\n!ls\n'''", "x = '''\n!ls\n'''"),
    ("x = 5 % 2\ny = x != 2", "x = 5 % 2\ny = x != 2"),
    ("!echo it's\n!echo \"(\nx = 1", "0#cho it's\n0#cho \"(\nx = 1"),
    ("await f()\nasync with x as y:\n    pass", "await f()\nasync with x as y:\n    pass"),
    ("!ls\r\nx = 1\r\n", "0#s\r\nx = 1\r\n"),
    ("print loss", "print loss"),
    ("%load_ext autoreload\nprint loss", "0#oad_ext autoreload\nprint loss"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), READ)
def test_commands_are_left_out_and_everything_keeps_its_place(text: str, expected: str) -> None:
    reading = reading_of(text)
    assert reading is not None
    assert (reading.program, reading.problem, reading.head) == (expected, None, "")
    assert len(reading.program) == len(text)


def test_a_cell_of_another_language_is_none_of_the_program() -> None:
    others = ("%%bash\nls", "\n  \n%%html\n<b>", "%%writefile a.py\nx = 1", "%%", "pip install torch", "ls -l x/")
    assert [reading_of(text) for text in others] == [None] * len(others)


def test_an_indented_cell_is_read_as_ipython_does() -> None:
    reading = reading_of("    x = 1\n    y = 2")
    assert reading is not None
    assert (reading.head, reading.problem) == ("if 1:\n", None)
    source = source_of("a = 1", "    x = 1\n    y = 2", "b = 2")
    syntax_tree(source.program)
    assert source.placed(Location(5, 5)) == Location(1, 5, 2)
    assert source.placed(Location(8, 1)) == Location(1, 1, 3)
    assert source.encode(source.text.replace("y = 2", "z = 2")).count(b'"    z = 2"') == 1


@pytest.mark.parametrize(
    ("text", "row", "message"),
    [
        ("x = (\n", 1, "'(' was never closed"),
        ("x = 1\ny = <YOUR CODE>", 2, "invalid syntax"),
        ("pip install torch\nx = 1", 1, "invalid syntax"),
        ("x = 1\nprint('really?", 2, "unterminated string literal"),
        ("for x in y:\n!ls", 2, "expected an indented block after 'for'"),
        ("x = 1\n<<<<<<< HEAD\n", 2, "`<<<<<<<` is the marker of a merge conflict"),
        ("x = 1\0", 1, "source code string cannot contain null bytes"),
        ("x = '\ud800'", 1, "'utf-8' codec can't encode"),
    ],
)
def test_a_cell_that_cannot_be_read_is_reported(text: str, row: int, message: str) -> None:
    reading = reading_of(text)
    assert reading is not None
    assert reading.problem is not None
    assert reading.problem.row == row
    assert reading.problem.message.startswith(message)
    assert len(reading.program) == len(text)
    assert len(syntax_tree(reading.program).body) <= len(reading.program.splitlines())
    source = source_of("a = 1", text, "b = 2")
    assert [(fault.place.cell, fault.place.row) for fault in source.faults] == [(2, row)]
    syntax_tree(source.program)
    assert source.encode(source.text.replace("b = 2", "b = 3")) != source.encode(source.text)


def test_a_cell_that_cannot_be_read_may_do_anything_with_what_it_names() -> None:
    text = (
        "for x in loader:\n    optimizer.step(lr) # x\n    if\nloss = <CODE>\nx=\ndef f(y):\nx.y == 1\n"
        "net.eval(), 2\n  class  Net:\n\n''"
    )
    reading = reading_of(text)
    assert reading is not None
    assert reading.program == (
        "_(x,loader)#der:\n_(optimizer,lr,x)#(lr) # x\n#   if\nloss=_#<CODE>\n#=\nf=_#f(y):\n_(x)#= 1\n"
        "_(net)#l(), 2\nNet=_#s  Net:\n\n#'"
    )


@given(st.text(alphabet="!%?xy =()'\"\\\n\r\t#:if1;", max_size=60))
def test_any_text_is_read_or_left_open(text: str) -> None:
    reading = reading_of(text)
    if reading is not None:
        assert len(reading.program) == len(text)
        syntax_tree(reading.head + reading.program) if reading.problem is None else None
        assert reading.problem is None or syntax_tree(reading.program)


# -- places --------------------------------------------------------------------------------------------------------


def test_places_lead_to_cells_and_to_rows_of_the_file() -> None:
    raw = json.dumps(notebook(cell("# A", "markdown"), cell("x = 1\ny = 'é\\t😀' + z\n"), cell("w = 3")), indent=1)
    source = Source.from_bytes(raw.encode(), "book.ipynb")
    for word, expected in (("x", (1, 1, 2)), ("z", (2, 14, 2)), ("w", (1, 1, 3))):
        offset = source.text.index(f"{word} " if word != "z" else "z")
        inside = source.location(offset)
        place = source.placed(inside)
        assert (place.row, place.column, place.cell) == expected
        assert source.unplaced(place) == inside
        assert source.offset(place) == offset
        row, column = source.in_file(place).row, source.in_file(place).column
        assert raw.split("\n")[row - 1][column - 1 :].startswith(word)


def test_the_end_of_a_cell_has_a_place_in_the_file() -> None:
    raw = '{"cells": [{"cell_type": "code", "source": ["x = 1\\n", "y"]},\n{"cell_type": "code", "source": []},\n' \
          '{"cell_type": "code", "source": "a\\nb"}], "nbformat": 4}'  # fmt: skip
    source = Source.from_bytes(raw.encode(), "book.ipynb")
    places = [Location(2, 2, 1), Location(3, 1, 1), Location(1, 1, 2), Location(2, 1, 3), Location(9, 9, 3)]
    found = [source.in_file(place) for place in places]
    rows = raw.split("\n")
    assert [rows[place.row - 1][place.column - 1 :][:2] for place in found] == ['"]', '"]', "[]", 'b"', '"}']


# -- writing -------------------------------------------------------------------------------------------------------


def written(raw: str, before: str, after: str) -> str:
    source = Source.from_bytes(raw.encode(), "book.ipynb")
    assert before in source.text
    return source.encode(source.text.replace(before, after)).decode()


STYLES: list[tuple[str, str]] = [
    ('["x = 1\\n", "y = 2"]', '["x = 1\\n", "z = 3\\n", "y = 2"]'),
    ('["x = 1\\n","y = 2"]', '["x = 1\\n","z = 3\\n","y = 2"]'),
    ('[\n  "x = 1\\n",\n  "y = 2"\n ]', '[\n  "x = 1\\n",\n  "z = 3\\n",\n  "y = 2"\n ]'),
    ('[\r\n\t"x = 1\\n",\r\n\t"y = 2"\r\n]', '[\r\n\t"x = 1\\n",\r\n\t"z = 3\\n",\r\n\t"y = 2"\r\n]'),
    ('"x = 1\\ny = 2"', '"x = 1\\nz = 3\\ny = 2"'),
    ('[\n   "y = 2"\n  ]', '[\n   "z = 3\\n",\n   "y = 2"\n  ]'),
    ('["y = 2"]', '["z = 3\\n", "y = 2"]'),
    ('["#\\u003c\\/ \\u00e9\\n", "y = 2"]', '["#\\u003c\\/ \\u00e9\\n", "z = 3\\n", "y = 2"]'),
]


@pytest.mark.parametrize(("before", "after"), STYLES)
def test_code_is_written_in_the_style_that_is_there(before: str, after: str) -> None:
    raw = '{"nbformat_minor":5,"b": [1.0,\n1E5], "cells" :[{"source": %s , "cell_type":"code"}], "nbformat":4}\r\n\n'
    assert written(raw % before, "y = 2", "z = 3\ny = 2") == raw % after


def test_characters_are_escaped_where_the_others_are() -> None:
    raw = '{"nbformat": 4, "cells": [{"cell_type": "code", "source": ["s = \'%s\'\\n", "x"]}]}'
    assert written(raw % "\\u00e9", "x", "x = 'é'").endswith("\"x = '\\u00e9'\"]}]}")
    assert written(raw % "é", "x", "x = 'é'").endswith("\"x = 'é'\"]}]}")
    assert written(raw % "e", "x", "x = 'é'").endswith("\"x = 'é'\"]}]}")


def test_a_cell_may_become_empty() -> None:
    raw = '{"nbformat": 4, "cells": [{"cell_type": "code", "source": [\n"x"\n]}]}'
    assert json.loads(written(raw, "x", ""))["cells"][0]["source"] == []


def test_what_reaches_beyond_a_cell_is_not_written() -> None:
    source = source_of("x = 1", "!ls\ny = 2", "z = 3")
    assert isinstance(source, NotebookSource)
    assert source.encode(source.text) is source.encode(source.text)
    for spoiled in (
        source.text.replace("x = 1\n", "x = 1"),
        source.text.replace("# %% cell 2\n", ""),
        source.text.replace("# %% cell 2\n", "# %% cell 3\n"),
        source.text + "# %% cell 2\n",
        "x" + source.text,
        source.text[:-1],
        source.text.replace("!ls", "!rm x"),
        source.text.replace("!ls", "0#s"),
    ):
        with pytest.raises(UnwritableError):
            source.encode(spoiled)
    with pytest.raises(UnicodeEncodeError):
        source.encode(source.text.replace("x = 1", "x = '\ud800'"))


def test_a_cell_may_look_like_what_stands_between_cells() -> None:
    source = source_of("# %% cell 1\nx = 1\n# %% cell 2", "y = 2\n# %% cell_")
    changed = source.encode(source.text.replace("y = 2", "y = 3"))
    assert [item["source"] for item in json.loads(changed)["cells"]] == [
        ["# %% cell 1\n", "x = 1\n", "# %% cell 2"],
        ["y = 3\n", "# %% cell_"],
    ]


lines = st.text(alphabet="xy=1 \t'\"\\/é损😀\x7f\u2028#!%\r", max_size=8)
texts = st.lists(lines, max_size=4).map("\n".join)
styles = st.sampled_from([None, 0, 1, 2, 4, "\t"])


@given(st.lists(st.tuples(texts, st.booleans(), st.booleans()), max_size=5), texts, styles, st.booleans(), st.data())
def test_every_byte_outside_a_changed_cell_stays(
    cells: Sequence[tuple[str, bool, bool]], new: str, indent: int | None, is_ascii: bool, data: st.DataObject
) -> None:
    made = []
    for text, is_list, is_code in cells:
        item = cell(text, "code" if is_code else "markdown")
        made.append({**item, "source": item["source"] if is_list else text})
    raw = json.dumps(notebook(*made), indent=indent, ensure_ascii=is_ascii)
    book = Notebook(raw)
    assert [item.text for item in book.cells] == [text for text, _, _ in cells]
    source = Source.from_bytes(raw.encode(), "book.ipynb")
    assert source.encode(source.text) == raw.encode()
    if not cells:
        return
    number = data.draw(st.integers(1, len(cells)))
    after = book.with_texts({number: new})
    changed = book.cells[number - 1]
    assert after.startswith(raw[: changed.start])
    assert after.endswith(raw[changed.end :])
    expected = [new if index == number else text for index, (text, _, _) in enumerate(cells, start=1)]
    assert [item.text for item in Notebook(after).cells] == expected
    before_json, after_json = json.loads(raw), json.loads(after)
    assert isinstance(after_json["cells"][number - 1]["source"], list) is cells[number - 1][1]
    before_json["cells"][number - 1]["source"] = after_json["cells"][number - 1]["source"] = None
    assert before_json == after_json
