"""The files around a file: what an import from the same project is.

Nothing is imported or run: a sibling file is read, parsed and asked for its classes and functions like the file that
is being checked. How much is read is bounded, and what was read is kept for the next file.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import cached_property
from itertools import islice, takewhile
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

import msgspec

from mllint.semantic.expressions.derivation import Derivation
from mllint.semantic.files.disk import MAX_BYTES, MAX_LINKED, Disk
from mllint.semantic.files.mentions import Mentions
from mllint.semantic.files.project_root import project_root
from mllint.semantic.files.reads import Reads
from mllint.syntax.bare import NotBareError, bare_tree
from mllint.syntax.parse import ParseError, parse
from mllint.syntax.source import DecodingError, Source
from mllint.syntax.walk import Tree

if TYPE_CHECKING:
    from mllint.semantic.model import Model

MAX_REMEMBERED = 50_000
"""How many answers about the text of files are remembered."""
KEPT_NODES = 220_000
"""How many nodes the models that are kept for the next file may have: about 500 bytes of memory each."""
BARE_SHARE = 0.27
"""How many times as many they may have in files of which nothing else is kept: about 170 bytes of memory each."""
MAX_TIMES = 3
"""How many times as much one file may need at once: whoever drops what is asked again and again reads without end."""
SPARE = 0.95
"""How much of what may be kept is left once something has to go: so it is looked for once for several files."""


class _Kept(msgspec.Struct):
    """The model of a file, and how often other files have asked for it, also before it was read last."""

    path: Path
    model: "Model | None"
    asked: int


class Project:
    """A folder in which imports are looked up, and the models of the files that were read there last.

    ``limit`` is how many nodes the models may have that are kept from one file to the next; while a file is checked,
    they may be ``MAX_TIMES`` as many. A project that lies in another one shares the limit with it. Every question says
    on whose behalf it is asked, so that it is known (``reads``) what the findings in a file rest on.
    """

    def __init__(self, root: Path, limit: int = KEPT_NODES) -> None:
        self.root = root
        self.limit = limit
        self.derivation = Derivation()
        self.disk = Disk(root)
        self.reads = Reads(self.disk)
        self._kept = 0
        self._models: OrderedDict[Path, _Kept] = OrderedDict()
        self._asked: Counter[Path] = Counter()
        """How often other files have asked for each."""
        self._left: WeakSet[Model] = WeakSet()
        self._texts: dict[Path, int] = {}
        """What the files that were checked had in them, as a hash."""
        self._trees: OrderedDict[Path, tuple[Source, Tree]] = OrderedDict()
        self._kept_in_trees = 0
        self._written: dict[tuple[Path, bytes], bool] = {}
        self._said: dict[tuple[Path, str, Callable[[bytes, bytes], bool]], bool] = {}

    @classmethod
    def containing(cls, path: Path) -> "Project":
        """The project of a file."""
        return cls(project_root(path))

    def locate(self, module: str, level: int, importer: Path) -> Path | None:
        """The file that ``import module`` (after ``level`` dots) means in ``importer``, if it is in the project."""
        reader = self.disk.real(str(importer))
        question = ("module", module, str(level), str(reader.parent))
        self.reads.note(str(reader), question)
        return self.disk.module(question)

    def defines(self, module: str, importer: Path) -> bool:
        """Whether ``import module`` in ``importer`` means one of a package of the project, in no other one's folder.

        In another package's folder its own files may mean it, by the name of a file that it has: what is called as a
        library there may also be what the project has made around that library.
        """
        path = self.locate(module.partition(".")[0], 0, importer)
        if path is None or path.name != "__init__.py":
            return False
        if "." in module and path.parent in self.disk.real(str(importer)).parents and self.locate(module, 0, importer):
            return True
        around = ("module", "", "1", str(path.parent.parent))
        self.reads.note(str(self.disk.real(str(importer))), around)
        return self.disk.module(around) is None

    def mentions(self, reader: Path) -> Mentions:
        """Which names the files of the project mention."""
        self.reads.note(str(reader), ("tree",))
        return self._mentions

    @cached_property
    def _mentions(self) -> Mentions:
        return Mentions(self.disk)

    def importers(self, reader: Path, word: str) -> tuple[Path, ...]:
        """The other files that import a file, or a package that does, by the look of it, and have a word.

        The nearest come first, since files far apart may have one name. None in too large a project.
        """
        home = self.disk.real(str(reader))
        stem = home.parent.name if home.stem == "__init__" else home.stem
        question = ("importers", stem, word)
        self.reads.note_of_users(question)
        others = (path for path in self.disk.importers(question) if path != home)
        return tuple(sorted(others, key=lambda path: -_in_common(path, home)))

    def users(self, module: str, word: str) -> tuple[Path, ...]:
        """The files that have the name of a module in their imports, and a word; none in too large a project."""
        question = ("importers", module, word)
        self.reads.note_of_users(question)
        return self.disk.importers(question)

    def checkpoint_files(self, folder: Path, reader: Path) -> tuple[Path, ...]:
        """The Python files of a folder that save or load state dicts by the look of it, sorted."""
        self.reads.note(str(reader), ("scripts", str(folder)))
        return tuple(path for path in self.disk.scripts(folder) if self.has_checkpoints(path, reader))

    def has_checkpoints(self, path: Path, reader: Path) -> bool:
        """Whether a file saves or loads state dicts by the look of it."""
        return bool(self.reads.note(str(reader), ("saves", str(path))))

    def moves_modules(self, path: Path, reader: Path) -> bool:
        """Whether a file speaks of devices, or turns numbers into others: it may move modules."""
        return bool(self.reads.note(str(reader), ("moves", str(path))))

    def is_written_near(self, reader: Path, pattern: re.Pattern[bytes]) -> bool:
        """Whether the pattern matches in a Python file below the folder of a file, or right in a folder above it."""
        return self._is_written_below(reader.parent, reader, pattern)

    def is_written_anywhere(self, reader: Path, pattern: re.Pattern[bytes]) -> bool:
        """Whether the pattern matches in a Python file of the project."""
        return self._is_written_below(self.root, reader, pattern)

    def _is_written_below(self, folder: Path, reader: Path, pattern: re.Pattern[bytes]) -> bool:
        self.reads.note(str(reader), ("near", str(folder)))
        key = (folder, pattern.pattern)
        if key not in self._written:
            files = self.disk.files_near(folder)
            self._written[key] = any(pattern.search(self.disk.read(file) or b"") for file in files)
        return self._written[key]

    def takes(self, path: Path, name: str) -> bool:
        """Whether a file may mean by a name what another file defines. Not where it defines that itself."""
        return bool(self.reads.note_of_users(("takes", str(path), name)))

    def is_told(self, word: str) -> bool:
        """Whether a text of the project that is no program has a word: settings, a script of the shell, a manual."""
        return bool(self.reads.note_of_users(("told", word)))

    def is_of_program(self, path: Path) -> bool:
        """Whether a file hangs together with several others by what they import: one program, not a collection."""
        return int(self.reads.note_of_users(("linked", str(self.disk.real(str(path)))))) >= MAX_LINKED

    def is_installed(self, path: Path) -> bool:
        """Whether a file is one of a package that its project installs."""
        return bool(self.reads.note_of_users(("installed", str(self.disk.real(str(path))))))

    def may_export(self, path: Path, name: str) -> bool:
        """Whether ``from path import *`` may bind a name, by the look of the file's text. Never wrongly false."""
        return not name.isascii() or self._says(path, name, _may_export)

    def may_call(self, path: Path, name: str) -> bool:
        """Whether a file calls something of a name, by the look of its text. Never wrongly false."""
        return not name.isascii() or self._says(path, name, _has_call)

    def _says(self, path: Path, name: str, question: Callable[[bytes, bytes], bool]) -> bool:
        """What a question about a name finds in the text of a file: asked once."""
        key = (path, name, question)
        if key not in self._said:
            if len(self._said) >= MAX_REMEMBERED:
                self._said.clear()
            self._said[key] = question(self.disk.read(path) or b"", name.encode())
        return self._said[key]

    def model(self, path: Path) -> "Model | None":
        """The model of a sibling file; ``None`` when it cannot be read or parsed."""
        self._asked[path] += 1
        kept = self._models.get(path)
        if kept is not None:
            kept.asked += 1
            self._models.move_to_end(path)
            return kept.model
        model = self._read(path)
        self._keep(path, model, self.limit * MAX_TIMES)
        return model

    def recall(self, source: Source) -> "Model | None":
        """The model of a file that was read before, if its text is still the same."""
        kept = self._models.get(self.disk.real(source.path))
        model = None if kept is None else kept.model
        return model if model is not None and model.source.text == source.text else None

    def recall_tree(self, source: Source) -> Tree | None:
        """The nodes of a file that were kept when its model was not, if its text is still the same.

        They are not kept any longer: who asks makes a model of them.
        """
        found = self._trees.pop(self.disk.real(source.path), None)
        if found is None:
            return None
        kept, tree = found
        self._kept_in_trees -= len(tree.parents)
        return tree if kept.text == source.text else None

    def begin(self, path: str) -> None:
        """A file is about to be checked. What the one before was told of the users of its code is forgotten."""
        if self.reads.begin(str(self.disk.real(path))):
            for model in self._all_models():
                model.forget_analyses()

    def keep(self, model: "Model") -> None:
        """Remember the model of a file that is about to be checked, for the files that import it."""
        path = self.disk.real(model.source.path)
        text = hash(model.source.text)
        # Where a file has been mended, or changed in an editor, what others know of it is of the text that it had.
        is_changed = self._texts.setdefault(path, text) != text
        self._texts[path] = text
        for left in self._all_models() if is_changed else list(self._left):
            left.forget()
            left.let_go()
        try:
            data = model.source.encode(model.source.text)
        except UnicodeError:  # an encoding that cannot write what it reads: nothing is known of this file's bytes
            data = b""
        self.disk.note_read(path, data)
        # Too large to be read as a sibling is too large, whichever of them comes first.
        self._keep(path, model if len(data) <= MAX_BYTES else None, self.limit)

    def inner(self, root: Path) -> "Project":
        """A project that lies in this one, and whose files come next: half of what may be kept is for these."""
        self._shrink(self.limit // 2)
        return Project(root, self.limit - self._kept)

    def drop_models(self) -> None:
        """Drop the models of all files. They hold themselves, and would stay until the collector comes."""
        for model in self._all_models():
            model.forget()
            model.let_go()
        self._models.clear()
        self._trees.clear()
        self._kept = self._kept_in_trees = 0

    def _all_models(self) -> "list[Model]":
        kept = (item.model for item in self._models.values())
        return [model for model in (*kept, *self._left) if model is not None]

    def _keep(self, path: Path, model: "Model | None", limit: int) -> None:
        before = self._models.pop(path, None)
        self._kept -= 0 if before is None else _size(before.model)
        self._models[path] = _Kept(path, model, self._asked[path])
        self._kept += _size(model)
        self._shrink(limit)

    def _shrink(self, limit: int) -> None:
        """Keep the models of no more than so many nodes, but for the last one."""
        if self._kept <= limit:
            return
        # Whom others have asked for they will ask for again: of those asked as seldom, the oldest goes.
        others = sorted(islice(self._models.values(), len(self._models) - 1), key=attrgetter("asked"))
        for item in others:
            if self._kept <= limit * SPARE:
                break
            left = self._models.pop(item.path).model
            self._kept -= _size(left)
            if left is not None:
                left.forget()
                self._left.add(left)
                self._keep_tree(left)

    def _keep_tree(self, model: "Model") -> None:
        """Remember the nodes of a file of which nothing else is kept: they take a third of the memory."""
        if model.has_full_tree:
            return
        self.recall_tree(model.source)
        self._trees[self.disk.real(model.source.path)] = model.source, model.tree
        self._kept_in_trees += _size(model)
        while self._kept_in_trees > self.limit * BARE_SHARE:
            _, (_, tree) = self._trees.popitem(last=False)
            self._kept_in_trees -= len(tree.parents)

    def _read(self, path: Path) -> "Model | None":
        data = self.disk.read(path)
        if data is None:
            return None
        try:
            source = Source.from_bytes(data, str(path))
            return self._model_over(self.recall_tree(source) or bare_tree(source.text), source)
        except DecodingError:
            return None
        except NotBareError:
            pass
        try:
            return self._model_over(Tree(parse(source)), source)
        except ParseError:
            return None

    def _model_over(self, tree: Tree, source: Source) -> "Model":
        from mllint.semantic.model import Model  # the model knows its project and the project makes models

        return Model(tree, source, self)


_STAR_IMPORT = re.compile(rb"import\s*\*")
_CALLED = re.compile(rb"(?:[\s\\)]|#[^\r\n]*+)*+\(")
"""What stands behind the name of what is called, also in parentheses of its own, or over several rows."""


def _may_export(text: bytes, name: bytes) -> bool:
    """Whether a name stands in some text, or may come into it from other files."""
    return name in text or _STAR_IMPORT.search(text) is not None


def _has_call(text: bytes, name: bytes) -> bool:
    """Whether a word that ends in a name is called in some text."""
    place = text.find(name)
    while place >= 0:
        if _CALLED.match(text, place + len(name)):
            return True
        place = text.find(name, place + 1)
    return False


def _in_common(one: Path, other: Path) -> int:
    """How many folders the ways to two files have in common."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one.parts, other.parts, strict=False))))


def _size(model: "Model | None") -> int:
    return 0 if model is None else len(model.tree.parents)
