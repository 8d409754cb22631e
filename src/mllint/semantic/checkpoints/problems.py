"""What is surely wrong with a load of a state dict."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import libcst as cst
import msgspec

from mllint.knowledge import lookup
from mllint.knowledge.words import LOADING, STATEFUL
from mllint.semantic.checkpoints.bare_as_told import bare_as_told
from mllint.semantic.checkpoints.contents import Absent, Content, FromFile, Record, Several, State, Whole, key_set
from mllint.semantic.checkpoints.counterparts import is_crosswise, records_written, written_beside
from mllint.semantic.checkpoints.handling import (
    completed_dict,
    entries_read,
    found_before,
    is_guarded,
    is_used_as_dict,
    runs_with,
)
from mllint.semantic.checkpoints.loads import Load, contents, load_of, wanted
from mllint.semantic.checkpoints.never_written import asked_under_another, may_be_of_another
from mllint.semantic.checkpoints.one_sided import OneSided, one_sided, saved_half_wrapped, stripped_beside, told_by_keys
from mllint.semantic.checkpoints.paths import Path
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.shared_state import SharedState, shared_state
from mllint.semantic.checkpoints.taken_out import taken_out
from mllint.semantic.checkpoints.told_elsewhere import is_loaded_otherwise, written_as_read_elsewhere, written_of_class
from mllint.semantic.checkpoints.tracing import Tracer, path_given, read_path
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES, Mismatch, compare
from mllint.semantic.graph.statefulness import parts_made
from mllint.semantic.modules.module_keys import ANYTHING
from mllint.semantic.names.scopes import Binding
from mllint.semantic.names.uses import calls_of_path
from mllint.semantic.values import ClassObject, Instance, Module, Object, is_object
from mllint.syntax.shape import dotted_path, last_word, string_literal, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Keys that training scripts give to what they save, and that no parameter has.
_CHECKPOINT_KEYS = frozenset({
    "epoch", "epochs", "state_dict", "model", "model_state_dict", "model_state", "model_dict", "net", "network",
    "optimizer", "optim", "optimizer_state_dict", "optimizer_state", "opt", "scheduler", "scheduler_state_dict",
    "lr_scheduler", "scaler", "args", "config", "cfg", "hparams", "hyper_parameters", "best_acc", "best_acc1",
    "best_prec1", "best_loss", "acc", "loss", "step", "global_step", "iteration", "iter", "iters", "state", "ema",
    "start_epoch", "best_score", "best_val_loss", "best_metric", "vocab", "arch",
})  # fmt: skip
_MODEL_KEYS = frozenset({"model", "net", "network", "model_state_dict", "net_state_dict", "model_state", "model_dict"})
_CHECKPOINT_MODELS = _MODEL_KEYS | {"state_dict"}

ProblemKind = Literal[
    "nested", "absent", "whole", "swapped", "keys", "one-sided", "read", "partial", "found", "misnamed", "stripped",
    "crosswise", "asked", "several", "shared",
]  # fmt: skip


class Problem(msgspec.Struct, frozen=True):
    """What is surely wrong with a load.

    ``nested``: a checkpoint that holds the state dict (under ``names``) among other things. ``absent``: a key that
    nothing saves. ``whole``: a module. ``swapped``: the state of another kind of thing. ``keys``: other keys
    (``mismatch``). ``one-sided``: keys of which one side has a prefix, on some ways (``wrapped``). ``read``: a dict of
    which other entries (``names``) are read as those of a checkpoint. ``partial``: the dict that was completed for the
    load (``names``) is not the one that is loaded. ``found``: a dict in which the state dict was found as an entry.
    ``misnamed``: a file to whose path (``names``) nothing is written, while ``saved`` goes to one that nearly is it.
    ``crosswise``: the state of something else, into which that of this is loaded (``names``).
    ``several``: a list of state dicts. ``asked``: an entry that is asked for under another key (``names``: both).
    ``stripped``: a file of which another branch takes a prefix (``names``) off the keys. ``shared``: what goes into a
    module as well (``shared``).
    """

    kind: ProblemKind
    content: Content | None = None
    saved: Saved | None = None
    mismatch: Mismatch | None = None
    names: tuple[str, ...] = ()
    wrapped: OneSided | None = None
    shared: SharedState | None = None


def problem_of(load: Load) -> Problem | None:
    """What is surely wrong with a load; ``None`` when nothing is."""
    asked = asked_under_another(load)
    if asked is not None:
        return Problem("asked", names=asked)
    if is_guarded(load):
        entry = found_before(load)
        return None if entry not in _CHECKPOINT_MODELS else Problem("found", names=(entry,))
    found: list[Problem] = []
    for saved, content in contents(load):
        problem = _of_content(load, saved, content)
        if problem is None:
            # The file may be one of several, and one that fits is enough.
            return _from_inside(load)
        found.append(problem)
    if found:
        return found[0]
    return (
        _by_the_code_around(load)
        or _by_the_keys(load)
        or _by_another_load(load)
        or _from_inside(load)
        or _by_the_other_branch(load)
        or _by_the_path(load)
        or _by_what_is_written_beside(load)
        or _by_other_readers(load)
    )


def _by_what_is_written_beside(load: Load) -> Problem | None:
    """What is wrong where it is not known which file is read, but which code writes such files."""
    content = Tracer(load.model).content(load.given)
    if not isinstance(content, FromFile):
        return None
    written = written_beside(load.model, load.given, content) or written_of_class(load, content)
    # Where what the file saves is loaded as it is beside, an entry is one of another file.
    if not written and not (content.trail and is_loaded_otherwise(load, content)):
        written = records_written(load.model, last_word(load.receiver), content)
    written = written or written_as_read_elsewhere(load, content)
    found = [_of_content(load, saved, inner) for saved, inner in written]
    return found[0] if all(found) and found else None


def _by_the_other_branch(load: Load) -> Problem | None:
    """What is wrong where another branch takes a prefix off the keys of the same file."""
    prefix = stripped_beside(load)
    return None if prefix is None else Problem("stripped", names=(prefix,))


def _by_other_readers(load: Load) -> Problem | None:
    """What is wrong where other code always loads the file of the same option into a wrapper."""
    found = bare_as_told(load)
    return None if found is None else Problem("one-sided", found[1], found[0], wrapped=found[2])


def _by_the_keys(load: Load) -> Problem | None:
    """What is wrong with a dict of which single weights are read, by their keys."""
    wrapped = told_by_keys(load)
    return None if wrapped is None else Problem("one-sided", wrapped=wrapped)


def _by_another_load(load: Load) -> Problem | None:
    """What is wrong where the very same state is loaded into a thing of another kind."""
    shared = shared_state(load)
    return None if shared is None else Problem("shared", shared=shared)


def _by_the_path(load: Load) -> Problem | None:
    """What is wrong where a network is read from a file that nobody writes."""
    other = None if isinstance(load.value, Object) else misnamed(load)
    return None if other is None else Problem("misnamed", saved=other.saved, names=(other.path.shown,))


def _from_inside(load: Load) -> Problem | None:
    """What is wrong where the code saves the module inside of what it loads into."""
    wrapped = taken_out(load)
    return None if wrapped is None else Problem("one-sided", wrapped=wrapped)


def _of_content(load: Load, saved: Saved | None, content: Content | None) -> Problem | None:
    match content:
        case Absent():
            is_of_another = saved is not None and may_be_of_another(load.model, content, saved)
            return None if is_of_another else Problem("absent", content, saved)
        case Whole():
            return Problem("whole", content, saved)
        case Several() if isinstance(load.value, (Module, Object)) or isinstance(load.receiver, cst.Subscript):
            return Problem("several", content, saved)
        case State():
            return _of_state(load, saved, content)
        case Record():
            return _of_record(load, saved, content)
    return None


def _of_state(load: Load, saved: Saved | None, content: State) -> Problem | None:
    owner, receiver = content.owner, load.value
    known = [value for value in (owner, receiver) if isinstance(value, (Module, Object))]
    kinds = [value.kind if isinstance(value, Object) else "module" for value in known]
    if len(kinds) == 2 and kinds[0] != kinds[1] and STATEFUL | {"module"} >= set(kinds):
        return Problem("swapped", content, saved)
    if saved is not None and is_crosswise(load.model, load.call, saved, content):
        return Problem("crosswise", content, saved, names=(content.name or "", last_word(load.receiver) or ""))
    problem = _of_keys(load, saved, content)
    if problem is not None or content.is_unclear:
        return problem
    wrapped = one_sided(load, content) if saved is None else saved_half_wrapped(load, content)
    return None if wrapped is None else Problem("one-sided", content, saved, wrapped=wrapped)


def _of_keys(load: Load, saved: Saved | None, content: State | Record) -> Problem | None:
    keys = wanted(load) if isinstance(load.value, Module) else ANYTHING
    if keys is ANYTHING:
        return None
    mismatch = compare(content.keys if isinstance(content, State) else key_set(content), keys)
    # Networks of two runs differ in their layers, but not in how they were wrapped; and each network has its files:
    # where other code saves another network, it may be what a third one has written. Not one that holds this one.
    is_certain = saved is None or saved.is_certain
    is_own = saved is None or (is_certain and saved.place.model is load.model)
    if not is_own and _is_of_another_class(load, content):
        return None
    if mismatch.is_total or (load.is_strict and mismatch and is_certain):
        return Problem("keys", content, saved, mismatch)
    return None


def _is_of_another_class(load: Load, content: State | Record) -> bool:
    """Whether what is loaded is the state of a network of another class than the one that it is loaded into.

    Not where one of the two was made to hold one of the other's class, ``WithLoss(net)``, or makes one itself.
    """
    owner = content.owner if isinstance(content, State) else None
    if not isinstance(owner, Module) or not isinstance(load.value, Module):
        return False
    return not (
        _is_of_class(owner, load.value)
        or _is_given_one(content.place.model, owner, load.value)
        or _is_given_one(load.model, load.value, owner)
        or _makes_one(owner, load.value)
        or _makes_one(load.value, owner)
    )


def _is_of_class(one: Module, other: Module) -> bool:
    if one.definition is None or other.definition is None:
        return one.name == other.name
    return one.definition.is_same_as(other.definition)


def _is_given_one(model: "Model", outer: Module, inner: Module) -> bool:
    """Whether the call that makes a module is given another one of some class of the project."""
    given = () if outer.call is None or id(outer.call) not in model.tree.parents else outer.call.args
    values = (model.value(arg.value) for arg in given)
    return inner.definition is not None and any(
        isinstance(value, Module) and value.definition is not None and _is_of_class(value, inner) for value in values
    )


def _makes_one(outer: Module, inner: Module) -> bool:
    """Whether the constructor of a module makes another one of some class of the project."""
    part, bases = inner.definition, () if outer.definition is None else outer.definition.lineage
    return part is not None and any(made.is_same_as(part) for info in bases for made in parts_made(info))


def _of_record(load: Load, saved: Saved | None, content: Record) -> Problem | None:
    nested = entries_for(load, content)
    if nested and (load.value is not None or _saves_receiver(load, content)):
        return Problem("nested", content, saved, names=nested)
    if not content.items and saved is None:
        return None
    problem = _of_keys(load, saved, content)
    return None if problem is not None and saved is None and _may_be_wrapped(load, problem) else problem


def _may_be_wrapped(load: Load, problem: Problem) -> bool:
    """Whether keys are written by hand for an attribute, all with one prefix: of what others have wrapped it in."""
    mismatch = problem.mismatch
    if mismatch is None or not isinstance(load.receiver, cst.Attribute):
        return False
    prefixes = {key.removesuffix(name) for name in mismatch.missing for key in mismatch.unexpected if name in key}
    wrapper = prefixes.pop() if len(prefixes) == 1 else ""
    return wrapper.endswith(".") and {wrapper + name for name in mismatch.missing} == set(mismatch.unexpected)


def entries_for(load: Load, record: Record) -> tuple[str, ...]:
    """The entries of a record that hold the state of something of the kind that is loaded into."""
    kind = load.value.kind if isinstance(load.value, Object) else "module"
    found = []
    for key, item in record.items.items():
        owner = item.owner if isinstance(item, (State, Whole)) else None
        owned_by = owner.kind if isinstance(owner, Object) else "module"
        is_own = isinstance(owner, (Instance, ClassObject))
        if isinstance(item, (State, Whole)) and owned_by == kind and not is_own:
            found.append(key)
    return tuple(found)


def state_instead(load: Load, problem: Problem) -> str | None:
    """The entry of a known file that is to be read in place of one that it does not have: the only state in it."""
    content, given = problem.content, load.given
    if problem.kind != "absent" or not isinstance(content, Absent) or not isinstance(content.holder, Record):
        return None
    if problem.saved is None or problem.saved.path is None or not isinstance(given, cst.Subscript):
        return None
    states = entries_for(load, content.holder)
    return states[0] if len(states) == 1 and string_literal(subscript_index(given)) == content.key else None


def _saves_receiver(load: Load, content: Record) -> bool:
    """Whether one of the states in a record is that of something with the receiver's name."""
    name = (dotted_path(load.receiver) or "").rpartition(".")[2]
    for item in content.items.values():
        node = item.place.node if isinstance(item, State) else None
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            owner = (dotted_path(node.func.value) or "").rpartition(".")[2]
            if owner and owner == name:
                return True
    return False


