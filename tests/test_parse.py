"""The bounds of the parser: what would end the process is an error, what people write is parsed."""

import contextlib
import sys

import libcst as cst
import pytest

from mllint.syntax.parse import ParseError, parse
from mllint.syntax.source import Source
from mllint.syntax.spans import RoundTripError, spans_of
from mllint.syntax.walk import Tree


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "-" * 20000 + "y",
        "x = " + "- " * 20000 + "y",
        "x = (" + "-\n" * 20000 + "y)",
        "x = " + "not " * 20000 + "y",
        "x = " + "+".join("y" * 20000),
        "x = (" + "\n+".join("y" * 20000) + ")",
        "x = " + "(" * 5000 + ")" * 5000,
        "x = " + "lambda: " * 5000 + "y",
        "x = " + "a if b else " * 5000 + "y",
        "x" + ".a" * 20000,
        "x" + "[0]" * 20000,
        "x" + "()" * 20000,
        "if a: pass\n" + "elif a: pass\n" * 5000,
        "x = f'{" + "(" * 5000 + ")" * 5000 + "}'",
        "x = rF'''{" + "\n(" * 5000 + ")" * 5000 + "}'''",
        't = t"{' + "(" * 5000 + ")" * 5000 + '}"',
        "x = f'{" + "+".join("y" * 20000) + "}'",
        "x = f'{{{" + "-" * 20000 + "y}}}'",
        "".join(" " * depth + "if a:\n" for depth in range(1000)) + " " * 1000 + "pass",
    ],
)  # fmt: skip
def test_nesting_beyond_the_bounds_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse(Source(text + "\n", "train.py"))


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "+".join("y" * 900),
        "x = " + "-" * 900 + "y",
        "x" + ".a" * 900,
        "x = " + "(" * 150 + "y" + ")" * 150,
        "if a: pass\n" + "elif a: pass\n" * 1900,
        "x = f'" + "<b> a - b = c; {y} {z:{w}.3f} }} {{ " * 500 + "'",
        "x = f'''" + "{{ color: red; a > b }}\n{y.z[0]}\n" * 500 + "'''",
        "x = [" + "a - b, " * 5000 + "]",
        "f(" + "a=-1, " * 5000 + ")",
        "x = '" + "-" * 5000 + "'  # " + "(" * 5000,
        "x = [" + "f'{a}-{b}' " * 900 + "]",
    ],
)
def test_what_is_within_the_bounds_is_parsed_and_placed(text: str) -> None:
    module = parse(Source(text + "\n", "train.py"))
    assert isinstance(module, cst.Module)
    # Printing a tree recurses as well, which Python 3.12 may not let be.
    statement = module.body[0]
    with contextlib.suppress(*([RoundTripError] if sys.version_info[:2] == (3, 12) else [])):
        assert spans_of(module, [statement], text + "\n")[id(statement)][0] == 0


@pytest.mark.parametrize(
    "text",
    [
        "a\rx\r",
        "a\r\nx\ry\n",
        "a\r# c\rx",
        "a\n\fx\n",
        "a\r\n\f\f\nx\r\n",
        "a\n\f\n\fdef x():\n\ty\n",
        "a\n'''\n\f\r'''\nx\f\n",
        "a\\\n\f+ 1\nx\n",
        "\fx\n",
        "\\\nx\n",
        "\\\r\n\f\\\n\f\fx\r\n",
        "if a:\n    x\n\n\n \n",
        "def f():\n    x\n\n\t\r\n  # c\r\n\n    ",
        "x\n\n    # c\n",
        "x\n\n \n# c",
        "x\\\n\n \n",
        'x.a = """\n    # c\n\n  # """\n',
        "if a:\n\t  b\n\t  if c:\n\t\t  x\n",
        "if a:\r\n\t  b\r\n\t  if c:\r\n\t\t  x\r\n",
        "if a:\n\tif b:\n\t\t# c\n         x\n",
        'if a:\n\t b = """\n\t\ty\n z"""\n\t if c:\n\t\t (\n\tx)\n',
    ],
)
def test_odd_line_ends_move_nothing(text: str) -> None:
    module = parse(Source(text, "train.py"))
    (name,) = (node for node in Tree(module).by_type[cst.Name] if node.value == "x")
    start, end = spans_of(module, [name], text)[id(name)]
    assert text[start:end] == "x"
