"""What is NaN, and what may be that very object."""

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import libcst as cst

from mllint.semantic.construction.constants import Constants, names_set_elsewhere, reads_body_of_class
from mllint.semantic.construction.evaluation import Frame
from mllint.semantic.construction.parts import UNKNOWN
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Array, Function, Instance, Module, Number, Symbol, Tensor
from mllint.syntax.comparison import NEGATED
from mllint.syntax.shape import argument, dotted_path, last_word, part_at, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_CONSTANTS = {
    "math.nan": "math",
    "numpy.nan": "numpy",
    "numpy.NaN": "numpy",
    "numpy.NAN": "numpy",
    "torch.nan": "torch",
    "paddle.nan": "paddle",
}
# Functions that make a NaN of the text "nan", and whose it is.
_FROM_TEXT = {
    "builtins.float": "math",
    "numpy.float16": "numpy",
    "numpy.float32": "numpy",
    "numpy.float64": "numpy",
}
# Functions that make a tensor or array of the NaN they are given.
_FROM_NAN = {
    "torch.tensor": "torch",
    "torch.as_tensor": "torch",
    "paddle.to_tensor": "paddle",
    "numpy.array": "numpy",
    "numpy.asarray": "numpy",
    **_FROM_TEXT,
}
_PREDICATES = frozenset({"isnan", "isna", "isnull", "isfinite"})
_MAX_STEPS = 4


def library_of_nan(model: "Model", node: cst.BaseExpression, steps: int = 0) -> str | None:
    """Whose NaN an expression is: ``math``, ``numpy``, ``torch`` or ``paddle``; ``None`` when it is not surely one."""
    if steps > _MAX_STEPS:
        return None
    match node:
        case cst.Call():
            return _made(model, node, steps)
        case cst.UnaryOperation(operator=cst.Minus() | cst.Plus()):
            return library_of_nan(model, node.expression, steps + 1)
        case cst.Attribute() if reads_body_of_class(model, node):
            return _of_constant(model, node)
        case cst.Name() | cst.Attribute():
            found = _CONSTANTS.get(model.qualified_name(node) or "")
            return found or _bound(model, node, steps)
        case cst.Subscript():
            return _of_constant(model, node)
    return None


def _of_constant(model: "Model", node: cst.BaseExpression) -> str | None:
    """The NaN that an attribute of a class or an entry of a dict always stands for: ``MISSING["speed"]``."""
    found = _Nans().worth(model, node)
    if isinstance(found, Symbol):
        return _CONSTANTS.get(found.name)
    return found.library if isinstance(found, _Nan) else None


class _Nan(NamedTuple):
    library: str


class _Nans(Constants):
    """The values of what an expression reads, NaN among them."""

    def call(self, node: cst.Call, frame: Frame) -> Any:
        """A NaN that is made of text."""
        library = library_of_nan(frame.model, node)
        return UNKNOWN if library is None else _Nan(library)


def _made(model: "Model", call: cst.Call, steps: int) -> str | None:
    if not call.args or call.args[0].star or call.args[0].keyword is not None:
        return None
    given, name = call.args[0].value, model.qualified_name(call.func)
    if name is None:
        return None
    text = string_literal(given)
    if text is not None:
        is_nan = len(call.args) == 1 and text.strip().lstrip("+-").lower() == "nan"
        return _FROM_TEXT.get(name) if is_nan else None
    return _FROM_NAN.get(name) if name in _FROM_NAN and library_of_nan(model, given, steps + 1) else None


def _bound(model: "Model", node: cst.BaseExpression, steps: int) -> str | None:
    """The NaN that a name always stands for: it is bound once, to a NaN."""
    binding = only_binding(model, node)
    if binding is None or binding.path or binding.value is None:
        return None
    home = binding.scope.model
    if binding.kind not in (BindingKind.ASSIGN, BindingKind.ANNOTATED) or binding.key in names_set_elsewhere(home):
        return None
    return library_of_nan(home, binding.value, steps + 1)


def only_binding(model: "Model", node: cst.BaseExpression) -> Binding | None:
    """The binding of a name in its scope or an outer one, where it is the only one of that name there."""
    key = dotted_path(node)
    scope = model.scope_of(node)
    if key is None:
        return None
    if key in scope.bindings:
        reaching = model.reaching(node)
        return reaching[0] if len(reaching) == 1 else None
    outer = scope.parent
    while outer is not None:
        if not outer.is_class and key in outer.bindings:
            return outer.bindings[key][0] if len(outer.bindings[key]) == 1 else None
        outer = outer.parent
    return None


