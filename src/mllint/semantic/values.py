"""The kinds of thing an expression can be, and how two of them join.

A value says only what is certain. ``None`` in a field, and ``None`` in place of a value, mean "not known".
"""

from typing import TYPE_CHECKING, Literal, TypeGuard

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    import libcst as cst

    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import ClassInfo, FunctionInfo

Framework = Literal["torch", "paddle"]


class Value(msgspec.Struct, frozen=True):
    """Base of all kinds."""


class Unfinished(Value, frozen=True):
    """A thing that is being derived from itself: it adds nothing of its own, whatever is done with it."""


class Symbol(Value, frozen=True):
    """Something imported or built in that is known by its canonical qualified name only."""

    name: str


class Member(Value, frozen=True):
    """Something of a library's package that is picked by name at run time: ``getattr(torch.optim, name)``."""

    package: str


class File(Value, frozen=True):
    """A module of the project itself."""

    model: "Model"


class Tensor(Value, frozen=True):
    """A tensor of a framework.

    ``attached``: whether it hangs on an autograd graph. ``scalar``: whether it is 0-d. ``parameter``: surely a
    ``Parameter`` (assigning another tensor to the attribute that holds it raises). ``one_element``: it surely holds one
    number, though maybe not as 0-d (``backward()`` is called on it). ``or_number``: on some path it is a Python number
    instead. ``leaf``: it was made as a leaf that needs a gradient (``leaves.is_leaf`` knows later flags too).
    """

    framework: Framework
    attached: bool | None = None
    scalar: bool | None = None
    parameter: bool = False
    one_element: bool = False
    or_number: bool = False
    leaf: bool = False


class Module(Value, frozen=True):
    """A module or layer.

    ``name`` is the canonical class name of a library module, ``definition`` the class of a project module. ``call`` is
    the constructor call where it is known to be the only one. ``wrappers`` are the canonical names of what it is
    wrapped in, outermost first; ``?`` for what is not known. ``others``: where it is one of several modules, each of
    them, without the wrappers. ``inside``: where it is in one more wrapper on some ways, what its inside is wrapped in.
    """

    framework: Framework
    name: str | None = None
    definition: "ClassInfo | None" = None
    call: "cst.Call | None" = None
    wrappers: tuple[str, ...] = ()
    others: "tuple[Module, ...]" = ()
    inside: tuple[str, ...] | None = None

    @property
    def is_only_some(self) -> bool:
        """Whether no more is known than that it is a module, by the way it is used or annotated."""
        return self.definition is None and self.name is None and self.call is None and not self.others


class Object(Value, frozen=True):
    """An instance of a library class that is no module: optimizer, scheduler, loader, sampler, scaler, dataset...

    ``kind`` is the kind in the knowledge tables.
    """

    kind: str
    name: str
    call: "cst.Call | None" = None

    @property
    def framework(self) -> Framework | None:
        """The framework the class belongs to."""
        root = self.name.partition(".")[0]
        return "torch" if root == "torch" else "paddle" if root == "paddle" else None


class Instance(Value, frozen=True):
    """An instance of a project class that is no module."""

    definition: "ClassInfo"


class ClassObject(Value, frozen=True):
    """A class of the project itself."""

    definition: "ClassInfo"


class Function(Value, frozen=True):
    """A function of the project; ``receiver`` is what it is bound to."""

    definition: "FunctionInfo"
    receiver: Value | None = None


class Choice(Value, frozen=True):
    """One of several classes or functions, each of which is known: ``layer = A if small else B``."""

    options: tuple[Value, ...]


def is_object(value: Value | None, kind: str) -> TypeGuard[Object]:
    """Whether a value is surely an object of some kind: an optimizer, a scheduler, a loader."""
    return isinstance(value, Object) and value.kind == kind


def own_method(value: Value | None, name: str) -> "FunctionInfo | None":
    """The method of that name which a class of the project gives an object; ``None`` where none does."""
    definition = value.definition if isinstance(value, (Module, Instance)) else None
    return None if definition is None else definition.method(name)


def functions_of(value: Value | None) -> tuple[Function, ...]:
    """The functions of the project of which a value is one; empty where it may be anything else."""
    options = value.options if isinstance(value, Choice) else (value,)
    functions = tuple(option for option in options if isinstance(option, Function))
    return functions if len(functions) == len(options) else ()


def as_called(value: Value | None) -> Value | None:
    """What a call of a value runs: of an object of the project its ``__call__``, of everything else itself."""
    own = own_method(value, "__call__") if isinstance(value, Instance) else None
    return value if own is None else Function(own, value)


