"""What a loop runs over, behind the functions that hand on what they are given."""

import libcst as cst
import pytest

from mllint.syntax.iteration import handed_on, run_over, sources


def _text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


@pytest.mark.parametrize(
    ("iterable", "expected"),
    [
        ("xs", [("xs", ())]),
        ("enumerate(xs)", [("xs", (1,))]),
        ("enumerate(tqdm(zip(xs, ys)))", [("xs", (1, 0)), ("ys", (1, 1))]),
        ("zip(a, enumerate(b))", [("a", (0,)), ("b", (1, 1))]),
        ("tqdm.auto.tqdm(desc='train', iterable=loader)", [("loader", ())]),
        ("itertools.chain(a.parameters(), b.parameters())", [("a.parameters()", ()), ("b.parameters()", ())]),
        ("filter(None, list(xs))", [("xs", ())]),
        # Not known to hand anything on: a method of some object, what a star gives, what changes the elements.
        ("frame.filter(a, b)", [("frame.filter(a, b)", ())]),
        ("loader.iter(xs)", [("loader.iter(xs)", ())]),
        ("zip(*pairs)", [("zip(*pairs)", ())]),
        ("list(*pairs)", [("list(*pairs)", ())]),
        ("map(f, xs)", [("map(f, xs)", ())]),
        ("enumerate()", [("enumerate()", ())]),
    ],
)
def test_sources(iterable: str, expected: list[tuple[str, tuple[int, ...]]]) -> None:
    found = [(_text(node), path) for node, path in sources(cst.parse_expression(iterable))]
    assert found == expected


@pytest.mark.parametrize(
    ("iterable", "expected"),
    [
        ("xs", "xs"),
        ("enumerate(tqdm(list(xs.items())), 1)", "xs.items()"),
        ("enumerate(zip(xs, ys))", "zip(xs, ys)"),
        ("zip(xs)", "xs"),
    ],
)
def test_the_one_thing_that_is_run_over(iterable: str, expected: str) -> None:
    assert _text(run_over(cst.parse_expression(iterable))) == expected


@pytest.mark.parametrize(
    ("source", "argument", "expected"),
    [
        ("zip(a, b)", 1, (1,)),
        ("enumerate(a, 1)", 0, (1,)),
        ("enumerate(a, 1)", 1, None),
        ("sorted(a)", 0, ()),
        ("len(a)", 0, None),
    ],
)
def test_what_a_call_hands_on(source: str, argument: int, expected: tuple[int, ...] | None) -> None:
    call = cst.ensure_type(cst.parse_expression(source), cst.Call)
    assert handed_on(call, call.args[argument]) == expected
