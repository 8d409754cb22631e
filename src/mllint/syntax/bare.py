"""LibCST nodes without whitespace, made from Python's own syntax tree.

LibCST's parser makes a node of every blank and comma; most of its time goes there, and whether a file has a finding at
all can be told without them. So a file is first read by ``ast``, which is seven times as fast, and turned into the
nodes that the semantic model looks at. Only a file in which something is found is parsed in full.

The nodes are real LibCST nodes of which only those fields are set that can hold other nodes; reading any other field
raises ``AttributeError``. Two things look different from a full parse, neither to the model nor to the rules: adjacent
string literals are one, and ``else: if`` is ``elif``.

The tables below say field by field what each node of ``ast`` becomes. From an entry a function is made that builds the
node and what is in it, from the top down, and notes on the way what a walk would: each node's type and parent.
"""

import ast
import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import libcst as cst

from mllint.syntax.former import readable_tree
from mllint.syntax.walk import Tree, child_fields

_Maker: TypeAlias = Callable[[Any, Any, dict[type, list[Any]], dict[int, Any]], Any]
"""From a node of ``ast`` (or a part of one) to a node, given its parent, the nodes by type, and the parents by id."""


class NotBareError(Exception):
    """The file cannot be read this way: it needs the full parser (or is no Python at all)."""


def bare_tree(text: str, tree: ast.AST | None = None) -> Tree:
    """The nodes of a file's text; ``tree`` is its syntax tree, where somebody has made it already.

    Raises:
        NotBareError: this Python cannot parse the text, or it nests too deep.
    """
    try:
        python_tree, former = (tree, None) if isinstance(tree, ast.Module) else readable_tree(text)
        module, nodes, parents = made_of(python_tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError, KeyError) as error:
        raise NotBareError from error
    return Tree(module, defaultdict(list, {kind: one[::2] for kind, one in nodes.items() if one}), parents, former)


def made_of(tree: ast.Module) -> tuple[Any, dict[type, list[Any]], dict[int, Any]]:
    """The module, each node of a type followed by what it was made of, and the parents by the ids of the nodes."""
    nodes, parents = {node_type: list[Any]() for node_type in _made_types}, dict[int, Any]()
    return _module(tree, None, nodes, parents), nodes, parents


_made_types: set[type] = set()


def _node(node_type: type[Any], **fields: str) -> _Maker:
    """A function that makes a node of a type of ``node``; each field is given by what computes it.

    The nodes are frozen and made by the thousand, so the function writes their slots, one line a field.
    """
    _made_types.add(node_type)
    every = [field.name for field in dataclasses.fields(node_type)]
    values = dict.fromkeys(child_fields(node_type), "None") | fields
    lines = [f"    put_{name}(made, {values[name]})" for name in sorted(values, key=every.index)]
    setters = {f"put_{name}": _setter(node_type, name) for name in values}
    text = "\n".join(
        [
            f"def factory(new, node_type, {', '.join(setters)}):",
            "  def make(node, parent, nodes, parents):",
            "    made = new(node_type)",
            "    alike = nodes[node_type]",
            "    alike += made, node",
            "    parents[id(made)] = parent",
            *lines,
            "    return made",
            "  return make",
        ]
    )
    defined: dict[str, Any] = {}
    exec(text, globals(), defined)
    make: _Maker = defined["factory"](object.__new__, node_type, **setters)
    return make


def _setter(node_type: Any, name: str) -> Any:
    return getattr(node_type, name).__set__


# What computes a field: text in which `node` is what a node is made of, and `made` the node itself.


def _with(maker: str, source: str = "node") -> str:
    """What a function of this module makes of the node, or of a part of it."""
    return f"{maker}({source}, made, nodes, parents)"


def _one(source: str = "node") -> str:
    """An expression."""
    return _with(f"_EXPRESSIONS[{source}.__class__]", source)


def _any(source: str) -> str:
    """An expression or nothing."""
    return f"None if {source} is None else {_one(source)}"


