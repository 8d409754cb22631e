"""LibCST nodes without whitespace, made from Python's own syntax tree.

LibCST's parser makes a node of every blank and comma; most of its time goes there, and whether a file has a finding at
all can be told without them. So a file is first read by ``ast``, which is seven times as fast, and turned into the
nodes that the walk and the semantic model look at. Only a file in which something is found is parsed in full.

The nodes are real LibCST nodes of which only those fields are set that can hold other nodes; reading any other field
raises ``AttributeError``. Two things look different from a full parse, neither to the model nor to the rules: adjacent
string literals are one, and ``else: if`` is ``elif``.
"""

import ast
import dataclasses
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import libcst as cst

from mllint.syntax.walk import child_fields

_FIXED: dict[str, object] = {"lpar": (), "rpar": ()}


class NotBareError(Exception):
    """The file cannot be read this way: it needs the full parser (or is no Python at all)."""


def bare_module(text: str, tree: ast.AST | None = None) -> cst.Module:
    """The nodes of a file's text; ``tree`` is its syntax tree, where somebody has made it already.

    Raises:
        NotBareError: this Python cannot parse the text, or it nests too deep.
    """
    try:
        if not isinstance(tree, ast.Module):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        module: cst.Module = _module(_statements(tree.body))
    except (SyntaxError, ValueError, RecursionError, MemoryError, KeyError) as error:
        raise NotBareError from error
    return module


def _maker(node_type: type[Any], *given: str) -> Callable[..., Any]:
    """A function from the values of the named fields to a node; its other child fields are empty.

    The nodes are frozen and made by the thousand, so the function writes their slots, one line a field.
    """
    fields = {field.name for field in dataclasses.fields(node_type)}
    names = {*child_fields(node_type), *(fields & set(_FIXED))}
    values = {name: f"given_{name}" for name in given}
    values |= {name: repr(_FIXED.get(name)) for name in sorted(names - set(given))}
    lines = [f"    put_{name}(node, {value})" for name, value in values.items()]
    parameters = ", ".join(f"given_{name}" for name in given)
    text = f"def make({parameters}):\n    node = new(node_type)\n" + "\n".join([*lines, "    return node"])
    names_in_it: dict[str, Any] = {f"put_{name}": getattr(node_type, name).__set__ for name in values}
    names_in_it |= {"new": object.__new__, "node_type": node_type}
    exec(text, names_in_it)
    make: Callable[..., Any] = names_in_it["make"]
    return make


# -- expressions ---------------------------------------------------------------------------------------------------

_name = _maker(cst.Name, "value")
_integer = _maker(cst.Integer, "value")
_float = _maker(cst.Float, "value")
_imaginary = _maker(cst.Imaginary, "value")
_string = _maker(cst.SimpleString, "value")
_attribute = _maker(cst.Attribute, "value", "attr")
_call = _maker(cst.Call, "func", "args")
_arg = _maker(cst.Arg, "value", "keyword", "star")
_subscript = _maker(cst.Subscript, "value", "slice")
_subscript_element = _maker(cst.SubscriptElement, "slice")
_index = _maker(cst.Index, "value", "star")
_slice = _maker(cst.Slice, "lower", "upper", "step")
_binary = _maker(cst.BinaryOperation, "left", "operator", "right")
_boolean = _maker(cst.BooleanOperation, "left", "operator", "right")
_unary = _maker(cst.UnaryOperation, "operator", "expression")
_comparison = _maker(cst.Comparison, "left", "comparisons")
_comparison_target = _maker(cst.ComparisonTarget, "operator", "comparator")
_if_expression = _maker(cst.IfExp, "test", "body", "orelse")
_lambda = _maker(cst.Lambda, "params", "body")
_walrus = _maker(cst.NamedExpr, "target", "value")
_element = _maker(cst.Element, "value")
_starred_element = _maker(cst.StarredElement, "value")
_tuple = _maker(cst.Tuple, "elements")
_list = _maker(cst.List, "elements")
_set = _maker(cst.Set, "elements")
_dict = _maker(cst.Dict, "elements")
_dict_element = _maker(cst.DictElement, "key", "value")
_starred_dict_element = _maker(cst.StarredDictElement, "value")
_list_comp = _maker(cst.ListComp, "elt", "for_in")
_set_comp = _maker(cst.SetComp, "elt", "for_in")
_generator = _maker(cst.GeneratorExp, "elt", "for_in")
_dict_comp = _maker(cst.DictComp, "key", "value", "for_in")
_comp_for = _maker(cst.CompFor, "target", "iter", "ifs", "inner_for_in", "asynchronous")
_comp_if = _maker(cst.CompIf, "test")
_await = _maker(cst.Await, "expression")
_yield = _maker(cst.Yield, "value")
_from = _maker(cst.From, "item")
_formatted_string = _maker(cst.FormattedString, "parts")
_formatted_text = _maker(cst.FormattedStringText, "value")
_formatted_expression = _maker(cst.FormattedStringExpression, "expression", "format_spec")
_ELLIPSIS = _maker(cst.Ellipsis)

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


