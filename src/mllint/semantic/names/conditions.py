"""The conditions on which a place of a function is reached, and what they say of a thing where they hold."""

from collections.abc import Callable, Iterator
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Literal, NamedTuple

import libcst as cst

from mllint.syntax.comparison import comparands
from mllint.syntax.shape import constant, dotted_path, fingerprint, last_statement, leaves_loop, runs_once

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.scopes import Scope

MAYBE = frozenset({
    cst.If, cst.For, cst.While, cst.Try, cst.IfExp, cst.BooleanOperation, cst.CompFor, cst.Match, cst.FunctionDef,
    cst.ClassDef, cst.Lambda, cst.ListComp, cst.GeneratorExp, cst.DictComp, cst.SetComp,
})  # fmt: skip
"""What may run what is in it not at all, many times, or at another time."""

_ORDERS: dict[type[cst.BaseCompOp], Callable[[float, float], bool]] = {
    cst.LessThan: lt, cst.LessThanEqual: le, cst.GreaterThan: gt, cst.GreaterThanEqual: ge,
}  # fmt: skip
_OF_SEVERAL = frozenset({cst.UnaryOperation, cst.BooleanOperation, cst.Comparison})


def conditions(model: "Model", node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """What is tested before a place is reached, in its function or module, from the inside out.

    The tests of the ``if`` and ``while`` around it and of those in front of it that leave the block
    (``if not self.training: return x``), and the left side of the ``and`` or ``or`` in which it stands on the right.
    """
    return (test for test, _ in verdicts(model, node))


def verdicts(model: "Model", node: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """The same tests, each with how it turned out where the place is reached."""
    child = node
    for ancestor in model.tree.ancestors(node):
        match ancestor:
            case cst.If() | cst.IfExp() | cst.While() if child is not ancestor.test:
                yield ancestor.test, child is ancestor.body
            case cst.BooleanOperation() if child is ancestor.right:
                yield ancestor.left, isinstance(ancestor.operator, cst.And)
            case cst.IndentedBlock():
                yield from ((test, False) for test in _tests_before(ancestor, child))
            case cst.FunctionDef():
                return
        child = ancestor


def _tests_before(block: cst.IndentedBlock, child: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    for statement in block.body:
        if statement is child:
            return
        if isinstance(statement, cst.If) and leaves(statement.body):
            yield statement.test


def leaves(body: cst.BaseSuite) -> bool:
    """Whether a block ends by leaving what is around it."""
    return isinstance(last_statement(body), (cst.Return, cst.Raise, cst.Continue, cst.Break))


_ENDING = frozenset({"exit", "quit", "sys.exit", "os._exit"})


def is_unreachable(model: "Model", node: cst.CSTNode) -> bool:
    """Whether nothing ever gets to a place: it stands behind what leaves its block, or a literal rules it out.

    ``raise DeprecationWarning(...)`` above what a function once did, ``exit()`` in a script, ``if False:``. The cells
    of a notebook are run one by one, whatever stands in another one.
    """
    blocks = cst.IndentedBlock if model.source.path.endswith(".ipynb") else (cst.IndentedBlock, cst.Module)
    child = node
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, blocks):
            before = list(ancestor.body)
            if any(map(_ends, before[: next((at for at, item in enumerate(before) if item is child), 0)])):
                return True
        elif isinstance(ancestor, (cst.If, cst.IfExp, cst.While)) and child is not ancestor.test:
            outcome = decided(ancestor.test, constant)
            if outcome is not None and outcome is not (child is ancestor.body):
                return True
        child = ancestor
    return False


def _ends(statement: cst.CSTNode) -> bool:
    """Whether a statement leaves the block in which it stands, or the program, whatever happens."""
    last = statement.body[-1] if isinstance(statement, cst.SimpleStatementLine) else None
    if isinstance(last, cst.Assert):
        return decided(last.test, constant) is False
    return isinstance(last, (cst.Return, cst.Raise, cst.Continue, cst.Break)) or ends_program(last)


def ends_program(statement: cst.CSTNode | None) -> bool:
    """Whether a statement on a line of its own, or beside others, is ``exit()`` or the like."""
    call = statement.value if isinstance(statement, cst.Expr) else None
    return isinstance(call, cst.Call) and dotted_path(call.func) in _ENDING


def parts_of_test(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The parts of a test that all hold where it does."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        yield from parts_of_test(test.left)
        yield from parts_of_test(test.right)
    else:
        yield test


def decided(test: cst.BaseExpression, literal: Callable[[cst.BaseExpression], object]) -> bool | None:
    """Whether a test is surely true, or false; ``None``: it cannot be told.

    ``literal`` gives the constant that an expression stands for, or ``Ellipsis``.
    """
    # By the type itself: what a pattern denies costs a call into `abc`, and most tests are names and calls.
    if test.__class__ not in _OF_SEVERAL:
        value = literal(test)
        return None if value is ... else bool(value)
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            known = decided(inner, literal)
            return None if known is None else not known
        case cst.BooleanOperation(left=left, operator=operator, right=right):
            decisive = isinstance(operator, cst.Or)
            sides = (decided(left, literal), decided(right, literal))
            if decisive in sides:
                return decisive
            return None if None in sides else not decisive
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
            if isinstance(right, (cst.Tuple, cst.List, cst.Set)):
                items = [literal(item.value) if isinstance(item, cst.Element) else ... for item in right.elements]
                return _compared_with_all(literal(left), operator, items)
            return _compared(literal(left), operator, literal(right))
    return None


def _compared_with_all(left: object, operator: cst.BaseCompOp, items: list[object]) -> bool | None:
    """Whether something is one of what stands in a display, ``kind in ("vgg", "vgg16")``, or is none of it."""
    if left is ... or not isinstance(operator, (cst.In, cst.NotIn)):
        return None
    is_in = any(item is not ... and item == left for item in items)
    return None if not is_in and ... in items else is_in is isinstance(operator, cst.In)


def _compared(left: object, operator: cst.BaseCompOp, right: object) -> bool | None:
    order = _ORDERS.get(operator.__class__)
    if order is not None and isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return order(left, right)
    if ... in (left, right) or not isinstance(operator, (cst.Is, cst.IsNot, cst.Equal, cst.NotEqual)):
        return None
    is_same = left == right and (type(left) is type(right) or isinstance(operator, (cst.Equal, cst.NotEqual)))
    return is_same is isinstance(operator, (cst.Is, cst.Equal))


def is_in_another_branch(model: "Model", one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether an ``if`` of the function decides which of two places is reached."""
    branches = _branches(model, one)
    return bool(branches) and any(
        statement in branches and branches[statement] is not branch
        for statement, branch in _branches(model, other).items()
    )


def exclude_each_other(model: "Model", one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether a place is reached where a test holds, and another where one that is written alike does not.

    ``if phase == "train": loss.backward()``, and what stands in the ``else`` of another ``if phase == "train"``.
    """
    turns = {fingerprint(test): turn for test, turn in verdicts(model, one)}
    return bool(turns) and any(turns.get(fingerprint(test), turn) is not turn for test, turn in verdicts(model, other))


def is_left_out(model: "Model", node: cst.CSTNode, *others: cst.CSTNode) -> bool:
    """Whether an ``if`` of the function decides about a place, and about none of some others with it."""
    branches = _branches(model, node).values()
    return any(not any(model.tree.is_below(other, branch) for other in others) for branch in branches)


def _branches(model: "Model", node: cst.CSTNode) -> dict[int, cst.CSTNode]:
    """For each ``if`` of the function around a node (by its id) the branch in which the node stands."""
    found: dict[int, cst.CSTNode] = {}
    child = node
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.If) and child is not ancestor.test:
            found[id(ancestor)] = child
        if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef)):
            break
        child = ancestor
    return found


def loop_of_every_round(model: "Model", node: cst.CSTNode) -> cst.For | cst.While | None:
    """The loop of which every round runs a node, and that may go on behind it."""
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, (cst.For, cst.While)):
            return None if leaves_loop(ancestor.body) or runs_once(ancestor) else ancestor
        if isinstance(ancestor, cst.BaseCompoundStatement) and not isinstance(ancestor, cst.With):
            return None
    return None


