"""Where a thing goes from where it is read: whether it may come to be registered, or is looked after by hand."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import ADDING_MODULES, ADDING_PARAMETERS, GIVING_PARAMETERS, SETTING
from mllint.semantic.expressions.arguments import given_to
from mllint.semantic.graph.looked_at import filled_by, uses_inside
from mllint.semantic.modules.contents import PUTTING, is_display
from mllint.semantic.modules.fresh import is_set_up_by
from mllint.semantic.modules.handed_over import MAX_READERS, is_only_tested, is_operation, may_be_of
from mllint.semantic.modules.other_objects import from_outside
from mllint.semantic.names.classes import Role
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.foreign_reads import is_other_at
from mllint.semantic.names.receivers import method_of_receiver, owner_of_attribute
from mllint.semantic.names.scopes import BindingKind, assigned
from mllint.semantic.names.uses import attributes, reads, uses, uses_of_bound
from mllint.semantic.values import Function, Symbol, Tensor
from mllint.syntax.iteration import handed_on
from mllint.syntax.shape import constant, dotted_path, followed, string_literal, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

MAX_STEPS = 12
"""How many steps a thing is followed from where it is read."""

LOOKING_AFTER = frozenset({
    "state_dict", "load_state_dict", "set_state_dict", "train", "eval",
    "requires_grad_", "modules", "named_modules", "buffers", "zero_grad",
})  # fmt: skip
"""What somebody calls who looks after modules that are not registered."""
MOVING = frozenset({"to", "cuda", "cpu", "half", "float"})
"""Who moves them trains and saves them no more than before."""
# Functions that only look at what they are given.
_LOOKING = frozenset(
    {"len", "isinstance", "print", "range", "bool", "id", "type", "str", "repr", "all", "any", "hasattr", "checkpoint"}
)
# What sets an attribute of a name that is computed, or registers a parameter.
_SETTING = SETTING | ADDING_PARAMETERS
# What registers a module, in whatever method: ``self.add_module(name, self.heads[key])``.
_REGISTERING = ADDING_MODULES | SETTING
_TAKING = frozenset({"pop", "get", "items", "values", "copy", "popitem", "setdefault"})


class Trail:
    """Follows a thing from where it is read.

    ``made_in``: the method that makes it; what registers it there is not too late, though ``forward`` runs it.
    ``of_weights``: it is no module, but something that a module has; nothing matters but whether it is set as an
    attribute, under whatever name: ``setattr(self, f"weight{i}", cell.weight)``. ``of_part``: only some of several are
    meant; whoever freezes those looks after none. ``kept_as``: the attribute that holds them, of which its module asks.
    """

    def __init__(
        self,
        definition: "ClassInfo | None",
        model: "Model",
        seen: set[int] | None = None,
        *,
        made_in: "FunctionInfo | None" = None,
        of_weights: bool = False,
        of_part: bool = False,
        kept_as: str | None = None,
    ) -> None:
        self.model = model
        self.kept_as = kept_as
        self.of_weights = of_weights
        self.of_part = of_part
        running = frozenset["FunctionInfo"]() if definition is None else definition.members.reachable("forward")
        self.running = running - {made_in}
        self._seen = set[int]() if seen is None else seen

    def leads_on(self, node: cst.BaseExpression, steps: int, path: tuple[int, ...] = ()) -> bool:
        """Whether the thing may come to be registered, or somebody looks after it by hand.

        ``path`` says where its elements are in those of the expression: ``(1,)`` of ``enumerate(self.layers)``.
        """
        parent = self.model.tree.parent(node)
        if steps == 0 or id(node) in self._seen:
            return steps == 0
        self._seen.add(id(node))
        match parent:
            case cst.Attribute():
                return self._by_attribute(parent, steps, path)
            case cst.Subscript() if parent.value is node:
                return not isinstance(self.model.tree.parent(parent), cst.AssignTarget) and self._by_item(parent, steps)
            case cst.Arg():
                return self._by_argument(parent, steps, path)
            case cst.For() if parent.iter is node:
                return self._by_names(followed(parent.target, path)[0], parent, steps)
            case cst.CompFor() if parent.iter is node:
                return self._by_names(followed(parent.target, path)[0], self._comprehension(parent), steps)
            case cst.Element() | cst.StarredElement():
                display = self.model.tree.parent(parent)
                return isinstance(display, cst.BaseExpression) and self.leads_on(display, steps - 1)
            case cst.BinaryOperation() if isinstance(self.model.value(parent), Tensor):
                return False  # it computes with it
            case cst.BinaryOperation() | cst.BooleanOperation() | cst.IfExp() | cst.BaseComp():
                return self.leads_on(parent, steps - 1)
            case cst.AugAssign() if parent.value is node:
                return self._by_holder(parent.target, steps)
            case cst.Assign() | cst.AnnAssign() if parent.value is node:
                target = parent.targets[0].target if isinstance(parent, cst.Assign) else parent.target
                if not isinstance(target, cst.Name):
                    return not (self.of_weights or self._stays_plain(target, node, steps))
                holder = self.model.enclosing_function(parent) or self.model.tree.module
                return self._by_names(target, holder, steps)
            case cst.Return() if not self.of_weights:
                return not self._is_running(node) and self._by_askers(parent, steps)
            case cst.Return() | cst.Yield() | cst.DictElement() | cst.NamedExpr():
                return not (self.of_weights or self._is_running(node))
        return False

    def _by_item(self, item: cst.Subscript, steps: int) -> bool:
        """Follow one of several; some of them where a loop runs over a computed number: ``range(1, frozen + 1)``."""
        index = subscript_index(item)
        bindings = self.model.reaching(index) if isinstance(index, cst.Name) else ()
        over = bindings[0].value if len(bindings) == 1 and bindings[0].kind is BindingKind.LOOP else None
        is_range = isinstance(over, cst.Call) and dotted_path(over.func) == "range"
        if is_range and isinstance(over, cst.Call) and isinstance(over.args[-1].value, cst.BinaryOperation):
            trail = Trail(None, self.model, self._seen, of_weights=self.of_weights, of_part=True)
            trail.running = self.running
            return trail.leads_on(item, steps - 1)
        return self.leads_on(item, steps - 1)

    def _by_askers(self, returned: cst.Return, steps: int) -> bool:
        """Follow what a method or property gives out to where somebody asks for it, if anybody does."""
        info = function_around(self.model, returned)
        asked = None if info is None else askers(info)
        if info is None or asked is None:
            return True
        return any(Trail(info.owner, home, self._seen).leads_on(node, steps - 1) for home, node in asked)

    def _by_attribute(self, attribute: cst.Attribute, steps: int, path: tuple[int, ...]) -> bool:
        call = self.model.tree.call_of(attribute)
        method = attribute.attr.value
        if call is None or self.of_weights:
            is_one_of_its_own = call is None and not self.of_weights
            return is_one_of_its_own and Trail(None, self.model, of_weights=True).leads_on(attribute, steps - 1)
        if self.of_part and (method == "eval" or (method in GIVING_PARAMETERS and is_only_frozen(self.model, call))):
            return False
        if method in GIVING_PARAMETERS:
            return not is_only_read(self.model, call, steps)
        if method in MOVING or method in _TAKING:
            return self.leads_on(call, steps - 1, (1, *path) if method == "items" else path)
        return method in LOOKING_AFTER

    def _by_argument(self, arg: cst.Arg, steps: int, path: tuple[int, ...]) -> bool:
        call = self.model.tree.parent(arg)
        if not isinstance(call, cst.Call):
            return True
        word = (dotted_path(call.func) or "").rpartition(".")[2]
        if word == "map" and isinstance(call.args[0].value, cst.Lambda) and arg is not call.args[0]:
            taken = call.args[0].value
            named = (parameter.name for parameter in taken.params.params)
            return any(self._by_names(name, taken, steps) for name in named) or self.leads_on(call, steps - 1)
        if word in ("next", "dict"):
            return self.leads_on(call, steps - 1)
        place = handed_on(call, arg)
        if place is not None:
            return self.leads_on(call, steps - 1, place + path)
        if word in PUTTING and isinstance(call.func, cst.Attribute):
            return self._by_holder(call.func.value, steps)
        if self.of_weights:
            return word in _SETTING
        if is_operation(self.model, call):
            return False
        is_looked_at = word in _LOOKING or is_set_up_by(self.model, arg) or self._is_running(call)
        return word in _REGISTERING or not (is_looked_at or self._is_only_run(call, arg, steps))

    def _is_only_run(self, call: cst.Call, arg: cst.Arg, steps: int) -> bool:
        """Whether a function of the project is given the thing, and follows no way on with it."""
        callee = self.model.value(call.func)
        if self.of_weights or not isinstance(callee, Function) or not callee.definition.is_plain:
            return False
        used = uses_inside(callee.definition, call, arg, filled_by(callee))
        home = callee.definition.model
        within = self if home is self.model else Trail(None, home)
        return used is not None and not any(within.leads_on(use, steps - 1) for use in used)

    def _by_holder(self, holder: cst.BaseExpression, steps: int) -> bool:
        """Follow what the thing is put into: ``steps.append(layer)``, ``self.blocks += layers``.

        A plain list that is made here registers nothing by itself; whatever else is not known may.
        """
        if isinstance(holder, cst.Name):
            if self._is_made_here(holder):
                around = self.model.enclosing_function(holder) or self.model.tree.module
                return self._by_names(holder, around, steps)
        elif isinstance(holder, cst.Attribute):
            owner = owner_of_attribute(self.model, holder)
            if owner is not None and self._is_plain(owner, holder.attr.value):
                reads = owner.members.reads(holder.attr.value)
                return any(Trail(owner, read.method.model, self._seen).leads_on(read.node, steps - 1) for read in reads)
        return not (self.of_weights or self._is_running(holder))

    def _stays_plain(self, target: cst.BaseExpression, node: cst.BaseExpression, steps: int) -> bool:
        """Whether a new list of the things becomes an attribute of a module, which registers none, nor do its readers:
        ``self.heads = [head.to(device) for head in self.heads]``.
        """
        owner = owner_of_attribute(self.model, target) if isinstance(target, cst.Attribute) else None
        if owner is None or owner.framework is None or not is_display(self.model, node):
            return False
        name, members = target.attr.value, owner.members  # type: ignore[attr-defined]
        if name != self.kept_as and (
            members.readers_elsewhere(name) != () or any(from_outside(owner, self.model, name))
        ):
            return False
        return not any(
            Trail(owner, read.method.model, self._seen).leads_on(read.node, steps - 1) for read in members.reads(name)
        )

    def _is_made_here(self, name: cst.Name) -> bool:
        """Whether a name surely stands for a list or dict that is made where it is bound."""
        bindings = self.model.reaching(name)
        made = [assigned(item) for item in bindings if item.kind is not BindingKind.AUGMENTED]
        return bool(made) and all(value is not None and is_display(self.model, value) for value in made)

    @staticmethod
    def _is_plain(owner: "ClassInfo", name: str) -> bool:
        """Whether an attribute of a module holds a plain container and nothing else."""
        roles = [item.role for item in owner.members.assignments(name) if not isinstance(item.node, cst.AugAssign)]
        return bool(roles) and all(role is Role.CONTAINER for role in roles)

    def _by_names(self, target: cst.CSTNode, holder: cst.CSTNode, steps: int) -> bool:
        """Follow the names that a target binds through the statement or function around them."""
        names = {target.value} if isinstance(target, cst.Name) else set[str]()
        if isinstance(target, (cst.Tuple, cst.List)):
            names = {element.value.value for element in target.elements if isinstance(element.value, cst.Name)}
        named = (name for name in subtree(holder) if name.__class__ is cst.Name and name.value in names)
        return any(self.leads_on(name, steps - 1) for name in named if name is not holder)

    def _comprehension(self, clause: cst.CompFor) -> cst.CSTNode:
        return next(item for item in self.model.tree.ancestors(clause) if isinstance(item, cst.BaseComp))

    def _is_running(self, node: cst.CSTNode) -> bool:
        """Whether a place is run by ``forward``, where nothing is registered any more."""
        function = self.model.enclosing_function(node)
        return function is not None and self.model.function_info(function) in self.running


def askers(method: "FunctionInfo") -> "list[tuple[Model, cst.BaseExpression]] | None":
    """The places that get what a method or property gives, each with its file; ``None``: others may ask, too."""
    owner, is_property = method.owner, method.is_property
    if owner is None or method.name.startswith("__") or (method.node.decorators and not is_property):
        return None
    if is_property and not owner.members.has_only_plain_bases:
        return None  # a class of a package asks for what it wants its heirs to have
    members, name = owner.members, method.name
    found: list[tuple[Model, cst.Attribute]] = [(read.method.model, read.node) for read in members.reads(name)]
    paths = members.readers_elsewhere(name)
    if paths is None or len(paths) > MAX_READERS or any(_names_it(model, name) for model in members.models):
        return None
    found += [(model, node) for model in members.models for node in from_outside(owner, model, name)]
    for path in paths:
        model = owner.model.neighbour(path)
        if model is None or _names_it(model, name):
            return None
        if not is_only_tested(members, model):
            found += [(model, node) for node in attributes(model, name) if _may_ask(owner, model, node)]
    given: list[tuple[Model, cst.BaseExpression]] = []
    for home, attribute in found:
        asked = attribute if is_property else home.tree.call_of(attribute)
        if asked is None:
            return None  # the method itself is handed on
        given.append((home, asked))
    return given


def _may_ask(owner: "ClassInfo", model: "Model", node: cst.Attribute) -> bool:
    """Whether an attribute of another file may be the one of an object of a class: not what is imported by that name,
    and not one of that file's own objects.
    """
    if model.qualified_name(node) is not None:
        return False
    method = method_of_receiver(model, node.value)
    if method is not None and method.owner is not None:
        return any(info.is_same_as(owner) for info in method.owner.lineage)
    return may_be_of(owner, model, node.value) and not is_other_at(owner.members, model, node)


def _names_it(model: "Model", name: str) -> bool:
    """Whether a file has the name as a text: ``getattr(net, "branches")``."""
    return any(string_literal(text) == name for text in model.tree.by_type.get(cst.SimpleString, ()))


_COUNTING = frozenset({"len", "print", "sum", "str", "max", "min", "any", "all", "type", "id", "isinstance"})
_FREEZING = {"requires_grad": False, "trainable": False, "stop_gradient": True}
_COMPUTING = (
    cst.BinaryOperation, cst.Comparison, cst.ComparisonTarget, cst.UnaryOperation, cst.FormattedStringExpression,
)  # fmt: skip


def is_only_read(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether nobody keeps, changes or trains the parameters that an expression gives, or hands them on."""
    parent = model.tree.parent(node)
    match parent:
        case cst.For() if parent.iter is node and steps > 0:
            return all(is_only_read(model, name, steps - 1) for name in uses_of_bound(model, parent))
        case cst.CompFor() if parent.iter is node and steps > 0:
            return all(is_only_read(model, name, steps - 1) for name in _names_of(model, parent))
        case cst.Attribute() if parent.value is node:
            return _is_looked_at(model, parent)
        case cst.Arg() if steps > 0:
            return _given(model, parent, steps - 1)
    return isinstance(parent, _COMPUTING)


