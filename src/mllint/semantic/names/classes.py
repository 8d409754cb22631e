"""What the instances of a class hold: where an attribute is set and read, and which methods run when it is called.
Of a named tuple or a dataclass: which fields it has, in the order in which a call fills them.

Everything is asked through the class and its bases in the project, on every level and in every file.
"""

import enum
from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.knowledge.words import ADDING_MODULES, ADDING_PARAMETERS, SETTING
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import assigned
from mllint.semantic.names.uses import attributes, whole
from mllint.semantic.values import ClassObject, Elements, Function, Mapping, Module, Nothing, Repeated, Symbol, Tensor
from mllint.syntax.shape import string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

PLAIN_BASES = frozenset({
    "torch.nn.Module", "paddle.nn.Layer", "paddle.fluid.Layer", "paddle.fluid.dygraph.Layer",
    "paddle.fluid.dygraph.layers.Layer", "builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol",
    "pytorch_lightning.LightningModule", "lightning.LightningModule", "lightning.pytorch.LightningModule",
    "pytorch_lightning.core.LightningModule", "pytorch_lightning.core.lightning.LightningModule",
})  # fmt: skip
"""Library classes that hold nothing of their own and have no ``forward``."""

_SETTERS = ADDING_MODULES | ADDING_PARAMETERS | SETTING | {"register_buffer"}
_CREATES_PARAMETER = frozenset({"paddle.create_parameter", "paddle.static.create_parameter"})


class Role(enum.Enum):
    """What an assignment makes of an attribute of a module."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    SUBMODULE = "submodule"
    CONTAINER = "container"
    """A list, tuple or dict."""
    TENSOR = "tensor"
    """A tensor that is neither parameter nor buffer."""


class Assignment(msgspec.Struct, frozen=True):
    """One place that sets an attribute of the instances.

    ``node`` is the statement, or the call of ``setattr``, ``register_buffer`` and their like, named in ``setter``.
    ``value`` is the expression that is assigned as a whole, ``None`` where it is only unpacked or changed. ``method``
    is ``None`` in the body of the class.
    """

    model: "Model"
    method: "FunctionInfo | None"
    node: cst.CSTNode
    value: cst.BaseExpression | None
    setter: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it declares the attribute, or sets it to ``None``."""
        if self.value is None:
            return isinstance(self.node, cst.AnnAssign)
        return isinstance(self.model.value(self.value), Nothing)

    @property
    def is_conditional(self) -> bool:
        """Whether it may not run, or run more than once, when its method is called."""
        kinds = (cst.If, cst.For, cst.While, cst.Try, cst.Match, cst.IfExp, cst.FunctionDef, cst.Lambda)
        for ancestor in self.model.tree.ancestors(self.node):
            if self.method is not None and ancestor is self.method.node:
                return False
            if isinstance(ancestor, kinds):
                return True
        return False

    @property
    def role(self) -> Role | None:
        """What becomes of the attribute; ``None`` when that is not certain."""
        if self.setter == "register_buffer":
            return Role.BUFFER
        value = None if self.value is None else self.model.value(self.value)
        if self.setter in ADDING_PARAMETERS or (self.value is not None and makes_parameter(self.model, self.value)):
            return Role.PARAMETER
        match value:
            case Module():
                return Role.SUBMODULE
            case Tensor():
                return Role.PARAMETER if value.parameter else Role.TENSOR
            case Elements() | Repeated() | Mapping():
                return Role.CONTAINER
        return Role.SUBMODULE if self.setter in ADDING_MODULES else None


class Read(NamedTuple):
    """One place that reads an attribute of the instances, and the method in which it stands."""

    node: cst.Attribute
    method: "FunctionInfo"


