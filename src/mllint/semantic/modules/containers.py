"""Lists, tuples and dicts in attributes of a module: what is put into them, and where it goes from there.

A module does not look into them. What they hold is nobody's, unless it is registered or looked after elsewhere too.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.expressions.only_read import is_only_read
from mllint.semantic.modules.fresh import is_fresh, is_set_up_by
from mllint.semantic.modules.lost_parameters import parameter_inside
from mllint.semantic.modules.other_objects import from_outside
from mllint.semantic.modules.weights import builds_a_program, drops_values, has_weights, have_weights, is_constant
from mllint.semantic.names.classes import Assignment, Role, makes_parameter
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Module, Repeated
from mllint.syntax.iteration import handed_on
from mllint.syntax.shape import constant, dotted_path, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

MAX_STEPS = 12
"""How many steps a thing is followed from where it is read."""

_BUILDERS = frozenset({
    "builtins.list", "builtins.tuple", "builtins.set", "builtins.dict", "collections.OrderedDict", "builtins.sorted",
    "builtins.reversed", "collections.deque",
})  # fmt: skip
# Functions that only look at what they are given.
_LOOKING = frozenset(
    {"len", "isinstance", "print", "range", "bool", "id", "type", "str", "repr", "all", "any", "hasattr"}
)
_PUTTING = frozenset({"append", "extend", "insert", "update", "appendleft"})
_CHANGING = frozenset({"remove", "clear", "sort", "reverse", "index", "count"})
_TAKING = frozenset({"pop", "get", "items", "values", "keys", "copy", "popitem", "setdefault"})
# What gives the parameters: who does more than compute with them looks after them.
_GIVING_PARAMETERS = frozenset({"parameters", "named_parameters"})
# What somebody calls who looks after modules that are not registered.
_LOOKING_AFTER = frozenset({
    "state_dict", "load_state_dict", "set_state_dict", "train", "eval",
    "requires_grad_", "modules", "named_modules", "buffers", "zero_grad",
})  # fmt: skip
# Who moves them trains and saves them no more than before.
_MOVING = frozenset({"to", "cuda", "cpu", "half", "float"})
# Methods of a module that a class overrides to reach what is not registered.
_OF_MODULES = _LOOKING_AFTER | _GIVING_PARAMETERS | _MOVING | {"double", "_apply", "children", "sublayers"}


class Contents(msgspec.Struct):
    """What a container surely holds that ought to be registered.

    ``is_uniform``: it holds nothing else. ``is_keyed``: it is a dict; ``has_plain_keys``: whose keys are all
    identifiers. ``is_nested``: what is held lies in a container inside it.
    """

    modules: list[cst.BaseExpression] = []
    parameters: list[cst.BaseExpression] = []
    is_uniform: bool = True
    is_keyed: bool = False
    has_plain_keys: bool = True
    is_nested: bool = False
    is_grown: bool = False


class Container:
    """A list, tuple or dict that a statement assigns to an attribute of a module."""

    def __init__(self, definition: "ClassInfo", method: "FunctionInfo", name: str, value: cst.BaseExpression) -> None:
        self.definition = definition
        self.method = method
        self.model = method.model
        self.name = name
        self.value = value
        self.contents = Contents()
        self.display = self._find_display(value)
        """The display, comprehension or constructor that makes it; ``None`` when it is not known to be a container."""

    def _find_display(self, value: cst.BaseExpression) -> cst.BaseExpression | None:
        """What makes the container: the value itself, or what its local name is bound to."""
        if not isinstance(value, cst.Name):
            return value if _is_display(self.model, value) else None
        if self._is_given(value):
            return value
        begun = {id(item): item for item in self._bindings_of(value) if item.kind is not BindingKind.AUGMENTED}
        if len(begun) != 1:
            return None
        (binding,) = begun.values()
        is_local = binding.kind is BindingKind.ASSIGN and binding.scope.node is self.method.node and not binding.path
        found = binding.value if is_local else None
        return found if found is not None and _is_display(self.model, found) else None

    def _bindings_of(self, local: cst.Name) -> list[Binding]:
        """What binds a list with a local name where it is assigned, and by what it has grown: ``layers += [...]``."""
        found: list[Binding] = []
        pending: list[cst.BaseExpression] = [local]
        while pending:
            for binding in self.model.reaching(pending.pop()):
                if binding not in found:
                    found.append(binding)
                    if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.AugAssign):
                        pending.append(binding.node.target)
        return found

    # -- what is in it -----------------------------------------------------------------------------------------------

    def fill(self) -> Contents:
        """Gather what the container is made with, and what is put into it later."""
        if self.display is not None:
            self._take(self.display)
        for model, node in self._names():
            self._grow(model, node)
        for assignment in self.definition.members.assignments(self.name):
            if isinstance(assignment.node, cst.AugAssign):
                self.contents.is_grown = True
                self._take(assignment.node.value)
        for binding in self._bindings_of(self.value) if isinstance(self.value, cst.Name) else ():
            if isinstance(binding.node, cst.AugAssign):
                self.contents.is_grown = True
                self._take(binding.node.value)
        return self.contents

    def _names(self) -> Iterator[tuple["Model", cst.BaseExpression]]:
        """The places that read the container, as the attribute or as the local name."""
        for read in self.definition.members.reads(self.name):
            yield read.method.model, read.node
        if isinstance(self.value, cst.Name):
            for name in self.model.names_by_word.get(self.value.value, ()):
                is_here = name is not self.value and self.model.enclosing_function(name) is self.method.node
                if is_here and not isinstance(self.model.tree.parent(name), cst.AssignTarget):
                    yield self.model, name

    def _grow(self, model: "Model", node: cst.BaseExpression) -> None:
        parent = model.tree.parent(node)
        above = None if parent is None else model.tree.parent(parent)
        if isinstance(parent, cst.Attribute) and isinstance(above, cst.Call) and above.func is parent:
            if parent.attr.value in _PUTTING and above.args:
                self.contents.is_grown = True
                put = above.args[-1].value
                if parent.attr.value in ("extend", "update"):
                    self._take(put)
                else:
                    self._add(put)
        elif isinstance(parent, cst.Subscript) and parent.value is node and isinstance(above, cst.AssignTarget):
            statement = model.tree.parent(above)
            if isinstance(statement, cst.Assign):
                self.contents.is_grown = True
                self._note_key(parent.slice[0].slice.value if isinstance(parent.slice[0].slice, cst.Index) else None)
                self._add(statement.value)

    def _is_given(self, node: cst.Name) -> bool:
        """Whether a name is a parameter that by its annotation holds modules with weights, and ``forward`` uses them.

        A list of the same that is made here registers no more of them.
        """
        bindings, value = self.model.reaching(node), self.model.value(node)
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER or not isinstance(value, Repeated):
            return False
        if self.method.name != "__init__" or not isinstance(value.item, Module) or not have_weights(value.item):
            return False
        running = self.definition.members.reachable("forward")
        return any(read.method in running for read in self.definition.members.reads(self.name))

    def _take(self, node: cst.BaseExpression, *, nested: bool = False) -> None:
        """Add what a display, comprehension or constructor of a container holds."""
        match node:
            case cst.Name() if self._is_given(node):
                self.contents.modules.append(node)
            case cst.List() | cst.Tuple() | cst.Set():
                for element in node.elements:
                    if isinstance(element, cst.StarredElement):
                        self._take(element.value, nested=nested)
                    else:
                        self._add(element.value, nested=nested)
            case cst.ListComp() | cst.SetComp() | cst.GeneratorExp():
                self._add(node.elt, nested=nested)
            case cst.Dict():
                self.contents.is_keyed = True
                for item in node.elements:
                    if isinstance(item, cst.DictElement):
                        self._note_key(item.key)
                        self._add(item.value, nested=nested)
                    else:
                        self.contents.is_uniform = False
            case cst.DictComp():
                self.contents.is_keyed = True
                self._note_key(node.key)
                self._add(node.value, nested=nested)
            case cst.BinaryOperation():
                for side in (node.left, node.right):
                    if _is_display(self.model, side):
                        self._take(side, nested=nested)
                    elif isinstance(node.operator, cst.Add):
                        self.contents.is_uniform = False
            case cst.Call() if self.model.qualified_name(node.func) in _BUILDERS:
                self._take_arguments(node, nested)
            case _:
                self.contents.is_uniform = False

    def _take_arguments(self, call: cst.Call, nested: bool) -> None:
        if self.model.qualified_name(call.func) in ("builtins.dict", "collections.OrderedDict"):
            self.contents.is_keyed = True
            self.contents.is_uniform = not any(arg.keyword is None for arg in call.args)
        for arg in call.args:
            if arg.keyword is not None:
                self._add(arg.value, nested=nested)
            else:
                self._take(arg.value, nested=nested)

    def _note_key(self, key: cst.BaseExpression | None) -> None:
        text = string_literal(key)
        if text is None and constant(key) is not ...:
            self.contents.is_uniform = False  # a dict of modules takes strings alone
        self.contents.has_plain_keys = self.contents.has_plain_keys and text is not None and text.isidentifier()

    def _add(self, node: cst.BaseExpression, *, nested: bool = False) -> None:
        """Add one element, or what lies in it where it is a container of its own."""
        if _is_display(self.model, node) and not nested:
            self.contents.is_nested = True
            self._take(node, nested=True)
        elif isinstance(node, cst.IfExp):
            self._add(node.body, nested=nested)
            self._add(node.orelse, nested=nested)
        elif makes_parameter(self.model, node):
            self.contents.parameters.append(node)
        elif parameter_inside(self.model, node) is not None:
            self.contents.parameters.append(node)
            self.contents.is_uniform = False  # moved, say, and so no parameter by itself
        elif isinstance(self.model.value(node), Module):
            if is_fresh(self.model, node) and _matters(self.model, node):
                self.contents.modules.append(node)
            elif self._is_overwritten(node):
                self.contents.modules.append(node)
                self.contents.is_uniform = False  # the last one is registered already
        elif constant(node) is not None:
            self.contents.is_uniform = False

    def _is_overwritten(self, node: cst.BaseExpression) -> bool:
        """Whether an attribute holds each new module of a loop in turn, so that it registers the last one alone."""
        bindings = self.model.reaching(node) if isinstance(node, cst.Attribute) else ()
        if len(bindings) != 1 or bindings[0].value is None or bindings[0].path:
            return False
        value, model = bindings[0].value, self.model
        loops = (item for item in model.tree.ancestors(node) if isinstance(item, (cst.For, cst.While)))
        is_in_loop = any(model.tree.is_inside(value, loop) for loop in loops)
        return is_in_loop and is_fresh(model, value) and _matters(model, value)

    # -- where it goes -----------------------------------------------------------------------------------------------

    @property
    def is_looked_after(self) -> bool:
        """Whether what is in it may be registered otherwise, or is looked after by hand."""
        members = self.definition.members
        if builds_a_program(self.model) or (self.contents.parameters and members.may_be_read_elsewhere(self.name)):
            return True
        if self._is_deleted or any(_registers(assignment) for assignment in members.assignments(self.name)):
            return True
        if any(read.method.name in _OF_MODULES for read in members.reads(self.name)):
            return True
        if any(_Trail(self.definition, model).leads_on(node, MAX_STEPS) for model, node in self._names()):
            return True
        places = from_outside(self.definition, self.model, self.name)
        return any(_Trail(None, self.model).leads_on(node, MAX_STEPS) for node in places)

    @property
    def _is_deleted(self) -> bool:
        """Whether the method that makes it deletes the attribute again: what it held is somewhere else by then."""
        path = f"{self.method.self_name}.{self.name}"
        return any(
            dotted_path(part) == path
            for statement in self.model.tree.by_type.get(cst.Del, ())
            if self.model.enclosing_function(statement) is self.method.node
            for part in subtree(statement.target)
        )

    @property
    def is_hidden_on_purpose(self) -> bool:
        """Whether it is the list around one module by which the module is kept out of its owner's hands."""
        display = self.display
        if not isinstance(display, (cst.List, cst.Tuple)) or len(display.elements) != 1 or self.contents.is_grown:
            return False
        reads = list(self.definition.members.reads(self.name))
        parents = [(read.method.model.tree.parent(read.node), read.node) for read in reads]
        return self.name.startswith("_") or all(
            isinstance(parent, cst.Subscript) and parent.value is node for parent, node in parents
        )

    @property
    def reads(self) -> Iterator[cst.CSTNode | None]:
        """What stands around each read of the attribute."""
        for read in self.definition.members.reads(self.name):
            yield read.method.model.tree.parent(read.node)