def _by_the_code_around(load: Load) -> Problem | None:
    """What is wrong with the dict of a file of which nothing is known but how the code around treats it."""
    content = Tracer(load.model).content(load.given)
    if dotted_path(load.receiver) != "self" and load.is_strict and dotted_path(load.given) is not None:
        full = completed_dict(load)
        if full is not None:
            return Problem("partial", content, names=(full,))
    if not isinstance(content, FromFile) or content.renames:
        return None
    if content.trail:
        return _by_name(load, content)
    names = entries_loaded(load, content)
    if (
        dotted_path(load.receiver) != "self"
        and dotted_path(load.given) is not None
        and not isinstance(load.value, Object)
    ):
        found = [name for name, items in entries_read(load).items() if _is_no_parameter(load, name, items)]
        names = tuple(found) or names
    return Problem("read", content, names=names) if names else None


def _is_no_parameter(load: Load, name: str, items: list[cst.Subscript]) -> bool:
    """Whether an entry that is read of the dict that is loaded surely is no parameter of the module."""
    if name in _CHECKPOINT_KEYS:
        return True
    if not load.is_strict:
        return False  # what has no place in the module may be skipped on purpose
    keys = wanted(load)
    return (keys.is_closed and not keys.may_hold(name)) or any(is_used_as_dict(item, load.model) for item in items)


