"""What the use of a thing says about it, where what binds it says nothing.

A value on which ``backward()`` is called without arguments is a tensor with one element; one with a method that
exists on tensors alone, or that is given to a library layer or to a function of tensors, is a tensor; one with
``parameters()`` is a module; what is counted up to, or in steps of, is a number. The use must see the very binding.
What a function or ``forward`` of the project is given is what the function declares its parameter to be, or what its
own uses of it prove.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.expressions.annotations import annotated, declares_no_tensor
from mllint.semantic.expressions.arguments import is_asked_about
from mllint.semantic.names.receivers import method_of_receiver
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Framework, Function, Module, Number, Object, Symbol, Tensor, Value
from mllint.syntax.iteration import sources
from mllint.syntax.shape import dotted_path, integer_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

MAX_CALLS = 3
"""Through how many calls of project functions an argument is followed."""

_MODULE_METHODS = frozenset({
    "parameters", "named_parameters", "named_modules", "sublayers", "named_sublayers",
})  # fmt: skip
_MODE_METHODS = frozenset({"train", "eval"})
_KIND_QUESTIONS = frozenset({"isinstance", "hasattr", "type", "callable"})
_BACKWARD_KEYWORDS = frozenset({"retain_graph", "create_graph", "inputs"})
_FOLLOWED = (BindingKind.ASSIGN, BindingKind.PARAMETER, BindingKind.LOOP, BindingKind.AUGMENTED)
# What functions of tensors call the tensor.
_TENSOR_PARAMETERS = frozenset({"input", "x", "target", "label"})
_OF_TENSORS = frozenset({"tensor", "scalar", "tensors"})
# Functions that take a number or a list of tensors in the place of the tensor.
_NOT_ONLY_TENSORS = frozenset({
    "add", "subtract", "sub", "multiply", "mul", "divide", "div", "true_divide", "floor_divide", "pow", "remainder",
    "fmod", "concat", "stack", "hstack", "vstack", "dstack", "column_stack", "row_stack", "add_n", "multi_dot",
    "broadcast_tensors", "meshgrid", "assign", "cartesian_prod", "block_diag", "einsum", "shape", "unstack",
})  # fmt: skip


class Uses:
    """The uses in a file that may say what something is, by name or dotted path and scope."""

    def __init__(self, model: "Model") -> None:
        self._model = model
        self._by_key: dict[str, dict[int, list[cst.BaseExpression]]] = {}
        self._proved: dict[tuple[int, int], Value | None] = {}

    def of(self, binding: Binding) -> Iterable[cst.BaseExpression]:
        """Where the key of a binding stands in the binding's scope, to be called upon or passed to a call."""
        by_scope = self._by_key.get(binding.key)
        if by_scope is None:
            by_scope = self._by_key[binding.key] = {}
            for node in _reads(self._model, binding.key):
                if _may_prove(self._model, node):
                    by_scope.setdefault(id(self._model.scope_of(node)), []).append(node)
        return by_scope.get(id(binding.scope), ())

    def proved(self, parameter: Binding, calls: int) -> Value | None:
        """As ``from_use`` of a parameter, found once for all that is passed for it through so many calls."""
        key = (id(parameter), calls)
        return self._model.derivation.once(
            self._proved, key, parameter, lambda item: from_use(self._model, item, calls)
        )


def from_use(model: "Model", binding: Binding, calls: int = 0) -> Value | None:
    """What the uses of a binding prove; ``None`` when they prove nothing.

    ``calls`` counts the calls through which the binding was reached.
    """
    framework = model.framework
    if framework is None or binding.kind not in _FOLLOWED:
        return None
    found: Value | None = None
    for node in model.uses.of(binding):
        # Where it is bound is known at once; what a use proves may lead through other files.
        if binding not in model.reaching(node):
            continue
        proof = _proof(model, framework, node, calls)
        if proof is None or (found is not None and not _has_one_element(proof)) or _is_guarded(model, node):
            continue
        if isinstance(proof, Tensor) and declares_no_tensor(model, binding):
            continue
        if _has_one_element(proof):
            return proof
        found = proof
    return found or _loader_by_use(model, binding)


