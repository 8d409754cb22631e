"""What a class holds: bases, attributes, methods, weights; what the files of a project mention."""

from pathlib import Path

import libcst as cst
import pytest

from mllint.semantic.files.disk import Disk
from mllint.semantic.files.mentions import Mentions
from mllint.semantic.model import Model
from mllint.semantic.modules.initialization import Form, ends_in_mixin, mentions, next_initializer
from mllint.semantic.modules.lost_parameters import parameter_inside
from mllint.semantic.modules.made_on_cpu import is_made_on_cpu
from mllint.semantic.modules.unused import unused_submodules
from mllint.semantic.modules.weights import has_weights
from mllint.semantic.names.classes import Members, Role, makes_parameter
from mllint.semantic.names.definitions import ClassInfo
from mllint.semantic.project import Project
from mllint.syntax.parse import parse
from mllint.syntax.source import Source
from mllint.syntax.walk import Tree

HEADER = "import abc, copy, torch, torchvision\nfrom typing import Generic, TypeVar\nfrom torch import nn\n"


def model_of(text: str, path: str = "net.py", project: Project | None = None) -> Model:
    source = Source.from_bytes((HEADER + text).encode(), path)
    return Model(Tree(parse(source)), source, project)


def class_of(model: Model, name: str) -> ClassInfo:
    nodes = model.tree.by_type[cst.ClassDef]
    return model.class_info(next(node for node in nodes if node.name.value == name))


def members_of(text: str, name: str = "Net") -> Members:
    return class_of(model_of(text), name).members


def values_of(model: Model, prefix: str = "value") -> dict[str, cst.BaseExpression]:
    """The expressions that are assigned to names with the prefix."""
    return {
        node.targets[0].target.value: node.value
        for node in model.tree.by_type[cst.Assign]
        if isinstance(node.targets[0].target, cst.Name) and node.targets[0].target.value.startswith(prefix)
    }


# -- bases -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bases", "plain"),
    [
        ("nn.Module", True),
        ("nn.Module, abc.ABC", True),
        ("nn.Module, Generic[T]", True),
        ("Base", True),
        ("nn.Linear", False),
        ("Unknown, nn.Module", False),
        ("nn.Module, *more", False),
        ("make()", False),
    ],
)
def test_plain_bases_add_nothing_of_their_own(bases: str, plain: bool) -> None:
    text = f"T = TypeVar('T')\nclass Base(nn.Module): pass\nclass Net({bases}): pass\n"
    assert members_of(text).has_only_plain_bases is plain


def test_bases_are_followed_through_files(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text(
        "from torch import nn\nclass Base(nn.Module):\n    def forward(self, x):\n        return self.inner(x)\n"
    )
    project = Project(tmp_path)
    text = "from base import Base\nclass Net(Base):\n    def __init__(self):\n        self.inner = nn.Linear(2, 2)\n"
    definition = class_of(model_of(text, str(tmp_path / "net.py"), project), "Net")
    assert definition.framework == "torch"
    assert [read.method.name for read in definition.members.reads("inner")] == ["forward"]
    assert {method.name for method in definition.members.reachable("forward")} == {"forward"}


# -- attributes ------------------------------------------------------------------------------------

ATTRIBUTES = """
class Net(nn.Module):
    shared = 1

    def __init__(self, size, given):
        super().__init__()
        self.layer = nn.Linear(size, size)
        self.weight = nn.Parameter(torch.ones(size))
        self.table = torch.ones(size)
        self.parts = [nn.Linear(size, size)]
        self.given = given
        if size > 2:
            self.layer = nn.Identity()
        self.first, self.second = given
        self.register_buffer("buffer", torch.ones(size))
        self.add_module("added", nn.Linear(size, size))
        setattr(self, "named", nn.Linear(size, size))
        self.total = 0

    def forward(self, x):
        self.total += 1
        self.cache = x
        def inner():
            return self.layer(x)
        return inner() + self.helper(x)

    def helper(this, x):
        return this.table + this.buffer

    def unrelated(self):
        del self.table
        return self.helper

    @classmethod
    def make(cls):
        return cls.layer

    @staticmethod
    def plain(self):
        return self.layer
"""


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("layer", [Role.SUBMODULE, Role.SUBMODULE]),
        ("weight", [Role.PARAMETER]),
        ("parts", [Role.CONTAINER]),
        ("given", [None]),
        ("first", [None]),
        ("buffer", [Role.BUFFER]),
        ("added", [Role.SUBMODULE]),
        ("named", [Role.SUBMODULE]),
        ("total", [None, None]),
        ("shared", [None]),
        ("missing", []),
    ],
)
def test_what_an_assignment_makes_of_an_attribute(name: str, roles: list[Role | None]) -> None:
    assert [item.role for item in members_of(ATTRIBUTES).assignments(name)] == roles