def _each(maker: str, source: str = "node") -> str:
    """What a function of this module makes of each of several."""
    return f"tuple([{maker}(item, made, nodes, parents) for item in {source}])"


def _suite(source: str = "node.body") -> str:
    return _with("_block", source)


_ELSE = "_else(node.orelse, made, nodes, parents) if node.orelse else None"

# -- expressions ---------------------------------------------------------------------------------------------------

_word = _node(cst.Name, value="node")
_string = _node(cst.SimpleString, value="repr(node.value)")
_named_constant = _node(cst.Name, value="repr(node.value)")
_CONSTANTS: dict[type, _Maker] = {
    str: _string,
    bytes: _string,
    bool: _named_constant,
    type(None): _named_constant,
    int: _node(cst.Integer, value="repr(node.value)"),
    float: _node(cst.Float, value="repr(node.value)"),
    complex: _node(cst.Imaginary, value="repr(node.value)"),
    type(...): _node(cst.Ellipsis),
}

_OPERATORS: dict[type[ast.AST], Any] = {
    python: getattr(cst, name)()
    for python, name in (
        (ast.Add, "Add"), (ast.Sub, "Subtract"), (ast.Mult, "Multiply"), (ast.Div, "Divide"), (ast.Mod, "Modulo"),
        (ast.FloorDiv, "FloorDivide"), (ast.Pow, "Power"), (ast.MatMult, "MatrixMultiply"), (ast.BitAnd, "BitAnd"),
        (ast.BitOr, "BitOr"), (ast.BitXor, "BitXor"), (ast.LShift, "LeftShift"), (ast.RShift, "RightShift"),
        (ast.And, "And"), (ast.Or, "Or"), (ast.Not, "Not"), (ast.USub, "Minus"), (ast.UAdd, "Plus"),
        (ast.Invert, "BitInvert"), (ast.Eq, "Equal"), (ast.NotEq, "NotEqual"), (ast.Lt, "LessThan"),
        (ast.LtE, "LessThanEqual"), (ast.Gt, "GreaterThan"), (ast.GtE, "GreaterThanEqual"), (ast.Is, "Is"),
        (ast.IsNot, "IsNot"), (ast.In, "In"), (ast.NotIn, "NotIn"),
    )
}  # fmt: skip
_ASSIGNING: dict[type[ast.AST], Any] = {
    python: getattr(cst, name)()
    for python, name in (
        (ast.Add, "AddAssign"), (ast.Sub, "SubtractAssign"), (ast.Mult, "MultiplyAssign"), (ast.Div, "DivideAssign"),
        (ast.Mod, "ModuloAssign"), (ast.FloorDiv, "FloorDivideAssign"), (ast.Pow, "PowerAssign"),
        (ast.MatMult, "MatrixMultiplyAssign"), (ast.BitAnd, "BitAndAssign"), (ast.BitOr, "BitOrAssign"),
        (ast.BitXor, "BitXorAssign"), (ast.LShift, "LeftShiftAssign"), (ast.RShift, "RightShiftAssign"),
    )
}  # fmt: skip


def _constant(node: ast.Constant, parent: Any, nodes: Any, parents: Any) -> Any:
    return _CONSTANTS[node.value.__class__](node, parent, nodes, parents)


_arg = _node(cst.Arg, value=_one(), star="''")
_starred_arg = _node(cst.Arg, value=_one("node.value"), star="'*'")
_keyword_arg = _node(cst.Arg, value=_one("node.value"), keyword=_with("_word", "node.arg"), star="''")
_keywords_arg = _node(cst.Arg, value=_one("node.value"), star="'**'")


def _arguments(
    arguments: Sequence[ast.expr], keywords: Sequence[ast.keyword], parent: Any, nodes: Any, parents: Any
) -> tuple[Any, ...]:
    found = [
        (_starred_arg if item.__class__ is ast.Starred else _arg)(item, parent, nodes, parents) for item in arguments
    ]
    if keywords:
        found += [
            (_keywords_arg if item.arg is None else _keyword_arg)(item, parent, nodes, parents) for item in keywords
        ]
    return tuple(found)


