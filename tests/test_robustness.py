"""Whatever the input: nothing is raised, no rule fails, places exist, and fixes leave the rest alone."""

import ast
import random
import warnings
from collections.abc import Callable

import hypothesmith
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from harness.cases import all_cases
from mllint.diagnostics import Result, Status
from mllint.engine import lint
from mllint.fixer import fix
from mllint.registry import RuleSet, all_rules
from mllint.syntax.source import DecodingError, Source

EVERYTHING = RuleSet(all_rules())
# What opens the gate of every rule and binds the names that generated code has a chance to use.
HEADER = "import torch, paddle, numpy as np\nfrom torch import nn\n"
WORDS = " ".join(sorted({w for rule in all_rules() for s in rule.subscriptions for w in s.mentions}))
FIXTURES = [Source.from_bytes(case.data, case.id).text for case in all_cases()]


def check(data: bytes) -> Result:
    """Lint and fix bytes with every rule; the result after all that must hold was seen to hold."""
    result = lint(data, "any.py", EVERYTHING)
    assert [found.message for found in result.diagnostics if found.code == "ML000"] == []
    check_places(data, result)
    for unsafe in (False, True):
        fixed = fix(data, "any.py", EVERYTHING, unsafe=unsafe)
        fixable = [
            found for found in result.diagnostics if found.fix is not None and found.fix.applicability.allows(unsafe)
        ]
        if not fixable:
            assert fixed.data == data
        if fixed.data != data:
            assert parses(fixed.data) or not parses(data)
            again = fix(fixed.data, "any.py", EVERYTHING, unsafe=unsafe)
            assert again.data == fixed.data, "a second run changes the file again"
    return result


def check_places(data: bytes, result: Result) -> None:
    """Every finding and every edit stands where the file has text."""
    try:
        source = Source.from_bytes(data, "any.py")
    except DecodingError:
        assert [found.code for found in result.diagnostics] in ([], ["ML001"])
        return
    for found in result.diagnostics + result.suppressed:
        assert 1 <= found.location.row <= source.rows
        assert found.location.column >= 1
        assert found.location <= found.end_location
        for edit in found.fix.edits if found.fix else ():
            assert 0 <= edit.start <= edit.end <= len(source.text)


def parses(data: bytes) -> bool:
    """Whether Python itself reads the bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


# -- any bytes ------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
@example(b"\xff\xfeimport torch")
@example(b"\0")
@example(b"# coding: latin-1\nimport torch\nx = '\xe9'\n")
@example(b"# coding: no-such-encoding\nimport torch\n")
@example(b"\x0c")
@example(b"\r")
@example(b"\t\n x")
@example(b"if True:\n\tx\n        y\n")
def test_any_bytes(tail: bytes) -> None:
    check(tail)
    check(HEADER.encode() + tail)


@settings(max_examples=100)
@given(st.text(max_size=120))
def test_any_text(tail: str) -> None:
    check((HEADER + tail).encode("utf-8", "surrogatepass"))


# -- any program ----------------------------------------------------------------------------------


@settings(max_examples=30)
@given(hypothesmith.from_node())
def test_any_program(program: str) -> None:
    assume(parses(program.encode()))
    data = (HEADER + f"# {WORDS}\n" + program).encode("utf-8", "surrogatepass")
    assume(parses(data))
    result = check(data)
    assert result.status is Status.OK
    if not result.diagnostics:
        fixed = fix(data, "any.py", EVERYTHING, unsafe=True)
        assert ast.dump(ast.parse(fixed.data)) == ast.dump(ast.parse(data))


# -- programs that were nearly right --------------------------------------------------------------


def without_a_row(rows: list[str], chance: random.Random) -> None:
    """One row is lost."""
    del rows[chance.randrange(len(rows))]


def with_rows_swapped(rows: list[str], chance: random.Random) -> None:
    """Two rows change places."""
    first, second = chance.randrange(len(rows)), chance.randrange(len(rows))
    rows[first], rows[second] = rows[second], rows[first]


def with_a_row_twice(rows: list[str], chance: random.Random) -> None:
    """A row is written again somewhere else."""
    rows.insert(chance.randrange(len(rows)), chance.choice(rows))


def without_a_token(rows: list[str], chance: random.Random) -> None:
    """Something between two blanks, dots or brackets is lost."""
    at = chance.randrange(len(rows))
    cuts = [i for i, letter in enumerate(rows[at]) if letter in " .,()[]=:"] or [0]
    start = chance.choice(cuts)
    rows[at] = rows[at][:start] + rows[at][start + chance.randrange(1, 9) :]


def cut_short(rows: list[str], chance: random.Random) -> None:
    """The end is missing: somebody is still typing."""
    at = chance.randrange(len(rows))
    del rows[at + 1 :]
    rows[at] = rows[at][: chance.randrange(len(rows[at]) + 1)]


def nested(rows: list[str], chance: random.Random) -> None:
    """Everything from a row on moves into a block."""
    opening = chance.choice(["if x:", "for x in y:", "with x:", "try:", "def f(self):", "class C:", "while x:"])
    at = chance.randrange(len(rows))
    rows[at:] = [opening, *("    " + row for row in rows[at:])]
    if opening == "try:":
        rows += ["finally:", "    pass"]


def joined(rows: list[str], chance: random.Random) -> None:
    """Another fixture follows in the same file."""
    rows += chance.choice(FIXTURES).split("\n")


MUTATIONS: list[Callable[[list[str], random.Random], None]] = [
    without_a_row,
    with_rows_swapped,
    with_a_row_twice,
    without_a_token,
    cut_short,
    nested,
    joined,
]


@pytest.mark.parametrize(
    "mutation",
    # What two fixtures are together takes more time than everything else.
    [pytest.param(item, id=item.__name__, marks=pytest.mark.slow if item is joined else []) for item in MUTATIONS],
)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_nearly_right_programs(mutation: Callable[[list[str], random.Random], None], seed: int) -> None:
    chance = random.Random(seed)
    rows = chance.choice(FIXTURES).split("\n")
    for _ in range(chance.randrange(1, 4)):
        mutation(rows, chance)
    check("\n".join(rows).encode())
