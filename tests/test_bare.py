"""Nodes without whitespace: the same to the walk, the model and the rules as those of the full parser."""

import ast
import random
import sysconfig
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from harness.cases import all_cases
from harness.thinning import thinned
from mllint import engine
from mllint.registry import select
from mllint.syntax.bare import NotBareError, bare_tree
from mllint.syntax.parse import parse
from mllint.syntax.shape import fingerprint
from mllint.syntax.source import Source
from mllint.syntax.walk import Tree, children, subtree

# Of these the two parsers make different numbers: adjacent strings are one, `else: if` is `elif`, a body on one line
# or behind a semicolon looks like every other, and a bare `*` among parameters leaves no trace.
_MERGED = {"SimpleString", "ConcatenatedString", "FormattedString", "FormattedStringText", "Else", "IndentedBlock"}
_MERGED |= {"FormattedStringExpression", "SimpleStatementSuite", "SimpleStatementLine", "ParamStar"}


def shape_of(tree: Tree) -> dict[str, int]:
    """How many nodes of each type a tree has."""
    counts = {kind.__name__: len(nodes) for kind, nodes in tree.by_type.items()}
    return {name: count for name, count in counts.items() if name not in _MERGED}


def standard_library(count: int) -> list[Path]:
    """Files of the standard library, always the same ones."""
    folder = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for path in folder.glob("*.py") if path.stat().st_size < 60_000)
    return random.Random(0).sample(files, count)


@pytest.mark.parametrize("path", standard_library(25), ids=lambda path: path.stem)
def test_both_parsers_make_the_same_nodes(path: Path) -> None:
    text = path.read_text("utf-8")
    if any(isinstance(node, ast.Match) for node in ast.walk(ast.parse(text))):
        with pytest.raises(NotBareError):
            bare_tree(text)  # left to the full parser
        return
    bare = bare_tree(text)
    assert sum(map(len, bare.by_type.values())) > 20
    assert shape_of(bare) == shape_of(Tree(parse(Source(text, path.name))))


def test_calls_are_found_wherever_they_stand() -> None:
    tree = bare_tree(ONE_OF_EACH)
    for node in subtree(tree.module):
        calls = [item for item in subtree(node) if isinstance(item, cst.Call)]
        assert list(map(id, tree.calls_in(node))) == list(map(id, calls))
        assert tree.holds_call(node) == bool(calls)


def test_types_and_parents_are_those_that_the_walk_finds() -> None:
    texts = [path.read_text("utf-8") for path in standard_library(25)]
    for text in (ONE_OF_EACH, *(text for text in texts if "match " not in text)):
        bare = bare_tree(text)
        walked = Tree(bare.module)
        assert {kind: list(map(id, nodes)) for kind, nodes in bare.by_type.items()} == {
            kind: list(map(id, nodes)) for kind, nodes in walked.by_type.items()
        }
        assert {key: id(parent) for key, parent in bare.parents.items() if parent} == {
            key: id(parent) for key, parent in walked.parents.items()
        }


ONE_OF_EACH = """
import a.b as c, d
from . import e
from ..f import g as h, i
from j import *
k: int = 1
l = m = n, *o = [p, *q]
r += -s ** (not t)
u = v if w else x
y = lambda z, /, aa=1, *ab, ac, ad=2, **ae: af
ag = {ah: ai, **aj}
ak = {al for am in an if ao if ap for aq in ar}
at = {au: av async for au in aw} if 0 else {1, 2}
ax = (ay for az in ba)
bb = bc[bd, be:bf:bg, ...]
bb = bc[(bd, be)], bc[(bd), be], bc[bd, (be)], bc[(bd, be),], bc[bd, be,], bc[()], bc[
    (bd, be)
]
bh = f"x{{{bi!r:>{bj}}}}" "y" f"{bk}"
bl = 1.5e3 + 2j + 0xFF + b"z".bm(*bn, bo=bp, **bq)
assert br < bs <= bt is not bu not in bv, bw
del bx, by
del bz
if ca := cb:
    pass
elif cc and cd or ce:
    raise cf from cg
else:
    raise
for ch, (ci, cj) in ck:
    continue
else:
    print()
while True:
    break
with cl as cm, cn:
    pass
try:
    pass
except (co, cp) as cq:
    pass
except cr:
    pass
else:
    pass
finally:
    pass
@cs
@ct.cu(1)
class cv(cw, metaclass=cx, **cy):
    @property
    async def cz(self, da: db = dc, *dd: de) -> df:
        global dg, dh
        nonlocal_ = await di
        async with dj as dk:
            async for dl in dm:
                yield dl
        yield
        return
def dn(*, do):
    def dp():
        nonlocal do
        yield from dq
    return dr
"""


def test_every_kind_of_node_comes_out_alike() -> None:
    bare, full = bare_tree(ONE_OF_EACH), Tree(cst.parse_module(ONE_OF_EACH))
    assert shape_of(bare) == shape_of(full)
    for kind in (cst.Assign, cst.Expr, cst.Param, cst.For, cst.With, cst.ClassDef, cst.Subscript, cst.Comparison):
        seen = [[fingerprint(node) for node in tree.by_type[kind]] for tree in (bare, full)]
        if kind is not cst.Assign:
            assert seen[0] == seen[1], kind
    for node_type, nodes in full.by_type.items():
        if node_type.__name__ in _MERGED:
            continue
        for ours, theirs in zip(bare.by_type[node_type], nodes, strict=True):
            assert [type(child) for child in children(ours)] == [type(child) for child in children(theirs)] or any(
                type(child).__name__ in _MERGED for child in (*children(ours), *children(theirs))
            )


@pytest.mark.parametrize("case", thinned(all_cases(), every=24))
def test_what_the_full_tree_shows_the_bare_one_shows_too(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = select(["ML"], [])

    def findings() -> list[tuple[object, ...]]:
        project = case.project()
        return [item.sort_key for item in engine.lint(case.data, str(case.path), rules, project=project).diagnostics]

    with_the_bare_tree = findings()
    monkeypatch.setattr(engine, "_rules_that_find", lambda _source, _model, rules, _targets: rules)
    assert with_the_bare_tree == findings()


@pytest.mark.parametrize(
    "text",
    ["x = (\n", "print 0755\n", "x = " + "(" * 300 + ")" * 300, "match x:\n    case 1:\n        pass\n", "\0"],
    ids=["unclosed", "python2", "nested", "match", "nul"],
)
def test_what_cannot_be_read_this_way_is_said_so(text: str) -> None:
    with pytest.raises(NotBareError):
        bare_tree(text)


def test_a_tree_that_is_there_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = ast.parse("import torch\n")
    monkeypatch.setattr(ast, "parse", lambda *_: pytest.fail("parsed again"))
    assert len(bare_tree("import torch\n", tree).module.body) == 1
