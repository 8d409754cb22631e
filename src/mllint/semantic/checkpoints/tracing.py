"""Where the dict that an expression stands for comes from, and what was done to its keys on the way."""

from collections.abc import Iterator
from functools import partial, reduce

import libcst as cst

from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import (
    Content,
    FromFile,
    Record,
    Several,
    State,
    Whole,
    comprehension_rename,
    either,
    entry,
    loop_rename,
    merged,
    perhaps,
    prefix_removal,
    renamed,
    source_of,
    with_entry,
    with_unknown_entries,
    without_entry,
)
from mllint.semantic.checkpoints.path_tracing import PathTracer
from mllint.semantic.checkpoints.paths import Path
from mllint.semantic.checkpoints.routes import MAX_DEPTH, Follower, Place, Route
from mllint.semantic.construction.builder import Construction
from mllint.semantic.expressions.options import declaration
from mllint.semantic.modules.module_keys import ANYTHING, module_keys
from mllint.semantic.names.conditions import is_left_out
from mllint.semantic.names.scopes import Binding, BindingKind, assigned, only_assigned
from mllint.semantic.names.uses import mentions
from mllint.semantic.values import (
    ClassObject,
    Function,
    Instance,
    Loaded,
    Method,
    Module,
    Object,
    Options,
    StateDict,
    Symbol,
    own_method,
)
from mllint.syntax.shape import argument, dotted_path, integer_literal, last_word, string_literal, subscript_index

_SAME = frozenset({"copy.deepcopy", "copy.copy", "builtins.dict", "collections.OrderedDict", "builtins.iter"})
_LOADS = frozenset({"torch.load", "paddle.load", "paddle.framework.io.load"})
# They are given a dict and leave it as it is.
_READERS = frozenset({
    "builtins.print", "builtins.len", "builtins.list", "builtins.sorted", "builtins.set", "builtins.isinstance",
    "builtins.dict", "builtins.enumerate", "builtins.iter", "builtins.type", "builtins.str", "builtins.tuple",
    "builtins.any", "builtins.all", "builtins.id", "copy.deepcopy", "copy.copy", "collections.OrderedDict",
    "torch.save", "paddle.save", "builtins.hasattr", "builtins.zip", "pprint.pprint",
})  # fmt: skip
_READING_METHODS = frozenset({"items", "keys", "values", "get", "copy", "__contains__"})
_CHOICE = 3
"""For how many names a choice between several files counts, of those through which a dict is followed."""
_PREFIX_REMOVAL = "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present"


