"""Whether the state of an optimizer is saved, and left in its file where training goes on from there."""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.resuming import COUNTERS, has_state, is_of_model, is_state, resumes_from
from mllint.semantic.checkpoints.saving import Part, parts, saved
from mllint.semantic.values import Loaded, Module, Object
from mllint.syntax.shape import last_word, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_LOADING = ("load_state_dict", "set_state_dict")


def unrestored(model: "Model", call: cst.Call) -> str | None:
    """The key of an optimizer in the checkpoint that a call saves, where the file resumes and leaves its state aside.

    The file itself has to load the network of what it reads, and nothing else may stand for the optimizer there.
    """
    what = saved(model, call)
    found = [] if what is None else parts(model, what.node)
    if len(found) < 3 or any(not part.keys or part.keys[0] is None for part in found):
        return None
    states = [part for part in found if is_state(model, part)]
    counters = {part.keys[0] for part in found if part.keys[0] in COUNTERS and part not in states}
    keys = [part.keys[0] for part in states if _is_of_optimizer(model, part)]
    if len(keys) != 1 or keys[0] is None or not counters or not any(is_of_model(model, part) for part in states):
        return None
    if not _loads_only_modules(model) or _is_read(model, keys[0]):
        return None
    return keys[0] if resumes_from(model, {key for key in counters if key is not None}) else None


def _is_of_optimizer(model: "Model", part: Part) -> bool:
    """Whether a part is the state of an optimizer that keeps any, by its name where nothing else is known of it."""
    node = part.node
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    owner = model.value(node.func.value)
    if owner is None:
        return (last_word(node.func.value) or "").lower() in ("optimizer", "optim")
    return isinstance(owner, Object) and has_state(owner)


def _loads_only_modules(model: "Model") -> bool:
    """Whether a module is given what was read, and no call that loads may be of anything but modules."""
    loads = [call for word in _LOADING for call in model.calls_by_word.get(word, ())]
    receivers = [model.value(call.func.value) for call in loads if isinstance(call.func, cst.Attribute)]
    is_read = any(call.args and isinstance(model.value(call.args[0].value), Loaded) for call in loads)
    return is_read and len(receivers) == len(loads) and all(isinstance(value, Module) for value in receivers)


def _is_read(model: "Model", key: str) -> bool:
    """Whether a key stands anywhere but in the dicts that are made: ``checkpoint[key]``, ``checkpoint.get(key)``."""
    for text in model.tree.by_type.get(cst.SimpleString, ()):
        holder = model.tree.parent(text)
        if string_literal(text) == key and not (isinstance(holder, cst.DictElement) and holder.key is text):
            return True
    return False
