"""The control-flow graph of a scope: its statements in blocks, and what they bind there."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import libcst as cst

from mllint.semantic.names.conditions import Told, narrowing, told
from mllint.semantic.names.scopes import Binding, BindingKind, Block, Scope, ToldBinding, mark_of, with_prefixes
from mllint.syntax.shape import dotted_path
from mllint.syntax.walk import subtree


def fill(scope: Scope) -> None:
    """Put the blocks, the bindings and the places of its statements into a new scope."""
    _Builder(scope).build()


class _Builder:
    """Builds the blocks of one scope. Compound statements recurse; the tokenizer bounds how deep they nest."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.block: Block = scope.entry
        self.order = 0
        self.blocks = scope.blocks
        self.loops: list[tuple[Block, Block]] = []  # (where `continue` goes, where `break` goes)

    def build(self) -> None:
        node = self.scope.node
        if type(node) is cst.Module:
            self._statements(node.body)
        elif type(node) is cst.FunctionDef:
            self._parameters(node.params)
            self._suite(node.body)
        elif type(node) is cst.ClassDef:
            self._suite(node.body)
        self.scope.exit = self.block

    def _new(self, *after: Block) -> Block:
        block = Block(after=list(after), is_live=any(before.is_live for before in after))
        self.blocks.append(block)
        return block

    def _bind(
        self,
        key: str,
        kind: BindingKind,
        node: cst.CSTNode,
        value: cst.BaseExpression | None = None,
        path: tuple[int | None, ...] = (),
    ) -> None:
        self.order += 1
        binding = Binding(key, kind, node, self.scope, value, path, self.order)
        self.scope.bindings.setdefault(key, []).append(binding)
        self.block.bindings.setdefault(key, []).append(binding)

    def _here(self, node: cst.CSTNode) -> None:
        """Expressions under ``node`` are evaluated here, before anything that is bound later."""
        self.order += 1
        self.scope.places[id(node)] = (self.block, self.order)

    def _parameters(self, parameters: cst.Parameters) -> None:
        every = [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]
        every += [star for star in (parameters.star_arg, parameters.star_kwarg) if type(star) is cst.Param]
        for parameter in every:
            self._bind(parameter.name.value, BindingKind.PARAMETER, parameter)
        self._here(self.scope.node)

    # -- statements ------------------------------------------------------------------------------------------------

    def _suite(self, body: cst.BaseSuite) -> None:
        self._statements(body.body)

    def _statements(self, statements: Iterable[cst.CSTNode]) -> None:
        for statement in statements:
            if type(statement) is cst.SimpleStatementLine:
                for small in statement.body:
                    self._small(small)
            else:
                self._statement(statement)

    def _statement(self, node: cst.CSTNode) -> None:
        build = _COMPOUND.get(type(node))
        if build is not None:
            before, first = self.block, self.order
            build(self, node)
            end = self.block
            if end is not before and end.is_live and end.around is None:
                end.around = before, first, self.order
        elif isinstance(node, cst.BaseSmallStatement):
            self._small(node)

    def _definition(self, node: cst.FunctionDef | cst.ClassDef) -> None:
        self._here(node)
        is_function = isinstance(node, cst.FunctionDef)
        self._bind(node.name.value, BindingKind.FUNCTION if is_function else BindingKind.CLASS, node)

    def _small(self, node: cst.BaseSmallStatement) -> None:
        self._walrus(node)
        self._here(node)
        build = _SMALL.get(type(node))
        if build is not None:
            build(self, node)

    def _assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self._target(target.target, BindingKind.ASSIGN, node, node.value)

    def _assign_annotated(self, node: cst.AnnAssign) -> None:
        self._target(node.target, BindingKind.ANNOTATED, node, node.value)

    def _assign_augmented(self, node: cst.AugAssign) -> None:
        self._target(node.target, BindingKind.AUGMENTED, node, node.value)

    def _return(self, node: cst.Return) -> None:
        self.scope.returns.append(node)
        self.block = self._new()

    def _raise(self, node: cst.Raise) -> None:
        self.block = self._new()

    def _break(self, node: cst.Break) -> None:
        if self.loops:
            self.loops[-1][1].after.append(self.block)
        self.block = self._new()

    def _continue(self, node: cst.Continue) -> None:
        if self.loops:
            self.loops[-1][0].after.append(self.block)
        self.block = self._new()

    def _declare(self, node: cst.Global | cst.Nonlocal) -> None:
        word = "global" if isinstance(node, cst.Global) else "nonlocal"
        for item in node.names:
            self.scope.outer_names[item.name.value] = word

    def _delete(self, node: cst.Del) -> None:
        self._target(node.target, BindingKind.OPAQUE, node, None)

    def _target(
        self,
        target: cst.BaseExpression | cst.BaseDelTargetExpression,
        kind: BindingKind,
        node: cst.CSTNode,
        value: cst.BaseExpression | None,
        path: tuple[int | None, ...] = (),
    ) -> None:
        if type(target) is cst.Tuple or type(target) is cst.List:
            if kind is BindingKind.ASSIGN and not path and _fits(target, value):
                for element, given in zip(target.elements, value.elements, strict=True):  # type: ignore[union-attr]
                    self._target(element.value, kind, node, given.value)
                return
            index: int | None = 0
            for element in target.elements:
                if type(element) is cst.StarredElement:
                    self._target(element.value, BindingKind.OPAQUE, node, None)
                    index = None
                    continue
                self._target(element.value, kind, node, value, (*path, index))
                index = None if index is None else index + 1
            return
        key = dotted_path(target)
        if key is not None:
            self._bind(key, kind, node, value, path)

    def _walrus(self, node: cst.CSTNode) -> None:
        """Names that a statement binds on the way (``:=``) count as bound when it begins."""
        for walrus in self.scope.tree.walruses.get(id(node), ()):
            self._target(walrus.target, BindingKind.ASSIGN, walrus, walrus.value)

    def _import(self, node: cst.Import | cst.ImportFrom) -> None:
        if isinstance(node.names, cst.ImportStar):
            self._bind("*", BindingKind.IMPORT, node)
            return
        for alias in node.names:
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                key = alias.asname.name.value
            else:
                key = (dotted_path(alias.name) or "").partition(".")[0]
            if key:
                self._bind(key, BindingKind.IMPORT, alias)

    def _if(self, node: cst.If) -> None:
        ends: list[Block] = []
        facts: list[Told] = []
        first = self.order
        current: cst.If | None = node
        while current is not None:
            self._walrus(current)
            self._here(current)
            facts += (*told(current.test, True), *told(current.test, False))
            before = self.block
            self.block = self._new(before)
            self._narrow(current.test)
            self._tell(current.test, True)
            self._suite(current.body)
            ends.append(self.block)
            self.block = self._new(before)
            self._tell(current.test, False)
            otherwise = current.orelse
            current = otherwise if type(otherwise) is cst.If else None
            if type(otherwise) is cst.Else:
                self._suite(otherwise.body)
        self.block = self._new(*ends, self.block)
        if facts and all(end.is_live for end in self.block.after):
            self._forget(facts, first)

    def _forget(self, facts: list[Told], first: int) -> None:
        """Behind an ``if`` whose branches neither end nor bind what the test asks about, that is what it was before."""
        for fact in facts:
            bound = (item for name in with_prefixes(fact.key) for item in self.scope.bindings.get(name, ()))
            if all(item.order <= first or item.kind is BindingKind.NARROWED for item in bound):
                self._tell_one(fact.operand, fact._replace(about="nothing"))

    def _narrow(self, test: cst.BaseExpression) -> None:
        """What a test of the form ``isinstance(key, Type)`` (or a conjunction with one) says inside its branch."""
        if type(test) is cst.BooleanOperation and type(test.operator) is cst.And:
            self._narrow(test.left)
            self._narrow(test.right)
            return
        narrowed = narrowing(test)
        if narrowed is not None:
            self._bind(narrowed[0], BindingKind.NARROWED, test, narrowed[1])

    def _tell(self, test: cst.BaseExpression, outcome: bool) -> None:
        """What else a test tells of the things that it asks about, in the branch for its outcome."""
        for fact in told(test, outcome):
            bound = self.block.bindings.get(fact.key) if fact.holds else None
            if not bound or bound[-1].kind is not BindingKind.NARROWED:  # else that says it already
                self._tell_one(test, fact)

    def _tell_one(self, node: cst.BaseExpression, fact: Told) -> None:
        self.order += 1
        mark = mark_of(fact.key)
        binding = ToldBinding(mark, BindingKind.TOLD, node, self.scope, order=self.order, fact=fact)
        self.scope.bindings.setdefault(mark, []).append(binding)
        self.block.bindings.setdefault(mark, []).append(binding)

    def _assert(self, node: cst.Assert) -> None:
        self._tell(node.test, True)

    def _for(self, node: cst.For) -> None:
        self._here(node)
        header = self._new(self.block)
        end = self._new()
        self.block = self._new(header)
        self._target(node.target, BindingKind.LOOP, node, node.iter)
        self._loop_body(node.body, header, end)
        self._loop_else(node.orelse, header, end)

    def _while(self, node: cst.While) -> None:
        header = self._new(self.block)
        self.block = header
        self._walrus(node)
        self._here(node)
        end = self._new()
        self.block = self._new(header)
        self._narrow(node.test)
        self._loop_body(node.body, header, end)
        if isinstance(node.test, cst.Name) and node.test.value == "True":
            end.is_live = any(block.is_live for block in end.after)
            self.block = end
        else:
            self._loop_else(node.orelse, header, end)

    def _loop_body(self, body: cst.BaseSuite, header: Block, end: Block) -> None:
        self.loops.append((header, end))
        self._suite(body)
        self.loops.pop()
        header.after.append(self.block)

    def _loop_else(self, orelse: cst.Else | None, header: Block, end: Block) -> None:
        self.block = self._new(header)
        if orelse is not None:
            self._suite(orelse.body)
        end.after.append(self.block)
        end.is_live = any(block.is_live for block in end.after)
        self.block = end

    def _with(self, node: cst.With) -> None:
        self._here(node)
        for item in node.items:
            if item.asname is not None:
                self._target(item.asname.name, BindingKind.WITH, node, item.item)
        self._suite(node.body)

    def _try(self, node: cst.Try | cst.TryStar) -> None:
        self._here(node)
        first = len(self.blocks)
        self.block = self._new(self.block)
        start = self.block
        self._suite(node.body)
        inside = self.blocks[first:]
        if node.orelse is not None:
            self._suite(node.orelse.body)
        ends = [self.block]
        for handler in node.handlers:
            self.block = Block(after=list(start.after), interrupted=inside, is_live=start.is_live)
            self.blocks.append(self.block)
            self._here(handler)
            if handler.name is not None:
                self._target(handler.name.name, BindingKind.OPAQUE, handler, None)
            self._suite(handler.body)
            ends.append(self.block)
        self.block = self._new(*ends)
        if node.finalbody is not None:
            if not node.handlers:
                self.block.interrupted = inside
            self._suite(node.finalbody.body)

    def _match(self, node: cst.Match) -> None:
        self._here(node)
        before = self.block
        ends = [before]
        for case in node.cases:
            self.block = self._new(before)
            for name in _captured_names(case.pattern):
                self._bind(name, BindingKind.OPAQUE, case)
            self._here(case)
            self._suite(case.body)
            ends.append(self.block)
        self.block = self._new(*ends)


