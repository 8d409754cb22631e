"""Leaves of the graph: tensors that were made, not computed, and that need a gradient."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import STATISTICS
from mllint.semantic.graph.gradients import has_callers_out_of_sight
from mllint.semantic.names.changes import changes_of_bound
from mllint.semantic.names.classes import makes_parameter
from mllint.semantic.names.conditions import verdicts
from mllint.semantic.names.receivers import method_of_receiver, owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.semantic.names.uses import without_narrowing
from mllint.semantic.names.writes import writes_numbers
from mllint.semantic.values import Loaded, Module, Tensor
from mllint.syntax.shape import argument, before_methods, constant, dotted_path, items_of, root_of, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# The flags that say whether a tensor needs a gradient, and the value with which it does.
FLAGS = {"requires_grad": True, "stop_gradient": False, "trainable": True}
_COMPUTED = (
    cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.List, cst.ListComp, cst.Tuple, cst.Dict, cst.DictComp,
    cst.BaseNumber, cst.BaseString,
)  # fmt: skip
_COPYING = frozenset({"clone", "to", "cuda", "cpu", "float", "double", "half", "contiguous"})
_WALKS = frozenset({"self.modules", "self.children", "self.sublayers"})


def is_leaf(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is surely a leaf that needs a gradient where it stands.

    Made as one (``requires_grad=True``, ``Parameter``), or a tensor without a graph whose flag is set on every way
    here. An attribute that anything in the file may freeze is not known.
    """
    bound = (*model.reaching(node), *_beginnings_of_attribute(model, node))
    if any(map(_is_surely_computed, bound)) and not is_flagged(model, node):
        return False  # before it is asked what was computed
    value = model.value(node)
    if not isinstance(value, Tensor) or value.or_number:
        return False
    beginnings = _beginnings(model, node) if value.framework == "torch" else []
    if (value.leaf and value.attached is True) or (beginnings and all(_is_made_as_leaf(item) for item in beginnings)):
        return not _may_be_frozen(model, node)
    path = dotted_path(node)
    if path is None or value.attached is True or _may_be_frozen(model, node):
        return False
    if value.attached is None:
        return isinstance(node, cst.Name) and _is_flagged_where_made(model, node)
    return is_flagged(model, node) and not any(_is_computed_of_flagged(model, item) for item in model.reaching(node))


def sets_flags(model: "Model") -> bool:
    """Whether a statement of the file says of a tensor that was made before whether it needs a gradient."""
    targets = (item.target for statement in model.tree.by_type.get(cst.Assign, ()) for item in statement.targets)
    is_set = any(type(target) is cst.Attribute and target.attr.value in FLAGS for target in targets)
    return is_set or "requires_grad_" in model.calls_by_word


