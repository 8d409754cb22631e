"""Whose parameters an expression gives, and what belongs together: optimizer and module, scheduler and optimizer."""

import libcst as cst

from mllint.semantic.events.makers import Made, made_by, makers_of, makings_of_elements
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.expressions.arguments import argument_for
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.scopes import Binding, BindingKind, only_assigned
from mllint.semantic.values import Function, Object, Tensor
from mllint.syntax.iteration import sources
from mllint.syntax.shape import argument, dotted_path, last_word, string_literal
from mllint.syntax.walk import names_in

_PARAMETERS = frozenset({"parameters", "named_parameters", "trainable_parameters"})
_KEYWORDS = ("params", "parameters", "parameter_list")
_STEPS = 12


def owner_of_parameters(frame: Frame, node: cst.BaseExpression) -> Thing | None:
    """The one module, or optimizer, whose parameters an expression is; ``None``: several, or not known.

    ``net`` of ``net.parameters()``, and of the variable of a loop over them; the optimizer of
    ``optimizer.param_groups[0]["params"]``.
    """
    owners = owners_of_parameters(frame, node)
    return owners[0] if len(owners) == 1 else None


def owners_of_parameters(frame: Frame, node: cst.BaseExpression) -> tuple[Thing | None, ...]:
    """All things whose parameters an expression gives, each once; ``None`` among them for what is not known."""
    return tuple(dict.fromkeys(_owners(frame, node, _STEPS)))


def _owners(frame: Frame, node: cst.BaseExpression, steps: int) -> list[Thing | None]:
    if steps <= 0:
        return [None]
    match node:
        case cst.Name():
            return _of_name(frame, node, steps)
        case cst.Attribute(attr=cst.Name(value="param_groups")):
            return [frame.thing(node.value)]
        case cst.Attribute(attr=cst.Name(value="weight" | "bias")):
            return [frame.thing(node.value)]
        case cst.Attribute():
            return _of_attribute(frame, node, steps)
        case cst.Subscript():
            return _owners(frame, node.value, steps - 1)
        case cst.Call():
            return _of_call(frame, node, steps)
        case cst.BinaryOperation(operator=cst.Add()):
            return [*_owners(frame, node.left, steps - 1), *_owners(frame, node.right, steps - 1)]
        case cst.List() | cst.Tuple():
            return [owner for item in node.elements for owner in _owners(frame, item.value, steps - 1)] or [None]
        case cst.Dict():
            given = [
                item.value
                for item in node.elements
                if isinstance(item, cst.DictElement) and string_literal(item.key) == "params"
            ]
            return [owner for item in given for owner in _owners(frame, item, steps - 1)] or [None]
        case cst.ListComp() | cst.GeneratorExp():
            return _owners(frame, node.elt, steps - 1)
    return [None]


def _of_call(frame: Frame, call: cst.Call, steps: int) -> list[Thing | None]:
    word = call.func.attr.value if isinstance(call.func, cst.Attribute) else getattr(call.func, "value", "")
    if isinstance(call.func, cst.Attribute) and word in _PARAMETERS:
        return [frame.thing(call.func.value)]
    if word == "master_params" and call.args:  # of apex
        return [frame.thing(call.args[0].value)]
    if word in ("map", "from_iterable") and call.args:
        return _owners(frame, call.args[-1].value, steps - 1)
    source = _sorted_by_function(frame, call)
    if source is not None:
        return [frame.thing(source)]
    return [
        owner
        for item in sources(call)
        for owner in ([None] if item.node is call else _owners(frame, item.node, steps - 1))
    ]


def _sorted_by_function(frame: Frame, call: cst.Call) -> cst.BaseExpression | None:
    """The module that a function of the project is given which takes its parameters, and those of nothing else:
    ``groups = group_by_decay(net, 0.05)``.
    """
    callee = frame.value(call.func)
    info = callee.definition if isinstance(callee, Function) else None
    if info is None or info.owner is not None or not (info.is_transparent and info.is_plain) or not info.scope.returns:
        return None
    words = sorted(_PARAMETERS.intersection(info.model.calls_by_word))
    taken = [item for word in words for item in info.model.calls_by_word[word] if _is_in(info, item)]
    receivers = [dotted_path(item.func.value) for item in taken if isinstance(item.func, cst.Attribute)]
    if not receivers or len(receivers) != len(taken) or len(set(receivers)) != 1:
        return None
    parameter = next((item for item in info.parameters if item.name.value == receivers[0]), None)
    return None if parameter is None else argument_for(info, parameter, call, 0)


