"""Builders of fixes: nodes in, edits out. The only place that knows about parentheses.

A rule never sees an offset. It says which node is replaced, or before or after which node something
is inserted; the engine resolves that to offsets once the finding is known to be wanted.

The builders take an expression *with* its outer parentheses, so that ``.item()`` behind ``(a + b)``
comes behind the bracket; only ``replace`` leaves them in place. The span of a statement excludes
its newline and the comment behind it.
"""

import enum
from collections.abc import Sequence
from typing import TypeAlias

import libcst as cst
import msgspec

from mllint.diagnostics import Applicability
from mllint.syntax.walk import subtree

Statement: TypeAlias = cst.SimpleStatementLine | cst.BaseCompoundStatement


class Side(enum.Enum):
    """Which end of a node's span."""

    START = "start"
    END = "end"


class NodeEdit(msgspec.Struct, frozen=True):
    """Replace the text from one side of a node to one side of another by ``content``."""

    first: cst.CSTNode
    first_side: Side
    last: cst.CSTNode
    last_side: Side
    content: str
    is_doubtful: bool = False
    """Whether a program that ran may fail by it: with such an edit no fix is safe."""


class NodeFix(msgspec.Struct, frozen=True):
    """A fix in terms of nodes: title, edits, and how far it can be trusted."""

    message: str
    edits: tuple[NodeEdit, ...]
    applicability: Applicability = Applicability.SAFE


# --- The smallest edits ---------------------------------------------------------------------------


def replace(node: cst.CSTNode, content: str) -> NodeEdit:
    """Replace the node's own text; an expression keeps its outer parentheses."""
    return NodeEdit(node, Side.START, node, Side.END, content)


def insert_before(node: cst.CSTNode, content: str) -> NodeEdit:
    """Insert in front of the node."""
    first = _first(node)
    return NodeEdit(first, Side.START, first, Side.START, content)


def insert_after(node: cst.CSTNode, content: str) -> NodeEdit:
    """Insert behind the node."""
    last = _last(node)
    return NodeEdit(last, Side.END, last, Side.END, content)


def replace_between(first: cst.CSTNode, last: cst.CSTNode, content: str) -> NodeEdit:
    """Replace everything from the end of ``first`` to the end of ``last``; ``first`` stays.

    Where ``last`` holds ``first`` (``loss.data[0]`` holds ``loss``), the outer parentheses of
    ``last`` stay too.
    """
    end = last if _holds(last, first) else _last(last)
    return NodeEdit(_last(first), Side.END, end, Side.END, content)


def replace_before(first: cst.CSTNode, last: cst.CSTNode, content: str) -> NodeEdit:
    """Replace everything from the start of ``first`` to the start of ``last``; ``last`` stays."""
    return NodeEdit(_first(first), Side.START, _first(last), Side.START, content)


def delete_before(first: cst.CSTNode, last: cst.CSTNode) -> NodeEdit:
    """Delete from the start of ``first`` to the start of ``last``; ``last`` stays.

    Where ``first`` holds ``last`` (``float(x)`` holds ``x``), the outer parentheses of ``first``
    stay too.
    """
    start = first if _holds(first, last) else _first(first)
    return NodeEdit(start, Side.START, _first(last), Side.START, "")


# --- Edits with a purpose -------------------------------------------------------------------------


def wrap(node: cst.CSTNode, before: str, after: str) -> tuple[NodeEdit, NodeEdit]:
    """Put text on both sides of the node, such as ``torch.load(`` and ``)``."""
    return insert_before(node, before), insert_after(node, after)


def give_to(value: cst.BaseExpression, callee: str, *, is_container: bool) -> tuple[NodeEdit, ...]:
    """Give a value to what is called instead: an empty list or dict is nothing to give.

    ``is_container``: a call in its place makes a container itself, as ``dict()`` does, and no function of somebody.
    """
    is_empty_display = isinstance(value, (cst.List, cst.Dict)) and not value.elements
    if is_empty_display or (is_container and isinstance(value, cst.Call) and not value.args):
        return (replace(value, f"{callee}()"),)
    is_bare = isinstance(value, cst.Tuple) and not value.lpar
    return wrap(value, f"{callee}((", "))") if is_bare else wrap(value, f"{callee}(", ")")