def test_where_attributes_are_set() -> None:
    members = members_of(ATTRIBUTES)
    assert [item.is_conditional for item in members.assignments("layer")] == [False, True]
    assert [item.setter for item in members.assignments("named")] == ["setattr"]
    assert [item.method.name if item.method else None for item in members.assignments("shared")] == [None]
    assert [type(item.node).__name__ for item in members.assignments("table")] == ["Assign", "Del"]
    assert [item.value is None for item in members.assignments("first")] == [True]


def test_where_attributes_are_read() -> None:
    members = members_of(ATTRIBUTES)
    assert [read.method.name for read in members.reads("layer")] == ["forward"]
    assert [read.method.name for read in members.reads("table")] == ["helper"]
    assert list(members.reads("cache")) == []


def test_methods_that_forward_reaches() -> None:
    members = members_of(ATTRIBUTES)
    assert {method.name for method in members.reachable("forward")} == {"forward", "helper"}
    assert {method.name for method in members.reachable("unrelated")} == {"unrelated", "helper"}


def test_subclasses_of_the_file_belong_to_it() -> None:
    text = ATTRIBUTES + "class Wide(Net):\n    def forward(self, x):\n        return self.given(x)\n"
    members = members_of(text)
    assert [info.name for info in members.subclasses] == ["Wide"]
    assert [read.method.owner.name for read in members.reads("given") if read.method.owner] == ["Wide"]


@pytest.mark.parametrize(
    ("statement", "computed"),
    [
        ("self.layer(x)", False),
        ("getattr(self, 'layer')(x)", False),
        ("getattr(self, name)(x)", True),
        ("self.__dict__[name]", True),
        ("self._modules[name](x)", True),
        ("[child(x) for child in self.children()]", True),
        ("run(self, x)", True),
        ("init_weights(self)", False),
        ("isinstance(self, Net)", False),
        ("Base.forward(self, x)", False),
        ("self.apply(run)", False),
        ("return self", False),
        ("return [self]", True),
    ],
)
def test_attributes_that_are_read_by_computed_names(statement: str, computed: bool) -> None:
    text = f"class Net(nn.Module):\n    def forward(self, x, name):\n        {statement}\n"
    assert members_of(text).reads_computed_names is computed


@pytest.mark.parametrize(
    ("body", "computed"),
    [
        ("nn.init.ones_(m.weight)", False),
        ("m.weight.data.zero_()", False),
        ("print(m)", False),
        ("x = m(x)", True),
        ("x = m.forward(x)", True),
        ("kept.append(m)", True),
    ],
)
def test_walks_over_all_modules(body: str, computed: bool) -> None:
    text = f"class Net(nn.Module):\n    def forward(self, x):\n        for m in self.modules():\n            {body}\n"
    assert members_of(text).reads_computed_names is computed


def test_attributes_that_are_set_by_computed_names() -> None:
    text = "class Net(nn.Module):\n    def f(self, x, name):\n        {}\n"
    assert members_of(text.format("setattr(self, name, x)")).sets_computed_names
    assert members_of(text.format("self.add_module(f'a{x}', name)")).sets_computed_names
    assert not members_of(text.format("setattr(self, 'a', x)")).sets_computed_names
    assert not members_of(text.format("setattr(x, name, 1)")).sets_computed_names


# -- constructors ----------------------------------------------------------------------------------

BASES = """
class Tag:
    def __init__(self): self.tag = 1
class Going(Tag):
    def __init__(self, **options): super().__init__(**options)
class Other(nn.Module): pass
"""


