"""Gradient flags: on what they are set, and whether somebody else has a use for the attribute."""

import re
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.expressions.arguments import is_asked_about, passed_anywhere
from mllint.semantic.expressions.new_results import is_defined_beside
from mllint.semantic.graph.flag_names import is_new_without
from mllint.semantic.graph.leaves import whose_parameters
from mllint.semantic.graph.looked_at import OF_MODULES, is_given_as_module
from mllint.semantic.graph.one_way_flags import picks_by
from mllint.semantic.graph.placement import wants_no_result
from mllint.semantic.graph.whole_numbers import holds_whole_numbers
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind, only_assigned
from mllint.semantic.names.uses import attributes, calls_of_path, reads, without_narrowing
from mllint.semantic.values import (
    ClassObject,
    Elements,
    Instance,
    Method,
    Module,
    Nothing,
    Other,
    Output,
    Repeated,
    StateDict,
    Symbol,
    Tensor,
    Value,
    own_method,
)
from mllint.syntax.iteration import run_over, sources
from mllint.syntax.shape import argument, before_methods, called_on, constant, dotted_path, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

# What attributes of a module are called that are modules, where nothing else is known of them.
_PARTS = frozenset({
    "backbone", "encoder", "decoder", "features", "classifier", "fc", "layer1", "layer2", "layer3", "layer4", "trunk",
    "stem", "neck", "base_model", "bert", "roberta", "transformer", "vision_model", "text_model", "visual",
    "image_encoder", "text_encoder", "vision_tower", "feature_extractor", "resnet", "vgg", "conv1", "bn1", "module",
})  # fmt: skip

_FREEZING = re.compile(r"(?i)requir\w*grad\w*\s*=\s*False|_grad_\(\s*False|stop_gradient\s*=\s*True|freez|frozen")
"""How a file freezes parameters, or speaks of it."""
MAX_STEPS = 4
"""Through how many names a part of a module is followed."""
_SAME = frozenset({"to", "cuda", "cpu", "eval", "train"})
_TABLES = ("_modules", "_sub_layers")
_WEIGHTS = ("weight", "bias")
_OF_TENSORS = frozenset({"data", "grad", "T", "H", "mT", "mH", "real", "imag"})
"""The attributes of a tensor that are tensors."""
_MANY = (cst.BaseDict, cst.BaseList, cst.BaseSet, cst.BaseComp)
_FUNCTIONS = frozenset({"torch.autograd.Function", "paddle.autograd.PyLayer"})


def flagged_module(model: "Model", node: cst.BaseExpression) -> Module | None:
    """The module that an expression is: one that is known, or a part of one that has a name as only modules have."""
    value = model.value(node)
    if isinstance(value, Module):
        return value
    if value is None or isinstance(value, Method):
        part = _part_of_module(model, node, MAX_STEPS)
        if part is not None:
            return part
        if value is not None and isinstance(node, cst.Name) and model.framework and _is_given_modules(model, node):
            return Module(model.framework)
    if isinstance(value, Method) and isinstance(value.receiver, Module) and "?" in value.receiver.wrappers:
        value = None  # any attribute of a module of which no more is known
    if value is not None or model.framework not in ("torch", "paddle"):
        return None
    is_module = _is_called(model, node) or _is_child(model, node)
    is_module = is_module or _has_parts(model, node) or _does_what_modules_do(model, node)
    is_module = is_module or _is_given_modules(model, node) or _is_used_elsewhere(model, node)
    return Module(model.framework) if is_module else None


def _part_of_module(model: "Model", node: cst.BaseExpression, steps: int) -> Module | None:
    """A part of a module that has a name as only modules have, some layers of one, or one of several such."""
    match node:
        case _ if steps == 0:
            return None
        case cst.Attribute(attr=cst.Name(value=word)) if word in _PARTS:
            owner = flagged_module(model, node.value)
            return None if owner is None else Module(owner.framework)
        case cst.Subscript(value=cst.Attribute() as whole):
            return _part_of_module(model, whole, steps - 1)
        case cst.Name() | cst.Attribute():
            bindings = without_narrowing(model.reaching(node))
            binding = bindings[0] if len(bindings) == 1 else None
            made = None if binding is None or binding.value is None else binding.value
            if binding is None or made is None:
                return None
            if binding.kind is BindingKind.LOOP:
                return _element_of_parts(model, made, binding.path, steps - 1)
            made = before_methods(made, _SAME) if binding.kind is BindingKind.ASSIGN and not binding.path else node
            return None if isinstance(made, cst.Name) else _part_of_module(model, made, steps - 1)
    return None


