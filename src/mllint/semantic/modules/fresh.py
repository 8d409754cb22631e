"""Whether an expression makes new modules that nothing else holds."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import ADDING_MODULES, ADDING_PARAMETERS, SETTING
from mllint.semantic.modules.weights import has_weights, is_container
from mllint.semantic.names.classes import makes_parameter
from mllint.semantic.names.conditions import is_in_another_branch, leaves
from mllint.semantic.names.scopes import Binding, BindingKind, assigned, only_assigned
from mllint.semantic.values import Choice, ClassObject, Function, Member, Module, Symbol, Value
from mllint.syntax.shape import constant, dotted_path, is_target, last_word
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

MAX_STEPS = 8
"""How deep containers are looked into."""

_BUILDERS = frozenset({"builtins.list", "builtins.tuple", "builtins.dict", "collections.OrderedDict"})
_REGISTERING = sorted(ADDING_MODULES | ADDING_PARAMETERS | SETTING)
_Question: TypeAlias = Callable[["Model", cst.BaseExpression, int], bool]
_GROWING = frozenset({"append", "extend", "insert"})


def is_fresh(model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS) -> bool:
    """Whether an expression surely makes a new module, which nothing else holds and which holds no others."""
    if steps == 0:
        return False
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if not isinstance(model.value(node.func.value), Module) or isinstance(model.value(node.func), Function):
            break
        if node.func.attr.value in ("eval", "requires_grad_"):
            return False  # meant to be used as it is
        node = node.func.value
    if isinstance(node, cst.Name):
        return _is_fresh_name(model, node, steps)
    if not isinstance(node, cst.Call):
        return False
    return _makes_new(model, node, model.value(node.func), steps)


def _makes_new(model: "Model", node: cst.Call, callee: Value | None, steps: int) -> bool:
    match callee:
        case Choice():
            return all(_makes_new(model, node, option, steps) for option in callee.options)
        case ClassObject():
            return not takes_others(model, node, steps)
        case Symbol("copy.deepcopy"):
            return True
        case Symbol(name):
            return lookup.wrapper(name) is None and not takes_others(model, node, steps)
        case Member(package) if package in ("torch.nn", "paddle.nn"):
            return not takes_others(model, node, steps)  # one of its layers, by a name that is computed
        case Function(definition):
            value = model.value(node)
            if not isinstance(value, Module) or _registers_inside(definition):
                return False
            return value.call is not None or _gives_new(definition, steps)
        case None if isinstance(node.func, cst.Name):
            made = only_assigned(model, node.func)
            return isinstance(made, cst.Lambda) and is_fresh(model, made.body, steps - 1)
    return False


def _gives_new(function: "FunctionInfo", steps: int) -> bool:
    """Whether each ``return`` of a function makes a new module, of one class or another."""
    given = [statement.value for statement in function.scope.returns]
    return function.is_plain and all(item is not None and is_fresh(function.model, item, steps - 1) for item in given)


def takes_others(model: "Model", call: cst.Call, steps: int = MAX_STEPS) -> bool:
    """Whether the constructor call of a module may be given modules that something else holds too."""
    value = model.value(call)
    if isinstance(value, Module) and value.name is not None and is_container(value.name):
        are_layers = len(call.args) > 1  # and no list of them
        return not all(
            (are_layers and not arg.star and _is_new(model, arg.value, steps - 1))
            or _are_new(model, arg.value, bool(arg.star), steps - 1)
            for arg in call.args
        )
    modules = (arg.value for arg in call.args if isinstance(model.value(arg.value), Module))
    return not all(_is_new(model, item, steps - 1) for item in modules)


def _is_new(model: "Model", node: cst.BaseExpression, steps: int) -> bool:
    """Whether one element of a container is made for it, or has nothing that could be shared."""
    if isinstance(node, cst.IfExp):
        return _is_new(model, node.body, steps) and _is_new(model, node.orelse, steps)
    if isinstance(model.value(node), Module):
        return is_fresh(model, node, steps) or has_weights(model, node) is False
    if isinstance(node, cst.Name) and model.value(node) is None:
        return steps > 0 and _is_fresh_name(model, node, steps, _is_new)
    return (isinstance(node, cst.Call) and not _registers(model, node)) or constant(node) is not ...


def _registers(model: "Model", call: cst.Call) -> bool:
    """Whether a call gives a module that it has registered: ``self.add_sublayer("fc", Linear(3, 3))`` of Paddle."""
    callee = model.value(call.func)
    return last_word(call.func) in _REGISTERING or (
        isinstance(callee, Function) and _registers_inside(callee.definition)
    )


def _are_new(model: "Model", node: cst.BaseExpression, starred: bool, steps: int) -> bool:
    """Whether what a container is made with is all made for it."""
    if steps == 0:
        return False
    if not starred and isinstance(model.value(node), Module):
        return _is_new(model, node, steps)
    match node:
        case cst.List() | cst.Tuple() | cst.Set():
            return all(
                _are_new(model, element.value, True, steps - 1)
                if isinstance(element, cst.StarredElement)
                else _is_new(model, element.value, steps - 1) or _are_new(model, element.value, True, steps - 1)
                for element in node.elements
            )
        case cst.ListComp() | cst.GeneratorExp():
            return _is_new(model, node.elt, steps - 1) or _are_new(model, node.elt, True, steps - 1)
        case cst.Dict():
            return all(_is_new(model, item.value, steps - 1) for item in node.elements)
        case cst.DictComp():
            return _is_new(model, node.value, steps - 1)
        case cst.BinaryOperation(operator=cst.Multiply()):
            return _are_new(model, node.left, True, steps - 1)
        case cst.BinaryOperation(operator=cst.Add()):
            return _are_new(model, node.left, True, steps - 1) and _are_new(model, node.right, True, steps - 1)
        case cst.Call() if model.qualified_name(node.func) in _BUILDERS:
            return all(_are_new(model, arg.value, True, steps - 1) for arg in node.args)
        case cst.Name():
            return _is_new_list(model, node, steps)
    return False


def _is_new_list(model: "Model", node: cst.Name, steps: int) -> bool:
    """Whether a local name stands for a list that is filled with new modules and used nowhere else."""
    function = model.enclosing_function(node)
    reaching = model.reaching(node)
    if function is None or not reaching or any(item.scope.node is not function for item in reaching):
        return False
    for binding in reaching:
        is_assigned = binding.kind is BindingKind.AUGMENTED or assigned(binding) is not None
        if not is_assigned or binding.value is None or not _are_new(model, binding.value, True, steps - 1):
            return False
    return all(
        _only_grows(model, name, steps)
        for name in model.names_by_word.get(node.value, ())
        if name is not node and any(binding in reaching for binding in model.reaching(name))
    )


def _only_grows(model: "Model", name: cst.Name, steps: int) -> bool:
    """Whether one mention of a local list puts a new module into it, or looks at its length."""
    parent = model.tree.parent(name)
    above = None if parent is None else model.tree.parent(parent)
    if is_target(parent, name):
        return True
    match parent:
        case cst.AugAssign():
            return parent.target is name and _are_new(model, parent.value, True, steps - 1)
        case cst.Attribute(attr=cst.Name(value=word)) if isinstance(above, cst.Call) and above.func is parent:
            put = above.args[-1].value if above.args else None
            if word not in _GROWING or put is None:
                return False
            return _are_new(model, put, True, steps - 1) if word == "extend" else _is_new(model, put, steps - 1)
        case cst.Arg() if isinstance(above, cst.Call):
            return dotted_path(above.func) == "len"
    return False


def _is_fresh_name(model: "Model", node: cst.Name, steps: int, is_made: _Question = is_fresh) -> bool:
    """Whether a local name stands for a new module, and is put nowhere else but in another branch of an ``if``.

    It may be wrapped under its own name: ``layer = weight_norm(layer)``.
    """
    return _is_made_for_name(model, node, steps, is_made) and not _put_elsewhere(model, node)


def _is_made_for_name(model: "Model", node: cst.Name, steps: int, is_made: _Question) -> bool:
    bindings, function = _bindings_of(model, node), model.enclosing_function(node)
    if function is None or not bindings or any(not _makes_alone(item, function) for item in bindings):
        return False
    return all(
        item.value is not None and (_wrapped_in(model, item.value) is not None or is_made(model, item.value, steps - 1))
        for item in bindings
    )


def _put_elsewhere(model: "Model", node: cst.Name) -> list[cst.Name]:
    """The other places where what a local name stands for may be put somewhere."""
    bindings = _bindings_of(model, node)
    return [
        name
        for name in model.names_by_word.get(node.value, ())
        if name is not node
        and any(binding in bindings for binding in model.reaching(name))
        and not (
            model.tree.call_of(name) is not None
            or isinstance(parent := model.tree.parent(name), cst.Attribute)
            or is_target(parent, name)
            or is_set_up_by(model, parent)
            or _is_wrapped(model, name)
            or is_in_another_branch(model, node, name)
        )
    ]


def is_fresh_on_some_way(model: "Model", node: cst.BaseExpression, is_made: _Question = is_fresh) -> bool:
    """Whether a local name stands for a new module that nothing else gets on one way through the function at least.

    One ``if`` may give it away, ``heads.append(Head(layer))``, if it does not ask for the module, and leaves one way
    on which nobody gets it.
    """
    if not isinstance(node, cst.Name) or not _is_made_for_name(model, node, MAX_STEPS, is_made):
        return False
    places = _put_elsewhere(model, node)
    deciding = [_outermost_if(model, place, node) for place in places]
    if not places or None in deciding or len({id(item) for item in deciding}) > 1:
        return not places
    return any(True for way in _ways(deciding[0]) if not any(model.tree.is_below(place, way) for place in places))


def _outermost_if(model: "Model", place: cst.CSTNode, beside: cst.CSTNode) -> cst.If | None:
    """The ``if`` that decides about a place, and not about another one: none whose tests name what stands there."""
    found = [item for item in model.tree.ancestors(place) if isinstance(item, cst.If)]
    found = [item for item in found if not model.tree.is_below(beside, item)]
    outer = found[-1] if found else None
    if outer is None or model.enclosing_function(outer) is not model.enclosing_function(beside):
        return None
    word = place.value if isinstance(place, cst.Name) else ""
    tests = (part for test in _tests(outer) for part in subtree(test))
    return None if any(isinstance(part, cst.Name) and part.value == word for part in tests) else outer


def _tests(statement: cst.If) -> Iterator[cst.BaseExpression]:
    other: cst.CSTNode | None = statement
    while isinstance(other, cst.If):
        yield other.test
        other = other.orelse


def _ways(statement: cst.If | None) -> Iterator[cst.CSTNode]:
    """The blocks of which an ``if`` runs one and goes on behind it; an empty one where it may run none.

    With an ``elif`` and no ``else`` it surely runs one.
    """
    other: cst.CSTNode | None = statement
    while isinstance(other, cst.If):
        if not leaves(other.body):
            yield other.body
        other = other.orelse
    if isinstance(other, cst.Else) and not leaves(other.body):
        yield other.body
    elif other is None and statement is not None and statement.orelse is None:
        yield cst.Pass()  # where nothing stands


def _bindings_of(model: "Model", node: cst.Name) -> list[Binding]:
    """What binds a local name, and what it was bound to before it was wrapped."""
    found: list[Binding] = []
    pending: list[cst.Name] = [node]
    while pending:
        for binding in model.reaching(pending.pop()):
            if binding not in found:
                found.append(binding)
                inner = None if binding.value is None else _wrapped_in(model, binding.value)
                pending += [] if inner is None else [inner]
    return found


def _wrapped_in(model: "Model", value: cst.BaseExpression) -> cst.Name | None:
    """What is wrapped under its own name by a class, or a function of the library: ``x`` in ``x = Wrapper(x)``."""
    if not isinstance(value, cst.Call) or not isinstance(model.value(value.func), (ClassObject, Symbol)):
        return None
    names = (arg.value for arg in value.args if isinstance(arg.value, cst.Name))
    return next((name for name in names if _is_wrapped(model, name)), None)


def is_fresh_parameter(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a local name stands for a new parameter, and is put nowhere else."""
    return isinstance(node, cst.Name) and _is_fresh_name(model, node, MAX_STEPS, lambda m, n, _: makes_parameter(m, n))


