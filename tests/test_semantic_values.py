"""What the model says of expressions: small sources, and the value of the expression in their last line."""

import textwrap
from pathlib import Path

import libcst as cst
import pytest

from mllint.context import Targets
from mllint.engine import lint
from mllint.registry import select
from mllint.semantic.model import Model
from mllint.semantic.project import Project
from mllint.semantic.values import (
    Elements,
    File,
    Function,
    Mapping,
    Module,
    Object,
    Other,
    Output,
    Repeated,
    Symbol,
    Tensor,
    Text,
    Value,
)
from mllint.syntax.parse import parse
from mllint.syntax.source import Source
from mllint.syntax.walk import Tree

HEADER = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def value_of(source: str, header: str = HEADER) -> Value | None:
    """The value of the expression statement at the end of the source (at the end of its last function)."""
    text = header + textwrap.dedent(source).strip("\n") + "\n"
    tree = Tree(parse(Source(text, "example.py")))
    model = Model(tree, Source(text, "example.py"))
    return model.value(tree.by_type[cst.Expr][-1].value)


def rows(code: str, source: str, targets: Targets | None = None) -> list[int]:
    """The rows on which a rule reports."""
    data = textwrap.dedent(source).lstrip("\n").encode()
    return [found.location.row for found in lint(data, "example.py", select([code], []), targets=targets).diagnostics]


# -- whether a tensor is 0-d -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "scalar"),
    [
        ("torch.zeros([])", True),
        ("torch.zeros(())", True),
        ("torch.zeros(1)", False),
        ("torch.zeros(2, 3)", False),
        ("torch.zeros((1,))", False),
        ("torch.zeros(*size)", None),
        ("torch.zeros(size)", None),
        ("torch.FloatTensor([0])", False),
        ("torch.tensor(3.0)", True),
        ("torch.tensor([3.0])", False),
        ("torch.tensor(unknown)", None),
        ("nn.Parameter(torch.tensor(0.5))", True),
        ("nn.Parameter(torch.ones(1))", False),
        ("torch.exp(torch.tensor(1.0))", True),
        ("torch.zeros_like(torch.tensor(1.0))", True),
        ("torch.tensor(1.0) * 2", True),
        ("torch.tensor(1.0) + torch.ones(3)", False),
        ("torch.tensor(1.0).unsqueeze(0)", False),
        ("torch.tensor(1.0).view(1)", False),
        ("torch.tensor(1.0).view(-1)", False),
        ("torch.dist(torch.ones(2), torch.ones(2))", True),
        ("nn.utils.clip_grad_norm_([], 1.0)", True),
        ("F.mse_loss(torch.ones(2), torch.ones(2))", True),
        ("F.mse_loss(torch.ones(2), torch.ones(2), reduction='none')", False),
        ("nn.MSELoss()(torch.ones(2), torch.ones(2))", True),
        ("nn.MSELoss(reduction='none')(torch.ones(2), torch.ones(2))", False),
        ("nn.MSELoss(reduction=unknown)(torch.ones(2), torch.ones(2))", None),
    ],
)
def test_rank(expression: str, scalar: bool | None) -> None:
    found = value_of(f"def f(size, unknown):\n    {expression}")
    assert isinstance(found, Tensor)
    assert found.scalar is scalar


def test_maximum_with_another_tensor_is_no_pair() -> None:
    assert not isinstance(value_of("torch.ones(2).max(torch.ones(2))"), Elements)
    assert isinstance(value_of("torch.ones(2).max(0)"), Elements)


# -- what uses prove ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        "F.relu(x)",
        "torch.clamp(x, 0, 1)",
        "nn.Linear(2, 2)(x)",
        "nn.MSELoss()(x, y)",
        "nn.MSELoss()(y, x)",
        "F.cross_entropy(y, target=x)",
        "z = x.masked_fill(y, 0)",
        "print(x.size(0))",
    ],
)
def test_use_proves_a_tensor(use: str) -> None:
    assert isinstance(value_of(f"def f(x, y):\n    {use}\n    x"), Tensor)


