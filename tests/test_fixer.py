"""The fixer, with rules made for the purpose: what is applied, taken back, refused and left alone."""

import ast
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mllint import edits, engine, fix_source, fixer
from mllint.configuration.settings import Settings
from mllint.diagnostics import Applicability, Result, Status
from mllint.edits import NodeEdit, NodeFix
from mllint.imports import need_import
from mllint.registry import RuleSet
from mllint.rule import Finding, Rule
from mllint.semantic.project import Project
from mllint.syntax.source import Source

Build = Callable[[cst.Call, Any], NodeFix | None]


def rule_for(code: str, function: str, build: Build, applicability: Applicability = Applicability.SAFE) -> Rule:
    """A rule that finds every call `function(...)` and mends it with what `build` makes of it."""
    rule = Rule(
        code=code,
        message=f"`{function}` is wrong",
        help="write something else",
        frameworks=frozenset({"torch"}),
        since="0.1.0",
        applicability=applicability,
        module=f"tests.{function}",
    )

    @rule.on(cst.Call)
    def check(call: cst.Call, context: Any) -> Iterator[Finding]:
        if isinstance(call.func, cst.Name) and call.func.value == function:
            yield Finding(call, fix=lambda: build(call, context))

    return rule


def fix_of(*changes: NodeEdit, applicability: Applicability = Applicability.SAFE) -> NodeFix:
    return NodeFix("mend it", changes, applicability)


def rename_to(name: str, applicability: Applicability = Applicability.SAFE) -> Build:
    return lambda call, _: fix_of(edits.replace(call.func, name), applicability=applicability)


RENAME = rule_for("ML101", "old", rename_to("new"))
"""`old(x)` to `new(x)`: the model of a good fix."""


def fix(text: str | bytes, *rules: Rule, unsafe: bool = False) -> fixer.FixResult:
    data = text if isinstance(text, bytes) else text.encode()
    result = fixer.fix(data, "train.py", RuleSet(rules), unsafe=unsafe)
    again = fixer.fix(result.data, "train.py", RuleSet(rules), unsafe=unsafe)
    assert again.data is result.data, "a second run changes the file"
    assert again.applied == ()
    assert again.result == result.result
    assert sum(result.rounds) == len(result.applied)
    return result


def fixed(text: str, *rules: Rule, unsafe: bool = False) -> str:
    return fix(text, *rules, unsafe=unsafe).data.decode()


# --- What is applied ------------------------------------------------------------------------------


def test_mends_what_it_can_and_reports_it() -> None:
    result = fix("import torch\nx = old(1)\ny = old(2)\n", RENAME)
    assert result.data == b"import torch\nx = new(1)\ny = new(2)\n"
    assert [(item.code, item.location.row) for item in result.applied] == [("ML101", 2), ("ML101", 3)]
    assert result.result == Result("train.py", Status.OK)
    assert result.refused is None
    assert result.rounds == (2,)
    assert pickle.loads(pickle.dumps(result)) == result


def test_returns_the_very_bytes_where_nothing_is_done() -> None:
    data = b"import torch\nx = new(1)\n"
    result = fixer.fix(data, "train.py", RuleSet([RENAME]))
    assert result.data is data
    assert result == fixer.FixResult(data, (), Result("train.py", Status.OK))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfimport torch\nold(1)\n", b"\xef\xbb\xbfimport torch\nnew(1)\n"),
        (b"import torch\r\nold(1)\r\n", b"import torch\r\nnew(1)\r\n"),
        (b"import torch\r\nold(1)\n\told = 1\r\n".replace(b"\t", b""), b"import torch\r\nnew(1)\nold = 1\r\n"),
        (b"import torch\nif 1:\n\told(1)  \n\n\n", b"import torch\nif 1:\n\tnew(1)  \n\n\n"),
        (b"import torch\nold(1)", b"import torch\nnew(1)"),
        (b"import torch\rold(1)\r", b"import torch\rnew(1)\r"),
        (
            b"# coding: latin-1\nimport torch\n'\xe9'; old('\xff')\n",
            b"# coding: latin-1\nimport torch\n'\xe9'; new('\xff')\n",
        ),
        ("import torch\n'é𝄞'; old('é𝄞')  # é\n".encode(), "import torch\n'é𝄞'; new('é𝄞')  # é\n".encode()),
        (
            b"import torch\nold(1);  old(2) ;\x0c\nold  (3)\\\n\n",
            b"import torch\nnew(1);  new(2) ;\x0c\nnew  (3)\\\n\n",
        ),
    ],
)  # fmt: skip
def test_every_other_byte_stays(before: bytes, after: bytes) -> None:
    assert fix(before, RENAME).data == after


