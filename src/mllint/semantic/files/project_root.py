"""Where the project of a file begins, by what lies in the folders above it."""

import os
import re
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

_STRONG = (".git", "pyproject.toml")
_BUILD = ("setup.py", "setup.cfg")
"""What only a project's root has: the nearest folder with one of them, however far up, is the root.

A package inside another one may have a build file of its own, which compiles an extension; it is no project.
"""
_OF_CHECKOUT = ("requirements.txt", "environment.yml", ".gitignore")
"""What a package has no use for: beside them ``__init__.py`` is only left over."""
_FAIR = (*(f"LICENSE{ending}" for ending in ("", ".txt", ".md")), *_OF_CHECKOUT)
_PACKAGE = ("__init__.py",)
_README = ("README.md", "README.rst", "README.txt", "README")
"""What a root has, but also a folder inside a project may have: asked for only close to the file."""
MAX_IMPORTING = 3
"""How many folders up a script may be that imports from a folder."""
MAX_SCRIPTS = 50
MAX_BYTES = 400_000
"""How many scripts of a folder are read for what they import, and how large ones."""
MAX_FOLDERS = 6
"""How many folders up the weaker marks are looked for. Above a project they lie in folders that hold many projects."""


def project_root(path: Path) -> Path:
    """The root of the project that a file belongs to; what it imports is looked up from there.

    Code that was unpacked or copied often has no `.git` and no build file. Then the nearest folder with a licence or a
    list of requirements counts, else the nearest with a README; without either the folder above the topmost package,
    or the one whose scripts import from the folder. None of them cuts a package in two, unless its topmost folder has
    what only a checkout has; and none is a home folder or what holds those.
    """
    return _root_of(path.resolve().parent)


class ProjectRoots:
    """The roots of the projects of many files; each folder is looked at once."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}
        self._roots: dict[str, Path] = {}

    def of(self, path: str) -> Path:
        """The root of the project that a file belongs to: that of the file's own folder, through symbolic links."""
        folder, name = os.path.split(os.path.abspath(path))
        real = self._real.get(folder)
        if real is None:
            real = self._real[folder] = os.path.realpath(folder)
        file = os.path.join(real, name)
        if os.path.islink(file):
            real = os.path.dirname(os.path.realpath(file))
        root = self._roots.get(real)
        if root is None:
            root = self._roots[real] = _root_of(Path(real))
        return root


def _root_of(folder: Path) -> Path:
    folders = (folder, *folder.parents)
    for candidate in folders:
        if _has(candidate, _STRONG) or (_has(candidate, _BUILD) and not _is_inner_package(candidate)):
            return candidate
    outside = _above_packages(folder)
    top = folders[folders.index(outside) - 1] if folder != outside else folder
    if _has(top, _PACKAGE) and _has(top, _OF_CHECKOUT) and not _has(outside, _FAIR):
        return top
    for markers in (_FAIR, _README):
        for candidate in _close(folder, outside):
            if _has(candidate, markers):
                return candidate
    return outside


def _has(folder: Path, names: tuple[str, ...]) -> bool:
    return any(os.path.exists(os.path.join(folder, name)) for name in names)


def _is_inner_package(folder: Path) -> bool:
    return _has(folder, _PACKAGE) and _has(folder.parent, _PACKAGE)


def _above_packages(folder: Path) -> Path:
    """The folder itself, or the one from which the package around it is imported."""
    holders = _holders(folder)
    while folder != folder.parent:
        above = folder.parent if _has(folder, _PACKAGE) else _importing_folder(folder, holders)
        if above is None:
            break
        folder = above
    return folder


def _importing_folder(folder: Path, holders: set[Path]) -> Path | None:
    """The folder whose scripts import from one below it; that needs no ``__init__.py``: ``import models.parts``.

    A few scripts are read; where there are many it is not known.
    """
    name = ""
    for part, above in zip((folder, *folder.parents), folder.parents[:MAX_IMPORTING], strict=False):
        if not part.name.isidentifier() or above in holders or part in holders:
            return None
        name = f"{part.name}.{name}" if name else part.name
        imports = re.compile(rb"^[ \t]*(?:from|import)[ \t]+" + re.escape(name.encode()) + rb"\b", re.MULTILINE)
        with suppress(OSError):
            scripts = [path for path in sorted(above.glob("*.py"))[:MAX_SCRIPTS] if path.stat().st_size <= MAX_BYTES]
            if any(imports.search(path.read_bytes()) for path in scripts):
                return above
    return None


def _close(folder: Path, outside: Path) -> list[Path]:
    """The folders that a weak mark may name, from the nearest outside of the file's package up."""
    holders = _holders(folder)
    folders = takewhile(lambda candidate: candidate not in holders, (outside, *outside.parents))
    return list(folders)[:MAX_FOLDERS]


def _holders(folder: Path) -> set[Path]:
    """A home folder, what is above it, and the top of the file system: nobody's project."""
    holders = {Path(folder.anchor)}
    with suppress(RuntimeError):  # there may be no home
        home = Path.home().resolve()
        holders |= {home, *home.parents}
    return holders