def _is_in(info: FunctionInfo, call: cst.Call) -> bool:
    return info.model.enclosing_function(call) is info.node


def _of_name(frame: Frame, name: cst.Name, steps: int) -> list[Thing | None]:
    bindings = frame.bindings_of(name)
    if not bindings:
        return [None]
    found: list[Thing | None] = []
    for binding in bindings:
        if binding.value is None or binding.kind not in (BindingKind.ASSIGN, BindingKind.LOOP):
            given = frame.given(binding)
            found += [None] if given is None else _owners(*given, steps - 1)
        else:
            found += _owners(frame, binding.value, steps - 1)
    return found


def _is_input(binding: Binding) -> bool:
    """Whether a name is bound to a tensor of its own that wants gradients, and is no parameter: an image is drawn."""
    value = binding.scope.model.binding_value(binding) if isinstance(binding.value, cst.Call) else None
    return isinstance(value, Tensor) and value.leaf and not value.parameter


def _of_attribute(frame: Frame, node: cst.Attribute, steps: int) -> list[Thing | None]:
    bindings = frame.model.reaching(node)
    values = [binding.value for binding in bindings if binding.value is not None]
    if len(values) != 1:
        # A parameter that is an attribute of its own: what holds it.
        holder = frame.thing(node.value)
        return [holder]
    return _owners(frame, values[0], steps - 1)


def modules_of_optimizer(frame: Frame, optimizer: Thing | None) -> tuple[Thing | None, ...]:
    """The modules whose parameters an optimizer was given where it was made; ``None`` among them for what is not known.

    ``frame`` is a run that uses it: what the bodies that led there were given counts.
    """
    if optimizer is None:
        return (None,)
    makers = [(root, binding) for root in optimizer.roots for binding in makers_of(root, optimizer.path)]
    # More may be added by hand.
    models = {frame.model, *(root.scope.model if isinstance(root, Binding) else root.model for root in optimizer.roots)}
    models |= {binding.scope.model for _, binding in makers}
    found: list[Thing | None] = [None] if any("add_param_group" in model.calls_by_word for model in models) else []
    found += _modules_of_element(frame, optimizer)
    for root, binding in makers:
        given = _modules_given(frame, binding)
        found += [seen_from(frame, root, optimizer, module) for module in given] if optimizer.path else given
    return tuple(dict.fromkeys(found)) or (None,)


def _modules_of_element(frame: Frame, optimizer: Thing) -> list[Thing | None]:
    """The modules whose parameters an optimizer has that stands in a list or a dict: ``optimizers["critic"]``."""
    holder = Thing(optimizer.roots, optimizer.path[:-1])
    return [
        seen_from(frame, root, holder, module)
        for root in optimizer.roots
        for made in makings_of_elements(frame, optimizer)
        for module in ([None] if made is None else _modules_given_to(made))
    ]


def updates(frame: Frame, optimizer: Thing | None, target: Thing | None) -> bool | None:
    """Whether an optimizer updates parameters of a module, or the same ones as another optimizer.

    ``None`` when that cannot be told.
    """
    if optimizer is None or target is None or optimizer.may_be(target):
        return True if optimizer is not None and optimizer == target else None
    modules, others = modules_of_optimizer(frame, optimizer), modules_of_optimizer(frame, target)
    theirs = (target,) if others == (None,) else others
    shared = [other for other in theirs if other is not None and any(one and one.may_be(other) for one in modules)]
    if shared:
        is_part = all(any(one and len(one.path) < len(other.path) for one in modules) for other in shared)
        return None if is_part and _picks_by_name(frame, optimizer) else True
    if None in theirs or any(module is None or _may_have_other_names(module) for module in (*modules, *theirs)):
        return None
    return None if others == (None,) and _is_optimizer(target) else False


