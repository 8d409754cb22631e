"""Whether a module does something else in evaluation mode than in training mode."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst
import msgspec

from mllint.knowledge import lookup, networks
from mllint.semantic.events.places import children_given, inside_of, itself_of
from mllint.semantic.events.things import Frame
from mllint.semantic.expressions.tables import made
from mllint.semantic.modules.drop_rates import Making, drops_nothing, drops_nothing_in_sight, rate_of
from mllint.semantic.modules.made_with import is_left_out, making_run, may_be_left_out
from mllint.semantic.modules.modes import (
    CONTAINERS,
    is_told,
    layer_depends,
    library_name,
    network_depends,
    normalizes_first,
)
from mllint.semantic.modules.part_makers import makers
from mllint.semantic.modules.switched_off import Off, parts_off
from mllint.semantic.names.classes import Read
from mllint.semantic.names.conditions import verdicts
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.receivers import constructing, is_own_method
from mllint.semantic.names.scopes import only_assigned
from mllint.semantic.names.uses import bound_by, uses, whole
from mllint.semantic.values import Choice, ClassObject, Function, Member, Module, Symbol, Value
from mllint.syntax.shape import (
    argument,
    constant_given,
    has_star_arguments,
    items_of,
    last_statement,
    last_word,
    targets_of,
)
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_MAX_PARTS = 60
"""How many classes and functions are looked into for one module."""
_MAX_WAYS = 200
"""In how many ways, with what else they are given, they are."""
_ALL_PARTS = frozenset({
    "children", "named_children", "modules", "named_modules", "sublayers", "named_sublayers", "_modules", "_sub_layers",
})  # fmt: skip
"""What gives all parts of a module, whatever their names."""
_SWITCHING = frozenset({"train", "eval"})


def depends_on_mode(
    value: Value | None, *models: "Model", switched: bool = False, if_asked: bool | None = None
) -> bool | None:
    """Whether a module has dropout or batch normalization, or asks for its mode; ``None``: that is not known.

    It may be made in one of these files. ``switched``: it was put to training mode, so that also those parts count
    which are in evaluation mode until then, because a library has loaded them. ``if_asked`` is the answer where its
    class does one thing in the one mode and another in the other: who computes something in training mode may want what
    it does there, but nobody trains what it does in evaluation mode.
    """
    if isinstance(value, Function):  # ``network.forward(x)``
        value = value.receiver
    if not isinstance(value, Module):
        return None
    if value.definition is not None:
        making = _home(value.call, models)
        known = _class_depends(Making(value.definition, value.call, making), switched, if_asked)
        return True if known is None and _is_given_depending(value.definition, value.call, models) else known
    if value.others:
        several = [depends_on_mode(other, *models, switched=switched, if_asked=if_asked) for other in value.others]
        return True if True in several else _all_agree(several)
    if value.name is None:
        return None if value.call is None else _made_depends(value.call, models, switched=switched)
    if value.call is not None and value.name.rpartition(".")[2] in CONTAINERS:
        making = _home(value.call, models)
        return None if making is None else _container_depends(making, value.call)
    depends = layer_depends(value.name, value.call)
    return False if depends and _drops_nothing(value.call, models) else depends


def _home(node: cst.CSTNode | None, models: "tuple[Model, ...]") -> "Model | None":
    """The one of several files in which a node stands."""
    return next((model for model in models if id(node) in model.tree.parents), None)


def _drops_nothing(call: cst.Call | None, models: "tuple[Model, ...]") -> bool:
    """Whether a layer that one of these files makes surely drops nothing."""
    rate = None if call is None else rate_of(call)
    making = _home(rate, models)
    return making is not None and rate is not None and drops_nothing_in_sight(making, rate)


def _made_depends(call: cst.Call, models: "tuple[Model, ...]", *, switched: bool) -> bool | None:
    """Whether a module depends on the mode of which only the call is known, in one of these files, that makes it.

    What a function of a library builds is a whole model, what is picked by name of a library may be any layer; of what
    is picked from a table of the project, one that does is enough.
    """
    making = _home(call, models)
    if making is None:
        return None
    called = making.value(call.func)
    if isinstance(called, Symbol) and networks.makes_network(called.name):
        return network_depends(making, called.name, call, switched=switched)
    if isinstance(called, Choice):
        return True if any(depends_on_mode(made(option), *models) for option in called.options) else None
    if isinstance(called, Member) and networks.makes_network(library_name(called)):
        return True
    return None if isinstance(called, Member) or isinstance(call.func, (cst.Call, cst.Subscript)) else True


def _container_depends(model: "Model", call: cst.Call) -> bool | None:
    """Whether one of the layers that a container is given does, one by one or in a list or dict that is written out."""
    held: list[bool | None] = []
    for arg in call.args:
        written = _written_out(model, arg.value)
        if written is not None:
            held += [depends_on_mode(model.value(layer), model) for layer in written]
        if written is None or isinstance(arg.value, cst.Name):  # more may be put into it
            held.append(_children_depend(model, arg) if arg.star else depends_on_mode(model.value(arg.value), model))
    return True if True in held else _all_agree(held)


def _written_out(model: "Model", node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """The layers of a list or dict that is written out: ``OrderedDict([("drop", nn.Dropout())])``; else ``None``."""
    if isinstance(node, cst.Name):
        made = only_assigned(model, node)
        return None if made is None or isinstance(made, cst.Name) else _written_out(model, made)
    if isinstance(node, cst.Call) and model.qualified_name(node.func) in ("collections.OrderedDict", "builtins.dict"):
        pairs = [pair for arg in node.args if not arg.star for pair in items_of(arg.value)]
        if any(isinstance(pair, cst.Dict) for pair in pairs):
            return [layer for pair in pairs for layer in _written_out(model, pair) or ()]
        return [_second(pair) or pair for pair in pairs]
    if isinstance(node, cst.Dict):
        return [item.value for item in node.elements]
    return items_of(node) if isinstance(node, (cst.List, cst.Tuple)) else None


def _second(pair: cst.BaseExpression) -> cst.BaseExpression | None:
    """What is named in a pair of a name and a layer."""
    return pair.elements[1].value if isinstance(pair, cst.Tuple) and len(pair.elements) == 2 else None


def _children_depend(model: "Model", arg: cst.Arg) -> bool | None:
    """Whether one of the first children of a ready-made model does, which are given one by one."""
    whole = children_given(arg)
    name = None if whole is None else getattr(model.value(whole), "name", None)
    return True if isinstance(name, str) and normalizes_first(name) else None


def is_given_unseen(value: Value | None, *models: "Model") -> bool:
    """Whether a module, which one of these files makes, is given a part there that it calls, and that may be any."""
    definition = value.definition if isinstance(value, Module) else None
    if not isinstance(value, Module) or definition is None:
        return False
    given = ((model, model.value(part)) for model, part in _given_and_called(definition, value.call, models))
    return any(
        part is None or (isinstance(part, Module) and depends_on_mode(part, model, *models) is None)
        for model, part in given
    )


def _is_given_depending(definition: ClassInfo, call: cst.Call | None, models: "tuple[Model, ...]") -> bool:
    """Whether a module is made of one that depends on the mode, and calls it: ``Captioner(encoder, decoder)``."""
    given = _given_and_called(definition, call, models)
    return any(depends_on_mode(model.value(part), *models) is True for model, part in given)


def _given_and_called(
    definition: ClassInfo, call: cst.Call | None, models: "tuple[Model, ...]"
) -> "Iterator[tuple[Model, cst.BaseExpression]]":
    """What a module is given where it is made, and calls, and the file in which that stands."""
    making = _home(call, models)
    constructor = definition.method("__init__")
    if making is None or call is None or constructor is None or has_star_arguments(call):
        return
    called = _called_of_what_is_given(definition) if constructor.owner is definition else frozenset()
    for index, item in enumerate(constructor.parameters):
        arg = argument(call, index - 1, item.name.value) if item.name.value in called else None
        if arg is not None:
            yield making, arg.value


def _all_agree(answers: list[bool | None]) -> bool | None:
    return answers[0] if answers and all(answer is answers[0] for answer in answers) else None


class _Maker(NamedTuple):
    """A class or function that makes parts of a module, and the run in which it makes them, if that is known.

    ``kinds`` are words in the names of layers that what holds it has put to evaluation mode.
    """

    definition: ClassInfo | FunctionInfo
    run: Frame | None = None
    kinds: frozenset[str] = frozenset()


class _Parts(msgspec.Struct):
    """What the text of a class or function says of the layers that are made there.

    ``depends``: one surely depends on the mode. ``depends_when_switched``: one does that is in evaluation mode until
    the whole is put to training mode. ``is_asked``: the class asks for it, whatever that means there: to give
    losses, to be taught. ``is_closed``: nothing is made there that is not known. ``others``, classes and functions of
    the project, may make more.
    """

    depends: bool = False
    depends_when_switched: bool = False
    is_asked: bool = False
    is_closed: bool = True
    others: list[_Maker] = []


def _class_depends(making: Making, switched: bool, if_asked: bool | None) -> bool | None:
    """Whether a class, or one of the classes and functions that make its parts, has such a layer.

    Where one of them asks for the mode itself, nobody can tell which one is right for what: ``if_asked`` is the answer.
    """
    # Of each class and function the calls that it was looked at for, with those around them; none: for any.
    seen: dict[int, set[tuple[int, ...]]] = {}
    run = None if making.model is None else making_run(making.model, making.call, making.definition, None)
    pending = [_Maker(making.definition, run)]
    is_closed, depends = True, False
    while pending:
        current = _once(pending.pop())
        calls = seen.setdefault(id(current.definition), set())
        ways = () if current.run is None else tuple(id(frame.call) for frame in current.run.led_by())
        if () in calls or ways in calls:
            continue
        calls.add(ways)
        if len(seen) > _MAX_PARTS or sum(map(len, seen.values())) > _MAX_WAYS:
            return depends or None
        definition = current.definition
        off = parts_off(definition) if isinstance(definition, ClassInfo) and not switched else Off()
        off = off._replace(kinds=off.kinds | current.kinds)
        for found in _made_by(current, making, off):
            if found.is_asked:
                return if_asked
            depends = depends or found.depends or (switched and found.depends_when_switched)
            is_closed = is_closed and found.is_closed
            pending += [other._replace(kinds=off.kinds) for other in found.others]
    return True if depends else False if is_closed else None


def _made_by(maker: _Maker, making: Making, off: Off) -> Iterator[_Parts]:
    current, run = maker.definition, maker.run
    if isinstance(current, FunctionInfo):
        yield _parts(current, current.node.body, None, making, off, run=run)
        return
    if current.has_unknown_base:
        yield _Parts(is_closed=False)
    for info in current.lineage:
        yield _parts(info, info.node.body, constructing(info), making, off, current, run)
        if _called_of_what_is_given(info):
            yield _Parts(is_closed=False)
    runs = current.called
    if isinstance(current.instance(), Module) and (runs is None or runs.is_left_open):
        yield _Parts(is_closed=False)  # one that derives from it makes more


def _called_of_what_is_given(info: ClassInfo) -> frozenset[str]:
    """The parameters of its constructor that a class calls: ``self.encoder(x)``, of ``self.encoder = encoder``."""
    method = info.methods.get("__init__")
    given = set() if method is None else {item.name.value for item in method.parameters}
    kept = {
        binding.key.partition(".")[2]: part.value
        for several in (method.scope.bindings.values() if method is not None else ())
        for binding in several
        if binding.key.count(".") == 1
        and isinstance(part := _moved(info.model, binding.value), cst.Name)
        and part.value in given
    }
    if not kept:
        return frozenset()
    return frozenset(
        kept[call.func.attr.value]
        for call in info.model.tree.calls_in(info.node.body)
        if isinstance(call.func, cst.Attribute)
        and call.func.attr.value in kept
        and getattr(call.func.value, "value", None) == "self"
    )


def _moved(model: "Model", node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """What is moved or wrapped in the mode that it has: ``net`` of ``DataParallel(net.to(device))``."""
    while isinstance(node, cst.Call) and last_word(node.func) not in _SWITCHING:
        inner = itself_of(model, node) or inside_of(model, node)
        if inner is None:
            break
        node = inner
    return node


def _parts(
    holder: ClassInfo | FunctionInfo,
    body: cst.CSTNode,
    methods: frozenset[str] | None,
    making: Making,
    off: Off,
    made: ClassInfo | None = None,
    run: Frame | None = None,
) -> _Parts:
    """What is made in a body; what is called there matters in these methods only (``None``: anywhere).

    ``made`` is the class whose instances it is made for, ``making`` how the whole module is made, ``run`` that of the
    constructor of the class, which puts what is ``off`` to evaluation mode.
    """
    model, found = holder.model, _Parts()
    for node in _telling(holder, body):
        if is_left_out(node, run) or _is_put_off(model, node, off):
            continue
        kind = type(node)
        if kind is cst.Attribute:
            is_own = getattr(node.value, "value", None) == "self"  # type: ignore[attr-defined]
            told = model.tree.call_given(node)  # `dropout(x, rate, self.training)`
            found.is_asked = found.is_asked or (is_own and (_is_whole_test(model, node) or _may_be_given_mode(holder)))
            is_on = is_own and not (told is not None and drops_nothing(model, rate_of(told), making))
            found.depends = found.depends or is_on
            found.is_closed = found.is_closed and is_on  # of another, which may be none of its parts
        elif kind is cst.Name:
            named = whole(model, node)  # type: ignore[arg-type]
            mentioned = model.value(named)
            assert isinstance(mentioned, ClassObject)
            other = mentioned.definition
            found.others.append(_Maker(other, making_run(model, model.tree.call_of(named), other, run)))
        elif isinstance(node, cst.Call):
            called_ones = makers(model, node.func, run)
            if len(called_ones) > 1 and not all(layer_depends(library_name(one), node) for one in called_ones):
                found.is_closed = False  # one that is picked may have no mode
                continue
            for called in called_ones:
                name = library_name(called)
                if is_told(name):
                    if layer_depends(name, node) is True:
                        is_whole = not _is_only_read(model, node) or normalizes_first(name)
                        is_left = _is_left_out(made, model, node, making, run)
                        is_left = is_left or off.is_kind(name) or drops_nothing(model, rate_of(node), making)
                        found.depends = found.depends or (is_whole and not is_left)
                        found.is_closed = False
                elif networks.makes_network(name):
                    is_whole = not _is_only_read(model, node) or normalizes_first(name)
                    if is_whole and not _is_left_out(made, model, node, making, run):
                        found.depends |= network_depends(model, name, node, switched=False) is True
                        found.depends_when_switched |= network_depends(model, name, node, switched=True) is True
                    found.is_closed = False
                elif _is_given_dropout(node) and not drops_nothing(model, rate_of(node), making):
                    found.depends = True
                elif isinstance(called, ClassObject):
                    found.others.append(_Maker(called.definition, making_run(model, node, called.definition, run)))
                elif isinstance(called, (Function, type(None))) and (
                    methods is None or _method(model, node) in methods
                ):
                    found.is_closed = found.is_closed and (called is not None or _is_arithmetic(node))
                    is_other = called is not None and not is_own_method(called, holder)
                    found.others += [_maker(called, node, model, run)] if called is not None and is_other else []
    return found


def _once(maker: _Maker) -> _Maker:
    """What makes parts, whatever it is given where it leads to itself."""
    run = maker.run
    is_again = run is not None and run.caller is not None and run.function is not None and run.caller.runs(run.function)
    return maker._replace(run=None) if is_again else maker


def _maker(called: Function, call: cst.Call, model: "Model", run: Frame | None) -> _Maker:
    function = called.definition
    return _Maker(function, Frame(function.model, function, run or Frame(model), call))


def _is_put_off(model: "Model", node: cst.CSTNode, off: Off) -> bool:
    """Whether something is made for an attribute that is put to evaluation mode."""
    statement = model.tree.nearest(node, cst.Assign) if off.attributes else None
    targets = () if statement is None else targets_of(statement)
    return any(isinstance(item, cst.Attribute) and item.attr.value in off.attributes for item in targets)


def _telling(holder: ClassInfo | FunctionInfo, body: cst.CSTNode) -> list[cst.CSTNode]:
    """What in a body tells of the mode: where it is asked for, calls, and the names of other classes of the project."""
    model = holder.model
    known = model.runs.telling_of_modes
    if id(body) not in known:
        known[id(body)] = [node for node in subtree(body) if _tells(model, node, holder)]
    return known[id(body)]


def _tells(model: "Model", node: cst.CSTNode, holder: ClassInfo | FunctionInfo) -> bool:
    kind = type(node)
    if kind is cst.Name:
        mentioned = model.value(whole(model, node))  # type: ignore[arg-type]
        return isinstance(mentioned, ClassObject) and mentioned.definition is not holder
    if kind is cst.Attribute:
        is_named = node.attr.value == "training"  # type: ignore[attr-defined]
        if not is_named or isinstance(model.tree.parent(node), cst.AssignTarget):
            return False  # where it is set nobody asks
        return not (_is_whole_test(model, node) and _only_switches(model.tree.nearest(node, cst.If)))
    return kind is cst.Call


def _is_only_read(model: "Model", node: cst.Call) -> bool:
    """Whether only a part of what is made is kept: ``vgg16().features``, while the dropout is in another.

    So it is where a name of the function holds the whole, and is read for its attributes alone.
    """
    if _reads_part(model, node):
        return True
    statement = model.tree.parent(node)
    bound = bound_by(model, statement) if isinstance(statement, cst.Assign) else ()
    if len(bound) != 1 or "." in bound[0].key or bound[0].path:
        return False
    read = list(uses(model, bound[0]))
    return bool(read) and all(_reads_part(model, use) for use in read)


def _reads_part(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an attribute of what an expression stands for is read: no method is called."""
    read = model.tree.parent(node)
    return isinstance(read, cst.Attribute) and read.value is node and model.tree.call_of(read) is None


