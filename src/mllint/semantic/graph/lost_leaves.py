"""Leaves that are made and used up in one expression: what is kept is computed from them and no leaf itself."""

from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.names.changes import changes_of_bound
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind, all_assigned, only_assigned
from mllint.semantic.names.uses import bound_by, reads, uses
from mllint.semantic.values import Elements, Module, Number, Symbol, Tensor, Text, is_object
from mllint.syntax.shape import argument, called_on, constant, dotted_path, fingerprint, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mllint.semantic.model import Model

# Methods that give the leaf itself where nothing is to be done, as on the CPU or for the default type.
_OFTEN_NOTHING = frozenset({"float", "cpu", "contiguous", "pin_memory", "type", "type_as", "requires_grad_"})
_LEAF_MAKERS = frozenset({"Parameter", "Variable", "requires_grad_"})
_MAKERS = frozenset({"arange", "empty", "eye", "full", "linspace", "ones", "rand", "randn", "tensor", "zeros"})
_COMPUTED = (cst.Call, cst.UnaryOperation, cst.BinaryOperation)
_LISTED = (cst.BaseElement, cst.List, cst.Tuple, cst.Dict, cst.DictElement, cst.Arg)
_KEEPS_GRADIENT = frozenset({"retain_grad", "register_hook", "requires_grad_"})


class LostLeaf(msgspec.Struct, frozen=True):
    """``leaf`` is the call that makes it, ``kept`` the expression computed from it, ``by`` what computes it."""

    leaf: cst.Call
    kept: cst.BaseExpression
    by: str
    is_parameter: bool
    is_apart: bool = False
    """Whether the leaf was made in a statement before: ``x = x.cuda()``."""


def lost_leaf(model: "Model", statement: cst.Assign) -> LostLeaf | None:
    """The leaf that an assignment loses, where the thing that it keeps is surely meant to be one."""
    if len(statement.targets) != 1 or dotted_path(statement.targets[0].target) is None:
        return None
    found = _inside(model, statement.value, dotted_path(statement.targets[0].target))
    value = None if found is None else model.value(statement.value)
    if found is None or (isinstance(value, Tensor) and (value.leaf or value.attached is False)):
        return None
    if found.is_parameter and _is_attribute_of_module(model, statement.targets[0].target):
        return None  # a module that does not take up what it is given: ML404
    binding = next(iter(bound_by(model, statement)), None)
    if binding is None or _is_wanted(model, binding, statement, found):
        return found if binding is not None else None
    return msgspec.structs.replace(found, is_apart=True) if _is_wanted_later(model, binding, found) else None


def _is_wanted_later(model: "Model", binding: Binding, found: LostLeaf) -> bool:
    """Whether what a method makes of what is kept, under the same name, is meant to be a leaf: ``x = x.to(device)``."""
    for use in uses(model, binding) if "." not in binding.key else ():
        called = model.tree.parent(use)
        call = model.tree.call_of(called) if isinstance(called, cst.Attribute) else None
        later = None if call is None else model.tree.parent(call)
        if isinstance(later, cst.Assign) and dotted_path(later.targets[0].target) == binding.key:
            moved = next(iter(bound_by(model, later)), None)
            value = model.value(later.value)
            is_leaf = isinstance(value, Tensor) and (value.leaf or value.attached is False)
            if moved is not None and not is_leaf and _is_wanted(model, moved, later, found):
                return True
    return False


def lost_later(model: "Model", statement: cst.Assign) -> "Iterator[tuple[cst.Assign, LostLeaf]]":
    """The assignments that bind the name of a leaf, which a statement makes, to something else: ``x = x.cuda()``."""
    for binding in bound_by(model, statement):
        for use in uses(model, binding) if "." not in binding.key else ():
            later = model.tree.nearest(use, cst.Assign)
            if later is not None and dotted_path(later.targets[0].target) == binding.key:
                found = lost_leaf(model, later)
                if found is not None and found.leaf is statement.value:
                    yield later, found


