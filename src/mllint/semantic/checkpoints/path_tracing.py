"""The path of a file that an expression stands for, as far as it is known."""

import re

import libcst as cst

from mllint.semantic.checkpoints.paths import Path, joined
from mllint.semantic.checkpoints.routes import MAX_DEPTH, Follower
from mllint.semantic.construction.builder import Construction
from mllint.semantic.names.conditions import verdicts
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.scopes import Binding, BindingKind, assigned
from mllint.semantic.values import Text
from mllint.syntax.shape import constant, dotted_path, fingerprint, string_literal, subscript_index, text_between

_PATH_FUNCTIONS = frozenset({
    "builtins.str", "os.path.abspath", "os.path.expanduser", "os.path.realpath", "os.path.normpath", "pathlib.Path",
    "pathlib.PurePath", "os.fspath",
})  # fmt: skip
_PLAIN_HOLES = frozenset({"{}", "%s"})
ATTRIBUTES = ("paths", "attributes")
"""Under which a file remembers the attributes of which a path has no more than the name."""
_SAVING_WORDS = re.compile(r"save|load|store|restore|resume|dump|write|read", re.IGNORECASE)


class PathTracer(Follower):
    """Follows paths in one file."""

    def path(self, node: cst.BaseExpression) -> Path | None:
        """The path that an expression stands for, as far as it is known."""
        if self.depth > MAX_DEPTH:
            return None
        self.depth += 1
        try:
            return self._path(node)
        finally:
            self.depth -= 1

    def _path(self, node: cst.BaseExpression) -> Path | None:
        text = string_literal(node)
        if text is not None:
            return Path(text)
        match node:
            case cst.Name() | cst.Attribute():
                return self._path_of_name(node)
            case cst.FormattedString():
                return self._formatted(node)
            case cst.BinaryOperation(operator=cst.Add()):
                left, right = self.path(node.left), self.path(node.right)
                return Path(left.text + right.text) if left is not None and right is not None else None
            case cst.BinaryOperation(operator=cst.Divide()):
                return joined(self.path(node.left), self.path(node.right))
            case cst.BinaryOperation(operator=cst.Modulo()):
                given = _items(node.right)
                return self._filled(node.left, r"%[-+ #0]*\d*(?:\.\d+)?[diouxXeEfFgGcrs]", given, node)
            case cst.Call():
                return self._path_of_call(node)
        return self._unknown(node)

    def _path_of_name(self, node: cst.Name | cst.Attribute) -> Path | None:
        bindings = _without_defaults(self.model.reaching(node))
        if len(bindings) == 1:
            binding = bindings[0]
            given = self.given(binding)
            if given is not None:
                caller, argument = given
                return PathTracer(caller.model, caller.route, self.depth + 1).path(argument)
            if (made := assigned(binding)) is not None:
                return self.path(made)
            if binding.kind is BindingKind.WITH and isinstance(binding.value, cst.Call):
                opened = binding.value
                if opened.args and self.model.qualified_name(opened.func) == "builtins.open":
                    return self.path(opened.args[0].value)
            return Path.unknown(f"{binding.key}@{_meaning(binding)}")
        known = self.model.value(node)
        if isinstance(known, Text) and known.literal is not None:
            return Path(known.literal)
        if isinstance(node, cst.Attribute) and self.model.value(node.value) is None:
            # To find out that nothing is known of `config.OUTPUT` all that fills the `config` would be carried out.
            return self._unknown(node)
        value = Construction().built_at(node, self.model)
        return Path(value) if isinstance(value, str) else self._unknown(node)

    def _unknown(self, node: cst.BaseExpression) -> Path:
        assigned = self._path_of_attribute(node)
        if assigned is not None:
            return assigned
        holder = self.model.enclosing_function(node)
        holding = node
        while isinstance(holding, cst.Subscript) and constant(subscript_index(holding)) is not ...:
            holding = holding.value
        key = dotted_path(holding)
        text = fingerprint(node)
        # `args.out` and `self.paths[0]` mean the same all over a file; a bare name only in its function.
        where = id(self.model) if key is not None and "." in key else id(holder)
        name = f"{text}@{where}"
        if isinstance(node, cst.Attribute):
            self.model.remembered.setdefault(ATTRIBUTES, {})[name] = node
        return Path.unknown(name)

    def _path_of_attribute(self, node: cst.BaseExpression) -> Path | None:
        """The path that a class assigns once to an attribute of ``self``."""
        owner = owner_of_attribute(self.model, node)
        if owner is None or not isinstance(node, cst.Attribute):
            return None
        bindings = list(owner.assignments(node.attr.value))
        made = assigned(bindings[0]) if len(bindings) == 1 else None
        return None if made is None else PathTracer(bindings[0].scope.model, None, self.depth + 1).path(made)

    def _formatted(self, node: cst.FormattedString) -> Path | None:
        pieces: list[str] = []
        for part in node.parts:
            if isinstance(part, cst.FormattedStringText):
                pieces.append(text_between(part))
                continue
            assert isinstance(part, cst.FormattedStringExpression)
            inner = self.path(part.expression) if part.format_spec is None else self._unknown(part.expression)
            pieces.append((inner or self._unknown(part.expression)).text)
        return Path("".join(pieces))

    def _filled(
        self, template: cst.BaseExpression, hole: str, given: list[cst.BaseExpression], node: cst.BaseExpression
    ) -> Path | None:
        """A template with what it is given in its holes; where they are not one for one, of all holes nothing is known.

        A hole that says how a number is written stands for other text than the number's name.
        """
        path = self.path(template)
        pieces = [] if path is None else path.known
        holes = [found for piece in pieces for found in re.findall(hole, piece)]
        if path is None or not holes:
            # Of a template that comes from elsewhere it is not known what it does with what it is given.
            return path if path is not None and path.is_literal else self._unknown(node)
        if len(holes) != len(given):
            return path.with_known(lambda piece: re.sub(hole, lambda _: self._unknown(node).text, piece))
        parts = iter(zip(holes, given, strict=True))
        return path.with_known(lambda piece: re.sub(hole, lambda _: self._in_hole(*next(parts)).text, piece))

    def _in_hole(self, hole: str, given: cst.BaseExpression) -> Path:
        inner = self.path(given) if hole in _PLAIN_HOLES else None
        return inner or self._unknown(given)

    def _path_of_call(self, node: cst.Call) -> Path | None:
        # `from utils import *` brings `os` as well.
        name = self.model.qualified_name(node.func) or dotted_path(node.func)
        values = [arg.value for arg in node.args if not arg.star and arg.keyword is None]
        if name == "os.path.join" and len(values) == len(node.args):
            return joined(*map(self.path, values))
        if name in _PATH_FUNCTIONS and values:
            return joined(*map(self.path, values))
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "format":
            return self._filled(node.func.value, r"\{[^{}]*\}", values if len(values) == len(node.args) else [], node)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "joinpath":
            return joined(self.path(node.func.value), *map(self.path, values))
        return self._replaced(node) or self._unknown(node)

    def _replaced(self, node: cst.Call) -> Path | None:
        """The path of ``path.replace(".pth", "_last.pth")``, where what it does is known."""
        if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "replace" or len(node.args) != 2:
            return None
        old, new = (string_literal(arg.value) for arg in node.args)
        path = None if old is None or new is None else self.path(node.func.value)
        return None if path is None or old is None or new is None else path.replaced(old, new)