def test_nested_fixes_that_do_not_touch_need_one_round() -> None:
    result = fix("import torch\nold(old(old(1)))\n", RENAME)
    assert result.data == b"import torch\nnew(new(new(1)))\n"
    assert result.rounds == (3,)


def test_the_whole_is_mended_before_what_another_rule_says_of_a_part() -> None:
    settled = rule_for("ML102", "part", rename_to("whole"))
    settled.subscriptions.clear()

    @settled.on(cst.Call)
    def check(call: cst.Call, context: Any) -> Iterator[Finding]:
        """Find `part()` where it does not stand in `new()`."""
        around = [node for node in context.model.tree.ancestors(call) if isinstance(node, cst.Call)]
        names = [getattr(node.func, "value", None) for node in (call, *around)]
        if names[0] == "part" and "new" not in names:
            yield Finding(call, fix=lambda: fix_of(edits.replace(call.func, "other")))

    result = fix("import torch\nold(part(1))\nlate(part(2))\n", RENAME, settled)
    assert result.data == b"import torch\nnew(part(1))\nlate(other(2))\n"
    assert [(item.code, item.location.row) for item in result.applied] == [("ML101", 2), ("ML102", 3)]
    part = rule_for("ML102", "part", rename_to("other"))
    result = fix("import torch\nold(part(old(1)))\nold(2)\n", RENAME, part)
    assert result.data == b"import torch\nnew(other(new(1)))\nnew(2)\n"
    assert result.rounds == (3, 1)


def test_fixes_that_overlap_need_a_round_each() -> None:
    unwrap = rule_for(
        "ML101",
        "old",
        lambda call, context: fix_of(edits.replace(call, context.text(call.args[0].value))),
    )
    result = fix("import torch\nold(old(old(1)))\n", unwrap)
    assert result.data == b"import torch\n1\n"
    assert result.rounds == (1, 1, 1)


def test_fixes_that_touch_count_as_overlapping() -> None:
    before = rule_for("ML101", "old", lambda call, _: fix_of(edits.replace(call.func, "new")))
    inside = rule_for(
        "ML102",
        "old",
        lambda call, _: fix_of(NodeEdit(call.func, edits.Side.END, call, edits.Side.END, "(2)")),
    )
    result = fix("import torch\nold(1)\n", before, inside)
    # The second can only be done by mending the first's call, which is gone by then.
    assert result.data == b"import torch\nnew(1)\n"
    assert [item.code for item in result.applied] == ["ML101"]


def test_a_fix_may_bring_a_finding_elsewhere_which_is_mended_in_the_next_round() -> None:
    follow = Rule(
        code="ML102", message="m", help="h", frameworks=frozenset({"torch"}), since="0.1.0",
        applicability=Applicability.SAFE, module="tests.follow",
    )  # fmt: skip

    @follow.on(cst.Name)
    def check(name: cst.Name, context: Any) -> Iterator[Finding]:
        if name.value == "last" and "new" in {node.value for node in context._tree.by_type[cst.Name]}:
            yield Finding(name, fix=lambda: fix_of(edits.replace(name, "least")))

    result = fix("import torch\nlast\n\nold(1)\n", RENAME, follow)
    assert result.data == b"import torch\nleast\n\nnew(1)\n"
    assert result.rounds == (1, 1)


def test_the_same_import_is_inserted_once() -> None:
    def build(call: cst.Call, context: Any) -> NodeFix:
        name, change = need_import(context._tree, "math")
        changes = (edits.replace(call.func, f"{name}.floor"), *([change] if change else ()))
        return fix_of(*changes)

    result = fix("import torch\nold(1)\nold(2)\n", rule_for("ML101", "old", build))
    assert result.data == b"import math\nimport torch\nmath.floor(1)\nmath.floor(2)\n"
    assert result.rounds == (2,)


def test_different_imports_at_one_place_take_turns() -> None:
    def importing(module: str) -> Build:
        def build(call: cst.Call, context: Any) -> NodeFix:
            name, change = need_import(context._tree, module)
            changes = (edits.replace(call.func, f"{name}.f"), *([change] if change else ()))
            return fix_of(*changes)

        return build

    rules = (rule_for("ML101", "old", importing("math")), rule_for("ML102", "odd", importing("cmath")))
    result = fix("import torch\nold(1)\n\nodd(2)\n", *rules)
    assert result.data == b"import cmath\nimport math\nimport torch\nmath.f(1)\n\ncmath.f(2)\n"