class Members:
    """The attributes and methods of a class as its own code, and that of its bases and subclasses, uses them."""

    def __init__(self, definition: "ClassInfo") -> None:
        self.definition = definition
        self._reachable: dict[tuple[str, ...], frozenset[FunctionInfo]] = {}
        self._families: dict[int, list[ClassInfo]] = {}

    # -- bases and methods -------------------------------------------------------------------------------------------

    @cached_property
    def has_only_plain_bases(self) -> bool:
        """Whether everything that the instances hold and do is written in the project."""
        definition = self.definition
        return not definition.has_unknown_base and all(
            name in PLAIN_BASES or name.startswith("typing.") for name in definition.library_bases
        )

    @cached_property
    def models(self) -> "tuple[Model, ...]":
        """The files in which the class and its bases are written, its own first."""
        return tuple(dict.fromkeys(info.model for info in self.definition.lineage))

    @cached_property
    def subclasses(self) -> "tuple[ClassInfo, ...]":
        """The classes of the same file that derive from it, on any level."""
        family = self.family(self.definition.model)
        return tuple(info for info in family if info is not self.definition and self.definition in info.lineage)

    def reachable(self, *starts: str) -> frozenset["FunctionInfo"]:
        """The methods that may run when one of these is called: whatever they name, by any receiver."""
        known = self._reachable.get(starts)
        if known is None:
            found: set[FunctionInfo] = set()
            pending = list(starts)
            while pending:
                name = pending.pop()
                for info in self.definition.lineage:
                    method = info.methods.get(name)
                    if method is not None and method not in found:
                        found.add(method)
                        pending += self._named_in.get(id(method.node), ())
            known = self._reachable[starts] = frozenset(found)
        return known

    @cached_property
    def setting_up(self) -> frozenset["FunctionInfo"]:
        """The methods that run while an instance is made, and not in its forward pass."""
        return self.reachable("__init__") - self.reachable("forward")

    @cached_property
    def _named_in(self) -> dict[int, set[str]]:
        """The names of methods that each method mentions as an attribute."""
        methods = {id(method.node): set[str]() for info in self.definition.lineage for method in info.methods.values()}
        names = {name for info in self.definition.lineage for name in info.methods}
        for info in self.definition.lineage:
            model, scope = info.model, info.model.scope(info.node)
            for name in (name for word in names for name in model.names_within(word, scope)):
                node = whole(model, name)
                for ancestor in () if node is name else model.tree.ancestors(node):
                    if id(ancestor) in methods:
                        methods[id(ancestor)].add(name.value)
        return methods

    # -- attributes --------------------------------------------------------------------------------------------------

    def lasting(self, name: str) -> Iterator[Assignment]:
        """The places that set ``self.name`` but those behind which the same method sets it anew, whatever happens."""
        places = list(self.assignments(name))
        for index, place in enumerate(places):
            later = (other for other in places[index + 1 :] if other.method is place.method is not None)
            if not any(isinstance(other.node, cst.Assign) and not other.is_conditional for other in later):
                yield place

    def assignments(self, name: str) -> Iterator[Assignment]:
        """Every place in the class, its bases and the subclasses in its file that sets ``self.name``."""
        for info in (*self.definition.lineage, *self.subclasses):
            for binding in info.model.scope(info.node).bindings.get(name, ()):
                yield Assignment(info.model, None, binding.node, None if binding.path else binding.value)
        for node, method in self._mentions(name):
            statement = _statement_that_sets(method.model, node)
            if statement is not None:
                value = statement.value if isinstance(statement, (cst.Assign, cst.AnnAssign)) else None
                whole = method.model.tree.parent(node)
                is_whole = isinstance(whole, (cst.AssignTarget, cst.AnnAssign))
                yield Assignment(method.model, method, statement, value if is_whole else None)
        yield from self._set_by_calls(name)

    def reads(self, name: str) -> Iterator[Read]:
        """Every place in the class, its bases and the subclasses in its file that reads ``self.name``."""
        for node, method in self._mentions(name):
            if _statement_that_sets(method.model, node) is None:
                yield Read(node, method)

    def may_be_read_elsewhere(self, name: str) -> bool:
        """Whether another file of the project may read the attribute; without a project, no other file is known."""
        paths = self.readers_elsewhere(name)
        return paths is None or bool(paths)

    def readers_elsewhere(self, name: str) -> tuple[Path, ...] | None:
        """The other files of the project that may read the attribute, by their text; ``None``: there are too many."""
        model = self.definition.model
        if model.project is None:
            return ()
        names = frozenset({info.name for info in (self.definition, *self.subclasses)})
        return model.project.mentions(model.path).readers(name, names, model.path)

    def are_used_by_a_variant(self, names: frozenset[str]) -> bool:
        """Whether the classes of another file of the project have attributes of all these names, and read them."""
        model = self.definition.model
        return model.project is not None and model.project.mentions(model.path).have_a_user(names, model.path)

    def _mentions(self, name: str) -> Iterator[tuple[cst.Attribute, "FunctionInfo"]]:
        for model in self.models:
            by_class = model.receivers.attributes(name)
            found = [mention for info in self.family(model) for mention in by_class.get(info, ())]
            yield from ((node, method) for _, node, method in sorted(found, key=itemgetter(0)))

    def family(self, model: "Model") -> "Sequence[ClassInfo]":
        """The class, its bases and what derives from it, as far as one of its files has them."""
        known = self._families.get(id(model))
        if known is None:
            every = (model.class_info(node) for node in model.tree.by_type.get(cst.ClassDef, ()))
            lineage = self.definition.lineage
            known = [info for info in every if info in lineage or self.definition in info.lineage]
            self._families[id(model)] = known
        return known

    def is_related(self, method: "FunctionInfo") -> bool:
        """Whether a method is of the class itself, of a base of it, or of a class that derives from it."""
        owner = method.owner
        return owner is not None and (owner in self.definition.lineage or self.definition in owner.lineage)

    def _set_by_calls(self, name: str) -> Iterator[Assignment]:
        for method, call, target in self._setting_calls():
            if string_literal(target.name) == name and isinstance(call.func, (cst.Name, cst.Attribute)):
                word = call.func.value if isinstance(call.func, cst.Name) else call.func.attr.value
                yield Assignment(method.model, method, call, target.value, word)

    def _setting_calls(self) -> "Iterator[tuple[FunctionInfo, cst.Call, _Target]]":
        """The calls of ``setattr``, ``add_module`` and their like on the instance itself."""
        for model in self.models:
            for word in sorted(_SETTERS):
                for call in model.calls_by_word.get(word, ()):
                    target = _set_by(call)
                    method = None if target is None else method_of_receiver(model, target.owner)
                    if target is not None and method is not None and self.is_related(method):
                        yield method, call, target

    # -- other ways to an attribute ----------------------------------------------------------------------------------

    @cached_property
    def sets_computed_names(self) -> bool:
        """Whether attributes are set, or modules registered, under names that are not literals."""
        return bool(self.set_by_computed_names)

    @cached_property
    def set_by_computed_names(self) -> "tuple[tuple[Model, cst.BaseExpression | None], ...]":
        """What is set under names that are not literals, by a call or in ``self.__dict__``, each with its file."""
        by_calls = ((method.model, target) for method, _, target in self._setting_calls())
        found = [(model, target.value) for model, target in by_calls if string_literal(target.name) is None]
        return (*found, *((model, value) for model in self.models for value in self._set_in_dict(model)))

    def _set_in_dict(self, model: "Model") -> Iterator[cst.BaseExpression]:
        """What a file puts into ``self.__dict__`` item by item."""
        for attribute in attributes(model, "__dict__"):
            item = model.tree.parent(attribute)
            target = model.tree.parent(item) if type(item) is cst.Subscript else None
            statement = model.tree.parent(target) if type(target) is cst.AssignTarget else None
            method = method_of_receiver(model, attribute.value)
            if type(statement) is cst.Assign and method is not None and self.is_related(method):
                yield statement.value

    @cached_property
    def reads_computed_names(self) -> bool:
        """Whether attributes may be read otherwise than by their name.

        So it is where ``getattr`` is given a computed name, where children are walked over, and where the instance
        itself is handed on to code that may do either.
        """
        return any(self.is_related(method) for model in self.models for method in model.receivers.let_loose)