def lost_element(model: "Model", leaf: cst.Call) -> LostLeaf | None:
    """The leaf that a call makes, lost where what is computed from it goes without a name into an optimizer's list."""
    element = _whole(model, leaf)
    holder = model.tree.parent(element)
    match holder:
        case cst.Element():
            container = model.tree.parent(holder)
        case cst.ListComp() | cst.GeneratorExp() if holder.elt is element:
            container = holder
        case cst.Arg():
            container = model.tree.parent(holder)  # `codes.append(...)`
        case _:
            return None
    found = _inside(model, element, None)
    value = None if found is None else model.value(element)
    if (
        found is None
        or found.leaf is not leaf
        or not isinstance(value, Tensor)
        or value.leaf
        or value.attached is False
    ):
        return None
    return found if container is not None and _is_learned(model, container) else None


def _whole(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression:
    """All that is computed from what stands at a place, by operators and methods: ``-x.to(device)`` for ``x``."""
    while True:
        parent = model.tree.parent(node)
        if isinstance(parent, cst.Arg) and isinstance(call := model.tree.parent(parent), cst.Call):
            if _computed_from(model, call) is not node:
                return node
            parent = call
        elif isinstance(parent, cst.Attribute):
            parent = model.tree.call_of(parent)
        if not isinstance(parent, _COMPUTED):
            return node
        node = parent


def _is_learned(model: "Model", container: cst.CSTNode) -> bool:
    """Whether an optimizer is given a list, or what a call appends to one, which nothing else is put into or read from
    before.
    """
    if isinstance(container, cst.Call):
        grown = called_on(container) if last_word(container.func) == "append" else None
        bindings = model.reaching(grown) if isinstance(grown, cst.Name) else ()
        return bool(bindings) and all(_is_list_of_optimizer(model, binding) for binding in bindings)
    if _stands_in_optimizer(model, container):
        return True
    statement = model.tree.parent(container)
    bindings = bound_by(model, statement) if isinstance(statement, cst.Assign) and statement.value is container else ()
    return any("." not in binding.key and _is_list_of_optimizer(model, binding) for binding in bindings)


def _is_list_of_optimizer(model: "Model", binding: Binding) -> bool:
    """Whether a list that has a name is given to an optimizer as it was made, or grown."""
    if not isinstance(binding.value, (cst.List, cst.ListComp, cst.Tuple)) or binding.path:
        return False
    changes = changes_of_bound(model, binding)
    if not all(isinstance(change, cst.Call) and last_word(change.func) in ("append", "extend") for change in changes):
        return False
    return any(_stands_in_optimizer(model, use) for use in uses(model, binding))


def _stands_in_optimizer(model: "Model", node: cst.CSTNode) -> bool:
    """Whether an optimizer is built with something, alone or in a list or a group: ``Adam([{"params": codes}])``."""
    child = node
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.Call):
            parameters = argument(ancestor, 0, "params")
            return parameters is child and is_object(model.value(ancestor), "optimizer")
        if not isinstance(ancestor, _LISTED):
            return False
        child = ancestor
    return False


def _is_attribute_of_module(model: "Model", target: cst.BaseExpression) -> bool:
    owner = owner_of_attribute(model, target)
    return owner is not None and owner.framework is not None


def _inside(model: "Model", node: cst.BaseExpression, name_bound: str | None) -> LostLeaf | None:
    """The leaf at the bottom of a chain of methods and arithmetic with numbers and plain tensors.

    ``name_bound``: the name that is bound to the whole; a leaf that had the same name before has none now.
    """
    whole, by, moved, is_apart = node, "", None, False
    while True:
        match node:
            case cst.Call() if by and _makes_leaf(model, node):
                value = model.value(node)
                is_there = moved is not None and whole is moved and is_made_there(model, node, moved)
                is_parameter = isinstance(value, Tensor) and value.parameter
                return None if is_there else LostLeaf(node, whole, by, is_parameter, is_apart)
            case cst.Call() if (given := _computed_from(model, node)) is not None:
                by, node = f"{last_word(node.func)}()", given
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=name))):
                if by and name == "requires_grad_":
                    return None
                if model.qualified_name(node.func) is not None or not _computes(model, node, name):
                    return None
                moved = node if name in ("to", "cuda") else moved
                by, node = f"{name}()", receiver
            case cst.UnaryOperation(operator=cst.Minus()):
                by, node = "arithmetic", node.expression
            case cst.BinaryOperation():
                sides = [side for side in (node.left, node.right) if not _is_number(model, side)]
                if len(sides) != 1:
                    return None
                by, node = "arithmetic", sides[0]
            case cst.Name() if by and node.value == name_bound and (made := _made_before(model, node)) is not None:
                node, is_apart = made, True
            case _:
                return None