def _element_of_parts(
    model: "Model", iterable: cst.BaseExpression, path: tuple[int | None, ...], steps: int
) -> Module | None:
    """What a loop gets that runs over the layers of a part, or over several parts that are written out."""
    source = next((item.node for item in sources(iterable) if item.path == path), None)
    if isinstance(source, (cst.List, cst.Tuple)):
        parts = [_module_or_part(model, element.value, steps) for element in source.elements]
        return parts[0] if parts and None not in parts else None
    return None if source is None else _part_of_module(model, source, steps)


def _module_or_part(model: "Model", node: cst.BaseExpression, steps: int) -> Module | None:
    value = model.value(node)
    return value if isinstance(value, Module) else _part_of_module(model, node, steps)


def _is_given_modules(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a name is a parameter of a function, or one of what such a parameter lists, for which calls in sight
    give modules.

    Of what another call gives nothing need be known: where a module is given, the flag does nothing.
    """
    bindings = without_narrowing(model.reaching(node)) if isinstance(node, cst.Name) else []
    over = bindings[0].value if len(bindings) == 1 and bindings[0].kind is BindingKind.LOOP else None
    if over is not None:
        listed = run_over(over)
        if bindings[0].path or not isinstance(listed, cst.Name):
            return False
        bindings = [item for item in without_narrowing(model.reaching(listed)) if not _is_wrapped(item)]
    binding = bindings[0] if len(bindings) == 1 and bindings[0].kind is BindingKind.PARAMETER else None
    function = None if binding is None else binding.scope.node
    if binding is None or not isinstance(binding.node, cst.Param) or not isinstance(function, cst.FunctionDef):
        return False
    info = model.function_info(function)
    if over is None and is_asked_about(model, info, binding.node):
        return False
    given = [
        _module_or_part(other, item, MAX_STEPS) or other.value(item)
        for other, item in passed_anywhere(info, binding.node)
    ]
    parts = [part for value in given for part in (_listed(value) if over is not None else (value,))]
    known = [part for part in parts if part is not None and not isinstance(part, (Nothing, Method))]
    return bool(known) and all(isinstance(part, Module) for part in known)


def _is_wrapped(binding: Binding) -> bool:
    """Whether one thing is made a list of itself: ``if not isinstance(nets, list): nets = [nets]``."""
    made = binding.value
    if binding.kind is not BindingKind.ASSIGN or not isinstance(made, (cst.List, cst.Tuple)):
        return False
    return [dotted_path(element.value) for element in made.elements] == [binding.key]


def _listed(value: Value | None) -> tuple[Value | None, ...]:
    """What a loop over a value gets; of a module, which stands for a list of one, that itself."""
    match value:
        case Elements():
            return value.items
        case Repeated():
            return (value.item,)
    return (value,)


def is_meant_for_paddle(model: "Model", node: cst.BaseExpression, statement: cst.Assign) -> bool:
    """Whether ``requires_grad`` is set on a tensor of Paddle, to what is not so anyway, and nothing goes by it."""
    is_tensor = is_paddle_tensor(model, node, statement.value) and not picks_by(model, "requires_grad")
    return is_tensor and not is_so_anyway(model, node, statement, "requires_grad")


def is_so_anyway(model: "Model", node: cst.BaseExpression, statement: cst.CSTNode, flag: str) -> bool:
    """Whether an assignment to a flag says what is so without it: a new tensor asks for no gradients, and a parameter
    for some where nothing in the file has frozen any.

    One of whole numbers cannot even do so.
    """
    if holds_whole_numbers(model, node):
        return True
    value = constant(statement.value) if isinstance(statement, (cst.Assign, cst.AnnAssign)) else ...
    if value is (flag != "stop_gradient"):
        known = model.value(node)
        is_of_module = (isinstance(known, Tensor) and known.parameter) or _holder(model, node) is not node
        return is_of_module and not _FREEZING.search(model.source.text)
    if value is not (flag == "stop_gradient"):
        return False
    return is_new_without(model, node)


def _is_called(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the class or function around calls a thing, as nobody can call a tensor."""
    path, holder = dotted_path(node), _around(model, node)
    return holder is not None and any(model.tree.is_below(call, holder) for call in calls_of_path(model, path or ""))


def _does_what_modules_do(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the class or function around calls methods of a thing that only modules have: ``teacher.eval()``."""
    path, holder = dotted_path(node), _around(model, node)
    if path is None or holder is None or method_of_receiver(model, node) is not None:
        return False  # an object of a class that is written here may have a flag of its own
    calls = (call for word in OF_MODULES for call in model.calls_by_word.get(word, ()) if not call.args)
    return any(
        isinstance(call.func, cst.Attribute)
        and dotted_path(call.func.value) == path
        and model.tree.is_below(call, holder)
        and ("." in path or model.reaching(call.func.value) == model.reaching(node))
        for call in calls
    )


def _is_used_elsewhere(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a function that the class or function around gives a thing uses it as nobody can use a tensor."""
    holder = _around(model, node)
    return holder is not None and is_given_as_module(model, node, holder)


def _has_parts(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the class or function around reads the weights of a part of a thing, ``head.conv.weight``: a tensor has
    no parts.
    """
    path, holder = dotted_path(node), _around(model, node)
    whole = (model.tree.parent(name) for word in _WEIGHTS for name in model.names_by_word.get(word, ()))
    parts = (item.value for item in whole if isinstance(item, cst.Attribute) and isinstance(item.value, cst.Attribute))
    return (
        path is not None
        and holder is not None
        and any(
            dotted_path(part.value) == path and part.attr.value not in _OF_TENSORS and model.tree.is_below(part, holder)
            for part in parts
        )
    )


def _around(model: "Model", node: cst.BaseExpression) -> cst.CSTNode | None:
    """What holds all that may be the same thing by its name: the class of an attribute, the function of a name."""
    holders = (cst.ClassDef,) if "." in (dotted_path(node) or "") else (cst.FunctionDef, cst.Module)
    return model.tree.nearest(node, *holders)


def _is_child(model: "Model", node: cst.BaseExpression, steps: int = 4) -> bool:
    """Whether a name stands for one of the ``children()`` of something, or of a list that is made of them."""
    bindings = model.reaching(node)
    over = bindings[0].value if len(bindings) == 1 and bindings[0].kind is BindingKind.LOOP else None
    if bindings and bindings[0].path == (1,) and isinstance(over, cst.Call) and isinstance(over.func, cst.Attribute):
        return over.func.attr.value == "items" and last_word(over.func.value) in _TABLES
    while over is not None and not bindings[0].path and steps:
        steps -= 1
        match over:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="children" | "modules" | "sublayers")), args=()):
                return True
            case cst.Call(func=cst.Attribute(value=cst.Attribute(attr=cst.Name(value=word)))) if word in _TABLES:
                return last_word(over.func) == "values"
            case cst.Call() if run_over(over) is not over:
                over = run_over(over)
            case cst.Subscript(value=inner):
                over = inner
            case cst.Name():
                over = only_assigned(model, over)
            case _:
                return False
    return False


def is_trained_whole(model: "Model", flag: cst.Attribute) -> bool:
    """Whether somebody is given all parameters of the module that an assigned flag is about, to train them.

    With the flags set there would be nothing to train, and PyTorch raises. Not where parts of it are made anew, or
    have their own flags set.
    """
    statement = model.tree.parent(model.tree.parent(flag) or flag)
    thaws = not flag.attr.value.startswith("stop")
    if isinstance(statement, cst.Assign) and constant(statement.value) is thaws:
        return False
    path = dotted_path(_holder(model, flag.value))
    if path is None:
        return False
    # `self.net` is trained in another method; a local name is the same one in its own scope alone.
    scope = None if "." in path else model.scope_of(flag)
    given, touched = False, {dotted_path(flag)}
    for call in (*model.calls_by_word.get("parameters", ()), *model.calls_by_word.get("requires_grad_", ())):
        if scope is None or model.scope_of(call) is scope:
            given |= dotted_path(call.func) == f"{path}.parameters" and isinstance(
                model.tree.parent(call), (cst.Arg, cst.StarredElement)
            )
            touched.add(dotted_path(call.func.value) if isinstance(call.func, cst.Attribute) else None)
    for target in model.tree.by_type.get(cst.AssignTarget, ()):
        if scope is None or model.scope_of(target) is scope:
            touched.add(dotted_path(target.target))
    touched.discard(dotted_path(flag))
    return given and not any(part is not None and part.startswith(f"{path}.") for part in touched)


def _holder(model: "Model", owner: cst.BaseExpression) -> cst.BaseExpression:
    """The module behind one of its parameters: ``net`` for ``p`` in ``for p in net.parameters()``; else the owner."""
    bindings = model.reaching(owner)
    over = bindings[0].value if len(bindings) == 1 and bindings[0].kind is BindingKind.LOOP else None
    return (None if over is None else whose_parameters(over)) or owner


def is_context(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a name is the ``ctx`` in which a function with a backward pass of its own keeps what it likes."""
    function = model.enclosing_function(node)
    if function is None or not isinstance(node, cst.Name):
        return False
    info = model.function_info(function)
    if info.owner is None or not info.parameters:
        return False
    position = 0 if "builtins.staticmethod" in info.decorators else 1
    named = [item.name.value for item in info.parameters]
    return node.value in named[: position + 1] and not _FUNCTIONS.isdisjoint(info.owner.library_bases)


def is_somebodys(model: "Model", target: cst.Attribute) -> bool:
    """Whether an attribute that is assigned belongs to somebody: read in the file, declared by a class, set on what is
    neither tensor nor module.
    """
    owner, name = model.value(target.value), target.attr.value
    if isinstance(owner, (ClassObject, Symbol, Other)) or is_context(model, target.value):
        return True
    if isinstance(owner, Instance) and owner.definition.framework is None:
        return True
    if isinstance(owner, Module) and own_method(owner, name) is not None:
        return True
    if isinstance(_assigned_to(model, target), _MANY):  # of each parameter
        return True
    return any(_is_read(model, attribute) for attribute in attributes(model, name))


def _assigned_to(model: "Model", target: cst.Attribute) -> cst.BaseExpression | None:
    """The right-hand side of the assignment of which something is a target, or a part of one."""
    holders = (item for item in model.tree.ancestors(target) if isinstance(item, (cst.Assign, cst.AnnAssign)))
    return next((item.value for item in holders), None)


def _is_read(model: "Model", attribute: cst.Attribute) -> bool:
    parent = model.tree.parent(attribute)
    while isinstance(parent, (cst.BaseElement, cst.Tuple, cst.List)):
        parent = model.tree.parent(parent)
    return not isinstance(parent, cst.AssignTarget) and not (
        isinstance(parent, (cst.AugAssign, cst.AnnAssign)) and parent.target is attribute
    )


def may_be_refused(model: "Model", target: cst.Attribute) -> bool:
    """Whether a tensor of PyTorch may not let an assigned flag be changed, or may not be used as it is from then on."""
    owner = model.value(target.value)
    if model.framework != "torch" or (isinstance(owner, Tensor) and owner.parameter):
        return False
    value = _assigned_to(model, target)
    given = [element.value for element in value.elements] if isinstance(value, cst.Tuple) else [value]
    is_wanted = any(item is None or constant(item) is not False for item in given)
    return is_wanted or isinstance(owner, Output) or (isinstance(owner, Tensor) and owner.attached is True)


def is_own_field(model: "Model", target: cst.Attribute, module: Module) -> bool:
    """Whether the class of a module, or somebody in the file, has a use for an attribute that is assigned."""
    name, path = target.attr.value, dotted_path(target)
    if path is not None and any(True for _ in reads(model, path)):
        return True
    definition = module.definition
    if definition is None:
        return False
    if definition.method("__setattr__") is not None or definition.method(name) is not None:
        return True
    return any(_declares_or_reads(info, name) for info in definition.lineage)


def _declares_or_reads(info: "ClassInfo", name: str) -> bool:
    """Whether a class has an attribute of its own of that name in its body, or reads it in one of its methods."""
    if name in info.model.scope(info.node).bindings:
        return True
    own_names = {method.self_name for method in info.methods.values()}
    places = (node for own in own_names if own is not None for node in reads(info.model, f"{own}.{name}"))
    return any(info.model.tree.is_below(node, info.node) for node in places)


def is_paddle_tensor(model: "Model", node: cst.BaseExpression, flag: cst.BaseExpression) -> bool:
    """Whether a gradient flag is meant for a tensor of Paddle: a parameter, or one that is to have a gradient.

    What a file for Paddle alone reads the gradient of, and asks for no such flag, is a tensor.
    """
    value = model.value(node)
    if isinstance(value, Tensor):
        return value.framework == "paddle" and (value.parameter or constant(flag) is True)
    path = dotted_path(node)
    if value is not None or path is None or model.framework != "paddle" or constant(flag) is not True:
        return False
    is_read = any(True for _ in reads(model, f"{path}.grad", model.scope_of(node)))
    return is_read and not any(True for _ in reads(model, f"{path}.requires_grad"))


def is_parameter(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is a parameter of a torch module: known as one, or what a loop over ``parameters()`` of
    whatever gives.
    """
    value = model.value(node)
    if value is not None:
        return isinstance(value, Tensor) and value.parameter and value.framework == "torch"
    bindings = model.reaching(node)
    over = bindings[0].value if len(bindings) == 1 and bindings[0].kind is BindingKind.LOOP else None
    if over is None or whose_parameters(over) is None or model.framework != "torch":
        return False
    of_pairs = isinstance(over, cst.Call) and last_word(over.func) == "named_parameters"
    return bindings[0].path == ((1,) if of_pairs else ())


def is_state_value(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is one of the values of the state dict of a torch module.

    In a file for PyTorch alone, what else has such a method holds no tensors right in its state: an optimizer.
    """
    holder: cst.BaseExpression | None = node.value if isinstance(node, cst.Subscript) else None
    bindings = model.reaching(node)
    if len(bindings) == 1 and bindings[0].kind is BindingKind.LOOP:
        call = bindings[0].value
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
            holder = call.func.value if call.func.attr.value in ("values", "items") else None
    state = None if holder is None else model.value(holder)
    if state is None and isinstance(holder, cst.Call) and model.framework == "torch":
        return last_word(holder.func) == "state_dict" and not holder.args
    return isinstance(state, StateDict) and isinstance(state.owner, Module) and state.owner.framework == "torch"


def is_refused(model: "Model", node: cst.BaseExpression, statement: cst.Assign) -> bool:
    """Whether a tensor of PyTorch is surely computed with a graph: it does not let its flag be switched off.

    Who switches it on has seen that something has no graph.
    """
    value = model.value(node) if constant(statement.value) is False else None
    if not isinstance(value, Tensor) or value.framework != "torch" or value.or_number or value.leaf or value.parameter:
        return False
    is_recorded = value.attached is True and model.gradients.off(statement) is False
    return is_recorded and not wants_no_result(model, statement)


def is_wanted_of_tensor(model: "Model", node: cst.BaseExpression, flag: cst.BaseExpression) -> bool:
    """Whether a tensor of PyTorch is meant to ask for gradients, or not to, other than it does as it was made."""
    value = model.value(node)
    if not isinstance(value, Tensor) or value.framework != "torch" or value.or_number:
        return False
    asks_for_none = value.attached is False and not value.parameter
    return not (asks_for_none and constant(flag) is False)


_GIVING = "parameters"


def is_named_parameter(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is a pair that the ``named_parameters()`` of a module gives: the variable of the loop."""
    bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.LOOP or bindings[0].path:
        return False
    call = bindings[0].value
    return (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "named_parameters"
        and flagged_module(model, call.func.value) is not None
    )


def is_all_parameters(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is what ``parameters()`` of a module gives: an iterator, or a list in Paddle."""
    if isinstance(node, cst.Name):
        node = only_assigned(model, node) or node
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value != _GIVING:
        return False
    if _GIVING in model.function_names or is_defined_beside(model, _GIVING):
        return False  # what has a method of that name need be no module
    module = node.func.value
    is_unknown = model.value(module) is None and dotted_path(module) is not None
    return is_unknown or flagged_module(model, module) is not None


def call_with_lost_flag(model: "Model", parameter: cst.Call) -> cst.Call | None:
    """The call that makes a tensor with ``requires_grad=False`` for a parameter, which asks for gradients anyway.

    ``None`` also where somebody clears the flag of a parameter of that name.
    """
    node = parameter.args[0].value if len(parameter.args) == 1 and not parameter.args[0].star else None
    while isinstance(node, cst.Call):
        flag = argument(node, None, "requires_grad")
        if flag is not None:
            is_lost = constant(flag.value) is False and flag is not node.args[0]
            return node if is_lost and not _is_cleared(model, parameter) else None
        node = called_on(node)
    return None


def _is_cleared(model: "Model", parameter: cst.Call) -> bool:
    statement = model.tree.nearest(parameter, cst.Assign)
    kept = None if statement is None else last_word(statement.targets[0].target)
    flagged = (model.tree.parent(word) for word in model.names_by_word.get("requires_grad", ()))
    set_by_hand = (item.value for item in flagged if isinstance(item, cst.Attribute))
    called = filter(None, map(called_on, model.calls_by_word.get("requires_grad_", ())))
    return kept is None or any(last_word(item) == kept for item in (*set_by_hand, *called))
