"""The keys of the state dict of a module that an expression stands for."""

from collections import Counter
from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import libcst as cst

from mllint.knowledge import lookup
from mllint.knowledge.words import ADDING_MODULES, ADDING_PARAMETERS
from mllint.semantic.construction.builder import Construction
from mllint.semantic.construction.libraries import is_module_class
from mllint.semantic.construction.parts import UNKNOWN, Part, open_part
from mllint.semantic.construction.state_keys import WRAPPER_PREFIXES, KeySet
from mllint.semantic.events.places import as_itself
from mllint.semantic.names.receivers import method_of_receiver, owner_of_attribute
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.uses import mentions
from mllint.semantic.values import ClassObject, Module, Symbol, Value
from mllint.syntax.shape import dotted_path, root_of
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo

ANYTHING = KeySet(open=frozenset({""}))
"""The keys of a module of which nothing is known."""
_NO_WRAPPER = KeySet(open=frozenset({""}), never=frozenset(WRAPPER_PREFIXES))
# Methods that change which modules, parameters and buffers a module has.
_CHANGES = ADDING_MODULES | ADDING_PARAMETERS | {"append", "extend", "insert", "load_adapter", "register_buffer"}
# Functions whose name says that they change the modules inside the one that they are given.
_CHANGING_WORDS = ("lora", "quant", "prune", "fuse", "inject", "adapter", "replace", "patch", "convert", "swap")


def begins_with_weights(model: "Model", module: Module) -> bool:
    """Whether the call that builds a module of a project class surely registers weights; others may come later."""
    call, definition = module.call, module.definition
    home = None if call is None or definition is None else _home(model, call, definition)
    if call is None or definition is None or home is None:
        return False
    ways = (Construction(is_new=True).built_by(call, home, definition, names) for names in _classes_at_hand(home, call))
    return all(isinstance(part, Part) and bool(part.keys().certain) for part in ways)


def _classes_at_hand(model: "Model", call: cst.Call) -> list[dict[str, Any]]:
    """What is given to a call of the attributes of the object at hand that stand for classes of layers, in each way:
    ``Block(3, self.conv)`` with ``self.conv = nn.Conv2d if flat else nn.Conv3d``.
    """
    asked = [part for part in subtree(call) if isinstance(part, cst.Attribute) and isinstance(part.value, cst.Name)]
    owners = [(part, owner_of_attribute(model, part)) for part in asked]
    found = {part.attr.value: _classes_bound(owner, part.attr.value) for part, owner in owners if owner is not None}
    if not any(found.values()):
        return [{}]
    receivers = {root_of(part) for part, owner in owners if owner is not None}
    names = {root.value for root in receivers if isinstance(root, cst.Name)}
    ways: list[dict[str, Any]] = []
    for number in range(max(map(len, found.values()))):
        held = {name: several[min(number, len(several) - 1)] if several else UNKNOWN for name, several in found.items()}
        ways.append({name: Part(attributes=dict(held), is_open=True) for name in names})
    return ways


def _classes_bound(owner: "ClassInfo", name: str) -> list[Value]:
    """The classes of layers that an attribute stands for; none where it is or may be anything else."""
    found: list[Value] = []
    for binding in owner.assignments(name):
        pending = [binding.value]
        while pending:
            node = pending.pop()
            if isinstance(node, cst.IfExp):
                pending += [node.body, node.orelse]
                continue
            value = None if node is None or binding.path else binding.scope.model.value(node)
            known = lookup.class_(value.name) if isinstance(value, Symbol) else None
            is_class = isinstance(value, ClassObject) and value.definition.framework is not None
            if value is None or not (is_class or (known is not None and known.kind in ("layer", "rnn"))):
                return []
            found.append(value)
    return found


def _home(model: "Model", call: cst.Call | None, definition: "ClassInfo | None") -> "Model | None":
    """The file in which a call stands that builds a module."""
    homes = [model] if definition is None else [model, definition.model]
    return next((home for home in homes if id(call) in home.tree.parents), None)


