"""What a parameter is given: what the calls in the file agree on."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.files.testing import may_be_of_tests
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.values import ClassObject, Function, Nothing, Value, functions_of, join
from mllint.syntax.shape import argument, dotted_path, has_star_arguments, last_word

if TYPE_CHECKING:
    from mllint.semantic.model import Model

KIND_QUESTIONS = ("hasattr", "isinstance", "type", "callable")
"""What is called to ask what something is."""
MAX_CALLS = 12
"""With more calls than this a parameter counts as unknown."""


def given(model: "Model", info: FunctionInfo, parameter: cst.Param) -> Value | None:
    """What all calls of the function in its file give for a parameter; ``None`` when there are none or they disagree.

    A function that is also passed around, or changed by a decorator that is not known, may be called from anywhere,
    and one that asks what the parameter is reckons with other things than its file gives it.
    """
    if not info.is_transparent or is_asked_about(model, info, parameter) or is_passed_around(model, info):
        return None
    result: Value | None = None
    seen = False
    for call, skipped in calls_of(model, info):
        value = _argument(model, info, parameter, call, skipped)
        if value is None:
            return None
        result = value if not seen else join(result, value)
        seen = True
        if result is None:
            return None
    return None if isinstance(result, Nothing) else result


def passed_for(model: "Model", info: FunctionInfo, parameter: cst.Param) -> list[cst.BaseExpression]:
    """What the calls of a function in its file pass for a parameter, as far as they are known."""
    found = (_passed(info, parameter, call, skipped) for call, skipped in calls_of(model, info))
    return [arg.value for arg in found if arg is not None]


def argument_for(info: FunctionInfo, parameter: cst.Param, call: cst.Call, skipped: int) -> cst.BaseExpression | None:
    """What a call gives for a parameter; ``None`` where it leaves it at its default."""
    arg = _passed(info, parameter, call, skipped)
    return None if arg is None else arg.value


def passed_anywhere(info: FunctionInfo, parameter: cst.Param) -> "Iterator[tuple[Model, cst.BaseExpression]]":
    """The same for the constructor of a class, with the calls in the files that import it."""
    word = info.name if info.owner is None else info.owner.name
    for model in (info.model, *info.model.importers(word)):
        yield from ((model, node) for node in passed_for(model, info, parameter))


def given_to(info: FunctionInfo, call: cst.Call, arg: cst.Arg, skipped: int) -> cst.Param | None:
    """The parameter for which a call gives an argument; ``skipped`` leading ones are filled by the call itself."""
    if has_star_arguments(call):
        return None
    if arg.keyword is not None:
        found = [item for item in info.parameters if item.name.value == arg.keyword.value]
    else:
        position = call.args.index(arg) + skipped
        found = list(info.parameters[position : position + 1])
    return found[0] if found else None


def takes(info: FunctionInfo, call: cst.Call) -> bool:
    """Whether a function, or a method of some object, can be called so: ``net.train()`` is no ``train(self, data)``."""
    if has_star_arguments(call):
        return True
    skipped = 0 if info.self_name is None else 1
    positional = info.parameters[skipped:]
    given = [arg for arg in call.args if arg.keyword is None]
    named = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    allowed = {item.name.value for item in (*positional[len(given) :], *info.node.params.kwonly_params)}
    if len(given) > len(positional) and not isinstance(info.node.params.star_arg, cst.Param):
        return False
    if named - allowed and info.node.params.star_kwarg is None:
        return False
    missing = {item.name.value for item in positional[len(given) :] if item.default is None}
    return missing <= named


def is_asked_about(model: "Model", info: FunctionInfo, parameter: cst.Param) -> bool:
    """Whether the function tests what kind of thing the parameter is."""
    return (id(info.node), parameter.name.value) in _asked_about(model)


@worked_out_once
def _asked_about(model: "Model") -> set[tuple[int, str | None]]:
    """The functions of the file (by the ``id`` of their nodes) with each name whose kind they ask about."""
    calls = (call for word in KIND_QUESTIONS for call in model.calls_by_word.get(word, ()))
    return {
        (id(model.enclosing_function(call)), dotted_path(call.args[0].value))
        for call in calls
        if call.args and isinstance(call.func, cst.Name)
    }


def calls_of(model: "Model", info: FunctionInfo) -> list[tuple[cst.Call, int]]:
    """The calls that surely reach the function, each with how many leading parameters the call itself fills."""
    if info.name == "__init__" and info.owner is not None:
        found = [(call, 1) for call in _making(model, info.owner)]
    else:
        is_free = info.is_static
        found = [(call, 0 if is_free or called.receiver is None else 1) for call, called in _calling(model, info)]
    return found if len(found) <= MAX_CALLS else []


def _calling(model: "Model", info: FunctionInfo) -> Iterator[tuple[cst.Call, Function]]:
    for call in model.calls_by_word.get(info.name, ())[: 4 * MAX_CALLS]:
        callee = model.value(call.func)
        if isinstance(callee, Function) and callee.definition is info:
            yield call, callee


def _making(model: "Model", owner: ClassInfo) -> Iterator[cst.Call]:
    """The calls that make an object whose constructor is that of a class: of itself, or of one that inherits it; and
    ``super().__init__(...)`` in one that has its own.
    """
    heirs = _heirs(model, owner.name)
    for word in (owner.name, *heirs, "cls"):
        for call in model.calls_by_word.get(word, ())[: MAX_CALLS + 1]:
            callee = model.value(call.func)
            made = callee.definition.method("__init__") if isinstance(callee, ClassObject) else None
            if made is not None and _is_of(made, owner):
                yield call
    for call in model.calls_by_word.get("__init__", ()) if heirs else ():
        called = model.value(call.func)
        if isinstance(called, Function) and called.receiver is not None and _is_of(called.definition, owner):
            yield call


def _is_of(method: FunctionInfo, owner: ClassInfo) -> bool:
    """Whether a method stands in the body of a class."""
    return method.owner is not None and method.owner.is_same_as(owner)


def _heirs(model: "Model", name: str) -> list[str]:
    """The names of the classes of a file that derive from one, by the names of their bases."""
    found = [name]
    classes = model.tree.by_type.get(cst.ClassDef, [])
    for base in found:  # which grows
        for node in classes:
            is_heir = any(last_word(arg.value) == base for arg in node.bases)
            if is_heir and node.name.value not in found:
                found.append(node.name.value)
    return found[1:]


def functions_called(model: "Model", code: cst.CSTNode) -> Iterator[FunctionInfo]:
    """The functions of the project that some code calls, or may call, each as often as it does."""
    for call in model.tree.calls_in(code):
        yield from (function.definition for function in functions_of(model.value(call.func)))


def _argument(model: "Model", info: FunctionInfo, parameter: cst.Param, call: cst.Call, skipped: int) -> Value | None:
    if has_star_arguments(call):
        return None
    passed = _passed(info, parameter, call, skipped)
    if passed is not None:
        return model.value(passed.value)
    return None if parameter.default is None else model.value(parameter.default)


def _passed(info: FunctionInfo, parameter: cst.Param, call: cst.Call, skipped: int) -> cst.Arg | None:
    positions = [index for index, candidate in enumerate(info.parameters) if candidate is parameter]
    return argument(call, positions[0] - skipped if positions else None, parameter.name.value)


def is_passed_around(model: "Model", info: FunctionInfo) -> bool:
    """Whether the function's name is used otherwise than to define, import or call it."""
    if info.owner is not None:
        return False
    for name in model.names_by_word.get(info.name, ()):
        parent = model.tree.parent(name)
        if name is info.node.name or isinstance(parent, (cst.ImportAlias, cst.Attribute, cst.Param, cst.FunctionDef)):
            continue
        if isinstance(parent, cst.Call) and parent.func is name:
            continue
        if isinstance(parent, cst.Arg) and parent.keyword is name:
            continue
        value = model.value(name)
        if value is None or (isinstance(value, Function) and value.definition is info):
            return True
    return False


def callers(info: FunctionInfo, *, at_home: bool = False) -> "Iterator[tuple[Model, FunctionInfo]]":
    """The file of a function, and those that import it, each with the function as it is seen from there.

    Not those of tests: these may ask for anything. ``at_home``: no others but its own.
    """
    yield info.model, info
    project = info.model.project
    if project is None or at_home:
        return
    others = info.model.importers(info.name if info.owner is None else info.owner.name)
    files = [other for other in others if not may_be_of_tests(other.path, project.root)]
    seen = _as_sibling(info) if files else None
    if seen is not None:
        yield from ((other, seen) for other in files)


def _as_sibling(info: FunctionInfo) -> FunctionInfo | None:
    """The same function in the model of its file that other files of the project are given."""
    model = info.model.neighbour(info.model.path)
    if model is None or model.source.text != info.model.source.text:
        return None
    node = model.tree.twin(info.node, info.model.tree)
    return None if node is None else model.function_info(node)
