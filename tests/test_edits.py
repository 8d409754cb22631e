"""Builders of edits, through real trees and spans: the text that comes out is what is looked at."""

import ast
from collections.abc import Callable, Iterable

import libcst as cst
import pytest

from mllint import edits
from mllint.diagnostics import Applicability, Edit, Fix
from mllint.doubts import demoted
from mllint.edits import NodeEdit, Side
from mllint.imports import need_import
from mllint.syntax.parse import parse
from mllint.syntax.source import Source
from mllint.syntax.spans import spans_of
from mllint.syntax.walk import Tree


def tree_of(text: str) -> Tree:
    return Tree(parse(Source(text, "train.py")))


def apply(text: str, tree: Tree, changes: Iterable[NodeEdit]) -> str:
    """The text after the edits, which must leave valid Python."""
    changes = list(changes)
    wanted = [node for change in changes for node in (change.first, change.last)]
    spans = spans_of(tree.module, wanted, text)
    placed = [
        (
            spans[id(change.first)][change.first_side is Side.END],
            spans[id(change.last)][change.last_side is Side.END],
            change.content,
        )
        for change in changes
    ]
    for start, end, content in sorted(placed, reverse=True):
        assert start <= end
        text = text[:start] + content + text[end:]
    ast.parse(text)
    return text


def first(tree: Tree, kind: type[cst.CSTNode], index: int = 0) -> cst.CSTNode:
    return tree.by_type[kind][index]


def edit(text: str, build: Callable[[Tree], NodeEdit | Iterable[NodeEdit]]) -> str:
    tree = tree_of(text)
    built = build(tree)
    return apply(text, tree, [built] if isinstance(built, NodeEdit) else built)


def value_of_first_assign(tree: Tree) -> cst.BaseExpression:
    return tree.by_type[cst.Assign][0].value


# --- The smallest edits ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = x == nan\n", "y = f(x)\n"),
        ("y = (x == nan)\n", "y = (f(x))\n"),
        ("y = ( # why\r\n\tx == nan\r\n)\r\n", "y = ( # why\r\n\tf(x)\r\n)\r\n"),
        ("é = 'ß'; y = x == nan", "é = 'ß'; y = f(x)"),
    ],
)
def test_replace_keeps_outer_parentheses(before: str, after: str) -> None:
    assert edit(before, lambda tree: edits.replace(first(tree, cst.Comparison), "f(x)")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = a + b\n", "y = <a + b>\n"),
        ("y = (a + b)\n", "y = <(a + b)>\n"),
        ("y = ((a + b))  # c\n", "y = <((a + b))>  # c\n"),
        ("y = ( # c\n  a +\n\tb # d\n)\n", "y = <( # c\n  a +\n\tb # d\n)>\n"),
        ("if 1:\r\n\ty = (\r\n\t\ta + b\r\n\t)\r\n", "if 1:\r\n\ty = <(\r\n\t\ta + b\r\n\t)>\r\n"),
    ],
)
def test_wrap_goes_outside_of_parentheses(before: str, after: str) -> None:
    tree = tree_of(before)
    marked = edits.wrap(value_of_first_assign(tree), "f(", ")")
    assert apply(before, tree, marked) == after.replace("<", "f(").replace(">", ")")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("v = loss.data[0]\n", "v = loss.item()\n"),
        ("v = (loss.data[0])\n", "v = (loss.item())\n"),
        ("v = (a + b).data[0]\n", "v = (a + b).item()\n"),
        ("v = ((a + b).data[0])\n", "v = ((a + b).item())\n"),
        ("v = (loss\n     .data\n     [0])  # c\n", "v = (loss.item())  # c\n"),
    ],
)
def test_replace_between_keeps_what_is_in_front(before: str, after: str) -> None:
    def build(tree: Tree) -> NodeEdit:
        whole = first(tree, cst.Subscript)
        return edits.replace_between(whole.value.value, whole, ".item()")

    assert edit(before, build) == after


