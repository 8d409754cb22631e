"""What a file and the files around it save, and where."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import libcst as cst
import msgspec

from mllint.semantic.checkpoints.contents import Absent, Content, FromFile, entry_at, renamed
from mllint.semantic.checkpoints.path_tracing import ATTRIBUTES
from mllint.semantic.checkpoints.paths import Path
from mllint.semantic.checkpoints.routes import Follower, Place, Route
from mllint.semantic.checkpoints.tracing import Tracer
from mllint.semantic.expressions.arguments import passed_anywhere
from mllint.semantic.expressions.imports import imported_files
from mllint.semantic.expressions.options import default_of_option
from mllint.semantic.names.definitions import function_around
from mllint.semantic.names.receivers import owner_of_attribute
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import Function, Options, Symbol
from mllint.syntax.shape import argument, string_literal
from mllint.syntax.walk import subtree

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.names.definitions import FunctionInfo
    from mllint.semantic.project import Project

MAX_FILES = 40
"""How many files around a file are looked at for what they save."""
MAX_ROUTES = 12
"""Of how many calls of a saving function the arguments are followed."""

SAVES = frozenset({"torch.save", "paddle.save", "paddle.framework.io.save"})
_COPIES = frozenset({"shutil.copyfile", "shutil.copy", "shutil.copy2", "shutil.move", "os.rename", "os.replace"})
_MOVING = ("rename", "replace")
_COPYING = ("copyfile", "copy", "copy2", "move", *_MOVING)


class Saved:
    """A call that saves, with what is known of where (``path``) and what (``content``).

    What is saved is followed only when somebody asks: most files are not the one that a load reads. ``is_certain``: it
    is that very file, as far as can be told, and not one of the same name that another run has written.
    """

    def __init__(
        self,
        place: Place,
        path: Path | None,
        follow: Callable[[], Content | None],
        *,
        is_certain: bool = True,
        tracer: Tracer | None = None,
    ) -> None:
        """``follow`` finds out what is saved, ``tracer`` what stands beside the call means in this way to it."""
        self.place = place
        self.path = path
        self.is_certain = is_certain
        self.tracer = tracer
        self._follow = follow

    @cached_property
    def content(self) -> Content | None:
        """What is saved; ``None`` when that is not known, as of an entry that nothing in sight puts there."""
        content = self._follow()
        return None if isinstance(content, Absent) else content

    def copied_to(self, path: Path | None) -> "Saved":
        """The same under another path."""
        return Saved(self.place, path, lambda: self.content)

    def read_from(self, path: Path) -> "Saved":
        """The same, as what is read from a path that is alike."""
        return self.of_some_run() if self.path is not None and self.path.has_other_folder(path) else self

    def is_apart_from(self, path: Path) -> bool:
        """Whether an option names the folder to which it goes, and by default that is none of those of a path."""
        if self.path is None or self.tracer is None or self.path.is_literal:
            return False
        return is_written_elsewhere(self.tracer, self.path, path)

    def of_some_run(self) -> "Saved":
        """The same, as a file that was written like this, if not this one."""
        return Saved(self.place, self.path, lambda: self.content, is_certain=False)


class _Site(msgspec.Struct, frozen=True):
    """A call of ``save``; the two expressions stand in the same function."""

    model: "Model"
    call: cst.Call
    what: cst.BaseExpression
    where: cst.BaseExpression


class Surroundings:
    """The files around a file, and what they save."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self._models: tuple[Model, ...] | None = None
        self._saved: tuple[Saved, ...] | None = None
        self._calls: dict[FunctionInfo, tuple[tuple[Model, cst.Call], ...]] = {}

    @property
    def models(self) -> "tuple[Model, ...]":
        """This file, what it imports, and the files beside and above it that save or load; this file first."""
        if self._models is None:
            self._models = tuple(self._collect())
        return self._models

    @property
    def saved(self) -> tuple[Saved, ...]:
        """Everything that is saved in these files."""
        if self._saved is None:
            found: list[Saved] = []
            for model in self.models:
                for site in self._sites(model):
                    found += self._expanded(site)
            self._saved = (*found, *self._copied(found))
        return self._saved

    def _collect(self) -> "Iterator[Model]":
        yield self.model
        project = self.model.project
        if project is None:
            return
        own = self.model.path
        found = {own}
        for path in self._paths(project, own):
            if path in found or not project.has_checkpoints(path, own):
                continue
            model = self.model.neighbour(path) if len(found) < MAX_FILES else None
            found.add(path)
            if model is not None:
                yield model

    def _paths(self, project: "Project", own: FilePath) -> Iterator[FilePath]:
        """The files around a file: what it imports, what lies beside it, above it and at the root, and its imports."""
        for path in imported_files(self.model, project):
            yield path
            yield from self._handed_on(path, project)
        folders = [own.parent]
        if own.parent != project.root and project.root in own.parents:
            folders += [own.parent.parent, project.root]
        for folder in dict.fromkeys(folders):
            for path in project.checkpoint_files(folder, own)[:MAX_FILES]:
                yield path
                beside = self.model.neighbour(path) if path != own else None
                for imported in imported_files(beside, project) if beside is not None else ():
                    yield imported
                    yield from self._handed_on(imported, project)

    def _handed_on(self, path: FilePath, project: "Project") -> Iterator[FilePath]:
        """The files from which a package takes what it hands on to those who import it."""
        package = self.model.neighbour(path) if path.name == "__init__.py" else None
        if package is not None:
            yield from imported_files(package, project)

    def _sites(self, model: "Model") -> Iterator[_Site]:
        """The calls of ``torch.save`` and ``paddle.save`` in a file."""
        for call in calls_of_function(model, "save"):
            callee = model.value(call.func)
            if not isinstance(callee, Symbol) or callee.name not in SAVES:
                continue
            function = model.enclosing_function(call)
            if function is not None and _passes_all(call, function):
                for caller, outer in self.calls_of(model.function_info(function)):
                    yield from _site(caller, outer)
            else:
                yield from _site(model, call)

    def _expanded(self, site: _Site) -> Iterator[Saved]:
        """One result for each way in which a save is reached, where its arguments depend on that."""
        tracers = [Tracer(site.model)]
        for steps in range(2):
            tracers = [further for tracer in tracers for further in self._routes(tracer, site, steps)]
        for tracer in tracers[:MAX_ROUTES]:
            yield _saved_by(tracer, site)

    def _routes(self, tracer: Tracer, site: _Site, steps: int) -> list[Tracer]:
        """The same tracer entered through each call of its function; itself, where nothing depends on the call.

        ``steps``: through how many calls it has been entered.
        """
        outermost: Follower = tracer
        node: cst.Call = site.call
        parts = [site.what, site.where]
        while outermost.route is not None:
            node, outermost = outermost.route.call, outermost.route.caller
            parts = [arg.value for arg in node.args]
        definition = function_around(outermost.model, node)
        if definition is None or not _needs_call(outermost.model, definition, *parts):
            return [tracer]
        calls = self.calls_of(definition)[:MAX_ROUTES]
        if not calls:
            elsewhere = self.calls_elsewhere(definition)[:MAX_ROUTES] if steps == 0 else ()
            return [tracer, *(_entered(tracer, Route(Follower(model), call, definition)) for model, call in elsewhere)]
        return [_entered(tracer, Route(Follower(model), call, definition)) for model, call in calls]

    def calls_of(self, definition: "FunctionInfo") -> "tuple[tuple[Model, cst.Call], ...]":
        """The calls of a function of the project in these files."""
        if definition not in self._calls:
            self._calls[definition] = tuple(self._look_for(definition))
        return self._calls[definition]

    def _look_for(self, definition: "FunctionInfo") -> "Iterator[tuple[Model, cst.Call]]":
        for model in self.models:
            yield from _calls_in(model, definition)

    def calls_elsewhere(self, definition: "FunctionInfo") -> "tuple[tuple[Model, cst.Call], ...]":
        """The calls of a function, no method, in other files that import it: these neither save nor load themselves."""
        if definition.owner is not None:
            return ()
        importing = (model for model in definition.model.importers(definition.name) if model not in self.models)
        return tuple(found for model in importing for found in _calls_in(model, definition))

    def _copied(self, found: list[Saved]) -> Iterator[Saved]:
        """Files that are copies of saved ones."""
        for copy in (copy for model in self.models for copy in _copies(model)):
            for saved in found:
                if copy.is_beside(saved):
                    yield saved.copied_to(copy.target_of(saved))
                elif copy.source is not None and saved.path is not None and copy.source.is_same_as(saved.path):
                    yield saved.copied_to(copy.target)


