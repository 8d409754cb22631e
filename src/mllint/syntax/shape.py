"""Pure predicates over nodes: what an expression looks like, whatever it means."""

import ast
from collections.abc import Container, Iterator
from functools import lru_cache

import libcst as cst

from mllint.syntax.walk import children


def dotted_path(node: cst.CSTNode) -> str | None:
    """``a.b.c`` of a chain of names and attributes; ``None`` for anything else."""
    parts: list[str] = []
    # `isinstance` of a LibCST class that it is not costs a call into `abc`; this is asked of nearly every node.
    while node.__class__ is cst.Attribute:
        parts.append(node.attr.value)
        node = node.value
    if node.__class__ is not cst.Name:
        return None
    parts.append(node.value)
    return ".".join(reversed(parts))


def fingerprint(node: cst.CSTNode) -> str:
    """A text that two expressions share if they are written alike, whitespace, quotes and parentheses aside."""
    text = dotted_path(node) or string_literal(node)
    if text is not None:
        return repr(text) if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)) else text
    if isinstance(node, (cst.Integer, cst.Float, cst.Imaginary, cst.SimpleString, cst.FormattedStringText)):
        return node.value
    operator = type(getattr(node, "operator", None)).__name__
    return f"{type(node).__name__}:{operator}({','.join(map(fingerprint, children(node)))})"


def string_literal(node: cst.CSTNode | None) -> str | None:
    """The text of a plain or concatenated string literal; ``None`` for anything else, bytes included."""
    if type(node) is cst.SimpleString:
        return _text_of(node.value)
    value = node.evaluated_value if type(node) is cst.ConcatenatedString else None
    return value if isinstance(value, str) else None


@lru_cache(maxsize=4096)
def _text_of(literal: str) -> str | None:
    """What a string literal stands for: the same few words are asked about again and again."""
    value = ast.literal_eval(literal)
    return value if isinstance(value, str) else None


def text_between(part: cst.FormattedStringText) -> str:
    """What stands in an f-string between its holes."""
    return part.value.replace("{{", "{").replace("}}", "}")


def integer_literal(node: cst.CSTNode | None) -> int | None:
    """The value of an integer literal, with a sign or without."""
    if type(node) is cst.UnaryOperation and type(node.operator) is cst.Minus:
        positive = integer_literal(node.expression)
        return None if positive is None else -positive
    return int(node.value.replace("_", ""), 0) if type(node) is cst.Integer else None


def constant(node: cst.CSTNode | None) -> object:
    """The value of a literal constant (``True``, ``None``, number, string, ``not False``), else ``Ellipsis`` for "not a
    constant".
    """
    if node.__class__ is cst.Name:
        return _NAMED_CONSTANTS.get(node.value, ...)
    text = string_literal(node)
    if text is not None:
        return text
    number = integer_literal(node)
    if number is not None:
        return number
    if node.__class__ is cst.UnaryOperation and node.operator.__class__ is cst.Not:
        denied = constant(node.expression)
        return not denied if isinstance(denied, bool) else ...
    return float(node.value.replace("_", "")) if isinstance(node, cst.Float) else ...


_NAMED_CONSTANTS: dict[str, bool | None] = {"True": True, "False": False, "None": None}


def is_target(parent: cst.CSTNode | None, node: cst.CSTNode) -> bool:
    """Whether an assignment, declared or not, sets what stands right below it."""
    return isinstance(parent, cst.AssignTarget) or (isinstance(parent, cst.AnnAssign) and parent.target is node)


def subscript_index(node: cst.Subscript) -> cst.BaseExpression | None:
    """The expression in ``x[expression]``; ``None`` for slices, several indexes and starred ones."""
    if len(node.slice) != 1:
        return None
    element = node.slice[0].slice
    return element.value if isinstance(element, cst.Index) and element.star is None else None


def has_first_index(node: cst.Subscript) -> bool:
    """Whether a subscript is a literal zero: what takes the first of something, or its only one."""
    return integer_literal(subscript_index(node)) == 0


def assigns_attribute(statement: cst.Assign | cst.AnnAssign) -> bool:
    """Whether something is assigned to an attribute of a name, first of all."""
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else statement.target
    return target.__class__ is cst.Attribute and target.value.__class__ is cst.Name and statement.value is not None