def test_replace_between_neighbours_takes_the_parentheses_of_the_last() -> None:
    def build(tree: Tree) -> NodeEdit:
        comparison = first(tree, cst.Comparison)
        return edits.replace_between(comparison.left, comparison.comparisons[0].comparator, ".isnan()")

    assert edit("v = (x) == (nan)\n", build) == "v = (x).isnan()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("v = float(x)\n", "v = x\n"),
        ("v = (float((x)))\n", "v = ((x))\n"),
    ],
)
def test_delete_before_unwraps(before: str, after: str) -> None:
    def build(tree: Tree) -> list[NodeEdit]:
        call = first(tree, cst.Call)
        argument = call.args[0].value
        return [edits.delete_before(call, argument), edits.replace_between(argument, call, "")]

    assert edit(before, build) == after


# --- Edits with a purpose -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "after"),
    [
        ("x", "x.item()"),
        ("x.y", "x.y.item()"),
        ("f(x)", "f(x).item()"),
        ("x[0]", "x[0].item()"),
        ("[1]", "[1].item()"),
        ("{1: 2}", "{1: 2}.item()"),
        ("'a' 'b'", "'a' 'b'.item()"),
        ("f'{a}'", "f'{a}'.item()"),
        ("1.5", "1.5.item()"),
        ("(a + b)", "(a + b).item()"),
        ("(yield)", "(yield).item()"),
        ("a + b", "(a + b).item()"),
        ("-a", "(-a).item()"),
        ("not a", "(not a).item()"),
        ("a and b", "(a and b).item()"),
        ("a if b else c", "(a if b else c).item()"),
        ("lambda: a", "(lambda: a).item()"),
        ("a, b", "(a, b).item()"),
        ("a < b", "(a < b).item()"),
        ("a ** b", "(a ** b).item()"),
        ("5", "(5).item()"),
        ("(5)", "(5).item()"),
        ("yield", "(yield).item()"),
        ("await a", "(await a).item()"),
    ],
)
def test_append_trailer_puts_parentheses_where_needed(expression: str, after: str) -> None:
    before = f"async def f():\n\ty = {expression}  # c\n"
    tree = tree_of(before)
    changes = edits.append_trailer(value_of_first_assign(tree), ".item()")
    result = apply(before, tree, changes)
    assert result == f"async def f():\n\ty = {after}  # c\n"
    # What `.item` hangs on must be the whole expression, not its last part.
    value = ast.parse(result).body[0].body[0].value
    whole = ast.parse(f"async def f():\n\ty = ({expression})").body[0].body[0].value
    assert ast.dump(value.func.value) == ast.dump(whole)


def test_append_trailer_to_a_bare_generator() -> None:
    def build(tree: Tree) -> Iterable[NodeEdit]:
        return edits.append_trailer(first(tree, cst.GeneratorExp), ".close()")

    assert edit("f(x for x in y)\n", build) == "f((x for x in y).close())\n"
    assert edit("f((x for x in y))\n", build) == "f((x for x in y).close())\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("optimizer.zero_grad\n", "optimizer.zero_grad()\n"),
        ("(optimizer.zero_grad)  # c\r\n", "(optimizer.zero_grad)()  # c\r\n"),
        ("if a: optimizer.zero_grad; b()", "if a: optimizer.zero_grad(); b()"),
    ],
)
def test_add_call_parentheses(before: str, after: str) -> None:
    def build(tree: Tree) -> Iterable[NodeEdit]:
        return edits.add_call_parentheses(first(tree, cst.Attribute))

    assert edit(before, build) == after


def test_rename_attribute() -> None:
    def build(tree: Tree) -> NodeEdit:
        return edits.rename_attribute(first(tree, cst.Attribute), "requires_grad")

    assert edit("(a.\\\n  require_grad) = True\n", build) == "(a.\\\n  requires_grad) = True\n"