class _Copy:
    """A call that copies or moves a file. Every file around asks for the paths, and they are followed once."""

    def __init__(self, model: "Model", call: cst.Call, source: cst.BaseExpression, target: cst.BaseExpression) -> None:
        self._model = model
        self._function = model.enclosing_function(call)
        self._from, self._to = source, target
        self._targets: dict[Saved, Path | None] = {}

    @cached_property
    def source(self) -> Path | None:
        return Tracer(self._model).path(self._from)

    @cached_property
    def target(self) -> Path | None:
        return Tracer(self._model).path(self._to)

    def is_beside(self, saved: Saved) -> bool:
        """Whether it is a helper that copies what it has saved under the name that it was given."""
        place = saved.place
        return place.model is self._model and self._model.enclosing_function(place.node) is self._function

    def target_of(self, saved: Saved) -> Path | None:
        """Where it puts what was saved beside it, in the same way to it."""
        if saved not in self._targets:
            self._targets[saved] = (saved.tracer or Tracer(self._model)).path(self._to)
        return self._targets[saved]


@worked_out_once
def _copies(model: "Model") -> tuple[_Copy, ...]:
    """The calls in a file that copy or move another."""
    calls = [call for word in _COPYING for call in model.calls_by_word.get(word, ())]
    pairs = [(call, *_source_and_target(model, call)) for call in calls]
    return tuple(_Copy(model, *pair) for pair in pairs if pair[1] is not None)