def is_only_frozen(model: "Model", call: cst.Call) -> bool:
    """Whether a loop over the parameters that a call gives does nothing but to switch their gradients off."""
    loop = model.tree.parent(call)
    if not isinstance(loop, cst.For) or not isinstance(loop.body, cst.IndentedBlock):
        return False
    lines = [part for line in loop.body.body for part in getattr(line, "body", (line,))]
    return all(
        isinstance(line, cst.Assign)
        and isinstance(target := line.targets[0].target, cst.Attribute)
        and target.attr.value in _FREEZING
        and constant(line.value) is _FREEZING[target.attr.value]
        for line in lines
    )


def _names_of(model: "Model", clause: cst.CompFor) -> list[cst.BaseExpression]:
    """Where a comprehension reads what a clause of it binds."""
    whole = next(item for item in model.tree.ancestors(clause) if isinstance(item, cst.BaseComp))
    target = clause.target
    parts = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else [target]
    words = [part.value for part in parts if isinstance(part, cst.Name)]
    return [
        place
        for word in words
        for place in reads(model, word)
        if any(ancestor is whole for ancestor in model.tree.ancestors(place))
    ]


def _is_looked_at(model: "Model", attribute: cst.Attribute) -> bool:
    """A shape, or a method that gives something new."""
    above = model.tree.parent(attribute)
    if isinstance(above, cst.Call) and above.func is attribute:
        fact = lookup.tensor_method(model.framework or "torch", attribute.attr.value)
        return not attribute.attr.value.endswith("_") and (fact is not None or attribute.attr.value == "endswith")
    return attribute.attr.value in ("shape", "ndim", "dtype", "name")


def _given(model: "Model", arg: cst.Arg, steps: int) -> bool:
    call = model.tree.parent(arg)
    if not isinstance(call, cst.Call):
        return False
    if handed_on(call, arg) is not None:
        return is_only_read(model, call, steps)
    callee = model.value(call.func)
    if isinstance(callee, Symbol):
        word = callee.name.removeprefix("builtins.")
        fact = None if lookup.framework_of(callee.name) is None else lookup.function(callee.name)
        return word in _COUNTING or (
            fact is not None and fact.returns in ("tensor", "scalar") and not word.endswith("_")
        )
    if isinstance(callee, Function):
        return _is_only_read_by(callee, arg, call, steps)
    return False


def _is_only_read_by(callee: Function, arg: cst.Arg, call: cst.Call, steps: int) -> bool:
    """Whether a function of the project only computes with what it is given."""
    function = callee.definition
    parameter = given_to(function, call, arg, 0 if function.self_name is None or callee.receiver is None else 1)
    if parameter is None or not function.is_plain:
        return False
    home = function.model
    bindings = [item for item in function.scope.bindings.get(parameter.name.value, ()) if item.node is parameter]
    places = [place for binding in bindings for place in uses(home, binding)]
    return all(is_only_read(home, place, steps) for place in places)