def _without_defaults(bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
    """Without what a parameter is assigned where nothing was given for it: ``if path is None: path = ...``."""
    given = tuple(binding for binding in bindings if binding.kind is BindingKind.PARAMETER)
    others = [binding for binding in bindings if binding.kind is not BindingKind.PARAMETER]
    return given if len(given) == 1 and all(map(_is_default, others)) else bindings


def _is_default(binding: Binding) -> bool:
    tests = verdicts(binding.scope.model, binding.node) if binding.kind is BindingKind.ASSIGN else ()
    return any(holds and _found_missing(test) == binding.key for test, holds in tests)


def _found_missing(test: cst.BaseExpression) -> str | None:
    """What a test says was not given: ``path is None``, ``not path``."""
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name("None"))]):
            return dotted_path(test.left)
        case cst.UnaryOperation(operator=cst.Not()):
            return dotted_path(test.expression)
    return None


def _items(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What the right side of ``%`` gives to the holes; none where that is not told by the look of it."""
    if isinstance(node, cst.Tuple):
        return [item.value for item in node.elements if isinstance(item, cst.Element)]
    return [node] if dotted_path(node) is not None or isinstance(node, cst.BinaryOperation) else []


def _meaning(binding: Binding) -> str:
    """What tells a binding from others of the same name.

    ``path`` in ``save_checkpoint(path)`` and in ``load_checkpoint(path)`` of one class, or of one file, is the same.
    """
    function = binding.scope.node
    if binding.kind is not BindingKind.PARAMETER or not isinstance(function, cst.FunctionDef):
        return str(id(binding))
    name = function.name.value
    if _SAVING_WORDS.search(name) is None:
        return str(id(binding))
    owner = binding.scope.model.function_info(function).owner
    holder = binding.scope.model if owner is None else owner
    return f"{id(holder)}.{_SAVING_WORDS.sub('', name).strip('_').lower()}"