class Method(Value, frozen=True):
    """A method of a library object, not yet called."""

    receiver: Value
    name: str


class Array(Value, frozen=True):
    """A numpy array; ``scalar``: whether it is 0-d (or a numpy scalar)."""

    scalar: bool | None = None


class Number(Value, frozen=True):
    """A Python number or bool."""


class Text(Value, frozen=True):
    """A string; ``literal`` where it is one."""

    literal: str | None = None


class Nothing(Value, frozen=True):
    """``None``."""


class Elements(Value, frozen=True):
    """A tuple or list whose elements are known one by one (``None`` for an unknown one)."""

    items: tuple[Value | None, ...]
    mutable: bool = False


class Repeated(Value, frozen=True):
    """An iterable all of whose elements are alike."""

    item: Value | None
    kind: str = "list"


class Batch(Value, frozen=True):
    """What a data loader yields, or a part of it.

    With the default collation, and for the parts that any batch is unpacked into, it is a tensor, or a list, tuple or
    dict of batches, or a list of strings; only a tensor among these has tensor methods. ``opaque``: the whole of what
    a loader yields of which the collation is not known; that may be an object of any class.
    """

    framework: Framework
    opaque: bool = False


class Output(Value, frozen=True):
    """What a module of unknown class gives or is given, or a part of it: a tensor or a structure of tensors."""

    framework: Framework
    attached: bool | None = None


class StateDict(Value, frozen=True):
    """What ``state_dict()`` of ``owner`` gives."""

    owner: Value | None
    node: "cst.CSTNode | None" = None


class Loaded(Value, frozen=True):
    """What ``load`` read from a file; ``keys`` are the string subscripts taken of it since."""

    framework: Framework
    call: "cst.Call"
    keys: tuple[str, ...] = ()


class Mapping(Value, frozen=True):
    """A dict; ``node`` is its display or constructor where that is known to be the only one.

    ``item`` is what all of its values are, where that is declared. ``home`` is the file in which ``node`` stands, if it
    is a display; of the file itself, it is the table of its names. ``graph``: whether the tensors in it hang on a graph
    where the display says so; not what a call under ``no_grad`` gives.
    """

    node: "cst.CSTNode | None" = None
    item: Value | None = None
    home: "Model | None" = None
    graph: bool | None = True


class Other(Value, frozen=True):
    """Something known to be none of the above: a size, dtype, device, generator, ...; ``kind`` says which."""

    kind: str


class NoTensor(Value, frozen=True):
    """Something of which a test has told that it is no tensor, and of which nothing else is known."""


class Options(Other, frozen=True):
    """The options of a program, as ``argparse`` parses them in the file ``model``."""

    model: "Model"


_NEVER_TENSORS = (NoTensor, Number, Text, Array, Mapping, Elements, Repeated, Module, Object, Other)
MAX_OTHERS = 8
"""How many modules one may be that are looked at one by one."""


def join(first: Value | None, second: Value | None) -> Value | None:
    """What is certain of a thing that is one value on one path and another on another; ``None``: nothing is.

    ``None`` (the Python object) gives way to the other value: it has none of the methods that anybody asks about.
    """
    if first == second:
        return first
    if first is None or second is None:
        return None
    if isinstance(first, Unfinished):
        return second
    if isinstance(second, Unfinished):
        return first
    if isinstance(first, Nothing):
        return second
    if isinstance(second, Nothing):
        return first
    match first, second:
        case Tensor(), Tensor():
            return _join_tensors(first, second)
        case (Tensor() as tensor, Number()) | (Number(), Tensor() as tensor):
            return replace(tensor, or_number=True, parameter=False)
        case (Tensor(framework=name), Batch() as batch) | (Batch() as batch, Tensor(framework=name)):
            return Batch(name, batch.opaque)
        case (Tensor() as tensor, Output() as output) | (Output() as output, Tensor() as tensor):
            return Output(tensor.framework, tensor.attached if tensor.attached == output.attached else None)
        case Output(), Output():
            return Output(first.framework, first.attached if first.attached == second.attached else None)
        case Module(), Module():
            return _join_modules(first, second)
        case Object(), Object() if first.kind == second.kind:
            return Object(first.kind, first.name if first.name == second.name else "", None)
        case Array(), Array():
            return Array(None)
        case Text(), Text():
            return Text()
        case Elements(), Elements() if len(first.items) == len(second.items):
            pairs = zip(first.items, second.items, strict=True)
            return Elements(tuple(join(one, other) for one, other in pairs), first.mutable or second.mutable)
        case Mapping(), Mapping():
            graph = first.graph if first.graph == second.graph else None
            return Mapping(item=join(first.item, second.item), graph=graph)
        case StateDict(), StateDict():
            return StateDict(None)
        case Repeated(), Repeated():
            return Repeated(join(first.item, second.item))
        case Other(), Other() if first.kind == second.kind:
            return Other(first.kind)
        case (NoTensor(), other) | (other, NoTensor()) if isinstance(other, _NEVER_TENSORS):
            return NoTensor()
        case ((Symbol() | ClassObject() | Function() | Choice()), (Symbol() | ClassObject() | Function() | Choice())):
            return _choice(first, second)
    return None


