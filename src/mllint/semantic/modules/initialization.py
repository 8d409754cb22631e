"""Whether ``__init__`` of a module reaches the ``__init__`` of the framework's own class, and when."""

import enum
import itertools
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.modules.registering import (
    declares_module,
    registered_by,
    registered_in_a_branch,
    registered_on,
    registers,
    small_statements,
    uses_itself,
)
from mllint.semantic.names.conditions import leaves
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import ClassObject, Module, Symbol
from mllint.syntax.shape import dotted_path, is_super_call

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

ROOTS = frozenset({"torch.nn.Module", "paddle.nn.Layer"})
"""The classes at the root, whose ``__init__`` needs no arguments."""
_MISSPELLED = frozenset({
    "_init_", "__init_", "_init__", "__int__", "__inti__", "__ini__", "__intit__", "init__", "__init___", "___init__",
})  # fmt: skip
_KNOWN_BASES = ("torch.nn.", "paddle.nn.", "builtins.", "typing.", "abc.")
_MISSPELLED_CALLS = _MISSPELLED | {"__init", "_init", "init"}


class Form(enum.Enum):
    """What is meant to call the ``__init__`` of a base."""

    RIGHT = "right"
    UNCALLED = "uncalled"
    """``super().__init__``"""
    SUPER_UNCALLED = "super uncalled"
    """``super.__init__()``"""
    UNBOUND = "unbound"
    """``super(Net).__init__()``"""
    OTHER_CLASS = "other class"
    """``super(Other, self).__init__()``, ``super(nn.Module, self).__init__()``"""
    OTHER_OBJECT = "other object"
    """``nn.Module().__init__()``"""
    NO_OBJECT = "no object"
    """``nn.Module.__init__()``, without ``self``"""
    MISSPELLED = "misspelled"
    """``super().__init()``"""
    ELSEWHERE = "elsewhere"
    """The ``__init__`` of a class that is no module."""


class Mention(NamedTuple):
    """One ``X.__init__`` in the methods of a class, and what it comes to."""

    attribute: cst.Attribute
    form: Form


class Late(NamedTuple):
    """A call of the base's ``__init__`` behind a line of the body that needs it."""

    call: cst.Call
    needs: str
    """The attribute that is set too early, or the method of the module that is called too early."""


def mentions(definition: "ClassInfo") -> list[Mention]:
    """Every ``X.__init__`` in the methods of the class itself, in source order; or else what was meant for one."""
    found = [Mention(attribute, _form(definition, attribute)) for attribute in _initializers(definition)]
    return found or [Mention(attribute, Form.MISSPELLED) for attribute in _misspelled_calls(definition)]


def _is_of_framework_alone(definition: "ClassInfo") -> bool:
    """Whether all that a class inherits is written in the project or in the framework."""
    return not definition.has_unknown_base and all(name.startswith(_KNOWN_BASES) for name in definition.library_bases)


def _misspelled_calls(definition: "ClassInfo") -> list[cst.Attribute]:
    """The calls of ``super().__init()`` and its like in ``__init__`` of a class: no base of it has such a method."""
    model, method = definition.model, definition.methods.get("__init__")
    words = [word for word in sorted(_MISSPELLED_CALLS) if word in model.calls_by_word]
    if method is None or not words or not _is_of_framework_alone(definition):
        return []
    calls = (call for word in words if definition.method(word) is None for call in model.calls_by_word[word])
    named = (call.func for call in calls if model.enclosing_function(call) is method.node)
    return [
        name
        for name in named
        if isinstance(name, cst.Attribute) and isinstance(name.value, cst.Call) and is_super_call(name.value)
    ]


def _initializers(definition: "ClassInfo") -> list[cst.Attribute]:
    """The mentions of ``__init__`` in a class itself."""
    return _initializers_by_class(definition.model).get(id(definition.node), [])


@worked_out_once
def _initializers_by_class(model: "Model") -> dict[int, list[cst.Attribute]]:
    found: dict[int, list[cst.Attribute]] = {}
    for attribute in attributes(model, "__init__"):
        found.setdefault(id(model.tree.nearest(attribute, cst.ClassDef)), []).append(attribute)
    return found


def _form(definition: "ClassInfo", attribute: cst.Attribute) -> Form:
    model = definition.model
    receiver, parent = attribute.value, model.tree.parent(attribute)
    if isinstance(parent, cst.Expr):
        return Form.UNCALLED
    if isinstance(receiver, cst.Call):
        if _is_builtin_super(model, receiver.func):
            return _form_of_super(definition, receiver)
        return Form.OTHER_OBJECT if isinstance(model.value(receiver), Module) else Form.RIGHT
    if _is_builtin_super(model, receiver):
        return Form.SUPER_UNCALLED
    match model.value(receiver):
        case ClassObject(other) if not other.has_unknown_base and not _initializes(other):
            return Form.ELSEWHERE
        case Symbol("builtins.object"):
            return Form.ELSEWHERE
        case ClassObject(other) if _takes_self(other) and _is_given_nothing(parent, attribute):
            return Form.NO_OBJECT
        case Symbol(name) if name in ROOTS and _is_given_nothing(parent, attribute):
            return Form.NO_OBJECT
    return Form.RIGHT


