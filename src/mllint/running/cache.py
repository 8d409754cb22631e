"""What was found before, so that nothing is checked twice.

One database in the user's cache folder holds the result of each file with everything that it rests on: the file's own
content, the settings, mllint itself with its parser and Python, and each question about other files that was asked
while it was checked, with the answer (``semantic.files.disk``). A result is used only if all of that is still so;
contents are compared by their digests, never by times.

The cache can be deleted at any time. One that is damaged, locked, full, read-only or of another version is made anew or
left alone; nobody is told, and nothing but speed is lost. Several mllint may use it at once: the command writes it in
the process that was started, never in those that it starts; as a flake8 plugin every process of flake8 writes what it
found.
"""

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mllint.configuration.settings import Settings
from mllint.diagnostics import Diagnostic, Result, Status
from mllint.semantic.files.disk import Disk
from mllint.semantic.files.reads import Facts

NAME = "findings.sqlite"
_FORMAT = 1
"""To be raised when the tables, or what is written into them, change."""
KEPT_DAYS = 30
MOST_BYTES = 1_000_000_000
"""A database that is larger is made anew."""
_PATIENCE = 0.5
"""Seconds to wait for another process that writes."""
_PAUSE = 0.01
"""Seconds between two tries of what waits for nobody by itself."""
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder holds what mllint found before. It may be deleted.\n"

_TABLES = """
CREATE TABLE facts (id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB UNIQUE NOT NULL, facts BLOB NOT NULL);
CREATE TABLE results (
    key BLOB PRIMARY KEY, content TEXT NOT NULL, facts BLOB NOT NULL, result BLOB NOT NULL,
    day INTEGER NOT NULL, digest BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE pruned (day INTEGER NOT NULL);
INSERT INTO pruned VALUES (0);
"""


class Entry(NamedTuple):
    """A result to be kept: under which key, for which content of the file."""

    key: bytes
    content: str
    numbers: tuple[int, ...]
    result: Result


def default_folder() -> str:
    """Where the platform keeps what a user's programs can make again."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
        return os.path.join(base, "mllint", "Cache")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches", "mllint")
    base = os.environ.get("XDG_CACHE_HOME", "")
    # What is not absolute is to be ignored, says the specification.
    return os.path.join(base if os.path.isabs(base) else os.path.join(home, ".cache"), "mllint")


def clean(folder: str) -> bool:
    """Delete the cache in a folder, and the folder if nothing else is in it; whether there was one.

    Raises:
        OSError: it cannot be deleted.
    """
    found = False
    for name in (NAME, f"{NAME}-wal", f"{NAME}-shm", f"{NAME}-journal"):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(os.path.join(folder, name))
            found = True
    if found:
        for name in (".gitignore", "CACHEDIR.TAG"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return found


class Cache:
    """The results of earlier runs. None of its methods raises."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, NAME)
        self._open: sqlite3.Connection | None = None
        self._is_usable = True
        self._disks: dict[str, Disk] = {}
        self._holds: dict[int, bool] = {}
        self._has_written = False

    def close(self) -> None:
        """Put everything in order, and let go of the database."""
        if self._has_written:
            with self._giving_up():
                self._prune()
        self.pause()

    def pause(self) -> None:
        """Let go of the database until it is needed again: no other process may inherit it."""
        connection, self._open = self._open, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def disk(self, root: str) -> Disk:
        """What the files of a project are now; each is looked at once."""
        found = self._disks.get(root)
        if found is None:
            found = self._disks[root] = Disk(Path(root))
        return found

    def find(self, key: bytes, content: str, root: str) -> Result | None:
        """The result of a file with this content, if everything else that it rests on is still so too."""
        row = self._one("SELECT content, facts, result, day, digest FROM results WHERE key = ?", key)
        if row is None or row[0] != content or row[4] != _digest(key, *row[:4]):
            return None
        try:
            numbers = _NUMBERS.decode(row[1])
            return _RESULT.decode(row[2]) if all(self._hold(number, root) for number in numbers) else None
        except msgspec.MsgspecError:
            return None

    def _hold(self, number: int, root: str) -> bool:
        """Whether the disk still says what the facts of this number say."""
        found = self._holds.get(number)
        if found is None:
            row = self._one("SELECT digest, facts FROM facts WHERE id = ?", number)
            found = False
            if row is not None and row[0] == _facts_digest(root, row[1]):
                disk = self.disk(root)
                found = all(disk.answer(tuple(question)) == answer for question, answer in _FACTS.decode(row[1]))
            self._holds[number] = found
        return found

    def add(self, root: str, facts: Sequence[Facts], entries: Iterable[Entry]) -> None:
        """Keep results of files of one project."""
        day = int(time.time() // 86_400)
        with self._giving_up(), self._transaction() as connection:
            numbers = [self._number(connection, root, each) for each in facts]
            for key, content, own, result in entries:
                rests_on, packed = [numbers[number] for number in own], _packed(result)
                is_failure = result.status is Status.INTERNAL_ERROR or result.status is Status.UNREADABLE
                if is_failure or packed is None or None in rests_on:
                    continue
                values = (content, msgspec.msgpack.encode(sorted(filter(None, rests_on))), packed, day)
                row = (key, *values, _digest(key, *values))
                connection.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)", row)
            self._has_written = True

    def _number(self, connection: sqlite3.Connection, root: str, facts: Facts) -> int | None:
        encoded = _packed(facts)
        if encoded is None:
            return None
        digest = _facts_digest(root, encoded)
        connection.execute("INSERT OR IGNORE INTO facts (digest, facts) VALUES (?, ?)", (digest, encoded))
        number: int = connection.execute("SELECT id FROM facts WHERE digest = ?", (digest,)).fetchone()[0]
        return number

    def _one(self, query: str, value: bytes | int) -> Any:
        """The row that a query finds, if any."""
        with self._giving_up():
            return self._connection().execute(query, (value,)).fetchone()
        return None

    def _connection(self) -> sqlite3.Connection:
        if not self._is_usable:
            raise sqlite3.OperationalError("given up")
        if self._open is None:
            self._open = _opened(self._path)
        return self._open

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    @contextlib.contextmanager
    def _giving_up(self) -> Iterator[None]:
        """Go on without the cache when it cannot be used; make an end of one that is damaged."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            self._is_usable = False
            self.pause()
            if _is_damage(error):
                with contextlib.suppress(OSError):
                    clean(os.path.dirname(self._path))

    def _prune(self) -> None:
        """Once a day drop what nobody has needed anew for long."""
        today = int(time.time() // 86_400)
        pruned = self._one("SELECT day FROM pruned LIMIT ?", 1)
        if pruned is None or pruned[0] == today:
            return
        with self._transaction() as connection:
            connection.execute("UPDATE pruned SET day = ?", (today,))
            connection.execute("DELETE FROM results WHERE day < ? OR day > ?", (today - KEPT_DAYS, today + 1))
            used: set[int] = set()
            for (numbers,) in connection.execute("SELECT facts FROM results"):
                used.update(_NUMBERS.decode(numbers))
            every = {number for (number,) in connection.execute("SELECT id FROM facts")}
            connection.executemany("DELETE FROM facts WHERE id = ?", [(number,) for number in every - used])


def _packed(value: object) -> bytes | None:
    """A value as it is kept; ``None`` where it holds the name of a file that is no text, which no form has room for."""
    try:
        return msgspec.msgpack.encode(value)
    except UnicodeEncodeError:
        return None


def key_of(path: str, real: str, root: str, settings: bytes) -> bytes:
    """Under which key the result of a file is kept; ``settings`` is what ``settings_digest`` makes of them."""
    return _digest(version_digest(), settings, os.path.abspath(path), real, root)


def settings_digest(settings: Settings, *, noqa: bool) -> bytes:
    """What stands for settings, and for whether ``noqa`` comments are read."""
    return _digest(msgspec.json.encode(settings), noqa)


def renamed(result: Result, path: str) -> Result:
    """The result for a file that is called by another name for itself now: seen from another folder."""
    if result.path == path:
        return result

    def renamed_each(diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        return tuple(msgspec.structs.replace(item, path=path) for item in diagnostics)

    return msgspec.structs.replace(
        result,
        path=path,
        diagnostics=renamed_each(result.diagnostics),
        suppressed=renamed_each(result.suppressed),
    )


@cache
def version_digest() -> bytes:
    """What stands for everything that judges a file: mllint's own source, LibCST and Python."""
    found = blake2b(sys.version.encode(), digest_size=16)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "_dev"))
        for name in sorted(names):
            if name.endswith((".py", ".json", ".txt")):
                found.update(f"\0{name}\0".encode())
                found.update(Path(folder, name).read_bytes())
    found.update(_libcst_version())
    return found.digest()


