"""From paths to Python files: folders walked, excluded and ignored entries left out.

A path that is named explicitly is taken as it is, whatever its suffix and whatever is excluded
(unless ``force_exclude``). Within a folder, ``.py`` and ``.pyi`` files are found, and what
``extend_include`` names (``*.ipynb``); links to files are followed, links to folders are not, so
that a circle of links ends. A file that is met twice, by its name and by a link, goes by its name.
"""

import errno
import os
import stat
from collections.abc import Iterable
from functools import cache

import msgspec

from mllint.configuration.files import Resolver
from mllint.configuration.patterns import Patterns
from mllint.configuration.settings import Configuration, ConfigurationError

_SUFFIXES = (".py", ".pyi")
_EDITOR_LOCK = ".#"
"""How Emacs names the dangling link that it keeps beside a file while that is edited."""

_ROOT_MARKERS = (".git", "pyproject.toml", "setup.py", "setup.cfg")


class SourceFile(msgspec.Struct, frozen=True):
    """A file to lint: its path as it is shown, and the configuration that holds for it."""

    path: str
    configuration: Configuration


class Unreadable(msgspec.Struct, frozen=True):
    """A path that could not be read, and why in a few words."""

    path: str
    reason: str


class Discovery(msgspec.Struct, frozen=True):
    """What the given paths came to, each list sorted."""

    files: tuple[SourceFile, ...]
    unreadable: tuple[Unreadable, ...]
    configuration_errors: tuple[ConfigurationError, ...]
    """One for each configuration file that cannot be used; no file under it is in ``files``."""
    nothing_exists: bool
    """Whether there were paths and every one of them is missing."""


def discover(paths: Iterable[str], resolver: Resolver) -> Discovery:
    """The Python files at and below the paths, each once. Raises nothing."""
    search = _Search(resolver)
    for path in paths:
        search.add(path)
    search.drop_second_names()
    return Discovery(
        files=tuple(sorted(search.files.values(), key=lambda file: file.path)),
        unreadable=tuple(sorted(search.unreadable, key=lambda problem: problem.path)),
        configuration_errors=tuple(search.errors[key] for key in sorted(search.errors)),
        nothing_exists=search.existing == 0 and bool(search.unreadable),
    )


def project_root(folder: str) -> str:
    """The nearest folder upward that looks like the root of a project, else the folder itself."""
    folder = os.path.abspath(folder)
    candidate = folder
    while not any(os.path.exists(os.path.join(candidate, marker)) for marker in _ROOT_MARKERS):
        parent = os.path.dirname(candidate)
        if parent == candidate:
            return folder
        candidate = parent
    return candidate


def is_excluded(path: str, configuration: Configuration) -> bool:
    """Whether ``exclude`` or ``extend_exclude`` names a path or a folder above it."""
    return _Exclusions(configuration).exclude(os.path.abspath(path), is_folder=os.path.isdir(path))


def reason_of(error: OSError) -> str:
    """Why a path cannot be read, in a few words."""
    known = {
        errno.ENOENT: "no such file or folder",
        errno.ELOOP: "the symbolic links go round in a circle",
        errno.EACCES: "permission denied",
    }
    return known.get(error.errno or 0) or (error.strerror or str(error)).lower()


class _Search:
    """One discovery under way."""

    def __init__(self, resolver: Resolver) -> None:
        self.files: dict[str, SourceFile] = {}
        self.unreadable: list[Unreadable] = []
        self.errors: dict[str, ConfigurationError] = {}
        self.existing = 0
        self._resolver = resolver
        self._links: set[str] = set()
        """The links to files that were met in folders."""

    def add(self, path: str) -> None:
        """Take a path that was named explicitly."""
        shown = path
        while shown.startswith("./"):
            shown = shown[2:].lstrip("/") or "."
        try:
            is_folder = stat.S_ISDIR(os.stat(path).st_mode)
        except (OSError, ValueError) as error:
            self._refuse(shown, path, error)
            return
        self.existing += 1
        configuration = self._configuration(path if is_folder else os.path.dirname(path))
        if configuration is None:
            return
        if configuration.files.force_exclude and is_excluded(path, configuration):
            return
        if is_folder:
            self._walk(shown)
        else:
            self._take(shown, os.path.abspath(path), configuration)

    def _refuse(self, shown: str, path: str, error: OSError | ValueError) -> None:
        """Note a path that cannot be read."""
        is_missing = not os.path.lexists(path)
        if is_missing or isinstance(error, ValueError):
            reason = "no such file or folder"
        elif isinstance(error, FileNotFoundError):
            reason = "the symbolic link leads nowhere"
        else:
            reason = reason_of(error)
        self.unreadable.append(Unreadable(shown, reason))
        self.existing += not is_missing

    def _configuration(self, folder: str) -> Configuration | None:
        try:
            return self._resolver.for_folder(folder)
        except ConfigurationError as error:
            self.errors[str(error)] = error
            return None

    def _take(self, path: str, absolute: str, configuration: Configuration) -> None:
        self.files.setdefault(absolute, SourceFile(path, configuration))

    def _walk(self, root: str) -> None:
        start = os.path.abspath(root)
        exclusions: dict[int, _Exclusions] = {}
        stack = [(root, start, _IgnoreFiles.above(start))]
        while stack:
            folder, absolute, ignored = stack.pop()
            configuration = self._configuration(absolute)
            if configuration is None:
                continue
            try:
                with os.scandir(folder) as scan:
                    entries = sorted(scan, key=lambda entry: entry.name)
            except OSError as error:
                self.unreadable.append(Unreadable(folder, f"folder: {reason_of(error)}"))
                continue
            if configuration.files.respect_gitignore:
                ignored = ignored.within(absolute, entries)
            excluded = exclusions.get(id(configuration))
            if excluded is None:
                excluded = exclusions[id(configuration)] = _Exclusions(configuration, start)
            included = _Inclusions(configuration) if configuration.files.extend_include else None
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if (
                    not is_folder
                    and not entry.name.endswith(_SUFFIXES)
                    and (included is None or not included.include(os.path.join(absolute, entry.name)))
                ):
                    continue
                path = entry.name if folder == "." else os.path.join(folder, entry.name)
                below = os.path.join(absolute, entry.name)
                if excluded.exclude(below, is_folder=is_folder):
                    continue
                if ignored.ignore(below, is_folder=is_folder):
                    continue
                if is_folder:
                    stack.append((path, below, ignored))
                elif self._is_file(entry, path):
                    if entry.is_symlink() and below not in self.files:
                        self._links.add(below)
                    self._take(path, below, configuration)

    def drop_second_names(self) -> None:
        """Leave out the links to what was found by another name: it would be reported, and mended, twice."""
        if not self._links:
            return
        met = {os.path.realpath(path) for path in self.files.keys() - self._links}
        for link in sorted(self._links):
            target = os.path.realpath(link)
            if target in met:
                del self.files[link]
            met.add(target)

    def _is_file(self, entry: os.DirEntry[str], path: str) -> bool:
        try:
            return stat.S_ISREG(entry.stat().st_mode)
        except OSError as error:
            if not entry.name.startswith(_EDITOR_LOCK):
                self._refuse(path, path, error)
            return False