def _is_given_nothing(call: cst.CSTNode | None, attribute: cst.Attribute) -> bool:
    """Whether a call of ``__init__`` has no argument, ``self`` neither."""
    return isinstance(call, cst.Call) and call.func is attribute and not call.args


def _takes_self(definition: "ClassInfo") -> bool:
    """Whether ``__init__`` of a class is an ordinary method of the project, or that of a class of the framework."""
    method = definition.method("__init__")
    return method.self_name is not None if method is not None else next_initializer(definition) in ROOTS


def _form_of_super(definition: "ClassInfo", call: cst.Call) -> Form:
    if len(call.args) == 1 and not call.args[0].star:
        return Form.UNBOUND
    named = definition.model.value(call.args[0].value) if len(call.args) == 2 else None
    if isinstance(named, Symbol) and named.name in ROOTS:
        return Form.OTHER_CLASS  # the search begins behind the framework's own class
    if isinstance(named, ClassObject) and named.definition not in definition.lineage:
        # In a mixin the instance may be one of a class that derives from both.
        known = not definition.has_unknown_base and definition.framework is not None
        return Form.OTHER_CLASS if known and named.definition.name != definition.name else Form.RIGHT
    return Form.RIGHT


def _initializes(definition: "ClassInfo") -> bool:
    """Whether ``__init__`` of a class may reach the ``__init__`` of a module."""
    method = definition.method("__init__")
    if method is None or method.owner is None:
        return definition.framework is not None
    return method.owner.has_unknown_base or bool(_initializers(method.owner))


def next_initializer(definition: "ClassInfo") -> "FunctionInfo | str | None":
    """What ``super().__init__`` is in a class: a method of the project, the name of a library class, or not known."""
    for base in definition.bases:
        match base:
            case ClassObject(other):
                if "__init__" in other.methods:
                    return other.methods["__init__"]
                above = next_initializer(other)
                if above is not None and above != "builtins.object":
                    return above
                if other.has_unknown_base:
                    return None
            case Symbol(name) if lookup.class_(name) is not None:
                return name
            case Symbol(name) if name == "builtins.object" or name.startswith(("abc.", "typing.")):
                continue
            case _:
                return None
    return "builtins.object"


def ends_in_mixin(definition: "ClassInfo") -> "FunctionInfo | None":
    """The ``__init__`` at which ``super().__init__()`` of a module ends without having reached the framework's."""
    target = next_initializer(definition)
    if target is None or isinstance(target, str) or target.owner is None or target.owner.framework is not None:
        return None
    owner = target.owner
    calls_on = bool(_initializers(owner)) or any(
        owner.model.tree.is_below(name, owner.node) for name in owner.model.names_by_word.get("super", ())
    )
    return None if owner.has_unknown_base or calls_on else target


def makes_its_base(definition: "ClassInfo") -> bool:
    """Whether a class has no ``forward`` of its own, and makes objects of the module class from which it derives.

    So does a builder, which is no module itself, and has the base for its type alone.
    """
    model = definition.model
    makers = [method for name, method in definition.methods.items() if name != "__init__"]
    if any(name in definition.methods for name in ("forward", "__call__")):
        return False
    made = (model.value(call.func) for method in makers for call in model.tree.calls_in(method.node))
    bases = [info for info in definition.lineage if info is not definition and info.framework is not None]
    return any(isinstance(value, ClassObject) and any(map(value.definition.is_same_as, bases)) for value in made)


def needs_no_arguments(definition: "ClassInfo") -> bool:
    """Whether ``super().__init__()`` without arguments surely fits the next class, and gets to the framework's."""
    target = next_initializer(definition)
    if target is None or isinstance(target, str):
        return target in ROOTS
    if ends_in_mixin(definition) is not None:
        return False
    required = [parameter for parameter in target.parameters[1:] if parameter.default is None]
    keywords = [parameter for parameter in target.node.params.kwonly_params if parameter.default is None]
    return not required and not keywords


def misspelled(definition: "ClassInfo") -> "list[FunctionInfo]":
    """The methods of a class that were meant to be ``__init__``, by what they call or by what they keep."""
    found = [definition.methods[name] for name in sorted(_MISSPELLED & definition.methods.keys())]
    calls_on = bool(found) and bool(mentions(definition))
    return [method for method in found if calls_on or _is_meant_as_constructor(definition, method)]


