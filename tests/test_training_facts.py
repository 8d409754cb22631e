"""What the model knows of methods that are only named, and of the order and mode of training."""

import textwrap

import libcst as cst
import pytest

from mllint.semantic.model import Model
from mllint.semantic.named_methods import named_method
from mllint.syntax.parse import parse
from mllint.syntax.source import Source
from mllint.syntax.walk import Tree

HEADER = "import paddle\nimport torch\nfrom torch import nn\n"


def model_of(source: str) -> Model:
    text = HEADER + textwrap.dedent(source).strip("\n") + "\n"
    return Model(Tree(parse(Source(text, "example.py"))), Source(text, "example.py"))


def last(model: Model) -> cst.BaseExpression:
    """The expression statement at the end of the source."""
    expression: cst.BaseExpression = model.tree.by_type[cst.Expr][-1].value
    return expression


# -- methods that are named --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "needs_nothing"),
    [
        ("nn.Linear(2, 2).eval", True),
        ("nn.Linear(2, 2).apply", False),
        ("nn.Linear(2, 2).training", None),
        ("torch.optim.SGD([]).step", True),
        ("torch.optim.SGD([]).param_groups", None),
        ("torch.amp.GradScaler().step", False),
        ("torch.amp.GradScaler().update", True),
        ("torch.optim.lr_scheduler.StepLR(o, 1).step", True),
        ("torch.optim.lr_scheduler.ReduceLROnPlateau(o).step", False),
        ("torch.zeros(3).backward", True),
        ("torch.zeros(3).clamp", False),
        ("torch.zeros(3).shape", None),
        ("paddle.optimizer.SGD().clear_grad", True),
        ("paddle.nn.Linear(2, 2).eval", True),
        ("nn.functional.relu", None),
        ("o.step", None),
    ],
)
def test_named_methods(expression: str, needs_nothing: bool | None) -> None:
    model = model_of(f"def f(o):\n    {expression}")
    node = last(model)
    assert isinstance(node, cst.Attribute)
    found = named_method(model, node)
    assert (None if found is None else found.needs_nothing) is needs_nothing


def test_other_methods_tell_what_a_thing_is() -> None:
    node = last(model := model_of("def f(o):\n    o.zero_grad()\n    o.step"))
    assert isinstance(node, cst.Attribute)
    assert named_method(model, node) is not None