def _may_be_given_mode(holder: ClassInfo | FunctionInfo) -> bool:
    """Whether a class copies attributes of whatever names, its mode perhaps, from another object."""
    return isinstance(holder, ClassInfo) and holder.members.sets_computed_names


def _is_whole_test(model: "Model", training: cst.CSTNode) -> bool:
    """Whether nothing but the mode decides what is done: ``if not self.training:``."""
    test = training
    while isinstance(parent := model.tree.parent(test), cst.UnaryOperation):
        test = parent
    return isinstance(parent, cst.If) and parent.test is test


def _only_switches(branch: cst.If | None) -> bool:
    """Whether an ``if`` does no more than switch the mode, ``if self.training: self.eval()``, whatever the layers."""
    if branch is None or branch.orelse is not None:
        return False
    only = last_statement(branch.body)
    call = only.value if isinstance(only, cst.Expr) and len(branch.body.body) == 1 else None
    return isinstance(call, cst.Call) and last_word(call.func) in _SWITCHING


def _is_left_out(made: ClassInfo | None, model: "Model", node: cst.Call, making: Making, run: Frame | None) -> bool:
    """Whether a layer is not made for what its maker is given, or is part of an attribute that nothing reads.

    ``forward`` then gives what comes before it. Or it is read only where a flag is on which is off for what is made:
    ``if self.dropout: x = self.layer(x)``.
    """
    if may_be_left_out(model, node, run):
        return True
    if made is None:
        return False
    forward = made.method("forward")
    statement = model.tree.statement_around(node)
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    if forward is None or forward.self_name is None or not isinstance(target, cst.Attribute):
        return False
    if getattr(target.value, "value", None) != forward.self_name or made.members.reads_computed_names:
        return False
    runs_all = any(
        isinstance(item, cst.Attribute)
        and item.attr.value in _ALL_PARTS
        and getattr(item.value, "value", None) == forward.self_name
        for item in subtree(forward.node.body)
    )
    return not runs_all and all(_is_off(read, making) for read in made.members.reads(target.attr.value))


def _is_off(read: Read, making: Making) -> bool:
    """Whether a flag that holds a place is off for what is made."""
    model = read.method.model
    held = (test for test, is_met in verdicts(model, read.node) if is_met)
    return any(isinstance(test, cst.Attribute) and drops_nothing(model, test, making) for test in held)


def _is_given_dropout(call: cst.Call) -> bool:
    """Whether something that is made is told how much to drop, by the name that everybody has for it."""
    return constant_given(call, None, "dropout", 0) not in (None, 0)


def _is_arithmetic(call: cst.Call) -> bool:
    """Whether what is called is named as a method of arrays and tensors: it makes no layer."""
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    return any(lookup.tensor_method(framework, name) is not None for framework in ("torch", "paddle"))


def _method(model: "Model", node: cst.CSTNode) -> str | None:
    function = model.enclosing_function(node)
    return None if function is None else function.name.value