@pytest.mark.parametrize(
    "use",
    [
        "torch.add(x, y)",
        "torch.tensor(x)",
        "torch.cat(x)",
        "nn.LSTM(2, 2)(x)",
        "print(x)",
        "F.dropout(y, x)",
        "x.size",
        "x.cuda()",
        "x.masked_fill(y, 0)",
        "[F.relu(x) for x in y]",
        "F.relu(*x)",
    ],
)
def test_use_proves_nothing(use: str) -> None:
    assert value_of(f"def f(x, y):\n    {use}\n    x") is None


def test_a_method_that_the_file_defines_proves_nothing() -> None:
    source = """
        class Own:
            def masked_fill(self, mask, value):
                pass

        def f(x):
            x.masked_fill(0, 1)
            x
        """
    assert value_of(source) is None


def test_a_use_sees_the_binding_of_its_own_place() -> None:
    assert value_of("def f(x):\n    F.relu(x)\n    x = g()\n    x") is None


# -- parameters, attributes, dicts -------------------------------------------------------------------------------------


def test_what_forward_is_given_is_a_structure_of_tensors() -> None:
    source = "class Net(nn.Module):\n    def forward(self, x, mask=None, training=True):\n        {}"
    assert value_of(source.format("x")) == Output("torch")
    assert value_of(source.format("mask")) == Output("torch")
    assert value_of(source.format("training")) is None


@pytest.mark.parametrize(
    ("test", "is_tensor"),
    [("torch.is_tensor(x)", True), ("isinstance(x, torch.Tensor)", True), ("callable(x)", False)],
)
def test_tests_narrow(test: str, is_tensor: bool) -> None:
    assert isinstance(value_of(f"def f(x):\n    if {test}:\n        x"), Tensor) is is_tensor


@pytest.mark.parametrize(
    ("register", "expected"),
    [
        ('self.register_buffer("x", torch.ones(1))', Tensor("torch", False, False)),
        ('self.register_parameter("x", nn.Parameter(torch.ones(1)))', Tensor("torch", True, False, True, leaf=True)),
        ('self.register_buffer("y", torch.ones(1))', None),
    ],
)
def test_registered_attributes(register: str, expected: Value | None) -> None:
    source = f"""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                {register}

        def f(net: Net):
            net.x
        """
    found = value_of(source)
    assert found == expected if expected is not None else not isinstance(found, Tensor)


def test_values_of_dicts() -> None:
    declared = "def f(batch: dict[str, torch.Tensor], **others: torch.Tensor):\n    {}"
    assert value_of(declared.format("batch['x']")) == Tensor("torch")
    assert value_of(declared.format("others['x']")) == Tensor("torch")
    assert value_of(declared.format("batch")) == Mapping(item=Tensor("torch"))
    display = "d = {'loss': torch.tensor(1.0)}\n{}"
    assert value_of(display.replace("{}", "d['loss']")) == Tensor("torch", False, True)
    assert value_of(display.replace("{}", "d['other']")) is None
    assert value_of(display.replace("{}", "d[key]")) == Tensor("torch"), "more may be added to a display"


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("return net", "torch.nn.Linear"),
        (
            "if path is None:\n        return net\n    net.load_state_dict(torch.load(path))\n    return net",
            "torch.nn.Linear",
        ),
        ("net = wrapped(net)\n    return net", None),
        ("if path:\n        return other\n    return net", None),
    ],
)
def test_modules_that_are_given_back(returned: str, expected: str | None) -> None:
    """Each call gets its own module, though others hand over one of another class."""
    found = value_of(f"""
def prepared(net, other, path=None):
    {returned}


first = prepared(nn.Conv2d(3, 3, 3), None)
second = prepared(other=None, net=nn.Linear(2, 2))
second
""")
    assert (found.name if isinstance(found, Module) else None) == expected


