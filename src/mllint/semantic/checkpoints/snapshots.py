"""State dicts that are kept while what they belong to goes on changing.

``state_dict()`` gives the very tensors of the module (or of the optimizer), not copies of them. What was kept as "the
best" or "the first" state is, when somebody looks at it again, the last one.
"""

import itertools
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from mllint.knowledge.words import LOADING, UPDATING, WRITING
from mllint.semantic.checkpoints.aliases import Alias, alias_of, writes_into
from mllint.semantic.checkpoints.better import is_asked_from_outside, is_kept_for_better
from mllint.semantic.checkpoints.saving import is_saved_below
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import attributes, bound_by, kept_as, reads, uses, uses_of_bound
from mllint.semantic.values import Function, Instance, Module, Value
from mllint.syntax.shape import argument, constant, dotted_path, last_statement, string_literal, subscript_index

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

Loop: TypeAlias = cst.For | cst.While
_TRAINING = re.compile(r"(?<!pre)train(?!ed|able)|fit|fine_?tune|epoch|optimi", re.IGNORECASE)
_OTHER = re.compile(r"eval|valid|test|sched|load|save", re.IGNORECASE)
# How names say that something is kept as it was.
_KEPT_WORDS = ("best", "init", "orig", "start", "snapshot", "backup", "saved", "prev", "old", "last_good")
_MAX_DEPTH = 2
"""Through how many further names the tensors are followed."""
_DICT_READS = frozenset({"items", "values", "copy", "get", "pop"})
_MODEL_READS = frozenset({"state_dict", "eval", "parameters", "save", "save_pretrained"})
_ONLY_LOOKS = frozenset({"len", "print", "isinstance", "type", "id"})