_DISPLAYS = (cst.List, cst.Tuple, cst.Set, cst.Dict, cst.ListComp, cst.SetComp, cst.DictComp)


def _is_display(model: "Model", node: cst.BaseExpression) -> bool:
    if type(node) is cst.Call:
        return model.qualified_name(node.func) in _BUILDERS
    if type(node) is cst.BinaryOperation and type(node.operator) in (cst.Add, cst.Multiply):
        return _is_display(model, node.left) or _is_display(model, node.right)
    return type(node) in _DISPLAYS


def _matters(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a module has something to train, save, move or switch off."""
    return drops_values(model, node) or (has_weights(model, node) is True and not is_constant(model, node))


def _registers(assignment: Assignment) -> bool:
    return assignment.role in (Role.SUBMODULE, Role.PARAMETER)


class _Trail:
    """Follows a thing from where it is read."""

    def __init__(self, definition: "ClassInfo | None", model: "Model") -> None:
        self.model = model
        self.running = frozenset["FunctionInfo"]() if definition is None else definition.members.reachable("forward")
        self._seen: set[int] = set()

    def leads_on(self, node: cst.BaseExpression, steps: int) -> bool:
        """Whether the thing may come to be registered, or somebody looks after it by hand."""
        parent = self.model.tree.parent(node)
        if steps == 0 or id(node) in self._seen:
            return steps == 0
        self._seen.add(id(node))
        match parent:
            case cst.Attribute():
                return self._by_attribute(parent, steps)
            case cst.Subscript() if parent.value is node:
                return not isinstance(self.model.tree.parent(parent), cst.AssignTarget) and self.leads_on(
                    parent, steps - 1
                )
            case cst.Arg():
                return self._by_argument(parent, steps)
            case cst.For() if parent.iter is node:
                return self._by_names(parent.target, parent, steps)
            case cst.CompFor() if parent.iter is node:
                return self._by_names(parent.target, self._comprehension(parent), steps)
            case cst.Element() | cst.StarredElement():
                display = self.model.tree.parent(parent)
                return isinstance(display, cst.BaseExpression) and self.leads_on(display, steps - 1)
            case cst.BinaryOperation() | cst.BooleanOperation() | cst.IfExp() | cst.ListComp() | cst.GeneratorExp():
                return self.leads_on(parent, steps - 1)
            case cst.Assign():
                target = parent.targets[0].target
                holder = self.model.enclosing_function(parent) or self.model.tree.module
                return not isinstance(target, cst.Name) or self._by_names(target, holder, steps)
            case cst.Return() | cst.Yield() | cst.DictElement() | cst.NamedExpr():
                return not self._is_running(node)
        return False

    def _by_attribute(self, attribute: cst.Attribute, steps: int) -> bool:
        call = self.model.tree.parent(attribute)
        method = attribute.attr.value
        if not isinstance(call, cst.Call) or call.func is not attribute:
            return False
        if method in _GIVING_PARAMETERS:
            return not is_only_read(self.model, call, steps)
        if method in _MOVING or method in _TAKING:
            return self.leads_on(call, steps - 1)
        return method in _LOOKING_AFTER

    def _by_argument(self, arg: cst.Arg, steps: int) -> bool:
        call = self.model.tree.parent(arg)
        if not isinstance(call, cst.Call):
            return True
        word = (dotted_path(call.func) or "").rpartition(".")[2]
        if word == "map" and isinstance(call.args[0].value, cst.Lambda) and arg is not call.args[0]:
            taken = call.args[0].value
            named = (parameter.name for parameter in taken.params.params)
            return any(self._by_names(name, taken, steps) for name in named) or self.leads_on(call, steps - 1)
        if word in ("next", "dict") or handed_on(call, arg) is not None:
            return self.leads_on(call, steps - 1)
        if word in _PUTTING and isinstance(call.func, cst.Attribute):
            return self.leads_on(call.func.value, steps - 1)
        return not (word in _LOOKING or is_set_up_by(self.model, arg) or self._is_running(call))

    def _by_names(self, target: cst.CSTNode, holder: cst.CSTNode, steps: int) -> bool:
        """Follow the names that a target binds through the statement or function around them."""
        names = {target.value} if isinstance(target, cst.Name) else set[str]()
        if isinstance(target, (cst.Tuple, cst.List)):
            names = {element.value.value for element in target.elements if isinstance(element.value, cst.Name)}
        return any(
            self.leads_on(name, steps - 1)
            for word in sorted(names)
            for name in self.model.names_by_word.get(word, ())
            if any(ancestor is holder for ancestor in self.model.tree.ancestors(name))
        )

    def _comprehension(self, clause: cst.CompFor) -> cst.CSTNode:
        return next(item for item in self.model.tree.ancestors(clause) if isinstance(item, cst.BaseComp))

    def _is_running(self, node: cst.CSTNode) -> bool:
        """Whether a place is run by ``forward``, where nothing is registered any more."""
        function = self.model.enclosing_function(node)
        return function is not None and self.model.function_info(function) in self.running
