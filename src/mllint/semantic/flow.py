"""The training loop: which events of a training happen in a body, in which order, and to which things.

Everything that is known of the vocabulary of training is on this page:
- a call of a method or function that is an event: a reader in ``_READERS``, by the word that is called; it names the
  kind (``steps.Kind``) and the thing. What the called thing is decides (``kinds.py``), how it is used or named only
  where nothing else is known of it, and then the event says so (``is_proven``).
- a trainer of another framework, which does the order itself: ``TRAINERS`` in ``training/managed.py``.
- calls of which it is known that they do nothing to what they are given: ``_HARMLESS``.
``unfolding.py`` walks the statements and follows calls into the project's functions, ``things.py`` tells which
optimizer is meant and ``owners.py`` whose parameters it has, ``paths.py`` answers what has happened before an event on
every way to it, and ``runs.py``, where rules begin to ask, knows with ``callers.py`` the bodies where the ways begin.
"""

import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.knowledge.words import LOADING, READING
from mllint.semantic.events.applied import module_applied
from mllint.semantic.events.by_hand import GRADIENT, holder_of_gradient, owner_updated
from mllint.semantic.events.given import truth
from mllint.semantic.events.handed_switches import handed_switch, is_class_of_modules, switched_thing
from mllint.semantic.events.kinds import is_output, kind_of, may_have_mode, may_switch
from mllint.semantic.events.makers import is_accelerator, names_of_makers
from mllint.semantic.events.manual import HARMLESS, optimizes_by_hand, owner_of_run
from mllint.semantic.events.owners import owner_of_parameters
from mllint.semantic.events.places import inside_of
from mllint.semantic.events.stars import handed_on_to
from mllint.semantic.events.steps import Kind
from mllint.semantic.events.things import Frame, Thing
from mllint.semantic.graph.data_sources import is_mere_data, is_part_of_batch
from mllint.semantic.names.classes import fields_of
from mllint.semantic.names.scopes import only_assigned
from mllint.semantic.values import (
    Elements,
    Function,
    Instance,
    Mapping,
    Module,
    Object,
    Repeated,
    Symbol,
    Tensor,
    Unfinished,
    Value,
)
from mllint.syntax.shape import argument, called_on, constant, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_HARMLESS = frozenset({
    *sys.stdlib_module_names, "PIL", "albumentations", "apex", "builtins", "comet_ml", "cv2", "einops", "h5py",
    "horovod", "imageio", "matplotlib", "mlflow", "numpy", "paddle", "pandas", "scipy", "seaborn", "skimage", "sklearn",
    "tensorboard", "tensorboardX", "thop", "torch", "torchaudio", "torchinfo", "torchmetrics", "torchsummary",
    "torchtext", "torchvision", "tqdm", "visdom", "wandb", "yaml",
})  # fmt: skip
"""Packages whose functions do nothing to an optimizer, a scheduler or the mode of a module that they are given."""
_HOLDING = frozenset({*sys.stdlib_module_names, "apex", "builtins", "paddle", "torch"})
"""Those of them whose objects may train, or hold what does: optimizers, partial functions, threads."""


# -- the words of training ---------------------------------------------------------------------------------------------


class Seen(msgspec.Struct, frozen=True):
    """An event as it is read off a call: its kind and the expressions of the things."""

    kind: Kind
    thing: Thing | None = None
    other: Thing | None = None
    is_proven: bool = True


Reader = Callable[[Frame, cst.Call], Seen | None]


def read(frame: Frame, call: cst.Call) -> Seen | None:
    """The event that a call is; ``None`` when it is none, or may be looked into."""
    word = last_word(call.func)
    reader = None if word is None else _READERS.get(word)
    if reader is None and isinstance(call.func, cst.Name):
        kept = _kept_method(frame, call.func)
        if kept is not None and (kept[0] is frame or not call.args):
            frame, method = kept
            reader, call = _READERS[method.attr.value], cst.Call(method, call.args)
    if reader is not None:
        seen = reader(frame, call)
        if seen is not None:
            return seen
    value = frame.value(call.func)
    if isinstance(value, Module):
        return Seen(Kind.FORWARD, frame.thing(call.func))
    if value is None:
        called = kind_of(frame, call.func)
        if called is not None and called.kind == "module" and inside_of(frame.model, call) is None:
            return Seen(Kind.FORWARD, frame.thing(call.func), is_proven=False)
    return None


