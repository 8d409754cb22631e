"""The documentation is true: examples run, generated pages are fresh, links lead somewhere."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cases import read_targets, whole_rule_set
from mllint._dev import docs
from mllint._dev.rule_page import HEADINGS, PageError, RulePage
from mllint.diagnostics import Applicability, Diagnostic
from mllint.engine import lint
from mllint.fixer import fix
from mllint.registry import all_rules
from mllint.rule import Rule

ROOT = Path(__file__).parent.parent
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"])

every_rule = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
every_page = pytest.mark.parametrize(
    "page",
    [page for page in PAGES if "_build" not in page.parts],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)


def findings(code: str) -> tuple[Diagnostic, ...]:
    """What all rules find in a piece of documentation."""
    return lint(code.encode(), "example.py", whole_rule_set(), targets=read_targets(code)).diagnostics


@every_rule
def test_example_fires_this_rule_alone(rule: Rule) -> None:
    for example in RulePage.of(rule).code("Example"):
        ast.parse(example)
        assert {found.code for found in findings(example)} == {rule.code}, example


@every_rule
def test_use_instead_is_silent(rule: Rule) -> None:
    for instead in RulePage.of(rule).code("Use instead"):
        ast.parse(instead)
        assert findings(instead) == (), instead


@every_rule
def test_safe_fix_of_the_example_is_what_to_use_instead(rule: Rule) -> None:
    page = RulePage.of(rule)
    for example, instead in zip(page.code("Example"), page.code("Use instead"), strict=True):
        offered = {f.fix.applicability for f in findings(example) if f.fix is not None}
        if Applicability.SAFE in offered:
            result = fix(example.encode(), "example.py", whole_rule_set(), targets=read_targets(example))
            assert result.data.decode() == instead


@every_rule
def test_fix_safety_says_what_the_metadata_says(rule: Rule) -> None:
    text = RulePage.of(rule).sections["Fix safety"].lower()
    if rule.applicability is None:
        assert "no fix" in text
    else:
        assert str(rule.applicability) in text


def test_page_without_its_sections_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = all_rules()[0]
    good = rule.docs
    broken = {
        "nothing": "",
        "text before the first heading": f"Before.\n\n{good}",
        "another heading": good.replace(f"## {HEADINGS[2]}", "## Examples"),
        "one more heading": good + "\n## More\n\nText.\n",
        "an empty section": re.sub(r"## References\n.*", "## References\n", good, flags=re.DOTALL),
    }
    for text in broken.values():
        monkeypatch.setattr(sys.modules[rule.module], "__doc__", text)
        with pytest.raises(PageError, match=rule.name):
            RulePage.of(rule)


# -- generated files ------------------------------------------------------------------------------


def test_generated_pages_are_fresh() -> None:
    stale = docs.stale_files(ROOT)
    assert not stale, f"run `python -m mllint._dev docs`: {sorted(map(str, stale))}"


@pytest.mark.slow
def test_stale_and_orphaned_pages_are_noticed_and_mended(tmp_path: Path) -> None:
    shutil.copy(ROOT / "README.md", tmp_path)
    shutil.copytree(ROOT / "docs" / "rules", tmp_path / "docs" / "rules")
    for path in ("docs/configuration.md", "src/mllint/mllint.schema.json"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    pages = tmp_path / "docs" / "rules"
    edited = pages / f"{all_rules()[0].name}.md"
    edited.write_text(edited.read_text("utf-8") + "more\n", encoding="utf-8")
    (pages / "forgotten-rule.md").write_text("# forgotten\n", encoding="utf-8")
    (pages / "index.md").unlink()
    assert {path.name for path in docs.stale_files(tmp_path)} == {
        edited.name,
        "forgotten-rule.md",
        "index.md",
    }
    assert docs.main(["--check", "--root", str(tmp_path)]) == 1
    assert docs.main(["--root", str(tmp_path)]) == 0
    assert docs.main(["--check", "--root", str(tmp_path)]) == 0
    assert not (pages / "forgotten-rule.md").exists()


# -- pages written by hand ------------------------------------------------------------------------


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", text):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@every_page
def test_nobody_is_sent_to_the_wrong_package(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not re.search(r"(pip|pipx|uvx?|uv tool) (install|run)? ?mllint\b", text)


def test_readme_example_prints_what_the_readme_says(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"```(\w+)\n(.*?)```", readme, re.DOTALL)
    sources = [body for language, body in blocks if language == "python"]
    outputs = [body for language, body in blocks if language == "text" and "train.py" in body]
    (tmp_path / "train.py").write_text(sources[0], encoding="utf-8")
    command = [sys.executable, "-m", "mllint", "--isolated", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.strip() == outputs[0].strip()