def _by_name(load: Load, content: FromFile) -> Problem | None:
    """``model.load_state_dict(ckpt["optimizer"])``: the key says that it is the state of something else."""
    key = content.trail[-1]
    word = key.lower()
    is_for_optimizer = word.startswith("optim") or word.endswith("optimizer")
    into_module = isinstance(load.value, Module) and is_for_optimizer
    into_optimizer = is_object(load.value, "optimizer") and word in _MODEL_KEYS
    return Problem("swapped", content, names=(key,)) if into_module or into_optimizer else None


def one_sided_prefix(load: Load, problem: Problem) -> tuple[str, bool] | None:
    """The prefix of a wrapper that only one side has, and whether that is the side that is loaded."""
    content, value = problem.content, load.value
    wrapper = lookup.wrapper(value.wrappers[0]) if isinstance(value, Module) and value.wrappers else None
    for prefix in WRAPPER_PREFIXES:
        wanted = wrapper is not None and wrapper.prefix == prefix
        given = isinstance(content, State) and content.keys.all_begin_with(prefix)
        if wanted != given:
            return prefix, given
    return None


class Misnamed(msgspec.Struct, frozen=True):
    """The path that is read, and the save that was meant."""

    path: Path
    saved: Saved


def misnamed(load: "Load") -> Misnamed | None:
    """What a load was to read; ``None`` where the path may be that of any file, or is written to.

    Only what this very file saves of a thing of the same name tells that it is no other file.

    ``weights/last`` beside ``weights/last.pth``, ``weight/last.pth`` beside ``weights/last.pth``.
    """
    content = Tracer(load.model).content(load.given)
    if not isinstance(content, FromFile) or content.place.model is not load.model:
        return None
    path = read_path(content)
    if path is None or path.is_blank:
        return None
    everything = load.model.surroundings.saved
    if any(saved.path is None or saved.path.is_blank or saved.path.is_same_as(path) for saved in everything):
        return None
    close = [saved for saved in everything if saved.path is not None and saved.path.is_nearly(path)]
    return next((Misnamed(path, saved) for saved in close if _is_of_receiver(saved.content, load)), None)