def _loader_by_use(model: "Model", binding: Binding) -> Value | None:
    """The loader that a thing surely is which has a ``dataset``, and which a loop runs over."""
    if not any(_is_dataset_of(model, word, binding) for word in model.names_by_word.get("dataset", ())):
        return None
    for word in model.names_within(binding.key, binding.scope):
        loop = model.tree.nearest(word, cst.For)
        iterated = loop.iter if isinstance(loop, cst.For) and model.tree.is_inside(word, loop.iter) else None
        if iterated is not None and any(source.node is word for source in sources(iterated)):
            name = "paddle.io.DataLoader" if model.framework == "paddle" else "torch.utils.data.DataLoader"
            return Object("loader", name)
    return None


def _is_dataset_of(model: "Model", word: cst.Name, binding: Binding) -> bool:
    attribute = model.tree.parent(word)
    if not isinstance(attribute, cst.Attribute) or attribute.attr is not word:
        return False
    holder = attribute.value
    return isinstance(holder, cst.Name) and holder.value == binding.key and binding in model.reaching(holder)


def module_by_use(definition: "ClassInfo", name: str) -> Value | None:
    """The module that an attribute of a class surely is, because some method asks it for what only modules have."""
    for info in definition.lineage:
        model, framework = info.model, info.model.framework
        for word in model.names_by_word.get(name, ()) if framework is not None else ():
            attribute = model.tree.parent(word)
            if not isinstance(attribute, cst.Attribute) or attribute.attr is not word:
                continue
            if not _may_prove(model, attribute):
                continue
            method = method_of_receiver(model, attribute.value)
            if method is None or method.owner not in definition.lineage or _is_guarded(model, attribute):
                continue
            call = model.tree.parent(model.tree.parent(attribute))  # type: ignore[arg-type]
            if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.value is attribute:
                proof = _from_method(model, framework, call, call.func.attr.value)  # type: ignore[arg-type]
                if isinstance(proof, Module):
                    return proof
    return None


_CONDITIONALS: frozenset[type[cst.CSTNode]] = frozenset({cst.If, cst.IfExp})
_FUNCTIONS: frozenset[type[cst.CSTNode]] = frozenset({cst.FunctionDef, cst.Lambda})


