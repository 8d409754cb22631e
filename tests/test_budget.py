"""How much work the engine does, counted; seconds are the benchmark's business."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from harness.cases import all_cases
from harness.thinning import thinned
from mllint import engine
from mllint._dev.scaling import make_folder, source
from mllint.configuration.settings import Settings
from mllint.registry import all_rules, select
from mllint.running.runner import Mode, Runner, Task
from mllint.semantic.checkpoints.contents import Content
from mllint.semantic.checkpoints.tracing import Tracer
from mllint.semantic.expressions import evidence
from mllint.semantic.expressions.inference import Inference
from mllint.semantic.model import Model
from mllint.semantic.modules import inputs
from mllint.semantic.project import Project
from mllint.semantic.training import first_factors, runs
from mllint.semantic.training.unfolding import unfold
from mllint.semantic.values import Value
from mllint.syntax.bare import bare_tree
from mllint.syntax.source import Source
from mllint.syntax.walk import Tree

CLEAN = b"""\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)

    def forward(self, x):
        return self.layer(x)


def train(model: Net, loader, optimizer):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.to("cpu")), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(torch.isnan(torch.tensor(total)))
    model.load_state_dict(torch.load("model.pt"))


def evaluate(model: Net, batch):
    model.eval()
    with torch.no_grad():
        return model(batch).argmax(1)
"""


RIGHT = b"""\
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts


