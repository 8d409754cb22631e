"""What lists, tuples and dicts hold that ought to be registered: new modules with weights, and parameters."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.knowledge.words import ADDING_MODULES
from mllint.semantic.modules.fresh import is_fresh, is_fresh_on_some_way, is_fresh_parameter, takes_others
from mllint.semantic.modules.lost_parameters import parameter_inside
from mllint.semantic.modules.made_on_cpu import moves
from mllint.semantic.modules.weights import (
    drops_values,
    has_weights,
    have_weights,
    is_constant,
    made_by,
    made_by_default,
    makes_weights,
    registers_given_tensor,
)
from mllint.semantic.names.classes import makes_parameter
from mllint.semantic.names.scopes import Binding, BindingKind, all_assigned, assigned, grown_from
from mllint.semantic.names.uses import without_narrowing
from mllint.semantic.values import ClassObject, Function, Module, Repeated, Symbol, is_object
from mllint.syntax.shape import argument, constant, dotted_path, is_target, part_at, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo

BUILDERS = frozenset({
    "builtins.list", "builtins.tuple", "builtins.set", "builtins.dict", "collections.OrderedDict", "builtins.sorted",
    "builtins.reversed", "collections.deque", "collections.defaultdict", "itertools.chain",
})  # fmt: skip
_DICTS = frozenset({"builtins.dict", "collections.OrderedDict", "collections.defaultdict"})
PUTTING = frozenset({"append", "extend", "insert", "update", "appendleft"})
"""The methods of containers that put something into them."""
_ADDING = ADDING_MODULES | {"append"}
_DISPLAYS = (cst.List, cst.Tuple, cst.Set, cst.Dict, cst.ListComp, cst.SetComp, cst.DictComp)


class Contents(msgspec.Struct):
    """What a container surely holds that ought to be registered.

    ``is_uniform``: it holds nothing else. ``is_keyed``: it is a dict; ``has_plain_keys``: whose keys are all
    identifiers. ``is_nested``: what is held lies in a container inside it.
    """

    modules: list[cst.BaseExpression] = []
    parameters: list[cst.BaseExpression] = []
    is_uniform: bool = True
    is_keyed: bool = False
    has_plain_keys: bool = True
    is_nested: bool = False
    is_grown: bool = False


def is_display(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether an expression is a display, a comprehension, or the call of what makes a container."""
    if type(node) is cst.Call:
        return model.qualified_name(node.func) in BUILDERS
    if type(node) is cst.BinaryOperation and type(node.operator) in (cst.Add, cst.Multiply):
        return is_display(model, node.left) or is_display(model, node.right)
    return type(node) in _DISPLAYS


def display_of(function: "FunctionInfo", value: cst.BaseExpression) -> cst.BaseExpression | None:
    """What makes a container: the expression itself, or what its name is bound to in the function, and grows from."""
    model = function.model
    if not isinstance(value, cst.Name):
        return value if is_display(model, value) else None
    begun = [item for item in grown_from(model, value) if item.kind is not BindingKind.AUGMENTED]
    found = assigned(begun[0]) if len(begun) == 1 and begun[0].scope.node is function.node else None
    return found if found is not None and is_display(model, found) else None


def mentions_of(function: "FunctionInfo", value: cst.BaseExpression) -> Iterator[cst.Name]:
    """The other places in a function that read the name of a container while it stands for that."""
    if isinstance(value, cst.Name):
        model = function.model
        bound = grown_from(model, value)
        for name in model.names_by_word.get(value.value, ()):
            is_here = name is not value and model.enclosing_function(name) is function.node
            if not is_here or is_target(model.tree.parent(name), name):
                continue
            reaching = model.reaching(name)
            if not reaching or any(binding in bound for binding in reaching):
                yield name


def maker_of(
    model: "Model", node: cst.BaseExpression, path: tuple[int | None, ...] = ()
) -> "tuple[FunctionInfo, cst.BaseExpression] | None":
    """The function of the project whose call makes a container anew, and what it returns: ``self._make_layers(3)``.

    ``path``: where the container is in what the function returns, as in ``self.size, self.layers = make(3)``.
    """
    called = model.value(node.func) if isinstance(node, cst.Call) else None
    if not isinstance(called, Function) or not (called.definition.is_plain and called.definition.is_transparent):
        return None
    returned = [part_at(statement.value, path) for statement in called.definition.scope.returns]
    if len(returned) != 1 or returned[0] is None or display_of(called.definition, returned[0]) is None:
        return None
    return called.definition, returned[0]


