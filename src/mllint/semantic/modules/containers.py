"""Lists, tuples and dicts in attributes of a module: where what they hold goes from there.

A module does not look into them. What they hold is nobody's, unless it is registered or looked after elsewhere too.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import ADDING_MODULES, ADDING_PARAMETERS, GIVING_PARAMETERS, SETTING
from mllint.semantic.expressions.arguments import passed_anywhere, passed_for
from mllint.semantic.expressions.only_read import is_only_frozen, is_only_read
from mllint.semantic.graph.looked_at import filled_by, uses_inside
from mllint.semantic.modules.contents import PUTTING, Contents, Filling, display_of, is_display, maker_of, mentions_of
from mllint.semantic.modules.fresh import is_set_up_by
from mllint.semantic.modules.handed_over import is_given_on_elsewhere
from mllint.semantic.modules.other_objects import from_outside
from mllint.semantic.modules.weights import builds_a_program, may_bring_weights
from mllint.semantic.names.classes import Assignment, Role
from mllint.semantic.names.conditions import is_in_another_branch
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Function, Module, Repeated
from mllint.syntax.iteration import handed_on
from mllint.syntax.shape import dotted_path, followed, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

MAX_STEPS = 12
"""How many steps a thing is followed from where it is read."""

# Functions that only look at what they are given.
_LOOKING = frozenset(
    {"len", "isinstance", "print", "range", "bool", "id", "type", "str", "repr", "all", "any", "hasattr", "checkpoint"}
)
# What lists and dicts of modules can do as well as the plain ones, and what can be done with them.
_OF_LISTS = frozenset({"append", "extend", "insert", "items", "keys", "values", "update", "pop"})
_ABOUT_LISTS = (cst.Subscript, cst.For, cst.CompFor, cst.Arg, cst.ComparisonTarget, cst.AugAssign)
# What sets an attribute of a name that is computed, or registers a parameter.
_SETTING = SETTING | ADDING_PARAMETERS
# What registers a module, in whatever method: ``self.add_module(name, self.heads[key])``.
_REGISTERING = ADDING_MODULES | SETTING
_LOOPS = (cst.For, cst.CompFor)
_ONE_BY_ONE = (*_LOOPS, cst.Subscript, cst.Arg)
_TAKING = frozenset({"pop", "get", "items", "values", "copy", "popitem", "setdefault"})
# What gives the parameters: who does more than compute with them looks after them.
# What somebody calls who looks after modules that are not registered.
_LOOKING_AFTER = frozenset({
    "state_dict", "load_state_dict", "set_state_dict", "train", "eval",
    "requires_grad_", "modules", "named_modules", "buffers", "zero_grad",
})  # fmt: skip
# Who moves them trains and saves them no more than before.
_MOVING = frozenset({"to", "cuda", "cpu", "half", "float"})
# Methods of a module that a class overrides to reach what is not registered.
_OF_MODULES = _LOOKING_AFTER | GIVING_PARAMETERS | _MOVING | {"double", "_apply", "children", "sublayers"}


class Container:
    """A list, tuple or dict that a statement assigns to an attribute of a module.

    ``path`` says where it is in the value: ``(1,)`` of the call in ``self.size, self.layers = make(3)``.
    """

    def __init__(
        self,
        definition: "ClassInfo",
        method: "FunctionInfo",
        name: str,
        value: cst.BaseExpression,
        path: tuple[int | None, ...] = (),
    ) -> None:
        self.definition = definition
        self.method = method
        self.model = method.model
        self.name = name
        self.value = value
        self.maker = maker_of(self.model, value, path)
        """The function that makes it, and what that returns."""
        self.contents = Contents()
        self.display = None if path and self.maker is None else self._find_display(value)
        """The display, comprehension or constructor that makes it; ``None`` when it is not known to be a container."""

    def _find_display(self, value: cst.BaseExpression) -> cst.BaseExpression | None:
        """What makes the container: the value, what its local name is bound to, or the call of a function."""
        if isinstance(value, cst.IfExp):
            ways = (value.body, value.orelse)
            return next((way for way in ways if is_display(self.model, way)), None)
        if isinstance(value, cst.Name) and self._is_given(value):
            return value
        return display_of(self.method, value) or (None if self.maker is None else value)

    # -- what is in it -----------------------------------------------------------------------------------------------

    def fill(self) -> Contents:
        """Gather what the container is made with, and what is put into it later."""
        contents = Contents()
        filling = Filling(self.model, contents, self._is_given)
        if self.maker is not None:
            function, returned = self.maker
            display, elsewhere = display_of(function, returned), Filling(function.model, contents)
            if display is not None:
                elsewhere.take(display)
            for name in mentions_of(function, returned):
                elsewhere.grow(name)
        elif self.display is not None:
            filling.take(self.display)
        for model, node in self._names(filling=True):
            Filling(model, contents, self._is_given).grow(node)
        for assignment in self.definition.members.assignments(self.name):
            if isinstance(assignment.node, cst.AugAssign):
                contents.is_grown = True
                Filling(assignment.model, contents, self._is_given).take(assignment.node.value)
        self.contents = contents
        return contents

    def _names(self, *, filling: bool = False) -> Iterator[tuple["Model", cst.BaseExpression]]:
        """The places that read the container, as the attribute or as the local name.

        ``filling``: but for those in the constructor, where another method makes it: they fill an earlier one.
        """
        is_later = filling and self.method not in self.definition.members.reachable("__init__")
        for read in self.definition.members.reads(self.name):
            if not (is_later and read.method.name == "__init__"):
                yield read.method.model, read.node
        for name in mentions_of(self.method, self.value):
            yield self.model, name

    def _is_given(self, node: cst.Name) -> bool:
        """Whether a name is a parameter that holds modules with weights, which ``forward`` uses.

        Its annotation says so, or a call gives it a list of new ones. A list of the same that is made here registers no
        more of them.
        """
        bindings = self.model.reaching(node) if self.method.name == "__init__" else ()
        parameter = bindings[0].node if len(bindings) == 1 else None
        if not isinstance(parameter, cst.Param):
            return False
        value = self.model.value(node)
        is_annotated = isinstance(value, Repeated) and isinstance(value.item, Module)
        given = [] if is_annotated else list(passed_for(self.model, self.method, parameter))
        # Most of what a constructor keeps is no list, and its uses need not be looked at.
        if given and not any(self._may_be_list(self.model, item) for item in given):
            return False
        if not (self._is_run_through() if given or is_annotated else self._is_looped_over()):
            return False
        passed = [(self.model, item) for item in given] or list(passed_anywhere(self.method, parameter))
        if any(isinstance(model.value(item), Module) for model, item in passed):
            return False  # a list of modules that are registered
        if isinstance(value, Repeated) and isinstance(value.item, Module) and may_bring_weights(value.item):
            return True
        return any(self._is_new_list(model, item) for model, item in passed)

    def _is_run_through(self) -> bool:
        """Whether ``forward`` takes the elements one by one."""
        return any(isinstance(model.tree.parent(node), _ONE_BY_ONE) for model, node in self._run)

    def _is_looped_over(self) -> bool:
        """Whether ``forward`` has a loop over it, perhaps over ``enumerate`` or ``zip`` of it."""
        for model, node in self._run:
            place: cst.CSTNode = node
            parent = model.tree.parent(place)
            while isinstance(parent, cst.Arg) and isinstance(call := model.tree.parent(parent), cst.Call):
                if handed_on(call, parent) is None:
                    break
                place, parent = call, model.tree.parent(call)
            if isinstance(parent, _LOOPS) and parent.iter is place:
                return True
        return False

    @property
    def _run(self) -> Iterator[tuple["Model", cst.BaseExpression]]:
        """Where ``forward`` reads the attribute."""
        running = self.definition.members.reachable("forward")
        for read in self.definition.members.reads(self.name):
            if read.method in running:
                yield read.method.model, read.node

    @staticmethod
    def _may_be_list(model: "Model", node: cst.BaseExpression) -> bool:
        return isinstance(node, (cst.Name, cst.IfExp)) or is_display(model, node)

    @staticmethod
    def _is_new_list(model: "Model", node: cst.BaseExpression) -> bool:
        """Whether a list of new modules with weights is written where it is passed, or has a name that is used for
        nothing else.
        """
        if isinstance(node, cst.IfExp):
            return Container._is_new_list(model, node.body) or Container._is_new_list(model, node.orelse)
        function = function_around(model, node)
        display = node if function is None else display_of(function, node)
        if display is None or not is_display(model, display):
            return False
        contents = Contents()
        filling = Filling(model, contents)
        filling.take(display)
        named = [] if function is None else list(mentions_of(function, node))
        for name in named:
            filling.grow(name)
        return bool(contents.modules) and not any(_Trail(None, model).leads_on(name, MAX_STEPS) for name in named)

    # -- where it goes -----------------------------------------------------------------------------------------------

    @property
    def is_looked_after(self) -> bool:
        """Whether what is in it may be registered otherwise, or is looked after by hand."""
        members = self.definition.members
        if builds_a_program(self.model) or (self.contents.parameters and is_given_on_elsewhere(members, self.name)):
            return True
        if self.contents.parameters and not self.contents.modules and self._stands_for_inputs():
            return True
        if self._is_deleted or any(self._registers(assignment) for assignment in members.assignments(self.name)):
            return True
        if any(read.method.name in _OF_MODULES for read in members.reads(self.name)):
            return True
        trails = ((_Trail(self.definition, model, made_in=self.method), node) for model, node in self._names())
        if any(trail.leads_on(node, MAX_STEPS) for trail, node in trails):
            return True
        if self.maker is not None and any(
            _Trail(None, self.maker[0].model).leads_on(name, MAX_STEPS) for name in mentions_of(*self.maker)
        ):
            return True
        places = from_outside(self.definition, self.model, self.name)
        return any(_Trail(None, self.model).leads_on(node, MAX_STEPS) for node in places)

    def _stands_for_inputs(self) -> bool:
        """Whether the parameters only hold a place: ``forward`` sets the attribute anew, or only its length is read.

        Then they are no weights, and should be no parameters.
        """
        running = self.definition.members.reachable("forward")
        for assignment in self.definition.members.assignments(self.name):
            if assignment.method in running and isinstance(assignment.node, cst.Assign):
                return True
        parents = [parent for parent in self.reads if not isinstance(parent, cst.Attribute)]  # `append`
        return bool(parents) and all(self._asks_for_length(parent) for parent in parents)

    def _asks_for_length(self, parent: cst.CSTNode | None) -> bool:
        call = self.model.tree.parent(parent) if isinstance(parent, cst.Arg) else None
        return isinstance(call, cst.Call) and dotted_path(call.func) == "len"

    def _registers(self, assignment: Assignment) -> bool:
        """Whether an assignment registers what is in it: none that another branch of the same ``if`` holds."""
        if assignment.role not in (Role.SUBMODULE, Role.PARAMETER):
            return False
        is_elsewhere = assignment.method is not self.method
        return is_elsewhere or not is_in_another_branch(self.model, self.value, assignment.node)

    @property
    def is_made_again(self) -> bool:
        """Whether another method makes it, too: a plain list cannot take the place of a registered one."""
        return any(
            assignment.method is not self.method and not isinstance(assignment.node, cst.AugAssign)
            for assignment in self.definition.members.assignments(self.name)
        )

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
    def kind(self) -> str:
        """What it is in plain words."""
        if self.contents.is_keyed:
            return "dict"
        if isinstance(self.display, (cst.Set, cst.SetComp)):
            return "set"
        return "tuple" if isinstance(self.display, cst.Tuple) else "list"

    @property
    def is_used_alike(self) -> bool:
        """Whether all that is done with it can be done with a list or dict of modules."""
        return all(
            parent.attr.value in _OF_LISTS if isinstance(parent, cst.Attribute) else isinstance(parent, _ABOUT_LISTS)
            for parent in self.reads
        )

    @property
    def reads(self) -> Iterator[cst.CSTNode | None]:
        """What stands around each read of the attribute."""
        for read in self.definition.members.reads(self.name):
            yield read.method.model.tree.parent(read.node)


class _Trail:
    """Follows a thing from where it is read.

    ``made_in``: the method that makes it; what registers it there is not too late, though ``forward`` runs it.
    ``of_weights``: it is no module, but something that a module has; nothing matters but whether it is set as an
    attribute, under whatever name: ``setattr(self, f"weight{i}", cell.weight)``. ``of_part``: only some of several are
    meant; whoever freezes those looks after none.
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
    ) -> None:
        self.model = model
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
            case cst.BinaryOperation() | cst.BooleanOperation() | cst.IfExp() | cst.BaseComp():
                return self.leads_on(parent, steps - 1)
            case cst.AugAssign() if parent.value is node:
                return self._by_holder(parent.target, steps)
            case cst.Assign():
                target = parent.targets[0].target
                holder = self.model.enclosing_function(parent) or self.model.tree.module
                is_named = isinstance(target, cst.Name)
                return self._by_names(target, holder, steps) if is_named else not self.of_weights
            case cst.Return() if self._is_never_asked(parent):
                return False
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
            trail = _Trail(None, self.model, self._seen, of_weights=self.of_weights, of_part=True)
            trail.running = self.running
            return trail.leads_on(item, steps - 1)
        return self.leads_on(item, steps - 1)

    def _is_never_asked(self, returned: cst.Return) -> bool:
        """Whether a method gives the thing to nobody: nothing in the project mentions its name."""
        function = self.model.enclosing_function(returned)
        info = None if function is None else self.model.function_info(function)
        if info is None or info.owner is None or info.name.startswith("__") or info.node.decorators:
            return False
        names = self.model.names_by_word.get(info.name, ())
        return all(name is info.node.name for name in names) and not info.owner.members.may_be_read_elsewhere(info.name)

    def _by_attribute(self, attribute: cst.Attribute, steps: int, path: tuple[int, ...]) -> bool:
        call = self.model.tree.call_of(attribute)
        method = attribute.attr.value
        if call is None or self.of_weights:
            is_one_of_its_own = call is None and not self.of_weights
            return is_one_of_its_own and _Trail(None, self.model, of_weights=True).leads_on(attribute, steps - 1)
        if self.of_part and (method == "eval" or (method in GIVING_PARAMETERS and is_only_frozen(self.model, call))):
            return False
        if method in GIVING_PARAMETERS:
            return not is_only_read(self.model, call, steps)
        if method in _MOVING or method in _TAKING:
            return self.leads_on(call, steps - 1, (1, *path) if method == "items" else path)
        return method in _LOOKING_AFTER

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
        is_looked_at = word in _LOOKING or is_set_up_by(self.model, arg) or self._is_running(call)
        return word in _REGISTERING or not (is_looked_at or self._is_only_run(call, arg, steps))

    def _is_only_run(self, call: cst.Call, arg: cst.Arg, steps: int) -> bool:
        """Whether a function of the project is given the thing, and follows no way on with it."""
        callee = self.model.value(call.func)
        if self.of_weights or not isinstance(callee, Function) or not callee.definition.is_plain:
            return False
        used = uses_inside(callee.definition, call, arg, filled_by(callee))
        home = callee.definition.model
        within = self if home is self.model else _Trail(None, home)
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
                return any(
                    _Trail(owner, read.method.model, self._seen).leads_on(read.node, steps - 1) for read in reads
                )
        return not (self.of_weights or self._is_running(holder))

    def _is_made_here(self, name: cst.Name) -> bool:
        """Whether a name surely stands for a list or dict that is made where it is bound."""
        bindings = self.model.reaching(name)
        made = [item.value for item in bindings if item.kind is BindingKind.ASSIGN and not item.path]
        is_known = all(item.kind in (BindingKind.ASSIGN, BindingKind.AUGMENTED) for item in bindings)
        return bool(made) and is_known and all(value is not None and is_display(self.model, value) for value in made)

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
        return any(
            self.leads_on(name, steps - 1)
            for word in sorted(names)
            for name in self.model.names_by_word.get(word, ())
            if self.model.tree.is_below(name, holder)
        )

    def _comprehension(self, clause: cst.CompFor) -> cst.CSTNode:
        return next(item for item in self.model.tree.ancestors(clause) if isinstance(item, cst.BaseComp))

    def _is_running(self, node: cst.CSTNode) -> bool:
        """Whether a place is run by ``forward``, where nothing is registered any more."""
        function = self.model.enclosing_function(node)
        return function is not None and self.model.function_info(function) in self.running