class _Exclusions:
    """What one configuration excludes, in a walk that starts at a folder."""

    def __init__(self, configuration: Configuration, start: str | None = None) -> None:
        files = configuration.files
        self._root = os.path.abspath(configuration.root)
        self._patterns = Patterns((*files.exclude, *files.extend_exclude))
        if start is not None and self.exclude(start, is_folder=True):
            # Excluded, but named explicitly: what is said about the way to it does not count.
            self._root = start

    def exclude(self, absolute: str, *, is_folder: bool) -> bool:
        """Whether a path, or a folder on the way to it, is excluded."""
        relative = _relative(absolute, self._root)
        while relative.startswith("../"):
            relative = relative[3:]
        if relative in (".", ".."):
            return False
        return bool(self._patterns.verdict(relative + "/" * is_folder))


class _Inclusions:
    """Which files of folders one configuration wants beside those of Python."""

    def __init__(self, configuration: Configuration) -> None:
        self._root = os.path.abspath(configuration.root)
        self._patterns = _inclusions(configuration.files.extend_include)

    def include(self, absolute: str) -> bool:
        """Whether a file is wanted."""
        return bool(self._patterns.verdict(_relative(absolute, self._root)))


@cache
def _inclusions(patterns: tuple[str, ...]) -> Patterns:
    return Patterns(patterns)


class _IgnoreFiles:
    """The ``.gitignore`` files that hold in a folder, the outermost first."""

    def __init__(self, files: tuple[tuple[str, Patterns], ...]) -> None:
        self._files = files

    @classmethod
    def above(cls, folder: str) -> "_IgnoreFiles":
        """Those of the folders above an absolute path, up to the root of the repository."""
        above: list[str] = []
        candidate = folder
        while not os.path.exists(os.path.join(candidate, ".git")):
            parent = os.path.dirname(candidate)
            if parent == candidate:
                # Not a repository: what lies further up has nothing to do with this folder.
                return cls(())
            above.append(parent)
            candidate = parent
        found = cls(())
        for outer in reversed(above):
            found = found._with(outer)
        # Ignored, but named explicitly: what is said about the way to it does not count.
        return cls(()) if found.ignore(folder, is_folder=True) else found

    def within(self, folder: str, entries: list[os.DirEntry[str]]) -> "_IgnoreFiles":
        """These and the folder's own."""
        if any(entry.name == ".gitignore" for entry in entries):
            return self._with(folder)
        return self

    def _with(self, folder: str) -> "_IgnoreFiles":
        path = os.path.join(folder, ".gitignore")
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                patterns = Patterns.lenient(file.read().splitlines())
        except OSError:
            # None there, or a folder of that name, or not ours to read: it ignores nothing.
            return self
        return _IgnoreFiles((*self._files, (folder, patterns)))

    def ignore(self, absolute: str, *, is_folder: bool) -> bool:
        """Whether the innermost file that says anything about the path ignores it."""
        for folder, patterns in reversed(self._files):
            verdict = patterns.verdict(_relative(absolute, folder) + "/" * is_folder)
            if verdict is not None:
                return verdict
        return False


def _relative(absolute: str, root: str) -> str:
    if absolute.startswith(root) and absolute[len(root) : len(root) + 1] == os.sep:
        relative = absolute[len(root) + 1 :]
    else:
        relative = os.path.relpath(absolute, root)
    return relative if os.sep == "/" else relative.replace(os.sep, "/")