@pytest.mark.parametrize(
    ("filled", "attached"),
    [("", None), ("parts.append(layer(x))\n", None), ("parts = [torch.ones(2)]\n", None)],
)
def test_lists_with_a_name_may_have_been_filled(filled: str, attached: bool | None) -> None:
    found = value_of(f"layer, x, parts = nn.Linear(2, 2), torch.ones(2), []\n{filled}torch.stack(parts)")
    assert isinstance(found, Tensor)
    assert found.attached is attached
    shown = value_of("torch.stack([torch.ones(2)])")
    assert isinstance(shown, Tensor)
    assert shown.attached is False


def test_packed_sequences() -> None:
    source = "def f(x: torch.Tensor, n):\n    p = nn.utils.rnn.pack_padded_sequence(x, n)\n    {}"
    packed = Object("packed", "torch.nn.utils.rnn.PackedSequence")
    assert value_of(source.format("p.cuda()")) == packed
    assert isinstance(value_of(source.format("p.data")), Tensor)
    output = value_of(source.format("nn.GRU(2, 2)(p)[0]"))
    assert output == packed


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("pathlib.Path(__file__).parent / 'x'", Object),
        ("pathlib.Path('x').stem", Text),
        ("sys.argv[1]", Text),
        ("sorted(glob.glob('*'))[-1]", Text),
        ("max(glob.glob('*'), key=len)", Text),
        ("os.listdir('.')", Repeated),
        ("unittest.mock.MagicMock()", Other),
        ("argparse.ArgumentParser().parse_args()", Other),
    ],
)
def test_things_of_the_standard_library(expression: str, expected: type[Value]) -> None:
    header = "import argparse, glob, os, pathlib, sys\nimport unittest.mock\n"
    assert isinstance(value_of(expression, header), expected)


def test_instances_are_asked_for_their_items() -> None:
    source = """
        class Rows:
            def __getitem__(self, index):
                return torch.zeros(3)

        rows = Rows()
        rows[0]
        """
    assert value_of(source) == Tensor("torch", False, False)


def test_what_a_structure_of_tensors_gives_when_it_is_moved_is_one_too() -> None:
    assert value_of("def f(net: nn.Module, x):\n    net(x).cuda()") == Output("torch", True)
    assert isinstance(value_of("def f(net: nn.Module, x):\n    net(x).relu()"), Tensor)
    assert isinstance(value_of("def f(net: nn.Module):\n    net.cuda()"), Module)


# -- places ------------------------------------------------------------------------------------------------------------

CELLS = "import torch\n# In[1]:\nx = torch.ones(3)\nx.cuda()\ny = x\nx.double()\ny.double()\n# In[2]:\nx.half()\n"


def test_the_end_of_a_notebook_cell_is_shown() -> None:
    assert rows("ML101", CELLS) == [4]
    assert rows("ML101", CELLS.replace("In[", "No[")) == [4, 6, 7, 9]


@pytest.mark.parametrize(
    ("block", "is_silent"),
    [
        ("with pytest.raises(ValueError):\n    {}", True),
        ("with contextlib.suppress(ValueError):\n    {}", True),
        ("with profiler.profile():\n    {}", True),
        ("with torch.no_grad():\n    {}", False),
        ("try:\n    {}\nexcept ValueError:\n    pass", True),
        ("try:\n    {}\n    y = net(x)\nexcept ValueError:\n    pass", False),
        ("try:\n    {}\nfinally:\n    pass", False),
        ("for _ in range(9):\n    {}", True),
        ("for _ in range(9):\n    {}\n    y = net(x)", False),
        ("for y in x:\n    {}", False),
    ],
)
def test_places_that_want_no_result(block: str, is_silent: bool) -> None:
    source = f"import torch\nx = torch.ones(3)\n{block.format('x.view(5)')}\n"
    assert (rows("ML101", source) == []) is is_silent


# -- versions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "found"), [(None, [3]), ((2, 6), []), ((3, 0), [3])])
def test_to_of_old_paddle_works_in_place(version: tuple[int, int] | None, found: list[int]) -> None:
    source = 'import paddle\nx = paddle.ones([3])\nx.to("float64")\n'
    assert rows("ML101", source, Targets(paddle=version)) == found