def _expression(node: ast.expr) -> Any:
    return _EXPRESSIONS[type(node)](node)


def _optional(node: ast.expr | None) -> Any:
    return None if node is None else _EXPRESSIONS[type(node)](node)


def _constant(node: ast.Constant) -> Any:
    value = node.value
    if value.__class__ is str or value.__class__ is bytes:
        return _string(repr(value))
    if value is None or value.__class__ is bool:
        return _name(repr(value))
    if value.__class__ is int:
        return _integer(repr(value))
    if value.__class__ is float:
        return _float(repr(value))
    return _ELLIPSIS() if value is ... else _imaginary(repr(value))


def _arguments(arguments: Iterable[ast.expr], keywords: Iterable[ast.keyword]) -> tuple[Any, ...]:
    found = [
        _arg(_expression(item.value), None, "*") if item.__class__ is ast.Starred else _arg(_expression(item), None, "")
        for item in arguments
    ]
    for keyword in keywords:
        if keyword.arg is None:
            found.append(_arg(_expression(keyword.value), None, "**"))
        else:
            found.append(_arg(_expression(keyword.value), _name(keyword.arg), ""))
    return tuple(found)


def _subscripted(node: ast.Subscript) -> Any:
    inner = node.slice
    # Without parentheses `x[1, 2]` is two elements to LibCST; with them it is one tuple, which nobody writes.
    parts = inner.elts if isinstance(inner, ast.Tuple) and inner.elts else [inner]
    return _subscript(_expression(node.value), tuple(_subscript_element(_subscript_part(part)) for part in parts))


def _subscript_part(node: ast.expr) -> Any:
    if isinstance(node, ast.Slice):
        return _slice(_optional(node.lower), _optional(node.upper), _optional(node.step))
    if isinstance(node, ast.Starred):
        return _index(_expression(node.value), "*")
    return _index(_expression(node), None)


def _boolean_operation(node: ast.BoolOp) -> Any:
    result = _expression(node.values[0])
    operator = _OPERATORS[type(node.op)]
    for value in node.values[1:]:
        result = _boolean(result, operator, _expression(value))
    return result


def _compared(node: ast.Compare) -> Any:
    targets = zip(node.ops, node.comparators, strict=True)
    return _comparison(
        _expression(node.left),
        tuple(_comparison_target(_OPERATORS[type(operator)], _expression(right)) for operator, right in targets),
    )


def _elements(nodes: Iterable[ast.expr]) -> tuple[Any, ...]:
    return tuple(
        _starred_element(_expression(item.value)) if isinstance(item, ast.Starred) else _element(_expression(item))
        for item in nodes
    )


def _dictionary(node: ast.Dict) -> Any:
    pairs = zip(node.keys, map(_expression, node.values), strict=True)
    return _dict(
        tuple(
            _starred_dict_element(value) if key is None else _dict_element(_expression(key), value)
            for key, value in pairs
        )
    )