_index = _node(cst.Index, value=_one())
_starred_index = _node(cst.Index, value=_one("node.value"), star="'*'")
_slice = _node(cst.Slice, lower=_any("node.lower"), upper=_any("node.upper"), step=_any("node.step"))
_subscript_element = _node(
    cst.SubscriptElement, slice="_INDEXES.get(node.__class__, _index)(node, made, nodes, parents)"
)
_INDEXES: dict[type[ast.AST], _Maker] = {ast.Slice: _slice, ast.Starred: _starred_index}


def _subscripted(node: ast.expr, parent: Any, nodes: Any, parents: Any) -> tuple[Any, ...]:
    # Without parentheses `x[1, 2]` is two elements to LibCST, with them it is one tuple.
    parts = node.elts if isinstance(node, ast.Tuple) and node.elts and not _is_in_parentheses(node) else [node]
    return tuple([_subscript_element(part, parent, nodes, parents) for part in parts])


def _is_in_parentheses(node: ast.Tuple) -> bool:
    """Whether a tuple has parentheses of its own; those of its first and its last element together look like them."""
    first, last = node.elts[0], node.elts[-1]
    begins_before = (node.lineno, node.col_offset) < (first.lineno, first.col_offset)
    return begins_before and (node.end_lineno, node.end_col_offset) > (last.end_lineno, last.end_col_offset)


_boolean = _node(cst.BooleanOperation, operator="_OPERATORS[node.op.__class__]")
_put_left, _put_right = _setter(cst.BooleanOperation, "left"), _setter(cst.BooleanOperation, "right")


def _boolean_operation(node: ast.BoolOp, parent: Any, nodes: Any, parents: Any) -> Any:
    """A node for each operator, the last one outermost; a loop, since thousands of them are no depth to ``ast``."""
    chain = []
    for _ in node.values[1:]:
        parent = _boolean(node, parent, nodes, parents)
        chain.append(parent)
    inner = _EXPRESSIONS[node.values[0].__class__](node.values[0], parent, nodes, parents)
    for operation, value in zip(reversed(chain), node.values[1:], strict=True):
        _put_left(operation, inner)
        _put_right(operation, _EXPRESSIONS[value.__class__](value, operation, nodes, parents))
        inner = operation
    return inner


_comparison_target = _node(cst.ComparisonTarget, operator="_OPERATORS[node[0].__class__]", comparator=_one("node[1]"))
_starred_element = _node(cst.StarredElement, value=_one("node.value"))
_plain_element = _node(cst.Element, value=_one())


def _element(node: ast.expr, parent: Any, nodes: Any, parents: Any) -> Any:
    return (_starred_element if node.__class__ is ast.Starred else _plain_element)(node, parent, nodes, parents)


_starred_dict_element = _node(cst.StarredDictElement, value=_one("node[1]"))
_plain_dict_element = _node(cst.DictElement, key=_one("node[0]"), value=_one("node[1]"))


def _dict_element(node: tuple[ast.expr | None, ast.expr], parent: Any, nodes: Any, parents: Any) -> Any:
    return (_starred_dict_element if node[0] is None else _plain_dict_element)(node, parent, nodes, parents)


_comp_if = _node(cst.CompIf, test=_one())
_clauses = _node(
    cst.CompFor,
    target=_one("node[0].target"),
    iter=_one("node[0].iter"),
    ifs=_each("_comp_if", "node[0].ifs"),
    inner_for_in=f"{_with('_clauses', 'node[1:]')} if len(node) > 1 else None",
    asynchronous="node[0].is_async or None",
)
_IN = _with("_clauses", "node.generators")

_formatted_text = _node(cst.FormattedStringText, value="str(node.value).replace('{', '{{').replace('}', '}}')")
_formatted_expression = _node(
    cst.FormattedStringExpression,
    expression=_one("node.value"),
    format_spec=_with("_specification", "node.format_spec"),
)


