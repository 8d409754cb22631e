"""Loops at a glance: whether one may call a model with what it binds, to go by the text of its file; and for what a
loader is, training or evaluation, to go by how its dataset was made.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import LOADING
from mllint.semantic.events.applied import module_applied
from mllint.semantic.events.kinds import may_name_module
from mllint.semantic.events.makers import makers_of
from mllint.semantic.events.things import Frame
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.flow import is_about_data
from mllint.semantic.graph.data_sources import yields_data
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.training.passes_out_of_sight import may_be_pass_out_of_sight
from mllint.semantic.training.pieces import is_fed_piece, is_piecewise, pieces_of
from mllint.semantic.training.relevance import calls_what_matters, is_pass, matters
from mllint.semantic.values import Function, Instance, Method, Module, as_called, functions_of, is_object
from mllint.syntax.iteration import run_over, sources
from mllint.syntax.shape import all_given, argument, called_on, constant, dotted_path, last_word, string_literal
from mllint.syntax.walk import names_in, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_TELLING = (
    "eval", "train", "backward", "no_grad", "inference_mode", "minimize", "from_pretrained", *LOADING,
)  # fmt: skip
"""What a file calls in which anything is known of the modes of models, of gradients, or of what models are for."""
_TAKEN_OFF = ("detach", "numpy")
"""What it calls where numbers leave the framework for good: nobody trains with them."""
_NAMED_EVALUATION = re.compile(
    r"(?:^|_)(?:test|testing|tst|val|vali|valid|validate|validation|eval|evaluate|evaluation|dev)(?:_|\d|$)"
)
_RUN_TOGETHER = re.compile(r"(?:(?<=_)|^)(test|vali?|valid|eval|dev)(?=(?:data)?(?:loader|set)(?:_|\d|s?$))")
"""Names that are written in one: ``testloader``, ``valdataloader``, ``devset``."""
_NEXT = ("next", "__next__")
_BINDING = (cst.Assign, cst.AnnAssign, cst.For)
FILLING = ("append", "extend")
"""Methods by which a list is filled."""
_OF_MODULES = ("__init__", "forward")
"""Methods that make a module, or are one forward pass: their loops run over layers, or parts of one batch."""


def may_evaluate(model: "Model", node: cst.For) -> bool:
    """Whether a loop may call a model, to go by its text: what this denies need not be followed."""
    if not _is_asked(model, node) or _is_over_parts(model, model.enclosing_function(node), node):
        return False
    known = model.runs.may_evaluate
    if id(node) not in known:
        known[id(node)] = _may_evaluate(model, node)
    return known[id(node)]


def _is_asked(model: "Model", node: cst.For | cst.CompFor) -> bool:
    """Whether a loop stands where it may be one over data, in a file that says anything of training or evaluation."""
    function = model.enclosing_function(node)
    name = "" if function is None else function.name.value
    if name in _OF_MODULES or is_within_step(model, function):
        return False
    said = model.calls_by_word
    is_said = any(word in said for word in _TELLING) or all(word in said for word in _TAKEN_OFF)
    is_said = is_said or _is_in_evaluation(model, name) or any(map(is_named_evaluation, names_in(node.iter)))
    return is_said or (isinstance(node, cst.For) and _is_told_elsewhere(model, function, node))


def _is_told_elsewhere(model: "Model", function: cst.FunctionDef | None, node: cst.For) -> bool:
    """Whether a function is given both a loader that a loop runs over and what it calls with each batch, and another
    file, which names it, says what that is for.
    """
    if function is None or model.project is None:
        return False
    given = {item.name.value for item in model.function_info(function).parameters}
    if not given & names_in(node.iter) or not is_spelled_as_loader(model, node.iter):
        return False
    fed = names_in(node.target)
    is_fed = any(
        isinstance(call.func, cst.Name) and call.func.value in given and any(fed & names_in(arg) for arg in call.args)
        for call in model.tree.calls_in(node.body)
    )
    return is_fed and bool(model.project.importers(model.path, function.name.value))


def may_evaluate_each(model: "Model", clause: cst.CompFor) -> bool:
    """Whether a comprehension over a loader may call a model with each batch."""
    if not _is_asked(model, clause):
        return False
    bound = names_in(clause.target)
    whole = next(item for item in model.tree.ancestors(clause) if isinstance(item, cst.BaseComp))
    fed = (call for call in model.tree.calls_in(whole) if any(bound & names_in(arg) for arg in call.args))
    if not any(may_be_model(model, call.func) for call in fed):
        return False
    return is_spelled_as_loader(model, clause.iter) or is_object(model.value(run_over(clause.iter)), "loader")


def may_evaluate_until_done(model: "Model", node: cst.While) -> bool:
    """Whether a ``while`` may call a model that is in evaluation mode, to go by its text."""
    return "eval" in model.calls_by_word and any(
        may_be_model(model, call.func) for call in model.tree.calls_in(node.body)
    )


def is_within_step(model: "Model", function: cst.FunctionDef | None) -> bool:
    """Whether a method is a part of one forward pass, as its name says, or of an optimizer."""
    owner = None if function is None else model.function_info(function).owner
    if function is None or owner is None:
        return False
    return owner.kind == "optimizer" or (function.name.value.startswith("forward_") and owner.framework is not None)


def _is_over_parts(model: "Model", function: cst.FunctionDef | None, node: cst.For) -> bool:
    """Whether a method of a module goes over the items of a dict: parts of one input, or what belongs to its layers."""
    owner = None if function is None else model.function_info(function).owner
    is_of_module = owner is not None and owner.framework is not None
    return is_of_module and isinstance(node.iter, cst.Call) and last_word(node.iter.func) == "items"


def _is_in_evaluation(model: "Model", name: str) -> bool:
    """Whether a function is called an evaluation: another file may train what it is given. No test case is meant."""
    return is_named_evaluation(name) and not (name.startswith("test_") and is_test_code(model))


def is_named_evaluation(name: str) -> bool:
    """Whether a name is one of what evaluates, or of what is evaluated on. Only a hint."""
    return _NAMED_EVALUATION.search(_snake(name)) is not None


def _snake(name: str) -> str:
    return _RUN_TOGETHER.sub(r"\1_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def _may_evaluate(model: "Model", node: cst.For) -> bool:
    if all(_is_no_pass(model, call) for call in model.tree.calls_in(node.body)):
        return False  # whatever is given to it: no event comes of any of them
    if any(may_be_model(model, call.func) for call in _fed(model, node)):
        return True
    # What a loader gives may also reach the model through an object that keeps it.
    return (is_spelled_as_loader(model, node.iter) or is_object(model.value(node.iter), "loader")) and any(
        may_be_model(model, call.func) for call in model.tree.calls_in(node.body)
    )


def _is_no_pass(model: "Model", call: cst.Call) -> bool:
    """Whether a call is surely none of a module, nor of what calls one: of a method of data, or of a library."""
    if is_about_data(model, call):
        return True
    is_pass = last_word(call.func) == "forward" or module_applied(model, call) is not None
    return not is_pass and model.library_name(call.func) is not None


def _fed(model: "Model", node: cst.For) -> Iterator[cst.Call]:
    """The calls in a loop that are given what it binds, what it takes from an iterator, or what is made of that.

    They are found from the names: of all that stands in a loop, little holds what it binds.
    """
    scope = model.scope_of(node)
    if is_piecewise(node):
        pending = set(pieces_of(model, node))
        for call in model.tree.calls_in(node.body):
            statement = model.tree.parent(call)
            if isinstance(statement, cst.Assign) and is_next(call):
                pending |= {name for target in statement.targets for name in names_in(target.target)}
            if any(is_fed_piece(model, node, arg.value) for arg in call.args):
                yield call
    else:
        pending = names_in(node.target)
    for call in (call for word in _NEXT for call in model.calls_by_word.get(word, ())):
        for parent in _holders(model, call, node)[:2]:
            if type(parent) is cst.Call:
                yield parent
            elif type(parent) is cst.Assign:
                pending |= {name for target in parent.targets for name in names_in(target.target)}
    if "iter" in model.calls_by_word:
        calls = model.tree.calls_in(node.body)
        yield from (call for call in calls if any(_is_iterator(model, part) for part in all_given(call)))
    seen: set[str] = set()
    while pending:
        word = min(pending)  # the work shall be the same in each process, and so the answer comes from the same call
        pending.discard(word)
        seen.add(word)
        for name in model.names_within(word, scope):
            child: cst.CSTNode = name
            is_called = False
            for parent in _holders(model, name, node):
                if type(parent) is cst.Call:
                    is_called = is_called or child is name
                    if child is not parent.func or (type(child) is cst.Attribute and child.attr is not name):
                        yield parent
                        pending |= filled_by(parent) - seen
                # `layer(x)` is made of `x`.
                elif not is_called:
                    pending |= _bound_to(parent, child) - seen
                child = parent


def _bound_to(node: cst.CSTNode, value: cst.CSTNode) -> set[str]:
    """The names that an assignment or a loop binds to a value, or to what is in it, or puts it into."""
    kind = node.__class__
    if kind is cst.Assign and node.value is value:  # type: ignore[attr-defined]
        return {name for target in node.targets for name in names_in(target.target)}  # type: ignore[attr-defined]
    is_bound = (kind is cst.AnnAssign and node.value is value) or (kind is cst.For and node.iter is value)  # type: ignore[attr-defined]
    return names_in(node.target) if is_bound else set()  # type: ignore[attr-defined]


def _holders(model: "Model", node: cst.CSTNode, loop: cst.For) -> list[cst.CSTNode]:
    """What holds a node of a loop's body, from the inside out; nothing for what stands elsewhere."""
    found: list[cst.CSTNode] = []
    for parent in model.tree.ancestors(node):
        if parent is loop:
            return found if found and found[-1] is loop.body else []
        found.append(parent)
    return []


