"""Where an expression statement stands: whether anybody wants its result, and whether it can be assigned there."""

import re
from itertools import dropwhile, islice
from typing import TYPE_CHECKING, Any

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.new_results import NEW
from mllint.semantic.expressions.sources import names_in
from mllint.semantic.files.testing import context_name, is_in_a_test
from mllint.semantic.graph.additions import augmented
from mllint.semantic.graph.leaves import is_leaf
from mllint.semantic.names.classes import Role
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.names.uses import mentions, without_narrowing
from mllint.semantic.values import (
    Batch,
    ClassObject,
    Elements,
    Instance,
    Module,
    Output,
    Repeated,
    Symbol,
    Tensor,
    Text,
)
from mllint.syntax.shape import constant, dotted_path, fingerprint, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

# Words in the names of context managers in which an error, a warning or a measurement is the point.
_ERROR_WORDS = ("raises", "warns", "assert", "suppress")
_MEASURING_WORDS = ("profile", "timer", "timeit", "benchmark", "stopwatch")
_TELLING = frozenset({"print", "info", "debug", "warning", "echo"})
"""By these a program says how it is getting on."""
_CLOCKS = ("time.", "timeit.")
_BASES = (("torch", "torch.nn.Module"), ("paddle", "paddle.nn.Layer"))
# Where notebooks that were exported as scripts begin a new cell: the last expression of a cell is shown.
_CELL = re.compile(r"^#\s*(%%|In\s?\[|<codecell>|\+\s*$|#{18,}\s*$)", re.MULTILINE)


def wants_no_result(model: "Model", statement: cst.BaseSmallStatement) -> bool:
    """Whether an expression stands there for its error, for the time it takes, or to be shown in a notebook."""
    line = model.tree.parent(statement)
    if _is_timed(model, line) or _is_waited_for(model, line):
        return True
    if _is_tried(model, statement) or _is_tried_beside(model, statement):
        return True
    for ancestor in model.tree.ancestors(statement):
        if isinstance(ancestor, cst.With):
            names = [context_name(item.item) for item in ancestor.items]
            words = (*_ERROR_WORDS, *_MEASURING_WORDS) if line in ancestor.body.body else _ERROR_WORDS
            if any(word in name for name in names for word in words):
                return True
        elif isinstance(ancestor, (cst.For, cst.While)):
            if _only_spends_time(ancestor):
                return True
        elif isinstance(ancestor, (cst.FunctionDef, cst.ClassDef)):
            return False
    return _ends_a_cell(model, line)


def _is_timed(model: "Model", line: cst.CSTNode | None) -> bool:
    """Whether the clock is read before and behind a line, or the ``if`` it is in, with only expressions between."""
    line = None if line is None else _whole_branching(model, line)
    block = None if line is None else model.tree.parent(line)
    lines = list(block.body) if isinstance(block, (cst.IndentedBlock, cst.Module)) else []
    position = next((index for index, item in enumerate(lines) if item is line), None)
    if position is None:
        return False
    ends = (
        next((item for item in way if item is not line and not is_only_expressions(item)), None)
        for way in (lines[position::-1], lines[position:])
    )
    return all(isinstance(item, cst.SimpleStatementLine) and reads_clock(model, item) for item in ends)


def _is_waited_for(model: "Model", line: cst.CSTNode | None) -> bool:
    """Whether the next line waits for a device: what runs before it warms that up, or shows whether it works."""
    block = None if line is None else model.tree.parent(line)
    lines = block.body if isinstance(block, (cst.IndentedBlock, cst.Module)) else ()
    behind = dropwhile(lambda item: item is not line, lines)
    following = next(islice(behind, 1, None), None)
    only = following.body[0] if isinstance(following, cst.SimpleStatementLine) else None
    call = only.value if isinstance(only, cst.Expr) else None
    if not isinstance(call, cst.Call) or last_word(call.func) != "synchronize":
        return False
    return (model.qualified_name(call.func) or "").startswith(("torch.", "paddle."))


def _whole_branching(model: "Model", line: cst.CSTNode) -> cst.CSTNode:
    """The outermost ``if`` around a line with nothing else between; the line itself where it is in none."""
    whole = line
    for ancestor in model.tree.ancestors(line):
        if isinstance(ancestor, cst.If):
            whole = ancestor
        elif not isinstance(ancestor, (cst.IndentedBlock, cst.Else)):
            break
    return whole


def is_only_expressions(line: cst.CSTNode) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and all(isinstance(part, cst.Expr) for part in line.body)


def reads_clock(model: "Model", part: cst.CSTNode) -> bool:
    """Whether the time is asked for in some code."""
    return any((model.qualified_name(call.func) or "").startswith(_CLOCKS) for call in model.tree.calls_in(part))