class Snapshot:
    """A state dict that is kept, and what happens between then and its use."""

    def __init__(self, model: "Model", alias: Alias, depth: int = 0) -> None:
        self.model = model
        self.alias = alias
        self.depth = depth
        self.owner = alias.owner
        self.key = dotted_path(alias.holder) or ""
        kept = kept_as(model, self.owner) if isinstance(self.owner, cst.Name) and "." in self.key else None
        self.path = kept or dotted_path(self.owner) or ""

    @property
    def is_loaded_back(self) -> bool:
        """Whether it is loaded into the thing that it is of: ``model.load_state_dict(best)``."""
        return any(dotted_path(receiver) == self.path for receiver in self._loaded_into)

    @property
    def is_of_a_model(self) -> bool:
        """Whether what it is of is called in the file, or its mode is set, as is done with a model."""
        ways = (self.path, f"{self.path}.eval", f"{self.path}.train")
        return any(dotted_path(call.func) in ways for call in self.model.tree.by_type.get(cst.Call, ()))

    @property
    def is_called_a_model(self) -> bool:
        """Whether its name says that what it is of is a model."""
        last = self.path.rpartition(".")[2].lower().strip("_")
        return last.endswith(("model", "module", "net", "network"))

    @property
    def is_best_of_several_calls(self) -> bool:
        """Whether an attribute keeps it from the best of the calls of a method, for code outside the class."""
        scope = self.model.scope_of(self.alias.statement)
        others = (node for node in self._uses if self.model.scope_of(node) is not scope)
        return self._is_best_so_far and any(map(self._is_in_another_method, others))

    @property
    def is_never_renewed(self) -> bool:
        """Whether what is called the best is kept once, before the training, and never again: it is the first."""
        bound = self.model.scope_of(self.alias.statement).bindings.get(self.key, ())
        return "." not in self.key and "best" in self.key.lower() and not self.is_taken_in_loop and len(bound) == 1

    @property
    def is_only_overwritten(self) -> bool:
        """Whether its owner changes because something is written into the weights, and not by training."""
        words = (call.func.attr.value if isinstance(call.func, cst.Attribute) else "" for call in self._changes)
        return bool(self._changes) and all(word in WRITING for word in words)

    @property
    def is_taken_in_loop(self) -> bool:
        """Whether it is kept in some round of a loop that its owner outlives."""
        return self._loop is not None

    @property
    def is_stale(self) -> bool:
        """Whether somebody uses it as a copy after its owner has changed."""
        if self._is_filled_in or self._is_put_into_file:
            return False
        if any(self._is_stale_at(node) for node in self._uses) or self._is_only_kept or self.is_loaded_elsewhere:
            return True
        return any(further.is_stale for further in self._handed_on)

    @property
    def is_of_best_round(self) -> bool:
        """Whether some rounds of a loop that goes on changing its owner keep it, each because it does better."""
        loop = self._loop
        if loop is None or not self._is_best_so_far or not self._is_conditional(loop):
            return False
        return any(self.model.tree.is_inside(change, loop) for change in self._changes)

    @property
    def _handed_on(self) -> "Iterator[Snapshot]":
        """The same tensors under other names: ``best = state``."""
        if self.alias.is_entry or self.depth > _MAX_DEPTH:
            return
        for node in self._uses:
            alias = alias_of(self.model, self.alias.call, node)
            if alias is not None and dotted_path(alias.holder) != self.key:
                yield Snapshot(self.model, alias, self.depth + 1)

    @property
    def _is_filled_in(self) -> bool:
        """Whether entries of it are replaced, or a checkpoint is read into it: it is made to be loaded, not kept."""
        if "." in self.key or self.alias.is_entry:
            return False
        return any(map(self._is_written, uses_of_bound(self.model, self.alias.statement)))

    @property
    def _is_put_into_file(self) -> bool:
        """Whether it is an entry of a dict of the object's that is saved right away: for that it is put there."""
        is_of_object = self.alias.is_entry and "." in self.key
        return is_of_object and is_saved_below(self.model, self.alias.statement, self.key)

    def _is_written(self, node: cst.CSTNode) -> bool:
        parent = self.model.tree.parent(node)
        if isinstance(parent, cst.Attribute) and parent.value is node:
            return parent.attr.value in ("update", "pop")
        if isinstance(parent, cst.Arg):
            return self._is_read_into(parent)
        item = None if parent is None else self.model.tree.parent(parent)
        return (
            isinstance(parent, cst.Subscript) and parent.value is node and isinstance(item, (cst.AssignTarget, cst.Del))
        )

    def _is_read_into(self, given: cst.Arg) -> bool:
        """Whether a function of the framework reads a file into it: ``torch.distributed.checkpoint.load(state)``."""
        call = self.model.tree.parent(given)
        name = self.model.qualified_name(call.func) if isinstance(call, cst.Call) else None
        return name is not None and ".distributed." in name and name.rpartition(".")[2].startswith("load")

    @cached_property
    def _uses(self) -> tuple[cst.BaseExpression, ...]:
        """Where the holder's content is read: handed on, returned, stored, not only looked at."""
        if self.alias.is_entry:
            bindings: tuple[Binding, ...] = self.model.reaching(self.alias.holder)
        else:
            bindings = tuple(item for item in bound_by(self.model, self.alias.statement) if item.key == self.key)
        found = [*(node for binding in bindings for node in uses(self.model, binding)), *self._read_by_next_call]
        found += self._read_of_object
        return tuple(
            node for node in found if not self.model.tree.is_inside(node, self.alias.statement) and self._hands_on(node)
        )

    @property
    def _read_by_next_call(self) -> Iterator[cst.BaseExpression]:
        """Where the same method reads an attribute that it may not have set yet in this call."""
        scope = self.model.scope_of(self.alias.statement)
        function = scope.node
        if self.alias.is_entry or not isinstance(function, cst.FunctionDef):
            return
        if self.key.partition(".")[0] != self.model.function_info(function).self_name:
            return
        for node in reads(self.model, self.key, scope):
            reaching = scope.reaching(self.key, node)
            if reaching.may_be_unbound and all(item.node is not self.alias.statement for item in reaching.bindings):
                yield node

    @property
    def _read_of_object(self) -> Iterator[cst.BaseExpression]:
        """Where code of the file reads the attribute of an object of the class: ``net.load_state_dict(stopper.best)``.

        Not where a round of a loop may ask for it as soon as it has been kept.
        """
        owner = self._keeping_class
        for node in () if owner is None else self._reads_of(self.model, owner):
            is_later = self._load_of(node) is not None or not any(self.model.tree.loops_around(node))
            if is_later and self._is_kept_in_some_calls:
                yield node

    @cached_property
    def is_loaded_elsewhere(self) -> bool:
        """Whether another file loads what an object of the class has kept of the best of the calls of a method."""
        owner = self._keeping_class
        if owner is None or not self._is_best_so_far:
            return False
        return any(
            _load_around(other, node) is not None
            for other in self.model.importers(owner.name)
            for node in self._reads_of(other, owner)
        )

    @property
    def _keeping_class(self) -> "ClassInfo | None":
        """The class whose method keeps it in an attribute."""
        scope = self.model.scope_of(self.alias.statement)
        info = self.model.function_info(scope.node) if isinstance(scope.node, cst.FunctionDef) else None
        holder, _, name = self.key.partition(".")
        is_attribute = info is not None and holder == info.self_name and not self.alias.is_entry and "." not in name
        return info.owner if info is not None and is_attribute else None

    def _reads_of(self, model: "Model", owner: "ClassInfo") -> Iterator[cst.Attribute]:
        """Where a file names the attribute of objects of the class, from outside."""
        for node in attributes(model, self.key.partition(".")[2]):
            value = None if method_of_receiver(model, node.value) else model.value(node.value)
            definition = value.definition if isinstance(value, (Instance, Module)) else None
            if definition is not None and any(info.is_same_as(owner) for info in definition.lineage):
                yield node

    @property
    def _is_kept_in_some_calls(self) -> bool:
        """Whether its owner goes on changing when it has been kept: in the loop, or as the method is called again."""
        loop = self._loop
        if loop is None:
            return self._is_best_so_far
        return self._is_conditional(loop) and any(self.model.tree.is_inside(change, loop) for change in self._changes)

    def _hands_on(self, node: cst.BaseExpression) -> bool:
        child: cst.CSTNode = node
        parent = self.model.tree.parent(child)
        if isinstance(parent, cst.Subscript) and parent.value is node and self._is_another_entry(parent):
            return False
        while isinstance(parent, (cst.Subscript, cst.Attribute)) and parent.value is child:
            child, parent = parent, self.model.tree.parent(parent)
        if isinstance(parent, cst.Call) and parent.func is node:
            return self.alias.is_whole
        if isinstance(parent, cst.Call) and parent.func is child and isinstance(child, cst.Attribute):
            return child.attr.value in (_MODEL_READS if self.alias.is_whole else _DICT_READS)
        if isinstance(parent, cst.Arg):
            call = self.model.tree.parent(parent)
            return isinstance(call, cst.Call) and dotted_path(call.func) not in _ONLY_LOOKS
        if isinstance(parent, (cst.Assign, cst.AnnAssign)):
            return parent.value is child
        if isinstance(parent, cst.DictComp):
            return parent.value is child
        return isinstance(parent, (cst.Return, cst.DictElement, cst.StarredDictElement, cst.Element, cst.Yield))

    def _is_another_entry(self, read: cst.Subscript) -> bool:
        """Whether a read takes an entry of the dict that was written out, and not the one with the tensors."""
        wanted = string_literal(subscript_index(read))
        keys = {
            string_literal(item.key)
            for item in self.model.tree.ancestors(self.alias.call)
            if isinstance(item, cst.DictElement) and self.model.tree.is_inside(item, self.alias.statement)
        }
        return wanted is not None and bool(keys) and None not in keys and wanted not in keys

    @property
    def _loaded_into(self) -> Iterator[cst.BaseExpression]:
        """The receivers of the ``load_state_dict`` calls that are given it."""
        for node in self._uses:
            call = self._load_of(node)
            if call is not None and isinstance(call.func, cst.Attribute):
                yield call.func.value

    def _load_of(self, node: cst.BaseExpression) -> cst.Call | None:
        return _load_around(self.model, node)

    # -- one use ---------------------------------------------------------------------------------------------------

    def _is_stale_at(self, node: cst.BaseExpression) -> bool:
        scope = self.model.scope_of(self.alias.statement)
        if self.model.scope_of(node) is not scope:
            return self._is_in_another_method(node)
        loop = self._loop
        if loop is not None and not self.model.tree.is_inside(node, loop):
            # Kept in some round of the loop, used when the loop is over.
            return self._is_conditional(loop) and any(
                self.model.tree.is_inside(change, loop) for change in self._changes
            )
        before, after = scope.place_of(self.alias.statement), scope.place_of(node)
        if before is None or after is None:
            return False
        is_later = after[1] < before[1] or self._is_other_branch(node)
        if loop is not None and (is_later or (self._is_best_so_far and not self._is_choosy(node, loop))):
            return any(self.model.tree.is_inside(change, loop) for change in self._changes)
        if is_later and "." in self.key:
            return self._is_put_back(node)  # by the next call
        load = self._load_of(node)
        if load is None or not isinstance(load.func, cst.Attribute) or dotted_path(load.func.value) != self.path:
            return False
        loops = self.model.tree.loops_around(node)
        repeated = [item for item in loops if not self.model.tree.is_inside(self.alias.statement, item)]
        for change in self._changes:
            place = scope.place_of(change)
            between = place is not None and before[1] < place[1] < after[1] and not self._is_other_branch(change)
            if change is not load and (between or any(self.model.tree.is_inside(change, item) for item in repeated)):
                return True
        return False

    def _is_in_another_method(self, node: cst.BaseExpression) -> bool:
        """Whether an attribute that was set in one method is loaded in another, or handed out as the best."""
        if "." not in self.key:
            return False
        name = self.key.rpartition(".")[2].lower()
        load = self._load_of(node)
        if load is None or not isinstance(load.func, cst.Attribute):
            return "best" in name or (self._is_best_so_far and is_asked_from_outside(self.model, node))
        if self._is_put_back(node) or (self._is_best_so_far and self._is_of_an_object(node)):
            return True
        if not any(self._may_change(call) for call in self.model.tree.by_type.get(cst.Call, ())):
            return "best" in name  # nothing in this file trains: what is called the best is kept while another does
        return self._is_loaded_by_owner(node) or any(word in name for word in _KEPT_WORDS)

    def _is_of_an_object(self, node: cst.BaseExpression) -> bool:
        """Whether code outside the class reads it: that does so when the calls that keep the best are over."""
        is_outside = isinstance(node, cst.Attribute) and method_of_receiver(self.model, node.value) is None
        return is_outside and self._keeping_class is not None

    def _is_put_back(self, node: cst.BaseExpression) -> bool:
        """Whether the very thing is given back, in another call, the best that an attribute kept of it."""
        is_best = self._is_best_so_far or "best" in self.key.rpartition(".")[2].lower()
        return is_best and self._is_loaded_by_owner(node)

    def _is_loaded_by_owner(self, node: cst.BaseExpression) -> bool:
        """Whether it is loaded into what is called as its owner is, and was not made anew for it."""
        load = self._load_of(node)
        if load is None or not isinstance(load.func, cst.Attribute) or dotted_path(load.func.value) != self.path:
            return False
        bindings = self.model.scope_of(node).bindings.get(self.path, ())
        return all(binding.kind is BindingKind.PARAMETER for binding in bindings)

    @property
    def _is_only_kept(self) -> bool:
        """Whether an attribute called the best is set by a method, and other files hand it on."""
        if "." not in self.key or "best" not in self.key.rpartition(".")[2].lower() or self.alias.is_entry:
            return False
        name = self.key.rpartition(".")[2]
        holders = (self.model.tree.parent(item) for item in self.model.names_by_word.get(name, ()))
        if any(self._is_read(holder) for holder in holders):
            return False
        loop = self._loop
        if loop is not None and not self._is_conditional(loop):
            return False
        if loop is not None and not any(self.model.tree.is_inside(change, loop) for change in self._changes):
            return False
        return any(any(attributes(other, name)) for other in self.model.importers(name))

    def _is_read(self, holder: cst.CSTNode | None) -> bool:
        """Whether an attribute is neither assigned nor only looked at (``self.best is None``)."""
        if not isinstance(holder, cst.Attribute):
            return True
        parent = self.model.tree.parent(holder)
        return not isinstance(parent, (cst.AssignTarget, cst.AnnAssign, cst.Comparison, cst.ComparisonTarget))

    # -- loops and changes -----------------------------------------------------------------------------------------

    @cached_property
    def _loop(self) -> Loop | None:
        """The outermost loop in which it is kept and that its owner outlives."""
        loops = list(itertools.takewhile(self._outlives, self.model.tree.loops_around(self.alias.statement)))
        return loops[-1] if loops else None

    def _outlives(self, loop: Loop) -> bool:
        """Whether the owner, and what is kept entry by entry, were there before the loop began."""
        scope = self.model.scope_of(self.alias.statement)
        keys = {self.path, self.path.partition(".")[0]}
        if self.alias.is_entry:
            keys |= {self.key, self.key.partition(".")[0]}
        return not any(
            self.model.tree.is_inside(binding.node, loop)
            for key in keys
            for binding in scope.reaching(key, self.owner).bindings
        )

    def _is_conditional(self, loop: Loop) -> bool:
        """Whether only some rounds keep it, or each round keeps another; not where the loop ends with it."""
        if self.alias.is_entry and not self._has_fixed_key:
            return True
        if self.alias.is_choice:
            return True
        child: cst.CSTNode = self.alias.statement
        for ancestor in self.model.tree.ancestors(self.alias.statement):
            if ancestor is loop:
                return False
            if isinstance(ancestor, cst.If):
                is_for_last = _is_last_round(self.model, ancestor.test)
                if is_for_last is None or is_for_last is not (child is ancestor.body):
                    return not ends_loop(child)
            child = ancestor
        return False

    @property
    def _has_fixed_key(self) -> bool:
        statement = self.alias.statement
        if not isinstance(statement, cst.Assign) or not isinstance(statement.targets[0].target, cst.Subscript):
            return False
        return constant(subscript_index(statement.targets[0].target)) is not ...

    @property
    def _is_best_so_far(self) -> bool:
        """Whether it is kept where something does better than what is then set to it: ``if acc > best: best = acc``."""
        return is_kept_for_better(self.model, self.alias.statement, in_calls="." in self.key)

    def _is_choosy(self, node: cst.BaseExpression, loop: Loop) -> bool:
        """Whether a use is not made in every round of the loop."""
        around = [
            item
            for item in self.model.tree.ancestors(node)
            if self.model.tree.is_inside(item, loop) and item is not loop
        ]
        return any(isinstance(item, (cst.If, cst.Try, cst.IfExp)) for item in around)

    def _is_other_branch(self, node: cst.BaseExpression) -> bool:
        """Whether something stands in another branch of an ``if`` than the place where it is kept."""
        around = [item for item in self.model.tree.ancestors(node) if isinstance(item, cst.If)]
        return any(
            self.model.tree.is_inside(self.alias.statement, item.body) != self.model.tree.is_inside(node, item.body)
            and item.orelse is not None
            and self.model.tree.is_inside(self.alias.statement, item)
            for item in around
        )

    @cached_property
    def _changes(self) -> tuple[cst.Call, ...]:
        """The calls in the same function that change the owner, as far as names tell."""
        function = self.model.enclosing_function(self.alias.statement)
        return tuple(
            call
            for call in self.model.tree.by_type.get(cst.Call, ())
            if self._may_change(call) and self.model.enclosing_function(call) is function
        )

    def _may_change(self, call: cst.Call) -> bool:
        func = call.func
        word = func.attr.value if isinstance(func, cst.Attribute) else func.value if isinstance(func, cst.Name) else ""
        receiver = dotted_path(func.value) if isinstance(func, cst.Attribute) else None
        if word in UPDATING:
            return "sched" not in (receiver or "").lower()
        if word in LOADING:
            given = argument(call, 0, "state_dict")
            return receiver == self.path and given is not None and dotted_path(given.value) != self.key
        if word in WRITING:
            return writes_into(self.model, call, self.path)
        if not _TRAINING.search(word) or _OTHER.search(word):
            return receiver == self.path and _takes_steps(self.model.value(func))
        is_mode = word == "train" and all(constant(arg.value) in (True, False) for arg in call.args)
        return not (is_mode and (receiver == self.path or receiver in ("model", "net", "self.model", "self.net")))