def test_rename_keyword() -> None:
    def build(tree: Tree) -> NodeEdit:
        return edits.rename_keyword(first(tree, cst.Arg), "requires_grad")

    assert edit("f(require_grad = (1), b=2)\n", build) == "f(requires_grad = (1), b=2)\n"
    with pytest.raises(ValueError, match="no keyword"):
        edit("f(1)\n", build)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.cuda()\n", "x = x.cuda()\n"),
        ("x.cuda()", "x = x.cuda()"),
        ("a(); x.cuda(); b()\n", "a(); x = x.cuda(); b()\n"),
        ("if a:\n\t# why\n\tx.cuda()  # c\n", "if a:\n\t# why\n\tx = x.cuda()  # c\n"),
        ("(x\r\n  .cuda())\r\n", "x = (x\r\n  .cuda())\r\n"),
        ("if a: x.cuda(\n  0, # c\n)\n", "if a: x = x.cuda(\n  0, # c\n)\n"),
    ],
)
def test_assign_result(before: str, after: str) -> None:
    def build(tree: Tree) -> NodeEdit:
        (statement,) = (node for node in tree.by_type[cst.Expr] if isinstance(node.value.func, cst.Attribute))
        return edits.assign_result(statement, "x")

    assert edit(before, build) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("net.flag = False  # c\n", "net.set_(False)  # c\n"),
        ("net.a[0].flag = x or y\n", "net.a[0].set_(x or y)\n"),
        ("(net).flag = (  # c\n    x\n)\n", "(net).set_((  # c\n    x\n))\n"),
        ("if a: net.flag = b; c()\n", "if a: net.set_(b); c()\n"),
    ],
)
def test_call_instead_of_assigning(before: str, after: str) -> None:
    def build(tree: Tree) -> tuple[NodeEdit, ...]:
        (statement,) = tree.by_type[cst.Assign]
        return edits.call_instead_of_assigning(statement, statement.targets[0].target, "set_")

    assert edit(before, build) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("m = m.load(s)\n", "m.load(s)\n"),
        ("(m) = (m.load(s))  # c\n", "(m.load(s))  # c\n"),
        ("m = \\\n    m.load(s)\r\n", "m.load(s)\r\n"),
        ("m: Net = m.load(s)\n", "m.load(s)\n"),
        ("if a:\n\tm=m.load(\n\t\ts)\n", "if a:\n\tm.load(\n\t\ts)\n"),
    ],
)
def test_delete_assignment_target(before: str, after: str) -> None:
    def build(tree: Tree) -> NodeEdit:
        statement = (tree.by_type[cst.Assign] + tree.by_type[cst.AnnAssign])[0]
        return edits.delete_assignment_target(statement)

    assert edit(before, build) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(gone=1)\n", "f()\n"),
        ("f(a, gone=(1))\n", "f(a)\n"),
        ("f((a), gone=1, b=2)\n", "f((a), b=2)\n"),
        ("f(gone=1, b=2)\n", "f(b=2)\n"),
        ("f(gone=1, *a)\n", None),
        ("f(gone=1,)\n", None),
        ("f(\n    a,\n    gone=1,\n)\n", "f(\n    a,\n)\n"),
        ("f(1)\n", None),
    ],
)
def test_delete_argument(before: str, after: str | None) -> None:
    tree = tree_of(before)
    call = first(tree, cst.Call)
    argument = next((item for item in call.args if item.keyword is not None and item.keyword.value == "gone"), None)
    change = edits.delete_argument(call, argument or call.args[0])
    assert (None if change is None else apply(before, tree, [change])) == after


@pytest.mark.parametrize(
    ("index", "after"),
    [(0, "b = (m) = v\n"), (1, "a = (m) = v\n"), (2, "a = b = v\n")],
)
def test_delete_one_of_several_targets(index: int, after: str) -> None:
    def build(tree: Tree) -> NodeEdit:
        statement = first(tree, cst.Assign)
        return edits.delete_assignment_target(statement, statement.targets[index])

    assert edit("a = b = (m) = v\n", build) == after


def test_delete_assignment_target_says_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="several targets"):
        edits.delete_assignment_target(first(tree_of("a = b = v\n"), cst.Assign))
    with pytest.raises(ValueError, match="assigns nothing"):
        edits.delete_assignment_target(first(tree_of("a: int\n"), cst.AnnAssign))


# --- Imports --------------------------------------------------------------------------------------


def imported(text: str, module: str = "math") -> tuple[str, str]:
    tree = tree_of(text)
    name, change = need_import(tree, module)
    return name, text if change is None else apply(text, tree, [change])