def read_handed(frame: Frame, call: cst.Call) -> "Iterator[Seen]":
    """The switch of a mode that a call is by something that it is given, or stands for: ``net.apply(switch)``."""
    handed = handed_switch(frame, call)
    if handed is not None:
        yield Seen(Kind.SET_MODE if handed.word is None else _MODE_KINDS[handed.word], handed.thing, is_proven=False)


def _kept_method(frame: Frame, name: cst.Name) -> tuple[Frame, cst.Attribute] | None:
    """The method that a name stands for, which a caller may hand on, and its run: ``step = optimizer.step``."""
    function = frame.function
    is_parameter = function is not None and any(item.name.value == name.value for item in function.parameters)
    if not is_parameter and name.value not in frame.model.runs.kept_methods:
        return None
    bindings = frame.model.reaching(name)
    given = frame.given(bindings[0]) if len(bindings) == 1 else None
    if given is None:
        method = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    else:
        frame, method = given
    if isinstance(method, cst.Name):
        return _kept_method(frame, method)
    return (frame, method) if isinstance(method, cst.Attribute) and method.attr.value in _READERS else None


def read_statement(frame: Frame, statement: cst.CSTNode) -> Seen | None:
    """The event that a statement without a call is: ``parameter.grad = None``, ``del parameter.grad``."""
    kind = type(statement)
    if kind is cst.Assign:
        targets = statement.targets  # type: ignore[attr-defined]
        target = targets[0].target if len(targets) == 1 else None
    elif kind is cst.AugAssign or kind is cst.Del:
        target = statement.target  # type: ignore[attr-defined]
    else:
        return None
    if type(target) is cst.Tuple:  # `a.grad, b.grad = torch.autograd.grad(loss, [a, b])`
        parts = (getattr(element.value, "attr", None) for element in target.elements)
        return Seen(Kind.WRITE_GRADIENT) if any(getattr(part, "value", "") in GRADIENT for part in parts) else None
    if kind is cst.AugAssign and frame.model.framework == "torch":  # Paddle's `w -= x` makes another tensor
        updated = owner_updated(frame, target, (statement.value,))  # type: ignore[attr-defined, arg-type]
        if updated is not None:
            return Seen(Kind.UPDATE, updated)
    if type(target) is not cst.Attribute:
        return None
    name = target.attr.value
    if name in GRADIENT:
        value = getattr(statement, "value", None)
        is_cleared = kind is cst.Del or (kind is cst.Assign and isinstance(value, cst.Name) and value.value == "None")
        return Seen(Kind.ZERO if is_cleared else Kind.WRITE_GRADIENT, owner_of_parameters(frame, target.value))
    if kind is cst.Assign and name in ("requires_grad", "stop_gradient", "trainable"):
        value = frame.value(target.value)
        thaws = constant(statement.value) is (name != "stop_gradient")  # type: ignore[attr-defined]
        if isinstance(value, Module) or (not thaws and (is_mere_data(value) or is_output(frame, target.value))):
            return None  # an attribute that no parameter of the module asks for; data, or what is taken off its graph
        return Seen(Kind.THAW if thaws else Kind.FREEZE, owner_of_parameters(frame, target.value))
    if kind is cst.Assign and name == "training":
        return Seen(Kind.SET_MODE, frame.thing(target.value))
    return None


def _is_own_function(frame: Frame, call: cst.Call) -> bool:
    """Whether the project itself defines what is called."""
    return isinstance(frame.value(call.func), Function)


def _backward(frame: Frame, call: cst.Call) -> Seen | None:
    receiver = called_on(call)
    if receiver is None or _is_own_function(frame, call):
        return None
    loss: cst.BaseExpression = receiver
    value = frame.value(receiver)
    positional = [arg.value for arg in call.args if arg.keyword is None]
    if positional and not isinstance(value, Tensor):
        if value is None and _is_part_of_batch(frame, positional[0]):
            return None  # `net.backward(labels)`: what computes its gradients by hand does it as it likes
        if isinstance(frame.value(positional[0]), Tensor):
            loss = positional[0]  # `accelerator.backward(loss)`
    return Seen(Kind.BACKWARD, frame.thing(loss), scaler_of(frame, receiver))


def _is_part_of_batch(frame: Frame, node: cst.BaseExpression) -> bool:
    bindings = frame.model.reaching(node) if isinstance(node, cst.Name) else ()
    given = frame.given(bindings[0]) if len(bindings) == 1 else None
    return is_part_of_batch(frame.model, node) if given is None else _is_part_of_batch(*given)