def under_gradients(value: Value, graph: bool | None) -> Value:
    """What was computed with gradients on where they are off (``False``), or it is not known whether (``None``)."""
    if graph is True:
        return value
    match value:
        case Tensor() | Output() if graph is False or value.attached:
            return replace(value, attached=graph)
        case Elements():
            items = tuple(None if item is None else under_gradients(item, graph) for item in value.items)
            return Elements(items, value.mutable)
        case Repeated() if value.item is not None:
            return Repeated(under_gradients(value.item, graph), value.kind)
        case Mapping():
            return replace(value, graph=graph)
    return value


def _choice(first: Value, second: Value) -> Choice | None:
    options: list[Value] = []
    for value in (first, second):
        for option in value.options if isinstance(value, Choice) else (value,):
            if option not in options:
                options.append(option)
    return Choice(tuple(options)) if len(options) <= MAX_OTHERS else None


def _join_tensors(first: Tensor, second: Tensor) -> Value | None:
    if first.framework != second.framework:
        return None
    return Tensor(
        first.framework,
        first.attached if first.attached == second.attached else None,
        first.scalar if first.scalar == second.scalar else None,
        first.parameter and second.parameter,
        _has_one_element(first) and _has_one_element(second) and not (first.scalar and second.scalar),
        first.or_number or second.or_number,
        first.leaf and second.leaf,
    )


def _has_one_element(value: Tensor) -> bool:
    return value.one_element or value.scalar is True


def _join_modules(first: Module, second: Module) -> Value | None:
    if first.framework != second.framework:
        return None
    return Module(
        first.framework,
        first.name if first.name == second.name else None,
        first.definition if first.definition is second.definition else None,
        first.call if first.call is second.call else None,
        first.wrappers if first.wrappers == second.wrappers else ("?",),
        _others(first, second),
        _inside(first, second),
    )


def _inside(first: Module, second: Module) -> tuple[str, ...] | None:
    """What both are wrapped in but for one wrapper in front, which one of them has, or each another one."""
    if first.wrappers == second.wrappers and first.inside == second.inside:
        return first.inside
    return next((inside for inside in _insides(first) if inside in _insides(second)), None)


def _insides(module: Module) -> tuple[tuple[str, ...], ...]:
    """What a module may be wrapped in but for one wrapper: what comes behind its first one, or all it is in."""
    if module.inside is not None:
        return (module.inside,)
    if "?" in module.wrappers:
        return ()
    return (module.wrappers[1:], module.wrappers) if module.wrappers else ((),)


def _others(first: Module, second: Module) -> tuple[Module, ...]:
    """Each of the modules that one may be, where all of them are known and as many as one can look at."""
    if first.wrappers != second.wrappers:
        return ()
    found: list[Module] = []
    for module in (first, second):
        if not module.others and module.name is None and module.definition is None:
            return ()
        for other in module.others or (replace(module, wrappers=(), inside=None),):
            if other not in found:
                found.append(other)
    return tuple(found) if len(found) <= MAX_OTHERS else ()


def may_be_more_exact(declared: Value) -> bool:
    """Whether what a parameter is given may say more than what it is declared as: of an object, a module or a dict."""
    return isinstance(declared, (Object, Module)) or declared == Mapping()


def more_exact(declared: Value, passed: Value | None) -> Value:
    """What is known of a parameter that is declared as one thing and given another: the more exact of the two."""
    match declared, passed:
        case Object(), Object() if declared.kind == passed.kind:
            return passed
        case Module(definition=None), Module() if declared.framework == passed.framework:
            is_more = passed.definition is not None or passed.name == declared.name
            return passed if is_more or declared.name is None else declared
        case Mapping(), StateDict() | Loaded():
            return passed
    return declared


def says_more(given: Module, value: Value) -> bool:
    """Whether what is given is known at least as well as what is written: its class, and the call that made it."""
    return not isinstance(value, Module) or value.is_only_some or (given.call is not None and not given.is_only_some)