def append_trailer(node: cst.BaseExpression, trailer: str) -> tuple[NodeEdit, ...]:
    """Put a trailer such as ``.item()`` behind an expression, with parentheses where needed."""
    if binds_trailers(node):
        return (insert_after(node, trailer),)
    return wrap(node, "(", ")" + trailer)


def keep_only(whole: cst.CSTNode, part: cst.BaseExpression, before: str, after: str) -> tuple[NodeEdit, NodeEdit]:
    """Put brackets around a part of an expression and drop the rest: those of the part itself are not needed then.

    The outer parentheses of the whole stay.
    """
    first, last = (_first(part), _last(part)) if isinstance(part, cst.Tuple) else (part, part)
    return NodeEdit(whole, Side.START, first, Side.START, before), NodeEdit(last, Side.END, whole, Side.END, after)


def add_call_parentheses(node: cst.BaseExpression) -> tuple[NodeEdit, ...]:
    """Make a call without arguments of an expression that names a function."""
    return append_trailer(node, "()")


def rename_attribute(attribute: cst.Attribute, name: str) -> NodeEdit:
    """Give ``receiver.old`` another last name."""
    return replace(attribute.attr, name)


def rename_keyword(argument: cst.Arg, name: str) -> NodeEdit:
    """Give ``old=value`` in a call another name.

    Raises:
        ValueError: the argument has no keyword.
    """
    if argument.keyword is None:
        raise ValueError("the argument has no keyword to rename")
    return replace(argument.keyword, name)


def delete_argument(call: cst.Call, argument: cst.Arg) -> NodeEdit | None:
    """Delete a keyword argument of a call, with the comma that goes with it.

    ``None`` for an argument without a keyword, and where it cannot be told which comma that is.
    """
    if argument.keyword is None:
        return None
    position = next(index for index, item in enumerate(call.args) if item is argument)
    if position > 0:
        before = call.args[position - 1].value
        return NodeEdit(_last(before), Side.END, _last(argument.value), Side.END, "")
    if len(call.args) > 1:
        after = call.args[1]
        start = after.value if after.keyword is None else after.keyword
        return None if after.star else NodeEdit(argument.keyword, Side.START, _first(start), Side.START, "")
    if isinstance(argument.comma, cst.Comma):
        return None
    return NodeEdit(argument.keyword, Side.START, _last(argument.value), Side.END, "")


def insert_first(function: cst.FunctionDef, statement: str, line_break: str) -> NodeEdit:
    """Make a statement the first one of a function, behind the docstring and in front of every comment.

    ``line_break`` is the line end and indentation with which statements of the body begin.
    """
    body = function.body
    if isinstance(body, cst.SimpleStatementSuite):
        return insert_before(body.body[0], f"{statement}; ")
    assert isinstance(body, cst.IndentedBlock)
    if function.get_docstring() is not None:
        return insert_after(body.body[0], line_break + statement)
    newline = line_break[: len(line_break) - len(line_break.lstrip("\r\n"))]
    end = body.header.newline
    return NodeEdit(end, Side.END, end, Side.END, line_break[len(newline) :] + statement + newline)


def insert_line_after(line: cst.SimpleStatementLine, statement: str, line_break: str) -> NodeEdit:
    """Put a statement on a line of its own behind a line and the comment at its end.

    ``line_break`` is the line end and indentation with which statements of the body begin.
    """
    end = line.trailing_whitespace.newline
    return NodeEdit(end, Side.START, end, Side.START, line_break + statement)


def delete_line(line: cst.SimpleStatementLine, before: cst.CSTNode) -> NodeEdit | None:
    """Delete a line with the comment at its end; ``before`` is the statement in front of it in the same body.

    ``None`` where the place at which the line begins cannot be told from the nodes.
    """
    if line.leading_lines:
        start = line.leading_lines[-1].newline
    elif isinstance(before, cst.SimpleStatementLine):
        start = before.trailing_whitespace.newline
    else:
        return None
    return NodeEdit(start, Side.END, line.trailing_whitespace.newline, Side.END, "")