@worked_out_once
def module_keys(model: "Model", node: cst.BaseExpression, module: Module) -> KeySet:
    """The keys of the state dict of the module that an expression stands for.

    Every file around that loads asks about what is saved in one, and the answer is the same.
    """
    changed = _changed_later(model, node, module)
    part = Construction().built_at(node, model)
    if isinstance(part, Part) and not (part.is_open and not part.children):
        for change in changed:
            change.apply(part)
        return _excluding_wrapper(part.keys(), module)
    keys = ANYTHING if "?" in module.wrappers else _bare_keys(model, module, changed)
    for name in reversed(module.wrappers):
        wrapper = lookup.wrapper(name)
        if wrapper is not None:
            keys = keys.prefixed(wrapper.prefix)
        if name.endswith("AveragedModel"):
            keys |= KeySet(optional=frozenset({"n_averaged"}))
    return keys


def _bare_keys(model: "Model", module: Module, changed: "list[_Changed]") -> KeySet:
    """The keys of a module without its wrappers, from the call that builds it; of one of several, from each call."""
    if module.call is None and module.others:
        every = [_bare_keys(model, other, changed) for other in module.others]
        # One without weights beside one that has some: what that means for a load is not known.
        return ANYTHING if len({keys.is_empty for keys in every}) > 1 else reduce(KeySet.either, every)
    call, definition = module.call, module.definition
    home = _home(model, call, definition)
    if call is None or home is None:
        # Of a module that was handed over only the class is known, and what is handed over may derive from it.
        return ANYTHING
    if definition is not None:
        part = Construction().built_by(call, home, definition)
    elif module.name is not None and is_module_class(module.name):
        part = Construction().built_by_library(call, home, module.name)
    else:
        return _NO_WRAPPER
    if not isinstance(part, Part):
        return ANYTHING
    for change in changed:
        change.apply(part)
    return _excluding_wrapper(part.keys(), module)


def _excluding_wrapper(keys: KeySet, module: Module) -> KeySet:
    """The same keys; of those that are not known none begins with the prefix of a wrapper that the module is not in."""
    if keys.is_closed or module.wrappers or _may_be_wrapper(module):
        return keys
    return KeySet(keys.certain, keys.optional, keys.open, keys.never | frozenset(WRAPPER_PREFIXES))


def _may_be_wrapper(module: Module) -> bool:
    """Whether an unwrapped module of this class may have a child with the name that wrappers use."""
    definition = module.definition
    if definition is None:
        return module.call is None
    return definition.has_unknown_base or any(
        True for name in ("module", "_orig_mod") for _ in definition.assignments(name)
    )


class _Changed(NamedTuple):
    """A change of what a module has under a name (``None``: not known which).

    ``wrapper``: the word for the part in the wrapper that it was put into, empty where that comes later; ``None``:
    something else may be there.
    """

    name: str | None
    wrapper: str | None = None

    def apply(self, part: Part) -> None:
        """Make the change in the module."""
        if self.name is None or self.wrapper is None:
            part.loosen(self.name)
        elif self.wrapper:
            inner = part.children.get(self.name, open_part())
            part.register(self.name, Part(children={self.wrapper: inner}))


def _changed_later(model: "Model", node: cst.BaseExpression, module: Module) -> list[_Changed]:
    """What the file changes in a module after it was built."""
    changed: list[tuple[str, str | None]] = []
    calls = [module.call, *(other.call for other in module.others)]
    paths = {key: path for call in calls for path in _names_of(model, node, call) if (key := dotted_path(path))}
    for key, path in sorted(paths.items()):
        for holder in _mentions_of(model, path):
            parent = model.tree.parent(holder)
            found = [] if parent is None else _change(model, holder, parent)
            if found and not _is_another(model, holder, calls):
                changed += [(key, name) for name in found]
    names = Counter(name for _, name in changed)
    return [
        _Changed(name, _put_into(model, node, key, name) if name is not None and names[name] == 1 else None)
        for key, name in changed
    ]