def _clauses(generators: Sequence[ast.comprehension]) -> Any:
    result = None
    for clause in reversed(generators):
        tests = tuple(_comp_if(_expression(test)) for test in clause.ifs)
        result = _comp_for(_expression(clause.target), _expression(clause.iter), tests, result, clause.is_async or None)
    return result


def _formatted(node: ast.JoinedStr) -> Any:
    return _formatted_string(tuple(_formatted_part(part) for part in node.values))


def _formatted_part(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return _formatted_text(str(node.value).replace("{", "{{").replace("}", "}}"))
    assert isinstance(node, ast.FormattedValue)
    specification = node.format_spec
    parts = tuple(map(_formatted_part, specification.values)) if isinstance(specification, ast.JoinedStr) else None
    return _formatted_expression(_expression(node.value), parts)


_EXPRESSIONS: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.Name: lambda node: _name(node.id),
    ast.Attribute: lambda node: _attribute(_expression(node.value), _name(node.attr)),
    ast.Call: lambda node: _call(_expression(node.func), _arguments(node.args, node.keywords)),
    ast.Constant: _constant,
    ast.Subscript: _subscripted,
    ast.BinOp: lambda node: _binary(_expression(node.left), _OPERATORS[type(node.op)], _expression(node.right)),
    ast.BoolOp: _boolean_operation,
    ast.UnaryOp: lambda node: _unary(_OPERATORS[type(node.op)], _expression(node.operand)),
    ast.Compare: _compared,
    ast.IfExp: lambda node: _if_expression(_expression(node.test), _expression(node.body), _expression(node.orelse)),
    ast.Lambda: lambda node: _lambda(_parameters(node.args), _expression(node.body)),
    ast.NamedExpr: lambda node: _walrus(_expression(node.target), _expression(node.value)),
    ast.Tuple: lambda node: _tuple(_elements(node.elts)),
    ast.List: lambda node: _list(_elements(node.elts)),
    ast.Set: lambda node: _set(_elements(node.elts)),
    ast.Dict: _dictionary,
    ast.ListComp: lambda node: _list_comp(_expression(node.elt), _clauses(node.generators)),
    ast.SetComp: lambda node: _set_comp(_expression(node.elt), _clauses(node.generators)),
    ast.GeneratorExp: lambda node: _generator(_expression(node.elt), _clauses(node.generators)),
    ast.DictComp: lambda node: _dict_comp(_expression(node.key), _expression(node.value), _clauses(node.generators)),
    ast.Await: lambda node: _await(_expression(node.value)),
    ast.Yield: lambda node: _yield(_optional(node.value)),
    ast.YieldFrom: lambda node: _yield(_from(_expression(node.value))),
    ast.JoinedStr: _formatted,
    ast.FormattedValue: _formatted_part,
}

# -- statements ----------------------------------------------------------------------------------------------------

