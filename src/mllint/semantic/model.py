"""The facade over the model of one file: scopes, definitions, values, all computed when asked and remembered."""

from collections import defaultdict
from collections.abc import Iterator, MutableMapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import libcst as cst

from mllint.knowledge import facts, lookup
from mllint.semantic.checkpoints.saves import Surroundings
from mllint.semantic.expressions.alternatives import alternatives
from mllint.semantic.expressions.derivation import Derivation
from mllint.semantic.expressions.evidence import Uses, module_by_use
from mllint.semantic.expressions.imports import is_library
from mllint.semantic.expressions.inference import Inference
from mllint.semantic.graph.backward import Backward
from mllint.semantic.graph.gradients import Gradients
from mllint.semantic.names.blocks import fill
from mllint.semantic.names.definitions import ClassInfo, FunctionInfo
from mllint.semantic.names.receivers import Receivers
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind, Scope
from mllint.semantic.training.runs import Runs
from mllint.semantic.values import Framework, Symbol, Value
from mllint.syntax.parse import parse
from mllint.syntax.shape import dotted_path
from mllint.syntax.source import Source
from mllint.syntax.walk import Tree

if TYPE_CHECKING:
    from mllint.semantic.project import Project


_DEFINITIONS = frozenset({cst.FunctionDef, cst.ClassDef})
_AROUND_STATEMENTS = frozenset({cst.Module, cst.IndentedBlock, *_DEFINITIONS})
# What a model holds on to when it forgets what was derived, and what it begins anew.
_KEPT = frozenset({"tree", "source", "project", "derivation", "path", "_functions", "_classes"})
_EMPTIED = frozenset({"_scopes", "_scope_of", "_reaching", "_comprehensions", "_left_scopes"})
_ANALYSES = frozenset({"surroundings", "remembered"})
"""Where it keeps what analyses remember that may ask about the users of code."""

_MAX_IMPORTERS = 8
_MAX_CALLING = 12
"""In how many files that import the file at hand, or call methods of a name, things are looked for."""