def _libcst_version() -> bytes:
    """The version of LibCST, without importing it if that can be helped."""
    from importlib.util import find_spec

    spec = find_spec("libcst")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        with contextlib.suppress(OSError):
            return Path(folder, "_version.py").read_bytes()
    from importlib.metadata import version

    return version("libcst").encode()


def _make_folder(folder: str) -> None:
    if os.path.isdir(folder):
        return
    os.makedirs(folder, exist_ok=True)
    for name, content in (("CACHEDIR.TAG", _TAG), (".gitignore", "*\n")):
        Path(folder, name).write_text(content, encoding="ascii")


def _opened(path: str) -> sqlite3.Connection:
    """The database; made anew where there is none, or one of another format, or one that is none."""
    folder = os.path.dirname(path)
    _make_folder(folder)
    with contextlib.suppress(FileNotFoundError):
        if os.path.getsize(path) > MOST_BYTES:
            clean(folder)
            _make_folder(folder)
    try:
        return _connected(path)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if not _is_damage(error):
            raise
    clean(folder)
    _make_folder(folder)
    return _connected(path)


def _is_damage(error: Exception) -> bool:
    """Whether the database itself is to blame, and not that somebody else has it, or the disk is full."""
    if isinstance(error, sqlite3.OperationalError):
        return str(error).startswith("no such ")
    # What sqlite says of a damaged database may quote it, and then is no text.
    return isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError)


def _connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        if connection.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
            _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let others read while one writes. Who finds that another process is just changing to that is told so at once."""
    last = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > last:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have done it meanwhile.
    if connection.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        for (name,) in names.fetchall():
            connection.execute('DROP TABLE "{}"'.format(name.replace('"', '""')))
        for statement in _TABLES.strip().rstrip(";").split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
    connection.execute("COMMIT")


def _digest(*parts: object) -> bytes:
    found = blake2b(digest_size=16)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogateescape")
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.digest()


def _facts_digest(root: str, facts: object) -> bytes:
    return _digest(root, facts)


_RESULT = msgspec.msgpack.Decoder(Result)
_NUMBERS = msgspec.msgpack.Decoder(list[int])
_FACTS = msgspec.msgpack.Decoder(list[tuple[list[str], str]])