def _makes_alone(binding: Binding, function: cst.FunctionDef) -> bool:
    """Whether a statement of the function binds one name to what is made there."""
    statement = binding.node
    is_of_one = isinstance(statement, cst.AnnAssign) or (
        isinstance(statement, cst.Assign) and len(statement.targets) == 1
    )
    return (
        is_of_one
        and binding.kind in (BindingKind.ASSIGN, BindingKind.ANNOTATED)
        and not isinstance(binding.value, cst.Name)
        and binding.scope.node is function
        and (
            isinstance(statement, cst.AnnAssign) or (isinstance(statement, cst.Assign) and len(statement.targets) == 1)
        )
    )


def _is_wrapped(model: "Model", name: cst.Name) -> bool:
    """Whether a module is given to what makes another one of it, which has its name from there on."""
    call = model.tree.call_given(name)
    statement = None if call is None else model.tree.parent(call)
    if call is None or not isinstance(statement, cst.Assign):
        return False
    targets = [target.target for target in statement.targets]
    return [dotted_path(target) for target in targets] == [name.value] and isinstance(model.value(call), Module)


def is_set_up_by(model: "Model", arg: cst.CSTNode | None) -> bool:
    """Whether an argument is given to a function that by its name sets initial values."""
    call = model.tree.parent(arg) if isinstance(arg, cst.Arg) else None
    if not isinstance(call, cst.Call):
        return False
    function = maker_or_self(model, call.func)
    called = (model.qualified_name(function) or dotted_path(function) or "").lower()
    return "init" in called or called.rpartition(".")[2].startswith("reset")


def maker_or_self(model: "Model", callee: cst.BaseExpression) -> cst.BaseExpression:
    """The class of the object that is called, where it is made there or has a name: of ``XavierUniform()(weight)`` and
    of ``draw = Normal()``, ``draw(weight)``; the callee itself where it is no such object.
    """
    bindings = model.reaching(callee) if isinstance(callee, cst.Name) else ()
    made = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    made = callee if made is None else made
    return made.func if isinstance(made, cst.Call) else callee


def _registers_inside(function: "FunctionInfo") -> bool:
    model = function.model
    return any(
        model.tree.is_below(call, function.node) for word in _REGISTERING for call in model.calls_by_word.get(word, ())
    )
