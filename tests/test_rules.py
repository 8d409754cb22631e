"""Every promise that holds for all rules, checked on every fixture of every rule.

The fixtures and their markers are described in ``harness/cases.py``. After a change that is meant,
``pytest tests/test_rules.py --snapshot-update --allow-snapshot-deletion`` rewrites the snapshots;
read the difference before you commit it.
"""

import ast
import copy
import difflib
import io
import re
import tokenize
from collections import Counter
from functools import cache
from itertools import cycle

import msgspec
import pytest
from pytest_snapshot.plugin import Snapshot

from harness.cases import FIXTURES, SNAPSHOTS, Case, all_cases, has_markers, observed, rules_by_name
from harness.rendering import rendered
from harness.style import assert_style
from harness.thinning import thinned
from harness.variants import VARIANTS
from mllint.diagnostics import Applicability, Diagnostic, Fix
from mllint.fixer import FixResult, fix
from mllint.registry import RuleSet, all_rules
from mllint.rule import Rule
from mllint.syntax.source import Source

# One process has all tests of a file: what is found in it is remembered.
every_case = pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id, marks=pytest.mark.xdist_group(case.id)) for case in all_cases()]
)
every_rule = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)


# -- what is there --------------------------------------------------------------------------------


@every_rule
def test_rule_has_look_alikes_for_its_findings(rule: Rule) -> None:
    counts: Counter[str] = Counter()
    for case in all_cases():
        if case.rule_name == rule.name:
            counts["expect"] += sum(marker.code == rule.code for marker in case.markers.expected)
            counts["ok"] += sum(code == rule.code for _, code in case.markers.ok)
    assert counts["expect"] >= 1, f"no fixture in tests/fixtures/rules/{rule.name} expects it"
    assert counts["ok"] >= counts["expect"], f"more `# ok` rows are needed: {dict(counts)}"


def test_no_fixture_is_forgotten() -> None:
    cases = {case.path for case in all_cases()}
    projects = {case.root for case in all_cases()} - set(FIXTURES.iterdir())
    for folder in FIXTURES.iterdir():
        assert folder.name in rules_by_name(), f"{folder}: no such rule"
        for path in folder.rglob("*"):
            if path.suffix == ".py":
                alone = path.parent == folder
                markers = has_markers(path.read_bytes(), str(path))
                assert not alone or markers, f"{path}: expects nothing"
                assert path in cases or not markers
                assert alone or not projects.isdisjoint(path.parents), (
                    f"{path}: no file of this project expects anything"
                )
            else:
                is_settings = path.suffix == ".yaml" and path.parent != folder
                assert path.is_dir() or is_settings or path.parent.name == "__pycache__", f"{path}: not a fixture"


def test_no_snapshot_is_forgotten() -> None:
    wanted = {
        SNAPSHOTS / case.rule_name / f"{case.name}{suffix}"
        for case in all_cases()
        for suffix in (".findings.txt", ".safe.diff", ".unsafe.diff")
    }
    found = {path for path in SNAPSHOTS.rglob("*") if path.is_file()}
    assert found <= wanted, f"snapshots of no fixture: {sorted(found - wanted)}"


# -- findings -------------------------------------------------------------------------------------


@every_case
def test_findings_are_the_expected_ones(case: Case) -> None:
    result = case.lint()
    assert observed(result.diagnostics) == [(m.row, m.code) for m in case.markers.expected]
    assert result.suppressed == ()


@every_case
def test_findings_look_right(case: Case, snapshot: Snapshot) -> None:
    snapshot.snapshot_dir = SNAPSHOTS / case.rule_name
    text = rendered(case.lint().diagnostics, case.data, f"{case.name}.py")
    snapshot.assert_match(text, f"{case.name}.findings.txt")


@every_case
def test_messages_keep_the_style(case: Case) -> None:
    for found in case.lint().diagnostics:
        assert_style(found.message, 88)
        assert_style(found.help, 160)
        if found.fix is not None:
            assert_style(found.fix.message, 88)


@every_case
def test_offered_fixes_are_the_declared_ones(case: Case) -> None:
    declared = {rule.code: rule.applicability for rule in all_rules()}
    offered = Counter(
        (found.location.row, found.code, str(found.fix.applicability) if found.fix else "none")
        for found in case.lint().diagnostics
    )
    assert offered == Counter(
        (marker.row, marker.code, marker.fix or str(declared[marker.code] or "none"))
        for marker in case.markers.expected
    )


@every_rule
def test_declared_fix_is_offered_somewhere_and_none_is_safer(rule: Rule) -> None:
    """As the markers say, which the test above holds against what is offered."""
    order = list(Applicability)
    markers = [item for case in all_cases() if case.rule_name == rule.name for item in case.markers.expected]
    kinds = {marker.fix or str(rule.applicability or "none") for marker in markers if marker.code == rule.code}
    offered = {Applicability(kind) for kind in kinds - {"none"}}
    if rule.applicability is None:
        assert not offered
    else:
        assert rule.applicability in offered, "no fixture shows the fix that the rule declares"
        assert all(order.index(kind) <= order.index(rule.applicability) for kind in offered)


