"""What an import binds: a thing of a library, known by name, or a thing of the project; and which files it names."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from mllint.knowledge import lookup
from mllint.semantic.names.remembered import worked_out_once
from mllint.semantic.names.scopes import Binding, BindingKind
from mllint.semantic.values import ClassObject, File, Function, Symbol, Unfinished, Value
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from mllint.semantic.model import Model
    from mllint.semantic.project import Project

_OTHERS = ("tensorflow", "keras", "jax", "flax", "mxnet", "mindspore", "chainer", "theano", "tinygrad", "mlx")


def imported(model: "Model", binding: Binding, name: str) -> Value | None:
    """What an import statement binds ``name`` to; for ``from x import *`` what ``name`` is in ``x``, if it is there."""
    node = binding.node
    if isinstance(node, cst.ImportFrom):
        return _from_star(model, node, name)
    assert isinstance(node, cst.ImportAlias)
    statement = model.tree.parent(node)
    path = dotted_path(node.name)
    if path is None:
        return None
    if isinstance(statement, cst.ImportFrom):
        return _member(
            model,
            dotted_path(statement.module) if statement.module else "",
            len(statement.relative),
            path,
        )
    # `import a.b` binds `a`; `import a.b as c` binds `a.b`.
    target = path if node.asname is not None else path.partition(".")[0]
    return library_or_file(model, target)


def _from_star(model: "Model", statement: cst.ImportFrom, name: str) -> Value | None:
    module = dotted_path(statement.module) if statement.module else ""
    if module is None:
        return None
    if not statement.relative and is_library(model, module):
        qualified = lookup.canonical(f"{module}.{name}")
        known = lookup.class_(qualified) is not None or lookup.function(qualified) is not None
        return Symbol(qualified) if known else None
    target = model.sibling(module, len(statement.relative), exporting=name)
    return None if target is None else target.exported(name)


def _member(model: "Model", module: str | None, level: int, name: str) -> Value | None:
    """What ``from module import name`` binds."""
    if module is None:
        return None
    if level == 0 and is_library(model, module):
        return Symbol(lookup.canonical(f"{module}.{name}"))
    target = model.sibling(module, level)
    # What a package only hands on with `*` is, under the name of one of its files, that file.
    if target is not None and name in target.scope(target.tree.module).bindings:
        found = target.exported(name)
        # In the package's own `__init__`, `from . import file` binds just what is being looked for.
        if found is not None and not isinstance(found, Unfinished):
            return found
    submodule = model.sibling(f"{module}.{name}" if module else name, level)
    if submodule is not None:
        return File(submodule)
    found = None if target is None else target.exported(name)
    if found is not None:
        return found
    return Symbol(f"{module}.{name}") if level == 0 and target is None else None


def library_or_file(model: "Model", name: str) -> Value:
    """A thing of a library by its dotted name, or the file of the project that has it."""
    if not is_library(model, name):
        target = model.sibling(name, 0)
        if target is not None:
            return File(target)
    return Symbol(lookup.canonical(name))


def of_own_frameworks(values: list[Value | None]) -> list[Value | None]:
    """What one name may be by several imports, without what is made for another framework: the other backend.

    So it is where a package takes its functions ``from .of_tensorflow import *`` or, with PyTorch, from another file.
    """
    homes = [value.definition.model if isinstance(value, (Function, ClassObject)) else None for value in values]
    if None in homes or len(set(map(id, homes))) < 2:
        return values
    ours = [value for value, home in zip(values, homes, strict=True) if home is not None and not _is_of_others(home)]
    are_meant = any(home is not None and home.framework is not None for home in homes)
    return ours if ours and are_meant else values


def _is_of_others(model: "Model") -> bool:
    """Whether a file is written for another framework, and for none of those whose code is looked at."""
    return model.framework is None and any(map(model.imports, _OTHERS))


def origins(model: "Model", name: str, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
    """What binds an imported name in the file of the project where it is made; empty for everything else.

    ``bindings`` are what binds it in ``model``: import statements, or nothing where it may come with a ``*``.
    """
    if any(binding.kind is not BindingKind.IMPORT for binding in bindings):
        return ()
    key = ("origins", name)
    if key not in model.remembered:
        model.remembered[key] = ()  # two files may import from each other
        stars = model.scope(model.tree.module).bindings.get("*", ())
        model.remembered[key] = _origins(model, name, bindings or tuple(stars))
    found: tuple[Binding, ...] = model.remembered[key]
    return found


def _origins(model: "Model", name: str, imports: tuple[Binding, ...]) -> tuple[Binding, ...]:
    for binding in reversed(imports):
        node = binding.node
        statement = node if isinstance(node, cst.ImportFrom) else model.tree.parent(node)
        if not isinstance(statement, cst.ImportFrom):
            continue
        module = dotted_path(statement.module) if statement.module else ""
        if module is None or (not statement.relative and is_library(model, module)):
            continue
        original = node.evaluated_name if isinstance(node, cst.ImportAlias) else name
        target = model.sibling(module, len(statement.relative), exporting=original)
        if target is None:
            continue
        there = target.scope(target.tree.module)
        bound = there.reaching_end(original).bindings if original in there.bindings else ()
        found = origins(target, original, bound) or bound
        if found:
            return found
    return ()


def is_library(model: "Model", name: str) -> bool:
    """Whether a module that a file imports is of the standard library or of a framework in the tables.

    Whatever the project holds, but a package built on a framework is no library where it is developed, or was copied.
    """
    if is_of_standard_library(name):
        return True
    return lookup.framework_of(name) is not None and not (lookup.is_built_on(name) and model.defines(name))


def is_of_standard_library(name: str) -> bool:
    """Whether a module or qualified name is of Python's own library."""
    return name.partition(".")[0] in sys.stdlib_module_names


@worked_out_once
def imported_files(model: "Model", project: "Project") -> tuple[Path, ...]:
    """The project's own files that a file imports, by its import statements."""
    located = (project.locate(name, level, model.path) for name, level in _imported_names(model))
    found = (project.disk.real(str(path)) for path in located if path is not None)
    return tuple(dict.fromkeys(found))


def _imported_names(model: "Model") -> Iterator[tuple[str, int]]:
    """What may be a file of the project by the import statements of a file: its dotted name, and the dots before."""
    for statement in model.tree.by_type.get(cst.ImportFrom, ()):
        module = dotted_path(statement.module) if statement.module is not None else ""
        if module is None or (not statement.relative and is_library(model, module)):
            continue
        yield module, len(statement.relative)
        if not isinstance(statement.names, cst.ImportStar):
            for alias in statement.names:
                yield f"{module}.{alias.evaluated_name}".lstrip("."), len(statement.relative)
    for statement in model.tree.by_type.get(cst.Import, ()):
        for alias in statement.names:
            if not is_library(model, alias.evaluated_name):
                yield alias.evaluated_name, 0
