"""Questions about names of torch, paddle and numpy. Every answer is a fact or ``None``; nothing here can fail."""

from collections.abc import Mapping
from functools import cache
from typing import Literal, cast

from mllint.knowledge import facts, graph_layers, neighbour_tables, networks, torchvision_facts
from mllint.knowledge.rows import FRAMEWORKS, read_class, read_function, read_layer_state, table
from mllint.knowledge.schema import Class, Function, Given, Kind, LayerState, Returns, Wrapper
from mllint.knowledge.wrappers import WRAPPERS

Framework = Literal["torch", "paddle", "numpy"]

_ROOTS: dict[str, Framework] = {"torch": "torch", "paddle": "paddle", "numpy": "numpy"}


@cache
def framework_of(name: str) -> Framework | None:
    """The framework whose things a qualified name is about: ``torchvision.models.resnet18`` is torch's."""
    root = name.partition(".")[0]
    if graph_layers.layer(name) is not None:
        return "torch"
    return _ROOTS.get(root) or facts.PACKAGES.get(root) or facts.PARTS_OF_PACKAGES.get(name.rpartition(".")[0])


def is_built_on(name: str) -> bool:
    """Whether a qualified name is of a package that is built on a framework: ``timm``, ``paddleseg``."""
    return name.partition(".")[0] in facts.PACKAGES


_TRANSFORMERS = frozenset({"transformers", "pytorch_transformers", "pytorch_pretrained_bert"})
_PRETRAINED = "transformers.PreTrainedModel"
_PRETRAINED_OF_PADDLE = "paddlenlp.transformers.PretrainedModel"


@cache
def canonical(name: str) -> str:
    """The spelling that the tables use for a qualified name; the name itself where they have no other.

    ``torch.nn.modules.loss.CrossEntropyLoss`` gives ``torch.nn.CrossEntropyLoss``, and ``torch.torch`` is ``torch``:
    both frameworks hold themselves.
    """
    framework, _, inner = name.partition(".")
    while framework in FRAMEWORKS and inner.partition(".")[0] == framework:
        name, inner = inner, inner.partition(".")[2]
    if framework == "torchvision":
        return torchvision_facts.canonical(name)
    if framework not in FRAMEWORKS:
        return _pretrained_base(name) or name
    others = table(framework, "CANONICAL")
    if name in others:
        return others[name]
    module, _, last = name.rpartition(".")
    home = others.get(f"{module}.*")
    if home is None:
        return name
    candidate = home[:-1] + last
    is_tabled = candidate in table(framework, "FUNCTIONS") or candidate in table(framework, "CLASSES")
    return candidate if is_tabled else name


def _pretrained_base(name: str) -> str | None:
    """The base of one of the many bases like ``transformers.BertPreTrainedModel``, wherever it is imported from.

    https://huggingface.co/docs/transformers/main_classes/model
    https://paddlenlp.readthedocs.io/en/latest/source/paddlenlp.transformers.model_utils.html
    """
    root, last = name.partition(".")[0], name.rpartition(".")[2]
    if root == "paddlenlp":
        return _PRETRAINED_OF_PADDLE if last.endswith("PretrainedModel") else None
    is_base = root in _TRANSFORMERS and last.endswith("PreTrainedModel") and not last.startswith(("TF", "Flax"))
    return _PRETRAINED if is_base else None


@cache
def function(name: str) -> Function | None:
    """A function by its qualified name."""
    name = canonical(name)
    written = facts.FUNCTIONS.get(name) or torchvision_facts.FUNCTIONS.get(name)
    if written is not None:
        return written
    row = _row(name, "FUNCTIONS")
    if row is None:
        return Function("module") if networks.makes_network(name) else None
    known = read_function(row)
    return known._replace(returns=facts.RETURNS.get(name, known.returns))


