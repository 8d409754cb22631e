"""Loads that leave keys out on purpose, by what stands around them."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.handling import MAX_NAMES, uses_in_function
from mllint.semantic.checkpoints.loads import Load, load_of
from mllint.semantic.names.conditions import is_in_another_branch
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import without_narrowing
from mllint.semantic.values import Function, Module
from mllint.syntax.shape import dotted_path, fingerprint, last_word, string_literal, subscript_index
from mllint.syntax.walk import children, subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_PARTS = 60
"""How many parts of an expression, and of what its names are bound to, are looked at."""

_DOWNLOADING = ("url", "download")
_PUBLISHED = re.compile(r"-[0-9a-f]{8,}\.")
"""What ``torch.hub`` looks for in the name of a file to check it."""
_BUILDERS = frozenset({"builtins.dict", "collections.OrderedDict"})
_READING = frozenset({"torch.load", "paddle.load"})


def is_download(load: Load) -> bool:
    """Whether what is loaded is downloaded by the code itself: the same file every time, known to whoever wrote it.

    So is one whose name tells its hash: ``resnet50-19c8e357.pth``.
    """
    parts = list(parts_of(load))
    if any(_PUBLISHED.search(part.value) for part in parts if isinstance(part, cst.SimpleString)):
        return True
    calls = [part for part in parts if isinstance(part, cst.Call)]
    return any(_downloads(call) or _calls_download(call, load.model) for call in calls) or _is_fetched_before(
        load, parts
    )


def parts_of(load: Load) -> Iterator[cst.CSTNode]:
    """What the dict is made of, behind the names that lead to it."""
    pending: list[cst.CSTNode] = [load.given]
    for _ in range(MAX_PARTS):
        if not pending:
            return
        part = pending.pop()
        yield part
        if isinstance(part, cst.Arg) and part.keyword is not None and part.keyword.value == "map_location":
            continue  # where it is put says nothing of what it is
        if isinstance(part, cst.BaseExpression):
            pending += [*_bound(part, load.model), *_in_file(part, load.model), *_filled_from(part, load.model)]
        pending += children(part)


def _filled_from(node: cst.BaseExpression, model: "Model") -> Iterator[cst.BaseExpression]:
    """What the loops go through that write entries into a dict: ``for k, v in loaded.items(): state[k] = v``."""
    for use in uses_in_function(node, model):
        item = model.tree.parent(use)
        if isinstance(item, cst.Subscript) and isinstance(model.tree.parent(item), cst.AssignTarget):
            yield from (ancestor.iter for ancestor in model.tree.ancestors(item) if isinstance(ancestor, cst.For))


def is_given_by_object(load: Load) -> bool:
    """Whether the dict is what a method of an object gives of which nothing is known, and no file is read for it.

    So the parts of several models come back as one.
    """
    bound = list(_bound(load.given, load.model)) or [load.given]
    calls = [value for value in bound if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute)]
    if len(calls) < len(bound) or any(load.model.value(call.func) is not None for call in calls):
        return False
    made = (part for part in parts_of(load) if isinstance(part, cst.Call))
    return not any(load.model.qualified_name(call.func) in _READING for call in made)


def _downloads(call: cst.Call) -> bool:
    name = (dotted_path(call.func) or "").rpartition(".")[2].lower()
    return any(word in name for word in _DOWNLOADING)


def _calls_download(call: cst.Call, model: "Model") -> bool:
    """Whether a function of the project downloads what it gives, at least where there is no file of it yet."""
    called = model.value(call.func)
    return isinstance(called, Function) and any(
        isinstance(node, cst.Call) and _downloads(node) for node in subtree(called.definition.node.body)
    )


def _is_fetched_before(load: Load, parts: list[cst.CSTNode]) -> bool:
    """Whether the function downloads the file where it is not there: ``if not exists(path): download(url)``."""
    model = load.model
    paths = {path for part in parts if (path := dotted_path(part)) is not None}
    function = model.enclosing_function(load.call)
    for call in model.tree.by_type[cst.Call]:
        if call is load.call:
            break
        if not _downloads(call) or model.enclosing_function(call) is not function:
            continue
        tests = [ancestor.test for ancestor in model.tree.ancestors(call) if isinstance(ancestor, cst.If)]
        if any(dotted_path(item) in paths for told in (*call.args, *tests) for item in subtree(told)):
            return True
    return False


def _bound(node: cst.BaseExpression, model: "Model") -> list[cst.BaseExpression]:
    return [
        binding.value
        for binding in without_narrowing(model.reaching(node))
        if binding.kind in (BindingKind.ASSIGN, BindingKind.WITH) and binding.value is not None
    ]


def _in_file(node: cst.BaseExpression, model: "Model") -> list[cst.BaseExpression]:
    """What the file binds a name to that a function of it reads: ``urls`` of ``torch.load(urls[name])``."""
    above = model.tree.parent(node)
    if not isinstance(node, cst.Name) or (isinstance(above, cst.Attribute) and above.attr is node):
        return []
    bindings = () if model.reaching(node) else model.scope(model.tree.module).bindings.get(node.value, ())
    return [item.value for item in bindings if item.kind is BindingKind.ASSIGN and item.value is not None]


def is_made_of_module(load: Load) -> bool:
    """Whether the dict was made by something that was given the module itself: it has seen which keys there are."""
    receiver = dotted_path(load.receiver)
    return receiver is not None and any(
        dotted_path(arg.value) == receiver for part in parts_of(load) if isinstance(part, cst.Call) for arg in part.args
    )


def is_shown_both(load: Load) -> bool:
    """Whether something in the function is given the module and the dict, and so may compare them."""
    model, wanted = load.model, {dotted_path(load.receiver), dotted_path(load.given)}
    function = model.enclosing_function(load.call)
    return None not in wanted and any(
        wanted <= {dotted_path(arg.value) for arg in call.args}
        for call in model.tree.by_type[cst.Call]
        if len(call.args) > 1 and model.enclosing_function(call) is function
    )


def is_relieved_of_entries(load: Load) -> bool:
    """Whether entries were taken out of the dict by name before: who does that knows what will be missing.

    That is ``state.pop("head")``, ``del state["head"]``, also of what the dict was called before, or in a loop over
    names that are written there.
    """
    model = load.model
    function = model.enclosing_function(load.call)
    names = {fingerprint(node) for node in (load.given, *_bound(load.given, model))}
    for call in model.calls_by_word.get("pop", ()):
        if not isinstance(model.tree.parent(call), cst.Expr) or model.enclosing_function(call) is not function:
            continue
        if not isinstance(call.func, cst.Attribute) or not call.args:
            continue
        if fingerprint(call.func.value) in names and _is_written_there(call.args[0].value, model):
            return True
    for statement in model.tree.by_type.get(cst.Del, ()):
        item = statement.target
        if not isinstance(item, cst.Subscript) or model.enclosing_function(statement) is not function:
            continue
        key = subscript_index(item)
        if key is not None and fingerprint(item.value) in names and _is_written_there(key, model):
            return True
    return False


def _is_written_there(key: cst.BaseExpression, model: "Model") -> bool:
    """Whether a key is a string in the code, alone or one of those that a loop goes through."""
    if isinstance(key, cst.FormattedString) or string_literal(key) is not None:
        return True
    bindings = model.reaching(key) if isinstance(key, cst.Name) else ()
    return bool(bindings) and all(
        binding.kind is BindingKind.LOOP
        and isinstance(binding.value, (cst.List, cst.Tuple, cst.Set))
        and all(string_literal(element.value) is not None for element in binding.value.elements)
        for binding in bindings
    )


def is_written_out(load: Load) -> bool:
    """Whether the dict is written entry by entry, ``OrderedDict([(name, value)])``: the rest is left out on purpose."""
    given = load.given
    if isinstance(given, cst.Call) and load.model.qualified_name(given.func) in _BUILDERS and len(given.args) == 1:
        given = given.args[0].value
        pairs = given.elements if isinstance(given, (cst.List, cst.Tuple)) else ()
        return bool(pairs) and all(isinstance(pair.value, (cst.Tuple, cst.List)) for pair in pairs)
    return isinstance(given, cst.Dict) and all(isinstance(item, cst.DictElement) for item in given.elements)


def is_one_of_several(load: Load) -> bool:
    """Whether the dict comes out of a collection of dicts: somebody has split what was there."""
    return any(binding.kind is BindingKind.LOOP for binding in load.model.reaching(load.given))


def is_one_of_parts(load: Load) -> bool:
    """Whether the function loads another entry of the same dict into the module as well: each is a part."""
    return any(
        fingerprint(other.given) != fingerprint(load.given)
        and fingerprint(other.receiver) == fingerprint(load.receiver)
        and not is_in_another_branch(load.model, load.call, other.call)
        for other in _of_same_dict(load)
    )


def _of_same_dict(load: Load) -> Iterator[Load]:
    """The loads of entries of the same dict in the function around a load of one, that load included."""
    if not isinstance(load.given, cst.Subscript):
        return
    model, whole = load.model, fingerprint(load.given.value)
    function = model.enclosing_function(load.call)
    for call in model.calls_by_word.get(load.method, ()):
        other = load_of(model, call) if model.enclosing_function(call) is function else None
        given = None if other is None else other.given
        if other is not None and isinstance(given, cst.Subscript) and fingerprint(given.value) == whole:
            yield other


def holds_other_things(load: Load) -> bool:
    """Whether the function takes other things out of the very dict that it loads: ``epoch = state["epoch"]``.

    These lie among the weights, and have to be skipped.
    """
    model, wanted = load.model, load.model.reaching(load.given)
    for use in uses_in_function(load.given, model) if wanted else ():
        item = model.tree.parent(use)
        if isinstance(item, cst.Subscript) and not isinstance(model.tree.parent(item), (cst.AssignTarget, cst.Del)):
            key = string_literal(subscript_index(item))
            is_other = key is not None and "." not in key and model.reaching(use) == wanted
            if is_other and not is_in_another_branch(model, load.call, use):
                return True
    return False


def is_handed_in(load: Load) -> bool:
    """Whether the dict comes in as an argument: what is not in it, the caller may know."""
    return _is_handed_in(load.given, load.model, 0)


def _is_handed_in(node: cst.BaseExpression, model: "Model", depth: int) -> bool:
    match node:
        case cst.Subscript():
            return _is_handed_in(node.value, model, depth)
        case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value="get" | "pop" | "copy"))):
            return _is_handed_in(holder, model, depth)
        case cst.Call(args=[cst.Arg(value=original), *_]) if last_word(node.func) in ("copy", "deepcopy"):
            return _is_handed_in(original, model, depth)
        case cst.Name() if depth <= MAX_NAMES:
            bindings = without_narrowing(model.reaching(node))
            return any(binding.kind is BindingKind.PARAMETER for binding in bindings) or any(
                _is_handed_in(value, model, depth + 1) for value in _bound(node, model)
            )
    return False


def is_strict_otherwise(load: Load) -> bool:
    """Whether another branch of an ``if`` around it loads strictly: the condition says which of them may be partial."""
    model = load.model
    return any(
        is_in_another_branch(model, load.call, call) and _is_strict(call, model)
        for call in model.calls_by_word.get(load.method, ())
    )


def is_strict_beside(load: Load) -> bool:
    """Whether the function loads another entry of the same dict strictly: this one is partial on purpose."""
    return any(
        other.is_strict is True
        and isinstance(other.value, Module)
        and fingerprint(other.receiver) != fingerprint(load.receiver)
        for other in _of_same_dict(load)
    )


def _is_strict(call: cst.Call, model: "Model") -> bool:
    load = load_of(model, call)
    return load is not None and load.is_strict is True
