"""What is wrong with a load, and what to write, in the words of a message."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mllint.semantic.checkpoints.contents import Absent, Record, State
from mllint.semantic.checkpoints.loads import Load
from mllint.semantic.checkpoints.mistaken import Mistaken, ReadAgain, Unpacked
from mllint.semantic.checkpoints.problems import Problem, entries_for, one_sided_prefix
from mllint.semantic.checkpoints.routes import Place
from mllint.semantic.checkpoints.saves import Saved
from mllint.semantic.checkpoints.shared_state import SavedTwice
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES
from mllint.semantic.values import Object, Value

if TYPE_CHECKING:
    from mllint.semantic.model import Model

LONGEST = 88
"""The longest message."""
_SHOWN = 2
"""How many keys of one kind are named."""


def words(load: Load, problem: Problem) -> tuple[str, str | None]:
    """The message about a problem, and what helps (``None``: nothing beyond what is said of all of them)."""
    match problem.kind:
        case "nested":
            return _nested(load, problem)
        case "read":
            return (
                _fitting(lambda n: f"a whole checkpoint is loaded: {listed(problem.names, n)} of it is read as well"),
                "load the entry of the checkpoint that holds the state dict",
            )
        case "found":
            name = problem.names[0]
            return f"a whole checkpoint is loaded where `{name}` was found in it", f"load the entry `{name}`"
        case "partial":
            full = f"`{problem.names[0]}`"
            return f"only a part is loaded: {full}, which was completed for this, is not used", f"load {full}"
        case "absent":
            return _absent(load, problem)
        case "whole":
            place = "" if problem.saved is None else f": {_saved(load, problem)} saves it"
            return f"a whole module is loaded as a state dict{place}", "give `.state_dict()` of the module"
        case "several":
            return (
                f"a list of state dicts is loaded: {_saved(load, problem)} saves one for each",
                "load one item of the list",
            )
        case "swapped":
            return _swapped(load, problem), "load the state of the same object"
        case "crosswise":
            name, receiver = problem.names
            message = f"the state of `{name}` is loaded into `{receiver}`, and the other way round"
            return message, "save each state under the key from which it is loaded"
        case "one-sided":
            return _of_one_side(problem) if problem.saved is None else _of_half(load, problem)
        case "shared":
            assert problem.shared is not None
            place = Place(load.model, problem.shared.other).seen_from(load.model)
            message = f"the same state goes into {_kind(load.value)} here, and into a module ({place})"
            return message, "load the state of the same object"
        case "misnamed":
            return _of_no_file(load, problem)
        case "asked":
            asked, key = problem.names
            return f"`{asked}` is asked for, and `{key}` is read", "ask for the entry that is read"
        case "stripped":
            return (
                f"another branch takes `{problem.names[0]}` off the keys of this file, and this one does not",
                "do the same in both: the module is in no wrapper on either way",
            )
    return _other_keys(load, problem)


def words_of_use(model: "Model", mistaken: Mistaken, key: str | None = None) -> tuple[str, str]:
    """The same about a state dict that is taken for a module; ``key``: an entry of a file, for any object."""
    place = mistaken.saved.place.seen_from(model)
    lack = f"has no `{mistaken.method}`" if mistaken.method else "cannot be called"
    if key is not None:
        message = f"`{key}` {lack}: {place} saves a state dict there"
        message = message if len(message) <= LONGEST else f"this entry {lack}: {place} saves a state dict there"
        return message, "make the object first, then load into it what was read: `.load_state_dict(...)`"
    kind = "state dict" if isinstance(mistaken.saved.content, State) else "dict"
    return (
        f"what is read {lack}: {place} saves a {kind}",
        "make the module first, then load into it what was read: `model.load_state_dict(...)`",
    )


def words_of_path(model: "Model", found: ReadAgain) -> tuple[str, str]:
    """The same about an entry of a file that is taken for the path of another."""
    place, kind = found.saved.place.seen_from(model), "the state dict itself" if found.is_state else "no path"
    message = f"`{found.key}` is no path: {place} saves {kind} there"
    return message if len(message) <= LONGEST else f"this is no path: {place} saves {kind} there", "load it as it is"


def words_of_saved_twice(found: SavedTwice) -> tuple[str, str]:
    """The same about a state that is saved again under the key of an optimizer."""
    message = f"the state of `{found.path}` is saved again under `{found.key}`"
    if len(message) > LONGEST:
        message = f"this state is saved under another key as well as under `{found.key}`"
    return message, f"save the state of what `{found.key}` is to be loaded into"


def words_of_unpacking(model: "Model", found: Unpacked) -> tuple[str, str]:
    """The same about a dict that is unpacked into several names."""
    saver = None if found.saved is None else f"{found.saved.place.seen_from(model)} saves a dict"
    return (
        f"unpacking what is read gives its keys: {saver or '`paddle.load` returns what was saved, no pair'}",
        "give what is read one name, and read the other state from its own file",
    )


def words_of_absent(model: "Model", absent: Absent, saved: Saved) -> tuple[str, str]:
    """The same about an entry that is read of a file and not saved there, whatever it is used for."""
    place, record = saved.place.seen_from(model), absent.holder
    assert isinstance(record, Record)
    message = _fitting(lambda shown: f"`{absent.key}` is never saved: {place} saves {listed(record.items, shown)}")
    return message, f"read an entry that is saved: {listed(record.items)}"


def listed(names: Iterable[str], shown: int = _SHOWN) -> str:
    """Keys as a message names them: the first few, and how many more."""
    every = sorted(names)
    if shown == 0:
        return f"{len(every)} key{'s' if len(every) > 1 else ''}"
    first = ", ".join(f"`{name}`" for name in every[:shown])
    return first if len(every) <= shown else f"{first} and {len(every) - shown} more"


def _fitting(text: Callable[[int], str]) -> str:
    """The text with as many keys named as there is room for."""
    for shown in range(_SHOWN, 0, -1):
        if len(text(shown)) <= LONGEST:
            return text(shown)
    return text(0)


def _saved(load: Load, problem: Problem) -> str:
    return "the file" if problem.saved is None else problem.saved.place.seen_from(load.model)


def _nested(load: Load, problem: Problem) -> tuple[str, str]:
    record = problem.content
    assert isinstance(record, Record)
    maker = f"{_saved(load, problem)} saves"
    if problem.saved is None:
        maker = f"{record.place.seen_from(load.model)} builds"
    return (
        _fitting(lambda shown: f"a whole checkpoint is loaded: {maker} it with {listed(record.items, shown)}"),
        f"load the entry that holds the state dict: {listed(problem.names)}",
    )


def _absent(load: Load, problem: Problem) -> tuple[str, str]:
    content = problem.content
    assert isinstance(content, Absent)
    saved, record = _saved(load, problem), content.holder
    if not isinstance(record, Record):
        return (
            f"`{content.key}` is never saved: {saved} saves a state dict as it is",
            "load what was read from the file, without the key",
        )
    is_half = problem.saved is not None and problem.saved.path is None  # one of a pair of methods
    meant = () if is_half else entries_for(load, record)
    if meant:
        help_ = f"read the entry that is saved: {listed(meant)}"
    else:
        help_ = f"save it there, or read an entry that is saved: {listed(record.items)}"
    message = _fitting(lambda shown: f"`{content.key}` is never saved: {saved} saves {listed(record.items, shown)}")
    return message, help_


def _swapped(load: Load, problem: Problem) -> str:
    if problem.names:
        return f"`{problem.names[0]}` is the state of something else by its name"
    owner = problem.content.owner if isinstance(problem.content, State) else None
    place = "" if problem.saved is None else f" ({_saved(load, problem)} saves it)"
    return f"the state of {_kind(owner)} is loaded into {_kind(load.value)}{place}"


def _kind(value: Value | None) -> str:
    name = value.kind if isinstance(value, Object) else "module"
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _of_no_file(load: Load, problem: Problem) -> tuple[str, str]:
    assert problem.saved is not None
    assert problem.saved.path is not None
    read, written, place = problem.names[0], problem.saved.path.shown, _saved(load, problem)
    message = f"nothing is written to `{read}`: {place} writes `{written}`"
    if len(message) > LONGEST:
        message = f"nothing is written to the path that is read, but to one that is nearly it ({place})"
    return message, f"read `{written}`" if len(written) < LONGEST // 2 else "read the path that is written"


def _of_one_side(problem: Problem) -> tuple[str, str]:
    wrapped = problem.wrapped
    assert wrapped is not None
    if not wrapped.wrapper:
        return (
            f"the keys that are read begin with `{wrapped.prefix}`, and the module is in no wrapper",
            f'take the prefix off: `{{k.removeprefix("{wrapped.prefix}"): v for k, v in state.items()}}`',
        )
    if wrapped.part:
        prefix = wrapped.part + wrapped.prefix
        return (
            f"the wanted keys begin with `{prefix}` in `{wrapped.wrapper}`, those that are read do not",
            "load the state before a part of the module is wrapped",
        )
    inside = f'`getattr(model, "{wrapped.prefix.removesuffix(".")}", model)`'
    return (
        f"the {'loaded' if wrapped.is_given else 'wanted'} keys begin with `{wrapped.prefix}` "
        f"if the module is in `{wrapped.wrapper}`",
        f"take the state of the module inside: {inside}" if wrapped.is_given else f"load into the module: {inside}",
    )


def _of_half(load: Load, problem: Problem) -> tuple[str, str]:
    wrapped = problem.wrapped
    assert wrapped is not None
    place = _saved(load, problem)
    return (
        f"the keys that {place} saves begin with `{wrapped.prefix}` only if it is in `{wrapped.wrapper}`",
        "save the state of the module inside in either case, and load it before the module is wrapped",
    )


def _other_keys(load: Load, problem: Problem) -> tuple[str, str | None]:
    keys = "the keys" if problem.saved is None else f"the keys that {_saved(load, problem)} saves"
    one_sided = one_sided_prefix(load, problem)
    if one_sided is None:
        return _of_parts(keys, problem) or (_difference(load, problem), None)
    prefix, is_given = one_sided
    if is_given:
        return (
            f"{keys} begin with `{prefix}`, those of the module do not",
            f'take the prefix off: `{{k.removeprefix("{prefix}"): v for k, v in state.items()}}`',
        )
    return (
        f"{keys} lack the `{prefix}` of the wrapped module",
        f"load into the module that is wrapped: `.{prefix.removesuffix('.')}`",
    )


def _of_parts(keys: str, problem: Problem) -> tuple[str, str] | None:
    """The message where only parts of the module are in a wrapper, on one side."""
    mismatch = problem.mismatch
    assert mismatch is not None
    sides = (mismatch.unexpected, mismatch.missing)
    for bare, wrapped in (sides, sides[::-1]):
        parts = sorted({key.partition(".")[0] for key in bare})
        for prefix in WRAPPER_PREFIXES:
            behind = {key.replace(".", f".{prefix}", 1) for key in bare if "." in key}
            if behind and behind == set(wrapped):
                part = f"`{prefix}` behind {listed(f'{name}.' for name in parts)}"
                if bare is mismatch.unexpected:
                    return f"{keys} lack the {part}", "load the state before a part of the module is wrapped"
                return f"{keys} have a {part}", "save the state before a part of the module is wrapped"
    return None


def _difference(load: Load, problem: Problem) -> str:
    """In which keys the two sides differ."""
    mismatch = problem.mismatch
    assert mismatch is not None
    source = "the dict" if problem.saved is None else f"what {_saved(load, problem)} saves"
    if not mismatch.missing and not mismatch.unexpected:
        return f"{source} has none of the keys of the module"

    def text(shown: int) -> str:
        parts = [f"lacks {listed(mismatch.missing, shown)}"] if mismatch.missing else []
        parts += [f"adds {listed(mismatch.unexpected, shown)}"] if mismatch.unexpected else []
        return f"{source} {', '.join(parts)}"

    return _fitting(text)