@cache
def method(class_name: str, name: str) -> Function | None:
    """A method of a class that training code handles: ``torch.nn.Module``, ``paddle.optimizer.Optimizer``, ...

    The class is a base by its qualified name; its subclasses have the method too, though they may give another thing.
    """
    qualified = f"{canonical(class_name)}.{name}"
    row = _row(qualified, "CLASS_METHODS")
    if row is None:
        return None
    known = read_function(row)
    return known._replace(returns=facts.RETURNS.get(qualified, known.returns))


@cache
def class_(name: str) -> Class | None:
    """A class by its qualified name."""
    name = canonical(name)
    known = facts.CLASSES.get(name) or torchvision_facts.CLASSES.get(name) or graph_layers.layer(name)
    if known is not None:
        return known
    row = _row(name, "CLASSES")
    return None if row is None else read_class(row)


@cache
def classes_of_kind(kind: Kind) -> frozenset[str]:
    """The qualified names of the classes of a kind in the tables of the frameworks."""
    found = {
        name
        for framework in FRAMEWORKS
        for name, row in table(framework, "CLASSES").items()
        if row.partition(" ")[0] == kind
    }
    return frozenset(found | {name for name, known in facts.CLASSES.items() if known.kind == kind})


@cache
def last_words(kind: Kind) -> frozenset[str]:
    """The last words of the names of the classes of a kind: by such a word they are called."""
    return frozenset(name.rpartition(".")[2] for name in classes_of_kind(kind))


@cache
def layer_state(name: str) -> LayerState | None:
    """The state-dict keys of a library layer by its qualified name."""
    name = canonical(name)
    if name in facts.STATELESS:
        return LayerState(())
    row = _row(name, "LAYER_STATES")
    return None if row is None else read_layer_state(row)


@cache
def may_register(base: str, name: str) -> bool:
    """Whether a module of torch may register a tensor under a name, be it only ``None`` until one is assigned.

    What is ``None`` is in no state: it is what the constructor may be given, as the class weights of a loss. The bases
    of other packages, which are there to be derived from, register nothing.
    """
    base = facts.PUBLIC_SUBCLASSES.get(canonical(base), base)
    known, state = class_(base), layer_state(base)
    if known is None or state is None:
        return known is not None and known.kind != "container"
    keys = {*state.keys, *(key for _, _, changed in state.switches for key in changed)}
    return name in keys or name in known.parameters.split()


def is_never_trained(name: str) -> bool:
    """Whether a library layer has parameters that no optimizer changes."""
    return canonical(name) in facts.UNTRAINED


def _row(name: str, of: str) -> str | None:
    framework = name.partition(".")[0]
    return table(framework, of).get(name) if framework in FRAMEWORKS else None


@cache
def tensor_method(framework: str, name: str) -> Function | None:
    """A method of the framework's tensor class."""
    if framework not in FRAMEWORKS:
        return None
    known = facts.TENSOR_METHODS.get((framework, name))
    if known is not None:
        return known
    row = table(framework, "TENSOR_METHODS").get(name)
    return None if row is None else read_function(row)


@cache
def tensor_attribute(framework: str, name: str) -> Returns | None:
    """What an attribute (no method) of the framework's tensor class holds."""
    if framework not in FRAMEWORKS:
        return None
    known = facts.TENSOR_ATTRIBUTES.get((framework, name))
    return known or cast("Returns | None", table(framework, "TENSOR_ATTRIBUTES").get(name))


@cache
def wrapper(name: str) -> Wrapper | None:
    """What wraps a module and behaves like it: ``DataParallel``, ``torch.compile``."""
    return WRAPPERS.get(canonical(name))


APPLYING = frozenset(name.rpartition(".")[2] for name in facts.APPLYING)
"""The words of functions that call a module that they are given."""


@cache
def applied_by(name: str) -> Given | None:
    """Which argument of a function is a module that it calls with the others: ``sliding_window_inference``."""
    return facts.APPLYING.get(canonical(name))


