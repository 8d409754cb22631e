"""Calls of ``load_state_dict`` and its kind: what they are given, what they want, and what is wrong."""

from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

import libcst as cst

from mllint.semantic.checkpoints.contents import Absent, Content, FromFile, Place, Record, State, Whole, key_set
from mllint.semantic.checkpoints.saves import MAX_ROUTES, Saved, Surroundings, resolved
from mllint.semantic.checkpoints.tracing import LOADING_METHODS, Route, Tracer, read_path
from mllint.semantic.module_keys import ANYTHING, module_keys
from mllint.semantic.scopes import BindingKind
from mllint.semantic.state_keys import KeySet, Mismatch, compare
from mllint.semantic.values import ClassObject, Framework, Function, Instance, Module, Object, Value
from mllint.syntax.shape import argument, constant, dotted_path, string_literal, subscript_index
from mllint.syntax.spans import RoundTripError, spans_of

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Keys that training scripts give to what they save, and that no parameter has.
_CHECKPOINT_KEYS = frozenset({
    "epoch", "state_dict", "model", "model_state_dict", "model_state", "net", "network", "optimizer", "optim",
    "optimizer_state_dict", "optimizer_state", "opt", "scheduler", "scheduler_state_dict", "lr_scheduler", "scaler",
    "args", "config", "cfg", "hparams", "hyper_parameters", "best_acc", "best_acc1", "best_prec1", "best_loss", "acc",
    "loss", "step", "global_step", "iteration", "iter", "iters", "state", "ema", "start_epoch", "best_score",
    "best_val_loss", "best_metric", "vocab", "arch",
})  # fmt: skip
_MODEL_WORDS = frozenset({"model", "net", "network", "state_dict", "model_state_dict", "net_state_dict", "model_state"})


@dataclass(frozen=True, slots=True)
class Load:
    """A call that loads a state dict.

    ``receiver`` is what it is loaded into and ``value`` what that is; ``given`` the dict. ``is_strict``: keys that do
    not match raise (``None``: not known).
    """

    model: "Model"
    call: cst.Call
    receiver: cst.BaseExpression
    value: Value | None
    given: cst.BaseExpression
    is_strict: bool | None

    @property
    def method(self) -> str:
        """The name of the method."""
        assert isinstance(self.call.func, cst.Attribute)
        return self.call.func.attr.value

    @property
    def framework(self) -> Framework | None:
        """The framework to which the receiver belongs."""
        if isinstance(self.value, (Module, Object)):
            return self.value.framework
        return self.model.framework