def _load_around(model: "Model", node: cst.BaseExpression) -> cst.Call | None:
    """The call of ``load_state_dict`` to which a use belongs."""
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.Call):
            is_load = isinstance(ancestor.func, cst.Attribute) and ancestor.func.attr.value in LOADING
            return ancestor if is_load else None
        if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return None
    return None


def _takes_steps(method: Value | None) -> bool:
    """Whether a method of the project computes gradients or takes steps of an optimizer itself."""
    if not isinstance(method, Function):
        return False
    calls = method.definition.model.tree.calls_in(method.definition.node)
    return any(isinstance(call.func, cst.Attribute) and call.func.attr.value in UPDATING for call in calls)


def ends_loop(branch: cst.CSTNode) -> bool:
    """Whether a branch leaves the loop or the function when it is done."""
    body = branch.body if isinstance(branch, cst.Else) else branch
    return isinstance(body, cst.BaseSuite) and isinstance(last_statement(body), (cst.Break, cst.Return, cst.Raise))


def _is_last_round(model: "Model", test: cst.BaseExpression) -> bool | None:
    """Whether a test holds in the last round of a loop over texts; ``None``: it asks for something else.

    So does ``phase == "val"`` in ``for phase in ["train", "val"]``: what that round keeps is what the loop leaves.
    """
    match test:
        case cst.Comparison(left=cst.Name() as name, comparisons=[cst.ComparisonTarget(cst.Equal(), wanted)]):
            rounds = [item.value for item in model.reaching(name) if item.kind is BindingKind.LOOP]
            if len(rounds) == 1 and isinstance(rounds[0], (cst.List, cst.Tuple)) and rounds[0].elements:
                last = string_literal(rounds[0].elements[-1].value)
                return None if last is None else last == string_literal(wanted)
    return None
