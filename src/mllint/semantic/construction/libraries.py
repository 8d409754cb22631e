"""Modules of the libraries as they are built: layers, containers, wrappers."""

import itertools
from typing import Any

from mllint.knowledge import lookup
from mllint.semantic.construction.parts import UNKNOWN, Container, Entries, Given, Items, Mark, Part, open_part

SEQUENTIALS = frozenset({"torch.nn.Sequential", "paddle.nn.Sequential"})
LISTS = frozenset({
    "torch.nn.ModuleList", "torch.nn.ParameterList", "paddle.nn.LayerList", "paddle.nn.ParameterList",
})  # fmt: skip
DICTS = frozenset({
    "torch.nn.ModuleDict", "torch.nn.ParameterDict", "paddle.nn.LayerDict", "paddle.nn.ParameterDict",
})  # fmt: skip
_HELD = ("modules", "sublayers", "parameters", "values")
"""What the lists and dicts of the two frameworks call what they are given."""
PLAIN_BASES = frozenset({
    "torch.nn.Module", "paddle.nn.Layer", "builtins.object", "abc.ABC", "pytorch_lightning.LightningModule",
    "lightning.LightningModule", "lightning.pytorch.LightningModule",
})  # fmt: skip
"""Bases that register nothing of their own."""
_STACKS = frozenset({
    f"{framework}.nn.Transformer{word}" for framework in ("torch", "paddle") for word in ("Encoder", "Decoder")
})  # fmt: skip
_PARAMETERS = frozenset({"torch.nn.Parameter", "paddle.create_parameter", "paddle.static.create_parameter"})
# They change the names of the parameters of the layer that they are given.
_REPARAMETRIZATIONS = ("torch.nn.utils.", "paddle.nn.utils.", "torch.ao.", "torch.quantization.")


def is_module_class(name: str) -> bool:
    """Whether a library class is a module."""
    known = lookup.class_(name)
    return known is not None and known.kind in ("layer", "loss", "container", "rnn")


def constructed(name: str, given: Given) -> Any:
    """What calling a library class or function gives; ``UNKNOWN`` for what is not in the tables."""
    if lookup.wrapper(name) is not None:
        return _wrapped(name, given)
    if is_module_class(name):
        part = Part()
        initialize(part, name, given)
        return part
    if name in _PARAMETERS:
        return Mark.PARAMETER
    if name.startswith(_REPARAMETRIZATIONS):
        return _reparametrized(given)
    known = lookup.class_(name)
    if known is not None:
        return Mark.PARAMETER if known.kind == "parameter" else Mark.OBJECT
    if name.endswith("ParamAttr") or ".initializer." in name:
        return Mark.OBJECT
    function = lookup.function(name)
    if function is None:
        return UNKNOWN
    if function.returns == "module":
        return open_part()
    return Mark.TENSOR if function.returns in ("tensor", "scalar", "array") else UNKNOWN


def initialize(part: Part, name: str, given: Given) -> None:
    """What ``__init__`` of a library class registers in a module."""
    if name in PLAIN_BASES:
        return
    if name in SEQUENTIALS:
        _fill_sequential(part, given)
    elif name in LISTS:
        part.container = Container.SEQUENCE
        _fill_list(part, given)
    elif name in DICTS:
        part.container = Container.MAPPING
        fill_dict(part, _held(given))
    elif name in _STACKS:
        _stack(part, given)
    else:
        keys = _layer_keys(name, given)
        part.is_open = part.is_open or keys is None
        part.own.update(dict.fromkeys(keys or ()))


def _layer_keys(name: str, given: Given) -> tuple[str, ...] | None:
    if not given.is_exact:
        return None
    names = lookup.parameters(name)
    positional = itertools.takewhile(lambda name: not name.startswith("*"), names)
    arguments = dict(zip(positional, given.positional, strict=False))
    arguments.update(given.keywords)
    plain = (bool, int, float, str, tuple, type(None))
    return lookup.layer_keys(
        name,
        {
            parameter: value if isinstance(value, plain) or value is Mark.OBJECT else ...
            for parameter, value in arguments.items()
        },
    )


def _fill_sequential(part: Part, given: Given) -> None:
    part.container = Container.SEQUENCE
    part.is_open = part.is_open or not given.is_exact
    first = given.positional[0] if given.positional else None
    if len(given.positional) == 1 and isinstance(first, Entries):
        fill_dict(part, first)
    elif isinstance(first, tuple) and first:
        for pair in given.positional:  # paddle: `Sequential(("name", layer), ...)`
            _put_pair(part, pair)
    elif len(given.positional) == 1 and isinstance(first, Items):
        part.is_open = True
    else:
        part.append(given.positional)


def _held(given: Given) -> Any:
    """What a list or dict of modules or parameters is given; ``None``: nothing."""
    return next((held for name in _HELD if (held := given.get(0, name, None)) is not None), None)


def _fill_list(part: Part, given: Given) -> None:
    values = _held(given)
    if isinstance(values, Items) and not values.is_open:
        part.append(values.values)
    elif isinstance(values, tuple):
        part.append(values)
    elif isinstance(values, Part) and values.container is Container.SEQUENCE and not values.is_open:
        part.append(values.children.values())
        part.is_open = bool(values.loose)
    elif values is not None:
        part.is_open = True


def fill_dict(part: Part, values: Any) -> None:
    """Put the modules of a dict, or of a list of pairs, into a module dict."""
    if isinstance(values, Entries):
        part.is_open = part.is_open or values.is_open
        for name, value in values.values.items():
            _put(part, name, value)
    elif isinstance(values, Items):
        part.is_open = part.is_open or values.is_open
        for pair in values.values:
            _put_pair(part, pair)
    elif values is not None:
        part.is_open = True


def _put_pair(part: Part, pair: Any) -> None:
    pair = tuple(pair.values) if isinstance(pair, Items) else pair
    if isinstance(pair, tuple) and len(pair) == 2:
        _put(part, pair[0], pair[1])
    else:
        part.is_open = True


def _put(part: Part, name: Any, value: Any) -> None:
    name = str(name) if isinstance(name, int) else name
    if isinstance(value, Part) or value is Mark.PARAMETER:
        part.register(name, value)
    else:
        part.loosen(name)


def _stack(part: Part, given: Given) -> None:
    """``TransformerEncoder(layer, count, norm)`` and its kind."""
    layer = given.get(0, "encoder_layer", None) or given.get(None, "decoder_layer")
    count, norm = given.get(1, "num_layers"), given.get(2, "norm", None)
    if isinstance(layer, Part) and isinstance(count, int) and 0 <= count <= 200:
        layers = Part(container=Container.SEQUENCE)
        layers.append([layer] * count)
        part.children["layers"] = layers
    else:
        part.loosen("layers")
    part.register("norm", norm)


def _wrapped(name: str, given: Given) -> Any:
    inner = given.positional[0] if given.positional else UNKNOWN
    wrapper = lookup.wrapper(name)
    assert wrapper is not None
    prefix = wrapper.prefix.removesuffix(".")
    if not prefix:
        return inner
    part = Part()
    part.register(prefix, inner)
    if name.endswith("AveragedModel"):
        part.own["n_averaged"] = None
    return part


def _reparametrized(given: Given) -> Any:
    first = given.positional[0] if given.positional else UNKNOWN
    if isinstance(first, Part):
        first.forget()
    return first
