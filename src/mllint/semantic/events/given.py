"""What a test comes out as in one run of a function, by the literals that its caller gives: ``train=False``."""

from collections.abc import Iterator
from functools import partial

import libcst as cst

from mllint.semantic.events.places import changes_of_kept, is_nothing
from mllint.semantic.events.things import Frame, Known, Named
from mllint.semantic.names.changes import changes_of_bound
from mllint.semantic.names.conditions import decided
from mllint.semantic.names.scopes import Binding, BindingKind, assigned, only_assigned
from mllint.semantic.names.uses import bound_by
from mllint.semantic.values import Tensor, Text
from mllint.syntax.shape import constant, dotted_path, has_star_arguments, last_word, string_literal
from mllint.syntax.walk import Tree, children

_MAX_STEPS = 4
_MAX_ROUNDS = 4
"""Loops over more literals than these are taken as one."""
_TELLING = frozenset({cst.UnaryOperation, cst.BooleanOperation, cst.Comparison, cst.Name, cst.Attribute})


def truth(frame: Frame, test: cst.BaseExpression) -> bool | None:
    """Whether a test is surely true, or false, in a run; ``None``: it cannot be told."""
    # By the type itself: what a pattern denies costs a call into `abc`, and most tests are calls.
    if test.__class__ not in _TELLING:
        return None
    return decided(test, partial(_asked, frame))


def _asked(frame: Frame, node: cst.BaseExpression) -> object:
    """The literal that an expression stands for, or the outcome of the test that a name does."""
    literal = _literal(frame, node, _MAX_STEPS)
    known = _kept_truth(frame, node) if literal is ... and isinstance(node, cst.Name) else None
    return literal if known is None else known


def _kept_truth(frame: Frame, name: cst.Name) -> bool | None:
    """The outcome of the test that a name stands for: ``is_train = phase == "train"``."""
    bindings = frame.model.reaching(name)
    given = frame.given(bindings[0]) if len(bindings) == 1 else None
    if given is not None and isinstance(given[1], cst.Name):
        return _kept_truth(given[0], given[1])
    value = only_assigned(frame.model, name)
    is_test = isinstance(value, (cst.Comparison, cst.UnaryOperation, cst.BooleanOperation))
    return truth(frame, value) if is_test and value is not None else None


def literal_rounds(frame: Frame, node: cst.For) -> "list[Frame]":
    """The rounds of a loop over a few literals, each as a run of its own: ``for phase in ("train", "val")``.

    And of one over a few things that have names: ``for net in (generator, critic)``, also where the caller gives them.
    Empty for other loops, and for those that are left early.
    """
    home, items = _display(frame, node.iter, _MAX_STEPS)
    if not 1 <= len(items) <= _MAX_ROUNDS:
        return []
    bound = bound_by(frame.model, node)
    rounds = [_round(home, item, bound) for item in items]
    if not all(literals or elements for literals, elements in rounds) or node.orelse is not None or _may_leave(node):
        return []
    if home is not frame and any(literals or any(map(_is_data, elements.values())) for literals, elements in rounds):
        return []  # what a caller gives to go through, such as files or batches
    return [frame.in_round(*known) for known in rounds]


def _is_data(given: tuple[Frame, cst.BaseExpression]) -> bool:
    return isinstance(given[0].value(given[1]), (Tensor, Text))


def _display(frame: Frame, node: cst.BaseExpression, steps: int) -> tuple[Frame, list[cst.BaseExpression]]:
    """What stands in the list that a name is bound to, in its function or by those that call it, and the run of that.

    And in the list that an object keeps: ``self.nets = [self.generator, self.critic]``. None where that is not known.
    """
    if type(node) is cst.Attribute:
        return _display_kept(frame, node)
    bindings = frame.model.reaching(node) if type(node) is cst.Name and steps else ()
    if len(bindings) != 1:
        return frame, _items_of(node)
    given = frame.given(bindings[0])
    if given is not None:
        return _display(*given, steps - 1)
    return frame, _items(bindings[0], changes_of_bound(frame.model, bindings[0]))


def _display_kept(frame: Frame, node: cst.Attribute) -> tuple[Frame, list[cst.BaseExpression]]:
    """What stands in the list that the class of an object gives an attribute, and the run of that."""
    owner, holder = frame.owner_of(node), frame.thing(node.value)
    bound = [] if owner is None else [item for item in owner.assignments(node.attr.value) if not is_nothing(item)]
    if owner is None or holder is None or len(bound) != 1:
        return frame, []
    return frame.home_of(bound[0], holder), _items(bound[0], changes_of_kept(owner, bound[0]))


def _items_of(node: cst.BaseExpression | None) -> list[cst.BaseExpression]:
    return [element.value for element in node.elements] if isinstance(node, (cst.Tuple, cst.List)) else []