class Filling:
    """Gathers what a file puts into a container.

    ``is_given`` tells which names stand for a list of modules that somebody else has made.
    """

    def __init__(
        self, model: "Model", contents: Contents, is_given: Callable[[cst.Name], bool] = lambda _: False
    ) -> None:
        self.model = model
        self.contents = contents
        self.is_given = is_given

    def grow(self, node: cst.BaseExpression, *, nested: bool = False) -> None:
        """Add what is put into the container where it is read, or into one inside it: ``self.heads[k].append``."""
        parent = self.model.tree.parent(node)
        above = None if parent is None else self.model.tree.parent(parent)
        if isinstance(parent, cst.Attribute) and isinstance(above, cst.Call) and above.func is parent:
            if parent.attr.value in PUTTING and above.args:
                self._note_growth(nested)
                put = above.args[-1].value
                if parent.attr.value in ("extend", "update"):
                    self.take(put, nested=nested)
                else:
                    self._add(put, nested=nested)
        elif isinstance(parent, cst.AugAssign) and parent.target is node:
            self._note_growth(nested)
            self.take(parent.value, nested=nested)
        elif isinstance(parent, cst.Subscript) and parent.value is node and isinstance(above, cst.AssignTarget):
            statement = self.model.tree.parent(above)
            if isinstance(statement, cst.Assign) and not nested:
                self.contents.is_grown = True
                self._note_key(parent.slice[0].slice.value if isinstance(parent.slice[0].slice, cst.Index) else None)
                self._add(statement.value)
        elif isinstance(parent, cst.Subscript) and parent.value is node and not nested:
            self.grow(parent, nested=True)

    def _note_growth(self, nested: bool) -> None:
        self.contents.is_grown = True
        self.contents.is_nested = self.contents.is_nested or nested

    def take(self, node: cst.BaseExpression, *, nested: bool = False) -> None:
        """Add what a display, comprehension or constructor of a container holds."""
        match node:
            case cst.Name() if self.is_given(node):
                self.contents.modules.append(node)
                if not isinstance(self.model.value(node), Repeated):
                    self.contents.is_uniform = False  # nobody says that there is nothing else in it
            case cst.List() | cst.Tuple() | cst.Set():
                for element in node.elements:
                    if isinstance(element, cst.StarredElement):
                        self.take(element.value, nested=nested)
                    else:
                        self._add(element.value, nested=nested)
            case cst.ListComp() | cst.SetComp() | cst.GeneratorExp():
                self._add(node.elt, nested=nested)
            case cst.Dict():
                self.contents.is_keyed = True
                for item in node.elements:
                    if isinstance(item, cst.DictElement):
                        self._note_key(item.key)
                        self._add(item.value, nested=nested)
                    else:
                        self.contents.is_uniform = False
            case cst.DictComp():
                self.contents.is_keyed = True
                self._note_key(node.key)
                self._add(node.value, nested=nested)
            case cst.BinaryOperation():
                for side in (node.left, node.right):
                    if is_display(self.model, side):
                        self.take(side, nested=nested)
                    elif isinstance(node.operator, cst.Add):
                        self.contents.is_uniform = False
            case cst.Call() if self.model.qualified_name(node.func) in BUILDERS:
                self._take_arguments(node, nested)
            case cst.Call(args=[cst.Arg(value=maker), *_]) if self.model.qualified_name(node.func) == "builtins.map":
                self._take_mapped(node, maker, nested)
            case _:
                self.contents.is_uniform = False

    def _take_arguments(self, call: cst.Call, nested: bool) -> None:
        if self.model.qualified_name(call.func) in _DICTS:
            self.contents.is_keyed = True
            if any(arg.keyword is None for arg in call.args):
                self.contents.is_uniform = False
        for arg in call.args:
            if arg.keyword is not None:
                self._add(arg.value, nested=nested)
            else:
                self.take(arg.value, nested=nested)

    def _take_mapped(self, call: cst.Call, maker: cst.BaseExpression, nested: bool) -> None:
        """Add what ``map`` makes: ``map(lambda n: nn.Linear(n, n), sizes)``, ``map(nn.Linear, sizes, sizes)``."""
        made = None if isinstance(maker, cst.Lambda) else made_by(self.model, maker)
        if isinstance(maker, cst.Lambda):
            self._add(maker.body, nested=nested)
        elif made is not None and have_weights(made):
            self.contents.modules.append(call)
        else:
            self.contents.is_uniform = False

    def _note_key(self, key: cst.BaseExpression | None) -> None:
        text = string_literal(key)
        if text is None and constant(key) is not ...:
            self.contents.is_uniform = False  # a dict of modules takes strings alone
        self.contents.has_plain_keys = self.contents.has_plain_keys and text is not None and text.isidentifier()

    def _add(self, node: cst.BaseExpression, *, nested: bool = False) -> None:
        """Add one element, or what lies in it where it is a container of its own."""
        if is_display(self.model, node) and not nested:
            self.contents.is_nested = True
            self.take(node, nested=True)
        elif isinstance(node, cst.IfExp):
            self._add(node.body, nested=nested)
            self._add(node.orelse, nested=nested)
        elif makes_parameter(self.model, node) or is_fresh_parameter(self.model, node):
            self.contents.parameters.append(node)
        elif parameter_inside(self.model, node) is not None:
            self.contents.parameters.append(node)
            self.contents.is_uniform = False  # moved, say, and so no parameter by itself
        elif self._is_one_of_several(node):
            self.contents.modules.append(node)
        elif self._is_one_of_given(node):
            self.contents.modules.append(node)
            self.contents.is_uniform = False  # nobody says that there is nothing else among them
        elif isinstance(self.model.value(node), Module):
            is_new = is_fresh(self.model, node) or _brings_weights(self.model, node)
            is_new = is_new or is_fresh_on_some_way(self.model, node)
            if is_new and _trains_itself(self.model, node):
                self.contents.is_uniform = False  # whose owner need know nothing of it
            elif is_new and _matters(self.model, node):
                self.contents.modules.append(node)
            elif self._is_overwritten(node) or self._is_given_overwritten(node):
                self.contents.modules.append(node)
                self.contents.is_uniform = False  # the last one is registered already
        elif self._is_made_by_default(node):
            self.contents.modules.append(node)
        elif constant(node) is not None:
            self.contents.is_uniform = False

    def _is_made_by_default(self, node: cst.BaseExpression) -> bool:
        """Whether a parameter that stands for a class of layers makes a new one with weights, given no other modules:
        ``block(dim)`` with ``block=Block``; also under a local name, which is put nowhere else.
        """
        return _makes_by_default(self.model, node) or (
            self.model.value(node) is None
            and is_fresh_on_some_way(self.model, node, lambda model, made, _: _makes_by_default(model, made))
        )

    def _is_one_of_given(self, node: cst.BaseExpression) -> bool:
        """Whether a loop goes through a list that somebody else has made:
        ``for layer in layers: kept.append(layer)``.
        """
        bindings = without_narrowing(self.model.reaching(node)) if isinstance(node, cst.Name) else []
        looped = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
        return isinstance(looped, cst.Name) and bindings[0].kind is BindingKind.LOOP and self.is_given(looped)

    def _is_one_of_several(self, node: cst.BaseExpression) -> bool:
        """Whether a name stands for one new module or another, of classes that have nothing in common."""
        made = all_assigned(self.model, node) if isinstance(node, cst.Name) else []
        are_modules = len(made) > 1 and all(isinstance(self.model.value(item), Module) for item in made)
        return are_modules and is_fresh(self.model, node) and any(_matters(self.model, item) for item in made)

    def _is_overwritten(self, node: cst.BaseExpression) -> bool:
        """Whether an attribute holds each new module of a loop in turn, so that it registers the last one alone."""
        bindings = self.model.reaching(node) if isinstance(node, cst.Attribute) else ()
        return bool(bindings) and all(self._is_of_round(binding, node) for binding in bindings)

    def _is_of_round(self, binding: Binding, node: cst.BaseExpression) -> bool:
        """Whether a new module that matters is bound in a round of a loop around a place."""
        value, model = binding.value, self.model
        if value is None or binding.path:
            return False
        is_in_loop = any(model.tree.is_inside(value, loop) for loop in model.tree.loops_around(node))
        return is_in_loop and is_fresh(model, value) and _matters(model, value)

    def _is_given_overwritten(self, node: cst.BaseExpression) -> bool:
        """Whether a new module is given such an attribute, and no modules else: ``NNConv(3, 3, self.inner)``."""
        if not isinstance(node, cst.Call) or not isinstance(self.model.value(node.func), (ClassObject, Symbol)):
            return False
        given = [arg.value for arg in node.args if isinstance(self.model.value(arg.value), Module)]
        return bool(given) and all(map(self._is_overwritten, given)) and _matters(self.model, node)