def makes_parameter(model: "Model", node: cst.BaseExpression | None) -> bool:
    """Whether an expression surely makes a new parameter, by itself or in a function that returns nothing else."""
    if type(node) is not cst.Call:
        return False
    callee = model.value(node.func)
    if isinstance(callee, Function):
        made = callee.definition
        returned = made.scope.returns if made.is_transparent and made.is_plain else []
        return bool(returned) and all(_is_new_parameter(made.model, statement.value) for statement in returned)
    return _is_new_parameter(model, node)


def _is_new_parameter(model: "Model", node: cst.BaseExpression | None) -> bool:
    """Whether an expression is the constructor call of a parameter."""
    if type(node) is not cst.Call:
        return False
    callee = model.value(node.func)
    if isinstance(callee, Symbol):
        known = lookup.class_(callee.name)
        return callee.name in _CREATES_PARAMETER or (known is not None and known.kind == "parameter")
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "create_parameter":
        owner = model.value(node.func.value)
        return isinstance(owner, Module) and owner.framework == "paddle"
    return False


_SETTING = frozenset({cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor, cst.Del})
_DISPLAY = frozenset({cst.Element, cst.StarredElement, cst.Tuple, cst.List})


def _statement_that_sets(model: "Model", node: cst.BaseExpression) -> cst.CSTNode | None:
    """The statement that assigns, deletes or loops over an attribute as its target; ``None`` where it is read."""
    child: cst.CSTNode = node
    parent = model.tree.parent(child)
    while type(parent) in _DISPLAY:
        child, parent = parent, model.tree.parent(parent)  # type: ignore[assignment,arg-type]
    if type(parent) is cst.AssignTarget:
        return model.tree.parent(parent)
    if type(parent) in _SETTING and parent.target is child:  # type: ignore[union-attr]
        return parent
    if type(parent) is cst.AsName:
        return model.tree.nearest(parent, cst.With)
    return None