def may_be_that_object(model: "Model", node: cst.BaseExpression, nan: cst.BaseExpression) -> bool:
    """Whether an expression may give the very object that a NaN is: what ``float("nan")`` makes is always a new one.

    The code may have written it somewhere as a default or beginning. What is not known may be a cell of a table: pandas
    hands out the object that was put in. Or whether it does not matter, since ``isnan`` is asked as well.
    """
    if isinstance(nan, cst.Call):
        return False
    is_known = isinstance(model.value(node), (Tensor, Array, Number))
    return not is_known or _may_be(model, node, 0) or is_asked_beside(model, node)


def _may_be(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    if steps > _MAX_STEPS:
        return False
    if library_of_nan(model, node) is not None:
        return True
    if isinstance(node, cst.IfExp):
        return _may_be(model, node.body, steps + 1) or _may_be(model, node.orelse, steps + 1)
    if isinstance(node, cst.Call):  # options.get("fill", np.nan)
        given = any(library_of_nan(model, arg.value) is not None for arg in node.args)
        return given or _may_return(model, node, (), steps + 1)
    bindings = list(model.reaching(node))
    owner = model.value(node.value) if isinstance(node, cst.Attribute) else None
    if isinstance(node, cst.Attribute) and isinstance(owner, (Instance, Module)) and owner.definition is not None:
        bindings += owner.definition.assignments(node.attr.value)
    return any(_may_bind(binding, steps) for binding in bindings)


def _may_bind(binding: Binding, steps: int) -> bool:
    source = binding.node.default if isinstance(binding.node, cst.Param) else binding.value
    model = binding.scope.model
    if isinstance(binding.node, cst.Param) and _may_be_given(model, binding.node, steps + 1):
        return True
    if source is None:
        return False
    if isinstance(source, cst.Call) and _may_return(model, source, binding.path, steps + 1):
        return True
    return not binding.path and _may_be(model, source, steps + 1)


def _may_be_given(model: "Model", parameter: cst.Param, steps: int) -> bool:
    """Whether somebody in the file gives a parameter a NaN that was written down as a beginning or default."""
    function = model.enclosing_function(parameter)
    if function is None or steps > _MAX_STEPS:
        return False
    names = [item.name.value for item in function.params.params]
    name, calls = parameter.name.value, model.calls_by_word.get(function.name.value, ())
    position = names.index(name) if name in names else None
    if position is not None and names[0] in ("self", "cls"):
        position -= 1
    given = (argument(call, position, name) for call in calls)
    return any(item is not None and _may_be(model, item.value, steps) for item in given)


def is_asked_beside(model: "Model", operand: cst.BaseExpression) -> bool:
    """Whether ``isnan`` asks the same beside a comparison: ``x == nan or isnan(x)``, ``x != nan and not isnan(x)``."""
    path, whole = dotted_path(operand), cast("cst.CSTNode", operand)
    joining: type[cst.BaseBooleanOp] = cst.Or
    while isinstance(parent := model.tree.parent(whole), (cst.ComparisonTarget, cst.Comparison, cst.BooleanOperation)):
        if isinstance(parent, cst.Comparison) and type(parent.comparisons[0].operator) in NEGATED:
            joining = cst.And
        if isinstance(parent, cst.BooleanOperation) and not isinstance(parent.operator, joining):
            break
        whole = parent
    return path is not None and any(
        isinstance(node, cst.Call)
        and (model.qualified_name(node.func) or last_word(node.func) or "").rpartition(".")[2] in _PREDICATES
        and any(dotted_path(part) == path for part in subtree(node) if isinstance(part, (cst.Name, cst.Attribute)))
        for node in subtree(whole)
    )


def _may_return(model: "Model", call: cst.Call, path: tuple[int | None, ...], steps: int) -> bool:
    """Whether a function of the project may give a NaN that stands in it, as the part of its result at a path."""
    callee = model.value(call.func)
    if not isinstance(callee, Function) or steps > _MAX_STEPS:
        return False
    definition = callee.definition
    for statement in definition.scope.returns:
        part = part_at(statement.value, path)
        if part is not None and _may_be(definition.model, part, steps + 1):
            return True
    return False


def may_hold_objects(model: "Model", array: cst.BaseExpression) -> bool:
    """Whether an array is made of objects or strings, which `np.isnan` does not take."""
    made = [binding.value for binding in model.reaching(array) if not binding.path] or [array]
    parts = (part for item in made if isinstance(item, cst.Call) for part in subtree(item))
    return any(isinstance(part, cst.SimpleString) or last_word(part) in ("object", "str", "None") for part in parts)
