"""What mllint says about a file: frozen values, nothing else.

Rows are 1-based. Columns are 1-based and count code points, as ruff's JSON does; a front that needs another
convention (flake8: 0-based, LSP: UTF-16) converts at its edge. Offsets count code points of the decoded text without
its byte-order mark; of a notebook, of its cells put together.
"""

import enum

import msgspec

OWN_CODES = ("ML000", "ML001", "ML003")
"""What mllint reports about its own work: always errors, and not to be switched off."""


class Applicability(enum.StrEnum):
    """How far a fix can be trusted; ordered from the least to the most trusted."""

    DISPLAY = "display"
    """Shown, never applied."""
    UNSAFE = "unsafe"
    """Right in most code; may change behaviour. Applied with ``--unsafe-fixes``."""
    SAFE = "safe"
    """Same meaning, or obviously what was meant, and no comment is lost. Applied with ``--fix``."""

    def allows(self, unsafe: bool) -> bool:
        """Whether a fix of this trust is applied when unsafe fixes are (not) asked for."""
        return self is Applicability.SAFE or (unsafe and self is Applicability.UNSAFE)


class Severity(enum.StrEnum):
    """How bad a finding is; ordered from the least to the worst."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """A number that is greater the worse it is."""
        return list(Severity).index(self)


class Location(msgspec.Struct, frozen=True, order=True):
    """A place in the source: 1-based row, 1-based column in code points.

    In a notebook ``cell`` is the number of the cell, counted from 1 over all cells, and the row is one of that cell.
    """

    row: int
    column: int
    cell: int | None = None


class Edit(msgspec.Struct, frozen=True):
    """Replace ``text[start:end]`` by ``content``; ``location`` and ``end_location`` are the same span as places."""

    start: int
    end: int
    content: str
    location: Location
    end_location: Location


class Fix(msgspec.Struct, frozen=True):
    """Edits that mend one finding together, and how far they can be trusted."""

    message: str
    applicability: Applicability
    edits: tuple[Edit, ...]


class Diagnostic(msgspec.Struct, frozen=True):
    """One finding of one rule at one place.

    ``noqa_row`` is the row on which a suppression comment is read. ``path`` is the path as it was given to the front.
    ``severity`` is the rule's own, or what the settings make of it.
    """

    code: str
    name: str
    message: str
    help: str
    path: str
    location: Location
    end_location: Location
    noqa_row: int
    fix: Fix | None = None
    severity: Severity = Severity.WARNING

    @property
    def is_own(self) -> bool:
        """Whether it is about mllint's work on the file (it could not be checked), and no rule's finding."""
        return self.code in OWN_CODES

    @property
    def sort_key(self) -> tuple[str, int, int, int, str, str]:
        """Order of all output: path, cell, row, column, code, message."""
        place = self.location
        return (self.path, place.cell or 0, place.row, place.column, self.code, self.message)


class Status(enum.StrEnum):
    """How the analysis of one file went."""

    OK = "ok"
    """Analysed in full."""
    SKIPPED = "skipped"
    """Not parsed: no selected rule can fire on it (the gate), or the file says ``# flake8: noqa``."""
    SYNTAX_ERROR = "syntax-error"
    """Not decodable or not parsable: one ML001 says so, or one for each cell of a notebook that is not; of a file for a
    former Python, and of the other cells, the findings are there, too."""
    UNREADABLE = "unreadable"
    """Not even read from the disk: one ML003 says why."""
    INTERNAL_ERROR = "internal-error"
    """A rule (or mllint) failed: one ML000 per failure, the other rules went on."""


class Result(msgspec.Struct, frozen=True):
    """All that is known about one file after a run; picklable."""

    path: str
    status: Status
    diagnostics: tuple[Diagnostic, ...] = ()
    """Findings that are reported, sorted."""
    suppressed: tuple[Diagnostic, ...] = ()
    """Findings that a comment in the file silences, sorted."""
    dependencies: tuple[str, ...] = ()
    """Sibling files whose content the findings depend on, sorted; told by the library functions only."""
