"""What the disk says about the files of a project, as answers to questions that can be asked again.

Everything that the model of a file learns about other files, it learns from here. A question is a value; so is the
answer. Whoever keeps both can tell later, without reading any code, whether a finding still rests on what is there:
also on a file that was looked for and not found, or on what the names in a folder are.
"""

import os
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TypeAlias

MAX_BYTES = 400_000
"""Largest sibling file that is read."""
MAX_SEARCHED = 1500
"""How many files are searched for a text at most."""
MAX_FOLDERS = 2_000
MAX_FILES = 2_000
MAX_TREE_BYTES = 25_000_000
"""How much of a project is looked at as a whole; a larger one is not known as a whole."""
MAX_KEPT_BYTES = 8_000_000
"""How many bytes of files are kept that are searched for one word after the other."""

Question: TypeAlias = tuple[str, ...]
"""What is asked: ``content PATH``, ``module NAME LEVEL FOLDER``, ``scripts FOLDER``, ``saves PATH``, ``near FOLDER``,
``moves PATH``, ``importers NAME WORD``, ``installed PATH``, ``linked PATH``, ``takes PATH WORD``, ``told WORD``,
``tree``.
"""

MAX_LINKED = 5
"""How many files that hang together are one program, and no collection."""

_MOVING = re.compile(
    rb"\.to\(|cuda|device|\b[gx]pus?\b|\.(?:half|float|double|bfloat16|type)\(|arallel|ccelerat|ightning"
)
_CHECKPOINT_WORDS = (b".save(", b"state_dict(", b"set_dict(", b"load_dict(")
_SKIPPED = frozenset({".git", ".hg", ".tox", ".venv", "venv", "node_modules", "__pycache__", "build", "dist"})
# A pattern that begins with a line's end is looked for twice as fast as one that begins with `^`.
_IMPORTS = re.compile(rb"\n[ \t]*(?:from[ \t]+[^\n]+?[ \t]import[ \t]*(?:\([^)]*\)|[^\n]*)|import[ \t][^\n]+)")
_IMPORTED_FROM = re.compile(rb"\s*from[ \t]+(\.*)[ \t]*([\w.]*)[ \t]+import\b")
_COMMENTED = re.compile(rb"\n[ \t]*#[^\n]*")
_FRAMEWORKS = frozenset({b"torch", b"paddle", b"numpy"})
_NAMES = re.compile(rb"[A-Za-z_]\w*")
_MODULES = re.compile(rb"(?:\bimport|,)[ \t]+([\w.]+)")
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TEXTS = (
    ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".conf", ".gin", ".txt", ".md", ".rst", ".sh", ".bash", ".bat",
    ".ps1", "Makefile", "Dockerfile",
)  # fmt: skip
"""How files end that may say the names of what a program has."""
_SETUP = frozenset({"setup.py", "pyproject.toml"})
_UNREAD = "unread"
"""The content of a file that cannot be read or is too large."""
_CHANGING = "changing"
"""The answer to a question that had two answers in one run: no later answer is equal to it."""