@pytest.mark.parametrize(
    ("statement", "form"),
    [
        ("super().__init__()", Form.RIGHT),
        ("super(Net, self).__init__()", Form.RIGHT),
        ("nn.Module.__init__(self)", Form.RIGHT),
        ("unknown.__init__(self)", Form.RIGHT),
        ("initialize = super().__init__", Form.RIGHT),
        ("super().__init__", Form.UNCALLED),
        ("super.__init__()", Form.SUPER_UNCALLED),
        ("super(Net).__init__()", Form.UNBOUND),
        ("super(Other, self).__init__()", Form.OTHER_CLASS),
        ("nn.Module().__init__()", Form.OTHER_OBJECT),
        ("Tag.__init__(self)", Form.ELSEWHERE),
        ("object.__init__(self)", Form.ELSEWHERE),
    ],
)
def test_what_is_meant_to_call_the_base(statement: str, form: Form) -> None:
    text = BASES + f"class Net(nn.Module):\n    def __init__(self):\n        {statement}\n"
    assert [mention.form for mention in mentions(class_of(model_of(text), "Net"))] == [form]


@pytest.mark.parametrize(
    ("bases", "following"),
    [
        ("nn.Module", "torch.nn.Module"),
        ("Tag, nn.Module", "Tag"),
        ("Other", "torch.nn.Module"),
        ("abc.ABC, nn.Module", "torch.nn.Module"),
        ("Unknown, nn.Module", None),
        ("object", "builtins.object"),
    ],
)
def test_next_constructor(bases: str, following: str | None) -> None:
    definition = class_of(model_of(BASES + f"class Net({bases}): pass\n"), "Net")
    found = next_initializer(definition)
    assert (found if isinstance(found, str) or found is None else found.owner and found.owner.name) == following


def test_mixin_that_ends_the_chain() -> None:
    model = model_of(BASES + "class A(Tag, nn.Module): pass\nclass B(Going, nn.Module): pass\nclass C(Other): pass\n")
    assert [ends_in_mixin(class_of(model, name)) is not None for name in "ABC"] == [True, False, False]


def test_constructors_that_name_each_other_end() -> None:
    text = (
        "class A(nn.Module):\n    def __init__(self): B.__init__(self)\n"
        "class B(nn.Module):\n    def __init__(self): A.__init__(self)\n"
    )
    assert [mention.form for mention in mentions(class_of(model_of(text), "A"))] == [Form.RIGHT]


# -- weights ---------------------------------------------------------------------------------------

WEIGHTS = """
class Block(nn.Module):
    def __init__(self, size, layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)
class Plain(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
class Pool(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.pool = nn.AvgPool2d(size)
class Outer(nn.Module):
    def __init__(self, size, layers):
        super().__init__()
        self.block = Block(size, layers)
def f(size, layers, given):
    value_1 = nn.Linear(size, size)
    value_2 = nn.Linear(size, size, bias=given)
    value_3 = nn.GRU(size, size, num_layers=given)
    value_4 = nn.Sequential(nn.Conv2d(3, size, 3), nn.ReLU())
    value_5 = Block(size, layers)
    value_6 = Outer(size, layers)
    value_7 = torchvision.models.resnet18()
    none_1 = nn.ReLU()
    none_2 = nn.Sequential(nn.ReLU(), nn.Dropout())
    none_3 = nn.CrossEntropyLoss()
    unknown_1 = given
    unknown_2 = Plain(size)
    unknown_3 = Pool(size)
"""


@pytest.mark.parametrize(("prefix", "known"), [("value", True), ("none", False), ("unknown", None)])
def test_whether_a_module_has_weights(prefix: str, known: bool | None) -> None:
    model = model_of(WEIGHTS)
    expressions = values_of(model, prefix)
    assert {name: has_weights(model, node) for name, node in expressions.items()} == dict.fromkeys(expressions, known)


# -- plain tensors ---------------------------------------------------------------------------------