@pytest.mark.parametrize(
    ("applicability", "unsafe", "done"),
    [
        (Applicability.SAFE, False, True),
        (Applicability.SAFE, True, True),
        (Applicability.UNSAFE, False, False),
        (Applicability.UNSAFE, True, True),
        (Applicability.DISPLAY, False, False),
        (Applicability.DISPLAY, True, False),
    ],
)
def test_only_what_is_asked_for(applicability: Applicability, unsafe: bool, done: bool) -> None:
    rule = rule_for("ML101", "old", rename_to("new", applicability), applicability)
    result = fix("import torch\nold(1)\n", rule, unsafe=unsafe)
    assert result.data == (b"import torch\nnew(1)\n" if done else b"import torch\nold(1)\n")
    # What was not asked for is still offered.
    assert [item.fix is not None for item in result.result.diagnostics] == ([] if done else [True])


def test_a_fix_that_loses_a_comment_is_unsafe() -> None:
    drop = rule_for("ML101", "old", lambda call, _: fix_of(edits.replace(call, "1")))
    text = "import torch\nold(  # why\n)\nold()\n"
    assert fixed(text, drop) == "import torch\nold(  # why\n)\n1\n"
    assert fixed(text, drop, unsafe=True) == "import torch\n1\n1\n"


@pytest.mark.parametrize(
    "line",
    ["old(1)  # noqa", "old(1)  # noqa: ML1", "# mllint: ignore[old]\nold(1)", "'''\n# flake8: noqa\n'''; old(1)"],
)
def test_suppressed_findings_are_not_touched(line: str) -> None:
    text = f"import torch\n{line}\n"
    result = fix(text, RENAME)
    assert result.data == text.encode()
    assert result.applied == ()


# --- What is taken back ---------------------------------------------------------------------------


def test_a_fix_that_breaks_the_syntax_is_taken_back_alone() -> None:
    bad = rule_for("ML102", "bad", rename_to("not ("))
    text = "import torch\nold(1)\nbad(1)\nold(2)\nbad(2)\nold(3)\n"
    result = fix(text, RENAME, bad)
    assert result.data.decode() == text.replace("old", "new")
    assert [item.code for item in result.applied] == ["ML101"] * 3
    assert [(item.code, item.fix) for item in result.result.diagnostics] == [("ML102", None)] * 2
    assert result.refused is None


def test_a_fix_after_which_the_finding_is_still_there_is_taken_back() -> None:
    idle = rule_for("ML102", "idle", lambda call, _: fix_of(edits.insert_after(call, ".x")))
    result = fix("import torch\nidle(1)\nold(1)\n", RENAME, idle)
    assert result.data == b"import torch\nidle(1)\nnew(1)\n"
    assert [(item.code, item.fix) for item in result.result.diagnostics] == [("ML102", None)]


@pytest.mark.parametrize("code", ["ML101", "ML102", "ML103"])
def test_a_fix_that_brings_a_finding_to_its_place_is_taken_back(code: str) -> None:
    there = rule_for(code, "old", rename_to("odd"))
    back = rule_for("ML102", "odd", rename_to("old"))
    text = "import torch\nx = old(1)\n"
    result = fix(text, there, back)
    assert result.data == text.encode()
    assert [(item.code, item.fix) for item in result.result.diagnostics] == [(code, None)]


def test_a_fix_that_uncovers_a_suppressed_finding_is_taken_back() -> None:
    strip = rule_for(
        "ML102", "bad", lambda call, _: fix_of(edits.replace(call, "old(2),\n1"), applicability=Applicability.UNSAFE)
    )  # fmt: skip
    text = "import torch\n[bad(old(2))]  # noqa: ML101\n"
    result = fix(text, RENAME, strip, unsafe=True)
    assert result.data == text.encode()


def test_a_fix_on_which_a_rule_fails_is_taken_back() -> None:
    fragile = Rule(
        code="ML103", message="m", help="h", frameworks=frozenset({"torch"}), since="0.1.0",
        module="tests.fragile",
    )  # fmt: skip

    @fragile.on(cst.Name)
    def check(name: cst.Name, context: Any) -> Iterator[Finding]:
        if name.value == "crash":
            raise ZeroDivisionError
        yield from ()

    crash = rule_for("ML102", "bad", rename_to("crash"))
    result = fix("import torch\nbad(1)\nold(1)\n", RENAME, crash, fragile)
    assert result.data == b"import torch\nbad(1)\nnew(1)\n"
    assert result.result.status is Status.OK


