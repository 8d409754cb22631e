"""What is done with one file: the gate, the rules that hold for it, reading and writing."""

import gc
import pickle
from pathlib import Path

import pytest

from mllint.configuration.settings import Settings
from mllint.diagnostics import Status
from mllint.registry import RuleSet, all_rules
from mllint.running.runner import Mode, Runner, Task, chosen_rules, written
from mllint.semantic.project import KEPT_NODES, Project
from mllint.syntax.gate import may_concern_rules

MISTAKES = b"""\
import math
import torch

x = torch.zeros(3)
x.cuda()
print(x.sum() == math.nan)
"""


def codes(settings: Settings, path: str = "a.py") -> tuple[str, ...]:
    return chosen_rules(settings, path).codes


def test_the_gate_is_never_narrower_than_that_of_the_rules() -> None:
    """Whatever makes a rule look at a file gets the file past the first gate."""
    checked = 0
    for rule in all_rules():
        words = {word for subscription in rule.subscriptions for word in subscription.mentions}
        anything = not all(subscription.mentions for subscription in rule.subscriptions)
        for framework in rule.frameworks:
            for word in sorted(words) + ["anything"] * anything:
                data = f"import {framework}\n{word}\n".encode()
                assert RuleSet([rule]).may_fire(data), (rule.code, data)
                assert may_concern_rules(data), f"{rule.code} fires on {data!r}: widen syntax/gate.py"
                checked += 1
    assert checked >= len(all_rules())