def _is_meant_as_constructor(definition: "ClassInfo", method: "FunctionInfo") -> bool:
    """Whether a method of nearly that name, which calls no ``__init__`` itself, was surely meant to be ``__init__``.

    It is given something, keeps it in attributes that another method reads, and nobody mentions it.
    """
    model, members = definition.model, definition.members
    if len(method.parameters) < 2 or method.self_name is None or method.decorators:
        return False
    named = (model.tree.parent(word) for word in model.names_by_word.get(method.name, ()))
    if not all(isinstance(item, cst.FunctionDef) for item in named) or members.may_be_read_elsewhere(method.name):
        return False
    begin = f"{method.self_name}."
    kept = [key.removeprefix(begin) for key in method.scope.bindings if key.startswith(begin) and key.count(".") == 1]
    return any(read.method is not method for name in kept for read in members.reads(name))


# -- what needs it -----------------------------------------------------------------------------------------------------


def needs_it(definition: "ClassInfo", method: "FunctionInfo") -> bool:
    """Whether the tables of the module are used: a method registers something, or there is a ``forward`` to call.

    Also one that it inherits from a layer. A class that only calls itself a module goes without, and one that is yet to
    be written.
    """
    forward = definition.method("forward")
    if all(item.is_left_open for item in definition.methods.values()):
        return False
    if forward is not None and forward.is_left_open and not any(definition.subclasses):
        # A module may have other methods to call.
        written = (
            item for name, item in definition.methods.items() if not name.startswith("__") and item is not forward
        )
        return not all(item.is_left_open for item in written) and registers(definition, method)
    if (forward is not None or _is_of_layer(definition)) and definition.method("__call__") is None:
        return True
    if registers(definition, method) or declares_module(definition, method) or uses_itself(definition, method):
        return True
    return any(_relies_on_it(info, definition) for info in definition.subclasses)


def _is_of_layer(definition: "ClassInfo") -> bool:
    """Whether a class derives from a layer, a loss or a container: what it inherits uses the tables."""
    of_framework = (name for name in definition.library_bases if name.startswith(("torch.nn.", "paddle.nn.")))
    known = [lookup.class_(name) for name in of_framework if name not in ROOTS]
    return any(fact is not None and fact.kind in ("layer", "loss", "rnn", "container") for fact in known)


def _relies_on_it(info: "ClassInfo", definition: "ClassInfo") -> bool:
    """Whether a class is used as a module, and initialized by nothing but ``__init__`` of a class that it derives from.

    That is one with a ``forward`` to call, or that registers something. No class in between has another base.
    """
    own, above = info.methods.get("__init__"), next_initializer(info)
    if above is None or isinstance(above, str) or above.owner is None or not above.owner.is_same_as(definition):
        return False
    between = info.lineage[: info.lineage.index(above.owner)] if above.owner in info.lineage else ()
    if not between or any(len(item.bases) != 1 for item in between):
        return False
    is_called = "forward" in info.methods and "__call__" not in info.methods
    if own is None:
        return is_called
    calls = [item for item in mentions(info) if item.form is Form.RIGHT]
    is_passed_on = bool(calls) and all(is_super(info.model, item) for item in calls)
    is_module = is_called or registers(info, own)
    return is_module and is_passed_on and not may_be_initialized_otherwise(info, own)


def may_be_initialized_otherwise(definition: "ClassInfo", method: "FunctionInfo") -> bool:
    """Whether the module may be made ready by something that names no ``__init__``, or is not meant to be made."""
    if any(len(info.bases) > 1 for info in definition.members.subclasses):
        return True  # it is one of several bases: what derives from them initializes the module
    if any(definition.method(name) for name in ("__new__", "__setattr__", "__getattribute__")):
        return True
    answers = definition.method("__getattr__")  # which an assignment does not ask
    sets_parts = answers is not None and registers(definition, method, cst.Assign)
    if answers is not None and not (sets_parts or _has_no_tables(definition, method, answers)):
        return True
    if any(_is_own_metaclass(info, keyword) for info in definition.lineage for keyword in info.node.keywords):
        return True
    return _raises_always(method.node.body) or _hands_on(definition, method)


