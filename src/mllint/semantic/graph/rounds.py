"""The round in which a backward pass runs: one of the loop around it, or one call of its function."""

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.graph.losses import WALKING
from mllint.semantic.names.conditions import is_above, is_in_another_branch
from mllint.semantic.names.scopes import Binding

if TYPE_CHECKING:
    from mllint.semantic.model import Model


class Round:
    """What else runs in the round of one ``backward()``: before it, and behind it."""

    def __init__(self, model: "Model", call: cst.Call) -> None:
        self.model = model
        self.call = call
        self.scope = model.scope_of(call)
        self.loop = next(model.tree.loops_around(call), None)

    def _holds(self, node: cst.CSTNode) -> bool:
        return self.loop is None or self.model.tree.is_inside(node, self.loop)

    def is_fresh(self, binding: Binding, node: cst.BaseExpression) -> bool:
        """Whether a binding was made in the same round as the one in which it is read."""
        if not self._holds(binding.node):
            return False
        place = self.scope.place_of(node)
        if place is None:
            return self.model.reaching(node) == (binding,)  # the name of a comprehension
        if binding.order < place[1]:
            return True
        # An inner loop hands it to its own next round; each round of the outer loop must begin with another one.
        return any(other.order < place[1] and self._begins(other) for other in self.scope.bindings.get(binding.key, ()))

    def _begins(self, binding: Binding) -> bool:
        """Whether a binding is made in every round."""
        block = self._block_of(binding)
        holder = None if block is None else self.model.tree.parent(block)
        return block is self.model.tree.module or holder is (self.loop or self.scope.node)

    def _block_of(self, binding: Binding) -> cst.CSTNode | None:
        line = self.model.tree.parent(binding.node)
        return None if line is None else self.model.tree.parent(line)

    def is_made_anew_for(self, binding: Binding, node: cst.BaseExpression) -> bool:
        """Whether a use surely reads what the same round has bound, and nothing of an earlier one."""
        place, block = self.scope.place_of(node), self._block_of(binding)
        is_behind = place is not None and binding.order < place[1]
        return is_behind and block is not None and self.model.tree.is_inside(node, block)

    def has_run(self, node: cst.CSTNode) -> bool:
        """Whether something has run when the pass does, in the same round."""
        return self._holds(node) and is_above(self.scope, node, self.call)

    def is_over(self, walk: cst.Call) -> bool:
        """Whether another backward pass has run when this one does, and gives no gradients that have a graph."""
        return isinstance(self.model.tree.parent(walk), cst.Expr) and self.has_run(walk)

    @cached_property
    def is_last_pass(self) -> bool:
        """Whether no other call of the round, but in another branch, or over by then, may walk a graph."""
        return not any(
            other is not self.call
            and self.model.scope_of(other) is self.scope
            and not is_in_another_branch(self.model, other, self.call)
            and not self.is_over(other)
            for word in WALKING
            for other in self.model.calls_by_word.get(word, ())
        )

    @cached_property
    def is_stepped_alone(self) -> bool:
        """Whether weights are changed in place behind the last backward pass of every round.

        What anything out of sight has kept of the graph, no pass of a later round could go through. Paddle does not
        look whether weights have changed.
        """
        if self.model.framework != "torch" or not self.is_last_pass:
            return False
        return any(
            self.model.scope_of(step) is self.scope
            and self._holds(step)
            and is_above(self.scope, self.call, step)
            and not is_in_another_branch(self.model, step, self.call)
            for step in self.model.calls_by_word.get("step", ())
        )