def _is_tried(model: "Model", statement: cst.BaseSmallStatement) -> bool:
    """Whether a statement stands in a ``try`` for its error."""
    child: cst.CSTNode = statement
    for ancestor in model.tree.ancestors(statement):
        if isinstance(ancestor, cst.Try):
            if ancestor.handlers and child is ancestor.body and _is_tried_out(model, statement, ancestor.body):
                return True
        elif isinstance(ancestor, (cst.FunctionDef, cst.ClassDef)):
            return False
        child = ancestor
    return False


def _is_tried_beside(model: "Model", statement: cst.BaseSmallStatement) -> bool:
    """Whether the very same call is tried out in the same function: its error is the point here, too.

    ``try: f(x)`` where errors are to be ignored, and ``else: f(x)`` where they are to be seen.
    """
    call = statement.value if isinstance(statement, cst.Expr) else None
    if not isinstance(call, cst.Call) or not model.tree.by_type.get(cst.Try):
        return False
    return (id(model.enclosing_function(call)), fingerprint(call)) in _tried_calls(model)


@worked_out_once
def _tried_calls(model: "Model") -> set[tuple[int, Any]]:
    """The function around each call that is tried out, with what tells such calls."""
    found: set[tuple[int, Any]] = set()
    for attempt in model.tree.by_type[cst.Try]:
        lines = attempt.body.body if isinstance(attempt, cst.Try) and attempt.handlers else ()
        for part in (part for line in lines if isinstance(line, cst.SimpleStatementLine) for part in line.body):
            if isinstance(part, cst.Expr) and isinstance(part.value, cst.Call) and _is_tried(model, part):
                found.add((id(model.enclosing_function(part)), fingerprint(part.value)))
    return found


def _is_tried_out(model: "Model", statement: cst.BaseSmallStatement, body: cst.BaseSuite) -> bool:
    """Whether nothing in the rest of a ``try`` body reads what a statement of it is about: its error is the point."""
    rest = _behind(model, statement, body)
    if rest is None:
        return False
    if _reads_file(model, statement) and all(map(_only_tells, rest)):
        return True
    about = {name.value for name in names_in(statement) if not isinstance(model.value(name), Symbol)}
    # `thing.eval` and below it `thing.train`: both are tried.
    # So are two functions that give something new, one below the other.
    reading = (item for item in rest if not _is_only_named(item) and not _is_only_computed(model, item))
    if _reads_file(model, statement):
        line = model.tree.parent(statement)
        if line is None or model.tree.parent(line) is not body:
            return False  # what else happens there may be what the file was to be read for
        reading = (item for item in reading if not _is_only_answer(item))
    return not any(name.value in about for item in reading for name in names_in(item))


def _reads_file(model: "Model", statement: cst.BaseSmallStatement) -> bool:
    call = statement.value if isinstance(statement, cst.Expr) else None
    return isinstance(call, cst.Call) and model.library_name(call.func) in ("torch.load", "paddle.load")


def _is_only_answer(line: cst.CSTNode) -> bool:
    """Whether a line gives back something without computing it: whether a file can be read, or which one can."""
    only = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    return isinstance(only, cst.Return) and isinstance(only.value, (cst.Name, cst.Attribute, cst.Subscript, cst.Tuple))


def _only_tells(line: cst.CSTNode) -> bool:
    """Whether a line says that all went well, and does nothing: it is printed, noted in a flag, given back."""
    parts = line.body if isinstance(line, cst.SimpleStatementLine) else ()
    return bool(parts) and all(map(_tells, parts))


def _tells(part: cst.CSTNode) -> bool:
    match part:
        case cst.Expr(value=cst.Call() as call):
            return last_word(call.func) in _TELLING
        case cst.Assign() | cst.Return():
            return part.value is None or constant(part.value) is not ...
    return isinstance(part, (cst.Pass, cst.Break, cst.Continue))


def _behind(model: "Model", statement: cst.BaseSmallStatement, body: cst.BaseSuite) -> list[cst.CSTNode] | None:
    """The lines of a ``try`` body behind one of its statements, in a test, or of what reads a file, also behind
    the ``if`` or the ``with`` around that.
    """
    found: list[cst.CSTNode] = []
    child: cst.CSTNode = statement
    for ancestor in model.tree.ancestors(statement):
        if isinstance(ancestor, cst.BaseSuite):
            position = next((index for index, item in enumerate(ancestor.body) if item is child), None)
            if position is None:
                return None
            found += ancestor.body[position + 1 :]
            if ancestor is body:
                return found
            if not is_in_a_test(model, statement) and not _reads_file(model, statement):
                return None
        child = ancestor
    return None


def _is_only_named(line: cst.CSTNode) -> bool:
    """Whether a line is nothing but the name of an attribute."""
    only = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    return isinstance(only, cst.Expr) and isinstance(only.value, cst.Attribute)


