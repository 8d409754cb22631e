"""Whether a checkpoint from which a file resumes its training lacks the state of the optimizer."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import GIVING_PARAMETERS
from mllint.semantic.checkpoints.saving import Part, may_save, parts, saved
from mllint.semantic.expressions.arguments import callers, calls_of
from mllint.semantic.names.conditions import is_above
from mllint.semantic.names.uses import bound_by, mentions, method_calls, uses
from mllint.semantic.values import ClassObject, Loaded, Module, Object, StateDict, is_object
from mllint.syntax.shape import (
    argument,
    called_on,
    constant_given,
    dotted_path,
    has_star_arguments,
    is_super_call,
    last_word,
)
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

COUNTERS = frozenset({"epoch", "epochs", "start_epoch", "last_epoch", "step", "global_step", "iteration", "iter"})
# What the keys of the models in a checkpoint are called, where nothing is known of the models themselves.
_MODELS = frozenset({
    "model", "net", "network", "state_dict", "model_state_dict", "model_state", "model_dict", "weights", "params",
    "net_state_dict", "model_state_dic", "encoder", "decoder", "generator", "discriminator",
})  # fmt: skip
# Schedulers that count their steps, and tell the learning rate by that alone.
_COUNTING = frozenset({
    "StepLR", "MultiStepLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "OneCycleLR", "PolynomialLR",
    "LambdaLR", "CyclicLR", "LinearLR",
})  # fmt: skip
_BEGIN = ("start", "begin", "resume", "last", "first")
MAX_CALLS = 2
"""Through how many functions a counter is handed on."""
_WHOLE = ("save_state", "load_state")
# Without momentum these keep nothing from one step to the next.
_STATELESS_WITHOUT_MOMENTUM = frozenset({"torch.optim.SGD"})
_STATELESS = frozenset({"paddle.optimizer.SGD"})


def lacks_optimizer(model: "Model", call: cst.Call) -> "tuple[Model, cst.Call] | None":
    """The constructor of the optimizer whose state a call leaves out of a checkpoint that training resumes from.

    With its file: what saves may be a function that another file calls.

    ``None`` for every other call, and where any part of that is not certain.
    """
    found = _entries(model, call)
    if not _is_model_and_counter(model, found) or _saves_optimizer(model, call):
        return None
    counters = {key for part in found for key in part.keys[:1] if key is not None and key in COUNTERS}
    optimizer = _optimizer_of(model, call)
    where = None if optimizer is None else (model, optimizer)
    where = where or _optimizer_of_callers(model, call)
    return where if where is not None and resumes_from(model, counters, call) else None


def _optimizer_of_callers(model: "Model", call: cst.Call) -> "tuple[Model, cst.Call] | None":
    """The optimizer of the one file that calls the function around a call, where nobody keeps its state otherwise."""
    if any(word in model.calls_by_word for word in ("step", "backward")):
        return None  # this file trains by itself
    sites = [(home, site) for home, site in _calls_of_function(model, call) if home is not model]
    if len({id(home) for home, _ in sites}) != 1 or any(_saves_optimizer(home, site) for home, site in sites):
        return None
    made = [(home, optimizer) for home, site in sites if (optimizer := _optimizer_of(home, site)) is not None]
    return made[0] if made else None


def left_out(model: "Model", call: cst.Call) -> str | None:
    """The one of several optimizers that a checkpoint lacks: the others are in it, and so is what this one trains.

    Only where the file loads the state of another of them back, so that training goes on from there.
    """
    found = _entries(model, call)
    if len(found) < 2:
        return None
    kept = {path: part.node for part in found if (path := _owner_path(part.node)) is not None}
    stepped = _stepped_near(model, call)
    saved_here = [path for path in kept if path in stepped]
    if not saved_here or not any(_is_loaded(model, path, call) for path in saved_here):
        return None
    for path, made in stepped.items():
        trained = {dotted_path(item.value) for item in _given_parameters(made)}
        is_kept = bool(trained) and all(inner in kept for inner in trained)
        if path not in kept and is_kept and not _is_mentioned_in_saving(model, path, call):
            return path
    return None


def left_out_scheduler(model: "Model", call: cst.Call) -> str | None:
    """The scheduler that a checkpoint with model, optimizer and a counter lacks, where training goes on from it.

    It begins its count anew then, from the learning rate that the optimizer had in the end.
    """
    found = _entries(model, call) if model.framework == "torch" else []
    if len(found) < 2:
        return None
    keys = {(part.keys[0] or "").lower() for part in found}
    counters = {part.keys[0] for part in found if part.keys[0] in COUNTERS and not is_state(model, part)}
    optimizers = {path for part in found if (path := _owner_path(part.node)) in _stepped_near(model, call)}
    if not counters or not optimizers or any("sched" in key or "lr" in key for key in keys):
        return None
    if not any(is_of_model(model, part) for part in found if is_state(model, part)):
        return None
    path = _counting_scheduler(model, call)
    if path is None or _is_mentioned_in_saving(model, path, call, "sched"):
        return None
    is_resumed = any(_is_loaded(model, optimizer or "", call) for optimizer in optimizers)
    return path if is_resumed and resumes_from(model, {key for key in counters if key is not None}) else None


def _entries(model: "Model", call: cst.Call) -> list[Part]:
    """The entries of the one dict that a call saves; none where something in it has no key that is written there.

    None in a file that saves all of the training beside it: Accelerate's ``save_state``.
    """
    what = None if any(word in model.calls_by_word for word in _WHOLE) else saved(model, call)
    found = [] if what is None else parts(model, what.node)
    return [] if any(not part.keys or part.keys[0] is None for part in found) else found


def _counting_scheduler(model: "Model", call: cst.Call) -> str | None:
    """The scheduler that counts its own steps, one place steps it, and nobody tells how far training has come."""
    steps = [
        step
        for step in model.calls_by_word.get("step", ())
        if isinstance(step.func, cst.Attribute) and _is_near(model, step, call)
    ]
    found = []
    for step in steps:
        assert isinstance(step.func, cst.Attribute)
        value, path = model.value(step.func.value), dotted_path(step.func.value)
        if is_object(value, "scheduler"):
            found.append((path, value, step))
    if len(found) != 1 or found[0][2].args:
        return None
    path, value, _ = found[0]
    made = value.call
    if path is None or made is None or value.name.rpartition(".")[2] not in _COUNTING or has_star_arguments(made):
        return None
    is_told = argument(made, None, "last_epoch") is not None or "last_epoch" in model.names_by_word
    tests = [item.test for item in model.tree.ancestors(made) if isinstance(item, cst.If)]
    return None if is_told or tests else path


def _owner_path(node: cst.BaseExpression) -> str | None:
    """The path of which ``state_dict()`` was asked."""
    is_state = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    path = dotted_path(node.func) if is_state and isinstance(node, cst.Call) else None
    return path.removesuffix(".state_dict") if path is not None and path.endswith(".state_dict") else None


def _stepped_near(model: "Model", call: cst.Call) -> dict[str, cst.Call]:
    """The optimizers with a state of their own that the function or class makes, by path, and the file steps."""
    stepped = {last_word(receiver) for receiver in _receivers_of_step(model)}
    found: dict[str, cst.Call] = {}
    for made in model.tree.by_type.get(cst.Call, ()):
        statement = model.tree.parent(made)
        if not isinstance(statement, cst.Assign) or len(statement.targets) != 1 or not _is_near(model, made, call):
            continue
        if _has_no_state_yet(model, made, call):
            continue
        path, value = dotted_path(statement.targets[0].target), model.value(made)
        if path is not None and path.rpartition(".")[2] in stepped and isinstance(value, Object) and has_state(value):
            found[path] = made
    return found


def _receivers_of_step(model: "Model") -> Iterator[cst.BaseExpression]:
    for step in model.calls_by_word.get("step", ()):
        if isinstance(step.func, cst.Attribute):
            yield step.func.value


def _given_parameters(made: cst.Call) -> list[cst.Attribute]:
    """``net.parameters`` for each module whose parameters the constructor of an optimizer is given."""
    calls = (node.func for node in subtree(made) if isinstance(node, cst.Call) and node is not made)
    return [func for func in calls if isinstance(func, cst.Attribute) and func.attr.value in GIVING_PARAMETERS]


def _is_loaded(model: "Model", path: str, call: cst.Call) -> bool:
    """Whether the function or class around a call loads the state of an optimizer from a file."""
    return any(
        load.args and isinstance(model.value(load.args[0].value), Loaded) and _is_near(model, load, call)
        for load in method_calls(model, path, ("load_state_dict", "set_state_dict"))
    )


def _is_mentioned_in_saving(model: "Model", path: str, call: cst.Call, kind: str = "opt") -> bool:
    """Whether the state of an optimizer may go into a file by another way: alone, in a list, with the whole object."""
    for word in ("state_dict", "load_state_dict", "set_state_dict"):
        for other in model.calls_by_word.get(word, ()):
            receiver = called_on(other)
            name = None if receiver is None else dotted_path(receiver)
            if name == path or name is None or (model.value(receiver or other) is None and kind in name.lower()):
                return True
    for node in model.names_by_word.get(path.rpartition(".")[2], ()):
        for ancestor in model.tree.ancestors(node):
            if isinstance(ancestor, (cst.List, cst.Tuple, cst.Dict)):
                return True
            if isinstance(ancestor, cst.Call) and ancestor is not call and may_save(ancestor):
                return True
            if isinstance(ancestor, cst.BaseSmallStatement):
                break
    return False


def _is_model_and_counter(model: "Model", found: list[Part]) -> bool:
    """Whether the parts are those of one dict with a model and a counter in it, and surely no optimizer."""
    keys = {part.keys[0] or "" for part in found}
    if not keys & COUNTERS or any("opt" in key.lower() for key in keys):
        return False
    states = [part for part in found if is_state(model, part) and not _is_of_scheduler(model, part)]
    return bool(states) and all(is_of_model(model, part) for part in states)


def is_state(model: "Model", part: Part) -> bool:
    node = part.node
    is_call = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return isinstance(model.value(node), StateDict) or (
        is_call and isinstance(node, cst.Call) and (dotted_path(node.func) or "").endswith("state_dict")
    )


def _is_of_scheduler(model: "Model", part: Part) -> bool:
    """Whether a part is what a scheduler keeps: how far it has come, and nothing of what the optimizer keeps."""
    value = model.value(part.node)
    owner = value.owner if isinstance(value, StateDict) else None
    return is_object(owner, "scheduler")


def is_of_model(model: "Model", part: Part) -> bool:
    value = model.value(part.node)
    if isinstance(value, StateDict) and value.owner is not None:
        return isinstance(value.owner, Module)
    return part.keys[0] in _MODELS


def _saves_optimizer(model: "Model", save: cst.Call) -> bool:
    """Whether the file has anything to do with the state of an optimizer: it may then be kept somewhere else."""
    for word in ("state_dict", "load_state_dict", "set_state_dict"):
        for call in model.calls_by_word.get(word, ()):
            if not isinstance(call.func, cst.Attribute):
                continue
            value = model.value(call.func.value)
            name = (dotted_path(call.func.value) or "").lower()
            if ("opt" in name or is_object(value, "optimizer")) and not _takes_its_place(model, call, save):
                return True
    return False


def _takes_its_place(model: "Model", node: cst.CSTNode, save: cst.Call) -> bool:
    """Whether a place is in a method of a subclass that saves in another way, and never as the class itself does."""
    place, function = model.enclosing_function(node), model.enclosing_function(save)
    if place is None or function is None or place is function:
        return False
    method = model.function_info(function)
    other, owner = model.function_info(place).owner, method.owner
    if other is None or owner is None or other is owner or owner not in other.lineage:
        return False
    calls = model.calls_by_word.get(method.name, ())
    return method.name in other.methods and not any(_is_of_base(model, call) for call in calls)


def _is_of_base(model: "Model", call: cst.Call) -> bool:
    """Whether the method of a class is called by its name, or by ``super()``."""
    holder = called_on(call)
    is_super = isinstance(holder, cst.Call) and is_super_call(holder)
    return is_super or (holder is not None and isinstance(model.value(holder), ClassObject))


def _optimizer_of(model: "Model", call: cst.Call) -> cst.Call | None:
    """The constructor of an optimizer with a state of its own that is stepped in the function or class of a call."""
    if not any(_is_step_of_optimizer(model, step) for step in model.calls_by_word.get("step", ())):
        return None
    for other in model.tree.by_type.get(cst.Call, ()):
        value = model.value(other) if _is_near(model, other, call) else None
        made = value.call if isinstance(value, Object) and has_state(value) else None
        if made is other and made is not None:
            return None if _has_no_state_yet(model, made, call) else made
    for step in model.calls_by_word["step"]:
        # What is stepped there may be made elsewhere.
        if isinstance(step.func, cst.Attribute) and _is_near(model, step, call):
            value = model.value(step.func.value)
            if isinstance(value, Object) and value.call is not None and has_state(value):
                return value.call
    return None


def _has_no_state_yet(model: "Model", made: cst.Call, call: cst.Call) -> bool:
    """Whether the innermost loop around a call makes the optimizer too: every round begins without a state.

    Or the optimizer is only made below: those are the weights to begin with.
    """
    if model.tree.is_below(made, next(model.tree.loops_around(call), None)):
        return True
    scope = model.scope_of(call)
    return model.scope_of(made) is scope and is_above(scope, call, made)


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
    return is_object(value, "optimizer") or (value is None and "optim" in name)


def has_state(made: Object) -> bool:
    """Whether it is an optimizer that keeps something from one step to the next."""
    if made.kind != "optimizer" or made.call is None or has_star_arguments(made.call) or made.name in _STATELESS:
        return False
    if made.name not in _STATELESS_WITHOUT_MOMENTUM:
        return True
    return constant_given(made.call, 2, "momentum", 0) != 0


def resumes_from(model: "Model", counters: set[str], save: cst.Call | None = None) -> bool:
    """Whether the file reads such a counter from what it loads, and goes on counting from there.

    Not only in a subclass that saves in another way than the call does.
    """
    for item in model.tree.by_type.get(cst.Subscript, ()):
        value = model.value(item)
        if not isinstance(value, Loaded) or value.keys[-1:] == () or value.keys[-1] not in counters:
            continue
        if _goes_on_from(model, item) and (save is None or not _takes_its_place(model, item, save)):
            return True
    return False


def _calls_of_function(model: "Model", node: cst.CSTNode) -> "Iterator[tuple[Model, cst.Call]]":
    """The calls of the function that has a node, in its file and in those that import it."""
    function = model.enclosing_function(node)
    for home, seen in () if function is None else callers(model.function_info(function)):
        yield from ((home, call) for call, _ in calls_of(home, seen))


def callers_that_go_on(model: "Model", item: cst.BaseExpression) -> "Iterator[tuple[Model, cst.Call]]":
    """The calls, in whatever file, that give a counter back that was read, and from which the caller goes on."""
    returned, place = _returned_at(model, _whole(model, item))
    for home, call in () if returned is None else _calls_of_function(model, returned):
        if _goes_on_from(home, call, 1, place):
            yield home, call


def _whole(model: "Model", item: cst.BaseExpression) -> cst.CSTNode:
    """All that is computed from a counter: ``int(epoch) + 1``."""
    node: cst.CSTNode = item
    parent = model.tree.parent(node)
    while isinstance(parent, (cst.BinaryOperation, cst.Arg, cst.IfExp)) or (
        isinstance(parent, cst.Call) and dotted_path(parent.func) == "int"
    ):
        node, parent = parent, model.tree.parent(parent)
    return node


def _returned_at(model: "Model", node: cst.CSTNode) -> tuple[cst.Return | None, int | None]:
    """The ``return`` that gives something back, alone or at a place of a tuple."""
    parent = model.tree.parent(node)
    display = model.tree.parent(parent) if isinstance(parent, cst.Element) else None
    if isinstance(display, cst.Tuple) and isinstance(parent, cst.Element):
        returned = model.tree.parent(display)
        return (returned if isinstance(returned, cst.Return) else None), display.elements.index(parent)
    return (parent if isinstance(parent, cst.Return) else None), None


def _goes_on_from(model: "Model", item: cst.BaseExpression, calls: int = 0, place: int | None = None) -> bool:
    """Whether a counter that was read becomes the start of a loop, also where a function hands it to its callers.

    ``place``: it is one of several that a call gives.
    """
    node = _whole(model, item)
    parent = model.tree.parent(node)
    if isinstance(parent, cst.Call) and dotted_path(parent.func) == "range":
        return True
    returned, there = _returned_at(model, node)
    if returned is not None and place is None:
        return calls <= MAX_CALLS and any(
            _goes_on_from(home, call, calls + 1, there) for home, call in _calls_of_function(model, returned)
        )
    if not isinstance(parent, (cst.Assign, cst.AnnAssign)):
        return False
    bound = bound_by(model, parent)
    return any(
        any(word in binding.key.rpartition(".")[2].lower() for word in _BEGIN) or _counts(model, use)
        for binding in (bound if place is None else (item for item in bound if item.path == (place,)))
        for use in (*uses(model, binding), *_kept_by_object(model, binding.key), item)
    )


def _kept_by_object(model: "Model", key: str) -> list[cst.Attribute]:
    """Where the file reads or sets an attribute: in every method."""
    return [holder for holder in mentions(model, key) if isinstance(holder, cst.Attribute)]


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