def sets_attribute(statement: cst.Assign | cst.AnnAssign) -> bool:
    """Whether something is assigned to an attribute of whatever, first of all."""
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else statement.target
    return target.__class__ is cst.Attribute and statement.value is not None


def unpacks_into_attributes(statement: cst.Assign) -> bool:
    """Whether a statement assigns to several things at once, of which one is an attribute of a name."""
    target = statement.targets[0].target
    return target.__class__ in (cst.Tuple, cst.List) and any(
        element.value.__class__ is cst.Attribute and element.value.value.__class__ is cst.Name
        for element in target.elements
    )


def adds(statement: cst.AugAssign | cst.Assign) -> bool:
    """Whether an assignment adds something: ``x += y``, ``x = y + z``."""
    if type(statement) is cst.AugAssign:
        return type(statement.operator) is cst.AddAssign
    value = statement.value
    return value.__class__ is cst.BinaryOperation and value.operator.__class__ is cst.Add


def joins(statement: cst.Assign) -> bool:
    """Whether an assignment may put what a name holds and something else together: ``x = torch.cat((x, y))``."""
    value = statement.value
    return value.__class__ is cst.Call and len(statement.targets) == 1 and _is_pair(value)


def _is_pair(call: cst.Call) -> bool:
    first = call.args[0].value if call.args else None
    return (first.__class__ is cst.Tuple or first.__class__ is cst.List) and len(first.elements) == 2


def followed(
    node: cst.BaseExpression, path: tuple[int | None, ...]
) -> tuple[cst.BaseExpression, tuple[int | None, ...]]:
    """What stands at a path of indexes in a tuple or list, as far as that is written out, and the rest of the path."""
    for depth, index in enumerate(path):
        elements = node.elements if isinstance(node, (cst.Tuple, cst.List)) else ()
        if index is None or index >= len(elements):
            return node, path[depth:]
        if any(isinstance(element, cst.StarredElement) for element in elements[: index + 1]):
            return node, path[depth:]
        node = elements[index].value
    return node, ()


def part_at(node: cst.BaseExpression | None, path: tuple[int | None, ...]) -> cst.BaseExpression | None:
    """What stands at a path of indexes in a tuple or list; ``None`` where that is not written out."""
    part, rest = (None, ()) if node is None else followed(node, path)
    return None if rest else part


def last_word(node: cst.CSTNode) -> str | None:
    """The name itself, or the last one of ``a.b.c``; ``None`` for anything else."""
    if node.__class__ is cst.Attribute:
        return node.attr.value
    return node.value if node.__class__ is cst.Name else None


def called_on(node: cst.CSTNode | None) -> cst.BaseExpression | None:
    """What a method is called on: ``net`` of ``net.train()``; ``None`` for anything else."""
    callee = node.func if isinstance(node, cst.Call) else None
    return callee.value if isinstance(callee, cst.Attribute) else None


def is_super_call(node: cst.CSTNode | None) -> bool:
    """``super()``, also with its arguments."""
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super"


def before_methods(node: cst.BaseExpression, names: Container[str] | None = None) -> cst.BaseExpression:
    """What methods are called on, one after the other, all of some names: ``net`` of ``net.to(device).train()``."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if names is not None and node.func.attr.value not in names:
            break
        node = node.func.value
    return node


def root_of(node: cst.BaseExpression) -> cst.BaseExpression:
    """What the first of several attributes is one of: ``x`` of ``x.a.b``."""
    while isinstance(node, cst.Attribute):
        node = node.value
    return node


def argument(call: cst.Call, position: int | None, name: str | None = None) -> cst.Arg | None:
    """The argument of a call at a position or with a keyword.

    ``None`` where it is not given, or where a ``*args`` in front makes positions unknown.
    """
    index = 0
    found: cst.Arg | None = None
    for arg in call.args:
        if arg.star == "*":
            index = 1 << 30
        elif arg.keyword is not None:
            if name is not None and arg.keyword.value == name:
                return arg
        elif arg.star == "":
            if index == position:
                found = arg
            index += 1
    return found


def constant_given(call: cst.Call, position: int | None, name: str, otherwise: object = ...) -> object:
    """The constant that a call gives for a parameter, as ``constant`` has it; ``otherwise`` where it gives nothing."""
    given = argument(call, position, name)
    return otherwise if given is None else constant(given.value)


def all_given(call: cst.Call) -> list[cst.BaseExpression]:
    """What a call is given; the receiver of a method, too."""
    receiver = [call.func.value] if isinstance(call.func, cst.Attribute) else []
    return [*receiver, *(arg.value for arg in call.args)]


def items_of(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The items of a list or tuple that is written out; any other expression as it is."""
    return [item.value for item in node.elements] if isinstance(node, (cst.List, cst.Tuple)) else [node]


