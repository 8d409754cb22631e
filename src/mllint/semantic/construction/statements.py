"""Carrying out statements on abstract values.

What surely happens is done. Where a condition or a loop cannot be decided, whatever its body would write counts as
unknown afterwards.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import libcst as cst

from mllint.semantic.construction.calls import call_method
from mllint.semantic.construction.evaluation import Evaluator, Frame
from mllint.semantic.construction.operators import binary
from mllint.semantic.construction.parts import UNKNOWN, Bound, Closure, Entries, Given, Items, Part
from mllint.syntax.shape import subscript_index

MAX_ROUNDS = 400
"""How many rounds of one loop are carried out."""


class Flow(Enum):
    """Where control goes after a statement."""

    NEXT = "next"
    RETURN = "return"
    BREAK = "break"
    CONTINUE = "continue"
    RAISE = "raise"


class Statements(Evaluator):
    """Carries out statements. What a call does is up to the class that derives from it."""

    def suite(self, body: cst.BaseSuite, frame: Frame) -> Flow:
        """Carry out statements, up to one that leaves."""
        for statement in body.body:
            smalls = statement.body if isinstance(statement, cst.SimpleStatementLine) else (statement,)
            for small in smalls:
                flow = self._statement(small, frame)
                if flow is not Flow.NEXT and (frame.is_certain or flow is Flow.RAISE):
                    return flow
                if flow is not Flow.NEXT:
                    frame.may_have_left = True
                    return Flow.NEXT
        return Flow.NEXT

    def _statement(self, node: cst.CSTNode, frame: Frame) -> Flow:
        match node:
            case cst.Assign():
                value = self.evaluate(node.value, frame)
                for target in node.targets:
                    self._assign(target.target, value, frame)
            case cst.AnnAssign() if node.value is not None:
                self._assign(node.target, self.evaluate(node.value, frame), frame)
            case cst.AugAssign():
                self._augment(node, frame)
            case cst.Expr():
                self.evaluate(node.value, frame)
            case cst.Return():
                frame.result = None if node.value is None else self.evaluate(node.value, frame)
                return Flow.RETURN
            case cst.Del():
                self._delete(node.target, frame)
            case cst.If():
                return self._if(node, frame)
            case cst.For():
                return self._for(node, frame)
            case cst.While():
                self._doubtful(frame, node.body, node.body)
            case cst.With():
                return self.suite(node.body, frame)
            case cst.Try() | cst.TryStar():
                self._try(node, frame)
            case cst.Match():
                self._doubtful(frame, *(case.body for case in node.cases))
            case cst.FunctionDef():
                frame.names[node.name.value] = Closure(node, frame) if not node.decorators else UNKNOWN
            case cst.Raise():
                return Flow.RAISE
            case cst.Break():
                return Flow.BREAK
            case cst.Continue():
                return Flow.CONTINUE
        return Flow.NEXT

    def _if(self, node: cst.If, frame: Frame) -> Flow:
        known = self.truth(node.test, frame)
        otherwise = node.orelse
        if known is True:
            return self.suite(node.body, frame)
        if known is False:
            if isinstance(otherwise, cst.If):
                return self._if(otherwise, frame)
            return Flow.NEXT if otherwise is None else self.suite(otherwise.body, frame)
        with self._in_doubt(frame):
            self.suite(node.body, frame)
            if isinstance(otherwise, cst.If):
                self._if(otherwise, frame)
            elif otherwise is not None:
                self.suite(otherwise.body, frame)
        return Flow.NEXT

    def _for(self, node: cst.For, frame: Frame) -> Flow:
        values = self.iterated(self.evaluate(node.iter, frame))
        if values is None or len(values) > MAX_ROUNDS:
            with self._in_doubt(frame):
                self.unpack(node.target, UNKNOWN, frame)
            self._doubtful(frame, node.body, node.body)
            return Flow.NEXT
        for value in values:
            self.unpack(node.target, value if frame.is_certain else UNKNOWN, frame)
            flow = self.suite(node.body, frame)
            if flow is Flow.BREAK:
                return Flow.NEXT
            if flow in (Flow.RETURN, Flow.RAISE):
                return flow
        return self.suite(node.orelse.body, frame) if node.orelse is not None else Flow.NEXT

    def _try(self, node: cst.Try | cst.TryStar, frame: Frame) -> None:
        self._doubtful(frame, node.body, *(handler.body for handler in node.handlers))
        for more in (node.orelse, node.finalbody):
            if more is not None:
                self._doubtful(frame, more.body)

    def _doubtful(self, frame: Frame, *bodies: cst.BaseSuite) -> None:
        """Bodies of which it is not known whether, or how often, they run."""
        with self._in_doubt(frame):
            for body in bodies:
                self.suite(body, frame)

    @contextmanager
    def _in_doubt(self, frame: Frame) -> Iterator[None]:
        """What is written meanwhile is not known afterwards; nor is anything after a place that may have left."""
        before, frame.is_certain = frame.is_certain, False
        try:
            yield
        finally:
            frame.is_certain = before and not frame.may_have_left

    # -- assignments -------------------------------------------------------------------------------------------------

    def _assign(self, target: cst.BaseExpression, value: Any, frame: Frame) -> None:
        match target:
            case cst.Name():
                frame.names[target.value] = value if frame.is_certain else UNKNOWN
            case cst.Attribute():
                self._register(self.evaluate(target.value, frame), target.attr.value, value, frame)
            case cst.Subscript():
                base = self.evaluate(target.value, frame)
                index = [
                    self.evaluate(element.slice.value, frame)
                    for element in target.slice
                    if isinstance(element.slice, cst.Index)
                ]
                self._put(base, index[0] if len(index) == len(target.slice) == 1 else UNKNOWN, value, frame)
            case cst.Tuple() | cst.List():
                for element, part in self.unpacked(target, value):
                    self._assign(element, part, frame)

    @staticmethod
    def _register(base: Any, name: Any, value: Any, frame: Frame) -> None:
        """``base.name = value``."""
        if not isinstance(base, Part):
            return
        if frame.is_certain:
            base.register(name, value)
        else:
            base.loosen(name)

    def _put(self, base: Any, index: Any, value: Any, frame: Frame) -> None:
        """``base[index] = value``."""
        known = frame.is_certain and isinstance(index, (int, str))
        match base:
            case Items():
                if known and isinstance(index, int) and -len(base.values) <= index < len(base.values):
                    base.values[index] = value
                else:
                    base.is_open = True
            case Entries():
                if known:
                    base.values[index] = value
                else:
                    base.values.clear()
                    base.is_open = True
            case Part():
                position = index + base.length if isinstance(index, int) and index < 0 else index
                self._register(base, str(position) if isinstance(index, (int, str)) else UNKNOWN, value, frame)

    def _augment(self, node: cst.AugAssign, frame: Frame) -> None:
        value = self.evaluate(node.value, frame)
        current = self.evaluate(node.target, frame)
        kind = _AUGMENTED.get(type(node.operator))
        if isinstance(kind, cst.Add) and isinstance(current, (Items, Part)):
            call_method(Bound(current, "extend"), Given((value,)), frame)
            return
        self._assign(node.target, UNKNOWN if kind is None else binary(kind, current, value), frame)

    def _delete(self, target: cst.BaseDelTargetExpression, frame: Frame) -> None:
        if isinstance(target, cst.Attribute):
            base = self.evaluate(target.value, frame)
            if isinstance(base, Part) and frame.is_certain:
                base.remove(target.attr.value)
            elif isinstance(base, Part):
                base.loosen(target.attr.value)
        elif isinstance(target, cst.Subscript):
            self._delete_item(self.evaluate(target.value, frame), target, frame)

    def _delete_item(self, base: Any, target: cst.Subscript, frame: Frame) -> None:
        index = subscript_index(target)
        key = UNKNOWN if index is None else self.evaluate(index, frame)
        if isinstance(base, Entries) and frame.is_certain and isinstance(key, (str, int)) and not base.is_open:
            base.values.pop(key, None)
        elif isinstance(base, (Items, Entries)):
            base.values.clear()
            base.is_open = True
        elif isinstance(base, Part):
            base.children.clear()
            base.is_open = True


_AUGMENTED: dict[type[cst.BaseAugOp], cst.BaseBinaryOp] = {
    cst.AddAssign: cst.Add(),
    cst.SubtractAssign: cst.Subtract(),
    cst.MultiplyAssign: cst.Multiply(),
    cst.FloorDivideAssign: cst.FloorDivide(),
    cst.DivideAssign: cst.Divide(),
}