def _formatted_part(node: ast.expr, *place: Any) -> Any:
    return (_formatted_text if isinstance(node, ast.Constant) else _formatted_expression)(node, *place)


def _specification(node: ast.expr | None, *place: Any) -> Any:
    return tuple([_formatted_part(part, *place) for part in node.values]) if isinstance(node, ast.JoinedStr) else None


_from = _node(cst.From, item=_one())
_EXPRESSIONS: dict[type[ast.AST], _Maker] = {
    ast.Name: _node(cst.Name, value="node.id"),
    ast.Attribute: _node(cst.Attribute, value=_one("node.value"), attr=_with("_word", "node.attr")),
    ast.Call: _node(
        cst.Call, func=_one("node.func"), args="_arguments(node.args, node.keywords, made, nodes, parents)"
    ),
    ast.Constant: _constant,
    ast.Subscript: _node(cst.Subscript, value=_one("node.value"), slice=_with("_subscripted", "node.slice")),
    ast.BinOp: _node(
        cst.BinaryOperation,
        left=_one("node.left"),
        operator="_OPERATORS[node.op.__class__]",
        right=_one("node.right"),
    ),
    ast.BoolOp: _boolean_operation,
    ast.UnaryOp: _node(cst.UnaryOperation, operator="_OPERATORS[node.op.__class__]", expression=_one("node.operand")),
    ast.Compare: _node(
        cst.Comparison,
        left=_one("node.left"),
        comparisons=_each("_comparison_target", "zip(node.ops, node.comparators)"),
    ),
    ast.IfExp: _node(cst.IfExp, test=_one("node.test"), body=_one("node.body"), orelse=_one("node.orelse")),
    ast.Lambda: _node(cst.Lambda, params=_with("_parameters", "node.args"), body=_one("node.body")),
    ast.NamedExpr: _node(cst.NamedExpr, target=_one("node.target"), value=_one("node.value")),
    ast.Tuple: _node(cst.Tuple, elements=_each("_element", "node.elts")),
    ast.List: _node(cst.List, elements=_each("_element", "node.elts")),
    ast.Set: _node(cst.Set, elements=_each("_element", "node.elts")),
    ast.Dict: _node(cst.Dict, elements=_each("_dict_element", "zip(node.keys, node.values)")),
    ast.ListComp: _node(cst.ListComp, elt=_one("node.elt"), for_in=_IN),
    ast.SetComp: _node(cst.SetComp, elt=_one("node.elt"), for_in=_IN),
    ast.GeneratorExp: _node(cst.GeneratorExp, elt=_one("node.elt"), for_in=_IN),
    ast.DictComp: _node(cst.DictComp, key=_one("node.key"), value=_one("node.value"), for_in=_IN),
    ast.Await: _node(cst.Await, expression=_one("node.value")),
    ast.Yield: _node(cst.Yield, value=_any("node.value")),
    ast.YieldFrom: _node(cst.Yield, value=_with("_from", "node.value")),
    ast.JoinedStr: _node(cst.FormattedString, parts=_each("_formatted_part", "node.values")),
    ast.FormattedValue: _formatted_part,
}

# -- parts of statements -------------------------------------------------------------------------------------------

_block = _node(cst.IndentedBlock, body=_with("_statements"), indent="None")
_else = _node(cst.Else, body=_suite("node"))
_finally = _node(cst.Finally, body=_suite("node"))
_assign_target = _node(cst.AssignTarget, target=_one())
_annotation = _node(cst.Annotation, annotation=_one())
_raise_from = _node(cst.From, item=_one())
_name_item = _node(cst.NameItem, name=_with("_word"))
_decorator = _node(cst.Decorator, decorator=_one())
_as_word = _node(cst.AsName, name=_with("_word"))
_as_target = _node(cst.AsName, name=_one())
_import_alias = _node(
    cst.ImportAlias,
    name=_with("_dotted", "node.name"),
    asname=f"None if node.asname is None else {_with('_as_word', 'node.asname')}",
)
_import_star = _node(cst.ImportStar)
_with_item = _node(
    cst.WithItem,
    item=_one("node.context_expr"),
    asname=f"None if node.optional_vars is None else {_with('_as_target', 'node.optional_vars')}",
)
_qualified = _node(cst.Attribute, value=_with("_dotted", "node[0]"), attr=_with("_word", "node[2]"))
_DOT, _ASYNCHRONOUS = cst.Dot(), cst.Asynchronous()


