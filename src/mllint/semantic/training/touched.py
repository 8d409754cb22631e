"""Which things something that cannot be looked into is given, or may hold, and whether it may switch their mode."""

import libcst as cst

from mllint.semantic import flow
from mllint.semantic.events.held import parts_of
from mllint.semantic.events.kinds import is_named_switch, may_name_thing
from mllint.semantic.events.makers import is_accelerator
from mllint.semantic.events.places import is_nothing, unpacked
from mllint.semantic.events.steps import Event, Kind
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.names.scopes import Binding
from mllint.semantic.training.relevance import names_event
from mllint.semantic.values import Instance, Module, Value
from mllint.syntax.shape import called_on, constant, dotted_path, last_word
from mllint.syntax.walk import names_in, subtree


def touched(call: cst.Call, frame: Frame) -> tuple[Thing | None, ...]:
    """The things that are given to something unknown; ``None`` among them for what it may hold itself."""
    found: list[Thing | None] = []
    parts = [arg.value for arg in call.args]
    if isinstance(call.func, cst.Attribute):
        parts.append(call.func if _is_held(call.func, frame) else call.func.value)
    if isinstance(call.func, cst.Call) and is_of_any_name(call.func):
        parts += [arg.value for arg in call.func.args[:1]]
    for part in parts:
        for home, node in ((frame, part), *parts_of(frame, part)):
            if dotted_path(node) is not None or isinstance(node, cst.Subscript):
                thing = home.thing(node)
                if thing is not None and not _is_setting(thing) and not _is_plainly_data(home.value(node)):
                    found.append(thing)
    called = frame.value(call.func)
    if isinstance(called, Instance):
        # What an object of the project holds cannot be told. Where none of its methods does anything that matters, and
        # its class derives from one of another package, it is no more than what is called that nothing is known of.
        methods = (method for info in called.definition.lineage for method in info.methods.values())
        found.append(None if any(map(names_event, methods)) else frame.thing(call.func))
    return tuple(found)


def is_of_any_name(called: cst.BaseExpression) -> bool:
    """Whether whichever method of an object is called: ``getattr(network, phase)()``."""
    return isinstance(called, cst.Call) and last_word(called.func) == "getattr"


def _is_setting(thing: Thing) -> bool:
    """Whether a thing is a number among the settings of an optimizer: ``optimizer.param_groups[0]["lr"]``."""
    _, is_group, rest = "".join(thing.path).partition(".param_groups[")
    return bool(is_group) and "[" in rest and "params" not in rest


def _is_held(callee: cst.Attribute, frame: Frame) -> bool:
    """Whether what is called is an object that the instance keeps, ``self.criterion``: it is not given the instance.

    A method of a base class that is not known would be, and what was made of ``self`` may hold it.
    """
    holder = frame.value(callee.value) if isinstance(callee.value, cst.Name) else None
    owner = holder.definition if isinstance(holder, (Instance, Module)) else None
    if owner is None or owner.method(callee.attr.value) is not None:
        return False
    values = [_maker_of(binding) for binding in owner.assignments(callee.attr.value) if not is_nothing(binding)]
    return bool(values) and all(value is not None and not _mentions_instance(value) for value in values)


def _maker_of(binding: Binding) -> cst.BaseExpression | None:
    """What makes what a binding binds, also as one of several: ``self.criterion, other = build_losses(options)``."""
    value = unpacked(binding)
    return binding.value if value is None and isinstance(binding.value, cst.Call) else value


def _mentions_instance(value: cst.BaseExpression) -> bool:
    """Whether an instance, or a module it keeps, may be given to what a value is made by. A copy holds nothing."""
    if isinstance(value, cst.Call) and (dotted_path(value.func) or "").rpartition(".")[2] in ("deepcopy", "copy"):
        return False
    parts = [arg.value for arg in value.args] if isinstance(value, cst.Call) else [value]
    return any(
        isinstance(node, cst.Name) and (node.value == "self" if node is part else may_name_thing(node.value))
        for part in parts
        for node in subtree(part)
    )


def _is_plainly_data(value: Value | None) -> bool:
    """Whether a thing is known and cannot be, or hold, an optimizer or a module."""
    return value is not None and flow.is_data(value)


def may_switch_unseen(event: Event, module: Thing | None) -> bool:
    """Whether an event is a call out of sight that is given a module, or holds it, and may switch its mode."""
    if event.kind is not Kind.UNKNOWN or not event.concerns(module):
        return False
    receiver = called_on(event.node)
    is_of_accelerator = receiver is not None and is_accelerator(event.frame.thing(receiver))
    return not (is_of_accelerator or _is_call_of(event, module))


def _is_call_of(event: Event, module: Thing | None) -> bool:
    """Whether what cannot be looked into is just a call of the module, or of a part of it."""
    call = event.node
    if not isinstance(call, cst.Call) or is_named_switch(call):
        return False  # `network.adapters_train()`
    called = _own_part(event.frame, call) or event.frame.thing(call.func)
    return called is not None and module is not None and called.may_be(module)


def _own_part(frame: Frame, call: cst.Call) -> Thing | None:
    """The module of which one of its own methods calls a part by a name that is put together, and gives it something:
    ``getattr(self, name)(inputs)``. A switch would be given nothing, or a mode.
    """
    owner, maker = None if frame.function is None else frame.function.owner, call.func
    if owner is None or owner.framework is None or not call.args or not isinstance(maker, cst.Call):
        return None
    if last_word(maker.func) != "getattr" or not maker.args or getattr(maker.args[0].value, "value", None) != "self":
        return None
    is_mode = len(call.args) == 1 and (constant(call.args[0].value) is not ... or "train" in names_in(call.args[0]))
    return None if is_mode else frame.thing(maker.args[0].value)