def train(loader, model: nn.Module, optimizer, lr_scheduler: CosineAnnealingWarmRestarts):
    criterion = nn.CrossEntropyLoss()
    model.train()
    for inputs, labels in loader:
        loss = criterion(model(inputs.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lr_scheduler.step()


def validate(loader, model: nn.Module):
    criterion = nn.CrossEntropyLoss()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for inputs, labels in loader:
            total += criterion(model(inputs.cuda()), labels.cuda()).item()
    return total / len(loader)


def main(training, validation):
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.Linear(8, 2)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    lr_scheduler = CosineAnnealingWarmRestarts(optimizer, 1000)
    for _ in range(10):
        train(training, model, optimizer, lr_scheduler)
        print(validate(validation, model))
"""


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often each step ran since the test began."""
    found = dict.fromkeys(["parses", "trees", "walks", "spans"], 0)

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            found[name] += 1
            return function(*arguments, **named)

        return call

    monkeypatch.setattr(cst, "parse_module", counted("parses", cst.parse_module))
    monkeypatch.setattr(Tree, "__init__", counted("trees", Tree.__init__))
    monkeypatch.setattr(Tree, "_index", counted("walks", Tree._index))
    monkeypatch.setattr(engine, "spans_of", counted("spans", engine.spans_of))
    # LibCST's own visitors rebuild every node: nobody may send one through a whole file.
    monkeypatch.setattr(cst.Module, "visit", counted("walks", cst.Module.visit))
    monkeypatch.setattr(cst.MetadataWrapper, "__init__", counted("walks", cst.MetadataWrapper))
    return found


def test_clean_file_is_made_into_nodes_once_and_never_parsed_in_full(counts: dict[str, int]) -> None:
    rules = select(["ML"], [])
    assert rules.may_fire(CLEAN)
    result = engine.lint(CLEAN, "clean.py", rules)
    assert result.diagnostics == ()
    assert counts == {"parses": 0, "trees": 1, "walks": 0, "spans": 0}


@pytest.mark.parametrize("codes", [["ML215"], ["ML", "ML215"]])
def test_a_node_is_visited_only_beside_the_words_that_its_rule_waits_for(
    codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few there are: or a finding would hang on which rules are selected beside it."""
    visited: set[str] = set()

    def seen(handler: Any, nodes: Any, context: Any) -> bool:
        visited.add(handler.__module__.rpartition(".")[2])
        return False

    monkeypatch.setattr(engine, "_finds_something", seen)
    few = b"import torch\n\n\ndef shift(scores):\n    scores.add_(torch.ones(3))\n"
    engine.lint(few, "few.py", select(codes, []))
    assert "saved_tensor_modified_in_place" not in visited
    engine.lint(few.replace(b"shift", b"forward"), "few.py", select(codes, []))
    assert "saved_tensor_modified_in_place" in visited


def test_training_that_is_right_as_it_is_written_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[object] = []

    def unfolded(frame: Any) -> Any:
        followed.append(frame)
        return unfold(frame)

    monkeypatch.setattr(runs, "unfold", unfolded)
    rules = select(["ML", "ML310"], [])
    assert engine.lint(RIGHT, "right.py", rules).diagnostics == ()
    assert followed == []
    wrong = engine.lint(RIGHT.replace(b"    model.eval()\n", b""), "wrong.py", rules)
    assert [item.code for item in wrong.diagnostics] == ["ML310"]
    assert followed


def test_file_behind_the_gate_is_not_parsed(counts: dict[str, int]) -> None:
    engine.lint(b"import os\n" * 100, "other.py", select(["ML"], []))
    assert counts == {"parses": 0, "trees": 0, "walks": 0, "spans": 0}


@pytest.mark.parametrize("case", thinned(all_cases(), every=18))
def test_file_with_findings_costs_one_pass_more(case: Any, counts: dict[str, int]) -> None:
    if case.path.parent != case.root or len(list(case.root.rglob("*.py"))) > 1:
        rules = case.rules
        engine.lint(case.data, str(case.path), rules)
        # One parse more where a message names the row of another place in the file.
        assert counts["parses"] <= 2
        assert counts["walks"] <= 2
        assert counts["trees"] <= 3
        assert counts["spans"] <= 1


def test_work_grows_as_the_file_does(counts: dict[str, int]) -> None:
    rules = select([rule.code for rule in all_rules()], [])
    for copies in (1, 50):
        engine.lint(CLEAN * copies, "clean.py", rules)
    assert counts == {"parses": 0, "trees": 2, "walks": 0, "spans": 0}


def _asked(rows: int, monkeypatch: pytest.MonkeyPatch, *, mistakes: bool) -> Counter[str]:
    """How often the model of a file of so many rows is asked for each thing, and how much it steps through the tree."""
    found: Counter[str] = Counter()

    def count(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            found[name] += 1
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, call)

    with monkeypatch.context() as monkeypatch:
        for name in ("value", "qualified_name", "scope_of"):
            count(Model, name)
        count(Inference, "_evaluate")
        count(Tree, "parent")
        count(Tree, "ancestors")
        result = engine.lint(source(rows, mistakes=mistakes).encode(), "made.py", select(["ML"], []))
    assert bool(result.diagnostics) is mistakes
    return found


@pytest.mark.parametrize("mistakes", [False, True])
def test_what_is_asked_of_the_model_grows_as_the_file_does(monkeypatch: pytest.MonkeyPatch, mistakes: bool) -> None:
    small, large = (_asked(rows, monkeypatch, mistakes=mistakes) for rows in (520, 2_080))
    for name, count in large.items():
        assert count <= 4.3 * small[name], f"{name}: {small[name]} for 520 rows, {count} for four times as many"
    # A row of made-up training code: what it may cost at most. Less is better; write the new figure down.
    per_row = {name: count / 2_080 for name, count in large.items()}
    budget = {"value": 6.7, "_evaluate": 4.5, "qualified_name": 0.8, "scope_of": 10.6, "parent": 26}
    assert {name: per_row[name] for name in budget if per_row[name] > budget[name]} == {}


ALIKE = """
class Net{0}(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, size)
        self.layers = [nn.Linear(size, size) for _ in range(3)]

    def forward(self, x):
        y = self.fc(x)
        y.to("cuda")
        for layer in self.layers:
            y = layer(y)
        return y
"""


def test_classes_with_attributes_of_one_name_do_not_go_through_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()
    for name in ("parent", "ancestors", "is_below"):
        real = getattr(Tree, name)

        def call(self: Tree, *arguments: Any, _real: Any = real, _name: str = name) -> Any:
            asked[_name] += 1
            return _real(self, *arguments)

        monkeypatch.setattr(Tree, name, call)
    found = []
    for count in (20, 80):
        asked.clear()
        text = "import torch\nfrom torch import nn\n" + "".join(map(ALIKE.format, range(count)))
        assert len(engine.lint(text.encode(), "alike.py", select(["ML101", "ML402"], [])).diagnostics) == 2 * count
        found.append(Counter(asked))
    small, large = found
    assert {name: (small[name], large[name]) for name in large if large[name] > 6 * small[name]} == {}


def test_the_work_is_the_same_in_every_process() -> None:
    # Python orders a set of texts anew in each process: what goes through one may be lucky in one and not in the next.
    script = (
        "import sys, pytest; sys.path.insert(0, sys.argv[1]); import test_budget; "
        "print(sorted(test_budget._asked(520, pytest.MonkeyPatch(), mistakes=True).items()))"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parent)]
    asked = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(asked) == 1


def test_places_are_found_in_one_pass_however_many_there_are(counts: dict[str, int]) -> None:
    result = engine.lint(source(520, mistakes=True).encode(), "made.py", select(["ML"], []))
    assert len(result.diagnostics) == 20
    # The nodes without whitespace are indexed as they are made, or walked; then once more in full.
    assert (counts["parses"], counts["spans"]) == (1, 1)
    assert counts["walks"] <= 2


def test_a_sibling_is_read_once_for_all_who_import_it(tmp_path: Path, counts: dict[str, int]) -> None:
    make_folder(tmp_path, 10)
    paths = sorted(str(path) for path in tmp_path.rglob("part*.py"))
    outcomes = list(Runner(Mode()).run(Task(path, Settings()) for path in paths))
    assert sum(len(outcome.result.diagnostics) for outcome in outcomes) == 1
    # One tree each, one of the package's empty `__init__.py`, and the full one of the file with a finding.
    assert counts["trees"] <= len(paths) + 2
    assert counts["parses"] == 1


def test_siblings_are_not_dropped_while_one_file_needs_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where they are more than is kept for the next file: they would be read again and again."""
    read: Counter[str] = Counter()
    original = Project._read

    def counted(project: Project, path: Path) -> Model | None:
        read[path.name] += 1
        return original(project, path)

    monkeypatch.setattr(Project, "_read", counted)
    sibling = "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    layer = nn.Linear(2, 2)\n"
    imports, uses = [], []
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}.py").write_text(sibling)
        imports.append(f"from {name} import Net as {name}\n")
        uses.append(f"x.cuda()\n{name}().cuda()\nmodel_{name} = {name}().to('cpu')\nmodel_{name}.cuda()\n")
    text = "import torch\n" + "".join(imports) + "x = torch.zeros(2)\n" + "".join(uses) * 3
    project = Project(tmp_path, limit=len(bare_tree(sibling).parents))
    engine.lint(text.encode(), str(tmp_path / "train.py"), select(["ML"], []), project=project)
    assert read == {"first.py": 1, "second.py": 1, "third.py": 1}


def test_files_that_cannot_have_the_name_are_not_read(tmp_path: Path, counts: dict[str, int]) -> None:
    """``from .a import *`` over many files: those without the name cost a look at their text."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("".join(f"from .part{number} import *\n" for number in range(50)))
    for number in range(50):
        (package / f"part{number}.py").write_text(f"import torch\nPART{number} = torch.zeros({number + 1})\n")
    (package / "part49.py").write_text("from .deep import *\n")
    (package / "deep.py").write_text("import torch\n\ndef make():\n    return torch.zeros(3)\n")
    source = b"import torch\nfrom package import *\nx = make()\nx.cuda()\ny = x\n"
    result = engine.lint(source, str(tmp_path / "train.py"), select(["ML"], []), project=Project(tmp_path))
    assert [found.code for found in result.diagnostics] == ["ML101"]
    # The file itself, bare and in full, the package, the file with a star of its own, and the one with the name.
    assert counts["trees"] == 5


def test_a_name_is_sought_once_in_each_file_however_many_ways_lead_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of thirty files imports everything from all before it: there are as many ways as numbers of 28 bits."""
    asked: Counter[tuple[str, str]] = Counter()
    original = Inference._from_stars

    def counted(inference: Inference, name: str) -> Any:
        asked[Path(inference.model.source.path).name, name] += 1
        assert asked.total() < 10_000
        return original(inference, name)

    monkeypatch.setattr(Inference, "_from_stars", counted)
    (tmp_path / "part0.py").write_text("import torch\nmake = torch.zeros\n")
    for number in range(1, 30):
        imports = "".join(f"from part{before} import *\n" for before in range(number))
        (tmp_path / f"part{number}.py").write_text(imports)
    source = b"import torch\nfrom part29 import *\nx = make(3)\nx.cuda()\ny = x\nmissing(y).cuda()\n"
    result = engine.lint(source, str(tmp_path / "train.py"), select(["ML"], []), project=Project(tmp_path))
    assert [found.code for found in result.diagnostics] == ["ML101"]
    assert max(asked.values()) <= 4 * 30


@pytest.mark.parametrize("first", ["one", "two"])
def test_files_that_import_everything_from_each_other_hand_on_the_same(tmp_path: Path, first: str) -> None:
    """Whichever of them is asked first, and though one of them has a value of its own before the other's."""
    (tmp_path / "one.py").write_text("from two import *\nfrom base import *\n")
    (tmp_path / "two.py").write_text("from base import *\nfrom one import *\n")
    (tmp_path / "base.py").write_text("import torch\nmake = torch.zeros\n")
    second = {"one": "two", "two": "one"}[first]
    source = f"import torch\nfrom {first} import make\nfrom {second} import make as again\n"
    source += "x = make(3)\nx.cuda()\ny = again(3)\ny.cuda()\nprint(x, y)\n"
    result = engine.lint(source.encode(), str(tmp_path / "train.py"), select(["ML1"], []), project=Project(tmp_path))
    assert [(found.code, found.location.row) for found in result.diagnostics] == [("ML101", 5), ("ML101", 7)]


def test_what_a_parameter_proves_to_be_is_found_once_for_all_that_is_passed_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Functions that hand a parameter on and on would be gone through once for each way that leads there."""
    asked = 0
    original = evidence.from_use

    def counted(*arguments: Any) -> Value | None:
        nonlocal asked
        asked += 1
        return original(*arguments)

    monkeypatch.setattr(evidence, "from_use", counted)
    functions = [
        f"def step{number}(x):\n" + "".join(f"    step{to}(x)\n" for to in range(20) if to != number) + "\n\n"
        for number in range(20)
    ]
    text = "import torch\n\n\n" + "".join(functions) + "def run(x):\n    x.cuda()\n    step0(x)\n"
    engine.lint(text.encode(), "deep.py", select(["ML"], []))
    # Each at most once for each number of calls that lead to it.
    assert 0 < asked <= 20 * (evidence.MAX_CALLS + 1)


def test_what_a_sum_is_made_of_is_asked_once_however_many_ways_lead_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each term that is added in a loop is reached from each other one: with so many steps there is no end."""
    asked = 0
    original = inputs._is_from_parameter

    def counted(*arguments: Any) -> bool:
        nonlocal asked
        asked += 1
        return original(*arguments)

    monkeypatch.setattr(inputs, "_is_from_parameter", counted)
    terms = "".join(f"            if x[{number}] > 0:\n                total += y\n" for number in range(2))
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.scale = torch.ones(3)\n\n"
        "    def weigh(self, x, y):\n        total = torch.zeros(3)\n        for _ in x:\n"
        f"{terms}        return self.scale * total\n"
    )
    engine.lint(text.encode(), "sum.py", select(["ML404"], []))
    assert 0 < asked <= 40


def test_what_needs_each_other_is_derived_once_and_not_anew_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of a loop that are computed from each other are known together when their rounds are over."""
    size, asked = 12, Counter[int]()
    evaluate = Inference._evaluate

    def counting(self: Inference, node: cst.CSTNode) -> Value | None:
        asked[id(node)] += 1
        return evaluate(self, node)

    monkeypatch.setattr(Inference, "_evaluate", counting)
    names = [f"part_{number}" for number in range(size)]
    given = [f"    {name} = {names[number - 1]} + {names[number - 5]}\n" for number, name in enumerate(names)]
    text = "".join(["import torch\n", *(f"{name} = torch.ones(2)\n" for name in names), "while unknown():\n", *given])
    tree = bare_tree(text)
    model = Model(tree, Source(text, "train.py"))
    for name in tree.by_type[cst.Name]:
        model.value(name)
    assert max(asked.values()) < 20, asked.most_common(3)
    assert asked.total() < 5 * len(asked)


def test_only_what_goes_into_the_file_that_a_load_reads_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many scripts that save beside each other one writes it; of several that do, the first that fits ends it."""
    followed = 0
    original = Tracer._of_display

    def counted(tracer: Tracer, node: cst.Dict) -> Content | None:
        nonlocal followed
        followed += 1
        return original(tracer, node)

    monkeypatch.setattr(Tracer, "_of_display", counted)
    text = (
        "import torch\nfrom torch import nn\n\n\ndef main(args):\n    model = nn.Linear(2, args.size)\n"
        "    state = {'model': model.state_dict(), 'args': vars(args)}\n    torch.save(state, 'WRITTEN.pt')\n"
        "    model.load_state_dict(torch.load('READ.pt')['model'])\n"
    )
    for number in range(20):
        (tmp_path / f"train{number}.py").write_text(text.replace("WRITTEN", f"last_of_{number % 10}"))
    source = text.replace("WRITTEN", "best").replace("READ", "last_of_7").encode()
    result = engine.lint(source, str(tmp_path / "train.py"), select(["ML4"], []), project=Project(tmp_path))
    assert result.diagnostics == ()
    assert followed == 1


def test_what_a_factor_is_made_of_is_worked_out_once_for_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that is made of itself again and again leads there in ways without end."""
    asked: Counter[tuple[int, int]] = Counter()
    original = first_factors._worked_out

    def count(home: Any, binding: Any, steps: int) -> Any:
        asked[id(binding), steps] += 1
        assert asked[id(binding), steps] == 1  # or it would never come to an end
        return original(home, binding, steps)

    monkeypatch.setattr(first_factors, "_worked_out", count)
    lines = "".join(f"    size = max(size, min(size, {number}))\n" for number in range(2))
    source = f"""\
import torch
from torch import nn
def fit(net: nn.Module, loader, size):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{lines}\
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: size)
    for inputs in loader:
        scheduler.step()
        optimizer.zero_grad()
        net(inputs).sum().backward()
        optimizer.step()
"""
    engine.lint(source.encode(), "train.py", select(["ML307"], []))
    assert asked
    assert set(asked.values()) == {1}
