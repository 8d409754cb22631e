"""What is wrong with a tensor that a module does not take up, and what to write, in the words of a message."""

import libcst as cst

from mllint.semantic.modules.unregistered import Loss, Lost
from mllint.semantic.values import Framework
from mllint.syntax.shape import called_on, last_word

_REGISTER = 'write `self.register_buffer("{name}", ...{persistence})`'
# What is said of each, and what to write; of `{name}`, the method `{setter}`, and how the framework makes a parameter.
_WORDS = {
    Loss.CONTAINED: (
        "the tensors in `self.{name}` stay behind when the module moves to a device",
        "register each with `register_buffer`, or put parameters into an `nn.ParameterList`",
    ),
    Loss.UNDONE: (
        "`{setter}` gives `None`, and assigning that takes `{name}` away again",
        "write only `self.{setter}(...)`",
    ),
    Loss.COMPUTED: (
        "`self.{name}` is a tensor computed from a parameter, and no parameter itself",
        "compute the value first, and make a parameter of it",
    ),
    Loss.UNTRAINED: ("`self.{name}` asks for gradients and is no parameter: nothing trains it", "assign {parameter}"),
    Loss.LEFT_BEHIND: (
        "`self.{name}` is no buffer: it stays behind when the module moves to a device",
        _REGISTER,
    ),
    Loss.LEAF_LEFT_BEHIND: (
        "`self.{name}` is no parameter: it is not saved, and stays behind when the module moves",
        "assign {parameter}",
    ),
    Loss.REDRAWN: (
        "`self.{name}` is drawn at random and not saved: a module that is loaded has another",
        _REGISTER + ", or make it a parameter if it is to be learned",
    ),
    Loss.FORGOTTEN: (
        "`self.{name}` changes with the data and is not saved: a loaded module begins anew",
        _REGISTER,
    ),
    Loss.FITTED: ("`self.{name}` is fitted to data and not saved: a loaded module begins anew", _REGISTER),
    Loss.OUTDATED: (
        "`self.{name}` is computed once of parameters, and does not change with them",
        "compute it where it is used",
    ),
}
_PARAMETERS = {"torch": "an `nn.Parameter`", "paddle": "what `self.create_parameter(...)` gives"}


def words(found: Lost, name: str, framework: Framework, persistence: str) -> tuple[str, str]:
    """The message about an attribute and what helps; ``persistence`` is what else ``register_buffer`` is told."""
    message, help_ = _WORDS[found.how]
    if found.how is Loss.LEFT_BEHIND and not persistence:
        message = "`self.{name}` is no buffer: it is not saved, and stays behind when the module moves"
    known = {"name": name, "setter": found.setter, "parameter": _PARAMETERS[framework]}
    return message.format(**known), help_.format(**known, persistence=persistence)


def words_of_late(name: str, is_paddle: bool) -> tuple[str, str]:
    """The same about a buffer that ``forward`` registers."""
    happens = "a layer that is loaded leaves it out" if is_paddle else "loading it into a new module raises"
    message = f"`{name}` is registered in `forward`: {happens}"
    return message, "register it in the constructor" + ("" if is_paddle else ", or with `persistent=False`")


def words_of_registered(value: cst.BaseExpression, inner: cst.Call) -> tuple[str, str]:
    """The same about what is registered as a parameter and only computed from one, ``inner``."""
    moves = isinstance(value, cst.Call) and called_on(value) is inner and last_word(value.func) in ("to", "cuda")
    message = (
        "on another device this is no parameter any more, and registering it raises"
        if moves
        else "this is computed from a parameter, and no parameter itself: registering it raises"
    )
    return message, _WORDS[Loss.COMPUTED][1]
