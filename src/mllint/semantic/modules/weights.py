"""Whether a module has anything that is trained, saved or moved, or that depends on its mode."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import ADDING_MODULES, ADDING_PARAMETERS, SETTING, STATISTICS
from mllint.semantic.construction.libraries import SEQUENTIALS
from mllint.semantic.modules.module_keys import begins_with_weights, module_keys
from mllint.semantic.names.classes import makes_parameter
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.semantic.names.uses import attributes, without_narrowing
from mllint.semantic.values import Array, ClassObject, Function, Member, Module, Number, Other, Tensor, Text
from mllint.syntax.shape import argument, constant, constant_given, dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo


_COMPUTING = (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.ComparisonTarget, cst.AugAssign)


def has_weights(model: "Model", node: cst.BaseExpression) -> bool | None:
    """Whether the module that an expression stands for has parameters or buffers; ``None``: not known."""
    value = model.value(node)
    if not isinstance(value, Module):
        return None
    keys = module_keys(model, node, value)
    if keys.certain:
        return True
    if keys.is_empty:
        return False
    if value.definition is not None:
        is_sure = _holds_weights(value.definition) or begins_with_weights(model, value)
        return True if is_sure or _is_filled_container(model, value) else None
    if value.others:
        return True if all(have_weights(other) for other in value.others) else None
    if value.name is None:
        # What a function of a library builds is a model.
        return None if value.call is None or may_be_activation(model, value.call) else True
    if value.call is not None and value.call.args and is_container(value.name):
        return _any_has_weights(model, value.call)
    return _is_layer_with_weights(value.name)


def is_trainable(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the module that an expression stands for may have parameters, and so records a graph of what it does.

    A normalization without weights, ``BatchNorm1d(3, affine=False)``, has its statistics alone, and a class of the
    project may have nothing but buffers: a spectrogram.
    """
    value = model.value(node)
    if has_weights(model, node) is False or (isinstance(value, Module) and _is_made_of_values(value)):
        return False
    return not has_only_statistics(model, node)


