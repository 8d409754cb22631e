"""What the model knows of methods that are only named, and of the order and mode of training."""

import textwrap

import libcst as cst
import pytest

from mllint.knowledge import lookup
from mllint.semantic.graph.consumers import consumer
from mllint.semantic.graph.used_up import used_up
from mllint.semantic.model import Model
from mllint.semantic.modules.batches import batch_of_one, surely_trains
from mllint.semantic.modules.made_in_forward import made_in_forward
from mllint.semantic.modules.modes import is_same_in_all_modes, runs_in_one_mode
from mllint.semantic.modules.single_values import starved_norm
from mllint.semantic.names.named_methods import named_method
from mllint.semantic.training import made_in_mode
from mllint.semantic.training.data_loops import may_be_forward_pass
from mllint.semantic.training.schedulers import never_stepped
from mllint.syntax.bare import bare_tree
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


# -- the mode ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "in_one_mode"),
    [
        ("f()", False),
        ("if self.training:\n    f()", True),
        ("if not self.training:\n    pass\nelse:\n    f()", True),
        ("if self.model:\n    f()", False),
        ("active = self.training\nif active:\n    f()", True),
        ("if not self.training:\n    return\nf()", True),
        ("if not self.training:\n    pass\nf()", False),
        ("self.training and f()", True),
        ("x = f() if is_train else 1", True),
        ("def inner():\n    f()\nif self.training:\n    inner()", True),
    ],
)
def test_places_of_one_mode(body: str, in_one_mode: bool) -> None:
    method = textwrap.indent(body, "        ")
    model = model_of(f"class Net(nn.Module):\n    def forward(self, is_train):\n{method}")
    (call,) = model.calls_by_word["f"]
    assert runs_in_one_mode(model, call) is in_one_mode


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        ("0.5", True),
        ("0.0", False),
        ("self.p", True),
        ("self.p / 2", True),
        ("self.zero", False),
        ("self.changed", False),
        ("self.config.p", True),
        ("given", False),
        ("0.5 if self.training else 0", False),
        ("unknown", False),
    ],
)
def test_numbers_that_do_not_depend_on_the_mode(expression: str, same: bool) -> None:
    model = model_of(
        f"""
        class Net(nn.Module):
            def __init__(self, p, config):
                self.p, self.changed, self.config = p, p, config
                self.zero = 0
            def start(self):
                self.changed = 0
            def forward(self, given):
                {expression}
        """
    )
    assert is_same_in_all_modes(model, last(model)) is same


# -- layers that are made in forward -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("return nn.Linear(2, 2)(x)", ["Linear"]),
        ("return nn.ReLU()(x)", []),
        ("return nn.Dropout()(x)", ["Dropout"]),
        ("layer = nn.Linear(2, 2)\nreturn layer", []),
        ("layer = nn.Linear(2, 2).cuda()\nlayer = layer.half()\nreturn layer(x)", ["Linear"]),
        ("if self.a is None:\n    self.a = nn.Linear(2, 2)\nreturn self.a(x)", []),
        ("self.a = nn.Linear(2, 2)\nreturn self.a(x)", ["Linear"]),
        ("return nn.Sequential(self.a)(x)", []),
        ("return self.other(x)", []),
    ],
)
def test_made_in_forward(body: str, made: list[str]) -> None:
    method = textwrap.indent(body, "        ")
    model = model_of(f"class Net(nn.Module):\n    def forward(self, x):\n{method}")
    assert [item.name for item in made_in_forward(model)] == made


# -- generators --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "by", "exhausts"),
    [
        ("list(g)", "`list`", True),
        ("any(g)", "`any`", False),
        ("torch.optim.SGD(g, lr=1)", "`SGD`", True),
        ("torch.optim.SGD([{'params': g}])", "`SGD`", True),
        ("paddle.optimizer.SGD(0.1, parameters=g)", "`SGD`", True),
        ("paddle.optimizer.SGD(g)", "`SGD`", True),
        ("[*g]", "`*`", True),
        ("[x for x in g]", "the comprehension", True),
        ("sum(x for x in g)", "`sum`", True),
        ("sum(map(len, g))", "`sum`", True),
        ("next(g)", None, None),
        ("unknown(g)", None, None),
        ("count(g)", "`count`", True),
        ("maybe(g)", None, None),
    ],
)
def test_consumers(use: str, by: str | None, exhausts: bool | None) -> None:
    model = model_of(
        f"""
        def count(items):
            return len([item for item in items])

        def maybe(items, flag=False):
            if flag:
                list(items)

        def f(g):
            {use}
        """
    )
    name = model.names_by_word["g"][-1]
    found = consumer(model, name)
    assert (None if found is None else (found.by, found.exhausts)) == (None if by is None else (by, exhausts))


def test_generators_that_are_used_up() -> None:
    model = model_of(
        """
        def f(net: nn.Module):
            a = net.parameters()
            list(a)
            list(a)
            b = net.parameters()
            list(b)
            for _ in range(3):
                c = net.named_parameters()
                list(c)
            d = map(id, net.parameters())
            for _ in range(3):
                list(d)
        """
    )
    assert [(item.binding.key, item.again) for item in used_up(model)] == [("a", False), ("d", True)]


