"""The tools for those who work on mllint do what they say."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mllint import engine, fixer, lint_source
from mllint._dev import bench, corpus, new_rule, scaling
from mllint._dev.__main__ import COMMANDS, main
from mllint._dev.corpus import examine, is_broken
from mllint._dev.files import python_files
from mllint._dev.fix_check import check_fixes, replay
from mllint._dev.isolate import ProcessDied, TimeLimitError, run_each, time_limit
from mllint._dev.phases import PHASES, Stopwatch
from mllint.diagnostics import Applicability, Diagnostic, Edit, Fix, Location, Result, Status
from mllint.registry import RuleSet
from mllint.syntax.source import Source

ROOT = Path(__file__).parent.parent


def test_every_command_exists_and_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-command"]) == 2
    assert main(["--help"]) == 0
    usage = capsys.readouterr().err
    assert all(name in usage for name in COMMANDS)
    for name in COMMANDS:
        with pytest.raises(SystemExit) as caught:
            main([name, "--help"])
        assert caught.value.code == 0


# -- new-rule -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_scaffold_passes_the_harness(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part in ("src", "tests", "docs", "pyproject.toml", "README.md", "CHANGELOG.md"):
        source, target = ROOT / part, tmp_path / part
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "_build", "*.egg-info")
            shutil.copytree(source, target, ignore=ignored)
        else:
            shutil.copy(source, target)
    name = "scaffolded-for-a-test"
    assert new_rule.main(["ML199", name, "--topic", "tensors", "--root", str(tmp_path)]) == 0
    path = os.pathsep.join([str(tmp_path / "src"), str(tmp_path / "tests")])
    environment = os.environ | {"PYTHONPATH": path}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    files = ["tests/test_rules.py", "tests/test_registry.py", "tests/test_docs.py"]
    chosen = ["pytest", "-p", "no:cacheprovider", "-n", "0", "-k", name, *files]
    run("mllint._dev", "docs", "--root", str(tmp_path))
    # The first run writes the snapshots, and says so by failing.
    update = ["--snapshot-update", "--allow-snapshot-deletion"]
    subprocess.run([sys.executable, "-m", *chosen, *update], cwd=tmp_path, env=environment, check=False)
    assert " passed" in run(*chosen)
    files = [path for path in capsys.readouterr().out.split() if name in path.replace("_", "-")]
    assert len(files) == 3
    run("ruff", "check", *files)
    run("ruff", "format", "--check", *files)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["ML1", "some-name"], "three digits"),
        (["ML099", "some-name"], "three digits"),
        (["ML199", "Name"], "kebab-case"),
        (["ML199", "no-cuda-call"], "bad pattern"),
        (["ML199", "some-name", "--topic", "data"], "tensors"),
    ],
)
def test_scaffold_refuses(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").mkdir()
    assert new_rule.main([*arguments, "--root", str(tmp_path)]) == 2
    assert problem in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["tests"]


def test_scaffold_and_pages_need_the_repository(tmp_path: Path) -> None:
    assert new_rule.main(["ML199", "some-name", "--root", str(tmp_path)]) == 2
    assert main(["docs", "--check", "--root", str(tmp_path)]) == 2


def test_scaffold_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tests").mkdir()
    arguments = ["ML199", "some-name", "--root", str(tmp_path)]
    assert new_rule.main(arguments) == 0
    assert new_rule.main(arguments) == 2
    assert "exists already" in capsys.readouterr().err


# -- isolate --------------------------------------------------------------------------------------


def _work(item: int) -> int | str:
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        with time_limit(0.1):
            time.sleep(5 if item == 5 else 0)
    except TimeLimitError:
        return "late"
    return item


@pytest.mark.parametrize("jobs", [1, 2])
def test_hang_or_death_costs_one_item(jobs: int) -> None:
    outcomes = list(run_each(_work, range(8), jobs))
    assert [o if not isinstance(o, ProcessDied) else "died" for o in outcomes] == [
        *(0, 1, 2, "died"),
        *(4, "late", 6, 7),
    ]


# -- corpus ---------------------------------------------------------------------------------------


def test_corpus_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = "import torch\nx = torch.zeros(2)\nx = x.cuda()\n"
    bad = "import torch\nx = torch.zeros(2)\nx.cuda()\n"
    for path, text in {
        "one/bad.py": bad,
        "two/copy.py": bad,
        "two/good.py": good,
        "two/old.py": "import torch\nprint 'torch'\n",
        "two/other.py": "import os\n",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    listing = tmp_path / "findings.txt"
    options = ["--rule", "ML101", "--fix-check", "--list", str(listing)]
    assert corpus.main([str(tmp_path), *options]) == 0
    report = capsys.readouterr().out
    assert "5 files" in report
    assert "| ML101 | discarded-tensor-result | 2 | 1 | 2 | 2 | 2 | 0 | 0 |" in report
    assert "## Failures: 0 files, 0 internal errors" in report
    assert "Not readable as Python: 1" in report
    assert "## Fixes: 2 applied in 2 files, 0 files with problems" in report
    assert ">    3 x.cuda()" in report
    assert "+x = x.cuda()" in report
    assert len(listing.read_text("utf-8").splitlines()) == 2
    assert (tmp_path / "one/bad.py").read_text("utf-8") == bad, "nothing is written"


def test_corpus_report_tells_of_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(*_: object, **__: object) -> Result:
        raise RuntimeError("the engine is broken")

    (tmp_path / "any.py").write_text("import torch\n", encoding="utf-8")
    monkeypatch.setattr(engine, "lint", crash)
    [report] = examine([tmp_path / "any.py"], ("ML",))
    assert is_broken(report)
    assert "the engine is broken" in (report.failure or "")
    assert corpus.main([str(tmp_path)]) == 1
    assert "## Failures: 1 files" in capsys.readouterr().out


def test_corpus_files(tmp_path: Path) -> None:
    for name in ("b.py", "a/c.py", "a/d.txt", ".git/e.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "dangling.py").symlink_to("nothing")
    found = [path.relative_to(tmp_path).as_posix() for path in python_files([tmp_path])]
    assert found == ["a/c.py", "b.py"]
    with pytest.raises(FileNotFoundError):
        python_files([tmp_path / "missing"])


# -- fix check ------------------------------------------------------------------------------------


def _applied(row: int, start: int, end: int, content: str) -> Diagnostic:
    place = Location(row, 1)
    fix = Fix("mend it", Applicability.SAFE, (Edit(start, end, content, place, place),))
    return Diagnostic("ML101", "name", "message", "help", "x.py", place, place, row, fix)


def test_replay_applies_rounds_in_order() -> None:
    source = Source.from_bytes(b"\xef\xbb\xbfab\r\ncd\r\n", "x.py")
    first = [_applied(1, 0, 1, "AA"), _applied(2, 4, 5, "C")]
    second = [_applied(1, 0, 2, "a")]
    assert replay(source, first + second, (2, 1)) == b"\xef\xbb\xbfab\r\nCd\r\n"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"x = (\n", "does not parse"),
        (b"y = 1  \n", "outside the reported edits"),
    ],
)
def test_wrong_fixes_are_noticed(data: bytes, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = Result("x.py", Status.OK)
    applied = (_applied(1, 0, 1, "y"),)
    broken = fixer.FixResult(data=data, applied=applied, result=result, rounds=(1,))
    monkeypatch.setattr(fixer, "fix", lambda *_, **__: broken)
    check = check_fixes(b"x = 1\n", "x.py", RuleSet([]), None)
    assert any(problem in text for text in check.problems)


# -- bench ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_benchmark_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "import torch\nx = torch.zeros(2)\nx.cuda()\n"
    (tmp_path / "one.py").write_text(text, encoding="utf-8")
    (tmp_path / "other.py").write_text("import os\n", encoding="utf-8")
    assert bench.main([str(tmp_path), "--against", "flake8"]) == 0
    output = capsys.readouterr().out
    assert "2 files, 4 rows" in output
    assert all(f"| {phase} |" in output for phase in PHASES)
    assert "1 files past the gate" in output
    assert "FAILED" not in output
    assert "flake8 with the plugin:" in output
    assert "flake8 with the plugin and nothing changed:" in output


def test_stopwatch_counts_each_second_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(100))
    monkeypatch.setattr(time, "process_time", lambda: next(ticks))
    watch = Stopwatch(("outer", "inner"))
    inner = watch.timed("inner", lambda: None)
    with watch.phase("outer"):
        inner()
        inner()
    assert watch.seconds == {"outer": 3, "inner": 2}


def test_benchmark_needs_what_it_compares_with(tmp_path: Path) -> None:
    assert bench.main([str(tmp_path), "--against", "no-such-linter"]) == 2


# -- bench: growth --------------------------------------------------------------------------------


def test_made_up_source_has_the_findings_that_it_should_have(tmp_path: Path) -> None:
    for mistakes in (False, True):
        text = scaling.source(300, mistakes=mistakes)
        assert 250 < text.count("\n") <= 310
        result = lint_source(text)
        assert {item.code for item in result.diagnostics} == ({"ML201"} if mistakes else set())
    scaling.make_folder(tmp_path, 45)
    assert len(list(tmp_path.rglob("part*.py"))) == 45
    assert {path.name for path in tmp_path.iterdir()} == {"setup.py", "package0", "package1", "package2"}


def test_tables_of_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = scaling.Measured(2.0, 100.0, 7)
    monkeypatch.setattr(scaling, "of_file", lambda rows, mistakes: measured)
    titles = ("cold", "warm", "one file changed")
    monkeypatch.setattr(scaling, "of_folder", lambda files: dict.fromkeys(titles, measured))
    lines = list(scaling.table((1_000,), (100,)))
    assert "| 1,000 rows | 2.00 s | 2000 | 100 MiB | 2.00 s | 2000 | 100 MiB | 7 |" in lines
    assert "| 100 files | 2.00 s | 20.0 | 100 MiB | 2.00 s | 100 MiB | 2.00 s | 7 |" in lines
    rows = [line.count("|") for line in lines if line]
    assert rows == [9] * len(rows)


def test_ratios_are_compared_with_those_that_were_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"a": 1.0, "b": 2.0}
    monkeypatch.setattr(scaling, "ratios", lambda: dict(found))
    baseline = tmp_path / "baseline.json"
    assert bench.main(["--write", str(baseline)]) == 0
    assert bench.main(["--check", str(baseline)]) == 0
    found.update(a=1.4, c=9.0)
    assert bench.main(["--check", str(baseline)]) == 0
    assert "(baseline new)  c" in capsys.readouterr().out
    assert bench.main(["--check", str(baseline), "--tolerance", "0.3"]) == 1
    assert "WORSE    1.400  (baseline 1.000)  a" in capsys.readouterr().out


def test_what_is_written_down_is_what_is_measured() -> None:
    titles = json.loads((ROOT / "tests" / "benchmark.json").read_text("utf-8"))
    code = (ROOT / "src" / "mllint" / "_dev" / "scaling.py").read_text("utf-8")
    assert titles
    assert all(f'"{title}"' in code for title in titles)
