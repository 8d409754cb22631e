"""What the model knows of leaves, of views and copies, and of what a statement writes to."""

import textwrap

import libcst as cst
import pytest

from mllint.semantic.graph import indexing, leaves
from mllint.semantic.model import Model
from mllint.semantic.names import writes
from mllint.semantic.values import Tensor
from mllint.syntax.parse import parse
from mllint.syntax.source import Source
from mllint.syntax.walk import Tree

HEADER = "import numpy as np\nimport paddle\nimport torch\nfrom torch import nn\nfrom torch.autograd import Variable\n"


def model_of(source: str) -> Model:
    text = HEADER + textwrap.dedent(source).strip("\n") + "\n"
    return Model(Tree(parse(Source(text, "example.py"))), Source(text, "example.py"))


def last(model: Model) -> cst.BaseExpression:
    """The expression statement at the end of the source."""
    expression: cst.BaseExpression = model.tree.by_type[cst.Expr][-1].value
    return expression


# -- leaves ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "leaf"),
    [
        ("torch.zeros(3, requires_grad=True)", True),
        ("torch.zeros(3)", False),
        ("torch.zeros(3, requires_grad=False)", False),
        ("torch.zeros(3, requires_grad=flag)", False),
        ("torch.zeros(3).requires_grad_()", True),
        ("torch.zeros(3).requires_grad_(False)", False),
        ("torch.zeros(3, requires_grad=True) * 2", False),
        ("torch.zeros(3, requires_grad=True).clone()", False),
        ("torch.zeros(3, requires_grad=True).data", False),
        ("torch.zeros(3, requires_grad=True).T", False),
        ("abs(torch.zeros(3, requires_grad=True))", False),
        ("sum([torch.zeros(3, requires_grad=True)])", False),
        ("nn.Parameter(torch.zeros(3))", True),
        ("nn.Parameter(torch.zeros(3), requires_grad=False)", False),
        ("nn.Parameter(torch.zeros(3), False)", False),
        ("Variable(torch.zeros(3), requires_grad=True)", True),
        ("Variable(torch.zeros(3))", False),
        ("nn.Linear(2, 2).weight", True),
        ("paddle.nn.Linear(2, 2, weight_attr=attribute).weight", False),
        ("paddle.to_tensor([1.0], stop_gradient=False)", True),
        ("paddle.to_tensor([1.0])", False),
    ],
)
def test_made_as_leaf(expression: str, leaf: bool) -> None:
    model = model_of(f"def f(flag, attribute):\n    {expression}")
    found = model.value(last(model))
    assert isinstance(found, Tensor)
    assert found.leaf is leaf


@pytest.mark.parametrize(
    ("source", "leaf"),
    [
        ("w = torch.zeros(3)\nw.requires_grad = True\nw", True),
        ("w = torch.zeros(3)\nw", False),
        ("w = torch.zeros(3, requires_grad=True)\nw -= 1\nw", True),
        ("w = torch.zeros(3, requires_grad=True)\nfor _ in range(3):\n    w -= 1\n    w", True),
        ("w = torch.zeros(3, requires_grad=True)\nw.requires_grad = False\nw", False),
        ("w = torch.zeros(3, requires_grad=True)\nw.requires_grad_(False)\nw", False),
        ("w = torch.zeros(3, requires_grad=True)\nif unknown:\n    w = torch.zeros(3)\nw", False),
        ("w = paddle.zeros([3])\nw.stop_gradient = False\nw", True),
        ("w = paddle.to_tensor([1.0], stop_gradient=False)\nw -= 1\nw", False),
    ],
)
def test_leaf_at_a_place(source: str, leaf: bool) -> None:
    model = model_of(source)
    assert leaves.is_leaf(model, last(model)) is leaf


# -- views and copies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "copies"),
    [
        ("x > 0", True),
        ("~(x > 0)", True),
        ("(x > 0) & (x < 1)", True),
        ("(x > 0).unsqueeze(-1)", True),
        ("torch.isnan(x)", True),
        ("torch.ones(3, dtype=torch.bool)", True),
        ("[0, 2]", True),
        ("range(2)", True),
        ("torch.tensor([0])", True),
        ("torch.arange(3)", True),
        (":, [0]", True),
        ("0, torch.tensor([0])", True),
        ("np.array([0, 1])", True),
        ("np.where(array > 0)[0]", True),
        ("0", False),
        ("-1", False),
        (":2", False),
        ("None", False),
        ("..., 0", False),
        ("torch.tensor(0)", False),
        ("index", False),
        ("torch.tensor([0])[0]", False),
        ("torch.nonzero(x).squeeze()", False),
    ],
)
def test_advanced_index(index: str, copies: bool) -> None:
    model = model_of(f"array = np.zeros(3)\ndef f(index):\n    x = torch.rand(3, 4)\n    x[{index}]")
    node = last(model)
    assert isinstance(node, cst.Subscript)
    assert indexing.is_advanced(model, node) is copies


@pytest.mark.parametrize(
    ("index", "basic"),
    [("0", True), ("-1, :2", True), ("None, ...", True), ("i", False), ("[0]", False), ("True", False)],
)
def test_basic_index(index: str, basic: bool) -> None:
    node = last(model_of(f"x[{index}]"))
    assert isinstance(node, cst.Subscript)
    assert writes.is_basic_index(node) is basic


# -- writes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "target", "how"),
    [
        ("x -= 1", "x", "-="),
        ("x[0] = 1", "x", "[...] ="),
        ("x[0] += 1", "x", "[...] ="),
        ("x[0][1] = 1", "x[0]", "[...] ="),
        ("x.mul_(2)", "x", "mul_()"),
        ("x[0].mul_(2).add_(1)", "x[0]", "mul_()"),
        ("nn.init.zeros_(x)", "x", "zeros_()"),
        ("x.mul(2)", None, None),
        ("x.requires_grad_()", None, None),
        ("x.__init__()", None, None),
        ("x = y = 1", None, None),
        ("x.step_()", None, None),
    ],
)
def test_what_is_written_to(statement: str, target: str | None, how: str | None) -> None:
    model = model_of(statement)
    body = model.tree.module.body[-1]
    assert isinstance(body, cst.SimpleStatementLine)
    found = writes.write(model, body.body[0])
    assert (None if found is None else model.tree.module.code_for_node(found.target)) == target
    assert (None if found is None else found.how) == how