def delete_statement(line: cst.SimpleStatementLine, body: Sequence[cst.CSTNode]) -> NodeEdit | None:
    """Delete a line of a body together with the comment at its end; ``None`` where it is the only one."""
    position = next(index for index, item in enumerate(body) if item is line)
    if position > 0:
        return delete_line(line, body[position - 1])
    if len(body) < 2:
        return None
    following = body[1]
    start = following.body[0] if isinstance(following, cst.SimpleStatementLine) else following
    return NodeEdit(line.body[0], Side.START, start, Side.START, "")


def assign_result(statement: cst.Expr, target: str) -> NodeEdit:
    """Turn the statement ``x.cuda()`` into ``target = x.cuda()``."""
    return insert_before(statement, f"{target} = ")


def call_instead_of_assigning(statement: cst.Assign, target: cst.Attribute, method: str) -> tuple[NodeEdit, ...]:
    """Turn ``net.requires_grad = False`` into ``net.requires_grad_(False)``, ``target`` being the only one."""
    opening = NodeEdit(_last(target.value), Side.END, _first(statement.value), Side.START, f".{method}(")
    return opening, insert_after(statement.value, ")")


def assign_opposite(statement: cst.Assign, target: cst.Attribute, name: str) -> tuple[NodeEdit, ...]:
    """Assign the opposite of a truth to an attribute of another name."""
    renamed, value = rename_attribute(target, name), statement.value
    if isinstance(value, cst.Name) and value.value in ("True", "False"):
        return renamed, replace(value, "False" if value.value == "True" else "True")
    is_whole = binds_trailers(value)
    return renamed, *wrap(value, "not " if is_whole else "not (", "" if is_whole else ")")


def delete_assignment_target(statement: cst.Assign | cst.AnnAssign, target: cst.AssignTarget | None = None) -> NodeEdit:
    """Turn ``m = m.load_state_dict(s)`` into ``m.load_state_dict(s)``.

    ``target`` says which one to delete of several (``a = b = value``); an annotation goes with its
    target.

    Raises:
        ValueError: there are several targets and none is named, or there is no value.
    """
    if isinstance(statement, cst.AnnAssign):
        if statement.value is None:
            raise ValueError("a bare annotation assigns nothing")
        return delete_before(statement, statement.value)
    if target is None:
        if len(statement.targets) > 1:
            raise ValueError("several targets: name the one to delete")
        target = statement.targets[0]
    rest = [*(other.target for other in statement.targets), statement.value]
    return delete_before(target.target, rest[statement.targets.index(target) + 1])


# --- Parentheses ----------------------------------------------------------------------------------

_ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.Float,
    cst.Imaginary,
    cst.BaseString,
    cst.Ellipsis,
    cst.List,
    cst.ListComp,
    cst.Set,
    cst.SetComp,
    cst.Dict,
    cst.DictComp,
)


def binds_trailers(node: cst.BaseExpression) -> bool:
    """Whether ``.x``, ``[x]`` or ``(x)`` written behind the expression applies to all of it.

    True of what stands in parentheses and of atoms, but not of ``5``, where the dot would be read
    as a decimal point.
    """
    return is_in_parentheses(node) or isinstance(node, _ATOMS)


def is_in_parentheses(node: cst.CSTNode) -> bool:
    """Whether parentheses stand around an expression. Nodes without whitespace do not know, and need no edits."""
    return bool(getattr(node, "lpar", ()))


def _first(node: cst.CSTNode) -> cst.CSTNode:
    """The outermost opening parenthesis of an expression, or the node itself."""
    return node.lpar[0] if isinstance(node, cst.BaseExpression) and is_in_parentheses(node) else node


def _last(node: cst.CSTNode) -> cst.CSTNode:
    """The outermost closing parenthesis of an expression, or the node itself."""
    return node.rpar[-1] if isinstance(node, cst.BaseExpression) and is_in_parentheses(node) else node


def _holds(node: cst.CSTNode, inner: cst.CSTNode) -> bool:
    """Whether ``inner`` is an expression in the node."""
    return any(part is inner for part in subtree(node) if part is not node)
