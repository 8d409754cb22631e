"""Objects of the project that add up what a method of theirs is given: meters, histories, loggers."""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import SAME_GRAPH
from mllint.semantic.expressions.sources import operands
from mllint.semantic.graph.accumulation import Accumulator
from mllint.semantic.graph.additions import collection, is_as_it_was
from mllint.semantic.graph.tensor_uses import TensorUses
from mllint.semantic.names.definitions import FunctionInfo
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.values import Function, Instance, Number
from mllint.syntax.shape import adds, argument, called_on, dotted_path, has_star_arguments, last_word, targets_of
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo


_PLACES: dict[str, tuple[int | None, ...]] = {"items": (1,), "values": ()}
"""Where a loop over such a view of a dict gets the entry."""
_ASKING = frozenset({"isinstance", "hasattr", "type", "is_tensor", "callable"})
_PUTTING = ("append", "extend")
_TAKING_OUT = ("pop", "popleft", "popitem")
MAX_STEPS = 2
"""Through how many methods of an object a value is followed to what adds it up."""
_Test = Callable[["Model", cst.BaseExpression, str], bool]
"""Whether, in a file, an expression of a method stands for a parameter of some name."""


class Meter(Accumulator):
    """A meter seen from the call that gives it something to add; ``total`` is the attribute it is added to."""

    def __init__(
        self,
        model: "Model",
        call: cst.Call | cst.Assign,
        meter: cst.BaseExpression,
        key: str,
        added: cst.BaseExpression,
        loop: cst.For | cst.While,
        total: tuple["ClassInfo", str],
    ) -> None:
        super().__init__(model, call, meter, key, added, loop)
        self.total = total

    @cached_property
    def is_number(self) -> bool:
        """Whether the total in the meter begins as a Python number, and nobody takes what it holds for a tensor."""
        definition, attribute = self.total
        beginnings = [item for item in definition.assignments(attribute) if item.kind is not BindingKind.AUGMENTED]
        values = [None if item.value is None else item.scope.model.value(item.value) for item in beginnings]
        is_number = bool(values) and all(isinstance(value, Number) for value in values)
        added = [item.node.value for item in definition.assignments(attribute) if isinstance(item.node, cst.AugAssign)]
        if any(operands(value) != _terms(definition.model, value) for value in added):
            return False  # a function that takes tensors alone
        held = (self.model.tree.parent(use.node) for use in self._uses)
        return is_number and not TensorUses().any_of(
            self.model, [item for item in held if isinstance(item, cst.Attribute)]
        )


def fed(model: "Model", statement: cst.Expr | cst.Assign) -> Iterator[Meter]:
    """The accumulations that a statement in a loop may be, ``meter.update(x)``, ``meter(x)`` or ``meter[key] = x``: one
    for each thing that it gives.
    """
    if isinstance(statement, cst.Assign):
        kept = _kept_under_key(model, statement)
        yield from () if kept is None else (kept,)
    elif isinstance(statement.value, cst.Call):
        yield from _given(model, statement.value)


def _given(model: "Model", call: cst.Call) -> Iterator[Meter]:
    loop = next(model.tree.loops_around(call), None)
    if loop is None or has_star_arguments(call):
        return
    meter = call.func.value if isinstance(call.func, cst.Attribute) else call.func
    key, callee = collection(meter), model.value(call.func)
    if isinstance(callee, Instance):
        meter, key, callee = call.func, collection(call.func), _method_of(callee, "__call__")
    if key is None or not isinstance(callee, Function) or not isinstance(callee.receiver, Instance):
        return
    for added, total in _given_and_total(call, callee.definition):
        yield Meter(model, call, meter, key, added, loop, (callee.receiver.definition, total))


def _kept_under_key(model: "Model", statement: cst.Assign) -> Meter | None:
    """The accumulation that ``meter["loss"] = x`` in a loop is, where the class of the meter collects such entries."""
    target = statement.targets[0].target
    loop = next(model.tree.loops_around(statement), None)
    holder = target.value if isinstance(target, cst.Subscript) and loop is not None else None
    key, value = (None, None) if holder is None else (dotted_path(holder), model.value(holder))
    method = _method_of(value, "__setitem__") if key is not None and isinstance(value, Instance) else None
    given = method.definition.parameters[2:] if method is not None else ()
    total = _total(method.definition, given[0].name.value) if method is not None and given else None
    if total is None or method is None or key is None or loop is None or not isinstance(method.receiver, Instance):
        return None
    return Meter(model, statement, target, key, statement.value, loop, (method.receiver.definition, total))


