"""Functions and classes of the project: what they are given, what they give back, what their instances hold."""

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from mllint.knowledge import lookup
from mllint.semantic.names.scopes import Binding, BindingKind, Scope
from mllint.semantic.values import (
    Choice,
    ClassObject,
    Framework,
    Function,
    Instance,
    Module,
    Nothing,
    Symbol,
    Tensor,
    Value,
    join,
)
from mllint.syntax.shape import argument, constant, dotted_path, root_of, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.classes import Members

_REGISTERING = {
    "register_buffer": "buffer",
    "register_parameter": "parameter",
    "add_parameter": "parameter",
    "add_module": "module",
    "register_module": "module",
    "add_sublayer": "module",
}
# What a property gives for decorating the functions beside it.
_ACCESSORS = frozenset({"setter", "deleter", "getter"})
MAX_BASES = 12
"""How many levels of bases are followed."""

# Decorators that leave a function's parameters and what it returns as they are written.
_TRANSPARENT_DECORATORS = frozenset({
    "builtins.staticmethod", "builtins.classmethod", "builtins.property", "functools.wraps", "functools.lru_cache",
    "functools.cache", "functools.cached_property", "abc.abstractmethod", "typing.override", "typing.no_type_check",
    "torch.no_grad", "torch.inference_mode", "torch.enable_grad", "torch.autograd.no_grad", "torch.set_grad_enabled",
    "torch.jit.ignore", "torch.jit.export", "torch.jit.unused", "torch.jit.script", "torch.jit.script_method",
    "torch.compile", "torch.cuda.amp.autocast", "torch.autocast", "torch.amp.autocast", "torch.compiler.disable",
    "torch._dynamo.disable", "paddle.no_grad", "paddle.jit.to_static", "paddle.jit.not_to_static",
    "paddle.amp.auto_cast", "streamlit.cache", "streamlit.cache_data", "streamlit.cache_resource",
    "streamlit.experimental_memo", "streamlit.experimental_singleton",
})  # fmt: skip


class FunctionInfo:
    """A ``def`` of the project."""

    def __init__(self, node: cst.FunctionDef, model: "Model") -> None:
        self.node = node
        self.model = model

    def forget(self) -> None:
        """Drop everything that was derived."""
        self.__dict__ = {"node": self.node, "model": self.model}

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.node.name.value

    @cached_property
    def scope(self) -> Scope:
        """The scope of its body."""
        return self.model.scope(self.node)

    @cached_property
    def owner(self) -> "ClassInfo | None":
        """The class in whose body the function stands."""
        parent = self.model.tree.parent(self.node)
        holder = None if parent is None else self.model.tree.parent(parent)
        return self.model.class_info(holder) if isinstance(holder, cst.ClassDef) else None

    @cached_property
    def decorators(self) -> tuple[str | None, ...]:
        """Qualified names of the decorators, in source order; ``None`` for one that is not resolved."""
        names = []
        for decorator in self.node.decorators:
            target = decorator.decorator
            names.append(self.model.qualified_name(target.func if isinstance(target, cst.Call) else target))
        return tuple(names)

    @property
    def is_transparent(self) -> bool:
        """Whether no decorator may change what the function takes or gives."""
        return all(self.are_transparent)

    @property
    def are_transparent(self) -> tuple[bool, ...]:
        """Of each decorator whether it is known to change nothing of what the function takes or gives."""
        return tuple(name in _TRANSPARENT_DECORATORS for name in self.decorators)

    @cached_property
    def is_static(self) -> bool:
        """Whether it is a ``staticmethod``."""
        return "builtins.staticmethod" in self.decorators

    @property
    def is_property(self) -> bool:
        """Whether reading the attribute calls it, or what it sets or deletes: ``@size.setter`` stands for the whole."""
        paths = ((dotted_path(decorator.decorator) or "").split(".") for decorator in self.node.decorators)
        return self._is_getter or any(path[-2:-1] == [self.name] and path[-1] in _ACCESSORS for path in paths)

    @property
    def _is_getter(self) -> bool:
        return any(name in ("builtins.property", "functools.cached_property") for name in self.decorators)

    @cached_property
    def getter(self) -> "FunctionInfo | None":
        """What reading the attribute calls, where this is a property or its setter; ``None`` where that is not seen."""
        if self._is_getter or self.owner is None:
            return self if self._is_getter else None
        named = [item for item in _definitions(self.owner.node.body) if item.name.value == self.name]
        found = [info for info in map(self.model.function_info, named) if info._is_getter]
        return found[0] if len(found) == 1 else None

    @cached_property
    def is_plain(self) -> bool:
        """Whether calling it runs the body and gives its return value: no generator, no coroutine."""
        return self.node.asynchronous is None and not any(
            self.model.enclosing_function(node) is self.node
            for kind in (cst.Yield,)
            for node in self.model.tree.by_type.get(kind, ())
        )

    @cached_property
    def is_left_open(self) -> bool:
        """Whether it is there to be overridden: it is abstract, only raises, or does nothing."""
        if "abc.abstractmethod" in self.decorators:
            return True
        lines = [line.body if isinstance(line, cst.SimpleStatementLine) else (line,) for line in self.node.body.body]
        statements = [statement for several in lines for statement in several]
        if isinstance(statements[-1], cst.Raise):
            return not self.scope.returns
        return not any(map(self._does_something, statements))

    def _does_something(self, statement: cst.CSTNode) -> bool:
        """Whether a statement is more than ``pass``, a text, or a call that takes nothing of what the function has."""
        if not isinstance(statement, cst.Expr):
            return not isinstance(statement, cst.Pass)
        call = statement.value
        if not isinstance(call, cst.Call):
            return False
        used = (root_of(call.func), *(arg.value for arg in call.args))
        given = {parameter.name.value for parameter in self.named_parameters}
        return any(isinstance(node, cst.Name) and node.value in given for node in used)

    def names_attribute(self, *words: str) -> bool:
        """Whether an attribute of one of these names stands in its body."""
        tree = self.model.tree
        named = (tree.parent(name) for word in words for name in self.model.names_by_word.get(word, ()))
        return any(isinstance(node, cst.Attribute) and tree.is_below(node, self.node) for node in named)

    @cached_property
    def parameters(self) -> tuple[cst.Param, ...]:
        """The parameters that can be given by position, in order, ``self`` included."""
        return (*self.node.params.posonly_params, *self.node.params.params)

    @property
    def named_parameters(self) -> tuple[cst.Param, ...]:
        """The same and those that can be given by keyword only; none that takes several arguments."""
        return (*self.parameters, *self.node.params.kwonly_params)

    def is_same_as(self, other: "FunctionInfo") -> bool:
        """Whether two definitions are one, though they may come from two readings of their file."""
        return self is other or (self.name == other.name and _stand_at_one_place(self, other))

    @cached_property
    def self_name(self) -> str | None:
        """The name of the receiver, for a method."""
        if self.owner is None or self.is_static or not self.parameters:
            return None
        return self.parameters[0].name.value