@pytest.mark.parametrize(("version", "found"), [(None, [3]), ((2, 4), []), ((2, 5), [3])])
def test_results_of_old_paddle_have_a_dimension(version: tuple[int, int] | None, found: list[int]) -> None:
    source = "import paddle\nx = paddle.ones([3])\nprint(x.sum()[0])\n"
    assert rows("ML102", source, Targets(paddle=version)) == found


# -- things of two files that are defined by each other ----------------------------------------------------------------


def results(folder: Path, first: str, second: str) -> dict[str, Value | None]:
    """What the function of two files with the names of the files gives back, the first file asked first."""
    project = Project(folder)
    found: dict[str, Value | None] = {}
    for name in (first, second):
        model = project.model(folder / f"{name}.py")
        assert model is not None
        function = model.exported(name)
        assert isinstance(function, Function)
        found[name] = model.returned(function.definition)
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("torch.zeros(3) if n == 0 else other(n)", "one(n).float() + 1"),
        ("torch.zeros(3) if n == 0 else other(n)", "one(n)"),
        ("1 if n == 0 else other(n)[0]", "[one(n), 2]"),
    ],
)
def test_it_does_not_matter_which_file_is_asked_first(tmp_path: Path, one: str, other: str) -> None:
    (tmp_path / "one.py").write_text(f"import torch\nfrom other import other\ndef one(n):\n    return {one}\n")
    (tmp_path / "other.py").write_text(f"from one import one\ndef other(n):\n    return {other}\n")
    found = results(tmp_path, "one", "other")
    assert None not in found.values()
    assert found == results(tmp_path, "other", "one")