def _picks_by_name(frame: Frame, optimizer: Thing) -> bool:
    """Whether an optimizer has those parameters of a module whose names say so: which of its parts, is not known.

    Groups of them, with and without weight decay, are all together.
    """
    made = [made_by(frame, binding) for root in optimizer.roots for binding in makers_of(root, optimizer.path)]
    calls = [(item, _parameters_given(_name_of(item), item.call)) for item in made if item is not None]
    return any(given is not None and _is_picked(item.frame, given.value) for item, given in calls)


def _is_picked(frame: Frame, node: cst.BaseExpression) -> bool:
    """Whether an expression is one comprehension over named parameters that tests their names."""
    if isinstance(node, cst.Name):
        value = only_assigned(frame.model, node)
        return value is not None and not isinstance(value, cst.Name) and _is_picked(frame, value)
    if not isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        return False
    taken, target = names_in(node.elt), names_in(node.for_in.target)
    return any(names_in(test.test) & (target - taken) for test in node.for_in.ifs)


def maker(frame: Frame, thing: Thing | None) -> cst.Call | None:
    """The one call by which a thing was made; ``None``: several, or not known."""
    if thing is None or thing.path[1:]:
        return None
    bindings = [binding for root in thing.roots for binding in makers_of(root, thing.path)]
    if len(bindings) != 1:
        return None
    made = made_by(frame, bindings[0])
    value = bindings[0].value
    return made.call if made is not None else value if isinstance(value, cst.Call) and not bindings[0].path else None


def _is_optimizer(thing: Thing) -> bool:
    bindings = [binding for root in thing.roots for binding in makers_of(root, thing.path[:1])]
    return any(isinstance(binding.scope.model.binding_value(binding), Object) for binding in bindings)


def _may_have_other_names(thing: Thing) -> bool:
    """Whether a thing came in from outside, where it may be known otherwise."""
    return any(isinstance(root, Binding) and root.kind is BindingKind.PARAMETER for root in thing.roots)


def seen_from(frame: Frame, root: Binding | ClassInfo, kept: Thing, thing: Thing | None) -> Thing | None:
    """What a method of an object calls ``self.net``, as it is known where the object is: it keeps another thing, too.

    ``root`` is the one of that other thing that is meant.
    """
    if thing is None or not all(isinstance(item, ClassInfo) for item in thing.roots):
        return thing
    return frame.known_as(Thing(frozenset({root}), (*kept.path[:-1], *thing.path)))


def _modules_given(frame: Frame, binding: Binding) -> list[Thing | None]:
    made = made_by(frame, binding)
    return [None] if made is None else _modules_given_to(made)


def _modules_given_to(made: Made) -> list[Thing | None]:
    given = _parameters_given(_name_of(made), made.call)
    if given is None:
        return [None]
    inputs = _inputs(made.frame, given.value)
    return inputs or list(owners_of_parameters(made.frame, given.value))


def _name_of(made: "Made") -> str:
    """The name of what was called to make something."""
    return made.frame.model.qualified_name(made.call.func) or ""


def _parameters_given(optimizer: str, call: cst.Call) -> cst.Arg | None:
    """The argument of the parameters. In Paddle the learning rate comes first, and they stand elsewhere."""
    named = (argument(call, None, keyword) for keyword in _KEYWORDS)
    given = next((arg for arg in named if arg is not None), None)
    if given is not None or not optimizer.startswith("paddle."):
        return given or argument(call, 0)
    called = ((arg, arg.value.func) for arg in call.args if isinstance(arg.value, cst.Call))
    return next((arg for arg, function in called if last_word(function) in _PARAMETERS), None)


def _inputs(frame: Frame, node: cst.BaseExpression) -> list[Thing | None]:
    """The tensors of which a list consists, where none is a parameter: what an optimizer changes is no module then."""
    names = [item.value for item in node.elements] if isinstance(node, (cst.List, cst.Tuple)) else []
    bound = [frame.model.reaching(name) for name in names]
    is_all = all(bindings and all(map(_is_input, bindings)) for bindings in bound)
    return [frame.thing(name) for name in names] if is_all else []