def always_runs(model: "Model", node: cst.CSTNode, holder: cst.CSTNode) -> bool:
    """Whether nothing between a place and what holds it decides about it."""
    for ancestor in model.tree.ancestors(node):
        if ancestor is holder:
            return True
        if ancestor.__class__ in MAYBE:
            return False
    return True


def is_above(scope: "Scope", earlier: cst.CSTNode, later: cst.CSTNode) -> bool:
    """Whether a place stands above another one of its scope."""
    here, there = scope.place_of(earlier), scope.place_of(later)
    return here is not None and there is not None and here[1] < there[1]


def stands_before(model: "Model", statement: cst.CSTNode, place: cst.CSTNode) -> bool:
    """Whether a statement stands right in a block further up in which a place of the scope stands, too: it has run."""
    line = model.tree.parent(statement)
    block = None if line is None else model.tree.parent(line)
    if not isinstance(block, (cst.IndentedBlock, cst.Module)) or model.scope_of(statement) is not model.scope_of(place):
        return False
    child = place
    for ancestor in model.tree.ancestors(place):
        if ancestor is block:
            order = [id(item) for item in block.body]
            return order.index(id(line)) < order.index(id(child))
        child = ancestor
    return False


NARROWING = ("isinstance", "is_tensor")
"""The functions whose test says what a thing is."""
_OF_EVERY_TENSOR = frozenset({"item", "detach", "backward", "numpy", "shape", "cpu"})