# -- fixes ----------------------------------------------------------------------------------------


@cache
def fixed(case: Case, data: bytes | None = None, *, unsafe: bool = False) -> FixResult:
    """The case's file (or other bytes in its place) after its fixes."""
    content = case.data if data is None else data
    project = case.project()
    found = case.lint() if data is None else None
    return fix(content, str(case.path), case.rules, unsafe=unsafe, targets=case.targets, project=project, found=found)


def by_trust(case: Case, *, unsafe: bool) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """The findings that are to be fixed, and those that are to stay."""
    wanted: list[Diagnostic] = []
    left: list[Diagnostic] = []
    for found in case.lint().diagnostics:
        applied = found.fix is not None and found.fix.applicability.allows(unsafe)
        (wanted if applied else left).append(found)
    return wanted, left


def settled(wanted: list[Diagnostic], applied: tuple[Diagnostic, ...]) -> Counter[str]:
    """The findings that nobody mended, for what they stand in was mended by another rule's fix."""
    left = [found for found in wanted if found not in applied]
    return Counter(found.code for found in left if any(_holds(whole, found) for whole in applied))


def _holds(whole: Diagnostic, part: Diagnostic) -> bool:
    return whole.code != part.code and whole.location <= part.location and part.end_location <= whole.end_location


@every_case
@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
def test_fixes(case: Case, unsafe: bool, snapshot: Snapshot) -> None:
    wanted, left = by_trust(case, unsafe=unsafe)
    name = f"{case.name}.{'unsafe' if unsafe else 'safe'}.diff"
    # Where none is unsafe, nothing is mended that is not mended without; what nobody asks for: tests/test_fixer.py
    if not wanted or (unsafe and len(wanted) == len(by_trust(case, unsafe=False)[0])):
        assert not (SNAPSHOTS / case.rule_name / name).exists(), "a snapshot that is left over"
        return
    result = fixed(case, unsafe=unsafe)
    assert result.refused is None
    applied = Counter(found.code for found in result.applied) + settled(wanted, result.applied)
    assert applied >= Counter(found.code for found in wanted), "a fix was taken back"
    ast.parse(result.data)
    remaining = Counter(found.code for found in result.result.diagnostics)
    before = Counter(found.code for found in wanted + left)
    assert remaining + applied >= before, "a finding that was not fixed is gone"
    # A fix may make something certain that was not, and so bring findings of its own kind to light.
    assert (remaining + applied).keys() == before.keys(), "a fix brought findings of another rule"
    snapshot.snapshot_dir = SNAPSHOTS / case.rule_name
    snapshot.assert_match(changed_rows(case.data, result.data), name)


@pytest.mark.parametrize(("case", "unsafe"), thinned(all_cases(), [False, True], every=24))
def test_second_run_changes_nothing(case: Case, unsafe: bool) -> None:
    wanted = by_trust(case, unsafe=unsafe)[0]
    if wanted and not (unsafe and len(wanted) == len(by_trust(case, unsafe=False)[0])):
        data = fixed(case, unsafe=unsafe).data
        again = fixed(case, data, unsafe=unsafe)
        assert again.data == data
        assert again.applied == ()


def changed_rows(before: bytes, after: bytes) -> bytes:
    """What a fix changes, without context: short enough to be read in full at every review."""
    rows = difflib.diff_bytes(
        difflib.unified_diff, before.splitlines(keepends=True), after.splitlines(keepends=True), n=0
    )
    text = b"".join(row if row.endswith(b"\n") else row + b"\n" for row in rows)
    return re.sub(rb"\A---.*\n\+\+\+.*\n", b"", text)


@every_case
def test_safe_fixes_keep_every_comment(case: Case) -> None:
    if by_trust(case, unsafe=False)[0]:
        assert comments(fixed(case, unsafe=False).data) == comments(case.data)


def comments(data: bytes) -> list[str]:
    """All comments of a file, in order."""
    return [token.string for token in tokenize.tokenize(io.BytesIO(data).readline) if token.type == tokenize.COMMENT]


@every_case
def test_fix_is_the_same_as_applying_its_edits(case: Case) -> None:
    source = Source.from_bytes(case.data, str(case.path))
    for found in case.lint().diagnostics:
        if found.fix is not None:
            check_edits(source, found.fix)


def check_edits(source: Source, offered: Fix) -> None:
    """Edits are in order, do not overlap, change something, and say their place twice alike."""
    assert offered.edits, "a fix without edits"
    end = 0
    for edit in offered.edits:
        assert end <= edit.start <= edit.end <= len(source.text)
        assert edit.content != source.text[edit.start : edit.end]
        assert source.location(edit.start) == edit.location
        assert source.location(edit.end) == edit.end_location
        end = edit.end


