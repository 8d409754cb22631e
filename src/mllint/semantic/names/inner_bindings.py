"""Bindings that expressions make for the names in them: comprehensions, lambdas, and tests that hold inside."""

from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.names.conditions import NARROWING, narrowing
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_COMPREHENSIONS = frozenset({cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp})
_STATEMENTS = frozenset({
    cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr, cst.Return, cst.Raise, cst.Assert, cst.Del, cst.If, cst.For,
    cst.While, cst.With, cst.Try, cst.TryStar, cst.Match, cst.FunctionDef, cst.ClassDef, cst.Import, cst.ImportFrom,
})  # fmt: skip


class InnerBindings:
    """Finds the binding of a name by the expressions around it."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self._tests: dict[int, Binding] = {}
        self._lambdas: dict[int, Binding] = {}

    def binding(self, node: cst.Name) -> tuple[Binding | None] | None:
        """The binding of a name by a comprehension or lambda around it, in a one-tuple; ``None``: there is none.

        ``isinstance(x, Type) and ...`` and ``... if isinstance(x, Type) else ...`` bind too, in the place of the dots.
        """
        if node.value not in self._names:
            return None
        child: cst.CSTNode = node
        parents = self.model.tree.parents
        while True:
            ancestor = parents.get(id(child))
            kind = ancestor.__class__  # `isinstance` of an abstract class is slow, and asked of every name
            if kind in _COMPREHENSIONS:
                assert isinstance(ancestor, cst.BaseComp)
                found = _comprehension_binding(ancestor, node.value, child, self.model)
                if found is not None:
                    return (found,)
            elif kind is cst.Lambda:
                assert isinstance(ancestor, cst.Lambda)
                if child is ancestor.body and any(
                    node.value == parameter.name.value for parameter in ancestor.params.params
                ):
                    return (self._mapped(ancestor, node.value),)
            elif kind is cst.BooleanOperation or kind is cst.IfExp:
                assert ancestor is not None
                found = self._tested(ancestor, node.value, child)
                if found is not None:
                    return (found,)
            elif ancestor is None or kind in _STATEMENTS:
                return None
            child = ancestor

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names of the file that any expression binds: few, and every name of the file is asked about."""
        by_type = self.model.tree.by_type
        found = {
            name.value
            for clause in by_type.get(cst.CompFor, ())
            for name in subtree(clause.target)
            if type(name) is cst.Name
        }
        found.update(item.name.value for function in by_type.get(cst.Lambda, ()) for item in function.params.params)
        for word in NARROWING:
            narrowed = map(narrowing, self.model.calls_by_word.get(word, ()))
            found.update(key for key, _ in filter(None, narrowed))
        return frozenset(found)

    def _mapped(self, function: cst.Lambda, name: str) -> Binding | None:
        """The binding of the one parameter of a lambda that ``map`` calls with each item of something."""
        arg = self.model.tree.parent(function)
        call = None if arg is None else self.model.tree.parent(arg)
        if not isinstance(call, cst.Call) or len(call.args) != 2 or len(function.params.params) != 1:
            return None
        if call.args[0] is not arg or call.args[1].star or not isinstance(call.func, cst.Name):
            return None
        if call.func.value != "map":
            return None
        if id(function) not in self._lambdas:
            scope = self.model.scope_of(function)
            self._lambdas[id(function)] = Binding(name, BindingKind.LOOP, function, scope, call.args[1].value)
        return self._lambdas[id(function)]

    def _tested(self, node: cst.CSTNode, name: str, child: cst.CSTNode) -> Binding | None:
        """The binding of a name by the test that holds where ``child`` of a conjunction or conditional is evaluated."""
        pending: list[cst.BaseExpression] = []
        if isinstance(node, cst.IfExp) and child is node.body:
            pending.append(node.test)
        elif isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.And) and child is node.right:
            pending.append(node.left)
        while pending:
            test = pending.pop()
            if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
                pending += (test.right, test.left)
            narrowed = narrowing(test)
            if narrowed is not None and narrowed[0] == name:
                if id(test) not in self._tests:
                    scope = self.model.scope_of(test)
                    self._tests[id(test)] = Binding(name, BindingKind.NARROWED, test, scope, narrowed[1])
                return self._tests[id(test)]
        return None


def _comprehension_binding(comp: cst.BaseComp, name: str, child: cst.CSTNode, model: "Model") -> Binding | None:
    """The binding of a name by the ``for`` clauses of a comprehension, seen from one of its parts."""
    clause: cst.CompFor | None = comp.for_in if isinstance(comp, (cst.BaseSimpleComp, cst.DictComp)) else None
    while clause is not None:
        path = _path_to(clause.target, name)
        if path is not None and child is not clause.iter:
            return model.comprehension_binding(clause, name, path)
        clause = clause.inner_for_in
    return None


def _path_to(target: cst.BaseExpression, name: str) -> tuple[int | None, ...] | None:
    if isinstance(target, cst.Name):
        return () if target.value == name else None
    if isinstance(target, (cst.Tuple, cst.List)):
        for index, element in enumerate(target.elements):
            inner = _path_to(element.value, name)
            if inner is not None:
                return (None if isinstance(element, cst.StarredElement) else index, *inner)
    return None