def _items(binding: Binding, changes: Iterator[cst.CSTNode]) -> list[cst.BaseExpression]:
    """What stands in a list in the end: in its display, and what is appended in the same block. None where it is
    changed otherwise.
    """
    made, tree = assigned(binding), binding.scope.model.tree
    items = _items_of(made)
    if not isinstance(made, (cst.Tuple, cst.List)):
        return []
    for change in changes:
        is_appended = isinstance(change, cst.Call) and last_word(change.func) == "append" and len(change.args) == 1
        if not is_appended or not isinstance(change, cst.Call) or _block_of(tree, change) is not _block_of(tree, made):
            return []
        items.append(change.args[0].value)
    return items


def _block_of(tree: Tree, node: cst.CSTNode) -> cst.CSTNode | None:
    """The block in which the statement stands that an expression is in."""
    line = tree.nearest(node, cst.SimpleStatementLine)
    return None if line is None else tree.parent(line)


def _round(home: Frame, element: cst.BaseExpression, bound: tuple[Binding, ...]) -> tuple[Known, Named]:
    """The variables of a loop that stand for literals in the round of an element, and those that stand for names."""
    literals: Known = {}
    elements: Named = {}
    for binding in bound:
        part: cst.BaseExpression | None = element
        if binding.path:
            place = binding.path[0] if len(binding.path) == 1 else None
            parts = element.elements if isinstance(element, (cst.Tuple, cst.List)) else ()
            part = None if place is None or place >= len(parts) else parts[place].value
        if part is not None and (string_literal(part) is not None or isinstance(constant(part), bool)):
            literals[binding] = part
        elif part is not None and dotted_path(part) is not None:
            elements[binding] = home, part
    return literals, elements


def _may_leave(node: cst.For) -> bool:
    """Whether a ``break`` of the loop itself stands in it."""
    pending: list[cst.CSTNode] = [node.body]
    while pending:
        item = pending.pop()
        if isinstance(item, cst.Break):
            return True
        if not isinstance(item, (cst.For, cst.While, cst.FunctionDef, cst.Lambda)):
            pending += children(item)
    return False


def living(frame: Frame, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes of some code that a run may come by: not those in branches that it surely leaves out."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        chosen = truth(frame, current.test) if isinstance(current, (cst.If, cst.IfExp)) else None
        if chosen is None:
            pending += children(current)
        else:
            assert isinstance(current, (cst.If, cst.IfExp))
            taken = current.body if chosen else current.orelse
            pending += [current.test] if taken is None else [current.test, taken]


def _literal(frame: Frame, node: cst.BaseExpression, steps: int) -> object:
    """The literal that an expression stands for: itself, or what the callers give for a parameter; else ``...``."""
    value = constant(node)
    if value is not ...:
        return value
    if isinstance(node, cst.Attribute) and steps:
        return _literal_kept(frame, node, steps)
    if not isinstance(node, cst.Name) or steps == 0:
        return ...
    bindings = frame.model.reaching(node)
    if len(bindings) == 1 and bindings[0] in frame.literals:
        return _literal(frame, frame.literals[bindings[0]], 0)
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER or bindings[0].key != node.value:
        return ...
    given = frame.given(bindings[0])
    if given is not None:
        return _literal(*given, steps - 1)
    parameter, call = bindings[0].node, frame.call
    if call is None or has_star_arguments(call) or not isinstance(parameter, cst.Param) or parameter.default is None:
        return ...
    is_left_out = frame.function is not None and bindings[0].scope is frame.function.scope
    return _literal(frame, parameter.default, 0) if is_left_out else ...


def _literal_kept(frame: Frame, node: cst.Attribute, steps: int) -> object:
    """The literal that an object was given where it was made, and keeps: ``self.opt`` of ``Compute(criterion, None)``.

    Also where its constructor asks for it. Not one that anything binds anew.
    """
    given = only_assigned(frame.model, node)
    if isinstance(given, cst.Name) and _is_bound_once(frame, frame, node.attr.value):
        return _literal(frame, given, steps - 1)
    holder = frame.thing(node.value) if isinstance(node.value, cst.Name) else None
    kept = None if holder is None else frame.kept(holder, node.attr.value)
    if kept is None or not _is_bound_once(frame, kept[0], node.attr.value):
        return ...
    return _literal(*kept, steps - 1)


def _is_bound_once(frame: Frame, constructor: Frame, name: str) -> bool:
    """Whether nothing but the constructor of an object binds an attribute, in its class or in what runs."""
    models = {
        constructor.model,
        *(item.model for item in (frame, constructor)),
        *(item.model for item in frame.running()),
    }
    bound = [
        parent
        for model in models
        for item in model.names_by_word.get(name, ())
        if isinstance(parent := model.tree.parent(item), cst.Attribute)
        if parent.attr is item
        and isinstance(model.tree.parent(parent), (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))
    ]
    return len(bound) == 1