def _is_of_receiver(content: Content | None, load: "Load") -> bool:
    """Whether the state of something that is called like the receiver, in this file, is in there."""
    if isinstance(content, Record):
        return any(_is_of_receiver(item, load) for item in content.items.values() if isinstance(item, State))
    call = content.place.node if isinstance(content, State) and content.place.model is load.model else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return False
    owner = dotted_path(call.func.value) or ""
    return owner.removesuffix(".module").rpartition(".")[2] == last_word(load.receiver)


def entries_loaded(load: Load, content: FromFile) -> tuple[str, ...]:
    """The entries of the file, which one load is given as a whole, that others load along with it into the same thing.

    Nothing where the path may stand for two files.

    ``net.load_state_dict(torch.load(path))``, ``state = torch.load(path)``, ``net.load_state_dict(state["net"])``: only
    one of the two fits.
    """
    path, receiver = read_path(content), dotted_path(load.receiver)
    others = list(_loads_beside(load, receiver)) if path is not None and receiver is not None else []
    found: list[str] = []
    for other in others:
        given = Tracer(load.model).content(other.given)
        if not isinstance(given, FromFile) or len(given.trail) != 1 or given.renames or is_guarded(other):
            continue
        if read_path(given) == path and _holders(given) == _holders(content):
            found.append(given.trail[0])
    return tuple(dict.fromkeys(found))


def _loads_beside(load: Load, receiver: str) -> Iterator[Load]:
    """The other strict loads into the very same thing, of the same function, that run whenever this one does."""
    model, function = load.model, load.model.enclosing_function(load.call)
    for call in (call for word in sorted(LOADING) for call in calls_of_path(model, f"{receiver}.{word}")):
        is_other = call is not load.call and model.enclosing_function(call) is function
        other = load_of(model, call) if is_other and runs_with(call, load) else None
        if other is not None and other.is_strict and model.reaching(other.receiver) == model.reaching(load.receiver):
            yield other


def _holders(content: FromFile) -> list[tuple[Binding, ...]]:
    """What binds the names in the path that a call reads: the same text of two bindings is two paths."""
    given = path_given(content)
    if given is None:
        return []
    reader, source = Tracer(content.place.model, content.route).origin(given)
    return [tuple(reader.model.reaching(part)) for part in subtree(source) if isinstance(part, cst.Name)]
