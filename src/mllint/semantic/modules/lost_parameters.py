"""Parameters that a module loses: a plain attribute is computed from one that is kept nowhere else; and what is put in
the place of one, and is none.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import STATISTICS
from mllint.semantic.expressions.picked import FILLING
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.graph.lost_leaves import is_made_there
from mllint.semantic.modules.made_on_cpu import FACTORIES
from mllint.semantic.names.classes import Members, makes_parameter
from mllint.semantic.names.conditions import is_in_another_branch
from mllint.semantic.names.receivers import method_of_receiver, owner_of_attribute
from mllint.semantic.names.scopes import only_assigned
from mllint.semantic.names.uses import uses
from mllint.semantic.values import Function, Module, Other, Tensor
from mllint.syntax.shape import argument, called_on, constant, dotted_path, has_star_arguments, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# What takes the parameter of a layer away, so that there may be a plain tensor in its place.
_TAKING_AWAY = frozenset({
    "weight_norm", "spectral_norm", "parametrize", "parametrizations", "register_parametrization", "prune",
    "_parameters", "functional_call", "delattr", "ParametrizationList",
})  # fmt: skip
_MAYBE_ITSELF = frozenset({
    "to", "cuda", "cpu", "float", "double", "half", "bfloat16", "type", "type_as", "contiguous", "astype", "cast",
})  # fmt: skip
"""Methods that give the tensor itself where there is nothing to do."""
_OTHER_KINDS = frozenset({
    "DoubleTensor", "HalfTensor", "BFloat16Tensor", "LongTensor", "IntTensor", "float64", "double", "float16", "half",
    "bfloat16", "complex64", "complex128",
})  # fmt: skip


def parameter_inside(model: "Model", node: cst.BaseExpression) -> cst.Call | None:
    """The new parameter that an expression computes a plain tensor from: ``nn.Parameter(x).cuda()``."""
    current: cst.BaseExpression = node
    changes, move = False, None
    while not makes_parameter(model, current):
        match current:
            case cst.Name() if changes:
                made = _parameter_of_that_name(model, current)
                if made is None:
                    return None
                current = made
            case cst.Call(func=cst.Attribute(attr=cst.Name("detach"))):
                return None  # no parameter is wanted
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=method))):
                move = current if method in ("to", "cuda") and not changes else None
                changes = changes or _gives_another(model, current, method)
                current = inner
            case cst.BinaryOperation(left=left, right=right):
                changes = True
                current = left if _root_is_parameter(model, left) else right
            case cst.UnaryOperation(expression=inner):
                changes, current = True, inner
            case _:
                return None
    if not changes or not isinstance(current, cst.Call):
        return None
    return None if move is not None and is_made_there(model, current, move) else current


def registered_in_vain(model: "Model", call: cst.Call) -> tuple[cst.BaseExpression, cst.Call | None] | None:
    """What a call registers as a parameter though it is none, and the new parameter from which it is computed, if any.

    That raises. What is only moved is the parameter itself where it is on that device already.
    """
    keyword = "parameter" if model.framework == "paddle" else "param"
    given = argument(call, 1, keyword)
    receiver = called_on(call)
    inner = None if given is None or receiver is None else parameter_inside(model, given.value)
    if given is None or receiver is None or is_test_code(model):
        return None
    if inner is None and not is_surely_plain(model, given.value):
        return None
    is_module = method_of_receiver(model, receiver) is not None or isinstance(model.value(receiver), Module)
    return (given.value, inner) if is_module and not isinstance(model.value(call.func), Function) else None


def replaced_in_vain(model: "Model", target: cst.BaseExpression, value: cst.BaseExpression) -> bool:
    """Whether a tensor that is no parameter is assigned to a parameter of a library's layer, ``conv.weight = x``: that
    raises, if nothing has taken the parameter away before.
    """
    if not isinstance(target, cst.Attribute) or is_test_code(model) or not is_surely_plain(model, value):
        return False
    module = model.value(target.value)
    if not isinstance(module, Module) or module.name is None or module.wrappers:
        return False
    state = lookup.layer_state(module.name)
    name = target.attr.value
    if state is None or name not in state.keys or name in STATISTICS:
        return False
    if module.framework == "paddle" and (module.call is None or _is_told(module.call, f"{name}_attr")):
        return False  # where there is none, it takes a tensor
    if not _TAKING_AWAY.isdisjoint(model.names_by_word) or model.tree.by_type.get(cst.Del):
        return False
    return not any(isinstance(around, cst.Try) for around in model.tree.ancestors(target))


def _is_told(call: cst.Call, keyword: str) -> bool:
    """Whether a call may say something by a keyword, or in its place."""
    by_position = sum(1 for arg in call.args if arg.keyword is None)
    return has_star_arguments(call) or by_position > 3 or argument(call, None, keyword) is not None


def is_surely_plain(model: "Model", node: cst.BaseExpression, steps: int = 8) -> bool:
    """Whether an expression surely gives a tensor that is no parameter, however it is moved."""
    value = model.value(node)
    if steps == 0 or not isinstance(value, Tensor) or value.parameter or makes_parameter(model, node):
        return False
    match node:
        case cst.BinaryOperation() | cst.Comparison() | cst.Subscript() | cst.Attribute(attr=cst.Name("data" | "T")):
            return True
        case cst.Name():
            made = only_assigned(model, node)
            return made is not None and is_surely_plain(model, made, steps - 1)
        case cst.Attribute():
            owner = owner_of_attribute(model, node)
            places = [] if owner is None else list(owner.members.assignments(node.attr.value))
            return bool(places) and all(
                place.setter is None
                and place.value is not None
                and is_surely_plain(place.model, place.value, steps - 1)
                for place in places
            )
        case cst.Call():
            name, word = model.qualified_name(node.func), last_word(node.func) or ""
            if name is not None and node.args and name.rpartition(".")[0] in FILLING:
                return is_surely_plain(model, node.args[0].value, steps - 1)
            if name is not None:
                return name in FACTORIES or _is_operation(name)
            inner = called_on(node)
            if inner is None:
                return False
            if word in _MAYBE_ITSELF or word.endswith("_"):
                return is_surely_plain(model, inner, steps - 1)
            fact = lookup.tensor_method("paddle" if model.framework == "paddle" else "torch", word)
            return fact is not None and fact.returns in ("tensor", "scalar")
    return False


def _is_operation(name: str) -> bool:
    """Whether a function of the library computes a new tensor."""
    fact = lookup.function(name)
    return fact is not None and fact.returns in ("tensor", "scalar") and not name.endswith(("as_tensor", "asarray"))


def becomes_parameter(members: Members, name: str, statement: cst.CSTNode) -> bool:
    """Whether an assignment makes a parameter of an attribute that may run as well as another one."""
    made = (item for item in members.assignments(name) if makes_parameter(item.model, item.value))
    return any(not is_in_another_branch(item.model, item.node, statement) for item in made)


def _parameter_of_that_name(model: "Model", name: cst.Name) -> cst.Call | None:
    """The new parameter that a local name stands for, where nothing else is done with it than what stands here."""
    bindings = model.reaching(name)
    binding = bindings[0] if len(bindings) == 1 else None
    if binding is None or not isinstance(binding.node, cst.Assign) or not binding.scope.is_function:
        return None
    made = binding.value
    if len(binding.node.targets) > 1 or binding.path or not isinstance(made, cst.Call):
        return None
    is_only_use = makes_parameter(model, made) and all(use is name for use in uses(model, binding))
    return made if is_only_use else None


def _root_is_parameter(model: "Model", node: cst.BaseExpression) -> bool:
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and not makes_parameter(model, node):
        node = node.func.value
    if isinstance(node, cst.Name):
        return _parameter_of_that_name(model, node) is not None
    return makes_parameter(model, node)


def _gives_another(model: "Model", call: cst.Call, method: str) -> bool:
    """Whether a method of a parameter surely, or on another device, gives a tensor that is not the parameter."""
    framework = "paddle" if model.framework == "paddle" else "torch"
    fact = lookup.tensor_method(framework, method)
    if fact is None or fact.returns not in ("tensor", "scalar") or method.endswith("_"):
        return False
    if method in ("float", "contiguous", "cpu"):
        return False  # nothing to do, and so the parameter itself
    if method in ("type", "type_as"):
        return any(_is_of_another_kind(model, arg.value) for arg in call.args)
    if method == "to" and call.args:
        value = call.args[0].value
        spelled = dotted_path(value) or ""
        is_dtype = model.value(value) == Other("dtype") or "dtype" in spelled or spelled.endswith("float32")
        return constant(value) not in ("cpu", "float32") and not is_dtype
    if method in ("astype", "cast") and call.args:
        value = call.args[0].value
        return constant(value) != "float32" and not (dotted_path(value) or "").endswith("float32")
    return True


def _is_of_another_kind(model: "Model", kind: cst.BaseExpression) -> bool:
    """Whether the type of a tensor, as it is named or bound to a name, is not that of a new parameter on the CPU."""
    bound = model.reaching(kind)
    if isinstance(kind, cst.Name) and not bound:
        bound = tuple(model.scope(model.tree.module).bindings.get(kind.value, ()))
    meant = [item.value for item in bound if item.value is not None] or [kind]
    parts = (part for node in meant for part in subtree(node) if isinstance(part, (cst.Name, cst.Attribute)))
    named = (model.qualified_name(part) or "" for part in parts)
    kinds = [name.removeprefix("torch.") for name in named if name.startswith("torch.")]
    return any(kind in _OTHER_KINDS or (kind.startswith("cuda.") and kind.endswith("Tensor")) for kind in kinds)
