"""Which bindings reach a place: passing by statements that bind nothing of a name changes no answer."""

import textwrap

import libcst as cst
from hypothesis import given, settings
from hypothesis import strategies as st

from mllint.semantic.model import Model
from mllint.semantic.names.scopes import Reaching, Scope
from mllint.syntax.bare import bare_tree
from mllint.syntax.source import Source

NAMES = ("x", "y", "self.z", "self")
_SIMPLE = st.sampled_from(
    [*(f"{name} = g({name})" for name in NAMES), "g(x, y, self.z)", "return x", "raise y", "break", "continue", "pass"]
)


def _indented(body: str) -> str:
    return textwrap.indent(body, "    ")


def _compound(bodies: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    forms = (
        "if x:\n{0}\nelif y:\n{1}\nelse:\n{2}",
        "if isinstance(x, int):\n{0}",
        "for x in y:\n{0}\nelse:\n{1}",
        "for y in self.z:\n{0}",
        "while x:\n{0}\nelse:\n{1}",
        "while True:\n{0}",
        "try:\n{0}\nexcept ValueError as y:\n{1}\nelse:\n{2}",
        "try:\n{0}\nfinally:\n{1}",
        "try:\n{0}\nexcept ValueError:\n{1}\nfinally:\n{2}",
        "with g(x) as y:\n{0}",
    )
    parts = st.tuples(bodies, bodies, bodies)
    return st.tuples(st.sampled_from(forms), parts).map(lambda made: made[0].format(*map(_indented, made[1])))


_BODIES = st.recursive(
    _SIMPLE, lambda inner: st.lists(st.one_of(_SIMPLE, _compound(inner)), min_size=1, max_size=4).map("\n".join)
)


def _without_shortcuts(scope: Scope) -> None:
    for block in scope.blocks:
        block.around = None


def _answers(text: str, *, shortcuts: bool) -> list[Reaching]:
    tree = bare_tree(text)
    model = Model(tree, Source(text, "example.py"))
    scope = model.scope(tree.by_type[cst.FunctionDef][0])
    if not shortcuts:
        _without_shortcuts(scope)
    statements = [node for kind in (cst.Expr, cst.Assign, cst.Return, cst.If, cst.For) for node in tree.by_type[kind]]
    found = [scope.reaching(key, node) for node in statements for key in NAMES]
    return found + [scope.reaching_end(key) for key in NAMES]


def _seen(found: list[Reaching]) -> list[tuple[list[int], bool]]:
    return [([binding.order for binding in item.bindings], item.may_be_unbound) for item in found]


@given(_BODIES)
@settings(max_examples=150, deadline=None)
def test_shortcuts_change_no_answer(body: str) -> None:
    # `break` and `continue` stand in a loop, whatever is drawn.
    text = f"def f(x, self):\n    while g():\n{_indented(_indented(body))}\n    g(x, y, self.z)\n"
    assert _seen(_answers(text, shortcuts=True)) == _seen(_answers(text, shortcuts=False))


def test_shortcuts_are_taken() -> None:
    text = "def f(x):\n    x = g(x)\n    if x:\n        y = 1\n    for z in x:\n        y = z\n    return x\n"
    tree = bare_tree(text)
    scope = Model(tree, Source(text, "example.py")).scope(tree.by_type[cst.FunctionDef][0])
    assert sum(block.around is not None for block in scope.blocks) == 2