def _is_only_computed(model: "Model", line: cst.CSTNode) -> bool:
    """Whether a line calls a function of a framework that gives something new, and drops that."""
    only = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    call = only.value if isinstance(only, cst.Expr) else None
    fact = lookup.function(model.library_name(call.func) or "") if isinstance(call, cst.Call) else None
    return fact is not None and fact.returns in NEW


def _only_spends_time(loop: cst.For | cst.While) -> bool:
    """Whether a loop repeats expressions without a name for the round, as a measurement does."""
    if not isinstance(loop, cst.For) or not isinstance(loop.target, cst.Name) or not isinstance(loop.iter, cst.Call):
        return False
    if dotted_path(loop.iter.func) != "range" or not isinstance(loop.body, cst.IndentedBlock):
        return False
    # Rounds that are counted from the thing itself are meant to change it: `range(4 - x.dim())`.
    counted = {name.value for name in names_in(loop.iter)}
    calls = (part.value for line in loop.body.body for part in getattr(line, "body", ()) if isinstance(part, cst.Expr))
    roots = ((dotted_path(call.func) or "").partition(".")[0] for call in calls if isinstance(call, cst.Call))
    return all(map(is_only_expressions, loop.body.body)) and counted.isdisjoint(roots)


def _ends_a_cell(model: "Model", line: cst.CSTNode | None) -> bool:
    """Whether nothing but expressions comes after a line of the module in its notebook cell: values are looked at."""
    body = model.tree.module.body
    position = next((index for index, item in enumerate(body) if item is line), None)
    if position is None or not is_in_cells(model):
        return False
    for item in body[position + 1 :]:
        if any(_CELL.match(text) for text in _comments_before(item)):
            return True
        if not is_only_expressions(item) or _moves(line):
            return False
    return any(_CELL.match(text) for item in body for text in _comments_before(item)) or any(
        _CELL.match(empty.comment.value) for empty in model.tree.module.header if empty.comment is not None
    )


def is_in_cells(model: "Model") -> bool:
    """Whether a file is a notebook that was exported as a script."""
    return _CELL.search(model.source.text) is not None


def _moves(line: cst.CSTNode | None) -> bool:
    """Whether a line moves something to a device: nobody looks at that, and then at what the next line gives."""
    only = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    return isinstance(only, cst.Expr) and last_word(getattr(only.value, "func", only.value)) in ("to", "cuda", "cpu")


def _comments_before(statement: Any) -> list[str]:
    """The comments on lines of their own before a statement; nodes without whitespace raise."""
    return [line.comment.value for line in statement.leading_lines if line.comment is not None]


def root_of_chain(model: "Model", node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The name, attribute or item that a chain of method calls starts from; ``None`` when that is a fresh value.

    A method that neither tensors nor modules have, ``self.act(x)``, gives a fresh value, and may do more than that.
    """
    while type(node) is cst.Call and type(node.func) is cst.Attribute:
        if model.library_name(node.func) is not None or not _is_of_a_framework(node.func.attr.value):
            return None
        node = node.func.value
    return node if isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)) else None


def _is_of_a_framework(name: str) -> bool:
    """Whether tensors, or all modules, have a method of a name."""
    return any(
        lookup.tensor_method(framework, name) is not None or lookup.method(base, name) is not None
        for framework, base in _BASES
    )


_NUMBER_TAKERS = frozenset({
    "print", "float", "int", "str", "round", "format", "append", "add_scalar", "add_scalars", "info", "debug",
    "warning", "log", "write", "set_postfix", "set_description", "update", "max", "min",
})  # fmt: skip


def wants_number(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether the place of an expression asks for a number: it is printed, formatted, logged or added to a total."""
    child: cst.CSTNode = node
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, (cst.FormattedStringExpression, cst.DictElement)):
            return True
        if isinstance(ancestor, cst.BinaryOperation) and isinstance(ancestor.operator, cst.Modulo):
            return isinstance(model.value(ancestor.left), Text)
        if isinstance(ancestor, cst.Call):
            path = dotted_path(ancestor.func) or "." + (last_word(ancestor.func) or "")
            owner, _, taker = path.rpartition(".")
            return child is not ancestor.func and taker in _NUMBER_TAKERS and not _gives_tensors(model, owner)
        if isinstance(ancestor, cst.AugAssign):
            total = augmented(model, ancestor)
            return total is not None and not total.needs_graph
        if not isinstance(ancestor, (cst.Arg, cst.Element, cst.Tuple, cst.List, cst.FormattedString, cst.IfExp)):
            return False
        child = ancestor
    return False


def _gives_tensors(model: "Model", meter: str) -> bool:
    """Whether the file reads what a meter gives as a tensor: ``top1.avg.numpy()``."""
    read = rf"(?<![\w.]){re.escape(meter)}\.\w+\.(?:numpy|item|cpu|detach)\("
    return bool(meter) and re.search(read, model.source.text) is not None


