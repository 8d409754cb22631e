"""Whether a checkpoint from which a file resumes its training lacks the state of the optimizer."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.saving import Part, parts, saved
from mllint.semantic.expressions.arguments import calls_of
from mllint.semantic.names.uses import bound_by, uses
from mllint.semantic.values import Loaded, Module, Object, StateDict
from mllint.syntax.shape import argument, constant, dotted_path, has_star_arguments

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_COUNTERS = frozenset({"epoch", "epochs", "start_epoch", "last_epoch", "step", "global_step", "iteration", "iter"})
# What the keys of the models in a checkpoint are called, where nothing is known of the models themselves.
_MODELS = frozenset({
    "model", "net", "network", "state_dict", "model_state_dict", "model_state", "model_dict", "weights", "params",
    "net_state_dict", "model_state_dic", "encoder", "decoder", "generator", "discriminator",
})  # fmt: skip
_BEGIN = ("start", "begin", "resume", "last", "first")
# Without momentum these keep nothing from one step to the next.
_STATELESS_WITHOUT_MOMENTUM = frozenset({"torch.optim.SGD"})
_STATELESS = frozenset({"paddle.optimizer.SGD"})


def lacks_optimizer(model: "Model", call: cst.Call) -> cst.Call | None:
    """The constructor of the optimizer whose state a call leaves out of a checkpoint that training resumes from.

    ``None`` for every other call, and where any part of that is not certain.
    """
    what = saved(model, call)
    if what is None:
        return None
    found = parts(model, what.node)
    if not _is_model_and_counter(model, found) or _saves_optimizer(model):
        return None
    counters = {key for part in found for key in part.keys[:1] if key is not None and key in _COUNTERS}
    optimizer = _optimizer_of(model, call)
    return optimizer if optimizer is not None and _resumes_from(model, counters) else None


def _is_model_and_counter(model: "Model", found: list[Part]) -> bool:
    """Whether the parts are those of one dict with a model and a counter in it, and surely no optimizer."""
    if any(not part.keys or part.keys[0] is None for part in found):
        return False
    keys = {part.keys[0] or "" for part in found}
    if not keys & _COUNTERS or any("opt" in key.lower() for key in keys):
        return False
    states = [part for part in found if _is_state(model, part) and not _is_of_scheduler(model, part)]
    return bool(states) and all(_is_of_model(model, part) for part in states)


def _is_state(model: "Model", part: Part) -> bool:
    node = part.node
    is_call = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return isinstance(model.value(node), StateDict) or (
        is_call and isinstance(node, cst.Call) and (dotted_path(node.func) or "").endswith("state_dict")
    )


def _is_of_scheduler(model: "Model", part: Part) -> bool:
    """Whether a part is what a scheduler keeps: how far it has come, and nothing of what the optimizer keeps."""
    value = model.value(part.node)
    owner = value.owner if isinstance(value, StateDict) else None
    return isinstance(owner, Object) and owner.kind == "scheduler"


def _is_of_model(model: "Model", part: Part) -> bool:
    value = model.value(part.node)
    if isinstance(value, StateDict) and value.owner is not None:
        return isinstance(value.owner, Module)
    return part.keys[0] in _MODELS


def _saves_optimizer(model: "Model") -> bool:
    """Whether the file has anything to do with the state of an optimizer: it may then be kept somewhere else."""
    for word in ("state_dict", "load_state_dict", "set_state_dict"):
        for call in model.calls_by_word.get(word, ()):
            if not isinstance(call.func, cst.Attribute):
                continue
            value = model.value(call.func.value)
            name = (dotted_path(call.func.value) or "").lower()
            if "opt" in name or (isinstance(value, Object) and value.kind == "optimizer"):
                return True
    return False


def _optimizer_of(model: "Model", call: cst.Call) -> cst.Call | None:
    """The constructor of an optimizer with a state of its own that is stepped in the function or class of a call."""
    if not any(_is_step_of_optimizer(model, step) for step in model.calls_by_word.get("step", ())):
        return None
    for other in model.tree.by_type.get(cst.Call, ()):
        value = model.value(other) if _is_near(model, other, call) else None
        if isinstance(value, Object) and value.call is other and _has_state(value):
            return other
    for step in model.calls_by_word["step"]:
        # What is stepped there may be made elsewhere.
        if isinstance(step.func, cst.Attribute) and _is_near(model, step, call):
            value = model.value(step.func.value)
            if isinstance(value, Object) and value.call is not None and _has_state(value):
                return value.call
    return None


def _is_near(model: "Model", node: cst.Call, call: cst.Call) -> bool:
    """Whether a call stands in the function or class of another, in one that calls this function, or in none."""
    place, function = model.enclosing_function(node), model.enclosing_function(call)
    if place is None or place is function:
        return True
    info = None if function is None else model.function_info(function)
    if info is None:
        return False
    if info.owner is not None:
        return model.function_info(place).owner is info.owner
    return any(model.enclosing_function(caller) is place for caller, _ in calls_of(model, info))


def _is_step_of_optimizer(model: "Model", call: cst.Call) -> bool:
    value = model.value(call.func.value) if isinstance(call.func, cst.Attribute) else None
    name = (dotted_path(call.func) or "").lower()
    return (isinstance(value, Object) and value.kind == "optimizer") or (value is None and "optim" in name)


def _has_state(made: Object) -> bool:
    """Whether it is an optimizer that keeps something from one step to the next."""
    if made.kind != "optimizer" or made.call is None or has_star_arguments(made.call) or made.name in _STATELESS:
        return False
    if made.name not in _STATELESS_WITHOUT_MOMENTUM:
        return True
    momentum = argument(made.call, 2, "momentum")
    return momentum is not None and constant(momentum.value) != 0


def _resumes_from(model: "Model", counters: set[str]) -> bool:
    """Whether the file reads such a counter from what it loads, and goes on counting from there."""
    for item in model.tree.by_type.get(cst.Subscript, ()):
        value = model.value(item)
        if not isinstance(value, Loaded) or value.keys[-1:] == () or value.keys[-1] not in counters:
            continue
        if _goes_on_from(model, item):
            return True
    return False


def _goes_on_from(model: "Model", item: cst.BaseExpression) -> bool:
    """Whether a counter that was read becomes the start of a loop."""
    node: cst.CSTNode = item
    parent = model.tree.parent(node)
    while isinstance(parent, (cst.BinaryOperation, cst.Arg)) or (
        isinstance(parent, cst.Call) and dotted_path(parent.func) in ("int", "range")
    ):
        if isinstance(parent, cst.Call) and dotted_path(parent.func) == "range":
            return True
        node, parent = parent, model.tree.parent(parent)
    if not isinstance(parent, (cst.Assign, cst.AnnAssign)):
        return False
    return any(
        any(word in binding.key.rpartition(".")[2].lower() for word in _BEGIN) or _counts(model, use)
        for binding in bound_by(model, parent)
        for use in (*uses(model, binding), *_kept_by_object(model, binding.key), item)
    )


def _kept_by_object(model: "Model", key: str) -> list[cst.Attribute]:
    """Where the file reads or sets an attribute: in every method."""
    holders = (model.tree.parent(name) for name in model.names_by_word.get(key.rpartition(".")[2], ()) if "." in key)
    return [holder for holder in holders if isinstance(holder, cst.Attribute) and dotted_path(holder) == key]


def _counts(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a name stands in the arguments of ``range``, or in the condition of a loop."""
    child: cst.CSTNode = node
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.While):
            return ancestor.test is child
        if isinstance(ancestor, cst.Call):
            return dotted_path(ancestor.func) == "range"
        if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return False
        child = ancestor
    return False