def _dotted(name: str, *place: Any) -> Any:
    return _qualified(name.rpartition("."), *place) if "." in name else _word(name, *place)


def _imported(node: Sequence[ast.alias], *place: Any) -> Any:
    return _import_star(node, *place) if node[0].name == "*" else tuple([_import_alias(item, *place) for item in node])


_every_parameter = _node(
    cst.Parameters,
    params=_each("_parameter", "node[0]"),
    star_arg=f"_DEFAULT if node[1] is None else {_with('_star_parameter', 'node[1]')}",
    kwonly_params=_each("_parameter", "node[2]"),
    star_kwarg=f"None if node[3] is None else {_with('_keywords_parameter', 'node[3]')}",
    posonly_params=_each("_parameter", "node[4]"),
)
_DEFAULT = cst.MaybeSentinel.DEFAULT
_WORD_OF, _ANNOTATION_OF = _with("_word", "node.arg"), _with("_annotated_with", "node.annotation")
_parameter = _node(
    cst.Param,
    name=_with("_word", "node[0].arg"),
    annotation=_with("_annotated_with", "node[0].annotation"),
    default=_any("node[1]"),
    star="''",
)
_star_parameter = _node(cst.Param, name=_WORD_OF, annotation=_ANNOTATION_OF, star="'*'")
_keywords_parameter = _node(cst.Param, name=_WORD_OF, annotation=_ANNOTATION_OF, star="'**'")


def _parameters(node: ast.arguments, *place: Any) -> Any:
    positional = [*node.posonlyargs, *node.args]
    defaults = [None] * (len(positional) - len(node.defaults)) + list(node.defaults)
    pairs = list(zip(positional, defaults, strict=True))
    only = len(node.posonlyargs)
    by_keyword = list(zip(node.kwonlyargs, node.kw_defaults, strict=True))
    return _every_parameter((pairs[only:], node.vararg, by_keyword, node.kwarg, pairs[:only]), *place)


def _annotated_with(node: ast.expr | None, *place: Any) -> Any:
    return None if node is None else _annotation(node, *place)


_one_branch = _node(cst.If, test=_one("node.test"), body=_suite())
_put_otherwise = _setter(cst.If, "orelse")


def _branched(node: ast.If, parent: Any, nodes: Any, parents: Any) -> Any:
    """An ``if`` with its chain of ``elif``; a loop, since thousands of them are no depth to ``ast``."""
    first = branch = _one_branch(node, parent, nodes, parents)
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node, above = node.orelse[0], branch
        branch = _one_branch(node, above, nodes, parents)
        _put_otherwise(above, branch)
    if node.orelse:
        _put_otherwise(branch, _else(node.orelse, branch, nodes, parents))
    return first


def _handler(node_type: type[Any]) -> _Maker:
    name = f"None if node.name is None else {_with('_as_word', 'node.name')}"
    return _node(node_type, body=_suite(), type=_any("node.type"), name=name)


_except, _except_star = _handler(cst.ExceptHandler), _handler(cst.ExceptStarHandler)


def _tried(node_type: type[Any], handler: str) -> _Maker:
    return _node(
        node_type,
        body=_suite(),
        handlers=_each(handler, "node.handlers"),
        orelse=_ELSE,
        finalbody=f"{_with('_finally', 'node.finalbody')} if node.finalbody else None",
    )


def _defined(waits: str) -> _Maker:
    return _node(
        cst.FunctionDef,
        name=_with("_word", "node.name"),
        params=_with("_parameters", "node.args"),
        body=_suite(),
        decorators=_each("_decorator", "node.decorator_list"),
        returns=_ANNOTATION_OF.replace("node.annotation", "node.returns"),
        asynchronous=waits,
    )