def has_only_statistics(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a module surely has no weights but the statistics of normalizations, if any."""
    value = model.value(node)
    keys = module_keys(model, node, value) if isinstance(value, Module) else None
    if keys is None or not keys.is_closed:
        return False
    return all(key.rpartition(".")[2] in STATISTICS for key in (*keys.certain, *keys.optional))


def _is_made_of_values(value: Module) -> bool:
    """Whether a module is made of a project class that surely has neither parameters nor modules: buffers at most."""
    definition = value.definition if value.call is not None else None
    if definition is None or not _makes_no_parameter(definition) or _adds_by_name(definition):
        return False
    return all(
        _is_value(model, node) or _is_computed_with(definition, binding.key.rpartition(".")[2])
        for model, node, binding in _assigned(definition)
    )


def _is_computed_with(definition: "ClassInfo", name: str) -> bool:
    """Whether a class reads an attribute, and only to compute with it or to compare it: it holds no module."""
    reads = list(definition.members.reads(name))
    return bool(reads) and all(isinstance(read.method.model.tree.parent(read.node), _COMPUTING) for read in reads)


def _adds_by_name(definition: "ClassInfo") -> bool:
    """Whether a project class adds modules or parameters, or sets attributes, by names that may be made up."""
    called = {last_word(call.func) for info in definition.lineage for call in info.model.tree.calls_in(info.node.body)}
    return not called.isdisjoint(ADDING_MODULES | ADDING_PARAMETERS | SETTING)


def _is_value(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression surely is no module: a tensor, a number, or a parameter that is a number by default."""
    bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    defaults = [item.node.default for item in bindings if isinstance(item.node, cst.Param)]
    if defaults and len(defaults) == len(bindings) and None not in defaults:
        return all(default is not None and _is_value(model, default) for default in defaults)
    return isinstance(model.value(node), (Tensor, Array, Number, Text, Other))


def have_weights(value: Module) -> bool:
    """Whether a module of which only the class is known surely has weights."""
    if value.definition is not None:
        return _holds_weights(value.definition)
    return value.name is not None and _is_layer_with_weights(value.name) is True


def may_bring_weights(value: Module) -> bool:
    """Whether a module of a class, or of one that the project derives from it, has weights."""
    derived = () if value.definition is None else value.definition.subclasses
    return have_weights(value) or any(map(_holds_weights, derived))


def _any_has_weights(model: "Model", call: cst.Call) -> bool:
    """Whether a container of layers, of which it is not known how many there are, has any with weights.

    What is known of none of them is taken for a layer that has.
    """
    if id(call) not in model.tree.parents:
        return True  # in another file
    layers = [layer for arg in call.args for layer in _repeated_layers(arg.value)]
    return not layers or any(
        has_weights(model, layer) is not False and not may_be_activation(model, layer) for layer in layers
    )


def may_be_activation(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a layer is picked by a computed name, and not given the sizes that one with weights needs:
    ``getattr(nn, name)()``.
    """
    if not isinstance(node, cst.Call) or id(node) not in model.tree.parents:
        return False
    sizes = [arg for arg in node.args if arg.keyword is None and not arg.star and constant(arg.value) is ...]
    return len(sizes) < 2 and isinstance(model.value(node.func), Member)


def _repeated_layers(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The layers that a list is written with: of ``[A(), B()] * n`` and ``[A() for _ in sizes]``."""
    match node:
        case cst.List() | cst.Tuple():
            return [element.value for element in node.elements]
        case cst.ListComp() | cst.GeneratorExp():
            return [node.elt]
        case cst.BinaryOperation(operator=cst.Multiply()):
            return _repeated_layers(node.left) or _repeated_layers(node.right)
    return [node]


def _is_filled_container(model: "Model", value: Module) -> bool:
    """Whether a module is of a project class that is a ``Sequential``, made of layers of which some have weights."""
    definition, call = value.definition, value.call
    if definition is None or call is None or not call.args or definition.method("__init__") is not None:
        return False
    return not SEQUENTIALS.isdisjoint(definition.library_bases) and _any_has_weights(model, call)


def is_container(name: str) -> bool:
    """Whether a library class holds the modules that it is given: ``Sequential``, ``ModuleList``, ..."""
    known, state = lookup.class_(name), lookup.layer_state(name)
    return known is not None and known.kind == "container" and state is not None and state.sized


def _is_layer_with_weights(name: str) -> bool | None:
    """Whether a library class has weights whatever its arguments, of which some are not known.

    So has what builds its own layers, as many as it is told to: ``Transformer``, ``VGG``.
    """
    known, state = lookup.class_(name), lookup.layer_state(name)
    if known is None:
        return None
    is_model = state is None and known.kind == "layer" and lookup.framework_of(name) != name.partition(".")[0]
    is_built = state is not None and bool(state.keys or (state.sized and known.kind == "layer"))
    return True if known.kind == "rnn" or is_model or is_built else None


def _holds_weights(definition: "ClassInfo", above: "tuple[ClassInfo, ...]" = ()) -> bool:
    """Whether a project class assigns parameters, or modules that are not surely without weights, of whatever size."""
    return _makes_parameters(definition) or any(
        (value.name is not None and _may_have_weights(value.name) and not module_keys(model, node, value).is_empty)
        or (
            (value.definition is not None and value.definition not in above)
            and _holds_weights(value.definition, (*above, definition))
        )
        for model, node, value in _assigned_modules(definition)
    )


def registers_given_tensor(value: Module) -> bool:
    """Whether the constructor of a module surely registers a buffer that is saved: a tensor that it is given, which is
    declared as one and not left out, is as good as one that it makes.
    """
    definition = value.definition
    if definition is None:
        return False
    method = definition.methods.get("__init__")
    lines = () if method is None else method.node.body.body
    parts = (line.body[0] for line in lines if isinstance(line, cst.SimpleStatementLine))
    calls = (part.value for part in parts if isinstance(part, cst.Expr) and isinstance(part.value, cst.Call))
    model = definition.model
    return any(
        isinstance(call.func, cst.Attribute)
        and method_of_receiver(model, call.func.value) is method
        and _is_sure_buffer(model, call)
        for call in calls
    )


def _is_sure_buffer(model: "Model", call: cst.Call) -> bool:
    tensor = argument(call, 1, "tensor")
    if last_word(call.func) != "register_buffer" or tensor is None or len(call.args) != 2:
        return False
    bindings = model.reaching(tensor.value) if isinstance(tensor.value, cst.Name) else ()
    may_be_left_out = any(isinstance(item.node, cst.Param) and item.node.default is not None for item in bindings)
    return not may_be_left_out and isinstance(model.value(tensor.value), Tensor)


def makes_weights(definition: "ClassInfo", above: "tuple[ClassInfo, ...]" = ()) -> bool:
    """Whether a project class makes parameters or layers with weights itself, beside those that it may be given."""
    return _makes_parameters(definition) or any(
        isinstance(node, cst.Call)
        and (
            makes_weights(value.definition, (*above, definition))
            if value.definition is not None and value.definition not in above
            else value.name is not None
            and not is_container(value.name)
            and _may_have_weights(value.name)
            and not module_keys(model, node, value).is_empty
        )
        for model, node, value in _assigned_modules(definition)
    )


def _makes_parameters(definition: "ClassInfo") -> bool:
    return any(makes_parameter(model, node) for model, node, _ in _assigned(definition))


def _assigned_modules(definition: "ClassInfo") -> "Iterator[tuple[Model, cst.BaseExpression, Module]]":
    """The expressions for modules that the class and its bases assign to attributes."""
    for model, node, binding in _assigned(definition):
        value = model.binding_value(binding)
        if value is None or (isinstance(value, Module) and value.name is None and value.definition is None):
            value = made_by_default(model, node) or value
        if isinstance(value, Module):
            yield model, node, value


def _assigned(definition: "ClassInfo") -> "Iterator[tuple[Model, cst.BaseExpression, Binding]]":
    """The expressions that the class and its bases assign to attributes, each as a whole."""
    for info in definition.lineage:
        for method in info.methods.values():
            for key, bindings in method.scope.bindings.items():
                if key.startswith(f"{method.self_name}.") and key.count(".") == 1:
                    for binding in bindings:
                        if binding.value is not None and not binding.path:
                            yield info.model, binding.value, binding


def made_by_default(model: "Model", node: cst.BaseExpression) -> Module | None:
    """What the call of a name makes that stands for a layer class, or a function that gives one: of a parameter whose
    default is one, ``conv(3, 8)`` with ``conv=nn.Conv2d``, also with ``conv=None`` where that becomes such a class.

    Whoever gives another class gives one of the same kind.
    """
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name):
        return None
    made: Module | None = None
    bindings = without_narrowing(model.reaching(node.func))
    for binding in bindings:
        if binding.kind is BindingKind.PARAMETER:
            maker = binding.node.default if isinstance(binding.node, cst.Param) else None
            if maker is not None and len(bindings) > 1 and constant(maker) is None:
                continue
        else:
            maker = assigned(binding)
        made = None if maker is None else made_by(model, maker)
        if made is None:
            return None
    return made


def made_by(model: "Model", maker: cst.BaseExpression) -> Module | None:
    """What calls of a class of layers, or of a function that does no more than make one, give.

    Some arguments may be there already, ``partial(nn.LayerNorm, eps=1e-6)``, and another one go before:
    ``norm or nn.LayerNorm``.
    """
    if isinstance(maker, cst.BooleanOperation) and isinstance(maker.operator, cst.Or):
        maker = maker.right
    if isinstance(maker, cst.Call):
        if model.qualified_name(maker.func) != "functools.partial" or not maker.args:
            return None
        maker = maker.args[0].value
    name = model.library_name(maker)
    known = None if name is None else lookup.class_(name)
    if known is not None:
        return Module(model.framework or "torch", name) if known.kind in ("layer", "rnn") else None
    value = model.value(maker)
    if isinstance(value, ClassObject) and value.definition.framework is not None:
        return Module(value.definition.framework, definition=value.definition)
    if not isinstance(value, Function) or len(value.definition.scope.returns) != 1:
        return None
    returned = value.definition.scope.returns[0].value
    given = value.definition.model.value(returned) if isinstance(returned, cst.Call) else None
    return given if isinstance(given, Module) else None


def _may_have_weights(name: str) -> bool:
    state = lookup.layer_state(name)
    return state is None or state.sized or bool(state.keys)


def has_only_buffers(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a module of a project class, which has weights, surely makes no parameter: a table that is computed."""
    value = model.value(node)
    definition = value.definition if isinstance(value, Module) else None
    return definition is not None and _makes_no_parameter(definition)


def _makes_no_parameter(definition: "ClassInfo") -> bool:
    if not definition.members.has_only_plain_bases or _holds_weights(definition):
        return False
    return not any(
        "arameter" in (last_word(call.func) or "") or makes_parameter(info.model, call)
        for info in definition.lineage
        for call in info.model.tree.calls_in(info.node.body)
    )


def surely_has_none(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a module surely has no weights, also one of a project class that does no more than set plain values."""
    value = model.value(node)
    definition = value.definition if isinstance(value, Module) else None
    if definition is None or not definition.members.has_only_plain_bases:
        return has_weights(model, node) is False
    made = (info.methods["__init__"] for info in definition.lineage if "__init__" in info.methods)
    calls = (call for method in made for call in method.model.tree.calls_in(method.node))
    is_plain = all(last_word(call.func) in ("super", "__init__") for call in calls)
    return is_plain and all(constant(given) is not None for _, given, _ in _assigned(definition))


def asks_for_no_gradients(definition: "ClassInfo") -> bool:
    """Whether no parameter that a project class makes asks for gradients: ``Parameter(weight, requires_grad=False)``.

    Such weights learn by rules of their own, or never.
    """
    made = [node for model, node, _ in _assigned(definition) if makes_parameter(model, node)]
    return (
        bool(made)
        and all(isinstance(value, cst.Call) and constant_given(value, None, "requires_grad") is False for value in made)
        and not any(True for _ in _assigned_modules(definition))
    )


def parts_with_weights(definition: "ClassInfo") -> "list[tuple[Model, cst.BaseExpression, Module]]":
    """The modules with weights that a project class assigns to attributes, and where it makes them; none where it may
    have weights of its own, or where something that it assigns may be another module.
    """
    found: list[tuple[Model, cst.BaseExpression, Module]] = []
    if not definition.members.has_only_plain_bases or _adds_by_name(definition) or _hands_itself_on(definition):
        return found
    for model, node, binding in _assigned(definition):
        value = model.binding_value(binding)
        if makes_parameter(model, node):
            return []
        if isinstance(value, Module):
            if has_weights(model, node) is not False:
                found.append((model, node, value))
        elif not _is_value(model, node) and not _is_of_part(binding, node):
            return []
    return found


def _hands_itself_on(definition: "ClassInfo") -> bool:
    """Whether a constructor gives the object to a function, which may make it hold anything."""
    made = [info.methods["__init__"] for info in definition.lineage if "__init__" in info.methods]
    return any(
        isinstance(arg.value, cst.Name) and arg.value.value == method.self_name and last_word(call.func) != "super"
        for method in made
        for call in method.model.tree.calls_in(method.node)
        for arg in call.args
    )


def _is_of_part(binding: Binding, node: cst.BaseExpression) -> bool:
    """Whether what is assigned is taken from what the object holds: ``self.depth = self.network.depth``."""
    path = dotted_path(node)
    return path is not None and path.count(".") > 1 and path.startswith(f"{binding.key.partition('.')[0]}.")


def is_constant(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression stands for a Paddle layer all of whose parameters are tables: computed, and never trained.

    Paddle moves nothing with its layers, so that it is enough to have such tables computed anew.
    """
    value = model.value(node)
    definition = value.definition if isinstance(value, Module) else None
    if definition is None or definition.framework != "paddle" or any(True for _ in _assigned_modules(definition)):
        return False
    made, frozen = set[str](), set[str]()
    for info in definition.lineage:
        for method in info.methods.values():
            for key, bindings in method.scope.bindings.items():
                name, _, flag = key.removeprefix(f"{method.self_name}.").partition(".")
                values = [binding.value for binding in bindings if binding.value is not None]
                if not flag and any(makes_parameter(info.model, value) for value in values):
                    made.add(name)
                elif flag == "stop_gradient" and all(constant(binding.value) is True for binding in bindings):
                    frozen.add(name)
    return bool(made) and made <= frozen


def builds_a_program(model: "Model") -> bool:
    """Whether a file writes static graphs of Paddle: there every parameter belongs to the program, whoever holds it."""
    if "enable_static" in model.names_by_word:
        return True
    named = (model.qualified_name(node) for node in attributes(model, "static"))
    return model.imports("paddle.static") or "paddle.static" in named


def drops_values(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression stands for a layer that drops values, or asks for ``self.training``.

    To both ``eval()`` must get through.
    """
    value = model.value(node)
    if not isinstance(value, Module):
        return False
    if value.definition is not None:
        return any(value.definition.members.reads("training"))
    return value.name is not None and "Dropout" in value.name.rpartition(".")[2]