class ClassInfo:
    """A ``class`` of the project."""

    def __init__(self, node: cst.ClassDef, model: "Model") -> None:
        self.node = node
        self.model = model
        self._attributes: dict[tuple[int, str], Value | None] = {}
        self.listed: dict[tuple[int, str], Value | None] = {}
        """What each item of a list of modules is, by the attribute that holds the list."""

    def forget(self) -> None:
        """Drop everything that was derived."""
        self.__dict__ = {"node": self.node, "model": self.model, "_attributes": {}, "listed": {}}

    def is_same_as(self, other: "ClassInfo") -> bool:
        """Whether two definitions are one, though they may come from two readings of their file."""
        return self is other or (self.name == other.name and _stand_at_one_place(self, other))

    @property
    def name(self) -> str:
        """The class's own name."""
        return self.node.name.value

    @cached_property
    def bases(self) -> tuple[Value | None, ...]:
        """What the bases are, in order; ``None`` for one that is not known. ``Generic[T]`` counts as ``Generic``."""
        return tuple(
            None
            if base.star
            else self.model.value(base.value.value if isinstance(base.value, cst.Subscript) else base.value)
            for base in self.node.bases
        )

    @cached_property
    def lineage(self) -> "tuple[ClassInfo, ...]":
        """This class and its project bases, nearest first (depth first, each once)."""
        found: list[ClassInfo] = []
        pending: list[ClassInfo] = [self]
        while pending and len(found) < MAX_BASES:
            current = pending.pop(0)
            if current in found:
                continue
            found.append(current)
            pending[:0] = [base.definition for base in current.bases if isinstance(base, ClassObject)]
        return tuple(found)

    @property
    def subclasses(self) -> "Iterator[ClassInfo]":
        """The classes that derive from this one, in its own file and in those that import it."""
        yield from self.members.subclasses
        for model in self.model.importers(self.name):
            for node in model.tree.by_type.get(cst.ClassDef, ()):
                info = model.class_info(node)
                if any(map(self.is_same_as, info.lineage)):
                    yield info

    @cached_property
    def library_bases(self) -> tuple[str, ...]:
        """Canonical names of the library classes it derives from, over all levels."""
        return tuple(base.name for info in self.lineage for base in info.bases if isinstance(base, Symbol))

    @cached_property
    def has_unknown_base(self) -> bool:
        """Whether some base, on any level, is neither a project class nor a name that is known, or one of several."""
        return any(base is None or isinstance(base, Choice) for info in self.lineage for base in info.bases)

    @cached_property
    def framework(self) -> Framework | None:
        """The framework whose module class it derives from; ``None`` when it is no module."""
        for name in self.library_bases:
            known = lookup.class_(name)
            if known is not None and known.kind in ("layer", "loss", "container", "rnn"):
                return "paddle" if lookup.framework_of(name) == "paddle" else "torch"
        return None

    @cached_property
    def kind(self) -> str | None:
        """The kind (optimizer, dataset, ...) of the first library base that has one."""
        for name in self.library_bases:
            known = lookup.class_(name)
            if known is not None:
                return known.kind
        return None

    @cached_property
    def is_mutable(self) -> bool:
        """Whether attributes of an instance can be assigned: it is no named tuple and no frozen dataclass."""
        if any(name in ("typing.NamedTuple", "builtins.tuple") for name in self.library_bases):
            return False
        for decorator in self.node.decorators:
            call = decorator.decorator
            frozen = argument(call, None, "frozen") if isinstance(call, cst.Call) else None
            if frozen is not None and constant(frozen.value) is not False:
                return False
        return True

    def instance(self, call: cst.Call | None = None) -> Value:
        """The value of an instance."""
        if self.framework is not None:
            return Module(self.framework, None, self, call)
        return Instance(self)

    @cached_property
    def methods(self) -> dict[str, FunctionInfo]:
        """The functions of the class body, by name; of several with one name the last."""
        return {statement.name.value: self.model.function_info(statement) for statement in _definitions(self.node.body)}

    def method(self, name: str) -> FunctionInfo | None:
        """The method of that name, from this class or the nearest project base."""
        for info in self.lineage:
            if name in info.methods:
                return info.methods[name]
        return None

    @property
    def called(self) -> FunctionInfo | None:
        """What runs when a module of the class is called: ``forward``, or a ``__call__`` that takes its place."""
        own = self.method("__call__")
        if own is None or own.is_left_open or own.names_attribute("__call__", "forward"):
            return self.method("forward")
        return own

    def attribute(self, name: str) -> Value | None:
        """What ``instance.name`` is: a method, or what all assignments to it agree on."""
        key = (id(self), name)
        try:
            return self._attributes[key]
        except KeyError:
            return self.model.derivation.once(self._attributes, key, self, lambda _: self._attribute(name))

    def _attribute(self, name: str) -> Value | None:
        method = self.method(name)
        if method is None:
            return self._assigned(name) or self._proven(name)
        if not method.is_property:
            return Function(method, self.instance())
        return None if method.getter is None else self.model.returned(method.getter)

    @cached_property
    def members(self) -> "Members":
        """Where its attributes are set and read."""
        from mllint.semantic.names.classes import Members  # which looks at classes

        return Members(self)

    def assignments(self, name: str) -> Iterator[Binding]:
        """Every place in the class and its project bases that binds ``self.name`` or ``name`` in the class body."""
        for info in self.lineage:
            yield from info.model.scope(info.node).bindings.get(name, ())
            for method in info.methods.values():
                if method.self_name is not None:
                    yield from method.scope.bindings.get(f"{method.self_name}.{name}", ())

    def lasting(self, name: str) -> Iterator[Binding]:
        """The assignments to an attribute of which something is left when the method around them has run.

        An ``__init__`` that calls methods of the object shows them what it binds anew later.
        """
        for binding in self.assignments(name):
            if binding.kind is BindingKind.NARROWED:
                continue
            if len(binding.scope.bindings[binding.key]) == 1:
                yield binding  # nothing binds it anew
                continue
            is_first = self._is_quiet_constructor(binding.scope)
            left = binding.scope.reaching_end(binding.key).bindings if is_first else ()
            if not left or binding in left or any(item.kind is BindingKind.NARROWED for item in left):
                yield binding

    def _is_quiet_constructor(self, scope: Scope) -> bool:
        """Whether the body of a function is an ``__init__`` that calls no other method of the object."""
        node = scope.node
        if node.__class__ is not cst.FunctionDef or node.name.value != "__init__":
            return False
        if id(node) not in self._quiet_constructors:
            calls = scope.model.tree.calls_in(node.body)
            named = {call.func.attr.value for call in calls if call.func.__class__ is cst.Attribute} - {"__init__"}
            self._quiet_constructors[id(node)] = all(self.method(word) is None for word in named)
        return self._quiet_constructors[id(node)]

    @cached_property
    def _quiet_constructors(self) -> dict[int, bool]:
        """Whether each ``__init__`` in its lineage calls no other method, by the id of its node."""
        return {}

    @cached_property
    def _registered(self) -> dict[str, list[cst.Call]]:
        """The calls in the class's own methods that register a parameter, buffer or module under a literal name."""
        found: dict[str, list[cst.Call]] = {}
        for word in _REGISTERING:
            for call in self.model.calls_by_word.get(word, ()):
                function = self.model.enclosing_function(call)
                if function is None or self.model.function_info(function).owner is not self:
                    continue
                name = string_literal(call.args[0].value) if len(call.args) > 1 else None
                if name is not None and isinstance(call.func, cst.Attribute):
                    found.setdefault(name, []).append(call)
        return found

    def _registrations(self, name: str) -> Iterator[Value | None]:
        """What ``self.register_buffer(name, value)`` and its like make of the attribute."""
        for info in self.lineage:
            for call in info._registered.get(name, ()):
                value = info.model.value(call.args[1].value)
                if isinstance(value, (Module, Nothing)):
                    yield value
                    continue
                assert isinstance(call.func, cst.Attribute)
                kind = _REGISTERING[call.func.attr.value]
                if kind == "module" or self.framework is None:
                    yield None
                else:
                    state = value if isinstance(value, Tensor) else Tensor(self.framework)
                    yield replace(state, parameter=kind == "parameter")

    def _proven(self, name: str) -> Value | None:
        """What the methods do with an attribute of which no assignment says what it is: ``self.net = net``."""
        assigned = [item for item in self.assignments(name) if item.kind is BindingKind.ASSIGN and not item.path]
        values = [binding.scope.model.binding_value(binding) for binding in assigned]
        if not any(value is None for value in values) or any(value not in (None, Nothing()) for value in values):
            return None
        return self.model.module_by_use(self, name)

    def _assigned(self, name: str) -> Value | None:
        result: Value | None = None
        seen = False
        for found in chain(map(self._bound, self.lasting(name)), self._registrations(name)):
            if isinstance(found, Nothing):
                continue
            value = self._declared_tensor(name) if found is None else found
            result = value if not seen else join(result, value)
            seen = True
            if result is None:
                return None
        return result

    def _bound(self, binding: Binding) -> Value | None:
        """What an assignment binds in an object of this class: ``self.net = self.build()`` of a class above calls the
        method of this one.
        """
        made, node = binding.value, binding.scope.node
        if made.__class__ is cst.Call and made.func.__class__ is cst.Attribute and node.__class__ is cst.FunctionDef:
            above = binding.scope.model.function_info(node)
            if dotted_path(made.func.value) == above.self_name and above.owner not in (self, None):
                method = self.method(made.func.attr.value)
                if method is not None and method is not above.owner.method(method.name):
                    return None if binding.path or method.is_property else method.model.returned(method)
        return binding.scope.model.binding_value(binding)

    def _declared_tensor(self, name: str) -> Tensor | None:
        """What ``name: torch.Tensor`` in the class body says of an attribute of which an assignment says nothing."""
        for info in self.lineage:
            for binding in info.model.scope(info.node).bindings.get(name, ()):
                value = info.model.binding_value(binding) if binding.kind is BindingKind.ANNOTATED else None
                if isinstance(value, Tensor):
                    return value
        return None


