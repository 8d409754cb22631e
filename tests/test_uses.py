"""Where a binding is read again, and where the truth of an expression is asked for."""

import libcst as cst
import pytest

from mllint.semantic.expressions.truth import compared_to_bool, is_tested
from mllint.semantic.model import Model
from mllint.semantic.names.in_use import is_named
from mllint.semantic.names.uses import bound_by, reads, uses
from mllint.syntax.parse import parse
from mllint.syntax.source import Source
from mllint.syntax.spans import spans_of
from mllint.syntax.walk import Tree

BINDINGS = """\
flag = 1  # bind
print(flag)  # use
flag = 2
print(flag)


def outer():
    def inner():
        return flag
    flag = 3
    return inner, flag


def reader(other=flag):
    return other(flag=1)


class Holder:
    flag = 4

    def __init__(self):
        self.state = 5  # bind
        self.state.x = 1  # use

    def method(self):
        if isinstance(self.state, int):  # use
            return self.state  # use
        return flag  # use

    def other(this):
        return this.state, self.state


class Unrelated:
    def method(self):
        return self.state


def rebinds(value):
    value = 6  # bind
    if isinstance(value, int):  # use
        del value.x  # use
        return value  # use
    global flag
    flag = 7
    return [value for _ in value]  # use
"""


def _model(text: str) -> Model:
    source = Source.from_bytes(text.encode(), "file.py")
    return Model(Tree(parse(source)), source)


def _row(model: Model, node: cst.CSTNode) -> int:
    start, _ = spans_of(model.tree.module, [node], model.source.text)[id(node)]
    return model.source.text.count("\n", 0, start) + 1


def test_uses_are_the_reads_that_see_the_binding() -> None:
    model = _model(BINDINGS)
    rows = dict(enumerate(BINDINGS.splitlines(), 1))
    assigned = [node for node in model.tree.by_type[cst.Assign] if "# bind" in rows[_row(model, node)]]
    made = [binding for node in assigned for binding in bound_by(model, node)]
    assert [binding.key for binding in made] == ["flag", "self.state", "value"]
    found = [_row(model, node) for binding in made for node in uses(model, binding)]
    assert sorted(set(found)) == [number for number, row in rows.items() if "# use" in row]


def test_reads_are_neither_targets_nor_keywords() -> None:
    model = _model("import x\nx = 1\nf(x=2)\ndel x\nx += 1\nfor x in x: pass\ndef g(x): return x\ny.x, x.y\n")
    parents = [type(model.tree.parent(node)).__name__ for node in reads(model, "x")]
    assert parents == ["AugAssign", "For", "Return", "Attribute"]


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        *[("if it: pass", True), ("while it: pass", True), ("assert it, 'no'", True), ("assert other, it", False)],
        *[("x = 1 if it else 2", True), ("x = it if a else 2", False), ("if (it if a else b): pass", True)],
        *[("x = not it", True), ("x = -it", False), ("x = it and a", True), ("x = a and it", False)],
        *[("x = a or it", False), ("if a or it: pass", True), ("if a and (b or not it): pass", True)],
        *[("x = [a for a in b if it]", True), ("x = [it for a in b]", False), ("if (a := it): pass", True)],
        *[("x = bool(it)", True), ("x = str(it)", False), ("if f(it): pass", False), ("if it.a: pass", False)],
        ("match a:\n    case 1 if it: pass", True),
    ],
)
def test_truth_is_asked_for(text: str, asked: bool) -> None:
    model = _model(text + "\n")
    node = next(name for name in model.tree.by_type[cst.Name] if name.value == "it")
    assert is_tested(model, node) is asked


@pytest.mark.parametrize(
    ("text", "compared"),
    [
        *[("it is True", True), ("False == it", True), ("it != False", True), ("it is not True", True)],
        *[("it is None", False), ("it == other", False), ("it > True", False), ("it == True == a", False)],
        ("it", False),
    ],
)
def test_comparison_with_a_bool(text: str, compared: bool) -> None:
    model = _model(text + "\n")
    node = next(name for name in model.tree.by_type[cst.Name] if name.value == "it")
    assert (compared_to_bool(model, node) is not None) is compared


def test_tests_in_a_loop_hold_before_themselves() -> None:
    model = _model(
        "x = f()\nfor i in y:\n    if isinstance(x, A):\n        x.a()\n    if isinstance(x, B):\n        x.b()\n"
    )
    (assigned,) = model.tree.by_type[cst.Assign]
    (binding,) = bound_by(model, assigned)
    assert len(list(uses(model, binding))) == 4


NAMED = """\
from files import save as write


def save(path):
    helper(save=path)


def helper(**given):
    return given


def used():
    helper()


class Keeper:
    def load(self):
        return load


used()
"""


@pytest.mark.parametrize(("name", "expected"), [("save", False), ("used", True), ("helper", True), ("load", False)])
def test_functions_that_are_named(name: str, expected: bool) -> None:
    """An import under another name, a keyword and, of a method, a plain name say nothing of a function."""
    assert is_named(*_function(NAMED, name)) is expected


def test_functions_that_name_each_other_are_asked_for_once_each() -> None:
    """As many ways lead through forty functions that all name each other as nobody lives to count."""
    names = [f"f{number}" for number in range(40)]
    text = "".join(f"def {name}():\n    return {', '.join(names)}\n\n\n" for name in names)
    assert not is_named(*_function(text, "f0"))
    assert is_named(*_function(text + "f39()\n", "f0"))


def _function(text: str, name: str) -> tuple[Model, cst.FunctionDef]:
    model = _model(text)
    found = [node for node in model.tree.by_type[cst.FunctionDef] if node.name.value == name]
    return model, found[0]
