"""Gradients that are cleared on one of two ways to a loss, while a step behind both uses them."""

import libcst as cst

from mllint.semantic.events.participants import losses_of
from mllint.semantic.events.steps import Branches, Event, Helper, Kind, Loop, Within, events
from mllint.semantic.names.scopes import Binding
from mllint.syntax.shape import leaves_loop


def is_cleared_on_one_side(step: Event, loop: Loop, clearing: list[Event]) -> bool:
    """Whether all that clears gradients in a loop stands in one arm of an ``if`` of which each arm makes the loss.

    The rounds that go through the other arm add to the gradients that the rounds before have left.
    """
    if not clearing or not step.happens_in_every_round(loop):
        return False
    sides = [_side(event, loop) for event in clearing]
    branches, arm = sides[0] if sides[0] is not None else (None, 0)
    if branches is None or not all(side is not None and side == (branches, arm) for side in sides):
        return False
    node = branches.node
    if not isinstance(node, cst.If) or not isinstance(node.orelse, cst.Else):
        return False
    arms = (node.body, node.orelse.body)
    return not any(map(leaves_loop, arms)) and all(_makes_loss(loop, side) for side in arms)


def _side(event: Event, loop: Loop) -> tuple[Branches, int] | None:
    """The one ``if`` in a round, and the arm of it, in which gradients are surely cleared."""
    around = event.within(loop)
    arms = [(item.step, item.arm) for item in around if isinstance(item.step, Branches)]
    is_plain = all(isinstance(item.step, (Branches, Helper, Within)) for item in around)
    return arms[0] if len(arms) == 1 and is_plain and event.kind is Kind.ZERO else None


def _makes_loss(loop: Loop, arm: cst.BaseSuite) -> bool:
    """Whether a loss is made in an arm on which a round computes gradients further down."""
    tree = loop.frame.model.tree
    passes = [event for event in events(loop.body) if event.kind is Kind.BACKWARD]
    bound = (root for event in passes for loss in losses_of(event) for root in loss.roots)
    return not any(tree.is_inside(event.node, arm) for event in passes) and any(
        isinstance(root, Binding) and root.scope.model is loop.frame.model and tree.is_inside(root.node, arm)
        for root in bound
    )
