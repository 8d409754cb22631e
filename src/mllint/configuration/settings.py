"""What a project wants of mllint, as frozen values."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from mllint.configuration.patterns import Patterns
from mllint.diagnostics import Severity

DEFAULT_SELECT = ("ML",)

DEFAULT_EXCLUDE = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".git-rewrite",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pants.d",
    ".pyenv",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pypackages__",
    "_build",
    "buck-out",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)
"""Names of files and folders that are not looked into unless they are named on the command line."""

_VERSION = re.compile(r"(\d+)(?:\.(\d+)(?:[.+a-z]\w*)*)?")


class ConfigurationError(Exception):
    """A setting that cannot be used; ``where`` is the file or option that it stands in."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}")
        self.where = where


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides the findings in one file. Hashable and picklable.

    ``select``, ``ignore``, ``extend_select`` and the settings of fixes hold codes, prefixes of
    codes, rule names or ``ALL``. ``per_file_ignores`` are pairs of a pattern (as in
    ``.gitignore``; ``!`` in front turns it round) and selectors; patterns are relative to
    ``pattern_root``. Fixes of rules that ``unfixable`` names more exactly than ``fixable`` are
    shown only; ``extend_safe_fixes`` and ``extend_unsafe_fixes`` change how far a rule's fixes are
    trusted. ``severities`` are pairs of a selector and a severity, of which the most exact counts;
    findings below ``min_severity`` are left out. ``torch_version`` and ``paddle_version``
    (``"2.6"``) are the oldest framework the code must run with, and the code stays below ``torch_below``.
    ``project_root`` is the folder in which imported sibling files are looked up; without it only
    the file itself is read.

    Raises:
        ValueError: a version is not a number like ``2.6``, or a pattern is none.
    """

    select: tuple[str, ...] = DEFAULT_SELECT
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    pattern_root: str = ""
    fixable: tuple[str, ...] = ("ALL",)
    unfixable: tuple[str, ...] = ()
    extend_safe_fixes: tuple[str, ...] = ()
    extend_unsafe_fixes: tuple[str, ...] = ()
    severities: tuple[tuple[str, Severity], ...] = ()
    min_severity: Severity = Severity.INFO
    torch_version: str | None = None
    torch_below: str | None = None
    paddle_version: str | None = None
    project_root: str | None = None

    def __post_init__(self) -> None:
        for version in (self.torch_version, self.torch_below, self.paddle_version):
            if version is not None:
                parse_version(version)
        for pattern, _ in self.per_file_ignores:
            Patterns((pattern.removeprefix("!"),))


class FileSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What decides which files are looked at."""

    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    extend_include: tuple[str, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of one folder and the file they come from; patterns are relative to ``root``."""

    root: str
    source: str | None = None
    settings: Settings = Settings()
    files: FileSettings = FileSettings()


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line lays over every configuration; empty values leave it as it is.

    ``tables`` are further ``[tool.mllint]`` tables (``--config "KEY = VALUE"``), each laid over
    the ones before.
    """

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    extend_ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    extend_per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    fixable: tuple[str, ...] | None = None
    extend_fixable: tuple[str, ...] = ()
    unfixable: tuple[str, ...] | None = None
    severities: tuple[tuple[str, Severity], ...] = ()
    min_severity: Severity | None = None
    torch_version: str | None = None
    paddle_version: str | None = None
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    extend_include: tuple[str, ...] = ()
    force_exclude: bool | None = None
    respect_gitignore: bool | None = None
    tables: tuple[Mapping[str, Any], ...] = ()

    @property
    def has_patterns(self) -> bool:
        """Whether any of it is patterns of paths: they are relative to the working folder."""
        return bool(
            self.exclude
            or self.extend_exclude
            or self.extend_include
            or self.per_file_ignores
            or self.extend_per_file_ignores
        )


def parse_version(text: str) -> tuple[int, int]:
    """``"2.6"`` or ``"2.6.1"`` as ``(2, 6)``.

    Raises:
        ValueError: the text is no such version.
    """
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is not a version such as `2.6`")
    return int(match[1]), int(match[2] or 0)
