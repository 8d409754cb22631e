"""The abstract value of an expression while a module is built; see ``parts`` for the values."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import libcst as cst
import msgspec

from mllint.semantic.construction.operators import MAX_LENGTH, binary, compared, is_same, truth
from mllint.semantic.construction.parts import UNKNOWN, Bound, Closure, Entries, Given, Items, Part
from mllint.semantic.expressions import attributes
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind, Scope
from mllint.semantic.values import ClassObject, File, Function, Symbol
from mllint.syntax.shape import constant, dotted_path, subscript_index, text_between

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

MAX_STEPS = 20_000
"""How many statements, expressions and calls one construction may take."""
MAX_DEPTH = 60
"""How deep expressions and calls may nest."""

MAX_IMPORTS = 6
"""Through how many files an imported name is followed."""

# The attributes in which a module keeps what is registered.
_TABLES = frozenset({"_parameters", "_buffers", "_modules", "_sub_layers", "__dict__"})


class TooMuchError(Exception):
    """The construction takes more steps than are allowed."""


class Frame(msgspec.Struct, eq=False):
    """The names of one function call, comprehension, or place in a file.

    ``is_running``: the statements of a function are being carried out, so that a local name that has no value yet is
    not known. ``is_certain``: what happens now surely happens. ``owner`` is the class whose method runs, ``receiver``
    its first argument.
    """

    model: "Model"
    names: dict[str, Any] = {}
    outer: "Frame | None" = None
    is_running: bool = False
    is_certain: bool = True
    owner: "ClassInfo | None" = None
    receiver: Any = UNKNOWN
    result: Any = None
    may_have_left: bool = False

    def inner(self) -> "Frame":
        """The names of a comprehension in this frame."""
        return Frame(self.model, {}, self, self.is_running, self.is_certain, self.owner, self.receiver)


class Evaluator:
    """Evaluates expressions. What a call does is up to the class that derives from it."""

    def __init__(self) -> None:
        self.steps = 0
        self.depth = 0

    def call(self, node: cst.Call, frame: Frame) -> Any:
        """What a call gives, and what it does to the parts it is given."""
        raise NotImplementedError

    def evaluate(self, node: cst.CSTNode, frame: Frame) -> Any:
        """The abstract value of an expression.

        Raises:
            TooMuchError: the construction takes too many steps.
        """
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooMuchError
        evaluator = _EVALUATORS.get(type(node))
        if evaluator is None or self.depth > MAX_DEPTH:
            return UNKNOWN
        self.depth += 1
        try:
            return evaluator(self, node, frame)
        finally:
            self.depth -= 1

    def truth(self, node: cst.BaseExpression, frame: Frame) -> bool | None:
        """Whether a condition holds; ``None`` when that is not known."""
        return truth(self.evaluate(node, frame))

    # -- names -------------------------------------------------------------------------------------------------------

    def _name(self, node: cst.Name, frame: Frame) -> Any:
        value = constant(node)
        if value is not ...:
            return value
        current: Frame | None = frame
        while current is not None:
            if node.value in current.names:
                return current.names[node.value]
            current = current.outer
        known = frame.model.value(node)
        if isinstance(known, (Symbol, ClassObject, Function, File)):
            return known
        return self._constant_of(node, frame)

    def _constant_of(self, node: cst.Name, frame: Frame) -> Any:
        """What a name stands for that is bound once, to an expression that can be evaluated."""
        scope: Scope | None = frame.model.scope_of(node)
        if scope is not None and node.value in scope.bindings:
            if frame.is_running and scope.is_function:
                return UNKNOWN
            bindings = scope.reaching(node.value, node).bindings
        else:
            while scope is not None and (scope.is_class or node.value not in scope.bindings):
                scope = scope.parent
            bindings = () if scope is None else tuple(scope.bindings[node.value])
        return self._bound(bindings[0]) if len(bindings) == 1 else UNKNOWN

    def _bound(self, binding: Binding) -> Any:
        """The value of a binding that is the only one of its name."""
        for _ in range(MAX_IMPORTS):
            if binding.kind is not BindingKind.IMPORT or not isinstance(binding.node, cst.ImportAlias):
                break
            origin = _origin(binding.scope.model, binding.node)
            if origin is None:
                return UNKNOWN
            binding = origin
        model = binding.scope.model
        if binding.kind not in (BindingKind.ASSIGN, BindingKind.ANNOTATED) or binding.path or binding.value is None:
            return UNKNOWN
        return UNKNOWN if is_changed(model, binding.key) else self.evaluate(binding.value, Frame(model))

    def class_attribute(self, definition: "ClassInfo", name: str) -> Any:
        """What the class body of a project class (or of its project bases) binds a name to."""
        for info in definition.lineage:
            bindings = info.model.scope(info.node).bindings.get(name, [])
            if bindings:
                return self._bound(bindings[0]) if len(bindings) == 1 else UNKNOWN
        return UNKNOWN

    def _attribute(self, node: cst.Attribute, frame: Frame) -> Any:
        base = self.evaluate(node.value, frame)
        name = node.attr.value
        match base:
            case Symbol() | File():
                found = attributes.attribute(frame.model, base, name)
                if isinstance(found, (Symbol, ClassObject, Function, File)):
                    return found
                return self._in_file(base, name) if isinstance(base, File) else UNKNOWN
            case ClassObject():
                method = base.definition.method(name)
                return self.class_attribute(base.definition, name) if method is None else Function(method)
            case Part() if name in _TABLES:
                base.forget()  # whoever looks into these is about to change them
            case Part():
                return self._member(base, name)
            case Items() | Entries() | str():
                return Bound(base, name)
        return UNKNOWN

    def _in_file(self, file: File, name: str) -> Any:
        bindings = file.model.scope(file.model.tree.module).bindings.get(name, [])
        return self._bound(bindings[0]) if len(bindings) == 1 else UNKNOWN

    def _member(self, part: Part, name: str) -> Any:
        found = part.member(name)
        if found is not UNKNOWN or name in part.attributes or name in part.loose:
            return found
        definition = None if part.definition is None else part.definition.method(name)
        if definition is not None and definition.is_property:
            return UNKNOWN
        if definition is None and part.definition is not None:
            shared = self.class_attribute(part.definition, name)
            if shared is not UNKNOWN:
                return shared
        return Bound(part, name, definition)

    # -- compound expressions ----------------------------------------------------------------------------------------

    def _subscript(self, node: cst.Subscript, frame: Frame) -> Any:
        base = self.evaluate(node.value, frame)
        index_node = subscript_index(node)
        if index_node is None:
            return self._slice(base, node, frame)
        index = self.evaluate(index_node, frame)
        if not isinstance(index, (int, str)):
            return UNKNOWN
        match base:
            case Items() if isinstance(index, int) and not base.is_open:
                return base.values[index] if -len(base.values) <= index < len(base.values) else UNKNOWN
            case tuple() | str() if isinstance(index, int):
                return base[index] if -len(base) <= index < len(base) else UNKNOWN
            case Entries():
                return base.values.get(index, UNKNOWN)
            case Part() if base.container is not None:
                position = index + base.length if isinstance(index, int) and index < 0 else index
                return base.member(str(position))
        return UNKNOWN

    def _slice(self, base: Any, node: cst.Subscript, frame: Frame) -> Any:
        part = node.slice[0].slice if len(node.slice) == 1 else None
        if not isinstance(part, cst.Slice) or isinstance(base, Part):
            return UNKNOWN
        ends = [None if end is None else self.evaluate(end, frame) for end in (part.lower, part.upper, part.step)]
        if not all(end is None or isinstance(end, int) for end in ends) or ends[2] == 0:
            return UNKNOWN
        if isinstance(base, Items) and not base.is_open:
            return Items(base.values[slice(*ends)])
        return base[slice(*ends)] if isinstance(base, (str, tuple)) else UNKNOWN

    def _binary(self, node: cst.BinaryOperation, frame: Frame) -> Any:
        left, right = self.evaluate(node.left, frame), self.evaluate(node.right, frame)
        return binary(node.operator, left, right)

    def _unary(self, node: cst.UnaryOperation, frame: Frame) -> Any:
        value = self.evaluate(node.expression, frame)
        if isinstance(node.operator, cst.Not):
            known = truth(value)
            return UNKNOWN if known is None else not known
        if isinstance(node.operator, cst.Minus) and isinstance(value, (int, float)):
            return -value
        return UNKNOWN

    def _boolean(self, node: cst.BooleanOperation, frame: Frame) -> Any:
        left = self.evaluate(node.left, frame)
        known = truth(left)
        if known is None:
            # Whatever the left side is, the right side may still decide what the whole is worth as a condition.
            right = truth(self.evaluate(node.right, frame))
            decided = right is (isinstance(node.operator, cst.Or))
            return right if decided and right is not None else UNKNOWN
        return left if known is isinstance(node.operator, cst.Or) else self.evaluate(node.right, frame)

    def _comparison(self, node: cst.Comparison, frame: Frame) -> Any:
        left = self.evaluate(node.left, frame)
        for part in node.comparisons:
            right = self.evaluate(part.comparator, frame)
            holds = compared(part.operator, left, right)
            if holds is not True:
                return UNKNOWN if holds is None else False
            left = right
        return True

    def _conditional(self, node: cst.IfExp, frame: Frame) -> Any:
        known = self.truth(node.test, frame)
        if known is None:
            one, other = self.evaluate(node.body, frame), self.evaluate(node.orelse, frame)
            return one if is_same(one, other) else UNKNOWN
        return self.evaluate(node.body if known else node.orelse, frame)

    def _tuple(self, node: cst.Tuple, frame: Frame) -> Any:
        items = self._elements(node.elements, frame)
        return UNKNOWN if items.is_open else tuple(items.values)

    def _list(self, node: cst.List, frame: Frame) -> Any:
        return self._elements(node.elements, frame)

    def _elements(self, elements: Any, frame: Frame) -> Items:
        found = Items()
        for element in elements:
            value = self.evaluate(element.value, frame)
            if isinstance(element, cst.StarredElement):
                items = self.iterated(value)
                found.is_open = found.is_open or items is None
                found.values += items or ()
            else:
                found.values.append(value)
        return found

    def _dict(self, node: cst.Dict, frame: Frame) -> Any:
        found = Entries()
        for element in node.elements:
            value = self.evaluate(element.value, frame)
            if isinstance(element, cst.StarredDictElement):
                found.is_open = found.is_open or not isinstance(value, Entries) or value.is_open
                found.values.update(value.values if isinstance(value, Entries) else {})
                continue
            assert isinstance(element, cst.DictElement)
            key = self.evaluate(element.key, frame)
            if isinstance(key, (str, int)):
                found.values[key] = value
            else:
                found.is_open = True
        return found

    def _formatted(self, node: cst.FormattedString, frame: Frame) -> Any:
        pieces: list[str] = []
        for part in node.parts:
            if isinstance(part, cst.FormattedStringText):
                pieces.append(text_between(part))
                continue
            assert isinstance(part, cst.FormattedStringExpression)
            value = self.evaluate(part.expression, frame)
            if not isinstance(value, (str, int)) or part.format_spec is not None or _is_converted(part):
                return UNKNOWN
            pieces.append(str(value))
        return "".join(pieces)

    def _lambda(self, node: cst.Lambda, frame: Frame) -> Any:
        return Closure(node, frame)

    def _walrus(self, node: cst.NamedExpr, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame)
        if isinstance(node.target, cst.Name):
            frame.names[node.target.value] = value if frame.is_certain else UNKNOWN
        return value

    # -- iteration ---------------------------------------------------------------------------------------------------

    def iterated(self, value: Any) -> list[Any] | None:
        """What iterating over a value yields; ``None`` when that is not known."""
        match value:
            case Items():
                return None if value.is_open else list(value.values)
            case tuple() | range():
                return list(value) if len(value) <= MAX_LENGTH else None
            case str():
                return list(value)
            case Entries():
                return None if value.is_open else list(value.values)
            case Part() if value.container is not None and not (value.is_open or value.loose):
                return list(value.children.values()) if value.container.value == "sequence" else list(value.children)
        return None

    def _comprehension(self, node: cst.ListComp | cst.GeneratorExp | cst.SetComp, frame: Frame) -> Any:
        inner = frame.inner()
        found = Items()
        for known in self._rounds(node.for_in, inner):
            found.is_open = found.is_open or not known
            if known:
                found.values.append(self.evaluate(node.elt, inner))
        return found

    def _dict_comprehension(self, node: cst.DictComp, frame: Frame) -> Any:
        inner = frame.inner()
        found = Entries()
        for known in self._rounds(node.for_in, inner):
            key = self.evaluate(node.key, inner) if known else UNKNOWN
            if isinstance(key, (str, int)):
                found.values[key] = self.evaluate(node.value, inner)
            else:
                found.is_open = True
        return found

    def _rounds(self, clause: cst.CompFor, frame: Frame) -> Iterator[bool]:
        """One ``True`` for each known round of a comprehension, with its names set; ``False``: there are others."""
        values = self.iterated(self.evaluate(clause.iter, frame))
        if values is None:
            yield False
            return
        for value in values:
            self.unpack(clause.target, value, frame)
            conditions = [self.truth(condition.test, frame) for condition in clause.ifs]
            if False in conditions:
                continue
            if None in conditions:
                yield False
            elif clause.inner_for_in is not None:
                yield from self._rounds(clause.inner_for_in, frame)
            else:
                yield True

    def unpack(self, target: cst.BaseExpression, value: Any, frame: Frame) -> None:
        """Bind the names in a target of a loop or a plain assignment; other targets are left alone."""
        if isinstance(target, cst.Name):
            frame.names[target.value] = value
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element, part in self.unpacked(target, value):
                self.unpack(element, part, frame)

    def unpacked(self, target: cst.Tuple | cst.List, value: Any) -> Iterator[tuple[cst.BaseExpression, Any]]:
        """The targets in a tuple or list, each with the part of the value that it is given."""
        values = self.iterated(value)
        starred = any(isinstance(element, cst.StarredElement) for element in target.elements)
        if values is None or starred or len(values) != len(target.elements):
            values = [UNKNOWN] * len(target.elements)
        return zip((element.value for element in target.elements), values, strict=True)

    def arguments(self, node: cst.Call, frame: Frame) -> Given:
        """The arguments of a call."""
        positional: list[Any] = []
        keywords: list[tuple[str, Any]] = []
        is_exact = True
        for arg in node.args:
            value = self.evaluate(arg.value, frame)
            if arg.star == "*":
                items = self.iterated(value)
                is_exact = is_exact and items is not None
                positional += items or ()
            elif arg.star == "**":
                is_exact = is_exact and isinstance(value, Entries) and not value.is_open
                keywords += value.values.items() if isinstance(value, Entries) else ()
            elif arg.keyword is not None:
                keywords.append((arg.keyword.value, value))
            else:
                positional.append(value)
        return Given(tuple(positional), tuple(keywords), is_exact)


def _is_converted(part: cst.FormattedStringExpression) -> bool:
    """Whether ``!r`` or the like stands behind an expression; nodes without whitespace do not say."""
    return getattr(part, "conversion", None) is not None


def _origin(model: "Model", alias: cst.ImportAlias) -> Binding | None:
    """The only binding, in a sibling file, of a name that ``from sibling import name`` imports."""
    statement = model.tree.parent(alias)
    if not isinstance(statement, cst.ImportFrom) or not isinstance(alias.name, cst.Name):
        return None
    module = dotted_path(statement.module) if statement.module is not None else ""
    target = None if module is None else model.sibling(module, len(statement.relative))
    if target is None:
        return None
    bindings = target.scope(target.tree.module).bindings.get(alias.name.value, [])
    return bindings[0] if len(bindings) == 1 else None


_CHANGES = frozenset(
    {"append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "sort", "reverse"}
)


@worked_out_once
def is_changed(model: "Model", key: str) -> bool:
    """Whether the file changes, in place, the list or dict that a name holds."""
    word = key.rpartition(".")[2]
    return any(_changes(model, name) for name in model.names_by_word.get(word, ()))


def _changes(model: "Model", name: cst.Name) -> bool:
    parent = model.tree.parent(name)
    if type(parent) is cst.Attribute:
        return parent.value is name and parent.attr.value in _CHANGES
    if type(parent) is not cst.Subscript or parent.value is not name:
        return False
    return type(model.tree.parent(parent)) in (cst.AssignTarget, cst.AugAssign, cst.Del)


_EVALUATORS: dict[type[cst.CSTNode], Callable[[Evaluator, Any, Frame], Any]] = {
    cst.Name: Evaluator._name,
    cst.Attribute: Evaluator._attribute,
    cst.Call: lambda self, node, frame: self.call(node, frame),
    cst.Subscript: Evaluator._subscript,
    cst.BinaryOperation: Evaluator._binary,
    cst.UnaryOperation: Evaluator._unary,
    cst.BooleanOperation: Evaluator._boolean,
    cst.Comparison: Evaluator._comparison,
    cst.IfExp: Evaluator._conditional,
    cst.Tuple: Evaluator._tuple,
    cst.List: Evaluator._list,
    cst.Set: Evaluator._list,
    cst.Dict: Evaluator._dict,
    cst.ListComp: Evaluator._comprehension,
    cst.GeneratorExp: Evaluator._comprehension,
    cst.SetComp: Evaluator._comprehension,
    cst.DictComp: Evaluator._dict_comprehension,
    cst.FormattedString: Evaluator._formatted,
    cst.Lambda: Evaluator._lambda,
    cst.NamedExpr: Evaluator._walrus,
    cst.Integer: lambda _, node, __: constant(node),
    cst.Float: lambda _, node, __: constant(node),
    cst.SimpleString: lambda _, node, __: _text(node),
    cst.ConcatenatedString: lambda _, node, __: _text(node),
}


def _text(node: cst.SimpleString | cst.ConcatenatedString) -> Any:
    value = constant(node)
    return value if isinstance(value, str) else UNKNOWN