ProblemKind = Literal["nested", "absent", "whole", "swapped", "keys", "read"]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is surely wrong with a load.

    ``nested``: a checkpoint that holds the state dict among other things. ``absent``: a key that nothing saves.
    ``whole``: a module. ``swapped``: the state of another kind of thing. ``keys``: other keys (``mismatch``).
    ``read``: a dict of which other keys (``names``) are read as those of a checkpoint.
    """

    kind: ProblemKind
    content: Content | None = None
    saved: Saved | None = None
    mismatch: Mismatch | None = None
    names: tuple[str, ...] = ()


class Checkpoints:
    """Answers about what one file saves and loads."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self.surroundings = Surroundings(model)

    # -- loads -------------------------------------------------------------------------------------------------------

    def load(self, call: cst.Call) -> Load | None:
        """The load that a call is; ``None`` where a project class defines what the call does."""
        function = call.func
        if not isinstance(function, cst.Attribute) or function.attr.value not in LOADING_METHODS:
            return None
        given = argument(call, 0, "state_dict")
        value = self.model.value(function.value)
        if given is None or isinstance(value, (Instance, ClassObject)):
            return None
        if isinstance(self.model.value(function), Function) or _is_super(function.value):
            return None
        return Load(self.model, call, function.value, value, given.value, _strictness(call, function.attr.value))

    def contents(self, load: Load) -> list[tuple[Saved | None, Content | None]]:
        """What the dict holds that is loaded: one entry for each file that it may come from."""
        content = Tracer(self.model).content(load.given)
        if not isinstance(content, FromFile):
            return [(None, content)] if content is not None else []
        path = read_path(content)
        found = [] if path is None else resolved(content, self.surroundings.saved, path)
        return [*(found or self._through_callers(load))]

    def _through_callers(self, load: Load) -> list[tuple[Saved, Content | None]]:
        """The same, for a function that is told which file to read."""
        function = self.model.enclosing_function(load.call)
        if function is None:
            return []
        definition = self.model.function_info(function)
        found: list[tuple[Saved, Content | None]] = []
        for model, call in islice(self.surroundings.calls_of(definition), MAX_ROUTES):
            content = Tracer(self.model, Route(Tracer(model), call, definition)).content(load.given)
            path = read_path(content) if isinstance(content, FromFile) else None
            if isinstance(content, FromFile) and path is not None:
                found += resolved(content, self.surroundings.saved, path)
        return found

    def wanted(self, load: Load) -> KeySet:
        """The keys of what is loaded into."""
        if not isinstance(load.value, Module):
            return ANYTHING
        if dotted_path(load.receiver) == "self" or load.value.call is None:
            # Of an instance of some derived class not even the class is known.
            return ANYTHING
        return module_keys(self.model, load.receiver, load.value)

    def problem(self, load: Load) -> Problem | None:
        """What is surely wrong with a load; ``None`` when nothing is."""
        if self._is_guarded(load):
            return None
        found: list[Problem] = []
        for saved, content in self.contents(load):
            problem = self._problem_of(load, saved, content)
            if problem is None:
                return None
            found.append(problem)
        return found[0] if found else self._read_as_checkpoint(load)

    def _problem_of(self, load: Load, saved: Saved | None, content: Content | None) -> Problem | None:
        match content:
            case Absent():
                return Problem("absent", content, saved)
            case Whole():
                return Problem("whole", content, saved)
            case State():
                return self._problem_of_state(load, saved, content)
            case Record():
                return self._problem_of_record(load, saved, content)
        return None

    def _problem_of_state(self, load: Load, saved: Saved | None, content: State) -> Problem | None:
        owner, receiver = content.owner, load.value
        if isinstance(owner, Object) and isinstance(receiver, Module):
            return Problem("swapped", content, saved)
        if isinstance(owner, Module) and isinstance(receiver, Object):
            return Problem("swapped", content, saved) if receiver.kind in ("optimizer", "scheduler", "scaler") else None
        if isinstance(owner, Object) and isinstance(receiver, Object) and owner.kind != receiver.kind:
            return Problem("swapped", content, saved) if _are_swappable(owner, receiver) else None
        return self._problem_of_keys(load, saved, content, content.keys)

    def _problem_of_keys(self, load: Load, saved: Saved | None, content: Content, keys: KeySet) -> Problem | None:
        if not isinstance(load.value, Module):
            return None
        mismatch = compare(keys, self.wanted(load))
        if mismatch.is_total or (load.is_strict and mismatch):
            return Problem("keys", content, saved, mismatch)
        return None

    def _problem_of_record(self, load: Load, saved: Saved | None, content: Record) -> Problem | None:
        nested = [key for key, item in content.items.items() if isinstance(item, (State, Whole))]
        if nested and (isinstance(load.value, Module) or self._saves_same(load, content)):
            return Problem("nested", content, saved, names=tuple(nested))
        if not content.items and saved is None:
            return None
        return self._problem_of_keys(load, saved, content, key_set(content))

    def _saves_same(self, load: Load, content: Record) -> bool:
        """Whether one of the states in a record is saved from what has the receiver's name."""
        name = dotted_path(load.receiver)
        for item in content.items.values():
            node = item.place.node if isinstance(item, State) else None
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and name is not None:
                owner = dotted_path(node.func.value)
                if owner is not None and owner.rpartition(".")[2] == name.rpartition(".")[2]:
                    return True
        return False

    # -- places ------------------------------------------------------------------------------------------------------

    def where(self, place: Place) -> str:
        """A place as messages name it: ``line 12``, or ``train.py:12`` in another file."""
        source = place.model.source
        try:
            start, _ = spans_of(place.model.tree.module, [place.node], source.text)[id(place.node)]
        except RoundTripError:
            return "elsewhere"
        row = source.location(start).row
        return f"line {row}" if place.model is self.model else f"{PurePath(source.path).name}:{row}"

    # -- what the code around a load says ------------------------------------------------------------------------------

    def _is_guarded(self, load: Load) -> bool:
        """Whether the code reckons with several kinds of file: it catches what goes wrong, or looks before."""
        tree = self.model.tree
        child: cst.CSTNode = load.call
        for ancestor in tree.ancestors(load.call):
            if isinstance(ancestor, (cst.Try, cst.TryStar)) and child is ancestor.body and ancestor.handlers:
                return True
            if isinstance(ancestor, (cst.FunctionDef, cst.ClassDef)):
                break
            child = ancestor
        return any(self._is_examined(name) for name in self._names_behind(load.given))

    def _names_behind(self, node: cst.BaseExpression, depth: int = 0) -> list[cst.BaseExpression]:
        """The names through which a dict came here."""
        while isinstance(node, (cst.Subscript, cst.Call)):
            inner = node.value if isinstance(node, cst.Subscript) else node.func
            node = inner.value if isinstance(node, cst.Call) and isinstance(inner, cst.Attribute) else inner
        if not isinstance(node, (cst.Name, cst.Attribute)):
            return []
        found: list[cst.BaseExpression] = [node]
        for binding in self.model.reaching(node):
            if binding.kind is BindingKind.ASSIGN and binding.value is not None and depth < 4:
                found += self._names_behind(binding.value, depth + 1)
        return found

    def _is_examined(self, node: cst.BaseExpression) -> bool:
        """Whether the function asks what kind of dict a name holds: ``"model" in ckpt``, ``isinstance(ckpt, ...)``."""
        key = dotted_path(node)
        if key is None:
            return False
        function = self.model.enclosing_function(node)
        for name in self.model.names_by_word.get(key.rpartition(".")[2], ()):
            if self.model.enclosing_function(name) is not function:
                continue
            for ancestor in self.model.tree.ancestors(name):
                if isinstance(ancestor, cst.Comparison) and _is_membership(ancestor, key):
                    return True
                if isinstance(ancestor, cst.Call) and _called(ancestor) in ("isinstance", "hasattr", "type"):
                    return True
                if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
                    break
        return False

    def _read_as_checkpoint(self, load: Load) -> Problem | None:
        """A dict that is loaded whole although the same function reads the entries of a checkpoint from it."""
        if not isinstance(load.given, (cst.Name, cst.Attribute)) or isinstance(load.value, Object):
            return self._named_for_another(load)
        key = dotted_path(load.given)
        bindings = self.model.reaching(load.given)
        if not bindings or key is None or dotted_path(load.receiver) == "self":
            return None
        content = Tracer(self.model).content(load.given)
        if not isinstance(content, FromFile) or content.trail or content.renames:
            return None
        names = []
        for name in self.model.names_by_word.get(key.rpartition(".")[2], ()):
            holder = self.model.tree.parent(name) if "." in key else name
            item = None if holder is None else self.model.tree.parent(holder)
            if not isinstance(item, cst.Subscript) or item.value is not holder or dotted_path(item.value) != key:
                continue
            above = self.model.tree.parent(item)
            text = string_literal(subscript_index(item))
            if isinstance(above, cst.Del):
                return None
            if text in _CHECKPOINT_KEYS and self.model.reaching(item.value) == bindings and text not in names:
                names.append(text)
        return Problem("read", content, names=tuple(names)) if names else None

    def _named_for_another(self, load: Load) -> Problem | None:
        """``model.load_state_dict(ckpt["optimizer"])``: the key says that it is the state of something else."""
        content = Tracer(self.model).content(load.given)
        if not isinstance(content, FromFile) or not content.trail or content.renames:
            return None
        word = content.trail[-1].lower()
        is_for_optimizer = word.startswith("optim") or word.endswith("optimizer")
        swapped = (isinstance(load.value, Module) and is_for_optimizer) or (
            isinstance(load.value, Object) and load.value.kind == "optimizer" and word in _MODEL_WORDS - {"state_dict"}
        )
        return Problem("swapped", content, names=(content.trail[-1],)) if swapped else None


def _strictness(call: cst.Call, method: str) -> bool | None:
    if method != "load_state_dict":
        return False
    given = argument(call, 1, "strict")
    if any(arg.star for arg in call.args):
        return None
    if given is None:
        return True
    value = constant(given.value)
    return value if isinstance(value, bool) else None


def _is_super(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super"


def _is_membership(node: cst.Comparison, key: str) -> bool:
    def holder(part: cst.BaseExpression) -> str | None:
        if isinstance(part, cst.Call) and isinstance(part.func, cst.Attribute) and part.func.attr.value == "keys":
            part = part.func.value
        return dotted_path(part)

    return any(
        isinstance(part.operator, (cst.In, cst.NotIn)) and holder(part.comparator) == key for part in node.comparisons
    )


def _called(call: cst.Call) -> str | None:
    return call.func.value if isinstance(call.func, cst.Name) else None


def _are_swappable(owner: Object, receiver: Object) -> bool:
    kinds = {"optimizer", "scheduler", "scaler"}
    return owner.kind in kinds and receiver.kind in kinds