class Model:
    """What is known of one file."""

    def __init__(self, tree: Tree, source: Source, project: "Project | None" = None) -> None:
        self.tree = tree
        self.source = source
        self.project = project
        self._scopes: dict[int, Scope] = {}
        self._scope_of: dict[int, Scope] = {}
        self._functions: MutableMapping[int, FunctionInfo] = {}
        self._classes: MutableMapping[int, ClassInfo] = {}
        self._reaching: dict[int, tuple[Binding, ...]] = {}
        self._comprehensions: dict[tuple[int, str], Binding] = {}
        self._left_scopes: list[Scope] = []
        self.derivation = Derivation() if project is None else project.derivation

    @cached_property
    def path(self) -> Path:
        """Where the file is: absolute, through symbolic links."""
        return Path(self.source.path).resolve() if self.project is None else self.project.disk.real(self.source.path)

    @cached_property
    def _inference(self) -> Inference:
        return Inference(self)

    @cached_property
    def gradients(self) -> Gradients:
        """Where no graph is recorded."""
        return Gradients(self)

    @cached_property
    def backward(self) -> Backward:
        """Where gradients are computed."""
        return Backward(self)

    @cached_property
    def uses(self) -> Uses:
        """Where things are used in a way that may say what they are."""
        return Uses(self)

    @cached_property
    def runs(self) -> Runs:
        """What happens in trainings, in which order."""
        return Runs(self)

    @cached_property
    def receivers(self) -> Receivers:
        """The receivers of the methods of the file."""
        return Receivers(self)

    @cached_property
    def surroundings(self) -> Surroundings:
        """What the files around this one save and load."""
        return Surroundings(self)

    @cached_property
    def full_tree(self) -> Tree:
        """The nodes with the whitespace between them, for who must know where one stands.

        Raises:
            ParseError: Python can read the file, but LibCST cannot.
        """
        return self.tree if self.has_full_tree else Tree(parse(self.source))

    @property
    def has_full_tree(self) -> bool:
        """Whether the nodes of the model have the whitespace between them."""
        return hasattr(self.tree.module, "default_indent")

    def forget(self) -> None:
        """Drop everything that was derived, and with it every hold on the models of other files.

        Who still holds a class of this file can go on asking; the answers are derived anew.
        """
        if not self._scopes and type(self._functions) is not dict and self.__dict__.keys() <= _KEPT | _EMPTIED:
            return  # nothing was derived since the last time
        for class_definition in self._classes.values():
            class_definition.forget()
        for function_definition in self._functions.values():
            function_definition.forget()
        if "runs" in self.__dict__:
            self.runs.empty()
        left = [*self._left_scopes, *self._scopes.values()]
        for name in self.__dict__.keys() - _KEPT:
            del self.__dict__[name]
        self._scopes, self._scope_of, self._reaching, self._comprehensions, self._left_scopes = {}, {}, {}, {}, left
        # Weak: a definition holds its model, and what holds itself stays until the collector comes.
        self._functions = WeakValueDictionary(self._functions)
        self._classes = WeakValueDictionary(self._classes)

    def forget_analyses(self) -> None:
        """Drop what may rest on who uses the code of a file; what things are in it never does."""
        if "runs" in self.__dict__:
            self.runs.forget_callers()
        for name in _ANALYSES & self.__dict__.keys():
            del self.__dict__[name]

    def let_go(self) -> None:
        """Empty the scopes that were forgotten; nothing may be asking about them any more.

        They hold themselves, and would stay in memory until the collector comes.
        """
        for scope in self._left_scopes:
            scope.empty()
        self._left_scopes = []

    # -- where things stand ----------------------------------------------------------------------------------------

    def enclosing_function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The ``def`` in whose body (or parameter list) the node stands."""
        parents = self.tree.parents
        holder = parents.get(id(node))
        while holder is not None and holder.__class__ is not cst.FunctionDef:
            holder = parents.get(id(holder))
        return holder

    def scope(self, node: cst.CSTNode) -> Scope:
        """The scope that a module, class or function opens."""
        scope = self._scopes.get(id(node))
        if scope is None:
            parent = None if isinstance(node, cst.Module) else self.scope_of(node)
            scope = self._scopes[id(node)] = Scope(node, parent, self)
            fill(scope)
        return scope

    def scope_of(self, node: cst.CSTNode) -> Scope:
        """The scope in which a node is evaluated. A definition's own name, decorators and defaults are outside it."""
        known, parents = self._scope_of, self.tree.parents
        scope = known.get(id(node))
        if scope is not None:
            return scope
        child, block = node, None
        while True:
            parent = parents.get(id(child))
            if parent is None:
                scope = self.scope(self.tree.module)
                break
            kind = parent.__class__
            if kind not in _AROUND_STATEMENTS:
                child = parent
                continue
            if kind is cst.Module or (kind in _DEFINITIONS and child is parent.body):  # type: ignore[attr-defined]
                scope = self.scope(parent)
                break
            if kind is cst.IndentedBlock:
                scope = known.get(id(parent))
                if scope is not None:
                    break
                block = block or parent
            child = parent
        # Whoever asks next will ask about the same node, or one in the same block.
        known[id(node)] = scope
        if block is not None:
            known[id(block)] = scope
        return scope

    def function_info(self, node: cst.FunctionDef) -> FunctionInfo:
        """The definition behind a ``def``."""
        info = self._functions.get(id(node))
        if info is None:
            info = self._functions[id(node)] = FunctionInfo(node, self)
        return info

    def class_info(self, node: cst.ClassDef) -> ClassInfo:
        """The definition behind a ``class``."""
        info = self._classes.get(id(node))
        if info is None:
            info = self._classes[id(node)] = ClassInfo(node, self)
        return info

    # -- what things are -------------------------------------------------------------------------------------------

    def value(self, node: cst.CSTNode) -> Value | None:
        """What an expression is; ``None`` when that is not certain."""
        return self._inference.value(node)

    def alternatives(self, node: cst.BaseExpression) -> tuple[Value | None, ...]:
        """What an expression is on each of the ways that lead to it; ``None`` for one of which nothing is known."""
        return alternatives(self, node)

    def binding_value(self, binding: Binding) -> Value | None:
        """What a binding binds its key to."""
        return self._inference.binding_value(binding)

    def returned(self, info: FunctionInfo) -> Value | None:
        """What a call of a function of this file gives back."""
        return self._inference.returned(info)

    def qualified_name(self, node: cst.CSTNode) -> str | None:
        """The canonical qualified name of an imported or built-in thing; ``None`` for everything else."""
        value = self.value(node)
        return value.name if isinstance(value, Symbol) else None

    def library_name(self, node: cst.CSTNode) -> str | None:
        """As ``qualified_name``, for what this file itself imports from a library, or with all of a sibling file.

        No sibling file is read but for a name that nothing in the file binds.
        """
        path = dotted_path(node)
        if path is None:
            return None
        root = path.partition(".")[0]
        is_library_here = root in self._library_roots or (
            self._imports_all and self.scope_of(node).home_of(root) is None
        )
        return self.qualified_name(node) if is_library_here else None

    @cached_property
    def _imports_all(self) -> bool:
        """Whether the file imports all that another one has, its imports included."""
        return any(isinstance(item.names, cst.ImportStar) for item in self.tree.by_type.get(cst.ImportFrom, ()))

    @cached_property
    def _library_roots(self) -> frozenset[str]:
        """The names that imports from libraries bind anywhere in the file."""
        roots: set[str] = set()
        for statement in self.tree.by_type.get(cst.Import, ()):
            for alias in statement.names:
                path = dotted_path(alias.name) or ""
                if is_library(self, path):
                    roots.add(alias.evaluated_alias or path.partition(".")[0])
        for statement in self.tree.by_type.get(cst.ImportFrom, ()):
            module = dotted_path(statement.module) if statement.module is not None else None
            if module is not None and not statement.relative and is_library(self, module):
                names = () if isinstance(statement.names, cst.ImportStar) else statement.names
                roots.update(alias.evaluated_alias or alias.evaluated_name for alias in names)
        return frozenset(roots)

    def reaching(self, node: cst.BaseExpression) -> tuple[Binding, ...]:
        """The bindings of a name or dotted path that reach it, in source order; empty when it is bound elsewhere."""
        known = self._reaching.get(id(node))
        if known is None:
            known = self._reaching[id(node)] = self._bindings_of(node)
        return known

    def _bindings_of(self, node: cst.BaseExpression) -> tuple[Binding, ...]:
        inner = self._inference.inner_binding(node) if isinstance(node, cst.Name) else None
        if inner is not None:
            return () if inner[0] is None else (inner[0],)
        key = dotted_path(node)
        found = () if key is None else self.scope_of(node).reaching(key, node).bindings
        return () if found and self._inference.begins_with_inner(node) else found

    def comprehension_binding(self, clause: cst.CompFor, name: str, path: tuple[int | None, ...]) -> Binding:
        """The binding of a name by a ``for`` clause of a comprehension."""
        binding = self._comprehensions.get((id(clause), name))
        if binding is None:
            binding = Binding(name, BindingKind.LOOP, clause, self.scope_of(clause), clause.iter, path)
            self._comprehensions[id(clause), name] = binding
        return binding

    def exported(self, name: str) -> Value | None:
        """What ``from this_file import name`` gives."""
        return self._inference.exported(name)

    # -- calls of a definition ----------------------------------------------------------------------------------------

    @property
    def calls_by_word(self) -> dict[str, list[cst.Call]]:
        """The calls of the file by the last word of what they call."""
        return self.tree.calls_by_word

    @cached_property
    def names_by_word(self) -> dict[str, list[cst.Name]]:
        """The names of the file by their text, attributes' names and keywords included."""
        found: dict[str, list[cst.Name]] = defaultdict(list)
        for name in self.tree.by_type.get(cst.Name, ()):
            found[name.value].append(name)
        found.default_factory = None  # type: ignore[attr-defined]
        return found

    @cached_property
    def loop_variables(self) -> frozenset[str]:
        """The names and dotted paths to which the loops of the file assign."""
        pending: list[cst.CSTNode] = [loop.target for loop in self.tree.by_type.get(cst.For, ())]
        found: set[str] = set()
        while pending:
            target = pending.pop()
            path = dotted_path(target)
            if path is not None:
                found.add(path)
            elif isinstance(target, (cst.Tuple, cst.List)):
                pending += [element.value for element in target.elements]
        return frozenset(found)

    def names_in(self, word: str, scope: Scope) -> list[cst.Name]:
        """The names with this text in a scope itself, in document order: of a large file a small part."""
        return self._names_by_scope(word)[0].get(id(scope), [])

    def names_within(self, word: str, scope: Scope) -> list[cst.Name]:
        """The names with this text in a scope and in those inside it, in document order."""
        return self._names_by_scope(word)[1].get(id(scope), [])

    def _names_by_scope(self, word: str) -> tuple[dict[int, list[cst.Name]], dict[int, list[cst.Name]]]:
        """The names with this text, by the scope that they are in, and by each that they are within."""
        found = self._sorted_names.get(word)
        if found is None:
            own, within = found = self._sorted_names[word] = ({}, {})
            for name in self.names_by_word.get(word, ()):
                holder: Scope | None = self.scope_of(name)
                own.setdefault(id(holder), []).append(name)
                while holder is not None:
                    within.setdefault(id(holder), []).append(name)
                    holder = holder.parent
        return found

    @cached_property
    def _sorted_names(self) -> dict[str, tuple[dict[int, list[cst.Name]], dict[int, list[cst.Name]]]]:
        return {}

    def module_by_use(self, definition: ClassInfo, name: str) -> Value | None:
        """The module that an attribute of a class surely is, to go by what its methods do with it."""
        return module_by_use(definition, name)

    @cached_property
    def remembered(self) -> dict[tuple[object, object], Any]:
        """Answers about the whole file, by the question and what was asked about."""
        return {}

    @cached_property
    def assignments_by_scope(self) -> dict[int, list[cst.Assign]]:
        """The assignments of the file by the ``id`` of the scope in which they stand."""
        found: dict[int, list[cst.Assign]] = {}
        for statement in self.tree.by_type.get(cst.Assign, ()):
            found.setdefault(id(self.scope_of(statement)), []).append(statement)
        return found

    @cached_property
    def function_names(self) -> frozenset[str]:
        """The names of all functions and methods that the file defines."""
        return frozenset(function.name.value for function in self.tree.by_type.get(cst.FunctionDef, ()))

    # -- the file as a whole ---------------------------------------------------------------------------------------

    @cached_property
    def framework(self) -> Framework | None:
        """The only framework that the file imports; ``None`` when it imports several or none."""
        if self.imports_look_alike:
            return None
        found: set[Framework] = set()
        for node in (
            *self.tree.by_type.get(cst.Import, ()),
            *self.tree.by_type.get(cst.ImportFrom, ()),
        ):
            names = [node.module] if isinstance(node, cst.ImportFrom) else [alias.name for alias in node.names]
            for name in names:
                path = dotted_path(name) if name is not None else None
                framework = lookup.framework_of(path) if path else None
                if framework in ("torch", "paddle"):
                    found.add(framework)
        return found.pop() if len(found) == 1 else None

    def imports(self, module: str) -> bool:
        """Whether the file imports a module of that name, or something in it, anywhere."""
        return module in self._imported_modules

    @cached_property
    def imports_look_alike(self) -> bool:
        """Whether the file imports another framework whose networks and optimizers are used as those of PyTorch are."""
        return not facts.LOOK_ALIKES.isdisjoint(self._imported_modules)

    def imports_beside(self, package: str, parts: tuple[str, ...]) -> bool:
        """Whether the file imports a package, or something in it that is in none of some parts."""
        found = (path for path in self._imported_paths if path == package or path.startswith(f"{package}."))
        return any(not f"{path}.".startswith(tuple(f"{part}." for part in parts)) for path in found)

    @cached_property
    def _imported_modules(self) -> frozenset[str]:
        """The modules that the file imports, those that they are in, and what it imports from one by name."""
        found: set[str] = set()
        for path in self._imported_paths:
            while path and path not in found:
                found.add(path)
                path = path.rpartition(".")[0]
        return frozenset(found)

    @cached_property
    def _imported_paths(self) -> tuple[str, ...]:
        """The modules that the file imports, and what it imports from one by name."""
        paths = [dotted_path(alias.name) for item in self.tree.by_type.get(cst.Import, ()) for alias in item.names]
        for statement in self.tree.by_type.get(cst.ImportFrom, ()):
            if statement.module is not None and not statement.relative:
                base = dotted_path(statement.module)
                is_star = type(statement.names) is cst.ImportStar
                paths += [base] if is_star else [f"{base}.{alias.evaluated_name}" for alias in statement.names]
        return tuple(path for path in paths if path)

    def sibling(self, module: str, level: int, exporting: str | None = None) -> "Model | None":
        """The model of a module of the same project, as this file imports it; ``None`` outside a project.

        ``exporting`` is a name that is looked for in it: a file that surely does not have it is not parsed.
        """
        if self.project is None:
            return None
        path = self.project.locate(module, level, self.path)
        if path is None:
            return None
        self._note_content(path)
        if exporting is not None and not self.project.may_export(path, exporting):
            return None
        return self.project.model(path)

    @worked_out_once
    def defines(self, module: str) -> bool:
        """Whether the package that a module is of is one of the project itself."""
        return self.project is not None and self.project.defines(module, self.path)

    def neighbour(self, path: Path, calling: str | None = None) -> "Model | None":
        """The model of a file of the same project that this file does not import; ``None`` outside a project.

        ``calling`` is a name of which a call is looked for in it: a file that surely has none is not parsed.
        """
        if self.project is None:
            return None
        self.project.reads.note_of_users(("content", str(self.project.disk.real(str(path)))))
        if calling is not None and not self.project.may_call(path, calling):
            return None
        return self.project.model(path)

    def importers(self, *words: str) -> Iterator["Model"]:
        """The nearest files of the project that import this one and have one of the words, each once; a few at most."""
        if self.project is None:
            return
        paths = dict.fromkeys(path for word in words for path in self.project.importers(self.path, word))
        for path in islice(paths, _MAX_IMPORTERS):
            other = self.neighbour(path)
            if other is not None:
                yield other

    def calls_elsewhere(self, method: str) -> Iterator[tuple["Model", cst.Call]]:
        """The calls of methods of such a name in other files that import the framework; in a few files at most."""
        if self.project is None:
            return
        paths = self.project.users(self.framework or "torch", f".{method}(")
        for path in paths[:_MAX_CALLING]:
            other = None if path == self.path else self.neighbour(path)
            for call in () if other is None else other.calls_by_word.get(method, ()):
                if other is not None and isinstance(call.func, cst.Attribute):
                    yield other, call

    def _note_content(self, path: Path) -> None:
        if self.project is not None:
            real = self.project.disk.real
            self.project.reads.note(str(self.path), ("content", str(real(str(path)))))