# -- suppressions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "half"), thinned(all_cases(), ["even", "odd"], every=24))
def test_comment_silences_exactly_its_finding(case: Case, half: str) -> None:
    before = case.lint().diagnostics
    marks = {found.noqa_row: found.code for found in before}
    able = [row for row in sorted(marks) if with_comment(case.data, {row: "noqa"}) is not None]
    # Every second one at a time: what stands beside a silenced finding must stay.
    rows = able[half == "odd" :: 2]
    if not rows:
        return
    forms = cycle(("noqa: {}", "mllint: ignore[{}] known"))
    data = with_comment(case.data, {row: form.format(marks[row]) for row, form in zip(rows, forms, strict=False)})
    assert data is not None
    result = case.lint(data)
    silenced = [f for f in before if f.noqa_row in rows and f.code == marks[f.noqa_row]]
    assert observed(result.suppressed) == observed(tuple(silenced))
    assert observed(result.diagnostics) == observed(tuple(f for f in before if f not in silenced))


@pytest.mark.parametrize("case", thinned(all_cases(), every=24))
def test_silenced_findings_are_not_fixed(case: Case) -> None:
    rows = {found.noqa_row: f"noqa: {found.code}" for found in case.lint().diagnostics}
    data = with_comment(case.data, rows)
    if data is not None and by_trust(case, unsafe=True)[0]:
        several = Counter(found.noqa_row for found in case.lint().diagnostics)
        if all(count == 1 for count in several.values()):
            assert fixed(case, data, unsafe=True).data == data


def with_comment(data: bytes, by_row: dict[int, str]) -> bytes | None:
    """The file with comments appended to rows; ``None`` where a row cannot carry one."""
    lines = data.splitlines(keepends=True)
    for row, comment in by_row.items():
        body = lines[row - 1].rstrip(b"\r\n")
        ending = lines[row - 1][len(body) :]
        lines[row - 1] = body + f"  # {comment}".encode() + ending
    result = b"".join(lines)
    try:
        found = {
            token.start[0]: token.string
            for token in tokenize.tokenize(io.BytesIO(result).readline)
            if token.type == tokenize.COMMENT
        }
        ast.parse(result)
    except (SyntaxError, tokenize.TokenError):
        return None
    carried = all(comment in found.get(row, "") for row, comment in by_row.items())
    return result if carried else None


# -- spelling, order, gate ------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "variant"), thinned(all_cases(), list(VARIANTS), every=10, in_turn=True))
def test_imports_may_be_spelled_otherwise(case: Case, variant: str) -> None:
    if case.markers.variants_off:
        return
    text = VARIANTS[variant](Source.from_bytes(case.data, str(case.path)).text)
    if text is None:
        return
    result = case.lint(text.encode())
    assert observed(result.diagnostics) == observed(case.lint().diagnostics), text


@pytest.mark.parametrize("case", thinned(all_cases(), every=24))
def test_rules_do_not_depend_on_each_other(case: Case) -> None:
    """What a rule finds it finds alone, and the silent ones stay silent without those that find something."""
    together = case.lint().diagnostics
    finding = {found.code for found in together}
    for rule in case.rules.rules:
        if rule.code in finding:
            alone = case.lint(rules=RuleSet([rule])).diagnostics
            assert alone == tuple(found for found in together if found.code == rule.code)
    assert case.lint(rules=RuleSet(rule for rule in case.rules.rules if rule.code not in finding)).diagnostics == ()


def test_gate_of_a_rule_alone_lets_its_findings_through() -> None:
    gates = {rule.code: RuleSet([rule]) for rule in all_rules()}
    kept_out = [
        (str(case.path), marker.code)
        for case in all_cases()
        for marker in case.markers.expected
        if marker.code in gates and not gates[marker.code].may_fire(case.data)
    ]
    assert kept_out == []


@pytest.mark.parametrize("case", thinned(all_cases(), every=24))
def test_gate_and_words_hide_nothing(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is read whatever is in it, by handlers that wait for no word, has the findings of any other run."""
    rules = [copy.copy(rule) for rule in case.rules.rules]
    for rule in rules:
        rule.subscriptions = [msgspec.structs.replace(item, mentions=frozenset()) for item in rule.subscriptions]
    monkeypatch.setattr(RuleSet, "may_fire", lambda self, data: True)
    assert case.lint(rules=RuleSet(rules)).diagnostics == case.lint().diagnostics


@pytest.mark.parametrize("case", thinned(all_cases(), every=24))
def test_line_ends_and_byte_order_mark_change_nothing(case: Case) -> None:
    if b"\r" in case.data:
        return
    crlf = case.data.replace(b"\n", b"\r\n")
    has_cookie = case.data.startswith(b"\xef\xbb\xbf") or b"coding" in case.data[:200]
    marked = crlf if has_cookie else b"\xef\xbb\xbf" + crlf
    assert observed(case.lint(marked).diagnostics) == observed(case.lint().diagnostics)
    if by_trust(case, unsafe=True)[0]:
        plain, windows = fixed(case, unsafe=True).data, fixed(case, marked, unsafe=True).data
        assert windows == marked[: len(marked) - len(crlf)] + plain.replace(b"\n", b"\r\n"), "line ends are not kept"