# -- schedulers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "keys"),
    [
        ("print(s)", ["s"]),
        ("s.get_last_lr()", ["s"]),
        ("s is None", ["s"]),
        ("s.step()", []),
        ("s.unknown", []),
        ("f(s)", []),
        ("[s]", []),
    ],
)
def test_schedulers_that_are_never_stepped(use: str, keys: list[str]) -> None:
    model = model_of(
        f"""
        def train(o, f):
            s = torch.optim.lr_scheduler.StepLR(o, 10)
            o.step()
            {use}
        """
    )
    assert [found.key for found in never_stepped(model)] == keys


def test_schedulers_where_nothing_is_trained() -> None:
    assert list(never_stepped(model_of("s = torch.optim.lr_scheduler.StepLR(o, 10)"))) == []


def test_classes_of_kind() -> None:
    schedulers = lookup.classes_of_kind("scheduler")
    assert {"torch.optim.lr_scheduler.StepLR", "paddle.optimizer.lr.StepDecay"} <= schedulers
    assert "torch.nn.Linear" not in schedulers


# -- batches of one ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "rank"),
    [
        ("torch.randn(1, 8)", 2),
        ("torch.zeros((1, 3, 4, 4)).cuda()", 4),
        ("torch.randn(2, 8)", None),
        ("torch.randn(n, 8)", None),
        ("torch.randn(1)", None),
        ("x", 2),
    ],
)
def test_batches_of_one(expression: str, rank: int | None) -> None:
    model = model_of(f"def f(n):\n    x = torch.ones(1, 4).to(n)\n    {expression}")
    found = batch_of_one(model, last(model))
    assert (None if found is None else found.rank) == rank


@pytest.mark.parametrize(
    ("layers", "rank", "norm"),
    [
        ("nn.Linear(8, 4), nn.BatchNorm1d(4)", 2, "BatchNorm1d"),
        ("nn.Linear(8, 4), nn.ReLU(), nn.BatchNorm1d(4)", 2, "BatchNorm1d"),
        ("nn.Linear(8, 4), nn.BatchNorm1d(4)", 3, None),
        ("nn.Flatten(), nn.Linear(8, 4), nn.BatchNorm1d(4)", None, "BatchNorm1d"),
        ("nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(4)", None, "BatchNorm2d"),
        ("nn.AdaptiveAvgPool2d(2), nn.BatchNorm2d(4)", None, None),
        ("nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)", 4, None),
        ("*rest, nn.BatchNorm1d(4)", 2, None),
    ],
)
def test_norms_with_one_value_per_channel(layers: str, rank: int | None, norm: str | None) -> None:
    model = model_of(f"nn.Sequential({layers})")
    assert starved_norm(model, last(model), rank) == norm


@pytest.mark.parametrize(
    ("before", "trains"),
    [
        ("", True),
        ("net.train()", True),
        ("net.eval()", False),
        ("net.train(flag)", False),
        ("use(net)", True),
        ("use(net)\nother.eval()", False),
        ("other.eval()", True),
    ],
)
def test_modules_that_surely_train(before: str, trains: bool) -> None:
    body = textwrap.indent(f"net = nn.Linear(2, 2)\n{before}\nnet(1)", "    ")
    model = model_of(f"def f(flag, use, other):\n{body}")
    call = last(model)
    assert isinstance(call, cst.Call)
    assert surely_trains(model, call.func, call) is trains


def test_makers_that_call_each_other_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"def make_{depth}():\n    return {' or '.join([f'make_{depth + 1}()'] * 9)}\n" for depth in range(12)]
    text = "\n".join([*rows, "def make_12():\n    return make_0()\n"])
    tree = bare_tree(text)
    model = Model(tree, Source(text, "example.py"))
    looked_at: list[str] = []
    switches = made_in_mode._switches
    monkeypatch.setattr(made_in_mode, "_switches", lambda info: looked_at.append(info.name) or switches(info))
    assert not made_in_mode.may_switch([model.function_info(tree.by_type[cst.FunctionDef][0])])
    assert sorted(looked_at) == sorted(f"make_{depth}" for depth in range(13))


@pytest.mark.parametrize(
    ("call", "may_be"),
    [
        ("net(x)", True),
        ("net.forward(x)", True),  # a function of the project, and the forward pass of a module
        ("unknown_model(x)", True),
        ("helper(x)", False),
        ("float(x)", False),
        ("parser.parse_args(x)", False),
    ],
)
def test_what_may_be_a_forward_pass(call: str, may_be: bool) -> None:
    source = f"""\
    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, x):
            return x

    def helper(x):
        return Net()(x)

    net = Net()
    {call}
    """
    model = model_of(source)
    node = model.tree.by_type[cst.Call][-1]
    assert may_be_forward_pass(model, node) is may_be