def _method_of(instance: Instance, name: str) -> Function | None:
    """A method that an object of the project is asked for by a special form: ``meter(x)``, ``meter[key] = x``."""
    method = instance.definition.method(name)
    return None if method is None else Function(method, instance)


def _given_and_total(call: cst.Call, info: FunctionInfo) -> Iterator[tuple[cst.BaseExpression, str]]:
    """What a call gives to a method, each with the attribute to which that adds it; of a dict that is written out, the
    entries by themselves, and those that are given by keywords to ``**values``.
    """
    for position, parameter in enumerate(info.parameters[1:]):
        given = argument(call, position, parameter.name.value)
        total = None if given is None else _total(info, parameter.name.value)
        if given is not None and total is not None:
            yield given.value, total
        elif given is not None and isinstance(given.value, cst.Dict):
            entries = [item.value for item in given.value.elements if isinstance(item, cst.DictElement)]
            yield from _of_entries(info, parameter.name.value, entries)
    rest = info.node.params.star_kwarg
    if rest is not None:
        named = {item.name.value for item in (*info.parameters, *info.node.params.kwonly_params)}
        others = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value not in named]
        yield from _of_entries(info, rest.name.value, others)


def _of_entries(
    info: FunctionInfo, parameter: str, entries: list[cst.BaseExpression]
) -> Iterator[tuple[cst.BaseExpression, str]]:
    total = _total(info, parameter, _is_entry) if entries else None
    yield from () if total is None else ((entry, total) for entry in entries)


def _total(info: FunctionInfo, parameter: str, stands_for: "_Test | None" = None, steps: int = MAX_STEPS) -> str | None:
    """The attribute to which a method adds a parameter with its graph; ``None`` where it adds it to nothing.

    ``stands_for`` tells what stands for the parameter, or for what is in it. A class that runs backward passes itself
    may collect on purpose. The method may hand it on to another one of the object that does.
    """
    model, owner, is_given = info.model, info.owner, stands_for or _is_parameter
    if owner is None or any(model.tree.is_below(call, owner.node) for call in model.backward.calls):
        return None
    sums = [item for item in model.tree.by_type.get(cst.AugAssign, ()) if model.enclosing_function(item) is info.node]
    for statement in (*sums, *model.assignments_by_scope.get(id(info.scope), ())):
        parts, target = _terms(model, statement.value) if adds(statement) else [], targets_of(statement)[0]
        path = collection(target)
        root, _, attribute = (path or "").partition(".")
        is_own = isinstance(statement, cst.AugAssign) or path in map(dotted_path, parts) or _grows(target, statement)
        is_sum = root == info.self_name and is_own and any(is_given(model, node, parameter) for node in parts)
        # A sum has the graph of its terms only where one is recorded; a list holds them as they are.
        if is_sum and model.gradients.inside(statement) in ("untouched", "on"):
            return attribute
    for word in _PUTTING:
        for call in model.calls_by_word.get(word, ()):
            kept = _put_into(info, call)
            if kept is not None and is_given(model, call.args[0].value, parameter):
                return kept
    return _total_of_other(info, parameter, is_given, steps) if steps else None