class Told(NamedTuple):
    """What the outcome of a test says of a key: ``operand`` is the expression that is asked about.

    ``about`` is what it is, or is not where ``holds`` is false: of a ``kind``, a tensor, equal to a number. Nothing is
    told where the ways behind a test have come together again.
    """

    key: str
    operand: cst.BaseExpression
    about: Literal["kind", "tensor", "number", "nothing"]
    holds: bool
    kind: cst.BaseExpression | None = None


def narrowing(test: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    """The key that ``isinstance(key, Type)`` or ``is_tensor(key)`` asks about, and the type, or what stands for it."""
    if type(test) is not cst.Call or not test.args:
        return None
    predicate = dotted_path(test.func)
    if predicate is None:
        return None
    key = dotted_path(test.args[0].value)
    if key is None:
        return None
    if predicate == "isinstance" and len(test.args) == 2:
        return key, test.args[1].value
    return (key, test.func) if predicate.rpartition(".")[2] == "is_tensor" and len(test.args) == 1 else None


def told(test: cst.BaseExpression, outcome: bool) -> Iterator[Told]:
    """What is known where a test has turned out one way: of ``a and b`` both hold, of ``a or b`` neither did."""
    kind = test.__class__  # most tests are none of these, and `isinstance` of an abstract class is slow
    if kind is cst.UnaryOperation and test.operator.__class__ is cst.Not:  # type: ignore[attr-defined]
        yield from told(test.expression, not outcome)  # type: ignore[attr-defined]
    elif kind is cst.BooleanOperation:
        if (test.operator.__class__ is cst.And) is outcome:  # type: ignore[attr-defined]
            yield from told(test.left, outcome)  # type: ignore[attr-defined]
            yield from told(test.right, outcome)  # type: ignore[attr-defined]
    elif kind is cst.Call:
        yield from _by_call(test, outcome)  # type: ignore[arg-type]
    elif kind is cst.Comparison:
        yield from _by_comparison(test, outcome)  # type: ignore[arg-type]


def _by_call(test: cst.Call, outcome: bool) -> Iterator[Told]:
    narrowed = narrowing(test)
    if narrowed is not None:
        yield Told(narrowed[0], test.args[0].value, "kind", outcome, narrowed[1])
    elif dotted_path(test.func) == "hasattr" and len(test.args) == 2 and not outcome:
        key = dotted_path(test.args[0].value)
        if key is not None and constant(test.args[1].value) in _OF_EVERY_TENSOR:
            yield Told(key, test.args[0].value, "tensor", holds=False)


def _by_comparison(test: cst.Comparison, outcome: bool) -> Iterator[Told]:
    """``type(x) is Type``, and ``x == 0`` where it holds."""
    for pair in comparands(test):
        if len(pair.others) != 1:
            continue
        operand, other = pair.operand, pair.others[0]
        if operand.__class__ is cst.Call and dotted_path(operand.func) == "type":
            asked = operand.args[0].value if len(operand.args) == 1 else None
            key = None if asked is None else dotted_path(asked)
            if asked is not None and key is not None:
                yield Told(key, asked, "kind", pair.is_negated is not outcome, other)
        elif (other.__class__ is cst.Integer or other.__class__ is cst.Float) and pair.is_negated is not outcome:
            key = dotted_path(operand)
            if key is not None:
                yield Told(key, operand, "number", holds=True)