def _source_and_target(
    model: "Model", call: cst.Call
) -> tuple[cst.BaseExpression, cst.BaseExpression] | tuple[None, None]:
    """Which file a call copies or moves, and where to: also the one path that ``path.replace(other)`` is given."""
    given = [arg.value for arg in call.args]
    if len(given) == 2 and model.qualified_name(call.func) in _COPIES:
        return given[0], given[1]
    if len(given) == 1 and isinstance(call.func, cst.Attribute) and call.func.attr.value in _MOVING:
        return call.func.value, given[0]
    return None, None


def _saved_by(tracer: Tracer, site: _Site) -> Saved:
    """What is saved at a site, entered through some calls: every file around asks, and it is followed once."""
    known: dict[tuple[cst.Call, ...], Saved] = site.model.remembered.setdefault(("saves", "entered through"), {})
    calls, follower = [site.call], tracer.route
    while follower is not None:
        calls.append(follower.call)
        follower = follower.caller.route
    if tuple(calls) not in known:
        content = partial(tracer.content, site.what)
        known[tuple(calls)] = Saved(Place(site.model, site.call), tracer.path(site.where), content, tracer=tracer)
    return known[tuple(calls)]


def _entered(tracer: Follower, route: Route) -> Tracer:
    """The tracer with a call in front of the outermost function that it was entered through."""
    if tracer.route is None:
        return Tracer(tracer.model, route)
    outer = _entered(tracer.route.caller, route)
    return Tracer(tracer.model, Route(outer, tracer.route.call, tracer.route.definition))