def options_of(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a conditional expression may be, ``a``, ``b`` or ``c`` of ``a if x else b if y else c``; others are one."""
    return [*options_of(node.body), *options_of(node.orelse)] if isinstance(node, cst.IfExp) else [node]


def targets_of(statement: cst.CSTNode) -> list[cst.BaseExpression]:
    """What a statement assigns to."""
    if isinstance(statement, cst.Assign):
        return [item.target for item in statement.targets]
    return [statement.target] if isinstance(statement, (cst.AugAssign, cst.AnnAssign)) else []


def is_of_names(target: cst.BaseExpression) -> bool:
    """Whether a target binds nothing but names."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return all(is_of_names(element.value) for element in target.elements)
    return isinstance(target, cst.Name)


def detaches(call: cst.BaseExpression) -> bool:
    """Whether a chain of methods takes the graph away: ``x.detach().cpu()``."""
    while isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        if call.func.attr.value == "detach":
            return True
        call = call.func.value
    return False


def is_call(statement: cst.Expr) -> bool:
    """Whether a statement is nothing but a call."""
    return statement.value.__class__ is cst.Call


def feeds(statement: cst.Expr | cst.Assign) -> bool:
    """Whether a statement calls something and gives it something, ``meter.update(loss)``, or assigns something with a
    name to an item, ``meter["loss"] = loss``.
    """
    if statement.__class__ is cst.Assign:
        return _assigns_item(statement)
    call = statement.value
    return call.__class__ is cst.Call and bool(call.args)


def changes_what_is_made(call: cst.Call) -> bool:
    """Whether a call looks as if it changed in place what another one gives: ``torch.zeros(3).normal_()``."""
    method = call.func
    if method.__class__ is not cst.Attribute or method.value.__class__ is not cst.Call:
        return False
    return method.attr.value.endswith("_") and not method.attr.value.endswith("__")


def _assigns_item(statement: cst.Assign) -> bool:
    """Whether something with a name is assigned to an item of something with a name: ``meter["loss"] = loss``."""
    target, value = statement.targets[0].target, statement.value.__class__
    if target.__class__ is not cst.Subscript or not (value is cst.Name or value is cst.Attribute):
        return False
    kind = target.value.__class__
    return kind is cst.Name or kind is cst.Attribute


def may_discard(statement: cst.Expr) -> bool:
    """Whether ``discarded_calls`` of the statement's expression may give any."""
    return statement.value.__class__ in _MAY_DISCARD


_MAY_DISCARD = frozenset({
    cst.Call, cst.Tuple, cst.List, cst.IfExp, cst.BooleanOperation, cst.ListComp, cst.SetComp, cst.DictComp,
})  # fmt: skip


def discarded_calls(node: cst.BaseExpression) -> Iterator[cst.Call]:
    """The calls whose results an expression statement throws away: all of ``a(), b()``, the last of ``x and a()``."""
    match node:
        case cst.Call():
            yield node
        case cst.Tuple() | cst.List():
            for element in node.elements:
                yield from discarded_calls(element.value)
        case cst.IfExp():
            yield from discarded_calls(node.body)
            yield from discarded_calls(node.orelse)
        case cst.BooleanOperation():
            yield from discarded_calls(node.right)
        case cst.ListComp() | cst.SetComp():
            yield from discarded_calls(node.elt)
        case cst.DictComp():
            yield from discarded_calls(node.value)


def writes_elsewhere(call: cst.Call, parameters: tuple[str, ...] = ()) -> bool:
    """Whether a call writes its result into a given object (``out=``, ``inplace=True``), or may do so.

    ``parameters`` are the names of the callee's parameters, for an ``inplace`` that is given by position.
    """
    position = parameters.index("inplace") if "inplace" in parameters else None
    in_place = argument(call, position, "inplace")
    if in_place is not None and constant(in_place.value) is not False:
        return True
    return any(arg.star == "**" or (arg.keyword is not None and arg.keyword.value == "out") for arg in call.args)


def last_statement(suite: cst.BaseSuite) -> cst.CSTNode | None:
    """The statement with which a block ends; of several on one line the last."""
    last = suite.body[-1] if suite.body else None
    return last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last


def leaves_loop(body: cst.BaseSuite) -> bool:
    """Whether a loop's body leaves the loop in its first round, whatever is tested there, unless something fails."""
    pending: list[cst.CSTNode] = [body]
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind in _LEAVING:
            return True
        if kind not in _OF_THEIR_OWN and not issubclass(kind, cst.BaseExpression):
            pending += children(item)
    return False


def runs_once(loop: cst.For | cst.While) -> bool:
    """Whether a loop is written for one round: ``range(1)``, ``[data]``, or a body that leaves it."""
    over = loop.iter if isinstance(loop, cst.For) else None
    if isinstance(over, (cst.List, cst.Tuple)) and len(over.elements) < 2:
        return True
    if isinstance(over, cst.Call) and getattr(over.func, "value", None) == "range" and len(over.args) == 1:
        return integer_literal(over.args[0].value) == 1
    return leaves_loop(loop.body)


def has_one_round(loop: cst.For) -> bool:
    """Whether a loop is left in its first round, or as the second begins: ``if step > 0: break``.

    Or all that it does it does in the first one: ``if step == 0: ...``.
    """
    branches = [line for line in loop.body.body if isinstance(line, cst.If)]
    if len(branches) == len(loop.body.body) == 1 and branches[0].orelse is None and _tells(branches[0], loop, _FIRST):
        return True
    return leaves_loop(loop.body) or any(
        _tells(branch, loop, _SECOND) and isinstance(last_statement(branch.body), cst.Break) for branch in branches
    )


def has_few_rounds(loop: cst.For, few: int) -> bool:
    """Whether a loop is left when the number of its round has reached one below ``few``: ``if step == 5: break``."""
    branches = [line for line in loop.body.body if isinstance(line, cst.If)]
    return any(
        isinstance(last_statement(branch.body), cst.Break)
        and (compared := _counted(branch, loop)) is not None
        and compared[1] < few
        and issubclass(compared[0], (cst.GreaterThan, cst.GreaterThanEqual, cst.Equal))
        for branch in branches
    )


_FIRST = {cst.Equal: 0, cst.LessThan: 1}
_SECOND = {cst.GreaterThan: 0, cst.GreaterThanEqual: 1, cst.Equal: 1}


def _tells(branch: cst.If, loop: cst.For, bounds: dict[type[cst.BaseCompOp], int]) -> bool:
    """Whether a branch compares the number of the round with one of some bounds."""
    compared = _counted(branch, loop)
    return compared is not None and bounds.get(compared[0]) == compared[1]


def _counted(branch: cst.If, loop: cst.For) -> tuple[type[cst.BaseCompOp], int] | None:
    """How a branch compares the number of the round, by ``enumerate``, and with which literal."""
    if not (isinstance(loop.iter, cst.Call) and last_word(loop.iter.func) == "enumerate" and len(loop.iter.args) == 1):
        return None
    match loop.target, branch.test:
        case (
            cst.Tuple(elements=[cst.Element(value=cst.Name(value=counter)), *_]),
            cst.Comparison(left=cst.Name(value=tested), comparisons=[cst.ComparisonTarget(operator, bound)]),
        ) if tested == counter:
            number = integer_literal(bound)
            return None if number is None else (type(operator), number)
    return None


_LEAVING = frozenset({cst.Break, cst.Return, cst.Raise})
_OF_THEIR_OWN = frozenset({
    cst.If, cst.For, cst.While, cst.FunctionDef, cst.ClassDef, cst.ExceptHandler, cst.ExceptStarHandler, cst.MatchCase,
})  # fmt: skip


def has_star_arguments(call: cst.Call) -> bool:
    """Whether the call passes ``*args`` or ``**kwargs``."""
    return any(arg.star for arg in call.args)


def is_main_guard(test: cst.BaseExpression) -> bool:
    """``__name__ == "__main__"``."""
    return isinstance(test, cst.Comparison) and dotted_path(test.left) == "__name__"
