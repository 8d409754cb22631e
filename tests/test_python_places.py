"""Places as Python's syntax tree tells them: those of the full tree, or none."""

import ast
from collections import Counter
from pathlib import Path

import libcst as cst
import pytest

from harness.cases import all_cases
from mllint import engine
from mllint.context import Context, Targets
from mllint.diagnostics import Diagnostic
from mllint.registry import all_rules, select
from mllint.semantic.model import Model
from mllint.syntax.bare import bare_tree
from mllint.syntax.parse import parse
from mllint.syntax.python_places import FullTreeNeededError, PythonPlaces
from mllint.syntax.source import Source
from mllint.syntax.spans import spans_of
from mllint.syntax.walk import Tree

SOURCE = """
import torch

héé = "é", (torch . load) ("ö"), ((torch.load)(x)), f((x)), f(x), f(x, (y)), (-x).y, (x + y).z[(0)]
@decorated
def first(): pass
async def second(a, b=(1, 2)):
    if a: return (yield)
    elif (b): raise ValueError from None
    else:
        with a as b, (c): x = y = (z)
    for i in (j): k += (l)
    (await a)
    ((a)).b(c)
    [(x) for (x) in y if x]; a and b and (c or d)
class Third (torch.nn . Module): x: int = (1)
def f  (): (x)  # comment
assert x < y < (z), (f"{x!r:>{width}}" "y")
"""
TEXTS = [SOURCE, SOURCE.replace("\n", "\r\n"), *(Path(module.__file__ or "").read_text("utf-8") for module in (ast,))]


@pytest.mark.parametrize("text", TEXTS, ids=["made up", "with CRLF", "ast"])
def test_places_are_those_of_the_full_tree(text: str) -> None:
    source = Source(text, "example.py")
    bare, full = bare_tree(text), Tree(parse(source))
    places = PythonPlaces(source, bare, ast.parse(text))
    spans = spans_of(full.module, [node for nodes in full.by_type.values() for node in nodes], text)
    told: Counter[str] = Counter()
    # Of some types the two parsers make different numbers of nodes.
    comparable = [kind for kind, nodes in bare.by_type.items() if len(nodes) == full.count(kind)]
    for kind in comparable:
        for node, whole in zip(bare.by_type[kind], full.by_type[kind], strict=True):
            try:
                assert places.span(node)[0] == spans[id(whole)][0], cst.Module([]).code_for_node(whole)
                told[kind.__name__] += 1
                assert places.text(node) == full.module.code_for_node(whole)
                told["text"] += 1
            except FullTreeNeededError:
                continue
    assert min(told[name] for name in ("Name", "Call", "Assign", "FunctionDef", "ClassDef", "If", "text")) > 0


COMMENTED = """
import os
# first
import torch  # second

# apart

# above
#: too
x = f(  # inside
    1,
)  # behind
if x:
    # of the block
    y = "#"
    # at its end
# of the next
z = y
a = z; b = a  # several
if b: c = b  # short
d = \"\"\"
# text\"\"\"
"""


@pytest.mark.parametrize("text", [COMMENTED, COMMENTED.replace("\n", "\r\n")], ids=["LF", "CRLF"])
def test_comments_are_those_of_the_full_tree(text: str) -> None:
    source = Source(text, "example.py")
    bare, full = bare_tree(text), Tree(parse(source))
    placed = Context(source, bare, Model(bare, source), Targets(), PythonPlaces(source, bare, ast.parse(text)))
    whole = Context(source, full, Model(full, source), Targets())
    told = []
    for kind in (cst.Import, cst.Assign):
        for node, same in zip(bare.by_type[kind], full.by_type[kind], strict=True):
            try:
                assert placed.comments(node) == whole.comments(same)
                told.append(len(placed.comments(node)))
            except FullTreeNeededError:
                continue
    assert told == [0, 2, 3, 1, 1, 0]


def _seen(diagnostics: tuple[Diagnostic, ...]) -> list[tuple[object, ...]]:
    return [(found.code, found.message, found.location) for found in diagnostics]


_PARTS = 8


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.thorough) for part in range(1, _PARTS))])
def test_findings_are_those_of_the_full_tree(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    rules, parsed = select([rule.code for rule in all_rules()], []), []
    cases = [case for case in all_cases() if case.root == case.path.parent][part::_PARTS]
    parse_in_full = engine.parse
    monkeypatch.setattr(engine, "parse", lambda source: parsed.append(source.path) or parse_in_full(source))
    for case in cases:
        with_tree = engine.lint(case.data, str(case.path), rules, python_tree=_tree(case.data))
        count = len(parsed)
        assert _seen(with_tree.diagnostics) == _seen(engine.lint(case.data, str(case.path), rules).diagnostics)
        del parsed[count:]
    assert len(parsed) < len(cases) / 2, "too much is parsed in full"


def _tree(data: bytes) -> ast.Module | None:
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError):
        return None