def test_a_package_that_imports_its_own_files_has_them(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").write_text("from . import layers\n")
    (tmp_path / "package/layers.py").write_text("class Net: ...\n")
    (tmp_path / "main.py").write_text("from package import layers\n")
    for files in (("package/__init__.py", "main.py"), ("main.py", "package/__init__.py")):
        project = Project(tmp_path)
        for file in files:
            model = project.model(tmp_path / file)
            assert model is not None
            assert isinstance(model.exported("layers"), File), files


# -- modules in lists --------------------------------------------------------------------------------------------------

STACK = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(x)


class Stack(nn.Module):
    def __init__(self, given):
        super().__init__()
        layers = [Block()]
        for _ in range(3):
            layers.append(Block())
        INIT

    def forward(self, x):
        for item in self.layers:
            item
"""


@pytest.mark.parametrize(
    ("init", "name"),
    [
        ("self.layers = nn.ModuleList([Block() for _ in range(3)])", "Block"),
        ("self.layers = nn.ModuleList(Block() for _ in range(3))", "Block"),
        ("self.layers = nn.ModuleList([Block(), Block()])", "Block"),
        ("self.layers = nn.ModuleList(layers)", "Block"),
        ("self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])", "torch.nn.Linear"),
        ("self.layers = nn.ModuleList(); self.layers.append(Block())", "Block"),
        ("self.layers = nn.ModuleList(); self.layers += [Block()]", "Block"),
        ("self.layers = nn.ModuleList(); self.layers.extend([Block()])", "Block"),
        ("self.layers = nn.ModuleList(); self.layers.insert(0, Block())", "Block"),
        ("self.layers = nn.ModuleList([Block()]); self.layers.append(given)", None),
        ("self.layers = nn.ModuleList([Block()]); self.layers.extend(given)", None),
        ("self.layers = nn.ModuleList([Block()]); self.layers[0] = given", None),
        ("self.layers = nn.ModuleList([Block(), nn.Linear(3, 3)])", None),
        ("self.layers = nn.ModuleList([Block(), *given])", None),
        ("self.layers = nn.ModuleList(given)", None),
        ("layers.append(given); self.layers = nn.ModuleList(layers)", None),
        ("given(layers); self.layers = nn.ModuleList(layers)", None),
    ],
)
def test_items_of_a_module_list(init: str, name: str | None) -> None:
    value = value_of(STACK.replace("INIT", init))
    assert isinstance(value, Module)
    assert (value.name or (value.definition and value.definition.name)) == name


@pytest.mark.parametrize(("name", "is_known"), [("dict", True), ("list", True), ("zip", True), ("sum", False)])
def test_what_star_imports_leave_of_the_builtins(name: str, is_known: bool) -> None:
    assert (value_of(f"from settings import *\n{name}") == Symbol(f"builtins.{name}")) is is_known


# -- what a test tells -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = torch.ones(2)\nif isinstance(x, torch.Tensor):\n    x = x.sum().item()\nx", "NoTensor"),
        ("if isinstance(x, torch.Tensor):\n    x = x.sum().item()\nx", "NoTensor"),
        ("if hasattr(x, 'item'):\n    x = x.sum().item()\nx", "NoTensor"),
        ("if not torch.is_tensor(x):\n    x = torch.tensor(x)\nx", "Tensor"),
        ("if type(x) is not torch.Tensor:\n    x = torch.tensor(x)\nx", "Tensor"),
        ("if not isinstance(x, float):\n    x = float(x)\nx", "Number"),
        ("if not (torch.is_tensor(x) and y):\n    x = torch.tensor(x)\nx", "Tensor"),
        ("if torch.is_tensor(x) or y:\n    x = 1\nx", "NoTensor"),
        ("if torch.is_tensor(x) and y:\n    x = 1\nx", None),
        ("if isinstance(x, torch.Tensor):\n    return x\nx", "NoTensor"),
        ("assert isinstance(x, torch.Tensor)\nx", "Tensor"),
        ("x = torch.ones(2)\nif isinstance(x, list):\n    return\nx", "Tensor"),
        ("x = torch.ones(2)\nif isinstance(x, torch.Tensor):\n    y = x\nx", "Tensor"),
        ("x = torch.ones(2) if y else 0\nif isinstance(x, torch.Tensor):\n    return\nx", "Number"),
        ("x = torch.ones(2) if y else 0\nif x == 0:\n    x", "Number"),
        ("x = torch.ones(2)\nif x.sum() == 0:\n    x", "Tensor"),
        ("self.x = torch.ones(2)\nif isinstance(self.x, torch.Tensor):\n    self.x = 1\nself.x", "NoTensor"),
    ],
)
def test_test_tells_what_a_thing_is_and_is_not(source: str, expected: str | None) -> None:
    body = textwrap.indent(source, "    ")
    found = value_of(f"def f(self, x, y):\n{body}")
    assert (None if found is None else type(found).__name__) == expected


def test_test_of_known_tensor_takes_nothing_away_from_it() -> None:
    source = "loss = nn.MSELoss()(nn.Linear(3, 3)(x), y)\nif isinstance(loss, torch.Tensor):\n    y = loss\nloss"
    found = value_of("def f(x, y):\n" + textwrap.indent(source, "    "))
    assert isinstance(found, Tensor)
    assert found.attached is True
    assert found.scalar is True


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("Net.load(1)", "Net"),
        ("Base.load(1)", "Base"),
        ("Net.load(1).eval()", "Net"),
        ("Deeper.load(1)", "Deeper"),
        ("Net.plain()", "Base"),
        ("Net.filled(1)", "Net"),
    ],
)
def test_a_classmethod_makes_what_it_is_called_on(expression: str, expected: str) -> None:
    found = value_of(f"""
class Base(nn.Module):
    @classmethod
    def load(cls, path):
        if path is None:
            return None
        made = cls()
        made.eval()
        return made

    @classmethod
    def plain(cls):
        return Base()

    @classmethod
    def filled(cls, path):
        made = cls()
        return with_weights(made, path)


def with_weights(net, path):
    net.load_state_dict(torch.load(path))
    return net


class Net(Base):
    pass


class Deeper(Net):
    @classmethod
    def load(cls, path):
        return super().load(path)


{expression}
""")
    assert isinstance(found, Module)
    assert found.definition is not None
    assert found.definition.name == expected