class Disk:
    """The files below (and, through relative imports, above) the root of a project. Each question is answered once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._answers: dict[Question, str] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._sources: dict[str, list[str]] = {}
        self._real: dict[str, Path] = {}
        self._paths: dict[str, Path] = {}
        self._whole: dict[Path, bytes] = {}
        self._imports: dict[str, list[str]] = {}
        self._kept_bytes = 0
        self._answer_to: dict[str, Callable[..., str]] = {
            "content": self._content,
            "importers": self._importers,
            "installed": self._installed,
            "linked": self._linked,
            "module": self._module,
            "moves": self._moves,
            "near": self._near,
            "saves": self._saves,
            "scripts": self._scripts,
            "takes": self._takes,
            "told": self._told,
            "tree": self._tree,
        }

    def answer(self, question: Question) -> str:
        """What the disk says, or said when that was asked for the first time."""
        found = self._answers.get(question)
        if found is None:
            kind, *arguments = question
            found = self._answers[question] = self._answer_to[kind](*arguments)
        return found

    def real(self, path: str) -> Path:
        """The absolute path of a file, through symbolic links."""
        found = self._real.get(path)
        if found is None:
            # Only under absolute paths: what a relative one means changes with the working directory.
            path = os.path.abspath(path)
            found = self._real.get(path)
        if found is None:
            found = self._real[path] = self.path(os.path.realpath(path))
        return found

    def path(self, text: str) -> Path:
        """The same path for the same text: a path works out its parts and its hash only once."""
        found = self._paths.get(text)
        if found is None:
            found = self._paths[text] = Path(text)
        return found

    # -- content -----------------------------------------------------------------------------------------------------

    def read(self, path: Path) -> bytes | None:
        """The bytes of a file; ``None`` for one that cannot be read or is too large."""
        data = _content_of(str(path))
        self._note_content(path, _UNREAD if data is None else content_digest(data))
        return data

    def note_read(self, path: Path, data: bytes) -> None:
        """Take note of what a file holds, for it was read elsewhere."""
        self._note_content(path, content_digest(data) if len(data) <= MAX_BYTES else _UNREAD)

    def _note_content(self, path: Path, answer: str) -> None:
        question = ("content", str(self.real(str(path))))
        if self._answers.setdefault(question, answer) != answer:
            self._answers[question] = _CHANGING

    @staticmethod
    def _content(path: str) -> str:
        data = _content_of(path)
        return _UNREAD if data is None else content_digest(data)

    def _saves(self, path: str) -> str:
        text = self.read(Path(path)) or b""
        is_relevant = b"torch" in text or b"paddle" in text
        return "yes" if is_relevant and any(word in text for word in _CHECKPOINT_WORDS) else ""

    def _moves(self, path: str) -> str:
        return "yes" if _MOVING.search(self.read(Path(path)) or b"") else ""

    # -- where modules are -------------------------------------------------------------------------------------------

    def module(self, question: Question) -> Path | None:
        """The file that a ``module`` question is answered with."""
        path, _, _ = self.answer(question).partition("\0")
        return self.path(path) if path else None

    def _module(self, module: str, level: str, folder: str) -> str:
        found = self._found_module(module, int(level), folder)
        # What the file is relative to its project is decided where links lead to.
        return f"{found}\0{os.path.realpath(found)}" if found else ""

    def _found_module(self, module: str, level: int, folder: str) -> str | None:
        if level > 0:
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            return self._file(module, folder)
        root, own = str(self.root), folder
        within = os.path.join(root, "")
        # A script's own folder comes first on `sys.path`; a package is imported from one of the folders above it.
        while True:
            found = self._file(module, folder)
            if found is not None or folder == root or not folder.startswith(within):
                break
            folder = os.path.dirname(folder)
        if found is None:
            found = self._file(module, os.path.join(root, "src"))
        return self._file_beside(module, own, within) if found is None else found

    def _file_beside(self, module: str, folder: str, within: str) -> str | None:
        """The one file for a dotted name in a folder below that of a script, or beside it.

        Such a folder is put on `sys.path` by hand: `../lib`. Beside one further above it is where packages are
        installed from.
        """
        first, _, rest = module.partition(".")
        if not rest:
            return None  # of one word there are many
        around = (folder, os.path.dirname(folder)) if folder.startswith(within) else (folder,)
        beside = (path for above in around for path in self._folders_in(above))
        found = {self._file(module, path) for path in beside if first in self._names_in(path)} - {None}
        top = around[-1]
        while not found and top.startswith(within):
            top = os.path.dirname(top)
            found = {self._file(module, path) for path in self._sources_in(top) if first in self._names_in(path)} - {
                None
            }
        return found.pop() if len(found) == 1 else None

    def _folders_in(self, folder: str) -> Iterator[str]:
        """What may be a folder in another one, to go by its name."""
        return (os.path.join(folder, name) for name in self._names_in(folder) if "." not in name)

    def _sources_in(self, folder: str) -> list[str]:
        """The folders in another one from which packages are installed."""
        sources = self._sources.get(folder)
        if sources is None:
            sources = [path for path in self._folders_in(folder) if self._is_installed_from(path)]
            self._sources[folder] = sources
        return sources

    def _is_installed_from(self, folder: str) -> bool:
        """Whether the packages right in a folder are installed from there: ``python/setup.py``, ``src``."""
        return os.path.basename(folder) == "src" or not _SETUP.isdisjoint(self._names_in(folder))

    def _file(self, module: str, folder: str) -> str | None:
        target = os.path.join(folder, *module.split(".")) if module else folder
        candidates = [os.path.join(target, "__init__.py")]
        if module:
            candidates.append(f"{target}.py")
        return next((path for path in candidates if self._is_file(path)), None)

    def _is_file(self, path: str) -> bool:
        folder, name = os.path.split(path)
        return name in self._names_in(folder) and os.path.isfile(path)

    def _names_in(self, folder: str) -> frozenset[str]:
        """What lies in a folder; nothing in one that is not there."""
        names = self._names.get(folder)
        if names is None:
            above, name = os.path.split(folder)
            # Most folders that are asked for do not exist, and the one above is known.
            exists = above == folder or above not in self._names or name in self._names[above]
            try:
                names = frozenset(os.listdir(folder)) if exists else frozenset()
            except (OSError, ValueError):
                names = frozenset()
            self._names[folder] = names
        return names

    # -- many files at once ------------------------------------------------------------------------------------------

    def scripts(self, folder: Path) -> tuple[Path, ...]:
        """The Python files right in a folder, sorted."""
        return tuple(map(self.path, self.answer(("scripts", str(folder))).split("\0")[:-1]))

    def _scripts(self, folder: str) -> str:
        try:
            paths = sorted(path.resolve() for path in Path(folder).glob("*.py") if path.is_file())
        except OSError:
            paths = []
        return "".join(f"{path}\0" for path in paths)

    def files_near(self, folder: Path) -> Iterator[Path]:
        """The Python files below a folder and right in the folders above it, up to the root."""
        return islice(self._files_near(folder), MAX_SEARCHED)

    def _files_near(self, folder: Path) -> Iterator[Path]:
        folder = self.real(str(folder))  # one that is told from here has no folders above
        try:
            yield from sorted(folder.rglob("*.py"))
            for above in folder.parents:
                if above != self.root and self.root not in above.parents:
                    break
                yield from sorted(above.glob("*.py"))
        except OSError:
            return

    def _near(self, folder: str) -> str:
        return self._digest_of(self.files_near(Path(folder)))

    def importers(self, question: Question) -> tuple[Path, ...]:
        """The files that an ``importers`` question is answered with.

        They import a name, or a package whose ``__init__.py`` does, and have a word.
        """
        return tuple(map(self.path, self.answer(question).split("\0")[:-1]))

    def _importers(self, name: str, word: str) -> str:
        encoded = word.encode()
        has_word: dict[Path, bool] = {}
        names = [name]
        for each in names:
            for path in self._imported.get(each, ()):
                if path in has_word:
                    continue
                has_word[path] = encoded in self.read_whole(path)
                # What a package imports for those who import the package.
                if path.name == "__init__.py" and path.parent.name not in names:
                    names.append(path.parent.name)
        return "".join(f"{self.real(str(path))}\0" for path, has_it in has_word.items() if has_it)

    def _takes(self, path: str, word: str) -> str:
        """Whether a file may have a word from another one: it says it, not only in comments on lines of their own, and
        defines nothing of that name.
        """
        text, name = _COMMENTED.sub(b"", b"\n" + self.read_whole(Path(path))), re.escape(word.encode())
        named = re.compile(rb"\b" + name + rb"\b")
        if named.search(text) is None:
            return ""
        is_defined = re.search(rb"\n(?:(?:async[ \t]+)?def|class)[ \t]+" + name + rb"\b", text) is not None
        is_asked_by_text = re.search(rb"[.\"']\s*" + name + rb"\b", text) is not None
        is_imported = any(named.search(statement) for statement in _IMPORTS.findall(text))
        return "" if is_defined and not is_asked_by_text and not is_imported else "yes"

    def _installed(self, path: str) -> str:
        """Whether a file is one of a package, and its topmost one is installed from the folder that it is in."""
        folder = package = os.path.dirname(path)
        while "__init__.py" in self._names_in(folder):
            folder = os.path.dirname(folder)
        return "yes" if folder != package and self._is_installed_from(folder) else ""

    def _linked(self, path: str) -> str:
        """How many files hang together with one by what they import, itself included; counted up to five."""
        found, pending = {path}, [path]
        for current in pending:  # which grows
            if len(found) >= MAX_LINKED:
                break
            near = [other for other in dict.fromkeys(self._imports_of(current)) if other not in found]
            if not near:
                importing = (str(other) for other in self._imported.get(_import_name(Path(current)), ()))
                near = [other for other in importing if other not in found and current in self._imports_of(other)]
            found.update(near)
            pending += near
        return str(min(len(found), MAX_LINKED))

    def _imports_of(self, path: str) -> list[str]:
        """The files of the project that a file imports, by the look of it."""
        if path not in self._imports:
            self._imports[path] = self._find_imports(path)
        return self._imports[path]

    def _find_imports(self, path: str) -> list[str]:
        found: list[str] = []
        folder = os.path.dirname(path)
        for statement in _IMPORTS.findall(b"\n" + self.read_whole(Path(path))):
            source = _IMPORTED_FROM.match(statement)
            if source is None:
                modules, level = _MODULES.findall(statement), 0
            else:  # what is imported may be a module, too
                within = (
                    b".".join(filter(None, (source[2], name))) for name in _NAMES.findall(statement, source.end())
                )
                modules, level = [source[2], *within], len(source[1])
            # A file that is called like a framework is not meant by those who import that.
            own = (name.decode("ascii", "replace") for name in modules if name.partition(b".")[0] not in _FRAMEWORKS)
            found += filter(None, (self._found_module(name, level, folder) for name in own))
        return found

    @cached_property
    def _imported(self) -> dict[str, list[Path]]:
        """The files of the project that have a name in one of their imports, by that name."""
        found: dict[str, list[Path]] = {}
        for path in self.files or ():
            if path.suffix == ".py":
                imports = b"\n".join(_IMPORTS.findall(b"\n" + self.read_whole(path)))
                for word in set(_WORD.findall(imports.decode("ascii", "replace"))):
                    found.setdefault(word, []).append(path)
        return found

    @cached_property
    def files(self) -> tuple[Path, ...] | None:
        """The Python files and notebooks of the project, sorted; ``None`` when it is too large."""
        return self._files_with((".py", ".pyi", ".ipynb"))

    @cached_property
    def _texts(self) -> tuple[Path, ...] | None:
        """The other texts of the project."""
        return self._files_with(_TEXTS)

    def _files_with(self, endings: tuple[str, ...]) -> tuple[Path, ...] | None:
        found: list[Path] = []
        size = 0
        for count, (folder, folders, names) in enumerate(os.walk(self.root)):
            if count >= MAX_FOLDERS:
                return None
            folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
            for name in sorted(names):
                if name.endswith(endings):
                    path = Path(folder, name)
                    size += _size(path)
                    found.append(path)
            if len(found) > MAX_FILES or size > MAX_TREE_BYTES:
                return None
        return tuple(found)

    def _told(self, word: str) -> str:
        """Whether a text that is no program has a word; it may where there are too many. Large ones are data."""
        pattern = re.compile(rb"\b" + re.escape(word.encode()) + rb"\b")
        texts = map(_content_of, map(str, self._texts or ()))
        is_there = self._texts is None or any(text is not None and pattern.search(text) for text in texts)
        return "yes" if is_there else ""

    def read_whole(self, path: Path) -> bytes:
        """The bytes of a file of any size, for who has asked for ``near`` or ``tree`` before."""
        data = self._whole.get(path)
        if data is None:
            try:
                data = path.read_bytes()
            except OSError:
                data = b""
            if self._kept_bytes + len(data) <= MAX_KEPT_BYTES:
                self._whole[path] = data
                self._kept_bytes += len(data)
        return data

    def _tree(self) -> str:
        files = self.files
        return "large" if files is None else self._digest_of(files)

    def _digest_of(self, paths: Iterator[Path] | tuple[Path, ...]) -> str:
        found = blake2b(digest_size=16)
        for path in paths:
            content = content_digest(self.read_whole(path))
            found.update(f"{path}\0{content}\0".encode("utf-8", "surrogateescape"))
        return found.hexdigest()


def _import_name(path: Path) -> str:
    """The last name by which a file is imported: that of its folder for a package's own."""
    return path.parent.name if path.name == "__init__.py" else path.stem


def content_digest(data: bytes) -> str:
    """What stands for the content of a file."""
    return blake2b(data, digest_size=16).hexdigest()


def _content_of(path: str) -> bytes | None:
    try:
        if os.stat(path).st_size > MAX_BYTES:
            return None
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