class Tracer(PathTracer):
    """Follows dicts in one file."""

    # -- dicts -------------------------------------------------------------------------------------------------------

    def content(self, node: cst.BaseExpression) -> Content | None:
        """What the dict holds that an expression stands for; ``None`` when that is not known."""
        if self.depth > MAX_DEPTH:
            return None
        self.depth += 1
        try:
            return self._content(node)
        finally:
            self.depth -= 1

    def _content(self, node: cst.BaseExpression) -> Content | None:
        match node:
            case cst.Name() | cst.Attribute():
                return self._of_name(node)
            case cst.Call():
                return self._of_call(node)
            case cst.Subscript():
                return self._of_item(node)
            case cst.Dict():
                return self._of_display(node)
            case cst.DictComp():
                source = source_of(node.for_in.iter)
                base = None if source is None or node.for_in.inner_for_in is not None else self.content(source)
                return renamed(base, comprehension_rename(node, self.model)) if base is not None else None
            case cst.NamedExpr():
                return self.content(node.value)
            case cst.ListComp():
                is_of_states = isinstance(node.elt, cst.Call) and last_word(node.elt.func) == "state_dict"
                return Several(Place(self.model, node)) if is_of_states else None
            case cst.IfExp():
                sides = [side for side in (node.body, node.orelse) if dotted_path(side) != "None"]
                return reduce(either, map(self.content, sides)) if sides else None
        return None

    def ways(self, node: cst.BaseExpression) -> tuple[FromFile, ...]:
        """What was read on each way to an expression, of several files or entries; nothing where it is not known."""
        if self.depth > MAX_DEPTH:
            return ()
        self.depth += _CHOICE
        try:
            found = self._ways(node)
        finally:
            self.depth -= _CHOICE
        read = tuple(way for way in found if isinstance(way, FromFile) and not way.renames)
        return read if len(read) == len(found) else ()

    def _ways(self, node: cst.BaseExpression) -> list[Content | None]:
        match node:
            case cst.Subscript():
                key = string_literal(subscript_index(node))
                return [] if key is None else [entry(way, key) for way in self.ways(node.value)]
            case cst.Name():
                bindings = self.model.reaching(node)
                made = assigned(bindings[0]) if len(bindings) == 1 else None
                if made is not None:
                    return [self._after_changes(way, bindings[0], node) for way in self.ways(made)]
                return [self._bound(binding, node) for binding in bindings] if len(bindings) > 1 else []
            case cst.IfExp():
                return [*self._each(node.body), *self._each(node.orelse)]
            case cst.BooleanOperation(operator=cst.Or()):
                return [*self._each(node.left), *self._each(node.right)]
            case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name("get")), args=[asked, default]):
                key = string_literal(asked.value)
                return [] if key is None else [entry(self.content(holder), key), *self._each(default.value)]
        return []

    def _each(self, node: cst.BaseExpression) -> list[Content | None]:
        """What one side of a choice stands for, or each way to it."""
        found = self.content(node)
        return [found] if found is not None else list(self.ways(node)) or [None]

    def _of_item(self, node: cst.Subscript) -> Content | None:
        index = subscript_index(node)
        key = string_literal(index)
        if key is not None:
            return self._after_passing(entry(self.content(node.value), key), key, node)
        at = integer_literal(index)
        return self._returned_item(node.value, at) if at is not None and at >= 0 else None

    def _returned_item(self, node: cst.BaseExpression, index: int) -> Content | None:
        """One of several things that a project function returns, of the call or of the name that was given to all."""
        if isinstance(node, cst.Name):
            node = only_assigned(self.model, node) or node
        callee = self.model.value(node.func) if isinstance(node, cst.Call) else None
        if not isinstance(node, cst.Call) or not isinstance(callee, Function):
            return None
        return self._returned(node, callee, index)

    def _of_display(self, node: cst.Dict) -> Content | None:
        found: Content | None = Record({}, False, Place(self.model, node))
        for element in node.elements:
            if isinstance(element, cst.StarredDictElement):
                found = merged(found, self.content(element.value))
                continue
            assert isinstance(element, cst.DictElement)
            key = self._key(element.key)
            found = with_entry(found, key, self.content(element.value)) if key is not None else merged(found, None)
        return found

    def _key(self, node: cst.BaseExpression) -> str | None:
        value = Construction().built_at(node, self.model)
        return value if isinstance(value, str) else None

    def _of_call(self, node: cst.Call) -> Content | None:
        place = Place(self.model, node)
        callee = self.model.value(node.func)
        first = node.args[0].value if node.args and not node.args[0].star and node.args[0].keyword is None else None
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "state_dict":
            return self._state(node.func.value, place)
        match callee:
            case Symbol(name) if name in _LOADS:
                return FromFile(place, route=self.route)
            case Symbol(name) if name in _SAME:
                return self._copied(node, first)
            case Symbol(name) if name == _PREFIX_REMOVAL:
                return None
            case Function():
                return self._returned(node, callee)
            case Method(_, "copy"):
                return self.content(node.func.value) if isinstance(node.func, cst.Attribute) else None
            case Method(_, "get" | "pop") if len(node.args) == 1 and isinstance(node.func, cst.Attribute):
                key = string_literal(first)
                return None if key is None else entry(self.content(node.func.value), key)
        value = self.value(node)
        return Whole(value, place) if isinstance(value, Module) else None

    def _copied(self, node: cst.Call, first: cst.BaseExpression | None) -> Content | None:
        found: Content | None = Record({}, False, Place(self.model, node))
        if first is not None:
            found = self.content(first)
        for arg in node.args:
            if arg.star:
                return merged(found, None)
            if arg.keyword is not None and found is not None:
                found = with_entry(found, arg.keyword.value, self.content(arg.value))
        return found

    def _state(self, node: cst.BaseExpression, place: Place) -> Content | None:
        """What ``node.state_dict()`` gives."""
        tracer, source = self.origin(node)
        owner, name = tracer.model.value(source), last_word(source)
        if isinstance(owner, Module):
            if own_method(owner, "state_dict") is not None:
                return None
            return State(partial(module_keys, tracer.model, source, owner), owner, place, name=name)
        is_own = isinstance(owner, (Instance, ClassObject))
        known = owner if is_own or isinstance(owner, Object) else None
        return State(lambda: ANYTHING, known, place, is_unclear=is_own, name=name)

    def _returned(self, node: cst.Call, function: Function, index: int | None = None) -> Content | None:
        """What a project function returns that has one ``return``, or one of several things that it returns."""
        definition = function.definition
        returns = definition.scope.returns
        if len(returns) != 1 or returns[0].value is None or not definition.is_plain or not definition.is_transparent:
            return None
        tracer = Tracer(definition.model, Route(self, node, definition), self.depth + 1)
        value = returns[0].value
        if index is None:
            return tracer.content(value)
        items = value.elements if isinstance(value, cst.Tuple) else ()
        item = items[index] if index < len(items) else None
        return tracer.content(item.value) if isinstance(item, cst.Element) else None

    # -- names -------------------------------------------------------------------------------------------------------

    def _of_name(self, node: cst.Name | cst.Attribute) -> Content | None:
        bindings = self.model.reaching(node)
        if not bindings:
            return self._of_value(node)
        first, *others = (self._bound(binding, node) for binding in bindings)
        return first if all(self._is_same_file(first, other) for other in others) else reduce(either, others, first)

    def _bound(self, binding: Binding, node: cst.Name | cst.Attribute) -> Content | None:
        found = self._of_binding(binding, node)
        if found is None or isinstance(found, Whole):
            return found
        return self._after_changes(found, binding, node)

    def _is_same_file(self, one: Content | None, other: Content | None) -> bool:
        """Whether two ways lead to what was read from the same file, whatever else the two calls say."""
        if not isinstance(one, FromFile) or not isinstance(other, FromFile):
            return False
        if one.trail != other.trail or one.renames or other.renames:
            return False
        paths = [read_path(content) for content in (one, other)]
        return paths[0] is not None and paths[0] == paths[1]

    def _of_binding(self, binding: Binding, node: cst.Name | cst.Attribute) -> Content | None:
        if binding.kind is BindingKind.PARAMETER:
            given = self.given(binding)
            if given is not None:
                caller, argument = given
                return Tracer(caller.model, caller.route, self.depth + 1).content(argument)
            return self._of_value(node)
        if binding.value is None or binding.kind not in (BindingKind.ASSIGN, BindingKind.ANNOTATED):
            return None
        if binding.path:
            index = binding.path[0] if len(binding.path) == 1 else None
            return self._returned_item(binding.value, index) if isinstance(index, int) and index >= 0 else None
        return self.content(binding.value)

    def _of_value(self, node: cst.Name | cst.Attribute) -> Content | None:
        """What the model of the file says of a name that is bound elsewhere: an attribute, a parameter."""
        value = self.model.value(node)
        match value:
            case Loaded(_, call, keys) if id(call) in self.model.tree.parents:
                return FromFile(Place(self.model, call), keys)
            case StateDict(owner) if isinstance(owner, (Module, Object)):
                return State(lambda: ANYTHING, owner, Place(self.model, value.node or node))
            case Module():
                return Whole(value, Place(self.model, node))
        return None

    # -- what happens to a dict between its binding and its use --------------------------------------------------------

    def _after_changes(self, found: Content, binding: Binding, node: cst.Name | cst.Attribute) -> Content | None:
        current = found
        loops: list[cst.For] = []
        for use in self._uses_between(binding, node):
            loop = self._changing_loop(use, binding)
            if loop is not None:
                if loop in loops:
                    continue
                loops.append(loop)
                changed = self._after_loop(current, loop, binding.key)
            else:
                changed = self._after_use(current, use)
            if changed is not current and is_left_out(self.model, use, binding.node, node):
                changed = perhaps(current, changed)
            if changed is None:
                return None
            current = changed
        return current

    def _uses_between(self, binding: Binding, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The other uses of a name, or dotted path, in the statements between its binding and a place."""
        scope = binding.scope
        place = scope.place_of(node)
        for holder in mentions(self.model, binding.key):
            at = scope.place_of(holder) if self.model.scope_of(holder) is scope else None
            if at is not None and place is not None and binding.order < at[1] < place[1]:
                yield holder

    def _changing_loop(self, use: cst.BaseExpression, binding: Binding) -> cst.For | None:
        """The loop, begun after the binding, in which a use writes under keys that differ from round to round."""
        holder = self.model.tree.parent(use)
        is_written = isinstance(holder, cst.Subscript) and holder.value is use and self._is_target(holder)
        is_popped = isinstance(holder, cst.Attribute) and holder.value is use and holder.attr.value == "pop"
        if not is_written and not is_popped:
            return None
        tree = self.model.tree
        loop = next((loop for loop in tree.loops_around(use) if isinstance(loop, cst.For)), None)
        return None if loop is None or tree.is_below(binding.node, loop) else loop

    def _is_target(self, node: cst.CSTNode) -> bool:
        return isinstance(self.model.tree.parent(node), (cst.AssignTarget, cst.Del))

    def _after_loop(self, content: Content | None, loop: cst.For, key: str) -> Content | None:
        source = source_of(loop.iter)
        if source is None or "." in key:
            return None
        if dotted_path(source) == key:
            return renamed(content, loop_rename(loop, key, self.model, in_place=True))
        if not isinstance(content, Record) or content.items or content.is_open:
            return with_unknown_entries(content) if self._only_adds(loop, key) else None
        base = self.content(source)
        if base is None or isinstance(base, Whole):
            return None  # what a loop takes from a module (a `ParameterDict`, say) is something else
        return renamed(base, loop_rename(loop, key, self.model, in_place=False))

    def _only_adds(self, loop: cst.For, key: str) -> bool:
        """Whether a loop does nothing with a dict but to set entries."""
        inside = [use for use in mentions(self.model, key) if self.model.tree.is_below(use, loop)]
        items = [self.model.tree.parent(use) for use in inside]
        return all(
            isinstance(item, cst.Subscript) and isinstance(self.model.tree.parent(item), cst.AssignTarget)
            for item in items
        )

    def _after_use(self, content: Content | None, use: cst.BaseExpression) -> Content | None:
        """The content after one use of the name that holds it."""
        holder = self.model.tree.parent(use)
        match holder:
            case cst.Subscript() if holder.value is use and self._is_target(holder):
                return self._after_item(content, holder)
            case cst.Subscript() if holder.value is use and self._is_changed(holder):
                key = string_literal(subscript_index(holder))
                return None if key is None else with_entry(content, key, None)
            case cst.Attribute() if holder.value is use:
                return self._after_method(content, holder)
            case cst.Arg():
                return self._after_call(content, holder)
        return content

    def _is_changed(self, part: cst.Subscript) -> bool:
        """Whether a dict in the dict is changed: ``file["model"][key] = value``, ``file["model"].update()``."""
        above = self.model.tree.parent(part)
        if isinstance(above, cst.Subscript) and above.value is part:
            return self._is_target(above) or self._is_changed(above)
        if not isinstance(above, cst.Attribute):
            return False
        return self.model.tree.call_of(above) is not None and above.attr.value not in _READING_METHODS

    def _after_passing(self, part: Content | None, key: str, node: cst.Subscript) -> Content | None:
        """The part of a dict after the calls before that were given it: ``take_off(file["model"], "module.")``."""
        holder = node.value
        if part is None or not isinstance(holder, (cst.Name, cst.Attribute)):
            return part
        for binding in self.model.reaching(holder) or ():
            for use in self._uses_between(binding, holder):
                other = self.model.tree.parent(use)
                arg = self.model.tree.parent(other) if isinstance(other, cst.Subscript) else None
                if isinstance(other, cst.Subscript) and isinstance(arg, cst.Arg) and other.value is use:
                    part = self._after_call(part, arg) if string_literal(subscript_index(other)) == key else part
        return part

    def _after_item(self, content: Content | None, item: cst.Subscript) -> Content | None:
        index = subscript_index(item)
        key = None if index is None else self._key(index)
        above = self.model.tree.parent(item)
        if key is None:
            return with_unknown_entries(content) if isinstance(above, cst.AssignTarget) else None
        if isinstance(above, cst.Del):
            return without_entry(content, key)
        assign = None if above is None else self.model.tree.parent(above)
        value = self.content(assign.value) if isinstance(assign, cst.Assign) else None
        return with_entry(content, key, value)

    def _after_method(self, content: Content | None, attribute: cst.Attribute) -> Content | None:
        call = self.model.tree.call_of(attribute)
        name = attribute.attr.value
        if call is None:
            return content
        if name in _READING_METHODS or name in LOADING:
            return content
        if name == "pop":
            key = self._key(call.args[0].value) if call.args else None
            return None if key is None else without_entry(content, key)
        if name == "update" and len(call.args) == 1 and not call.args[0].star and call.args[0].keyword is None:
            return merged(content, self.content(call.args[0].value))
        return None

    def _after_call(self, content: Content | None, arg: cst.Arg) -> Content | None:
        call = self.model.tree.parent(arg)
        if not isinstance(call, cst.Call):
            return content
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in (*LOADING, "append", "info", "get"):
            return content
        if self._takes_prefix_off(arg):
            prefix = string_literal(call.args[1].value) if len(call.args) > 1 else None
            return None if prefix is None else renamed(content, prefix_removal(prefix))
        return content if self.model.qualified_name(call.func) in _READERS else None

    def _takes_prefix_off(self, arg: cst.Arg) -> bool:
        """Whether something is given to the function that takes a prefix off its keys, or to a copy of it."""
        call = self.model.tree.parent(arg)
        return isinstance(call, cst.Call) and last_word(call.func) == _PREFIX_REMOVAL.rpartition(".")[2]


def read_path(content: FromFile) -> Path | None:
    """The path of the file that was read, as far as it is known."""
    given = path_given(content)
    return None if given is None else Tracer(content.place.model, content.route).path(given)


def default_path(content: FromFile) -> Path | None:
    """The file that is read where nobody says otherwise: the default of the option, or parameter, that gives it."""
    option = path_option(content)
    given = None if option is None else argument(option, None, "default")
    default = _default_of_parameter(content) if given is None else given.value
    text = None if default is None else string_literal(default)
    return Path(text) if text else None


def _default_of_parameter(content: FromFile) -> cst.BaseExpression | None:
    """The default of the parameter that gives the path of a file, where no call around gives another."""
    given, model = path_given(content), content.place.model
    bindings = model.reaching(given) if isinstance(given, cst.Name) and content.route is None else ()
    function = bindings[0].scope.node if len(bindings) == 1 else None
    if not isinstance(function, cst.FunctionDef) or bindings[0].kind is not BindingKind.PARAMETER:
        return None
    definition = model.function_info(function)
    calls = (*model.surroundings.calls_of(definition), *model.surroundings.calls_elsewhere(definition))
    found = [Route(Follower(caller), call, definition).argument(bindings[0].key) for caller, call in calls]
    default = next((item.default for item in definition.named_parameters if item.name.value == bindings[0].key), None)
    return default if all(item is not None and item[1] is default for item in found) else None


def path_option(content: FromFile) -> cst.Call | None:
    """The call that declares the option from which the path of the file is taken as it is."""
    given = path_given(content)
    if given is None:
        return None
    reader, source = Tracer(content.place.model, content.route).origin(given)
    options = reader.model.value(source.value) if isinstance(source, cst.Attribute) else None
    if not isinstance(source, cst.Attribute) or not isinstance(options, Options):
        return None
    return declaration(options.model, reader.model, source.attr.value)


def path_given(content: FromFile) -> cst.BaseExpression | None:
    """The expression that a call which reads a file is given for its path."""
    call = content.place.node
    if not isinstance(call, cst.Call):
        return None
    given = argument(call, 0, "f") or argument(call, None, "path")
    return None if given is None else given.value