_module = _maker(cst.Module, "body")
_line = _maker(cst.SimpleStatementLine, "body")
_block = _maker(cst.IndentedBlock, "body", "indent")
_expression_statement = _maker(cst.Expr, "value")
_assign = _maker(cst.Assign, "targets", "value")
_assign_target = _maker(cst.AssignTarget, "target")
_annotated = _maker(cst.AnnAssign, "target", "annotation", "value")
_annotation = _maker(cst.Annotation, "annotation")
_augmented = _maker(cst.AugAssign, "target", "operator", "value")
_return = _maker(cst.Return, "value")
_raise = _maker(cst.Raise, "exc", "cause")
_raise_from = _maker(cst.From, "item")
_pass = _maker(cst.Pass)
_break = _maker(cst.Break)
_continue = _maker(cst.Continue)
_delete = _maker(cst.Del, "target")
_assert = _maker(cst.Assert, "test", "msg")
_global = _maker(cst.Global, "names")
_nonlocal = _maker(cst.Nonlocal, "names")
_name_item = _maker(cst.NameItem, "name")
_import = _maker(cst.Import, "names")
_import_from = _maker(cst.ImportFrom, "module", "names", "relative")
_import_alias = _maker(cst.ImportAlias, "name", "asname")
_as_name = _maker(cst.AsName, "name")
_if = _maker(cst.If, "test", "body", "orelse")
_else = _maker(cst.Else, "body")
_for = _maker(cst.For, "target", "iter", "body", "orelse", "asynchronous")
_while = _maker(cst.While, "test", "body", "orelse")
_with = _maker(cst.With, "items", "body", "asynchronous")
_with_item = _maker(cst.WithItem, "item", "asname")
_try = _maker(cst.Try, "body", "handlers", "orelse", "finalbody")
_handler = _maker(cst.ExceptHandler, "body", "type", "name")
_try_star = _maker(cst.TryStar, "body", "handlers", "orelse", "finalbody")
_handler_star = _maker(cst.ExceptStarHandler, "body", "type", "name")
_finally = _maker(cst.Finally, "body")
_function = _maker(cst.FunctionDef, "name", "params", "body", "decorators", "returns", "asynchronous")
_class = _maker(cst.ClassDef, "name", "body", "bases", "keywords", "decorators")
_decorator = _maker(cst.Decorator, "decorator")
_parameter = _maker(cst.Param, "name", "annotation", "default", "star")
_every_parameter = _maker(cst.Parameters, "params", "star_arg", "kwonly_params", "star_kwarg", "posonly_params")
_DOT = cst.Dot()
_STAR = cst.ImportStar()
_ASYNCHRONOUS = cst.Asynchronous()


def _statements(nodes: Iterable[ast.stmt]) -> tuple[Any, ...]:
    found = []
    for node in nodes:
        compound = _COMPOUND.get(type(node))
        found.append(_line((_SIMPLE[type(node)](node),)) if compound is None else compound(node))
    return tuple(found)


def _suite(nodes: Iterable[ast.stmt]) -> Any:
    return _block(_statements(nodes), None)


def _dotted(name: str) -> Any:
    first, *rest = name.split(".")
    result = _name(first)
    for part in rest:
        result = _attribute(result, _name(part))
    return result


def _alias(node: ast.alias) -> Any:
    return _import_alias(_dotted(node.name), None if node.asname is None else _as_name(_name(node.asname)))


def _imported_from(node: ast.ImportFrom) -> Any:
    names = _STAR if node.names[0].name == "*" else tuple(_alias(alias) for alias in node.names)
    return _import_from(None if node.module is None else _dotted(node.module), names, (_DOT,) * node.level)


def _deleted(node: ast.Delete) -> Any:
    return _delete(_expression(node.targets[0]) if len(node.targets) == 1 else _tuple(_elements(node.targets)))


def _raised(node: ast.Raise) -> Any:
    return _raise(_optional(node.exc), None if node.cause is None else _raise_from(_expression(node.cause)))


def _parameters(node: ast.arguments) -> Any:
    positional = [*node.posonlyargs, *node.args]
    defaults = [None] * (len(positional) - len(node.defaults)) + list(node.defaults)
    made = [_one_parameter(item, default) for item, default in zip(positional, defaults, strict=True)]
    keyword_only = zip(node.kwonlyargs, node.kw_defaults, strict=True)
    return _every_parameter(
        tuple(made[len(node.posonlyargs) :]),
        cst.MaybeSentinel.DEFAULT if node.vararg is None else _one_parameter(node.vararg, None, "*"),
        tuple(_one_parameter(item, default) for item, default in keyword_only),
        None if node.kwarg is None else _one_parameter(node.kwarg, None, "**"),
        tuple(made[: len(node.posonlyargs)]),
    )


def _one_parameter(node: ast.arg, default: ast.expr | None, star: str = "") -> Any:
    return _parameter(_name(node.arg), _annotated_with(node.annotation), _optional(default), star)


def _annotated_with(node: ast.expr | None) -> Any:
    return None if node is None else _annotation(_expression(node))


def _decorated(nodes: Iterable[ast.expr]) -> tuple[Any, ...]:
    return tuple(_decorator(_expression(node)) for node in nodes)