def scaler_of(frame: Frame, loss: cst.BaseExpression) -> Thing | None:
    """The scaler that made a loss: of ``scaler.scale(loss)``, or of the name that this was bound to."""
    if isinstance(loss, cst.Name):
        bindings = frame.model.reaching(loss)
        given = frame.given(bindings[0]) if len(bindings) == 1 else None
        if given is not None:
            return scaler_of(*given)
        made = only_assigned(frame.model, loss)
        if made is None:
            return None
        loss = made
    match loss:
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value="scale")), args=[_]):
            called = kind_of(frame, receiver)
            is_scaler = called is not None and called.kind == "scaler"
            # What scales something of which `backward()` is called is a scaler, whatever its name.
            is_unknown = called is None and frame.value(receiver) is None and frame.value(loss.func) is None
            return frame.thing(receiver) if is_scaler or is_unknown else None
    return None


def _of_kind(own: dict[str, Kind], through_scaler: Kind | None = None) -> Reader:
    """A method of a thing of some kind; of a scaler what it does with what it is given: ``scaler.step(optimizer)``."""

    def reader(frame: Frame, call: cst.Call) -> Seen | None:
        receiver = called_on(call)
        called = None if receiver is None else kind_of(frame, receiver)
        if receiver is None or called is None:
            return None
        if called.kind == "scaler" and through_scaler is not None and call.args:
            return Seen(through_scaler, frame.thing(call.args[0].value), frame.thing(receiver), called.is_proven)
        kind = own.get(called.kind)
        return None if kind is None else Seen(kind, frame.thing(receiver), is_proven=called.is_proven)

    return reader


def _zero(frame: Frame, call: cst.Call) -> Seen | None:
    receiver = called_on(call)
    if receiver is None or isinstance(frame.value(receiver), Symbol) or _is_own_function(frame, call):
        return None  # a function of a package clears what it is given
    called = kind_of(frame, receiver)
    if called is not None and called.kind in ("optimizer", "module"):
        return Seen(Kind.ZERO, frame.thing(receiver), is_proven=called.is_proven)
    # Of a parameter, or of something not known: whatever it is, it clears gradients.
    return Seen(Kind.ZERO, owner_of_parameters(frame, receiver) or frame.thing(receiver), is_proven=False)


def _changed(frame: Frame, call: cst.Call) -> Seen | None:
    """``parameter.grad.add_(noise)``, or what is done with one: ``parameter.data.add_(parameter.grad, alpha=-1)``."""
    receiver = called_on(call)
    owner = None if receiver is None else owner_updated(frame, receiver, call.args)
    return _on_gradient(Kind.WRITE_GRADIENT)(frame, call) if owner is None else Seen(Kind.UPDATE, owner)


def _on_gradient(kind: Kind) -> Reader:
    """A method of a gradient: ``parameter.grad.zero_()``, ``parameter.grad.data.clamp_(-1, 1)``."""

    def reader(frame: Frame, call: cst.Call) -> Seen | None:
        holder = holder_of_gradient(call)
        return None if holder is None else Seen(kind, owner_of_parameters(frame, holder))

    return reader


_CLIPPING = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grads_with_norm_")
CLIPPING_WORDS = (*_CLIPPING, "clamp_", "clip_")
"""What a call that clips gradients can be spelled as."""


def clips(model: "Model") -> Iterator[cst.Call]:
    """The calls in a file that may clip gradients, to go by the text: no run need be followed for the others."""
    for word in CLIPPING_WORDS:
        for call in model.calls_by_word.get(word, ()):
            if word in _CLIPPING or holder_of_gradient(call) is not None:
                yield call


def _clip(frame: Frame, call: cst.Call) -> Seen | None:
    value = frame.value(call.func)
    if isinstance(value, Symbol) and value.name.partition(".")[0] in ("torch", "paddle"):
        given = argument(call, 0, "parameters")
        return Seen(Kind.CLIP, None if given is None else owner_of_parameters(frame, given.value))
    receiver = called_on(call)
    if receiver is not None and isinstance(frame.value(receiver), Module):
        return Seen(Kind.CLIP, frame.thing(receiver))  # of FullyShardedDataParallel
    if receiver is not None and is_accelerator(frame.thing(receiver)):
        given = argument(call, 0, "parameters")
        return Seen(Kind.CLIP, None if given is None else owner_of_parameters(frame, given.value))
    return None


def _update(frame: Frame, call: cst.Call) -> Seen | None:
    receiver = called_on(call)
    called = None if receiver is None else kind_of(frame, receiver)
    if receiver is None or called is None or called.kind != "scaler":
        return None
    return Seen(Kind.UPDATE_SCALE, None, frame.thing(receiver), called.is_proven)


