"""What an expression is does not depend on what was asked before."""

import random
from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import msgspec
import pytest

from mllint.semantic.model import Model
from mllint.semantic.project import Project
from mllint.semantic.values import Tensor, Value

FIXTURES = Path(__file__).parent / "fixtures" / "rules"
SOURCES = {
    "unknown is added": "count = 0\nfor item in unknown():\n    count += item\nprint(count)\n",
    "a tensor is added": (
        "import torch\ntotal = 0\nfor item in unknown():\n    total = total + torch.ones(2)\nprint(total)\n"
    ),
    "one becomes the other": "a, b = 0, unknown\nwhile b:\n    a, b = b, a + 1\n    c = a\n    a = c\nprint(a, b, c)\n",
    "an attribute counts": (
        "class Meter:\n    def __init__(self):\n        self.count = 0\n"
        "    def update(self):\n        self.count += 1\n        return self.count\n"
    ),
    "a wrapper is put around": (
        "from torch import nn\nclass Net(nn.Module):\n    pass\n\ndef attempts():\n    model = Net()\n"
        "    for attempt in range(3):\n        model = nn.DataParallel(model)\n        print(model)\n"
    ),
    "a list of itself": "held = []\nfor item in unknown():\n    held = [held]\nprint(held)\n",
    "a comprehension has such a name, too": (
        "from paddle import nn\nmodel = nn.Linear(3, 1)\nfor batch in unknown():\n"
        "    kept = [None if weight.grad is None else weight.grad.clone() for weight in model.parameters()]\n"
        "    for weight, gradient in zip(model.parameters(), kept):\n"
        "        if gradient is None:\n            continue\n        weight.grad = gradient * 0.5\n"
    ),
    "functions call each other": (
        "def even(n):\n    return 1 if n == 0 else odd(n - 1)\n"
        "def odd(n):\n    return unknown if n == 0 else even(n - 1)\n"
    ),
}


LAYERS = 150
SOURCES["a long way"] = (
    "import torch\nx0 = torch.ones(2, requires_grad=True)\n"
    + "".join(f"x{n} = torch.relu(x{n - 1})\n" for n in range(1, LAYERS + 1))
    + f"print(x{LAYERS})\n"
)
SOURCES["a long way round"] = (
    "import torch\nx0 = torch.ones(2)\nwhile unknown():\n"
    + "".join(f"    x{n} = torch.relu(x{n - 1})\n" for n in range(1, LAYERS + 1))
    + f"    x0 = x{LAYERS}\nprint(x0)\n"
)


def told(value: Value | None) -> object:
    """What a value says, without the definitions, which each model has of its own."""
    if not isinstance(value, msgspec.Struct):
        return value if isinstance(value, (bool, int, str, type(None))) else type(value).__name__
    fields = (getattr(value, name) for name in value.__struct_fields__)
    parts = (tuple(map(told, field)) if isinstance(field, tuple) else told(field) for field in fields)
    return (type(value).__name__, *parts)


def expressions(model: Model) -> Iterator[tuple[str, cst.CSTNode]]:
    """The expressions of a file, each with a name of its own."""
    for kind in (cst.Name, cst.Attribute, cst.Call):
        for number, node in enumerate(model.tree.by_type.get(kind, ())):
            word = node.value if isinstance(node, cst.Name) else ""
            yield f"{kind.__name__} {number} {word}", node


def values(root: Path, files: list[Path], seed: int) -> dict[str, object]:
    """What every expression in some files is, asked in the order of the file or in a random one."""
    order = random.Random(seed)
    project, found = Project(root), {}
    for file in files if not seed else order.sample(files, len(files)):
        model = project.model(file)
        if model is None:
            continue
        asked = list(expressions(model))
        if seed:
            order.shuffle(asked)
        found |= {f"{file.relative_to(root)} {name}": told(model.value(node)) for name, node in asked}
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_things_that_need_each_other(tmp_path: Path, name: str) -> None:
    file = tmp_path / "example.py"
    file.write_text(SOURCES[name])
    first = values(tmp_path, [file], 0)
    assert first
    for seed in range(1, 8):
        assert values(tmp_path, [file], seed) == first


def test_what_lies_deep_is_known(tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(SOURCES["a long way"])
    model = Project(tmp_path).model(file)
    assert model is not None
    last = model.value(model.tree.by_type[cst.Expr][-1].value.args[0].value)  # type: ignore[attr-defined]
    assert isinstance(last, Tensor)
    assert last.attached is True


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(path.name, marks=pytest.mark.thorough if index % 8 else [])
        for index, path in enumerate(sorted(path for path in FIXTURES.iterdir() if path.is_dir()))
    ],
)
def test_fixtures(folder: str) -> None:
    files = sorted((FIXTURES / folder).rglob("*.py"))
    assert values(FIXTURES / folder, files, 1) == values(FIXTURES / folder, files, 0)