# Tables, since a pattern that does not match costs a call into `abc`, and every statement comes by here.
_COMPOUND: dict[type[cst.CSTNode], Callable[[_Builder, Any], None]] = {
    cst.If: _Builder._if,
    cst.For: _Builder._for,
    cst.While: _Builder._while,
    cst.With: _Builder._with,
    cst.Try: _Builder._try,
    cst.TryStar: _Builder._try,
    cst.Match: _Builder._match,
    cst.FunctionDef: _Builder._definition,
    cst.ClassDef: _Builder._definition,
}
_SMALL: dict[type[cst.CSTNode], Callable[[_Builder, Any], None]] = {
    cst.Assign: _Builder._assign,
    cst.AnnAssign: _Builder._assign_annotated,
    cst.AugAssign: _Builder._assign_augmented,
    cst.Import: _Builder._import,
    cst.ImportFrom: _Builder._import,
    cst.Return: _Builder._return,
    cst.Raise: _Builder._raise,
    cst.Break: _Builder._break,
    cst.Continue: _Builder._continue,
    cst.Global: _Builder._declare,
    cst.Nonlocal: _Builder._declare,
    cst.Del: _Builder._delete,
    cst.Assert: _Builder._assert,
}


def _captured_names(pattern: cst.CSTNode) -> Iterator[str]:
    """The names that a ``case`` pattern binds."""
    for node in subtree(pattern):
        if isinstance(node, (cst.MatchAs, cst.MatchStar)) and node.name is not None:
            yield node.name.value
        elif isinstance(node, cst.MatchMapping) and node.rest is not None:
            yield node.rest.value


def _fits(target: cst.Tuple | cst.List, value: cst.BaseExpression | None) -> bool:
    """Whether each part of what is assigned has a name of its own: ``a, b = x, y``."""
    if type(value) is not cst.Tuple and type(value) is not cst.List:
        return False
    elements = (*target.elements, *value.elements)
    return len(target.elements) == len(value.elements) and all(type(item) is cst.Element for item in elements)


def may_come_from(start: Block, end: Block, key: str) -> bool:
    """Whether some way leads from one block to another, past no block that binds a name."""
    seen: set[int] = set()
    pending = [*end.after, *end.interrupted]
    while pending:
        block = pending.pop()
        if block is start:
            return True
        if id(block) not in seen and key not in block.bindings:
            seen.add(id(block))
            pending += [*block.after, *block.interrupted]
    return False