def _makes_by_default(model: "Model", node: cst.BaseExpression) -> bool:
    made = made_by_default(model, node) if isinstance(node, cst.Call) else None
    return (
        made is not None
        and isinstance(node, cst.Call)
        and model.value(node) is None
        and have_weights(made)
        and not takes_others(model, node)
    )


def _brings_weights(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a new module has weights of its own, beside modules that it is given: ``Block(nn.Linear(3, 3), act)``."""
    callee = model.value(node.func) if isinstance(node, cst.Call) else None
    return isinstance(callee, ClassObject) and makes_weights(callee.definition)


def _trains_itself(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a module makes an optimizer of its own parameters: ``self.optimizer = Adam(self.parameters())``."""
    value = model.value(node)
    definition = value.definition if isinstance(value, Module) else None
    return any(
        is_object(info.model.value(call), "optimizer")
        and any(dotted_path(part) == "self.parameters" for arg in call.args for part in subtree(arg.value))
        for info in (() if definition is None else definition.lineage)
        for call in info.model.tree.calls_in(info.node.body)
    )


def _matters(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a module has something to train, save, move or switch off."""
    value = model.value(node)
    return (
        drops_values(model, node)
        or (isinstance(value, Module) and registers_given_tensor(value))
        or (has_weights(model, node) is True and not is_constant(model, node) and not _is_given_table(model, node))
        or _is_given_weights(model, node)
    )


def _is_given_table(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a layer with a local name, without a bias, gets a parameter for its weights that nothing trains, and
    that is where it belongs: ``conv.weight = nn.Parameter(kernel.cuda(), requires_grad=False)``.
    """
    bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    made = assigned(bindings[0]) if len(bindings) == 1 else None
    bias = argument(made, None, "bias") if isinstance(made, cst.Call) else None
    if not isinstance(node, cst.Name) or bias is None or constant(bias.value) is not False:
        return False
    given = [item.value for item in model.scope_of(node).bindings.get(f"{node.value}.weight", ())]
    return bool(given) and all(_is_moved_table(model, value) for value in given)


def _is_moved_table(model: "Model", value: cst.BaseExpression | None) -> bool:
    """Whether a parameter is made that asks for no gradients, of a tensor that somebody has moved."""
    asks = argument(value, 1, "requires_grad") if isinstance(value, cst.Call) else None
    if value is None or asks is None or constant(asks.value) is not False or not makes_parameter(model, value):
        return False
    return any(isinstance(part, cst.Attribute) and moves(model, part) for part in subtree(value))


def _is_given_weights(model: "Model", node: cst.BaseExpression) -> bool:
    """Whether a module with a local name gets a new layer with weights: ``stage.add_module("conv", conv)``."""
    bindings = model.reaching(node) if isinstance(node, cst.Name) else ()
    for name in model.names_by_word.get(node.value, ()) if isinstance(node, cst.Name) and bindings else ():
        called = model.tree.parent(name)
        call = model.tree.call_of(called) if isinstance(called, cst.Attribute) and called.value is name else None
        if isinstance(called, cst.Attribute) and call is not None and call.args and called.attr.value in _ADDING:
            layer = call.args[-1].value
            if (
                any(binding in bindings for binding in model.reaching(name))
                and is_fresh(model, layer)
                and has_weights(model, layer) is True
            ):
                return True
    return False