@pytest.mark.parametrize(
    ("text", "module", "name"),
    [
        ("import math\n", "math", "math"),
        ("import os, math\n", "math", "math"),
        ("import math as m\n", "math", "m"),
        ("x = 1; import math\n", "math", "math"),
        ("import numpy as np\nf(np, x=np)\n", "numpy", "np"),
        ("import torch.nn.functional as F\n", "torch.nn.functional", "F"),
        ("from torch.nn import functional as F\n", "torch.nn.functional", "F"),
        ("from torch import nn, optim\n", "torch.nn", "nn"),
        ("import torch\nimport torch.nn\n", "torch.nn", "torch.nn"),
        ("import torch\n", "torch.nn", "torch.nn"),
        ("import torch as th\n", "torch.nn", "th.nn"),
        ("import paddle\nfrom paddle import nn\n", "paddle.nn", "nn"),
        ("import paddle\n", "paddle.nn", "paddle.nn"),
        ("import math\nif a:\n    import math\n", "math", "math"),
        ("import math\nclass A:\n    x = math.pi\n    def math2(self, a=math): f(math=1)\n", "math", "math"),
    ],
)  # fmt: skip
def test_visible_module_needs_no_import(text: str, module: str, name: str) -> None:
    assert imported(text, module) == (name, text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Sorted into the first block of imports.
        ("import os\nimport sys\n", "import math\nimport os\nimport sys\n"),
        ("import io  # c\nimport torch\n", "import io  # c\nimport math\nimport torch\n"),
        ("import io  # c\n\nimport torch\n", "import io  # c\nimport math\n\nimport torch\n"),
        ("import io\nfrom a import b\n", "import io\nimport math\nfrom a import b\n"),
        ("from a import (\n  b\n)\n", "import math\nfrom a import (\n  b\n)\n"),
        ("import io; import abc\nx = 1\n", "import io; import abc\nimport math\nx = 1\n"),
        ("import io\n# c\nimport torch\n", "import io\nimport math\n# c\nimport torch\n"),
        ("import io", "import math\nimport io"),
        # Behind what must stay in front.
        ("#!/bin/sh\n# coding: utf-8\nimport os\n", "#!/bin/sh\n# coding: utf-8\nimport math\nimport os\n"),
        ('"""Doc."""\n\nimport os\n', '"""Doc."""\n\nimport math\nimport os\n'),
        ('"""Doc."""\n\nx = 1\n', '"""Doc."""\n\nimport math\n\nx = 1\n'),
        ('"""Doc."""  # c\nx = 1\n', '"""Doc."""  # c\n\nimport math\nx = 1\n'),
        ('"""Doc."""', 'import math\n"""Doc."""'),
        (
            '"""Doc."""\nfrom __future__ import annotations\n\nimport torch\n',
            '"""Doc."""\nfrom __future__ import annotations\n\nimport math\nimport torch\n',
        ),
        (
            "from __future__ import annotations\nx = 1\n",
            "from __future__ import annotations\n\nimport math\nx = 1\n",
        ),
        # No import to stand beside.
        ("# license\n\nx = 1\n", "# license\n\nimport math\n\nx = 1\n"),
        ("x = 1\nimport os\n", "x = 1\nimport math\nimport os\n"),
        ("@a\ndef f(): pass\n", "import math\n\n@a\ndef f(): pass\n"),
        ("class A: pass\n", "import math\n\nclass A: pass\n"),
        # Never inside of what may not run.
        ("try:\n\timport math\nexcept E:\n\tpass\n", "import math\n\ntry:\n\timport math\nexcept E:\n\tpass\n"),
        (
            "if TYPE_CHECKING:\n    import math\nimport torch\n",
            "if TYPE_CHECKING:\n    import math\nimport math\nimport torch\n",
        ),
        # The line end of the place.
        ("import io\r\nimport os\r\n", "import io\r\nimport math\r\nimport os\r\n"),
        ("import io\nimport os\r\nx = 1\n", "import io\nimport math\r\nimport os\r\nx = 1\n"),
        ('"""Doc."""\r\n\r\nx = 1\r\n', '"""Doc."""\r\n\r\nimport math\r\n\r\nx = 1\r\n'),
        # What is not this module does not make it visible.
        ("from math import nan\n", "import math\nfrom math import nan\n"),
        ("from . import math2\n", "import math\nfrom . import math2\n"),
        ("import math.x as y\n", "import math\nimport math.x as y\n"),
    ],
)  # fmt: skip
def test_import_is_inserted_once(before: str, after: str) -> None:
    assert imported(before) == ("math", after)
    assert imported(after) == ("math", after)