class _Target(NamedTuple):
    """Whose attribute a call sets, its name, and the value."""

    owner: cst.BaseExpression
    name: cst.BaseExpression
    value: cst.BaseExpression | None


def _set_by(call: cst.Call) -> _Target | None:
    plain = [arg.value for arg in call.args if not arg.star]
    if isinstance(call.func, cst.Name) and len(plain) == 3:
        return _Target(plain[0], plain[1], plain[2])
    if isinstance(call.func, cst.Attribute) and call.func.attr.value != "setattr" and plain:
        return _Target(call.func.value, plain[0], plain[1] if len(plain) > 1 else None)
    return None


_NAMED_TUPLES = frozenset({"collections.namedtuple", "typing.NamedTuple"})


def fields_of(model: "Model", callee: cst.BaseExpression) -> tuple[str, ...]:
    """The fields of what a call of something makes; none where it makes no record."""
    value = model.value(callee)
    if isinstance(value, ClassObject):
        return _of_class(value.definition)
    if not isinstance(callee, cst.Name):
        return ()
    scope = model.scope_of(callee)
    while scope.parent is not None and callee.value not in scope.bindings:
        scope = scope.parent
    bound = scope.bindings.get(callee.value, ())
    made = assigned(bound[0]) if len(bound) == 1 else None
    if not isinstance(made, cst.Call) or model.library_name(made.func) not in _NAMED_TUPLES or len(made.args) < 2:
        return ()
    listed = made.args[1].value
    text = string_literal(listed)
    if text is not None:
        return tuple(text.replace(",", " ").split())
    items = listed.elements if isinstance(listed, (cst.List, cst.Tuple)) else ()
    names = [string_literal(item.value) for item in items]
    return tuple(name for name in names if name is not None) if None not in names else ()


def _of_class(definition: "ClassInfo") -> tuple[str, ...]:
    """The fields that a dataclass or a class of named tuples declares; of one with bases in the project, none."""
    names = (definition.model.qualified_name(_called(item.decorator)) for item in definition.node.decorators)
    is_record = definition.library_bases == ("typing.NamedTuple",) or "dataclasses.dataclass" in names
    if not is_record or len(definition.lineage) > 1 or definition.has_unknown_base:
        return ()
    lines = (line for line in definition.node.body.body if isinstance(line, cst.SimpleStatementLine))
    return tuple(
        statement.target.value
        for line in lines
        for statement in line.body
        if isinstance(statement, cst.AnnAssign) and isinstance(statement.target, cst.Name)
    )


def _called(decorator: cst.BaseExpression) -> cst.BaseExpression:
    return decorator.func if isinstance(decorator, cst.Call) else decorator