def _is_iterator(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a name stands for ``iter(...)``: what it is given to may take the next batch from it."""
    if "iter" not in model.calls_by_word or type(node) is not cst.Name:
        return False
    made = (binding.value for binding in model.reaching(node))
    return any(type(value) is cst.Call and dotted_path(value.func) == "iter" for value in made)


_PASSES = frozenset({"forward", *lookup.APPLYING})
"""Words by which a module is called that is not called itself."""


def may_be_model(model: "Model", callee: cst.BaseExpression) -> bool:
    """Whether a callee may be a model, to go by its text and its file."""
    path = dotted_path(callee)
    if path is None:
        return isinstance(callee, cst.Subscript) or (
            isinstance(callee, cst.Attribute) and _may_run_model(model, callee.attr.value)
        )
    if is_named_as_module(model, path):
        return True
    last, value = path.rpartition(".")[2], model.value(callee)
    functions = functions_of(as_called(value))
    if functions:
        return any(
            matters(function.definition) or is_pass(function) or _hands_to_own(function) for function in functions
        )
    if isinstance(value, Module) or _may_run_model(model, last):
        return True
    return (value is None or isinstance(value, Method)) and may_be_pass_out_of_sight(model, callee)


def _hands_to_own(called: Function) -> bool:
    """Whether a method of a base class calls one that matters in the class of its object."""
    definition = called.receiver.definition if isinstance(called.receiver, Instance) else None
    return definition is not None and calls_what_matters(called.definition, definition)


def is_named_as_module(model: "Model", path: str) -> bool:
    """Whether what is called has the name of a module, or the file uses it as one elsewhere. Only a hint."""
    last = path.rpartition(".")[2]
    return last in _PASSES or may_name_module(last) or path in model.runs.used_as_modules


def may_be_event_of_module(model: "Model", call: cst.Call) -> bool:
    """Whether a call itself may be a forward pass in some run, and not only what it calls.

    What its file knows of a callee that is no module, it is in every run: no caller knows it better.
    """
    callee = call.func
    if last_word(callee) in _PASSES:
        return True
    if isinstance(callee, cst.Name) and (callee.value in model.runs.kept_methods or _is_parameter(model, callee)):
        return True  # `step = net.forward`, also where a caller gives it
    value = model.value(callee)
    if isinstance(value, Method):  # `model.compute_loss(batch)`: the loss that it gives is one of a forward pass
        return "backward" in model.calls_by_word
    return value is None or isinstance(value, Module)


def _is_parameter(model: "Model", name: cst.Name) -> bool:
    function = function_around(model, name)
    return function is not None and any(item.name.value == name.value for item in function.parameters)


def may_be_forward_pass(model: "Model", call: cst.Call) -> bool:
    """Whether a call may be one of a model itself, and of no function that runs one, to go by its text and its file."""
    path = dotted_path(call.func)
    if path is None:
        return may_be_model(model, call.func) and may_be_event_of_module(model, call)
    last = path.rpartition(".")[2]
    if last == "forward":
        return True
    value = model.value(call.func)
    if value is not None:
        return isinstance(value, Module)
    return may_name_module(last) or path in model.runs.used_as_modules


def _may_run_model(model: "Model", name: str) -> bool:
    """Whether a function of the file has a name, and anything happens in it that a training is about."""
    return name in model.function_names and any(
        matters(model.function_info(function))
        for function in model.tree.by_type[cst.FunctionDef]
        if function.name.value == name
    )


def is_spelled_as_loader(model: "Model", iterable: cst.BaseExpression) -> bool:
    """Whether what a loop runs over is called a loader, or a name is bound to what is."""
    return yields_data(iterable) or yields_data(as_bound(model, iterable))


def as_bound(model: "Model", iterable: cst.BaseExpression) -> cst.BaseExpression:
    """What a name is bound to that a loop runs over, ``bar = tqdm(loader)``, also behind ``enumerate(bar)``; everything
    else as it is.
    """
    behind = run_over(iterable)
    bindings = model.reaching(behind) if isinstance(behind, cst.Name) else ()
    if len(bindings) != 1 or bindings[0].path or bindings[0].kind not in (BindingKind.ASSIGN, BindingKind.WITH):
        return iterable
    return bindings[0].value if isinstance(bindings[0].value, cst.Call) else iterable


def fed_names(model: "Model", node: cst.For) -> set[str]:
    """The names in a loop that hold what it binds, what it takes from an iterator, or what is made of that."""
    known = model.runs.fed_names
    if id(node) not in known:
        known[id(node)] = made_of(
            set(pieces_of(model, node)) if is_piecewise(node) else names_in(node.target), node.body
        )
    return known[id(node)]


def made_of(names: set[str], body: cst.CSTNode) -> set[str]:
    """Some names, and those in some code that hold what is made of them, or what it takes from an iterator.

    So do those of lists that it fills with that, to make a batch of many.
    """
    found = set(names)
    for item in subtree(body):
        value = getattr(item, "iter" if type(item) is cst.For else "value", None)
        if type(item) in _BINDING and value is not None and (is_next(value) or found & data_names(value)):
            found |= _bound_to(item, value)
        elif type(item) is cst.Call and (filled := filled_by(item)):
            found |= filled if any(found & data_names(arg.value) for arg in item.args) else set()
    return found


def filled_by(call: cst.Call) -> set[str]:
    """The name of the list that a call puts something into: of ``rows.append(row)``."""
    holder = called_on(call) if last_word(call.func) in FILLING else None
    return {holder.value} if isinstance(holder, cst.Name) else set()


def data_names(node: cst.BaseExpression) -> set[str]:
    """The names in an expression but for the functions that it calls: `layer(x)` is made of `x`."""
    parts = list(subtree(node))
    called = {id(item.func) for item in parts if type(item) is cst.Call}
    return {item.value for item in parts if type(item) is cst.Name and id(item) not in called}


def is_next(node: cst.BaseExpression) -> bool:
    """``next(batches)``, ``batches.next()``, ``loader.get_batch(size)``, ``self.loader.get_batch(size)``."""
    if not isinstance(node, cst.Call):
        return False
    holder = called_on(node)
    return last_word(node.func) in _NEXT or (isinstance(holder, (cst.Name, cst.Attribute)) and yields_data(holder))


TRAINING = "training"
EVALUATION = "evaluation"

_FLAGS = frozenset({"train", "is_train", "training", "is_training", "istrain", "train_mode"})
_SPLITS = frozenset({"split", "mode", "phase", "subset", "image_set", "partition", "set", "split_name", "stage"})
_OF_SPLIT = {
    **dict.fromkeys(("train", "training", "trainval"), TRAINING),
    **dict.fromkeys(
        ("test", "val", "valid", "validation", "eval", "dev", "testing", "evaluation", "test-dev"), EVALUATION
    ),
}
_LOOKUPS = frozenset({"get", "getattr", "getlist", "pop", "setdefault"})
"""What reads a setting: a word that it is given is the name of the setting."""
_STEPS = 8


def role_of(frame: Frame, iterable: cst.BaseExpression) -> str | None:
    """Whether a loop runs over training or evaluation data; ``None``: nothing says."""
    return _role(frame, iterable, _STEPS)


def _role(frame: Frame, node: cst.BaseExpression, steps: int) -> str | None:
    if steps <= 0:
        return None
    if isinstance(node, cst.Call):
        first = next(sources(node)).node
        return _of_call(frame, node, steps) if first is node else _role(frame, first, steps - 1)
    thing = frame.thing(node)
    if thing is None:
        return None
    makers = [maker for root in thing.roots for maker in makers_of(root, thing.path)]
    roles = {_of_binding(maker, steps) for maker in makers}
    return roles.pop() if len(roles) == 1 else None


def _of_binding(binding: Binding, steps: int) -> str | None:
    if binding.value is None or binding.path or binding.kind not in (BindingKind.ASSIGN, BindingKind.ANNOTATED):
        return None
    model = binding.scope.model
    return _role(Frame(model, function_around(model, binding.value)), binding.value, steps - 1)


def _of_call(frame: Frame, call: cst.Call, steps: int) -> str | None:
    if last_word(call.func) in _LOOKUPS:
        return None
    value = frame.value(call)
    if is_object(value, "loader"):
        dataset = argument(call, 0, "dataset")
        return None if dataset is None else _role(frame, dataset.value, steps - 1)
    return _of_dataset(frame, call)


def _of_dataset(frame: Frame, call: cst.Call) -> str | None:
    """What the arguments of a dataset's constructor say: ``train=False``, ``split="test"``."""
    known = frame.model.qualified_name(call.func)
    names = () if known is None else lookup.parameters(known)
    for index, arg in enumerate(call.args):
        if arg.star:
            return None
        keyword = arg.keyword.value if arg.keyword is not None else names[index] if index < len(names) else ""
        flag, text = constant(arg.value), (string_literal(arg.value) or "").lower()
        if keyword in _FLAGS and isinstance(flag, bool):
            return TRAINING if flag else EVALUATION
        if text in _OF_SPLIT and (keyword in _SPLITS or arg.keyword is None):
            return _OF_SPLIT[text]
    return None