def _made_before(model: "Model", name: cst.Name) -> cst.Call | None:
    """The call that makes the leaf for which a name stands, and for nothing else."""
    made = only_assigned(model, name)
    return made if isinstance(made, cst.Call) and says_leaf(made) else None


def _computed_from(model: "Model", call: cst.Call) -> cst.BaseExpression | None:
    """The tensor of which alone a function of PyTorch computes another: ``w`` of ``torch.log(w)``."""
    name = model.qualified_name(call.func)
    fact = None if name is None or says_leaf(call) else lookup.function(name)
    if name is None or fact is None or fact.returns != "tensor" or lookup.framework_of(name) != "torch":
        return None
    first = call.args[0] if call.args else None
    if first is None or first.star or first.keyword is not None or not isinstance(first.value, _COMPUTED):
        return None
    return first.value if all(_is_number(model, arg.value) for arg in call.args[1:]) else None


def _is_number(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a factor is a number, or what a function of ``math`` or numpy makes of one."""
    if isinstance(model.value(node), (Number, Text)):
        return True
    name = model.qualified_name(node.func) if isinstance(node, cst.Call) else None
    return name is not None and name.partition(".")[0] in ("math", "numpy")


def _makes_leaf(model: "Model", call: cst.Call) -> bool:
    if not says_leaf(call):
        return False
    value = model.value(call)
    is_made_here = isinstance(model.value(call.func), Symbol)
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "requires_grad_":
        is_made_here = isinstance(call.func.value, cst.Call)
    return is_made_here and isinstance(value, Tensor) and value.leaf and value.framework == "torch"


def says_leaf(call: cst.Call) -> bool:
    """Whether a call says by its words that it makes a leaf."""
    return last_word(call.func) in _LEAF_MAKERS or argument(call, None, "requires_grad") is not None


def _computes(model: "Model", call: cst.Call, name: str) -> bool:
    """Whether a method gives a new tensor of the graph, at least on a GPU."""
    fact = lookup.tensor_method("torch", name)
    if fact is None or fact.returns != "tensor" or name in _OFTEN_NOTHING or name == "detach":
        return False
    if name != "to":
        return True
    where = argument(call, 0, "device")
    if where is None or len(call.args) != 1:
        return False
    known = constant(where.value)
    if isinstance(known, str):
        return not known.startswith("cpu")
    name_of = model.qualified_name(where.value)
    return name_of is None or not name_of.startswith("torch.")


def is_made_there(model: "Model", leaf: cst.Call, move: cst.Call) -> bool:
    """Whether the call that makes the leaf may make it on the device to which it is moved: the move does nothing then.

    It names that device, or what is there (``zeros_like(x)`` of ``to(x.device)``, or of an ``x`` that was moved there),
    or is given what has been computed.
    """
    wanted = {fingerprint(arg.value) for arg in move.args}
    beside = [arg.value.value for arg in move.args if isinstance(arg.value, cst.Attribute) and _is_device(arg.value)]
    if _is_given_tensor(model, leaf):
        return True
    wanted |= {fingerprint(other) for other in beside}
    given = [part for arg in leaf.args for part in subtree(arg)]
    names = [part for part in given if isinstance(part, cst.Name) and isinstance(model.tree.parent(part), cst.Arg)]
    made = [item for name in names for item in all_assigned(model, name)]
    for node in (*given, *(part for item in made for part in subtree(item))):
        if isinstance(node, cst.Attribute) and node.attr.value == "cuda":
            return True
        if isinstance(node, cst.Arg) and fingerprint(node.value) in wanted:
            return True
    return False


def _is_device(node: cst.Attribute) -> bool:
    return node.attr.value == "device"


def _is_given_tensor(model: "Model", leaf: cst.Call) -> bool:
    """Whether a leaf is made of a tensor that has a name, or is like that one, and on no way is seen to be made of
    numbers, on the CPU.
    """
    name = (model.qualified_name(leaf.func) or "").rpartition(".")[2]
    is_of_tensor = name in ("Parameter", "Variable") or name.endswith("_like")
    if not is_of_tensor or not leaf.args or dotted_path(leaf.args[0].value) is None:
        return False
    bindings = model.reaching(leaf.args[0].value)
    return not any(_is_made_of_numbers(model, binding.value) for binding in bindings)


def _is_made_of_numbers(model: "Model", made: cst.CSTNode | None) -> bool:
    if not isinstance(made, cst.Call) or any(arg.keyword and arg.keyword.value == "device" for arg in made.args):
        return False
    library, _, name = (model.qualified_name(made.func) or "").rpartition(".")
    return library == "torch" and name in _MAKERS


def _is_wanted(model: "Model", binding: Binding, statement: cst.Assign, found: LostLeaf) -> bool:
    """Whether somebody asks for the gradient of what is kept, gives it to an optimizer, or takes it for a parameter."""
    info = function_around(model, statement)
    if "." in binding.key:
        is_own = info is not None and binding.key.partition(".")[0] == info.self_name
        if not is_own or info is None or info.owner is None or binding.key.count(".") > 1:
            return False
        if found.is_parameter and isinstance(info.owner.instance(), Module):
            return not _is_registered_later(model, binding.key)
    places = list(reads(model, binding.key) if "." in binding.key else uses(model, binding))
    attributes = [parent for node in places if isinstance(parent := model.tree.parent(node), cst.Attribute)]
    asked = {parent.attr.value for parent in attributes}
    if asked & _KEEPS_GRADIENT:
        return False
    gradients = [parent for parent in attributes if parent.attr.value == "grad"]
    if any(not isinstance(model.tree.parent(parent), cst.AssignTarget) for parent in gradients):
        return True
    return any(is_given_to_optimizer(model, node) for node in places)


def _is_registered_later(model: "Model", key: str) -> bool:
    """Whether the attribute is bound again: to a parameter made of what is kept, for instance."""
    bindings = [
        binding
        for scope_node in model.tree.by_type.get(cst.FunctionDef, ())
        for binding in model.scope(scope_node).bindings.get(key, ())
        if binding.kind in (BindingKind.ASSIGN, BindingKind.ANNOTATED)
    ]
    return len(bindings) > 1


def is_given_to_optimizer(model: "Model", node: cst.CSTNode) -> bool:
    """Whether it stands in the list that an optimizer is built with, directly or through the name of the list."""
    container: cst.CSTNode | None = None
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, (cst.List, cst.Tuple)):
            container = ancestor
        elif isinstance(ancestor, cst.Call):
            value = model.value(ancestor)
            return container is not None and is_object(value, "optimizer")
        elif isinstance(ancestor, cst.Assign):
            return ancestor.value is container and any(_lists_for_optimizer(model, item) for item in ancestor.targets)
        elif isinstance(ancestor, cst.Return):
            return ancestor.value is container and _gives_to_optimizer(model, ancestor)
        elif not isinstance(ancestor, (cst.BaseElement, cst.Arg, cst.Dict, cst.DictElement)):
            return False
    return False


def _gives_to_optimizer(model: "Model", returned: cst.Return) -> bool:
    """Whether an optimizer of the file is built with what a function gives back: ``SGD(net.parameters())``."""
    function = function_around(model, returned)
    for call, _ in () if function is None else calls_of(model, function):
        arg = model.tree.parent(call)
        maker = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
        if isinstance(maker, cst.Call) and maker.args[0] is arg and is_object(model.value(maker), "optimizer"):
            return True
    return False


def _lists_for_optimizer(model: "Model", target: cst.AssignTarget) -> bool:
    path = dotted_path(target.target)
    for node in () if path is None else reads(model, path):
        argument_of = model.tree.parent(node)
        call = None if argument_of is None else model.tree.parent(argument_of)
        if isinstance(argument_of, cst.Arg) and isinstance(call, cst.Call) and call.args[0] is argument_of:
            value = model.value(call)
            if is_object(value, "optimizer") and isinstance(model.value(node), Elements):
                return True
    return False