def _is_guarded(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a use stands in a branch that is taken for one kind of thing only: it says nothing about the others."""
    path = dotted_path(node)
    child: cst.CSTNode = node
    for ancestor in model.tree.ancestors(node):
        kind = type(ancestor)  # most ancestors are neither, and `isinstance` of a class that they are not is slow
        if kind in _CONDITIONALS and child is not ancestor.test and _asks(ancestor.test, path):  # type: ignore[attr-defined]
            return True
        if kind in _FUNCTIONS:
            break
        child = ancestor
    return False


def _asks(test: cst.CSTNode, path: str | None) -> bool:
    """Whether a condition tests what kind of thing a name stands for."""
    for part in subtree(test):
        # By the type itself: what a pattern denies costs a call into `abc`.
        if part.__class__ is not cst.Call and part.__class__ is not cst.Attribute:
            continue
        match part:
            case cst.Call(func=cst.Name(value=word), args=[cst.Arg(value=asked), *_]) if word in _KIND_QUESTIONS:
                if dotted_path(asked) == path:
                    return True
            case cst.Attribute(value=asked, attr=cst.Name(value="dtype")) if dotted_path(asked) == path:
                return True
    return False


def _has_one_element(value: Value) -> bool:
    return isinstance(value, Tensor) and value.one_element


def _reads(model: "Model", key: str) -> Iterator[cst.BaseExpression]:
    """The places in the file where a name or dotted path of this text stands as a whole expression."""
    for name in model.names_by_word.get(key.rpartition(".")[2], ()):
        parent = model.tree.parent(name)
        if type(parent) is cst.Attribute and parent.attr is name:
            if "." in key and dotted_path(parent) == key:
                yield parent
        elif "." not in key and not (type(parent) is cst.Arg and parent.keyword is name):
            yield name


def _may_prove(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether it stands where ``_proof`` looks, as far as names tell."""
    parent = model.tree.parents.get(id(node))
    kind = parent.__class__  # asked of every use of every name, and `isinstance` of an abstract class is slow
    if kind is cst.Attribute:
        call = model.tree.parents.get(id(parent))
        return call.__class__ is cst.Call and parent.attr.value in _telling_methods()  # type: ignore[union-attr]
    if kind is cst.Subscript:
        return _is_cut_up(parent, node) and _may_prove(model, parent)  # type: ignore[arg-type]
    return kind is cst.Arg or (kind is cst.BinaryOperation and parent.operator.__class__ is cst.Modulo)  # type: ignore[union-attr]


@cache
def _telling_methods() -> frozenset[str]:
    return _MODULE_METHODS | _MODE_METHODS | {"backward", "size", "view"} | lookup.tensor_only_methods()


def _is_cut_up(parent: cst.CSTNode | None, node: cst.BaseExpression) -> bool:
    """Whether a thing is indexed along several dimensions: ``x[:, 0]``. What is a tensor then is part of one."""
    return isinstance(parent, cst.Subscript) and parent.value is node and len(parent.slice) > 1


def _proof(model: "Model", framework: Framework, node: cst.BaseExpression, calls: int) -> Value | None:
    """What one use says about the thing that is used."""
    parent = model.tree.parent(node)
    if type(parent) is cst.Attribute and parent.value is node:
        call = model.tree.parent(parent)
        if isinstance(call, cst.Call) and call.func is parent:
            return _from_method(model, framework, call, parent.attr.value)
        return None
    if isinstance(parent, cst.Arg):
        call = model.tree.parent(parent)
        return _from_argument(model, call, parent, calls) if isinstance(call, cst.Call) else None
    if isinstance(parent, cst.Subscript) and _is_cut_up(parent, node):
        part = _proof(model, framework, parent, calls)
        return Tensor(part.framework, scalar=False) if isinstance(part, Tensor) else None
    if isinstance(parent, cst.BinaryOperation) and parent.right is node:  # `step % every`
        return Number() if isinstance(model.value(parent.left), Number) else None
    return None


def is_of_tensors(model: "Model", method: str) -> bool:
    """Whether a method of this name exists on tensors alone, and no function of the file has the name."""
    return method in lookup.tensor_only_methods() and method not in model.function_names


def _from_method(model: "Model", framework: Framework, call: cst.Call, method: str) -> Value | None:
    if method == "backward":
        return Tensor(framework, True, one_element=True) if _is_plain_backward(call) else None
    if method not in _MODE_METHODS and type(model.tree.parent(call)) is cst.Expr:
        return None  # it does nothing to a tensor: what is called so may well be something else
    if is_of_tensors(model, method):
        return Tensor(framework)
    if method == "size" and framework == "torch" and len(call.args) == 1:
        return Tensor(framework) if integer_literal(call.args[0].value) is not None else None
    if method == "view" and framework == "torch" and call.args and method not in model.function_names:
        # An array's `view` takes a dtype.
        return Tensor(framework) if integer_literal(call.args[0].value) is not None else None
    is_switch = method in _MODE_METHODS and _is_mode(call) and not _gives_another(model, call)
    if (method in _MODULE_METHODS and not any(arg.keyword is None for arg in call.args)) or is_switch:
        return Module(framework, wrappers=("?",))
    return None


def _gives_another(model: "Model", call: cst.Call) -> bool:
    """Whether what a method gives gets a name of its own, ``best = trainer.train()``: a module would give itself."""
    statement = model.tree.parent(call)
    if not isinstance(statement, cst.Assign) or not isinstance(call.func, cst.Attribute):
        return False
    receiver = dotted_path(call.func.value)
    return receiver is not None and all(dotted_path(item.target) != receiver for item in statement.targets)


def _from_argument(model: "Model", call: cst.Call, arg: cst.Arg, calls: int) -> Value | None:
    """A tensor, where a layer, a function of tensors or a project function that needs one is given the thing itself."""
    if arg.star or any(item.star == "*" for item in call.args):
        return None
    callee = model.value(call.func)
    match callee:
        case Symbol(name="builtins.range"):
            return Number()
        case Symbol():
            return _from_function(callee.name, call, arg)
        case Function():
            return _from_parameter(callee.definition, call, arg, 0 if callee.receiver is None else 1, calls)
        case Module(definition=definition, wrappers=()) if definition is not None:
            forward = definition.called
            return None if forward is None else _from_parameter(forward, call, arg, 1, calls)
    if not isinstance(callee, Module) or callee.name is None or callee.wrappers:
        return None
    fact = lookup.class_(callee.name)
    if fact is None or fact.called not in _OF_TENSORS:
        return None
    if fact.kind == "loss" or (fact.kind == "layer" and arg is call.args[0]):
        return Tensor(callee.framework)
    return None


def _from_parameter(info: "FunctionInfo", call: cst.Call, arg: cst.Arg, skipped: int, calls: int) -> Value | None:
    """The tensor that a project function proves its parameter to be; ``skipped`` parameters are filled by the call."""
    if calls >= MAX_CALLS or not info.is_transparent:
        return None
    position = call.args.index(arg) + skipped
    for index, parameter in enumerate(info.parameters):
        name = parameter.name.value
        if name == arg.keyword.value if arg.keyword is not None else index == position:
            bound = [item for item in info.scope.bindings.get(name, ()) if item.kind is BindingKind.PARAMETER]
            if len(bound) != 1 or is_asked_about(info.model, info, parameter):
                return None
            proof = _declared(info.model, parameter) or info.model.uses.proved(bound[0], calls + 1)
            return Tensor(proof.framework) if isinstance(proof, Tensor) else None
    return None


def _declared(model: "Model", parameter: cst.Param) -> Value | None:
    return None if parameter.annotation is None else annotated(model, parameter.annotation.annotation)


def _from_function(name: str, call: cst.Call, arg: cst.Arg) -> Value | None:
    framework = lookup.framework_of(name)
    fact = lookup.function(name) if framework in ("torch", "paddle") else None
    if fact is None or fact.returns not in _OF_TENSORS or framework == "numpy" or framework is None:
        return None
    if name.rpartition(".")[2] in _NOT_ONLY_TENSORS:
        return None
    parameters = fact.parameters.split(" *")[0].split()
    if arg.keyword is not None:
        parameter = arg.keyword.value
    else:
        position = call.args.index(arg)
        parameter = parameters[position] if position < len(parameters) else ""
    # `target` and `label` may be anything in functions that are no losses.
    is_loss = parameters[:2] in (["input", "target"], ["input", "label"])
    if parameter not in _TENSOR_PARAMETERS or (parameter in ("target", "label") and not is_loss):
        return None
    return Tensor(framework)


def _is_plain_backward(call: cst.Call) -> bool:
    return all(arg.keyword is not None and arg.keyword.value in _BACKWARD_KEYWORDS for arg in call.args)


def _is_mode(call: cst.Call) -> bool:
    """``train()``, ``train(True)``, ``eval()``: with any other argument it is another library's method."""
    return not call.args or (
        len(call.args) == 1
        and isinstance(call.args[0].value, cst.Name)
        and call.args[0].value.value in ("True", "False")
    )