def test_a_rule_that_fails_anyway_stops_no_fix() -> None:
    failing = Rule(
        code="ML103", message="m", help="h", frameworks=frozenset({"torch"}), since="0.1.0",
        module="tests.failing",
    )  # fmt: skip

    @failing.on(cst.Import)
    def check(name: cst.Import, context: Any) -> Iterator[Finding]:
        raise ZeroDivisionError

    result = fix("import torch\nold(1)\n", RENAME, failing)
    assert result.data == b"import torch\nnew(1)\n"
    assert result.result.status is Status.INTERNAL_ERROR


def test_edits_of_one_fix_that_overlap_are_not_applied() -> None:
    muddled = rule_for(
        "ML102", "bad", lambda call, _: fix_of(edits.replace(call, "1"), edits.replace(call.func, "f"))
    )  # fmt: skip
    result = fix("import torch\nbad(1)\nold(1)\n", RENAME, muddled)
    assert result.data == b"import torch\nbad(1)\nnew(1)\n"


def test_what_overlapped_with_a_bad_fix_gets_its_turn() -> None:
    bad = rule_for("ML101", "bad", rename_to("not ("))
    good = rule_for("ML102", "bad", lambda call, _: fix_of(edits.replace(call, "1")))
    result = fix("import torch\nbad(1)\n", bad, good)
    # The good fix takes the bad one's finding away as well.
    assert result.data == b"import torch\n1\n"
    assert [item.code for item in result.applied] == ["ML102"]


def test_the_parse_is_checked_even_where_no_rule_looks_any_more() -> None:
    """Without the framework's name in the text the gate stays shut."""
    strip = rule_for("ML101", "torch", rename_to("not ("))
    assert fixed("torch(1)\n", strip) == "torch(1)\n"
    assert fixed("torch(1)\n", rule_for("ML101", "torch", rename_to("f"))) == "f(1)\n"