def _defined(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
    return _function(
        _name(node.name),
        _parameters(node.args),
        _suite(node.body),
        _decorated(node.decorator_list),
        _annotated_with(node.returns),
        _ASYNCHRONOUS if isinstance(node, ast.AsyncFunctionDef) else None,
    )


def _class_defined(node: ast.ClassDef) -> Any:
    arguments = _arguments(node.bases, node.keywords)
    bases = len(node.bases)
    return _class(
        _name(node.name), _suite(node.body), arguments[:bases], arguments[bases:], _decorated(node.decorator_list)
    )


def _branched(node: ast.If) -> Any:
    """An ``if`` with its chain of ``elif``, built from the last branch to the first."""
    chain = [node]
    while len(chain[-1].orelse) == 1 and isinstance(chain[-1].orelse[0], ast.If):
        chain.append(chain[-1].orelse[0])
    otherwise = _otherwise(chain[-1].orelse)
    for branch in reversed(chain):
        otherwise = _if(_expression(branch.test), _suite(branch.body), otherwise)
    return otherwise


def _otherwise(nodes: Sequence[ast.stmt]) -> Any:
    return _else(_suite(nodes)) if nodes else None


def _looped(node: ast.For | ast.AsyncFor) -> Any:
    waits = _ASYNCHRONOUS if isinstance(node, ast.AsyncFor) else None
    return _for(_expression(node.target), _expression(node.iter), _suite(node.body), _otherwise(node.orelse), waits)


def _within(node: ast.With | ast.AsyncWith) -> Any:
    items = tuple(
        _with_item(
            _expression(item.context_expr),
            None if item.optional_vars is None else _as_name(_expression(item.optional_vars)),
        )
        for item in node.items
    )
    return _with(items, _suite(node.body), _ASYNCHRONOUS if isinstance(node, ast.AsyncWith) else None)


def _tried(node: ast.Try | ast.TryStar) -> Any:
    starred = isinstance(node, ast.TryStar)
    make = _handler_star if starred else _handler
    handlers = tuple(
        make(
            _suite(handler.body),
            _optional(handler.type),
            None if handler.name is None else _as_name(_name(handler.name)),
        )
        for handler in node.handlers
    )
    last = _finally(_suite(node.finalbody)) if node.finalbody else None
    return (_try_star if starred else _try)(_suite(node.body), handlers, _otherwise(node.orelse), last)


_SIMPLE: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.Expr: lambda node: _expression_statement(_expression(node.value)),
    ast.Assign: lambda node: _assign(
        tuple(_assign_target(_expression(target)) for target in node.targets), _expression(node.value)
    ),
    ast.AnnAssign: lambda node: _annotated(
        _expression(node.target), _annotation(_expression(node.annotation)), _optional(node.value)
    ),
    ast.AugAssign: lambda node: _augmented(
        _expression(node.target), _ASSIGNING[type(node.op)], _expression(node.value)
    ),
    ast.Return: lambda node: _return(_optional(node.value)),
    ast.Raise: _raised,
    ast.Pass: lambda _: _pass(),
    ast.Break: lambda _: _break(),
    ast.Continue: lambda _: _continue(),
    ast.Delete: _deleted,
    ast.Assert: lambda node: _assert(_expression(node.test), _optional(node.msg)),
    ast.Global: lambda node: _global(tuple(_name_item(_name(name)) for name in node.names)),
    ast.Nonlocal: lambda node: _nonlocal(tuple(_name_item(_name(name)) for name in node.names)),
    ast.Import: lambda node: _import(tuple(_alias(alias) for alias in node.names)),
    ast.ImportFrom: _imported_from,
}
# `match` and the `type` statement are left to the full parser: a KeyError says so.
_COMPOUND: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.FunctionDef: _defined,
    ast.AsyncFunctionDef: _defined,
    ast.ClassDef: _class_defined,
    ast.If: _branched,
    ast.For: _looped,
    ast.AsyncFor: _looped,
    ast.While: lambda node: _while(_expression(node.test), _suite(node.body), _otherwise(node.orelse)),
    ast.With: _within,
    ast.AsyncWith: _within,
    ast.Try: _tried,
    ast.TryStar: _tried,
}