def _looped(waits: str) -> _Maker:
    target, over = _one("node.target"), _one("node.iter")
    return _node(cst.For, target=target, iter=over, body=_suite(), orelse=_ELSE, asynchronous=waits)


def _within(waits: str) -> _Maker:
    return _node(cst.With, items=_each("_with_item", "node.items"), body=_suite(), asynchronous=waits)


# -- statements ----------------------------------------------------------------------------------------------------

_module = _node(cst.Module, body=_with("_statements", "node.body"))
_line = _node(cst.SimpleStatementLine, body=f"({_with('_SIMPLE[node.__class__]')},)")


def _statements(body: Sequence[ast.stmt], parent: Any, nodes: Any, parents: Any) -> tuple[Any, ...]:
    return tuple([_COMPOUND.get(node.__class__, _line)(node, parent, nodes, parents) for node in body])


_SIMPLE: dict[type[ast.AST], _Maker] = {
    ast.Expr: _node(cst.Expr, value=_one("node.value")),
    ast.Assign: _node(cst.Assign, targets=_each("_assign_target", "node.targets"), value=_one("node.value")),
    ast.AnnAssign: _node(
        cst.AnnAssign,
        target=_one("node.target"),
        annotation=_with("_annotation", "node.annotation"),
        value=_any("node.value"),
    ),
    ast.AugAssign: _node(
        cst.AugAssign, target=_one("node.target"), operator="_ASSIGNING[node.op.__class__]", value=_one("node.value")
    ),
    ast.Return: _node(cst.Return, value=_any("node.value")),
    ast.Raise: _node(
        cst.Raise,
        exc=_any("node.exc"),
        cause=f"None if node.cause is None else {_with('_raise_from', 'node.cause')}",
    ),
    ast.Pass: _node(cst.Pass),
    ast.Break: _node(cst.Break),
    ast.Continue: _node(cst.Continue),
    ast.Delete: _node(cst.Del, target=_with("_deleted", "node.targets")),
    ast.Assert: _node(cst.Assert, test=_one("node.test"), msg=_any("node.msg")),
    ast.Global: _node(cst.Global, names=_each("_name_item", "node.names")),
    ast.Nonlocal: _node(cst.Nonlocal, names=_each("_name_item", "node.names")),
    ast.Import: _node(cst.Import, names=_each("_import_alias", "node.names")),
    ast.ImportFrom: _node(
        cst.ImportFrom,
        module=f"None if node.module is None else {_with('_dotted', 'node.module')}",
        names=_with("_imported", "node.names"),
        relative="(_DOT,) * node.level",
    ),
}
_several = _node(cst.Tuple, elements=_each("_element"))


def _deleted(targets: Sequence[ast.expr], *place: Any) -> Any:
    return _EXPRESSIONS[targets[0].__class__](targets[0], *place) if len(targets) == 1 else _several(targets, *place)


# `match` and the `type` statement are left to the full parser: a KeyError says so.
_COMPOUND: dict[type[ast.AST], _Maker] = {
    ast.FunctionDef: _defined("None"),
    ast.AsyncFunctionDef: _defined("_ASYNCHRONOUS"),
    ast.ClassDef: _node(
        cst.ClassDef,
        name=_with("_word", "node.name"),
        body=_suite(),
        bases="_arguments(node.bases, (), made, nodes, parents)",
        keywords="_arguments((), node.keywords, made, nodes, parents)",
        decorators=_each("_decorator", "node.decorator_list"),
    ),
    ast.If: _branched,
    ast.For: _looped("None"),
    ast.AsyncFor: _looped("_ASYNCHRONOUS"),
    ast.While: _node(cst.While, test=_one("node.test"), body=_suite(), orelse=_ELSE),
    ast.With: _within("None"),
    ast.AsyncWith: _within("_ASYNCHRONOUS"),
    ast.Try: _tried(cst.Try, "_except"),
    ast.TryStar: _tried(cst.TryStar, "_except_star"),
}