def test_one_bad_fix_among_many_costs_few_lints(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = rule_for("ML102", "bad", rename_to("not ("))
    lines = ["old(1)"] * 63
    lines.insert(40, "bad(1)")
    text = "import torch\n" + "\n".join(lines) + "\n"
    lints = 0
    lint = engine.lint

    def counted(*arguments: Any, **options: Any) -> Result:
        nonlocal lints
        lints += 1
        return lint(*arguments, **options)

    monkeypatch.setattr(engine, "lint", counted)
    result = fixer.fix(text.encode(), "train.py", RuleSet([RENAME, bad]))
    assert result.data.decode() == text.replace("old", "new")
    assert lints <= 2 + 2 * 7


def test_fixes_that_never_end_stop_after_the_last_round() -> None:
    """Each fix moves the finding to a place of its own, one line down."""
    run = Rule(
        code="ML101", message="m", help="h", frameworks=frozenset({"torch"}), since="0.1.0",
        applicability=Applicability.SAFE, module="tests.run",
    )  # fmt: skip

    @run.on(cst.SimpleStatementLine)
    def check(line: cst.SimpleStatementLine, context: Any) -> Iterator[Finding]:
        body = context._tree.module.body
        if line is body[context._tree.module.code.count("pass")]:
            yield Finding(line, fix=lambda: fix_of(edits.insert_before(body[-1], "pass\n")))

    text = "import torch\n" + "x = 1\n" * 40
    result = fixer.fix(text.encode(), "train.py", RuleSet([run]))
    assert len(result.rounds) == fixer.MAX_ROUNDS
    ast.parse(result.data)


# --- What is refused ------------------------------------------------------------------------------


def test_text_that_the_encoding_cannot_hold_is_refused() -> None:
    rule = rule_for("ML101", "old", rename_to("λ"))
    text = b"# coding: latin-1\nimport torch\nold('\xe9')\n"
    result = fix(text, rule)
    assert result.data == text
    assert result.refused == "latin-1 has no character `λ`, which a fix would insert"
    assert [item.fix for item in result.result.diagnostics] == [None]


def test_text_that_does_not_come_back_as_its_bytes_is_refused() -> None:
    # UTF-7 can write the same text in several ways.
    text = b"# coding: utf-7\nimport torch\nold('+AGE-')\n"
    result = fix(text, RENAME)
    assert result.data == text
    assert result.refused is not None
    assert "utf-7" in result.refused
    assert [item.code for item in result.result.diagnostics] == ["ML101"]


@pytest.mark.parametrize("data", [b"torch old(\n", b"torch\0", b"torch \xff\xfe", b""])
def test_what_cannot_be_read_is_left_alone(data: bytes) -> None:
    assert fix(data, RENAME).data is data


@given(st.binary(max_size=80).map(lambda noise: b"import torch\nold(1)\n" + noise))
def test_never_raises(data: bytes) -> None:
    assert isinstance(fixer.fix(data, "train.py", RuleSet([RENAME])), fixer.FixResult)


# --- Any mixture of fixes -------------------------------------------------------------------------

WRAP = rule_for("ML102", "bare", lambda call, _: fix_of(*edits.wrap(call, "f(", ")")))
DROP = rule_for("ML103", "drop", lambda call, _: fix_of(edits.replace(call, "1")))
BROKEN = rule_for("ML104", "broken", rename_to("not ("))
LOOP = rule_for("ML105", "loop", rename_to("pool"))
POOL = rule_for("ML106", "pool", rename_to("loop"))
IMPORTING = rule_for(
    "ML107",
    "floor",
    lambda call, context: fix_of(
        edits.replace(call.func, "math.floor"),
        *filter(None, [need_import(context._tree, "math")[1]]),
    ),
)
ALL = (RENAME, WRAP, DROP, BROKEN, LOOP, POOL, IMPORTING)

CALLS = st.recursive(
    st.sampled_from(["1", "x", "'é'"]),
    lambda inner: st.builds(
        "{}({})".format,
        st.sampled_from(["old", "bare", "drop", "broken", "loop", "pool", "floor", "keep"]),
        inner | st.builds("{},\r\n  {}".format, inner, inner) | st.builds("# c\n{}".format, inner),
    ),
    max_leaves=6,
)
FILES = st.builds(
    "{}import torch{}{}".format,
    st.sampled_from(["", "# -*- coding: utf-8 -*-\n", '"""Doc."""\n']),
    st.sampled_from(["\n", "\r\n"]),
    st.lists(
        st.builds(
            "{}{}{}".format,
            CALLS,
            st.sampled_from(["", "  # noqa", "  # c", "  # mllint: ignore[ML1]", ";"]),
            st.sampled_from(["\n", "\r\n", "\n\n"]),
        ),
        max_size=5,
    ).map("".join),
)


RULES = st.lists(st.sampled_from(ALL), min_size=1, unique_by=lambda rule: rule.code)


@given(FILES, RULES, st.booleans())
def test_any_choice_of_fixes_leaves_valid_code_and_other_bytes(text: str, rules: list[Rule], unsafe: bool) -> None:
    ast.parse(text)
    result = fix(text, *rules, unsafe=unsafe)
    ast.parse(result.data)
    # What was reported as applied, and nothing else, leads from the old bytes to the new.
    applied = iter(result.applied)
    replayed = text
    for size in result.rounds:
        batch = [next(applied) for _ in range(size)]
        changes = {edit for item in batch if item.fix for edit in item.fix.edits}
        for edit in sorted(changes, key=lambda edit: (edit.start, edit.end), reverse=True):
            replayed = replayed[: edit.start] + edit.content + replayed[edit.end :]
    assert replayed.encode() == result.data
    suppressed = engine.lint(text.encode(), "train.py", RuleSet(rules)).suppressed
    assert not set(suppressed) & set(result.applied)


def test_a_failed_attempt_is_not_what_other_files_of_the_project_see(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    path = tmp_path / "models.py"
    text = b"import torch\nold(1)\nloop(2)\n"
    path.write_bytes(text)
    project = Project(tmp_path)
    result = fixer.fix(text, str(path), RuleSet([RENAME, LOOP, POOL]), project=project)
    assert result.data == b"import torch\nnew(1)\nloop(2)\n"
    assert project.recall(Source.from_bytes(result.data, str(path))) is not None


def test_a_row_behind_a_loop_leaves_the_blanks_of_the_last_row_where_they_are() -> None:
    text = """import torch
from torch import nn


def fit(loader, val_loader):
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        net.train()
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            for x, y in val_loader:
                print(net(x))!
"""
    text = text.replace("!", "  ")
    fixed = fix_source(text, "train.py", Settings(select=("ML310",)), unsafe=True).data.decode()
    assert fixed.splitlines()[-2:] == ["                print(net(x))  ", "            net.train()"]