def _terms(model: "Model", value: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a value shares its graph with, also where a function of a library hands that on: ``mean(value)``."""
    while isinstance(value, cst.Call) and value.args and model.qualified_name(value.func) in SAME_GRAPH:
        value = value.args[0].value
    return operands(value)


def _put_into(info: FunctionInfo, call: cst.Call) -> str | None:
    """The attribute to whose list, or to one of whose lists, a call in a method adds: ``self.sums[key].append(x)``.

    None that is kept short: a ``deque`` of a length, or a list from which the method takes the oldest again.
    """
    model, holder = info.model, called_on(call)
    if holder is None or model.enclosing_function(call) is not info.node or len(call.args) != 1 or call.args[0].star:
        return None
    if isinstance(holder, cst.Call) and last_word(holder.func) == "setdefault":
        holder = called_on(holder) or holder  # `self.sums.setdefault(key, []).append(x)`
    root, _, attribute = (collection(holder) or "").partition(".")
    is_own = root == info.self_name and bool(attribute) and info.owner is not None
    return attribute if is_own and not _is_kept_short(info, attribute) else None


def _is_kept_short(info: FunctionInfo, attribute: str) -> bool:
    model, path = info.model, f"{info.self_name}.{attribute}"
    begun = [] if info.owner is None else [item.value for item in info.owner.assignments(attribute)]
    if any(_has_length(part) for value in begun if value is not None for part in subtree(value)):
        return True
    taken = [called_on(call) for word in _TAKING_OUT for call in model.calls_by_word.get(word, ())]
    taken += [item.target for item in model.tree.by_type.get(cst.Del, ())]
    return any(
        node is not None and model.enclosing_function(node) is info.node and collection(node) == path for node in taken
    )


def _has_length(node: cst.CSTNode) -> bool:
    """Whether a ``deque`` is made that only keeps the last ones."""
    if not isinstance(node, cst.Call) or last_word(node.func) != "deque":
        return False
    return argument(node, 1, "maxlen") is not None


def _total_of_other(info: FunctionInfo, parameter: str, is_given: _Test, steps: int) -> str | None:
    """The attribute to which another method of the object adds what a method gives it: ``self.add(value)``."""
    model = info.model
    for call in model.tree.calls_in(info.node):
        holder = called_on(call)
        if holder is None or dotted_path(holder) != info.self_name or has_star_arguments(call):
            continue
        other = info.owner.method(last_word(call.func) or "") if info.owner is not None else None
        for position, taken in enumerate(() if other is None or other is info else other.parameters[1:]):
            given = argument(call, position, taken.name.value)
            if given is None or other is None or not is_given(model, given.value, parameter):
                continue
            total = _total(other, taken.name.value, steps=steps - 1)
            if total is not None and model.gradients.inside(call) in ("untouched", "on"):
                return total
    return None


def _grows(target: cst.BaseExpression, statement: cst.Assign) -> bool:
    """Whether something is added to what an entry holds: ``self.sums[key] = self.sums.get(key, 0) + value``."""
    value = statement.value
    return isinstance(value, cst.BinaryOperation) and any(
        is_as_it_was(target, side) for side in (value.left, value.right)
    )


def _is_parameter(model: "Model", node: cst.BaseExpression, parameter: str) -> bool:
    """Whether a name, or an attribute that the method has just set, stands for what the parameter was given."""
    bindings = model.reaching(node)
    if len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGN and isinstance(bindings[0].value, cst.Name):
        return not bindings[0].path and _is_parameter(model, bindings[0].value, parameter)
    return dotted_path(node) == parameter and [item.kind for item in bindings] == [BindingKind.PARAMETER]


def _is_entry(model: "Model", node: cst.BaseExpression, parameter: str) -> bool:
    """Whether a name stands for an entry of a dict that the method goes through, whatever its key and its kind."""
    bindings = model.reaching(node)
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.LOOP or not isinstance(bindings[0].node, cst.For):
        return False
    loop, view, holder = bindings[0].node, bindings[0].value, called_on(bindings[0].value)
    if not isinstance(view, cst.Call) or holder is None or not _is_parameter(model, holder, parameter):
        return False
    is_whole = bindings[0].path == _PLACES.get(last_word(view.func) or "") and not view.args
    return is_whole and not _chooses(model, node, loop)


def _chooses(model: "Model", node: cst.BaseExpression, loop: cst.For) -> bool:
    """Whether a loop may pass some entries by: what is known is that it adds the others.

    The first of a key may be another case: ``if key not in self.sums: ... else: self.sums[key] += value``.
    """
    if any(isinstance(part, cst.Continue) for part in subtree(loop.body)):
        return True
    if any(last_word(call.func) in _ASKING for call in model.tree.calls_in(loop.body)):
        return True
    around = takewhile(lambda item: item is not loop, model.tree.ancestors(node))
    tests = [item.test for item in around if isinstance(item, (cst.If, cst.While, cst.IfExp))]
    return not all(_asks_for_key(test, loop) for test in tests)


def _asks_for_key(test: cst.BaseExpression, loop: cst.For) -> bool:
    """Whether a test is whether an attribute has the key, to which the loop gives one where it has none."""
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.In() | cst.NotIn(), comparator=asked)]):
            path = dotted_path(asked)
            stores = (target for item in subtree(loop.body) for target in targets_of(item))
            return path is not None and any(
                isinstance(target, cst.Subscript) and dotted_path(target.value) == path for target in stores
            )
    return False
