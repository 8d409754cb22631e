"""Lists, tuples and dicts in attributes of a module: where what they hold goes from there.

A module does not look into them. What they hold is nobody's, unless it is registered or looked after elsewhere too.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import GIVING_PARAMETERS
from mllint.semantic.expressions.annotations import members
from mllint.semantic.expressions.arguments import passed_anywhere, passed_for
from mllint.semantic.modules.contents import Contents, Filling, display_of, is_display, maker_of, mentions_of
from mllint.semantic.modules.handed_over import is_given_on_elsewhere
from mllint.semantic.modules.other_objects import from_outside
from mllint.semantic.modules.trails import LOOKING_AFTER, MAX_STEPS, Trail
from mllint.semantic.modules.weights import builds_a_program, may_bring_weights
from mllint.semantic.names.classes import Assignment, Read, Role
from mllint.semantic.names.conditions import is_in_another_branch, verdicts
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import without_narrowing
from mllint.semantic.values import Module, Repeated, Value
from mllint.syntax.iteration import handed_on
from mllint.syntax.shape import constant, dotted_path, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

# What lists and dicts of modules can do as well as the plain ones, and what can be done with them.
_OF_LISTS = frozenset({"append", "extend", "insert", "items", "keys", "values", "update", "pop"})
_ABOUT_LISTS = (cst.Subscript, cst.For, cst.CompFor, cst.Arg, cst.ComparisonTarget, cst.AugAssign)
_LOOPS = (cst.For, cst.CompFor)
_PLAIN = frozenset({
    "builtins.list", "builtins.tuple", "typing.List", "typing.Sequence", "collections.abc.Sequence",
    "collections.abc.Iterable", "typing.Iterable",
})  # fmt: skip
_ONE_BY_ONE = (*_LOOPS, cst.Subscript, cst.Arg)
# Methods of a module that a class overrides to reach what is not registered. One that only moves it is none of them:
# no optimizer gets to know it by that, and no state dict has it.
_OF_MODULES = LOOKING_AFTER | GIVING_PARAMETERS | {"_apply", "children", "sublayers"}


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
        self.maker = maker_of(self.model, *_given_name(self.model, value, path))
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
        """The places that read the container, as the attribute, by another name of that, or as the local name.

        ``filling``: but for those in the constructor, where another method makes it: they fill an earlier one.
        """
        is_later = filling and self.method not in self.definition.members.reachable("__init__")
        members = self.definition.members
        for read in members.reads(self.name):
            other = self._other_name(read)
            for place in (read,) if other is None else members.reads(other):
                if not (is_later and place.method.name == "__init__"):
                    yield place.method.model, place.node
        wrapped = (
            [_one_in_list(item) for item in self.model.reaching(self.value)] if isinstance(self.value, cst.Name) else []
        )
        for name in mentions_of(self.method, self.value):
            if not any(name is one for one in wrapped):  # of `blocks = [blocks]` it is the list that counts
                yield self.model, name

    def _other_name(self, read: Read) -> str | None:
        """The attribute that gets the container where it is read, and holds nothing else: ``self.a = self.b``.

        A plain list is not registered by a second name.
        """
        statement = read.method.model.tree.parent(read.node)
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if not isinstance(target, cst.Attribute) or method_of_receiver(read.method.model, target.value) is None:
            return None
        places = self.definition.members.assignments(target.attr.value)
        return target.attr.value if all(place.value is read.node for place in places) else None

    def _is_given(self, node: cst.Name) -> bool:
        """Whether a name is a parameter that holds modules with weights, which ``forward`` uses.

        Its annotation says so, or a call gives it a list of new ones. A list of the same that is made here registers no
        more of them.
        """
        bindings = without_narrowing(self.model.reaching(node)) if self.method.name == "__init__" else []
        wrapped = [binding for binding in bindings if self._puts_one_into_list(binding)]
        others = [binding for binding in bindings if binding not in wrapped and not self._is_no_list_yet(binding)]
        parameter = others[0].node if len(others) == 1 else None
        if not isinstance(parameter, cst.Param):
            return False
        if wrapped:
            return self._is_run_through()
        value = self._declared_list(parameter) if len(others) < len(bindings) else self.model.value(node)
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

    def _puts_one_into_list(self, binding: Binding) -> bool:
        """Whether a single module with weights, given in place of a list of them, is put into one:
        ``if isinstance(blocks, Block): blocks = [blocks]``.
        """
        one = _one_in_list(binding)
        value = None if one is None else self.model.value(one)
        return isinstance(value, Module) and may_bring_weights(value)

    def _is_no_list_yet(self, binding: Binding) -> bool:
        """Whether whatever is no list is put into one: ``if not isinstance(blocks, (list, tuple)): blocks = [blocks]``.

        So it is a plain list in the end, whatever was given.
        """
        one = _one_in_list(binding)
        test = None if one is None else next((item for item, holds in verdicts(self.model, one) if holds), None)
        if not isinstance(test, cst.UnaryOperation) or not isinstance(test.operator, cst.Not):
            return False
        test = test.expression
        if not isinstance(test, cst.Call) or len(test.args) != 2:
            return False
        asked, kinds = (arg.value for arg in test.args)
        named = [item.value for item in kinds.elements] if isinstance(kinds, cst.Tuple) else [kinds]
        is_asked = self.model.qualified_name(test.func) == "builtins.isinstance" and dotted_path(asked) == binding.key
        return is_asked and all(self.model.qualified_name(item) in _PLAIN for item in named)

    def _declared_list(self, parameter: cst.Param) -> Value | None:
        """The list of modules with weights that a parameter is declared to be, or may be declared to be."""
        annotation = parameter.annotation
        declared = () if annotation is None else members(self.model, annotation.annotation)
        return next((item for item in declared if isinstance(item, Repeated)), None)

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
        return bool(contents.modules) and not any(Trail(None, model).leads_on(name, MAX_STEPS) for name in named)

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
        names = self._names()
        trails = (
            (Trail(self.definition, model, made_in=self.method, kept_as=self.name), node) for model, node in names
        )
        if any(trail.leads_on(node, MAX_STEPS) for trail, node in trails):
            return True
        if self.maker is not None and any(
            Trail(None, self.maker[0].model).leads_on(name, MAX_STEPS) for name in mentions_of(*self.maker)
        ):
            return True
        places = from_outside(self.definition, self.model, self.name)
        return any(Trail(None, self.model).leads_on(node, MAX_STEPS) for node in places) or self._is_table_of_choices

    @property
    def _is_table_of_choices(self) -> bool:
        """Whether it is a dict of which only the constructor takes entries, by a key that is not written there: what is
        not taken is not used, and what is taken is kept elsewhere.
        """
        members = self.definition.members
        reads = list(members.reads(self.name)) if self.contents.is_keyed else []
        taken = [read for read in reads if not _puts_entry(read)]
        return (
            bool(taken)
            and all(read.method in members.setting_up and _takes_entry(read) for read in taken)
            and not any(True for _ in from_outside(self.definition, self.model, self.name))
            and members.readers_elsewhere(self.name) == ()
        )

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
        """Whether it is the list around one module by which the module is kept out of its owner's hands.

        Where another branch has the module itself for that attribute, its reads are the others.
        """
        display = self.display
        if not isinstance(display, (cst.List, cst.Tuple)) or len(display.elements) != 1 or self.contents.is_grown:
            return False
        reads = list(self.definition.members.reads(self.name))
        parents = [(read.method.model.tree.parent(read.node), read.node) for read in reads]
        taken_out = [isinstance(parent, cst.Subscript) and parent.value is node for parent, node in parents]
        is_either = any(item.role is Role.SUBMODULE for item in self.definition.members.assignments(self.name))
        return self.name.startswith("_") or all(taken_out) or (is_either and any(taken_out))

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


def _given_name(
    model: "Model", value: cst.BaseExpression, path: tuple[int | None, ...]
) -> tuple[cst.BaseExpression, tuple[int | None, ...]]:
    """What a value is, or part of it, that a local name stands for: the call in ``layers, size = make(3)``."""
    bindings = model.reaching(value) if isinstance(value, cst.Name) and not path else ()
    made = bindings[0] if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGN else None
    return (value, path) if made is None or not isinstance(made.value, cst.Call) else (made.value, made.path)


def _one_in_list(binding: Binding) -> cst.Name | None:
    """The name that a statement puts into a list of that name: ``blocks = [blocks]``."""
    display = binding.value if binding.kind is BindingKind.ASSIGN and not binding.path else None
    items = [item.value for item in display.elements] if isinstance(display, (cst.List, cst.Tuple)) else []
    one = items[0] if len(items) == 1 else None
    return one if isinstance(one, cst.Name) and one.value == binding.key else None


def _puts_entry(read: Read) -> bool:
    """Whether a place puts an entry into a dict: ``self.makers[kind] = nn.Linear(3, 1)``."""
    tree = read.method.model.tree
    item = tree.parent(read.node)
    return isinstance(item, cst.Subscript) and isinstance(tree.parent(item), cst.AssignTarget)


def _takes_entry(read: Read) -> bool:
    """Whether a place takes an entry out of a dict by a key that is not written out: ``self.makers[kind]``."""
    tree = read.method.model.tree
    parent = tree.parent(read.node)
    call = tree.call_of(parent) if isinstance(parent, cst.Attribute) and parent.attr.value == "get" else None
    given = None if call is None or not call.args else call.args[0].value
    key = subscript_index(parent) if isinstance(parent, cst.Subscript) else given
    return key is not None and constant(key) is ...