def is_tried_out(model: "Model", target: cst.BaseExpression, statement: cst.CSTNode) -> bool:
    """Whether something is done with a thing only to see whether it works: in a test, or as the last that is done."""
    return is_in_a_test(model, statement) or not is_read_below(model, target, statement)


def is_read_below(model: "Model", target: cst.BaseExpression, statement: cst.CSTNode) -> bool:
    """Whether the scope of a statement reads a name or dotted path in a later statement."""
    key = dotted_path(target)
    scope = model.scope_of(statement)
    place = scope.place_of(statement)
    if key is None or place is None:
        return False
    bindings = set(model.reaching(target))
    for node in mentions(model, key, model.names_in(key.rpartition(".")[2], scope)):
        there = scope.place_of(node)
        if there is None or there[1] <= place[1] or _is_target(model, node):
            continue
        if not bindings or bindings & set(model.reaching(node)):
            return True
    return False


def _is_target(model: "Model", node: cst.CSTNode) -> bool:
    """Whether a name is assigned to, not read."""
    child, parent = node, model.tree.parent(node)
    while isinstance(parent, (cst.BaseElement, cst.Tuple, cst.List)):
        child, parent = parent, model.tree.parent(parent)
    return isinstance(parent, _BINDING) and parent.target is child


_BINDING = (cst.AssignTarget, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr, cst.Del)


def can_be_rebound(model: "Model", target: cst.BaseExpression, statement: cst.CSTNode) -> bool:
    """Whether ``target = ...`` in place of a statement rebinds the very thing that the code below reads."""
    if isinstance(target, cst.Name):
        bindings = without_narrowing(model.reaching(target))
        is_kept = bool(bindings) and all(_keeps(model, binding, target, statement) for binding in bindings)
        return is_kept and not _is_read_nowhere_else(model, target, bindings, statement)
    if isinstance(target, cst.Subscript):
        held = model.value(target.value)
        return not (isinstance(held, Elements) and not held.mutable) and not isinstance(held, Repeated)
    if not isinstance(target, cst.Attribute) or dotted_path(target) is None:
        return False
    value, owner = model.value(target), model.value(target.value)
    if isinstance(owner, (Symbol, ClassObject)):
        return False
    if isinstance(owner, (Instance, Module)) and not _lets_assign(owner, target.attr.value):
        return False
    return isinstance(value, Module) or (isinstance(value, Tensor) and not value.parameter and not value.or_number)


def _keeps(model: "Model", binding: Binding, target: cst.BaseExpression, statement: cst.CSTNode) -> bool:
    """Whether code below sees the rebound name; the elements of a list do not change with the loop's variable.

    What is done with a parameter in a loop is meant for the one that the model keeps.
    """
    value = model.binding_value(binding)
    if binding.kind is not BindingKind.LOOP or isinstance(value, Batch):
        return True
    return not (isinstance(value, Tensor) and value.parameter) and is_read_below(model, target, statement)


def _is_read_nowhere_else(model: "Model", target: cst.Name, bindings: list[Binding], statement: cst.CSTNode) -> bool:
    """Whether a name of a function is read for the last time by a statement, which no loop brings back to it."""
    function = model.scope_of(statement).node
    if not isinstance(function, cst.FunctionDef) or is_read_below(model, target, statement):
        return False
    loops = model.tree.loops_around(statement)
    if any(not model.tree.is_inside(binding.node, loop) for loop in loops for binding in bindings):
        return False
    # A function further in may read it, and be called below.
    scopes = (model.scope_of(name).node for name in model.names_by_word.get(target.value, ()))
    return not any(holder is not function and model.tree.is_inside(holder, function) for holder in scopes)


def loses_gradient(model: "Model", target: cst.BaseExpression, statement: cst.CSTNode) -> bool:
    """Whether ``target = ...`` in place of a statement may keep a gradient from getting to where it went.

    So it is with a leaf, and with a graph that the statement does not go on with since gradients are switched off.
    """
    value = model.value(target)
    if not isinstance(value, (Tensor, Output)):
        return False
    if isinstance(value, Tensor) and (value.parameter or is_leaf(model, target)):
        return True
    if model.gradients.inside(statement) != "off" or (isinstance(value, Tensor) and value.attached is False):
        return False
    return any(model.gradients.inside(binding.node) != "off" for binding in model.reaching(target))


def _lets_assign(owner: Instance | Module, name: str) -> bool:
    """Whether the class lets the attribute be assigned: it is no property, and no field of a tuple or frozen class.

    Nor is it a parameter on some way: a module then takes no tensor that is none.
    """
    definition = owner.definition
    if definition is None:
        return True
    if not definition.is_mutable or definition.method(name) is not None:
        return False
    return all(item.role is not Role.PARAMETER for item in definition.members.assignments(name))