TENSORS = """
def f(size, given, device):
    value_1 = torch.ones(size)
    value_2 = torch.ones(size, size).tril().unsqueeze(0)
    value_3 = torch.sin(value_1 * 2.0)
    value_4 = torch.tensor([1.0, 2.0])
    value_5 = -value_2[:, 1]
    other_1 = torch.ones(size, device=device)
    other_2 = torch.ones(size).cuda()
    other_3 = torch.tensor(given)
    other_4 = given + torch.ones_like(given)
    other_5 = torch.cat([given, given])
    other_6 = torch.ones(size).to(device)
"""


@pytest.mark.parametrize(("prefix", "known"), [("value", True), ("other", False)])
def test_tensors_that_are_made_on_the_cpu(prefix: str, known: bool) -> None:
    model = model_of(TENSORS)
    expressions = values_of(model, prefix)
    found = {name: is_made_on_cpu(model, node) for name, node in expressions.items()}
    assert found == dict.fromkeys(expressions, known)


def test_a_default_device_makes_the_place_unknown() -> None:
    model = model_of("torch.set_default_device('cuda')\nvalue_1 = torch.ones(2)\n")
    assert not is_made_on_cpu(model, values_of(model)["value_1"])


PARAMETERS = """
value_1 = nn.Parameter(torch.ones(2)).cuda()
value_2 = 2 * nn.Parameter(torch.ones(2)).view(1, 2)
other_1 = nn.Parameter(torch.ones(2))
other_2 = nn.Parameter(torch.ones(2)).requires_grad_(False)
other_3 = nn.Parameter(torch.ones(2)).float()
other_4 = torch.ones(2).cuda()
other_5 = next(nn.Linear(2, 2).parameters()).new(2)
"""


def test_parameters_inside_an_expression() -> None:
    model = model_of(PARAMETERS)
    assert all(parameter_inside(model, node) is not None for node in values_of(model).values())
    assert all(parameter_inside(model, node) is None for node in values_of(model, "other").values())
    assert makes_parameter(model, values_of(model, "other")["other_1"])
    assert not makes_parameter(model, values_of(model, "other")["other_5"])


# -- unused ----------------------------------------------------------------------------------------


def test_unused_submodules_of_a_class_without_forward_are_not_known() -> None:
    text = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(2, 2)\n"
        "        self.b = nn.Linear(2, 2)\n"
    )
    assert list(unused_submodules(class_of(model_of(text), "Net"))) == []
    text += "    def forward(self, x):\n        return self.b(x)\n"
    assert [name for name, _ in unused_submodules(class_of(model_of(text), "Net"))] == ["a"]


def test_the_only_layer_of_a_class_is_there_on_purpose() -> None:
    text = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(2, 2)\n"
        "    def forward(self, x):\n        return x\n"
    )
    assert list(unused_submodules(class_of(model_of(text), "Net"))) == []


# -- mentions --------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "reader.py").write_text("x = model.head(y)\nmodel.tail = 1\nz = {'neck.weight': 1}\n")
    (tmp_path / "own.py").write_text("class Own:\n    def f(self):\n        self.body = 1\n        return self.body\n")
    (tmp_path / "derived.py").write_text(
        "class Wide(Net):\n    def f(self):\n        self.skip = 1; return self.skip\n"
    )
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "library.py").write_text("x.hidden\n")
    return tmp_path


@pytest.mark.parametrize(
    ("attribute", "read"),
    [("head", True), ("tail", False), ("neck", True), ("body", False), ("skip", True), ("hidden", False), ("x", False)],
)
def test_attributes_that_other_files_may_read(folder: Path, attribute: str, read: bool) -> None:
    readers = Mentions(Disk(folder)).readers(attribute, frozenset({"Net"}), folder / "net.py")
    assert bool(readers) is read


def test_a_file_is_no_other_file(folder: Path) -> None:
    home = folder / "package" / "reader.py"
    assert Mentions(Disk(folder)).readers("head", frozenset({"Net"}), home) == ()


def test_a_class_of_the_same_name_is_another_class(folder: Path) -> None:
    assert Mentions(Disk(folder)).readers("body", frozenset({"Own"}), folder / "net.py") == ()


def test_in_a_large_project_everything_may_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mllint.semantic.files.disk.MAX_FILES", 2)
    assert Mentions(Disk(folder)).readers("anything", frozenset({"Net"}), folder / "net.py") is None
