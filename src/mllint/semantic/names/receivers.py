"""Whose receiver a name is: ``self`` in a method, or in a function inside one; and where it is given away."""

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.uses import attributes
from mllint.semantic.values import Function
from mllint.syntax.shape import dotted_path, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Methods of a module through which everything in it can be reached, and the tables behind them.
_WALKS = frozenset({
    "children", "modules", "named_children", "named_modules", "sublayers", "named_sublayers", "get_submodule",
    "_modules", "_sub_layers", "_parameters", "_buffers", "__dict__", "__getattr__", "__getattribute__",
})  # fmt: skip
# Functions that look at an object and leave it alone.
_LOOKS = frozenset({"super", "isinstance", "hasattr", "type", "id", "print", "repr", "str", "callable", "len"})


class Mention(NamedTuple):
    """An attribute of an instance as a method names it; ``place`` counts all attributes of that name in the file."""

    place: int
    node: cst.Attribute
    method: "FunctionInfo"


class Receivers:
    """The names of a file that stand for the instance whose method runs."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self._methods: dict[int, FunctionInfo | None] = {}
        self._attributes: dict[str, tuple[dict[ClassInfo, list[Mention]], list[cst.Attribute]]] = {}

    def attributes(self, name: str) -> "dict[ClassInfo, list[Mention]]":
        """Where the file names ``self.name``, by the class whose instance that is.

        A file may have very many classes with attributes of one name: nobody goes through those of all the others.
        """
        return self._sorted(name)[0]

    def attributes_of_others(self, name: str) -> list[cst.Attribute]:
        """Where the file names an attribute of that name of anything but the instance whose method runs."""
        return self._sorted(name)[1]

    def _sorted(self, name: str) -> "tuple[dict[ClassInfo, list[Mention]], list[cst.Attribute]]":
        known = self._attributes.get(name)
        if known is None:
            known = own, others = self._attributes[name] = ({}, [])
            for place, node in enumerate(attributes(self.model, name)):
                method = self.method_of(node.value)
                if method is None:
                    others.append(node)
                elif method.owner is not None:
                    own.setdefault(method.owner, []).append(Mention(place, node, method))
        return known

    def method_of(self, node: cst.CSTNode) -> "FunctionInfo | None":
        """The method whose receiver a name is there, in the method itself or in a function inside it."""
        if node.__class__ is not cst.Name or node.value not in self._words:
            return None
        key = id(node)
        if key not in self._methods:
            self._methods[key] = self._find(node.value, node)
        return self._methods[key]

    def _find(self, word: str, node: cst.CSTNode) -> "FunctionInfo | None":
        scope = self.model.scope_of(node)
        while scope.parent is not None and isinstance(scope.node, cst.FunctionDef):
            info = self.model.function_info(scope.node)
            if info.self_name == word:
                return None if "builtins.classmethod" in info.decorators else info
            if any(parameter.name.value == word for parameter in info.parameters):
                return None
            scope = scope.parent
        return None

    @cached_property
    def _words(self) -> frozenset[str]:
        """What the file calls the first parameters of its methods."""
        words: set[str] = set()
        for definition in self.model.tree.by_type.get(cst.ClassDef, ()):
            for info in self.model.class_info(definition).methods.values():
                if info.parameters:
                    words.add(info.parameters[0].name.value)
        return frozenset(words)

    @cached_property
    def let_loose(self) -> "tuple[FunctionInfo, ...]":
        """The methods in which the instance may be used otherwise than by the names of its attributes."""
        found: dict[FunctionInfo, None] = {}
        for word in sorted(self._words):
            for name in self.model.names_by_word.get(word, ()):
                method = self.method_of(name) if _may_reach_all(self.model, name) else None
                if method is not None:
                    found[method] = None
        return tuple(found)


def method_of_receiver(model: "Model", node: cst.CSTNode) -> "FunctionInfo | None":
    """The method whose receiver a name is there, in the method itself or in a function inside it."""
    return model.receivers.method_of(node)


def owner_of_attribute(model: "Model", node: cst.CSTNode) -> "ClassInfo | None":
    """The class of ``self`` in ``self.net``, which an expression is; ``None`` for every other one."""
    method = method_of_receiver(model, node.value) if isinstance(node, cst.Attribute) else None
    return None if method is None else method.owner


def _may_reach_all(model: "Model", name: cst.Name) -> bool:
    """Whether one use of a receiver may lead to attributes that it does not name."""
    parent = model.tree.parent(name)
    if type(parent) is cst.Attribute:
        return parent.attr.value in _WALKS and not _only_visits(model, parent)
    if type(parent) is cst.Param and parent.name is name:
        return False  # of a method of a class that stands in this one's method
    if type(parent) is not cst.Arg:
        # Called, compared, returned: whoever gets it reads attributes by their names.
        return type(parent) not in (cst.Call, cst.Comparison, cst.ComparisonTarget, cst.Return, cst.Assign)
    call = model.tree.parent(parent)
    word = (dotted_path(call.func) or "").rpartition(".")[2] if isinstance(call, cst.Call) else ""
    if not isinstance(call, cst.Call):
        return True
    if word in ("getattr", "setattr", "delattr"):
        return len(call.args) < 2 or string_literal(call.args[1].value) is None
    # `Base.forward(self, x)` runs a method that is looked at like all others.
    by_class = isinstance(call.func, cst.Attribute) and _names_class(model, call.func.value)
    return not (word in _LOOKS or "init" in word.lower() or by_class)


def _only_visits(model: "Model", walk: cst.Attribute) -> bool:
    """Whether ``self.modules()`` and its like are looped over to set up each module, and none is called or kept."""
    call = model.tree.parent(walk)
    loop = None if call is None else model.tree.parent(call)
    if not isinstance(loop, cst.For) or loop.iter is not call:
        return False
    target = loop.target
    parts = [target] if isinstance(target, cst.Name) else [element.value for element in getattr(target, "elements", ())]
    names = {part.value for part in parts if isinstance(part, cst.Name)}
    return len(names) == len(parts) and all(
        _only_sets_up(model, name)
        for word in sorted(names)
        for name in model.names_by_word.get(word, ())
        if model.tree.is_below(name, loop.body)
    )


def _only_sets_up(model: "Model", name: cst.Name) -> bool:
    """Whether one use of a module in a loop reads something of it, or asks what it is."""
    parent = model.tree.parent(name)
    if isinstance(parent, cst.Attribute):
        return parent.value is name and parent.attr.value != "forward"
    if isinstance(parent, cst.Arg):
        call = model.tree.parent(parent)
        word = (dotted_path(call.func) or "").rpartition(".")[2] if isinstance(call, cst.Call) else ""
        return word in _LOOKS or "init" in word.lower()
    return isinstance(parent, (cst.Comparison, cst.ComparisonTarget, cst.FormattedStringExpression))


def _names_class(model: "Model", node: cst.BaseExpression) -> bool:
    path = dotted_path(node)
    return path is not None and path.rpartition(".")[2][:1].isupper() and method_of_receiver(model, node) is None


def making_methods(definition: ClassInfo) -> list[FunctionInfo]:
    """The methods by which a class, and the classes it derives from, make their parts."""
    making = ((info, constructing(info)) for info in definition.lineage)
    return [method for info, names in making for name, method in info.methods.items() if name in names]


def constructing(info: ClassInfo) -> frozenset[str]:
    """The methods that make the parts of a class: ``__init__``, and what it calls of the class itself."""
    names = {"__init__"}
    pending = ["__init__"]
    while pending:
        method = info.methods.get(pending.pop())
        for call in info.model.tree.calls_in(method.node.body) if method is not None else ():
            called = info.model.value(call.func)
            if isinstance(called, Function) and is_own_method(called, info) and called.definition.name not in names:
                names.add(called.definition.name)
                pending.append(called.definition.name)
    return frozenset(names)


def is_own_method(called: Function, holder: ClassInfo | FunctionInfo) -> bool:
    """Whether a class calls a method of its own: its text is looked at with that of the class."""
    return isinstance(holder, ClassInfo) and called.definition.owner in holder.lineage
