"""Which thing an expression stands for, across the functions that hand it on.

Two expressions that stand for one ``Thing`` stand for one object. A value (``values.py``) says what kind of object
that is; a thing says which one.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec
from msgspec.structs import replace

from mllint.semantic.events.elements import EVERY, element_of
from mllint.semantic.events.held import held, unpacked_from
from mllint.semantic.events.places import (
    bound_to_call,
    children_of,
    handed_back,
    inside_of,
    is_handed_on,
    is_nothing,
    itself_of,
    place_in_returns,
    runs_over_keys,
    target_of,
    unpacked,
)
from mllint.semantic.events.published import published
from mllint.semantic.events.stars import given_with_stars
from mllint.semantic.events.values_given import value_given
from mllint.semantic.expressions.imports import origins
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo, function_around, is_receiver
from mllint.semantic.names.scopes import Binding, BindingKind, Scope
from mllint.semantic.values import ClassObject, Function, Instance, Loaded, Method, Module, Other, Value, says_more
from mllint.syntax.comparison import or_default
from mllint.syntax.shape import argument, fingerprint, has_star_arguments, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model

Known = dict[Binding, cst.BaseExpression]
Named = dict[Binding, tuple["Frame", cst.BaseExpression]]
_MAX_STEPS = 24


class Thing(msgspec.Struct, frozen=True):
    """One object: what some bindings bind, or an instance of a class, and the way from there (``.net``, ``[0]``).

    ``roots`` are all bindings that may be meant; two things with equal fields are one object. ``[*]`` stands for each
    element of a collection.
    """

    roots: frozenset[Binding | ClassInfo]
    path: tuple[str, ...] = ()

    def part(self, step: str) -> "Thing":
        """What a step leads to from here; ``module`` of a wrapper is the thing that is wrapped."""
        return self if step == ".module" else Thing(self.roots, (*self.path, step))

    def may_be(self, other: "Thing") -> bool:
        """Whether the two can be one object, or one holds the other."""
        if not self.roots & other.roots:
            return False
        pairs = zip(self.path, other.path, strict=False)
        return all(one == two or EVERY in (one, two) for one, two in pairs)


class Frame(msgspec.Struct, eq=False):
    """One run of a body: of a function, as called from ``caller``, or of a file.

    ``call`` is the call in the caller's file; ``receiver`` what the method is called on. Without a caller nothing is
    known of the parameters but what their values are.
    """

    model: "Model"
    function: FunctionInfo | None = None
    caller: "Frame | None" = None
    call: cst.Call | None = None
    receiver: Thing | None = None
    captured: "Frame | None" = None
    """The run of the function around a nested one."""
    instance_of: ClassInfo | None = None
    """The class of the object whose method runs, where it is another than the one that defines the method."""
    literals: Known = {}
    elements: Named = {}
    """What the variables of loops over literals, ``for phase in ("train", "val")``, or over names stand for."""
    _things: dict[Binding, Thing | None] = {}
    _running: list[Binding] = []
    valued: list[Binding] = []
    """The names of which it is being worked out what they are: one may be made of itself."""
    worths: dict[tuple[Binding, int], object] = {}
    """What bindings are worth as numbers, in so many steps: a variable of a loop may be made of itself many times."""

    @property
    def depth(self) -> int:
        """How many calls led here."""
        return 0 if self.caller is None else self.caller.depth + 1

    def led_by(self) -> "Iterator[Frame]":
        """This run and those that led to it, from the inside out."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.caller

    def running(self) -> Iterator[FunctionInfo]:
        """The function and those that called it."""
        return (frame.function for frame in self.led_by() if frame.function is not None)

    @property
    def scope(self) -> Scope:
        """The scope of the body that runs."""
        return self.model.scope(self.model.tree.module) if self.function is None else self.function.scope

    def run_of(self, scope: Scope, *, of_callers: bool = True) -> "Frame | None":
        """The run of the body with a scope: this one, one around it, or one of those that called it as well."""
        frame: Frame | None = self
        while frame is not None and frame.scope is not scope:
            frame = frame.captured or (frame.caller if of_callers else None)
        return frame

    def in_round(self, literals: Known, elements: Named) -> "Frame":
        """The same run of the body, in one round of a loop over literals, or over things with names."""
        known, named = {**self.literals, **literals}, {**self.elements, **elements}
        return replace(self, literals=known, elements=named, _things={} if elements else self._things, worths={})

    def runs(self, function: FunctionInfo) -> bool:
        """Whether the function is running already: it calls itself."""
        return any(item is function for item in self.running())

    def value(self, node: cst.BaseExpression) -> Value | None:
        """What an expression is, as far as its own file or the callers tell."""
        value = self.model.value(node)
        # What those who give it may know better: a module that is only annotated, and what `args` keeps.
        if value is not None and type(value) is not Method and not (isinstance(value, Module) and value.call is None):
            return value
        # Others may know the class of what has a method, if here it is no more than a module, or something.
        if type(value) is Method and type(value.receiver) is not Other and not _is_only_some(value.receiver):
            return value
        given = value_given(self, node)
        if isinstance(value, Method):
            return given or value
        # What is annotated may be known better by those who give it.
        return given if value is None or (isinstance(given, Module) and says_more(given, value)) else value

    def given(self, binding: Binding) -> "tuple[Frame, cst.BaseExpression] | None":
        """What the caller gives for a parameter, or a loop over names for its variable, and the run of it, if known."""
        if binding in self.elements:
            return self.elements[binding]
        function, call, caller = self.function, self.call, self.caller
        if function is None or call is None or caller is None:
            return None
        if binding.kind is not BindingKind.PARAMETER or binding.scope is not function.scope:
            return None
        positions = [index for index, item in enumerate(function.parameters) if item is binding.node]
        skipped = 1 if function.self_name is not None else 0
        position = positions[0] - skipped if positions else None
        passed = argument(call, position, binding.key)
        if passed is None and has_star_arguments(call):
            return given_with_stars(self, position, binding.key)
        return None if passed is None else (caller, passed.value)

    def owner_of(self, node: cst.BaseExpression) -> ClassInfo | None:
        """The class of the object that an attribute is of; of the one whose method runs its own class."""
        if not isinstance(node, cst.Attribute):
            return None
        own = None if self.function is None else self.function.self_name
        if self.instance_of is not None and getattr(node.value, "value", None) == own:
            return self.instance_of
        value = self.value(node.value)
        return value.definition if isinstance(value, (Instance, Module)) else None

    # -- things ------------------------------------------------------------------------------------------------------

    def thing(self, node: cst.CSTNode, steps: int = _MAX_STEPS) -> Thing | None:
        """The thing that an expression stands for; ``None`` when that cannot be told."""
        if steps <= 0:
            return None
        match node:
            case cst.Name():
                return self._named(node, steps)
            case cst.Attribute():
                return self._attribute(node, steps)
            case cst.Subscript():
                if (named := self._held(node, steps)) is not None:
                    return named
                holder, index = self.thing(node.value, steps - 1), subscript_index(node)
                if holder is None or index is None:
                    return None
                is_every = runs_over_keys(self.model, index, node.value)
                return holder.part(EVERY if is_every else f"[{fingerprint(index)}]")
            case cst.Call():
                return self._called(node, steps)
            case cst.Await():
                return self.thing(node.expression, steps)
            case cst.IfExp():
                # `DataParallel(net) if devices > 1 else net`
                thing = self.thing(node.body, steps - 1)
                return thing if thing == self.thing(node.orelse, steps - 1) else None
        return None

    def _called(self, node: cst.Call, steps: int) -> Thing | None:
        """What a call hands through: ``net.to(device)``, ``DataParallel(net)``, ``Sequential(*net.children())``."""
        whole = itself_of(self.model, node) or children_of(node) or inside_of(self.model, node)
        return self._handed_back(node, (), steps) if whole is None else self.thing(whole, steps - 1)

    def _handed_back(self, node: cst.Call, place: tuple[int | None, ...], steps: int) -> Thing | None:
        """What a function of the project is given and gives back, as a whole or at a place of a tuple."""
        called = self.model.value(node.func)
        back = handed_back(called.definition, place) if isinstance(called, Function) else None
        if back is None or has_star_arguments(node):
            return None
        given = argument(node, *back)
        return None if given is None else self.thing(given.value, steps - 1)

    def _named(self, node: cst.Name, steps: int) -> Thing | None:
        bindings = self.bindings_of(node)
        made = origins(self.model, node.value, bindings)
        if made and made[0].kind in (BindingKind.ASSIGN, BindingKind.ANNOTATED):
            return Frame(made[0].scope.model)._of_bindings(made, steps - 1)
        return self._of_bindings(bindings, steps)

    def bindings_of(self, node: cst.Name) -> tuple[Binding, ...]:
        """What binds a name: in its own scope what reaches it, otherwise the scopes around it, at any time."""
        bindings = self.model.reaching(node)
        scope: Scope | None = self.model.scope_of(node)
        while not bindings and scope is not None:
            scope = scope.parent
            if scope is not None and not scope.is_class and node.value in scope.bindings:
                bindings = tuple(scope.bindings[node.value])
        return bindings

    def _of_bindings(self, bindings: tuple[Binding, ...], steps: int) -> Thing | None:
        things = [
            self._remembered(binding, steps)
            for binding in bindings
            if binding not in self._running and not is_nothing(binding)
        ]
        if not things:
            return None
        if all(thing == things[0] for thing in things):
            return things[0]
        if any(thing is None or thing.path for thing in things):
            return None
        return Thing(frozenset(root for thing in things if thing is not None for root in thing.roots))

    def _remembered(self, binding: Binding, steps: int) -> Thing | None:
        """What a binding stands for, worked out once. One that stands for itself again adds nothing."""
        if binding not in self._things:
            self._running.append(binding)
            thing = self._bound(binding, steps)
            self._running.pop()
            if self._running:
                return thing  # perhaps without a part that is still being worked out
            self._things[binding] = thing
        return self._things[binding]

    def _bound(self, binding: Binding, steps: int) -> Thing | None:
        own = self._published(binding) or self._given_back(binding, steps) or Thing(frozenset({binding}))
        value = binding.value
        match binding.kind:
            case BindingKind.PARAMETER:
                return self._of_parameter(binding, steps)
            case BindingKind.NARROWED:
                return self._of_bindings(binding.scope.reaching(binding.key, binding.node).bindings, steps - 1)
            case BindingKind.LOOP if binding in self.elements:
                home, element = self.elements[binding]
                return home.thing(element, steps - 1)
            case BindingKind.LOOP if value is not None:
                return element_of(self, value, binding.path, steps)
            case BindingKind.ASSIGN | BindingKind.ANNOTATED | BindingKind.WITH if value is not None:
                if isinstance(value, (cst.Tuple, cst.List)) and binding.path and binding.path[0] is not None:
                    parts = [element.value for element in value.elements]
                    if binding.path[0] < len(parts) and len(binding.path) == 1:
                        return self.thing(parts[binding.path[0]], steps - 1) or own
                if binding.path and isinstance(value, cst.Call):
                    return self._handed_back(value, binding.path, steps) or own
                if binding.path:
                    return _named(unpacked_from(self, binding), steps) or own
                return self._alias(value, own, steps) or own
        return own

    def _alias(self, value: cst.BaseExpression, own: Thing, steps: int) -> Thing | None:
        """What the right-hand side of an assignment hands on; ``None``: something new, such as a part of a file.

        Of ``optimizer or SGD(...)`` what was given, or its ``own`` new thing.
        """
        pair = or_default(value)
        given = None if pair is None else self.thing(pair.given, steps - 1)
        if given is not None and not given.path and not own.path:
            return Thing(given.roots | own.roots)
        is_read = isinstance(value, cst.Subscript) and isinstance(self.model.value(value), Loaded)
        is_named = isinstance(value, (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.IfExp))
        return self.thing(value, steps - 1) if is_named and not is_read else None

    def _of_parameter(self, binding: Binding, steps: int) -> Thing | None:
        own = self._published(binding) or Thing(frozenset({binding}))
        frame = self.run_of(binding.scope, of_callers=False)
        if frame is None:
            return own
        function = frame.function
        if function is not None and is_receiver(function, binding) and function.owner is not None:
            return frame.receiver or Thing(frozenset({function.owner}))
        given = frame.given(binding)
        if given is None:
            return own
        thing = given[0].thing(given[1], steps - 1)
        # What is made in the very call, or a number that is written there, has no name but the parameter's.
        return own if thing is None and isinstance(given[1], (cst.Call, cst.BaseNumber, cst.BinaryOperation)) else thing

    def _published(self, binding: Binding) -> Thing | None:
        """The attribute that a method makes of what it binds: of ``net`` in ``self.net = net``."""
        frame = self.run_of(binding.scope, of_callers=False)
        function = None if frame is None else frame.function
        name = None if function is None else published(function, binding)
        if frame is None or function is None or function.owner is None or name is None:
            return None
        return (frame.receiver or Thing(frozenset({function.owner}))).part(f".{name}")

    def _given_back(self, binding: Binding, steps: int) -> Thing | None:
        """What the caller makes of what a function binds and returns: ``net`` of ``net, optimizer = build()``.

        A function that is called twice gives two things; what each of them is called keeps them apart.
        """
        if binding.kind is not BindingKind.ASSIGN or "." in binding.key or not binding.scope.is_function:
            return None
        frame = self.run_of(binding.scope, of_callers=False)
        if frame is None or frame.function is None or frame.call is None or frame.caller is None:
            return None
        path = place_in_returns(frame.function, binding)
        bound = None if path is None else bound_to_call(frame.caller.model, frame.call, path)
        return None if bound is None else frame.caller._of_target(bound, steps)

    def made_by(self, call: cst.Call) -> Thing | None:
        """What a call makes in this run, by the name that it is bound to."""
        bound = bound_to_call(self.model, call, ())
        return None if bound is None else self._of_target(bound, _MAX_STEPS)

    def _of_target(self, binding: Binding, steps: int) -> Thing | None:
        """The thing that a binding of this run's body binds."""
        if "." not in binding.key:
            return None if binding in self._running else self._remembered(binding, steps - 1)
        target = target_of(binding)
        holder = None if target is None else self.thing(target.value, steps - 1)
        return None if holder is None or target is None else holder.part(f".{target.attr.value}")

    def _attribute(self, node: cst.Attribute, steps: int) -> Thing | None:
        bound = self.model.reaching(node)
        if bound:
            # Bound in this very body: `self.optimizer = optimizer`.
            thing = self._of_bindings(bound, steps)
            roots = frozenset() if thing is None else thing.roots
            if thing is not None and not any(isinstance(root, Binding) and root in bound for root in roots):
                return thing
        if (named := self._held(node, steps)) is not None:
            return named
        holder = self.thing(node.value, steps - 1)
        return None if holder is None else self._of_instance(holder, node.attr.value, steps)

    def _held(self, node: cst.Attribute | cst.Subscript, steps: int) -> Thing | None:
        """The thing with a name of its own that a dict, a list or a record has under a key, or as an attribute."""
        return _named(held(self, node), steps)

    def at(self, binding: Binding) -> "Frame":
        """Any run of the body that binds something: it is not seen to be called."""
        model = binding.scope.model
        return Frame(model, function_around(model, binding.node))

    def _of_instance(self, holder: Thing, name: str, steps: int) -> Thing:
        """An attribute of a thing; where the class only ever gives it another one's name, that one: ``self.net``."""
        own = holder.part(f".{name}")
        given = self._given_to_maker(holder, name, steps)
        if given is not None:
            return given
        owner = next(iter(holder.roots))
        if holder.path or len(holder.roots) != 1 or not isinstance(owner, ClassInfo):
            return own
        assigned = [item for item in owner.assignments(name) if not is_nothing(item)]
        if len(assigned) != 1 or assigned[0].value is None or assigned[0].path:
            return own
        binding = assigned[0]
        function = function_around(binding.scope.model, binding.node)
        if function is None or not isinstance(binding.value, (cst.Attribute, cst.Call, cst.IfExp)):
            return own
        behind = Frame(binding.scope.model, function, receiver=holder).thing(binding.value, steps - 2)
        return behind if behind is not None and behind.roots == holder.roots and behind != own else own

    def known_as(self, thing: Thing) -> Thing:
        """A thing by the name that this run has for it: an attribute may be what its object was given."""
        if not thing.path or not thing.path[0].startswith("."):
            return thing
        known = self._of_instance(Thing(thing.roots), thing.path[0][1:], _MAX_STEPS)
        for step in thing.path[1:]:
            known = known.part(step)
        return known

    def _given_to_maker(self, holder: Thing, name: str, steps: int) -> Thing | None:
        """What an object was given where it was made, and keeps as an attribute: the net of ``Evaluator(net).net``."""
        kept = self.kept(holder, name)
        thing = None if kept is None else kept[0].thing(kept[1], steps - 2)
        if kept is None or thing is None or thing.may_be(holder):
            return None
        function = kept[0].function
        is_inner = any(
            function is not None and root.scope is function.scope for root in thing.roots if isinstance(root, Binding)
        )
        return None if is_inner else thing

    def kept(self, holder: Thing, name: str) -> "tuple[Frame, cst.BaseExpression] | None":
        """What the constructor of an object gives an attribute, the only one to do so, and the run of it."""
        made = self._making(holder)
        definition = None if made is None else made[1].definition
        constructor = None if definition is None else definition.method("__init__")
        if made is None or definition is None or constructor is None:
            return None
        bound = [item for item in definition.assignments(name) if not (is_nothing(item) or is_handed_on(item))]
        value = unpacked(bound[0]) if len(bound) == 1 else None
        if not isinstance(value, (cst.Name, cst.Call)) or made[0].runs(constructor):
            return None
        run: Frame | None = Frame(constructor.model, constructor, made[0], made[2], holder)
        while run is not None and run.function is not None and run.function.scope is not bound[0].scope:
            run = run._of_base(holder)
        return None if run is None else (run, value)

    def _of_base(self, holder: Thing) -> "Frame | None":
        """The run of the base class's constructor that this one calls: ``super().__init__(net)``."""
        assert self.function is not None
        for call in self.model.calls_by_word.get("__init__", ()):
            is_super = isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Call)
            if not is_super or self.model.enclosing_function(call) is not self.function.node:
                continue
            called = self.model.value(call.func)
            if isinstance(called, Function) and not self.runs(called.definition):
                return Frame(called.definition.model, called.definition, self, call, holder)
        return None

    def _making(self, holder: Thing) -> "tuple[Frame, Instance | Module, cst.Call] | None":
        """The call that makes an object of a class of the project, what it makes, and the run in which it stands."""
        owner = next(iter(holder.roots))
        if isinstance(owner, ClassInfo) and not holder.path:
            return self._made_for_call(owner)
        if len(holder.roots) != 1:
            return None
        if len(holder.path) > isinstance(owner, ClassInfo):
            # What the constructor of another object makes: `Schedule(self.optimizer)` of `trainer.schedule`.
            return _made(self.kept(Thing(holder.roots, holder.path[:-1]), holder.path[-1].removeprefix(".")))
        assigned = [owner] if isinstance(owner, Binding) else owner.assignments(holder.path[0].removeprefix("."))
        makers = [item for item in assigned if isinstance(owner, Binding) or not is_nothing(item)]
        binding = makers[0] if len(makers) == 1 else None
        if binding is not None and binding.kind is BindingKind.PARAMETER:
            frame = self.run_of(binding.scope)
            return None if frame is None else _made(frame.given(binding))
        if binding is None or binding.path or binding.kind is not BindingKind.ASSIGN:
            return None
        value = binding.scope.model.binding_value(binding) if isinstance(binding.value, cst.Call) else None
        if not isinstance(value, (Instance, Module)) or not isinstance(binding.value, cst.Call):
            return None
        receiver = Thing(frozenset({owner})) if isinstance(owner, ClassInfo) else None
        return self.home_of(binding, receiver), value, binding.value

    def home_of(self, binding: Binding, receiver: Thing | None) -> "Frame":
        """The run of the body that binds something; where that is not seen to be called, one on some object."""
        model = binding.scope.model
        return self.run_of(binding.scope) or Frame(model, function_around(model, binding.node), receiver=receiver)

    def _made_for_call(self, owner: ClassInfo) -> "tuple[Frame, Instance | Module, cst.Call] | None":
        """The call that makes the object whose method is called on it at once: ``Trainer(net).fit()``."""
        for frame in self.led_by():
            called = None if frame.call is None or frame.caller is None else frame.call.func
            made = called.value if isinstance(called, cst.Attribute) else None
            built = frame.caller.model.value(made.func) if frame.caller and isinstance(made, cst.Call) else None
            if isinstance(built, ClassObject) and isinstance(made, cst.Call):
                value = built.definition.instance(made)
                if frame.caller and owner in built.definition.lineage and isinstance(value, (Instance, Module)):
                    return frame.caller, value, made
        return None


def _is_only_some(receiver: Value) -> bool:
    return type(receiver) is Module and receiver.is_only_some


def _named(given: tuple[Frame, cst.BaseExpression] | None, steps: int) -> Thing | None:
    """The thing that was put somewhere, where it has a name of its own."""
    is_named = given is not None and type(given[1]) in (cst.Name, cst.Attribute, cst.Subscript)
    return given[0].thing(given[1], steps - 1) if given is not None and is_named else None


def _made(given: tuple[Frame, cst.BaseExpression] | None) -> tuple[Frame, Instance | Module, cst.Call] | None:
    """What is made in the very expression that gives it: ``run(net, Compute(criterion, None))``."""
    value = given[0].value(given[1]) if given is not None and isinstance(given[1], cst.Call) else None
    if given is None or not isinstance(given[1], cst.Call) or not isinstance(value, (Instance, Module)):
        return None
    return given[0], value, given[1]