@cache
def is_grad_off_context(name: str) -> bool:
    """Whether a call of this name gives a context manager (or decorator) that switches gradients off.

    ``set_grad_enabled`` does so only for a false argument: see ``switches_grad``.
    """
    return canonical(name) in facts.GRAD_OFF


@cache
def switches_grad(name: str) -> bool:
    """Whether this is ``set_grad_enabled``, whose first argument says if gradients are recorded."""
    return canonical(name) in facts.GRAD_SWITCHES


@cache
def parameters(name: str) -> tuple[str, ...]:
    """The parameter names of a function or constructor, in order; empty where they are not known.

    ``*`` stands before the first keyword-only name; ``*name`` and ``**name`` collect the rest.
    """
    known = function(name) or class_(name)
    return tuple(known.parameters.split()) if known is not None else ()


@cache
def tensor_methods(framework: str) -> frozenset[str]:
    """The names of the methods of a framework's tensors."""
    return frozenset(table(framework, "TENSOR_METHODS"))


@cache
def tensor_only_methods() -> frozenset[str]:
    """Methods that only tensors have and that leave their receiver alone.

    No numpy array, pandas or PIL object, module, string, list or dict has a method of such a name, and nobody would
    give it to an object of another kind, so that a call ``x.name(...)`` says that ``x`` is a tensor.
    """
    names: set[str] = set()
    for framework in FRAMEWORKS:
        for name in table(framework, "TENSOR_METHODS"):
            known = tensor_method(framework, name)
            if known is not None and known.returns in ("tensor", "scalar") and not name.endswith("_"):
                names.add(name)
    changing = {
        name
        for framework in FRAMEWORKS
        for name in names
        if (known := tensor_method(framework, name)) is not None and known.returns not in ("tensor", "scalar")
    }
    shared = {name for framework in FRAMEWORKS for name in table(framework, "OTHER_METHODS")}
    return frozenset((names & facts.UNMISTAKABLE) - changing - shared - set(neighbour_tables.METHODS.split()))


def moves() -> frozenset[str]:
    """Methods of tensors, and of structures of tensors, that give the same numbers elsewhere or otherwise."""
    return facts.MOVES


@cache
def shared_methods() -> frozenset[str]:
    """Methods of tensors that structures of tensors (lists, dicts, distributions, boxes) may have too."""
    others = {name for framework in FRAMEWORKS for name in table(framework, "OTHER_METHODS")}
    return frozenset(
        others | facts.MOVES | {"clip"} | {name for kind in (list, dict, tuple, set) for name in dir(kind)}
    )


_ATTRIBUTES = frozenset({"weight_attr", "bias_attr"})
"""What Paddle's ``InstanceNorm`` takes as ``False`` for both alone, and then has no parameters."""


def layer_keys(name: str, arguments: Mapping[str, object]) -> tuple[str, ...] | None:
    """The state-dict keys of a library layer built with these keyword arguments (positional ones bound by name).

    ``None`` where they cannot be told: an unknown layer, a container, an argument whose value decides about the keys
    in a way that is not known. An argument whose value is not known is given as ``...``.
    """
    state = layer_state(name)
    if state is None or state.sized:
        return None
    if set(arguments) & set(state.depends):
        if set(state.depends) == _ATTRIBUTES and all(arguments.get(word) is False for word in _ATTRIBUTES):
            return ()
        return facts.recurrent_keys(canonical(name), arguments)
    keys = list(state.keys)
    removed: set[str] = set()
    for parameter, value, changed in state.switches:
        given = arguments.get(parameter, not value if isinstance(value, bool) else None)
        if given is ...:
            return None
        if isinstance(given, bool) and given is value:  # `bias_attr=None` is the default: only the Boolean itself flips
            removed |= set(state.keys) - set(changed)
            keys += [key for key in changed if key not in keys]
    return tuple(key for key in keys if key not in removed)