_MODE_KINDS = {"train": Kind.TRAIN, "eval": Kind.EVAL}


def _mode(word: str) -> Reader:
    """``model.train()``, ``model.eval()``, ``model.train(False)``."""

    def reader(frame: Frame, call: cst.Call) -> Seen | None:
        receiver, arguments = called_on(call), handed_on_to(frame, call)
        args, named = arguments or ([], {})
        if receiver is not None and args and is_class_of_modules(frame.value(receiver)):
            (_, receiver), *args = args  # `nn.Module.eval(model)`
        if receiver is None or len(args) + len(named) > (word == "train") or _is_own_function(frame, call):
            return None
        value = frame.value(receiver)
        if not may_have_mode(value) or not named.keys() <= {"mode"}:
            return None
        given = [*args, *named.values()]
        mode = None if arguments is None else truth(*given[0]) if given else word == "train"
        kind = Kind.TRAIN if mode is True else Kind.EVAL if mode is False else Kind.SET_MODE
        return Seen(kind, switched_thing(frame, receiver), is_proven=isinstance(value, Module))

    return reader


def _forward(frame: Frame, call: cst.Call) -> Seen | None:
    """``network.forward(inputs)`` from outside of the module, or a function of a library that calls it."""
    receiver = module_applied(frame.model, call) or called_on(call)
    called = None if receiver is None else kind_of(frame, receiver)
    if receiver is None or called is None or called.kind != "module":
        return None
    thing = frame.thing(receiver)
    return None if thing is None else Seen(Kind.FORWARD, thing, is_proven=called.is_proven)


def _freeze(frame: Frame, call: cst.Call) -> Seen | None:
    receiver = called_on(call)
    is_of_tensor = isinstance(receiver, cst.Call) and last_word(receiver.func) in ("detach", "clone")
    if receiver is None or is_of_tensor or _is_own_function(frame, call):
        return None
    thaws = last_word(call.func) != "freeze" and (not call.args or constant(call.args[0].value) is True)
    if not thaws and is_mere_data(frame.value(receiver)):
        return None
    return Seen(Kind.THAW if thaws else Kind.FREEZE, frame.thing(receiver))


def _load(frame: Frame, call: cst.Call) -> Seen | None:
    receiver = called_on(call)
    if receiver is None or _is_own_function(frame, call):
        return None
    return Seen(Kind.LOAD, frame.thing(receiver))


def _copy(frame: Frame, call: cst.Call) -> Seen | None:
    is_plain = len(call.args) == 1 and not call.args[0].star
    if not is_plain or frame.model.qualified_name(call.func) != "copy.deepcopy":
        return None
    return Seen(Kind.COPY, frame.thing(call.args[0].value))


def _save(frame: Frame, call: cst.Call) -> Seen | None:
    return Seen(Kind.SAVE) if frame.model.qualified_name(call.func) in ("torch.save", "paddle.save") else None


def _trace(frame: Frame, call: cst.Call) -> Seen | None:
    is_of_torch = bool(call.args) and frame.model.qualified_name(call.func) == "torch.jit.trace"
    return Seen(Kind.TRACE, frame.thing(call.args[0].value)) if is_of_torch else None


_READERS: dict[str, Reader] = {
    **dict.fromkeys(lookup.APPLYING, _forward),
    "backward": _backward,
    "manual_backward": _backward,
    "step": _of_kind({"optimizer": Kind.STEP, "scheduler": Kind.SCHEDULE}, Kind.STEP),
    "minimize": _of_kind({"optimizer": Kind.MINIMIZE}, Kind.MINIMIZE),
    "zero_grad": _zero,
    "clear_grad": _zero,
    "clear_gradients": _zero,
    "clear_gradient": _zero,
    "zero_": _on_gradient(Kind.ZERO),
    **dict.fromkeys(("copy_", "div_", "mul_", "multiply_", "divide_", "scale_"), _on_gradient(Kind.WRITE_GRADIENT)),
    "add_": _changed,
    "sub_": _changed,
    "clamp_": _on_gradient(Kind.CLIP),
    "clip_": _on_gradient(Kind.CLIP),
    "scale": _of_kind({}, Kind.SCALE),
    "unscale_": _of_kind({}, Kind.UNSCALE),
    "update": _update,
    "forward": _forward,
    "train": _mode("train"),
    "eval": _mode("eval"),
    **dict.fromkeys(("requires_grad_", "freeze"), _freeze),  # the latter of Lightning's modules
    **dict.fromkeys(LOADING, _load),
    "deepcopy": _copy,
    "save": _save,
    "trace": _trace,
    **dict.fromkeys(_CLIPPING, _clip),
}

