"""Files that a program writes to another folder than the one that is read, where nobody tells it otherwise.

``os.path.join(self.args.out, "net.pt")``, where ``--out`` is ``runs/gan`` by default, is not ``"runs/vae/net.pt"``: the
names of the files alone would have told that it may be.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.checkpoints.path_tracing import ATTRIBUTES
from mllint.semantic.checkpoints.paths import Path
from mllint.semantic.checkpoints.routes import Follower
from mllint.semantic.expressions.arguments import passed_anywhere
from mllint.semantic.expressions.options import default_of_option
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Options
from mllint.syntax.shape import string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_STEPS = 4
"""Through how many names, attributes and calls the options of a program are followed to where they are parsed."""


def is_written_elsewhere(follower: Follower, written: Path, read: Path) -> bool:
    """Whether an option gives the folder of what is written, and its default is not among those around what is read."""
    name, around = written.unknown_folder, read.folders
    if name is None or not around:
        return False
    usual = _usual(follower, name)
    own = [] if usual is None or "{" in usual or "%" in usual else Path(f"{usual}/file").folders
    return bool(own) and own[-1] not in around


def _usual(follower: Follower, name: str) -> str | None:
    """The default of the option that a path has by this name, in one of the files through which it was followed."""
    while True:
        node = follower.model.remembered.get(ATTRIBUTES, {}).get(name)
        if node is not None:
            defaults = {_default(follower.model, parsing, node) for parsing in _parsed_in(follower.model, node.value)}
            return defaults.pop() if len(defaults) == 1 else None
        if follower.route is None:
            return None
        follower = follower.route.caller


def _default(model: "Model", parsing: "Model", node: cst.Attribute) -> str | None:
    default = default_of_option(parsing, model, node.attr.value)
    return None if default is None else string_literal(default)


def _parsed_in(model: "Model", node: cst.BaseExpression, steps: int = MAX_STEPS) -> "Iterator[Model]":
    """The files that parse the options that an expression stands for, also where they were handed to it."""
    value = model.value(node)
    if isinstance(value, Options):
        yield value.model
    elif steps:
        for home, given in _given(model, node):
            yield from _parsed_in(home, given, steps - 1)


def _given(model: "Model", node: cst.BaseExpression) -> "Iterator[tuple[Model, cst.BaseExpression]]":
    """What a name, or an attribute of ``self``, is assigned, and what the calls of a function give for it."""
    owner = owner_of_attribute(model, node)
    bound: list[Binding] = [*model.reaching(node)]
    if not bound and owner is not None and isinstance(node, cst.Attribute):
        bound = list(owner.assignments(node.attr.value))
    for binding in bound:
        home, function = binding.scope.model, binding.scope.node
        if binding.kind is BindingKind.ASSIGN and binding.value is not None and not binding.path:
            yield home, binding.value
        elif isinstance(binding.node, cst.Param) and isinstance(function, cst.FunctionDef):
            yield from passed_anywhere(home.function_info(function), binding.node)
