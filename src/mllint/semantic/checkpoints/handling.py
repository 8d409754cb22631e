"""What the code around a load does with the dict that is loaded."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge.words import LOADING
from mllint.semantic.checkpoints.contents import Record
from mllint.semantic.checkpoints.never_reached import is_never_given
from mllint.semantic.expressions.arguments import passed_for
from mllint.semantic.names.conditions import conditions, is_in_another_branch, leaves, parts_of_test, verdicts
from mllint.semantic.names.in_use import is_idle, is_named, outermost_function
from mllint.semantic.names.scopes import BindingKind
from mllint.semantic.names.uses import mentions, uses_of_bound
from mllint.semantic.values import Module, Symbol
from mllint.syntax.shape import argument, constant, dotted_path, last_word, string_literal, subscript_index
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.checkpoints.loads import Load
    from mllint.semantic.model import Model

MAX_NAMES = 4
"""Through how many names a dict is followed back."""
MAX_CALLERS = 2
"""Through how many functions that pass it on."""

_LEAVING = (cst.Return, cst.Raise, cst.Continue, cst.Break)
_TAKING = ("get", "pop")
_KIND_QUESTIONS = frozenset({"isinstance", "hasattr", "type"})


def is_guarded(load: "Load") -> bool:
    """Whether the code reckons with several kinds of file: it catches what goes wrong, or looks before it loads."""
    if is_caught(load) or _is_told_by_path(load):
        return True
    return any(_is_examined(name, load) or _is_one_of_two(name, load) for name in _held_by(load.given, load.model))


def _is_told_by_path(load: "Load") -> bool:
    """Whether what the file is called decides, behind the call that reads it, whether a load is reached: ``if "best" in
    path:``.
    """
    model = load.model
    sources = (item.value for name in names_behind(load.given, model) for item in model.reaching(name))
    for read in sources:
        if isinstance(read, cst.Call) and last_word(read.func) == "load" and read.args:
            before = {id(test) for test in conditions(model, read)}
            tests = [test for test in conditions(model, load.given) if id(test) not in before]
            paths = {dotted_path(part) for part in subtree(read.args[0].value)} - {None}
            if any(_asks_about_name(test, paths) for test in tests):
                return True
    return False


def _asks_about_name(test: cst.BaseExpression, paths: set[str | None]) -> bool:
    """Whether a test compares one of some paths with something, or asks for a part of it; not whether it is there."""
    for part in subtree(test):
        match part:
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=how, comparator=right)]):
                is_compared = (
                    isinstance(how, (cst.In, cst.NotIn, cst.Equal, cst.NotEqual)) and constant(right) is not None
                )
                if is_compared and not paths.isdisjoint(map(dotted_path, (left, right))):
                    return True
            case cst.Call(func=cst.Attribute(value=receiver)) if dotted_path(receiver) in paths:
                return True
    return False


def is_unreached(model: "Model", node: cst.CSTNode) -> bool:
    """Whether nobody calls the function in which something is loaded, and others load in its place, or nobody does so
    that it would be.

    That takes long to tell: it is for what is surely wrong.
    """
    return (is_idle(model, node) and _is_loaded_elsewhere(model, node)) or is_never_given(model, node)


def _is_loaded_elsewhere(model: "Model", node: cst.CSTNode) -> bool:
    """Whether another function of the file, that something names, loads a state, or a file around reads one."""
    own = outermost_function(model, node)
    homes = {outermost_function(model, call) for word in LOADING for call in model.calls_by_word.get(word, ())}
    if any(home is None or is_named(model, home) for home in homes - {own}):
        return True
    return any(word in other.calls_by_word for other in model.surroundings.models[1:] for word in ("load", *LOADING))


def is_caught(load: "Load") -> bool:
    """Whether an error of the load is caught, or it stands where another one has failed, or has not."""
    child: cst.CSTNode = load.given
    for ancestor in load.model.tree.ancestors(load.given):
        match ancestor:
            case cst.Try() | cst.TryStar() if ancestor.handlers:
                if child is ancestor.body or (child is not ancestor.finalbody and _is_tried(ancestor.body, load)):
                    return True
            case cst.With() if any(_suppresses(item, load.model) for item in ancestor.items):
                return True
            case cst.FunctionDef() | cst.ClassDef():
                return False
        child = ancestor
    return False


def _is_tried(body: cst.BaseSuite, load: "Load") -> bool:
    """Whether what stands under ``try`` reads some file, or has to do with the dict that is loaded."""
    names = {dotted_path(name) for name in names_behind(load.given, load.model)}
    return any(
        _called(load.model, part) == "load" if isinstance(part, cst.Call) else dotted_path(part) in names
        for part in subtree(body)
        if isinstance(part, (cst.Call, cst.Name, cst.Attribute))
    )


def _called(model: "Model", call: cst.Call) -> str:
    """The last word of what is called, by its own name where it is imported under another one."""
    return (model.library_name(call.func) or last_word(call.func) or "").rpartition(".")[2]


def _suppresses(item: cst.WithItem, model: "Model") -> bool:
    called = item.item.func if isinstance(item.item, cst.Call) else item.item
    return model.qualified_name(called) == "contextlib.suppress"


def _held_by(node: cst.BaseExpression, model: "Model", depth: int = 0) -> Iterator[cst.BaseExpression]:
    """As ``names_behind``, also in the functions of the file that pass the dict on to the one around."""
    for name in names_behind(node, model):
        yield name
        for binding in model.reaching(name):
            function = binding.scope.node
            if binding.kind is BindingKind.PARAMETER and isinstance(function, cst.FunctionDef) and depth < MAX_CALLERS:
                assert isinstance(binding.node, cst.Param)
                for passed in passed_for(model, model.function_info(function), binding.node):
                    yield from _held_by(passed, model, depth + 1)


def names_behind(node: cst.BaseExpression, model: "Model", depth: int = 0) -> Iterator[cst.BaseExpression]:
    """The names and dotted paths through which a dict came to an expression."""
    while isinstance(node, (cst.Subscript, cst.Call, cst.DictComp)):
        if isinstance(node, cst.Subscript):
            node = node.value
        elif isinstance(node, cst.DictComp):
            node = node.for_in.iter
        else:
            node = node.func.value if isinstance(node.func, cst.Attribute) else node.func
    if dotted_path(node) is None or isinstance(model.value(node), Symbol):
        return  # the `torch` of `torch.load` holds no dict
    yield node
    for binding in model.reaching(node):
        if binding.kind is BindingKind.ASSIGN and binding.value is not None and depth < MAX_NAMES:
            yield from names_behind(binding.value, model, depth + 1)


def uses_in_function(node: cst.BaseExpression, model: "Model") -> Iterator[cst.BaseExpression]:
    """Every use of a name or dotted path in the function around it, its own included."""
    key = dotted_path(node)
    if key is None:
        return
    function = model.enclosing_function(node)
    yield from (holder for holder in mentions(model, key) if model.enclosing_function(holder) is function)


def _is_examined(node: cst.BaseExpression, load: "Load") -> bool:
    """Whether the function asks what kind of dict a name holds: ``"model" in ckpt``, ``isinstance(ckpt, ...)``.

    Not where the answer does not decide about the load: in the ``else`` of ``"model" in ckpt and resume`` it may be
    either.
    """
    key, model = dotted_path(node), load.model
    for use in uses_in_function(node, model):
        for ancestor in model.tree.ancestors(use):
            if isinstance(ancestor, cst.Comparison) and _asks_for_member(ancestor, key):
                if not _is_left_open(ancestor, key, load) and not _is_about_another(ancestor, key, load):
                    return True
                break
            if isinstance(ancestor, cst.Call) and dotted_path(ancestor.func) in _KIND_QUESTIONS:
                return True
            if isinstance(ancestor, (cst.SimpleStatementLine, cst.IndentedBlock)):
                break
    return False


def _is_one_of_two(node: cst.BaseExpression, load: "Load") -> bool:
    """Whether another entry of the dict decides about the load, or is read in its stead: of another kind of file.

    ``ckpt.get("net") or ckpt["model"]``, ``ckpt["net"] if is_new else ckpt["model"]``.
    """
    model, own = load.model, _key_of(load.given)
    turns = {id(test): (test, turn) for test, turn in verdicts(model, load.given)}
    entries = list(_entries_of(node, model)) if turns else []
    for item, key in entries:
        statement = model.tree.parent(item)
        named = uses_of_bound(model, statement) if isinstance(statement, cst.Assign) else ()
        if key == own and isinstance(item, cst.Subscript):
            continue
        if any(model.tree.is_inside(part, test) for part in (item, *named) for test, _ in turns.values()):
            return True
    return own is not None and any(_is_of_other_kind(test, turn, own, entries, model) for test, turn in turns.values())


def _is_of_other_kind(
    test: cst.BaseExpression, turn: bool, own: str, entries: list[tuple[cst.BaseExpression, str | None]], model: "Model"
) -> bool:
    """Whether a setting says that a file is of another kind: other entries are read of it.

    Not where the other entries that are read beside it are saved together.
    """
    branches: tuple[set[str | None], set[str | None]] = set(), set()
    for item, key in entries:
        for other, way in verdicts(model, item):
            if other is test:
                branches[way].add(key)
    beside, instead = branches[turn] - {own}, branches[not turn] - {own}
    return bool(instead - beside) and (beside <= instead or not is_saved_together(model, beside))


def is_saved_together(model: "Model", keys: set[str | None]) -> bool:
    """Whether a file, or one around it, saves a dict with all of some keys."""
    saved = (item.content for item in model.surroundings.saved)
    return any(isinstance(content, Record) and keys <= content.items.keys() for content in saved)


def _entries_of(node: cst.BaseExpression, model: "Model") -> Iterator[tuple[cst.BaseExpression, str | None]]:
    """What the function around a name takes of the very thing that it stands for, by an index or by ``get``."""
    bindings = model.reaching(node)
    for use in uses_in_function(node, model):
        item = model.tree.parent(use)
        if isinstance(item, cst.Attribute) and item.attr.value in _TAKING:
            item = model.tree.call_of(item)
        if isinstance(item, (cst.Subscript, cst.Call)) and model.reaching(use) == bindings:
            yield item, _key_of(item)


def _key_of(item: cst.BaseExpression) -> str | None:
    """The string key under which an entry is taken, by an index or by ``get``."""
    if isinstance(item, cst.Call) and last_word(item.func) in _TAKING:
        return string_literal(item.args[0].value) if item.args else None
    return string_literal(subscript_index(item)) if isinstance(item, cst.Subscript) else None


def _is_about_another(asked: cst.Comparison, key: str | None, load: "Load") -> bool:
    """Whether a test asks for another entry than the one that is loaded, and decides about nothing but its own lines.

    ``if "amp" in ckpt: amp.load_state_dict(ckpt["amp"])`` says nothing of ``ckpt["optimizer"]``.
    """
    own = _key_of(load.given)
    if own is None or string_literal(asked.left) in (None, own):
        return False
    statement: cst.CSTNode | None = asked
    while isinstance(statement, (cst.Comparison, cst.BooleanOperation, cst.UnaryOperation)):
        statement = load.model.tree.parent(statement)
    function = load.model.enclosing_function(asked)  # a caller that asks may call only where it finds what it wants
    if not isinstance(statement, cst.If) or load.model.enclosing_function(load.given) is not function:
        return False
    if load.model.tree.is_inside(load.given, statement):
        return False
    return not any(
        isinstance(part, _LEAVING) or (isinstance(part, cst.AssignTarget) and dotted_path(part.target) == key)
        for part in subtree(statement)
    )


def _is_left_open(asked: cst.Comparison, key: str | None, load: "Load") -> bool:
    """Whether a load stands in the ``else`` of a test that may fail for another reason than what is asked in it."""
    tree, is_joined = load.model.tree, False
    part: cst.BaseExpression = asked
    above = tree.parent(part)
    while isinstance(above, cst.BooleanOperation) and isinstance(above.operator, cst.And):
        other = above.right if above.left is part else above.left
        is_joined = is_joined or not any(dotted_path(name) == key for name in subtree(other))
        part, above = above, tree.parent(above)
    if not is_joined or not isinstance(above, cst.If) or above.orelse is None:
        return False
    return tree.is_below(load.call, above.orelse)


def _asks_for_member(node: cst.Comparison, key: str | None) -> bool:
    """Whether a comparison is ``... in key`` or ``... in key.keys()``."""
    for part in node.comparisons:
        holder = part.comparator
        if isinstance(holder, cst.Call) and isinstance(holder.func, cst.Attribute) and holder.func.attr.value == "keys":
            holder = holder.func.value
        if isinstance(part.operator, (cst.In, cst.NotIn)) and dotted_path(holder) == key:
            return True
    return False


def found_before(load: "Load") -> str | None:
    """The key that the test around a load has found in the very dict that is loaded as a whole."""
    model, key = load.model, dotted_path(load.given)
    if key is None or not _is_module(load) or any(_changes(use, model) for use in uses_in_function(load.given, model)):
        return None
    child: cst.CSTNode = load.call
    for ancestor in model.tree.ancestors(load.call):
        if isinstance(ancestor, cst.FunctionDef):
            return None
        if isinstance(ancestor, cst.If) and child is ancestor.body:
            for test in parts_of_test(ancestor.test):
                if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
                    continue
                holder = next((part for part in subtree(test.comparisons[0]) if dotted_path(part) == key), None)
                is_found = isinstance(test.comparisons[0].operator, cst.In) and _asks_for_member(test, key)
                if is_found and isinstance(holder, cst.BaseExpression):
                    is_same = model.reaching(holder) == model.reaching(load.given)
                    return string_literal(test.left) if is_same else None
        child = ancestor
    return None


def _is_module(load: "Load") -> bool:
    """Whether what is loaded into surely is a module, and nothing that keeps several of them."""
    return isinstance(load.value, Module) or argument(load.call, None, "strict") is not None


def _changes(use: cst.BaseExpression, model: "Model") -> bool:
    """Whether a use of a dict changes it: ``state.pop(key)``, ``del state[key]``, ``state[key] = value``."""
    holder = model.tree.parent(use)
    if isinstance(holder, cst.Attribute):
        return holder.attr.value in ("pop", "update", "clear", "setdefault", "popitem")
    return isinstance(holder, cst.Subscript) and isinstance(model.tree.parent(holder), (cst.Del, cst.AssignTarget))


def items_of_same(node: cst.BaseExpression, model: "Model") -> Iterator[cst.Subscript]:
    """What the function around a name takes, by an index, of the very thing that the name stands for there."""
    bindings = model.reaching(node)
    for use in uses_in_function(node, model):
        item = model.tree.parent(use)
        if isinstance(item, cst.Subscript) and item.value is use and model.reaching(use) == bindings:
            yield item


def entries_read(load: "Load") -> dict[str, list[cst.Subscript]]:
    """Where the same function reads the dict that is loaded, by string key; nothing when it deletes some."""
    model, holder, trail = load.model, load.given, list[str | None]()
    while isinstance(holder, cst.Subscript):
        trail.insert(0, _key_of(holder))
        holder = holder.value
    bindings = model.reaching(holder)
    found: dict[str, list[cst.Subscript]] = {}
    for use in uses_in_function(holder, model):
        item = _item_at(model, use, trail)
        if item is None:
            continue
        above = model.tree.parent(item)
        if isinstance(above, cst.Del):
            return {}
        text = string_literal(subscript_index(item))
        is_read = not isinstance(above, (cst.AssignTarget, cst.AugAssign)) and (
            runs_with(use, load) or _runs_behind(use, load)
        )
        if text is not None and is_read and model.reaching(use) == bindings:
            found.setdefault(text, []).append(item)
    return found


def _item_at(model: "Model", node: cst.BaseExpression, trail: list[str | None]) -> cst.Subscript | None:
    """What is taken by an index of what stands in a dict under some keys, one after the other."""
    for key in trail:
        item = model.tree.parent(node)
        if key is None or not isinstance(item, cst.Subscript) or item.value is not node or _key_of(item) != key:
            return None
        node = item
    item = model.tree.parent(node)
    return item if isinstance(item, cst.Subscript) and item.value is node else None


def is_used_as_dict(item: cst.Subscript, model: "Model") -> bool:
    """Whether an entry is used as no tensor can be: it is loaded itself, unpacked with ``**``, or has string keys."""
    above = model.tree.parent(item)
    match above:
        case cst.Arg(star="**"):
            return True
        case cst.Arg():
            call = model.tree.parent(above)
            return (
                isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func.attr.value in LOADING
            )
        case cst.Subscript():
            return above.value is item and string_literal(subscript_index(above)) is not None
        case cst.Attribute():
            return above.attr.value in ("items", "keys")
    return False


_BRANCHING = (cst.If, cst.IfExp, cst.For, cst.While, cst.Try, cst.TryStar, cst.Match)


def runs_with(use: cst.BaseExpression, load: "Load") -> bool:
    """Whether a place surely is reached whenever the load is: it is in no branch that the load is not in."""
    model = load.model
    left = (branch for branch in branches_without(load.call, use, model) if isinstance(branch, cst.BaseSuite))
    return not branches_without(use, load.call, model) and not any(map(leaves, left))


def _runs_behind(use: cst.BaseExpression, load: "Load") -> bool:
    """Whether a place is reached behind the load, if at all, and on a setting that says nothing of the dict.

    ``if optimizer is not None: optimizer.load_state_dict(checkpoint["optimizer"])``: with one, both are done.
    """
    model = load.model
    scope = model.scope_of(use)
    place, there = scope.place_of(use), scope.place_of(load.call)
    if place is None or there is None or there[1] >= place[1] or branches_without(load.call, use, model):
        return False
    names = {id(name) for name in uses_in_function(load.given, model)}
    settings = [model.tree.parent(branch) for branch in branches_without(use, load.call, model)]
    return all(isinstance(item, cst.If) and names.isdisjoint(map(id, subtree(item.test))) for item in settings)


def branches_without(node: cst.CSTNode, other: cst.CSTNode, model: "Model") -> list[cst.CSTNode]:
    """The parts that run under some condition only, and hold one node and not the other."""
    holders = {id(holder) for holder in model.tree.ancestors(other)}
    return [branch for branch in _branches(node, model) if id(branch) not in holders]


def _branches(node: cst.CSTNode, model: "Model") -> Iterator[cst.CSTNode]:
    """The parts around a node that run under some condition only."""
    child = node
    for ancestor in model.tree.ancestors(node):
        if isinstance(ancestor, cst.FunctionDef):
            return
        if (isinstance(ancestor, _BRANCHING) and not isinstance(child, cst.BaseExpression)) or isinstance(
            ancestor, cst.IfExp
        ):
            yield child
        child = ancestor


def completed_dict(load: "Load") -> str | None:
    """The dict that was made for the load and is not loaded: its name.

    ``full = model.state_dict(); full.update(part); model.load_state_dict(part)``: nothing is done with ``full``.
    """
    model = load.model
    key = dotted_path(load.given)
    for use in uses_in_function(load.given, model):
        call = model.tree.call_given(use)
        if call is None or not isinstance(call.func, cst.Attribute) or len(call.args) != 1:
            continue
        full = call.func.value
        if call.func.attr.value != "update" or not isinstance(full, cst.Name) or dotted_path(full) == key:
            continue
        if not isinstance(model.tree.parent(call), cst.Expr) or is_in_another_branch(model, call, load.call):
            continue
        bindings = model.reaching(full)
        made = bindings[0].value if len(bindings) == 1 else None
        if made is not None and _is_state_of(made, load.receiver) and not _is_used_behind(full, model):
            return full.value
    return None


def _is_state_of(node: cst.BaseExpression, receiver: cst.BaseExpression) -> bool:
    """Whether an expression is ``receiver.state_dict()``."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "state_dict"
        and dotted_path(receiver) is not None
        and dotted_path(node.func.value) == dotted_path(receiver)
    )


def _is_used_behind(node: cst.Name, model: "Model") -> bool:
    """Whether the function uses a name again behind a place."""
    every = list(uses_in_function(node, model))
    index = next(index for index, use in enumerate(every) if use is node)
    return index + 1 < len(every)