@pytest.mark.parametrize(
    "data", [b"", b"import os\n", b"import numpy as np\nnp.zeros(3)\n", b"float('nan')", b"\xff\x00"]
)
def test_a_file_that_concerns_no_rule_is_not_parsed(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(data)
    assert not may_concern_rules(data)
    outcome = Runner(Mode()).outcome(Task(str(path), Settings()))
    assert (outcome.result.status, outcome.result.diagnostics) == (Status.SKIPPED, ())


def test_a_file_with_a_forward_may_be_a_module_without_naming_a_framework() -> None:
    data = b"from .base import Base\n\nclass Net(Base):\n    def forward(self, x):\n        return x\n"
    assert may_concern_rules(data)
    assert RuleSet(all_rules()).may_fire(data)


def test_the_rules_of_a_file() -> None:
    every = tuple(rule.code for rule in all_rules() if rule.is_default)
    assert codes(Settings()) == every
    assert codes(Settings(select=("ML101", "nan-comparison"))) == ("ML101", "ML501")
    assert codes(Settings(select=("ML1",), ignore=("ML102",), extend_select=("ML501",)))[-1] == "ML501"
    assert "ML102" not in codes(Settings(select=("ML1",), ignore=("ML102",)))


def test_rules_ignored_for_some_files() -> None:
    settings = Settings(
        select=("ML101", "ML501"),
        per_file_ignores=(("tests/*", ("ML1",)), ("conftest.py", ("ALL",)), ("!src/**", ("ML501",))),
        pattern_root="/p",
    )
    assert codes(settings, "/p/src/a.py") == ("ML101", "ML501")
    assert codes(settings, "/p/b.py") == ("ML101",)
    assert codes(settings, "/p/tests/a.py") == ()
    assert codes(settings, "/p/src/x/conftest.py") == ()


def test_patterns_of_the_library_are_matched_against_the_path_as_it_is() -> None:
    settings = Settings(select=("ML101",), per_file_ignores=(("tests/", ("ML101",)),))
    assert codes(settings, "tests/a.py") == ()
    assert codes(settings, "./tests/a.py") == ()
    assert codes(settings, "src/a.py") == ("ML101",)


def test_an_outcome_can_be_pickled(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(MISTAKES)
    task = Task(str(path), Settings())
    outcome = Runner(Mode(fixes=True)).outcome(task)
    assert len(outcome.fixed) == 2
    assert pickle.loads(pickle.dumps((task, outcome))) == (task, outcome)


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(MISTAKES)

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    result = Runner(Mode()).outcome(Task(str(path), Settings())).result
    assert result.status is Status.UNREADABLE
    assert [(found.code, found.message) for found in result.diagnostics] == [
        ("ML003", "cannot be read: permission denied")
    ]


def test_a_file_that_cannot_be_written_keeps_its_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(MISTAKES)
    task = Task(str(path), Settings())
    before = Runner(Mode()).outcome(task).result
    monkeypatch.setattr("mllint.running.writer.os.access", lambda path, mode: False)
    outcome = written(Runner(Mode(fixes=True)).outcome(task))
    assert outcome.write_failed
    assert outcome.problem == "cannot be written: the file is read-only"
    assert outcome.result == before
    assert outcome.fixed == ()
    assert path.read_bytes() == MISTAKES


def test_fixes_are_written_only_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(MISTAKES)
    shown = Runner(Mode(fixes=True)).outcome(Task(str(path), Settings()))
    assert path.read_bytes() == MISTAKES
    assert shown.change is not None
    assert shown.change.before == MISTAKES
    assert written(shown) == shown
    assert path.read_bytes() == shown.change.after
    again = Runner(Mode(fixes=True)).outcome(Task(str(path), Settings()))
    assert again.change is None
    assert again.result.diagnostics == ()


def test_the_versions_that_the_project_asks_for_reach_the_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, requirement in (("a", "torch>=2.1"), ("b", "paddlepaddle==3.0")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.py").write_bytes(MISTAKES)
        (tmp_path / name / "setup.cfg").write_text(f"[options]\ninstall_requires = {requirement}\n")
    seen = []
    from mllint import engine

    lint = engine.lint

    def spy(*arguments: object, **options: object) -> object:
        seen.append(options["targets"])
        return lint(*arguments, **options)

    monkeypatch.setattr(engine, "lint", spy)
    runner = Runner(Mode())
    paths = [str(tmp_path / "a" / "x.py"), str(tmp_path / "b" / "x.py")]
    list(runner.run(Task(path, Settings()) for path in paths))
    list(runner.run(Task(path, Settings(torch_version="1.8")) for path in paths[:1]))
    targets = engine.Targets
    assert seen == [targets(torch=(2, 1)), targets(paddle=(3, 0)), targets(torch=(1, 8))]


def test_a_project_is_kept_while_one_inside_it_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("outer", "outer/inner", "outer/other", "beside"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pyproject.toml").touch()
    names = ["outer/a.py", "outer/inner/x.py", "outer/m.py", "outer/other/x.py", "outer/z.py", "beside/x.py"]
    for name in names:
        (tmp_path / name).write_bytes(MISTAKES)
    opened, emptied, limits = [], [], []
    open_it, drop_models = Project.__init__, Project.drop_models

    def note_opened(self: Project, root: Path, limit: int = KEPT_NODES) -> None:
        opened.append(root)
        limits.append(limit)
        open_it(self, root, limit)

    def note_emptied(self: Project) -> None:
        emptied.append(self.root)
        drop_models(self)

    monkeypatch.setattr(Project, "__init__", note_opened)
    monkeypatch.setattr(Project, "drop_models", note_emptied)
    runner = Runner(Mode(), remembers=True)
    outcomes = list(runner.run(Task(str(tmp_path / name), Settings()) for name in names))
    assert all(len(outcome.result.diagnostics) == 2 for outcome in outcomes)
    assert opened == [tmp_path / name for name in ("outer", "outer/inner", "outer/other", "beside")]
    # Together they keep no more than one alone: a model of the outer one is what the inner one may not have.
    assert emptied == [tmp_path / name for name in ("outer/inner", "outer/other", "outer")]
    assert KEPT_NODES // 2 < limits[2] < limits[1] < limits[0] == limits[3] == KEPT_NODES
    known = [(Path(item.root), [Path(path).name for path, _, _ in item.files]) for item in runner.known()]
    assert known == [
        (tmp_path / "outer", ["a.py"]),
        (tmp_path / "outer/inner", ["x.py"]),
        (tmp_path / "outer", ["m.py"]),
        (tmp_path / "outer/other", ["x.py"]),
        (tmp_path / "outer", ["z.py"]),
        (tmp_path / "beside", ["x.py"]),
    ]


def test_what_one_inside_it_is_given_is_taken_from_the_outer_project(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.py" for name in "abcd"]
    for path in paths:
        path.write_text("import torch\n" + "x = 1\n" * 40)
    outer = Project(tmp_path, 1_000)
    for path in paths:
        assert outer.model(path) is not None
    inner = outer.inner(tmp_path / "inner")
    assert 500 <= inner.limit < 1_000
    read = [path for path in paths if path not in outer._models]
    assert 0 < len(read) < len(paths)


def test_garbage_is_collected_between_files_and_as_before_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(MISTAKES)
    assert gc.isenabled()
    for _ in Runner(Mode()).run([Task(str(path), Settings())] * 2):
        assert not gc.isenabled()
    assert gc.isenabled()
    next(Runner(Mode()).run([Task(str(path), Settings())]))
    assert gc.isenabled()