def _definitions(body: cst.BaseSuite) -> Iterator[cst.FunctionDef]:
    """The ``def`` statements of a class body, also under ``if`` and ``try``."""
    pending: list[cst.CSTNode] = list(body.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, cst.FunctionDef):
            yield node
        elif isinstance(node, (cst.If, cst.Try)):
            pending.extend(node.body.body)
            if node.orelse is not None and isinstance(node.orelse, cst.Else):
                pending.extend(node.orelse.body.body)


def function_around(model: "Model", node: cst.CSTNode) -> FunctionInfo | None:
    """The function in whose body (or parameter list) a node stands."""
    function = model.enclosing_function(node)
    return None if function is None else model.function_info(function)


def class_around(model: "Model", node: cst.CSTNode) -> ClassInfo | None:
    """The class in a method of which a node stands."""
    function = function_around(model, node)
    return None if function is None else function.owner


def is_receiver(info: FunctionInfo, binding: Binding) -> bool:
    """Whether a parameter binding is the receiver of a method."""
    return info.self_name == binding.key and binding.node is info.parameters[0]


def _stand_at_one_place(one: FunctionInfo | ClassInfo, other: FunctionInfo | ClassInfo) -> bool:
    """Whether two definitions are the same ``def`` or ``class`` of one file, as their places, or their names, say.

    The file may have been changed, and not been written yet: then only the names tell.
    """
    home, away = one.model, other.model
    if home is away:
        return one.node is other.node
    if home.path != away.path:
        return False
    if home.source.text == away.source.text:
        return home.tree.twin(other.node, away.tree) is one.node
    return _names_around(one) == _names_around(other)


def _names_around(info: FunctionInfo | ClassInfo) -> list[str]:
    around = info.model.tree.ancestors(info.node)
    return [holder.name.value for holder in around if isinstance(holder, (cst.FunctionDef, cst.ClassDef))]