@pytest.mark.parametrize(
    "text",
    [
        "math = 3\n",
        "def f(math): pass\n",
        "def math(): pass\n",
        "class math: pass\n",
        "for math in x: pass\n",
        "for (a, [*math, b]) in x: pass\n",
        "with x as math: pass\n",
        "x = [math for math in y]\n",
        "if (math := 1): pass\n",
        "from . import math\n",
        "from sympy import math\n",
        "import numpy as math\n",
        "import numpy as math\nimport math\n",
        "def f():\n    global math\n    math = 1\n",
        "def f():\n    import math\n",
        "try: pass\nexcept E as math: pass\n",
        "match a:\n    case math: pass\n",
        "math += 1\n",
        "math: int = 1\n",
        "del math\n",
    ],
)
def test_a_taken_name_is_left_alone(text: str) -> None:
    name, result = imported(text)
    assert name == "_math"
    assert "import math as _math\n" in result
    assert imported(result) == ("_math", result)


def test_a_taken_alias_is_left_alone_too() -> None:
    name, result = imported("math = _math = 1\n")
    assert name == "_math_"
    assert "import math as _math_\n" in result


def test_dotted_module_gets_a_plain_alias() -> None:
    assert imported("torch = 1\n", "torch.nn")[0] == "_torch_nn"
    assert imported("import os\n", "torch.nn") == ("torch.nn", "import os\nimport torch.nn\n")


@pytest.mark.parametrize(
    ("text", "is_late"),
    [
        ("def f():\n    import torch\n", True),
        ("try:\n    import torch.nn as nn\nexcept ImportError:\n    pass\n", True),
        ("if TYPE_CHECKING:\n    from torch import Tensor\n", True),
        ("from torch import nn\ndef f():\n    import torch\n", False),
        ("import numpy\n", False),
    ],
)
def test_an_import_that_a_file_only_makes_late_is_doubtful(text: str, is_late: bool) -> None:
    _, change = need_import(Tree(cst.parse_module(text)), "torch")
    assert change is not None
    assert change.is_doubtful is is_late
    source = Source(text, "train.py")
    fix = Fix("mend", Applicability.SAFE, ())
    expected = Applicability.UNSAFE if is_late else Applicability.SAFE
    assert demoted(fix, (change,), source).applicability is expected


# --- Comments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "removed", "content", "expected"),
    [
        ("x = 1\n", "x", "y", Applicability.SAFE),
        ("f(a,  # why\n  b)\n", "a,  # why\n  b", "b", Applicability.UNSAFE),
        ("f(a,  # why\n  b)\n", "a,  # why\n  b", "b  # why\n", Applicability.SAFE),
        ("f(a,  # why\n  b)\n", "b", "c", Applicability.SAFE),
        ("x = '# no'\n", "'# no'", "''", Applicability.SAFE),
        ("x = 1  # é\r\ny = 2  # b\r\n", "y = 2  # b", "", Applicability.UNSAFE),
        ("x = 1  # é\r\ny = 2  # b\r\n", "y = 2  ", "", Applicability.SAFE),
    ],
)
def test_a_fix_that_loses_a_comment_is_not_safe(text: str, removed: str, content: str, expected: Applicability) -> None:
    source = Source(text, "train.py")
    start = text.index(removed)
    end = start + len(removed)
    change = Edit(start, end, content, source.location(start), source.location(end))
    fix = Fix("mend", Applicability.SAFE, (change,))
    assert demoted(fix, (), source).applicability is expected
    display = Fix("mend", Applicability.DISPLAY, (change,))
    assert demoted(display, (), source) is display