def _put_into(model: "Model", node: cst.BaseExpression, key: str, name: str) -> str | None:
    """The word for a part of a module inside the wrapper that the same function has put it into on each way to a place.

    ``net.encoder = DataParallel(net.encoder)``. Empty where it does so behind the place only, ``None`` where more, or
    something else, may have happened.
    """
    scope, path = model.scope_of(node), f"{key}.{name}"
    bound = scope.bindings.get(path, [])
    made = as_itself(bound[0].value) if len(bound) == 1 and bound[0].value is not None else None
    wrapper = lookup.wrapper(model.qualified_name(made.func) or "") if isinstance(made, cst.Call) else None
    if wrapper is None or not wrapper.prefix or not isinstance(made, cst.Call) or not made.args:
        return None
    if dotted_path(as_itself(made.args[0].value)) != path or dotted_path(node) != key:
        return None
    if scope.reaching(key, bound[0].node).bindings != scope.reaching(key, node).bindings:
        return None
    reaching = scope.reaching(path, node)
    if not reaching.bindings:
        return ""
    return None if reaching.may_be_unbound else wrapper.prefix.removesuffix(".")


def _is_another(model: "Model", holder: cst.Name | cst.Attribute, calls: list[cst.Call | None]) -> bool:
    """Whether a name surely stands for a module that another call has built than those that are asked about."""
    made = [model.binding_value(binding) for binding in model.reaching(holder)]
    return bool(made) and all(
        isinstance(value, Module) and value.call is not None and not value.others and value.call not in calls
        for value in made
    )


def _names_of(model: "Model", node: cst.BaseExpression, call: cst.Call | None) -> list[cst.BaseExpression]:
    """The names and dotted paths that the module is known by."""
    names = [node]
    for ancestor in () if call is None else model.tree.ancestors(call):
        if isinstance(ancestor, cst.Assign):
            names += [target.target for target in ancestor.targets]
        if isinstance(ancestor, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            break
    return names


def _mentions_of(model: "Model", path: cst.BaseExpression) -> Iterator[cst.Name | cst.Attribute]:
    """Where the file names a path; ``self.fc`` in its class, in the bases of that, and in what derives from it."""
    key, root = dotted_path(path) or "", root_of(path)
    method = None if root is path else method_of_receiver(model, root)
    if method is None or method.owner is None:
        return mentions(model, key)
    word, family = key.rpartition(".")[2], method.owner.members.family(model)
    return mentions(model, key, (name for info in family for name in model.names_within(word, model.scope(info.node))))


def _change(model: "Model", holder: cst.CSTNode, parent: cst.CSTNode) -> list[str | None]:
    """What one use of a module changes in it."""
    if isinstance(parent, cst.Attribute) and parent.value is holder:
        if model.tree.call_of(parent) is not None:
            return [None] if parent.attr.value in _CHANGES else []
        above = model.tree.parent(parent)
        # `model.head.fc = ...` changes something below `head`.
        while isinstance(above, (cst.Attribute, cst.Subscript)):
            above = model.tree.parent(above)
        return [parent.attr.value] if isinstance(above, (cst.AssignTarget, cst.Del, cst.AugAssign)) else []
    if isinstance(parent, cst.Subscript) and parent.value is holder:
        above = model.tree.parent(parent)
        return [None] if isinstance(above, (cst.AssignTarget, cst.Del)) else []
    call = model.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(call, cst.Call) and isinstance(parent, cst.Arg):
        called = (dotted_path(call.func) or "").rpartition(".")[2].lower()
        if called in ("setattr", "delattr") or any(word in called for word in _CHANGING_WORDS):
            return [None]
    return []