def is_copy_of_leaf(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is a leaf, or copies one: who detaches ``weight.clone()`` makes another leaf beside it."""
    value = model.value(before_methods(node, _COPYING))
    return isinstance(value, Tensor) and value.leaf


def _is_surely_computed(binding: Binding) -> bool:
    """Whether a name stands for the result of an operator, or for a literal: no leaf that was made as one."""
    is_whole = binding.kind is BindingKind.ASSIGN and not binding.path
    return is_whole and isinstance(binding.value, _COMPUTED)


def _is_computed_of_flagged(model: "Model", binding: Binding) -> bool:
    """Whether a tensor is computed from one whose flag was set: ``b = 2 * a`` behind ``a.requires_grad = True``."""
    parts = () if binding.value is None else subtree(binding.value)
    return any(isinstance(part, (cst.Name, cst.Attribute)) and is_flagged(model, part) for part in parts)


def _is_made_as_leaf(binding: Binding) -> bool:
    value = binding.scope.model.binding_value(binding)
    return isinstance(value, Tensor) and value.leaf and value.attached is True and not value.or_number


def _beginnings(model: "Model", node: cst.BaseExpression) -> list[Binding]:
    """What binds a name, behind every ``w -= step``: that is the same tensor of torch again."""
    found: list[Binding] = []
    seen: set[int] = set()
    pending = list(model.reaching(node))
    while pending:
        binding = pending.pop()
        if id(binding) in seen:
            continue
        seen.add(id(binding))
        if binding.kind is BindingKind.AUGMENTED and isinstance(binding.node, cst.AugAssign):
            pending += model.reaching(binding.node.target)
        else:
            found.append(binding)
    return found or _beginnings_of_attribute(model, node)


def _beginnings_of_attribute(model: "Model", node: cst.BaseExpression) -> list[Binding]:
    """What the class of an object sets an attribute to, where a method changes it: ``self.weight += 1``."""
    owner = owner_of_attribute(model, node)
    if owner is None or not isinstance(node, cst.Attribute):
        return []
    return [item for item in owner.assignments(node.attr.value) if item.kind is not BindingKind.AUGMENTED]


def is_flagged(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether ``node.requires_grad = True`` (in Paddle ``node.stop_gradient = False``) ran on every way to a place."""
    path = dotted_path(node)
    if path is None:
        return False
    scope = model.scope_of(node)
    for flag, needed in FLAGS.items():
        reaching = scope.reaching(f"{path}.{flag}", node)
        if reaching.bindings and not reaching.may_be_unbound:
            return all(item.value is not None and constant(item.value) is needed for item in reaching.bindings)
    return False


def _is_flagged_where_made(model: "Model", node: cst.Name) -> bool:
    """Whether a name stands for one new tensor whose flag is set where it is made, in the same block.

    What is done to it below in place, with no matter what, makes no other tensor of it: of a leaf it is refused.
    """
    bindings = _beginnings(model, node) if model.framework == "torch" else list(model.reaching(node))
    made = bindings[0] if len(bindings) == 1 else None
    value = None if made is None or (call := assigned(made)) is None else made.scope.model.value(call)
    place = model.scope_of(node).place_of(node)
    if made is None or place is None or made.scope is not model.scope_of(node) or not isinstance(value, Tensor):
        return False
    if value.attached is not False or value.or_number or _is_computed_of_flagged(model, made):
        return False
    orders = [order for order in _flagged_beside(model, made) if made.order < order < place[1]]
    changed = [made.scope.place_of(change) for change in changes_of_bound(model, made)]
    return bool(orders) and all(at is not None and at[1] > min(orders) for at in changed)


def _flagged_beside(model: "Model", made: Binding) -> Iterator[int]:
    """Where the block in which a name is bound sets the flag of what it stands for, in the order of statements."""
    statements = [
        item.node
        for flag, needed in FLAGS.items()
        for item in made.scope.bindings.get(f"{made.key}.{flag}", ())
        if item.value is not None and constant(item.value) is needed
    ]
    for call in model.calls_by_word.get("requires_grad_", ()):
        is_of_it = isinstance(call.func, cst.Attribute) and dotted_path(call.func.value) == made.key
        if is_of_it and (not call.args or constant(call.args[0].value) is True):
            statements.append(model.tree.parent(call) or call)
    block = _block_of(model, made.node)
    for statement in statements:
        place = made.scope.place_of(statement) if _block_of(model, statement) is block is not None else None
        if place is not None:
            yield place[1]


def _block_of(model: "Model", statement: cst.CSTNode) -> cst.CSTNode | None:
    """The block in which a small statement stands on a line of its own."""
    line = model.tree.parent(statement)
    return model.tree.parent(line) if isinstance(line, cst.SimpleStatementLine) else None


def is_parameter_of_module(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is an attribute of a module that surely holds a registered parameter."""
    if not isinstance(node, cst.Attribute) or not isinstance(model.value(node.value), Module):
        return False
    value = model.value(node)
    return isinstance(value, Tensor) and value.parameter and not value.or_number


def is_changeable_leaf(model: "Model", node: cst.BaseExpression, statement: cst.CSTNode) -> bool:
    """Whether a tensor is surely a leaf that needs a gradient at a place that nobody runs under ``no_grad``.

    What the function itself made, or the module, is changed where it says so. A method may be called from another file,
    under ``no_grad``: only those that this file calls, and those that run where gradients are wanted, are certain; none
    is where a module of the file always runs with gradients switched off.
    """
    if isinstance(node, cst.Name) and _is_updated_by_gradient(model, node, statement):
        return not _may_run_otherwise(model, statement) and _is_called_here(model, statement)
    if _is_weight_of_layer(model, node):
        return not _may_run_otherwise(model, statement) and not _may_be_frozen(model, node)
    # What things are costs more than where they come from, and is asked last.
    bindings = model.reaching(root_of(node))
    is_own = bool(bindings) and all(item.kind is not BindingKind.PARAMETER for item in bindings)
    is_certain, methods = (True, []) if is_own else _ways_to(model, statement)
    if not is_own and (_runs_without_gradients(model) or not (is_certain or methods)):
        return False
    if not is_leaf(model, node) or _may_run_otherwise(model, statement):
        return False
    # That asks other files.
    return is_certain or not any(_is_run_on_what_was_read(model, method) for method in methods)


def changed_where_made(model: "Model", call: cst.Call) -> str | None:
    """The method that writes into a new leaf of torch that needs a gradient: ``Parameter(x).normal_()``."""
    method = call.func
    if not isinstance(method, cst.Attribute) or not writes_numbers(method.attr.value):
        return None
    value = model.value(method.value)
    if not isinstance(value, Tensor) or value.framework != "torch" or value.or_number or not value.leaf:
        return None
    is_made = value.attached is True and model.gradients.off(call) is False and not _may_run_otherwise(model, call)
    return method.attr.value if is_made else None


def viewed(model: "Model", name: cst.Name) -> cst.Attribute | None:
    """The attribute of which a name surely is a view: of ``b`` after ``b = layer.bias.view(3, -1)``."""
    bindings = _beginnings(model, name)
    call = assigned(bindings[0]) if len(bindings) == 1 else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    return call.func.value if call.func.attr.value == "view" and isinstance(call.func.value, cst.Attribute) else None


def becomes_parameter_again(model: "Model", node: cst.Attribute, statement: cst.CSTNode) -> bool:
    """Whether a function sets an attribute to a new parameter further below, where nobody runs it under ``no_grad``.

    ``layer.bias = nn.Parameter(b.view(-1))``: a parameter it was before, whatever ``layer`` is.
    """
    path, place = dotted_path(node), model.scope_of(statement).place_of(statement)
    if path is None or place is None:
        return False
    begun = model.reaching(root_of(node))
    for binding in model.scope_of(statement).bindings.get(path, ()):
        again = binding.node
        if binding.order < place[1] or not isinstance(again, cst.Assign) or not makes_parameter(model, again.value):
            continue
        flag = argument(again.value, 1, "requires_grad") if isinstance(again.value, cst.Call) else None
        is_same = model.reaching(root_of(again.targets[0].target)) == begun
        if is_same and (flag is None or constant(flag.value) is True):
            is_run = _is_called_here(model, statement) and not _may_run_otherwise(model, statement)
            return is_run and not _may_be_frozen(model, node)
    return False


def _may_run_otherwise(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a context or decorator around a place may switch gradients off, or a branch asks for the flag."""
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.With):
            for item in ancestor.items:
                context = item.item.func if isinstance(item.item, cst.Call) else item.item
                if model.qualified_name(context) is None:
                    return True
        elif isinstance(ancestor, (cst.If, cst.IfExp)):
            if _asks_for_flag(ancestor.test):
                return True
        elif isinstance(ancestor, cst.FunctionDef):
            info = model.function_info(ancestor)
            made = info.owner if info.name == "__init__" else None
            if not info.is_transparent or (made is not None and _is_handed_on(model, made.name)):
                return True
            if has_callers_out_of_sight(info):
                return True
    return False


def _is_handed_on(model: "Model", name: str) -> bool:
    """Whether a class is an argument, or the default of a parameter: where its instances are made is not seen."""
    holders = (model.tree.parent(word) for word in model.names_by_word.get(name, ()))
    return any(isinstance(holder, cst.Param) or (isinstance(holder, cst.Arg) and holder.keyword) for holder in holders)


def _asks_for_flag(test: cst.BaseExpression) -> bool:
    return any(isinstance(item, cst.Attribute) and item.attr.value in FLAGS for item in subtree(test))


def _runs_without_gradients(model: "Model") -> bool:
    """Whether a module of the file always switches gradients off when it runs, for all that it runs itself."""
    for word in ("no_grad", "inference_mode"):
        for name in model.names_by_word.get(word, ()):
            holders = model.tree.ancestors(name)
            decorator = next((item for item in holders if isinstance(item, cst.Decorator)), None)
            function = None if decorator is None else model.tree.parent(decorator)
            if isinstance(function, cst.FunctionDef) and function.name.value in ("forward", "__call__"):
                return True
    return False


def _is_called_here(model: "Model", node: cst.CSTNode) -> bool:
    """Whether the file itself comes to a place with gradients on; what ``forward`` does if asked to, who asks knows."""
    is_certain, methods = _ways_to(model, node)
    return is_certain or (bool(methods) and not any(_is_run_on_what_was_read(model, method) for method in methods))


def _ways_to(model: "Model", node: cst.CSTNode) -> tuple[bool, list[cst.FunctionDef]]:
    """Whether the file comes to a place, and if only methods of modules lead there that others are to call, these."""
    function = model.enclosing_function(node)
    if function is None or function.name.value == "__init__":
        return True, []
    if function.name.value == "forward":
        return not _is_asked_for(model, node, function), []
    ways = [function]
    for called in ways:
        for call in model.calls_by_word.get(called.name.value, ()):
            holder = model.enclosing_function(call)
            if holder in ways or _is_of_read_object(model, call):
                continue
            if holder is not None and _is_other_method_of_module(model, holder):
                ways.append(holder)
            elif holder is None or holder.name.value != "forward" or not _is_asked_for(model, call, holder):
                return True, []
    return False, ways if len(ways) > 1 else []


def _is_run_on_what_was_read(model: "Model", method: cst.FunctionDef) -> bool:
    """Whether the project calls a method of such a name of what it has read from a file."""
    word = method.name.value
    return any(_is_of_read_object(model, call) for call in model.calls_by_word.get(word, ())) or any(
        _is_of_read_object(other, call) for other, call in model.calls_elsewhere(word)
    )


def _is_of_read_object(model: "Model", call: cst.Call) -> bool:
    """Whether it is a method of what was read from a file: ``checkpoint["ema"].float().fuse()``.

    Whether the weights of such an object need gradients, who saved it knows.
    """
    node: cst.BaseExpression = call.func
    while isinstance(node, (cst.Attribute, cst.Subscript, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
        if isinstance(model.value(node), Loaded):
            return True
    return False


def _is_other_method_of_module(model: "Model", function: cst.FunctionDef) -> bool:
    """Whether a function is a method of a module that is run where somebody asks for it, and not in a training."""
    info = model.function_info(function)
    if info.owner is None or info.name == "__init__" or info is info.owner.called:
        return False
    return id(function) not in model.backward.functions and isinstance(info.owner.instance(), Module)


def _is_asked_for(model: "Model", node: cst.CSTNode, function: cst.FunctionDef) -> bool:
    """Whether a function comes to a place only where it is given an option that says so: ``if testing:``."""
    options = {item.name.value for item in model.function_info(function).named_parameters if item.default is not None}
    return any(turn and dotted_path(test) in options for test, turn in verdicts(model, node))


def _is_updated_by_gradient(model: "Model", node: cst.Name, statement: cst.CSTNode) -> bool:
    """Whether the variable of a loop over ``parameters()`` is changed by its own ``grad``: so it needs one."""
    bindings = model.reaching(node)
    if not bindings or any(binding.kind is not BindingKind.LOOP for binding in bindings):
        return False
    value = model.value(node)
    if not (isinstance(value, Tensor) and value.parameter) and not all(_is_of_parameters(item) for item in bindings):
        return False
    path = f"{node.value}.grad"
    return any(isinstance(part, cst.Attribute) and dotted_path(part) == path for part in subtree(statement))


def _is_weight_of_layer(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether it is the weight of a layer that a module initializes: ``if isinstance(m, nn.Linear): m.bias``.

    The layer is one of those that a loop walks over, or that ``apply`` gives to a function.
    """
    if not isinstance(node, cst.Attribute) or not isinstance(node.value, cst.Name):
        return False
    bindings = model.reaching(node.value)
    if not bindings or any(binding.kind is not BindingKind.NARROWED for binding in bindings):
        return False
    tested = [binding.value for binding in bindings]
    classes = [item for test in tested for item in ([] if test is None else items_of(test))]
    if not all(item is not None and _has_weight(model, item, node.attr.value) for item in classes):
        return False
    behind = without_narrowing(bindings)
    return bool(behind) and all(_is_walked_over(model, item) or _is_applied(model, item) for item in behind)


def _has_weight(model: "Model", tested: cst.BaseExpression, name: str) -> bool:
    layer = model.qualified_name(tested)
    state = None if layer is None else lookup.layer_state(layer)
    return state is not None and name in state.keys and name not in STATISTICS


def _is_walked_over(model: "Model", binding: Binding) -> bool:
    call = binding.value
    if binding.kind is not BindingKind.LOOP or not isinstance(call, cst.Call):
        return False
    return dotted_path(call.func) in _WALKS and _is_called_here(model, binding.node)


def _is_applied(model: "Model", binding: Binding) -> bool:
    """Whether it is the parameter of a function that ``apply`` surely runs where gradients are on."""
    function = binding.scope.node
    if binding.kind is not BindingKind.PARAMETER or not isinstance(function, cst.FunctionDef):
        return False
    applied = [
        call
        for call in model.calls_by_word.get("apply", ())
        if call.args and (dotted_path(call.args[0].value) or "").rpartition(".")[2] == function.name.value
    ]
    return bool(applied) and all(model.gradients.off(call) is False for call in applied)


def _is_of_parameters(binding: Binding) -> bool:
    """Whether a loop goes over ``x.parameters()``, whatever ``x`` is: so much only modules have."""
    call = binding.value
    return isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value == "parameters"


def _may_be_frozen(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether something in the file switches the gradient of the tensor off, or may do so.

    A plain name can only be meant by its own text; an attribute is also reached through ``parameters()``.
    """
    for statement in model.tree.by_type.get(cst.Assign, ()):
        for item in statement.targets:
            target = item.target
            if type(target) is cst.Attribute and target.attr.value in FLAGS:
                means_it = _may_mean(model, target.value, node)
                if means_it and constant(statement.value) is not FLAGS[target.attr.value]:
                    return True
    for call in model.calls_by_word.get("requires_grad_", ()):
        on = constant(call.args[0].value) if call.args else True
        if on is not True and isinstance(call.func, cst.Attribute) and _may_mean(model, call.func.value, node):
            return True
    return False


def _may_mean(model: "Model", frozen: cst.BaseExpression, node: cst.BaseExpression) -> bool:
    """Whether what is frozen may be, or hold, a tensor."""
    if isinstance(node, cst.Name):
        return dotted_path(frozen) == node.value
    return any(_may_hold(model, holder, node) for holder in _frozen_with(model, frozen))


def _frozen_with(model: "Model", frozen: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What is frozen, or, of the variable of a loop over ``x.parameters()``, ``x``."""
    if not isinstance(frozen, cst.Name):
        return [frozen]
    looped = [binding.value for binding in model.reaching(frozen) if binding.kind is BindingKind.LOOP]
    holders = [None if value is None else whose_parameters(value) for value in looped]
    return [holder for holder in holders if holder is not None] or [frozen]


def whose_parameters(node: cst.CSTNode) -> cst.BaseExpression | None:
    """``net`` of ``net.parameters()`` and ``net.named_parameters()``."""
    match node:
        case cst.Call(func=cst.Attribute(value=module, attr=cst.Name(value="parameters" | "named_parameters"))):
            return module
    return None


def _may_hold(model: "Model", holder: cst.BaseExpression, node: cst.BaseExpression) -> bool:
    """Whether a tensor may be a part of what a path leads to: not where it is another part of the same thing."""
    whole = _before_index(node)
    path, held = dotted_path(whole), dotted_path(holder)
    value = model.value(holder)
    if isinstance(holder, cst.Name) and isinstance(value, Tensor) and not value.parameter:
        return False  # a tensor of some function
    if isinstance(holder, cst.Name) and method_of_receiver(model, root_of(whole)) and _is_given_entry(model, holder):
        return False
    if path is None or held is None or path.partition(".")[0] != held.partition(".")[0]:
        return True
    methods = method_of_receiver(model, root_of(whole)), method_of_receiver(model, root_of(holder))
    own, other = (None if method is None else method.owner for method in methods)
    if own is not None and other is not None and own not in other.lineage and other not in own.lineage:
        return False
    return f"{path}.".startswith(f"{held}.") or (whole is not node and f"{held}.".startswith(f"{path}."))


def _before_index(node: cst.BaseExpression) -> cst.BaseExpression:
    """``self.layers`` of ``self.layers[2].bias``: the thing as a whole, some part of which is meant."""
    part: cst.BaseExpression = node
    while isinstance(part, (cst.Attribute, cst.Subscript)):
        if isinstance(part, cst.Subscript):
            node = part.value
        part = part.value
    return node


def _is_given_entry(model: "Model", name: cst.Name) -> bool:
    """Whether a name stands for an entry of what a function is given: ``mask = batch["mask"]``."""
    bindings = model.reaching(name)
    entries = [item.value for item in bindings if item.kind is BindingKind.ASSIGN and not item.path]
    return len(entries) == len(bindings) > 0 and all(
        isinstance(entry, cst.Subscript)
        and isinstance(constant(subscript_index(entry)), str)
        and [item.kind for item in model.reaching(entry.value)] == [BindingKind.PARAMETER]
        for entry in entries
    )