@worked_out_once
def _needs_call(model: "Model", function: "FunctionInfo", *parts: cst.BaseExpression) -> bool:
    """Whether one of some expressions in a function has another value in each call of it.

    Every file around asks, and the answer is the same.
    """
    names = {parameter.name.value for parameter in function.named_parameters} - {function.self_name}
    pending, seen = [*parts] if names else [], set[int]()
    while pending:
        for part in subtree(pending.pop()):
            if not isinstance(part, cst.Name) or _is_holder(part, model):
                continue
            for binding in model.reaching(part):
                if binding.kind is BindingKind.PARAMETER:
                    if binding.scope.node is function.node and binding.key in names:
                        return True
                elif binding.value is not None and id(binding) not in seen:
                    seen.add(id(binding))
                    pending.append(binding.value)
    return False


def _is_holder(name: cst.Name, model: "Model") -> bool:
    """Whether only an attribute of a name is read, which is the same in all calls: ``args.out``."""
    attribute = model.tree.parent(name)
    is_read = isinstance(attribute, cst.Attribute) and attribute.value is name
    return is_read and attribute is not None and model.tree.call_of(attribute) is None


def _calls_in(model: "Model", definition: "FunctionInfo") -> "Iterator[tuple[Model, cst.Call]]":
    for call in calls_of_function(model, definition.name):
        callee = model.value(call.func)
        if isinstance(callee, Function) and callee.definition.is_same_as(definition):
            yield model, call


def calls_of_function(model: "Model", word: str) -> Iterable[cst.Call]:
    """The calls in a file of what is called ``word`` where it is defined, under whatever name it was imported."""
    aliases = _aliases(model)
    if word not in aliases:
        return model.calls_by_word.get(word, ())
    return [call for each in sorted({word} | aliases[word]) for call in model.calls_by_word.get(each, ())]


@worked_out_once
def _aliases(model: "Model") -> dict[str, set[str]]:
    """Under which other names a file imports what has a name."""
    aliases: dict[str, set[str]] = {}
    for alias in model.tree.by_type.get(cst.ImportAlias, ()):
        if alias.asname is not None and alias.evaluated_alias is not None:
            aliases.setdefault(alias.evaluated_name.rpartition(".")[2], set()).add(alias.evaluated_alias)
    return aliases


def _site(model: "Model", call: cst.Call) -> Iterator[_Site]:
    what = argument(call, 0, "obj")
    where = argument(call, 1, "f") or argument(call, None, "path")
    if what is not None and where is not None:
        yield _Site(model, call, what.value, where.value)


def _passes_all(call: cst.Call, function: cst.FunctionDef) -> bool:
    """Whether a function hands all its arguments to a call: ``def save(*args): torch.save(*args)``."""
    star = function.params.star_arg
    first = call.args[0] if call.args else None
    return (
        isinstance(star, cst.Param)
        and first is not None
        and first.star == "*"
        and isinstance(first.value, cst.Name)
        and first.value.value == star.name.value
    )


def resolved(content: FromFile, saved: Iterable[Saved], path: Path) -> Iterator[tuple[Saved, Content | None]]:
    """What the files that surely are the one that was read hold where it was read.

    Where only other code saves one of that name, it may as well be what the code beside the load saves somewhere. How
    a path ends tells nothing of another file of the code.
    """
    reader = content.place.model
    known = [
        (item, where)
        for item in saved
        if (where := item.path) is not None and (item.place.model is reader or where.may_be_told_by(path))
    ]
    found = [item.read_from(path) for item, where in known if where.is_same_as(path) and not item.is_apart_from(path)]
    found = found or [item for item, where in known if path.is_wider_than(where)]
    if found and not any(item.place.model is reader for item in found):
        found += [item for item, where in known if item.place.model is reader and where.is_blank]
    for item in found:
        inner = entry_at(item.content, content.trail)
        for rename in content.renames:
            inner = renamed(inner, rename)
        yield item, inner


MAX_STEPS = 4
"""Through how many names, attributes and calls the options of a program are followed to where they are parsed."""


def is_written_elsewhere(follower: Follower, written: Path, read: Path) -> bool:
    """Whether an option gives the folder of what is written, and its default is not among those around what is read.

    ``os.path.join(self.args.out, "net.pt")``, where ``--out`` is ``runs/gan`` by default, is not ``"runs/vae/net.pt"``:
    the names of the files alone would have told that it may be.
    """
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