EVENT_WORDS = frozenset(_READERS)
"""The last words of the calls that may be events."""
MODE_WORDS = frozenset({"train", "eval"})
WORDS = frozenset({*_READERS, *GRADIENT, "requires_grad", "stop_gradient", "trainable"}) - MODE_WORDS - {
    *lookup.APPLYING, "update", "save", "scale", "copy_", "add_", "sub_", "div_", "mul_", "forward", "deepcopy",
}  # fmt: skip
"""Words of which a body that matters to the order of a training has at least one."""


# -- what cannot be looked into ----------------------------------------------------------------------------------------


def does_nothing(frame: Frame, call: cst.Call, value: Value | None) -> bool:
    """Whether a call, which is neither an event nor followed, surely changes nothing that a training is about.

    ``value`` is what is called.
    """
    if _is_of_lightning(frame, call):
        return True
    if isinstance(value, Instance) or may_switch(frame, call):
        return False  # a call of an object of the project, or a method that may switch its parts
    if value is not None:
        name = value.name if isinstance(value, Symbol) else None
        return name is None or name.partition(".")[0] in _HARMLESS or lookup.wrapper(name) is not None
    if not isinstance(call.func, cst.Attribute):
        return bool(fields_of(frame.model, call.func))  # a named tuple
    if call.func.attr.value in READING or inside_of(frame.model, call) is not None:
        return True
    receiver = frame.value(call.func.value)
    if receiver is None:
        return _is_of_harmless(frame, call.func.value)
    return not isinstance(receiver, (Symbol, Instance))


def _is_of_lightning(frame: Frame, call: cst.Call) -> bool:
    """Whether Lightning's base class has a method that does nothing to gradients: ``self.log("loss", loss)``."""
    function = frame.function
    if function is None or not isinstance(call.func, cst.Attribute) or call.func.attr.value not in HARMLESS:
        return False
    owner = owner_of_run(frame)
    is_own = isinstance(call.func.value, cst.Name) and call.func.value.value == function.self_name
    return is_own and owner is not None and owner.method(call.func.attr.value) is None and optimizes_by_hand(owner)


def _is_of_harmless(frame: Frame, receiver: cst.BaseExpression) -> bool:
    """Whether an object was made by a function of a package that changes nothing: ``writer = SummaryWriter()``."""
    makers = names_of_makers(frame.thing(receiver))
    return bool(makers) and all(
        name.partition(".")[0] in _HARMLESS - _HOLDING or name.startswith("torch.utils.tensorboard.") for name in makers
    )


_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "dict", "enumerate", "float", "format", "getattr", "hasattr", "id", "int",
    "isinstance", "len", "list", "max", "min", "open", "print", "range", "repr", "reversed", "round", "set", "sorted",
    "str", "sum", "super", "tuple", "type", "zip",
})  # fmt: skip


def is_about_data(model: "Model", call: cst.Call) -> bool:
    """Whether a call is one of a method of tensors, texts or containers, or of a built-in function, by its word alone.

    Most calls of a training are; what they are called on need not be asked then.
    """
    word = last_word(call.func)
    if word is None or word in _READERS or word in model.function_names:
        return False
    if isinstance(call.func, cst.Attribute):
        return word in _methods_of_data() and not (
            isinstance(call.func.value, cst.Name) and call.func.value.value == "self"
        )
    return word in _BUILTINS


@cache
def _methods_of_data() -> frozenset[str]:
    names = {name for kind in (list, dict, str) for name in dir(kind)} - {"clear", "encode", "translate"}
    return frozenset(names.union(*(lookup.tensor_methods(framework) for framework in ("torch", "paddle"))))


def is_data(value: Value) -> bool:
    """Whether a value cannot be, or hold, an optimizer, a scheduler or a module."""
    return not isinstance(value, (Object, Module, Instance, Elements, Repeated, Mapping, Unfinished, Function, Symbol))


def optimizer_of(model: "Model", step: cst.Call) -> cst.BaseExpression | None:
    """The optimizer that a step updates with, as it is written: of ``scaler.step(optimizer)`` the argument."""
    receiver = called_on(step)
    called = None if receiver is None else kind_of(Frame(model), receiver)
    if called is not None and called.kind == "scaler":
        return step.args[0].value if step.args else None
    return receiver