def _has_no_tables(definition: "ClassInfo", method: "FunctionInfo", answers: "FunctionInfo") -> bool:
    """Whether ``__getattr__`` of a class has nowhere to get the tables from: it asks ``super()``, or what ``__init__``
    sets as an attribute.

    Were that a module, with tables of its own, it could not be set: only the base's ``__init__`` makes it possible.
    """
    model, word = answers.model, answers.parameters[-1].name.value if answers.parameters else ""

    def is_set(path: str) -> bool:
        receiver, _, name = path.partition(".")
        places = definition.members.assignments(name) if receiver == answers.self_name else ()
        return any(place.method is method and isinstance(place.node, cst.Assign) for place in places)

    def is_empty(node: cst.BaseExpression | None) -> bool:
        if not isinstance(node, cst.Call) or node.args[-1:] == () or dotted_path(node.args[-1].value) != word:
            return False
        if isinstance(node.func, cst.Attribute):
            base = node.func.value
            return node.func.attr.value == "__getattr__" and isinstance(base, cst.Call) and is_super_call(base)
        is_plain = model.qualified_name(node.func) == "builtins.getattr" and len(node.args) == 2
        return is_plain and is_set(dotted_path(node.args[0].value) or "")

    returned = [statement.value for statement in answers.scope.returns]
    return bool(returned) and leaves(answers.node.body) and all(map(is_empty, returned))


def _is_own_metaclass(definition: "ClassInfo", keyword: cst.Arg) -> bool:
    return definition.model.qualified_name(keyword.value) not in ("abc.ABCMeta", "builtins.type")


def _raises_always(body: cst.BaseSuite) -> bool:
    return any(isinstance(part, cst.Raise) for line in body.body for part in small_statements(line))


def _hands_on(definition: "ClassInfo", method: "FunctionInfo") -> bool:
    """Whether ``__init__`` gives the instance away, writes its ``__dict__``, or calls a method that initializes it.

    That is too late where it has registered something.
    """
    model = definition.model
    if method.self_name is None:
        return True
    early = list(itertools.takewhile(lambda line: not registered_on(definition, method, line), method.node.body.body))
    for name in model.names_by_word.get(method.self_name, ()):
        is_early = any(model.tree.is_inside(name, line) for line in early)
        if not is_early or method_of_receiver(model, name) is not method:
            continue
        parent = model.tree.parent(name)
        if isinstance(parent, cst.Attribute):
            target = definition.method(parent.attr.value)
            if parent.attr.value == "__dict__" or (target is not None and _mentions_init(target)):
                return True
        elif isinstance(parent, cst.Arg) and not _looks_only(model, parent):
            return True
    return False


def _mentions_init(method: "FunctionInfo") -> bool:
    names = method.model.names_by_word.get("__init__", ())
    return any(method.model.tree.is_below(name, method.node) for name in names if name is not method.node.name)


_LOOKING = ("super", "isinstance", "hasattr", "getattr", "setattr", "print", "type", "id", "len", "repr", "str")


def _looks_only(model: "Model", arg: cst.Arg) -> bool:
    call = model.tree.parent(arg)
    path = (dotted_path(call.func) if isinstance(call, cst.Call) else None) or ""
    return path.endswith(".__init__") or path in _LOOKING


def called_late(definition: "ClassInfo", method: "FunctionInfo", right: list[Mention]) -> Late | None:
    """The base's ``__init__`` called, in the body of ``__init__``, behind a line that registers something."""
    model = definition.model
    calls = {id(mention.attribute) for mention in right}
    needs: str | None = None
    for line in method.node.body.body:
        for part in small_statements(line):
            call = part.value if isinstance(part, cst.Expr) else None
            if isinstance(call, cst.Call) and id(call.func) in calls:
                return None if needs is None else Late(call, needs)
            needs = needs or registered_by(definition, method, part)
        if needs is None and isinstance(line, cst.If):
            needs = registered_in_a_branch(definition, method, line)
        if any(model.tree.is_inside(mention.attribute, line) for mention in right):
            return None  # it stands under `if`, `with` or `try`
    return None


def is_given_self(definition: "ClassInfo", mention: Mention) -> bool:
    """Whether ``super().__init__(self)`` hands the receiver to the framework's class a second time."""
    model = definition.model
    call = model.tree.parent(mention.attribute)
    if not isinstance(call, cst.Call) or len(call.args) != 1 or not is_super(model, mention):
        return False
    given = call.args[0]
    is_plain = not given.star and given.keyword is None and next_initializer(definition) in ROOTS
    return is_plain and method_of_receiver(model, given.value) is not None


def is_super(model: "Model", mention: Mention) -> bool:
    """Whether it is the ``__init__`` of ``super()``."""
    receiver = mention.attribute.value
    return isinstance(receiver, cst.Call) and _is_builtin_super(model, receiver.func)


def _is_builtin_super(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is the function ``super``. A file that only calls what has that name does not bind it."""
    is_named = type(node) is cst.Name and node.value == "super"
    return (is_named and _only_calls_super(model)) or model.qualified_name(node) == "builtins.super"


@worked_out_once
def _only_calls_super(model: "Model") -> bool:
    return all(type(model.tree.parent(name)) is cst.Call for name in model.names_by_word.get("super", ()))
