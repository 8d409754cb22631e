"""Which configuration holds for a file: from the files on disk and the command line to settings.

The nearest ``pyproject.toml`` that has a ``[tool.mllint]`` table (or ``mllint.toml``, ``.mllint.toml``, which win
beside it) decides for a file; nothing is merged with files further up unless it says ``extend``. The command line is
laid over it.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from mllint.configuration.settings import (
    DEFAULT_EXCLUDE,
    DEFAULT_SELECT,
    Configuration,
    ConfigurationError,
    FileSettings,
    Overrides,
    Settings,
)
from mllint.configuration.table import Table, checked

CONFIGURATION_FILES = (".mllint.toml", "mllint.toml", "pyproject.toml")
"""Names of configuration files; the first of them that a folder has decides."""


class Resolver:
    """The configuration of each folder: the nearest file above it, or one file for all."""

    def __init__(self, overrides: Overrides | None = None, *, isolated: bool = False, file: str | None = None) -> None:
        """``isolated``: read no configuration. ``file``: the one that holds for all, its patterns
        relative to the working folder.

        Raises:
            ConfigurationError: ``file`` or an override cannot be used.
        """
        self._overrides = overrides or Overrides()
        self._known: dict[str, Configuration | ConfigurationError] = {}
        working_folder = os.getcwd()
        self._default = configuration({}, None, working_folder, self._overrides)
        self._fixed: Configuration | None = None
        if file is not None:
            table = read_table(file)
            if table is None:
                raise ConfigurationError(file, "has no `[tool.mllint]` table")
            self._fixed = configuration(table, file, working_folder, self._overrides)
        elif isolated:
            self._fixed = self._default

    def for_folder(self, folder: str) -> Configuration:
        """The configuration of the files in a folder.

        Raises:
            ConfigurationError: the nearest configuration file cannot be used.
        """
        if self._fixed is not None:
            return self._fixed
        return self._nearest(os.path.abspath(folder))

    def _nearest(self, folder: str) -> Configuration:
        passed: list[str] = []
        found: Configuration | ConfigurationError | None = None
        while found is None:
            found = self._known.get(folder) or self._own(folder)
            passed.append(folder)
            parent = os.path.dirname(folder)
            if found is None and parent == folder:
                found = self._default
            folder = parent
        self._known.update(dict.fromkeys(passed, found))
        if isinstance(found, ConfigurationError):
            raise found
        return found

    def _own(self, folder: str) -> Configuration | ConfigurationError | None:
        """What a configuration file in this very folder says; ``None`` without one."""
        for name in CONFIGURATION_FILES:
            path = os.path.join(folder, name)
            try:
                table = read_table(path) if os.path.isfile(path) else None
                if table is not None:
                    return configuration(table, path, folder, self._overrides)
            except ConfigurationError as error:
                return error
        return None


def read_table(path: str) -> Mapping[str, Any] | None:
    """The mllint table of a configuration file; ``None`` where a ``pyproject.toml`` has none.

    Raises:
        ConfigurationError: the file cannot be read, or is not TOML.
    """
    import tomllib

    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise ConfigurationError(path, f"cannot be read: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(path, f"is not valid TOML: {error}") from None
    if not _is_pyproject(path):
        return content
    tool = content.get("tool")
    table = tool.get("mllint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigurationError(path, "`tool.mllint` must be a table")
    return table


def configuration(
    table: Mapping[str, Any], source: str | None, root: str, overrides: Overrides | None = None
) -> Configuration:
    """The values of a ``[tool.mllint]`` table and of what it extends, under the overrides.

    Raises:
        ConfigurationError: an unknown key, a value of the wrong kind, or an extended file that cannot be used.
    """
    overrides = overrides or Overrides()
    merged = _checked_file(table, source)
    if merged.get("extend") is not None and source is not None:
        merged, root = _inherited(merged, source, root, ())
    for inline in overrides.tables:
        if "extend" in inline:
            raise ConfigurationError("--config", "`extend` can stand in a file only")
        merged = _laid_over(merged, checked(inline, "--config", ""))
    if overrides.has_patterns:
        # What the command line names is relative to the working folder, wherever the configuration stands.
        common = os.path.commonpath((os.path.abspath(root), os.getcwd()))
        merged, overrides = _rebased(merged, root, common), _rebased_overrides(overrides, os.getcwd(), common)
        root = common
    return _under(_values(merged, root), source, overrides)


def _values(merged: Mapping[str, Any], root: str) -> tuple[Settings, FileSettings]:
    values = msgspec.convert(merged, Table)
    lint = values.lint
    settings = Settings(
        select=DEFAULT_SELECT if lint.select is None else lint.select,
        ignore=(*lint.ignore, *lint.extend_ignore),
        extend_select=lint.extend_select,
        per_file_ignores=(*lint.per_file_ignores.items(), *lint.extend_per_file_ignores.items()),
        pattern_root=root,
        fixable=(*(("ALL",) if lint.fixable is None else lint.fixable), *lint.extend_fixable),
        unfixable=lint.unfixable,
        extend_safe_fixes=lint.extend_safe_fixes,
        extend_unsafe_fixes=lint.extend_unsafe_fixes,
        severities=tuple(lint.severity.items()),
        min_severity=lint.min_severity,
        torch_version=values.target_version.torch,
        paddle_version=values.target_version.paddle,
    )
    files = FileSettings(
        exclude=DEFAULT_EXCLUDE if values.exclude is None else values.exclude,
        extend_exclude=values.extend_exclude,
        extend_include=values.extend_include,
        force_exclude=values.force_exclude,
        respect_gitignore=values.respect_gitignore,
    )
    return settings, files


# --- Inheriting -----------------------------------------------------------------------------------


def _checked_file(table: Mapping[str, Any], source: str | None) -> dict[str, Any]:
    prefix = "tool.mllint" if source is not None and _is_pyproject(source) else ""
    return checked(table, source or "settings", prefix)


def _inherited(table: dict[str, Any], source: str, root: str, passed: tuple[str, ...]) -> tuple[dict[str, Any], str]:
    """The table laid over what it extends, and the folder that all its patterns are now relative to."""
    extended = table.get("extend")
    if extended is None:
        return table, root
    passed = (*passed, os.path.realpath(source))
    path = os.path.normpath(os.path.join(os.path.dirname(source), os.path.expanduser(extended)))
    if os.path.realpath(path) in passed:
        raise ConfigurationError(source, f"`extend`: `{extended}` extends this file in turn")
    if not os.path.isfile(path):
        raise ConfigurationError(source, f"`extend`: there is no file `{extended}`")
    below = read_table(path)
    if below is None:
        raise ConfigurationError(source, f"`extend`: `{extended}` has no `[tool.mllint]` table")
    base, base_root = _inherited(_checked_file(below, path), path, os.path.dirname(os.path.abspath(path)), passed)
    common = os.path.commonpath((os.path.abspath(root), base_root))
    merged = _laid_over(_rebased(base, base_root, common), _rebased(table, root, common), extends=True)
    return merged, common


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any], *, extends: bool = False) -> dict[str, Any]:
    """``above`` over ``below``: its keys win; where it extends, the lists of ``extend-...`` add up."""
    merged = dict(below)
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _laid_over(merged[key], value, extends=extends)
        elif extends and key.startswith("extend-"):
            merged[key] = [*merged.get(key, ()), *value] if isinstance(value, list) else value
        else:
            merged[key] = value
    return merged


def _rebased(table: Mapping[str, Any], root: str, common: str) -> dict[str, Any]:
    """The table with its patterns relative to a folder above the one that they were relative to."""
    moved = _Move(root, common)
    rebased = {**table, "lint": dict(table.get("lint", {}))}
    for key in ("exclude", "extend-exclude", "extend-include"):
        if rebased.get(key) is not None:
            rebased[key] = [moved(pattern) for pattern in rebased[key]]
    for key in ("per-file-ignores", "extend-per-file-ignores"):
        if key in rebased["lint"]:
            rebased["lint"][key] = {moved(pattern): codes for pattern, codes in rebased["lint"][key].items()}
    return rebased


def _rebased_overrides(overrides: Overrides, root: str, common: str) -> Overrides:
    """The same for what the command line says."""
    moved = _Move(root, common)
    exclude, ignores = overrides.exclude, overrides.per_file_ignores
    return msgspec.structs.replace(
        overrides,
        exclude=None if exclude is None else tuple(map(moved, exclude)),
        extend_exclude=tuple(map(moved, overrides.extend_exclude)),
        extend_include=tuple(map(moved, overrides.extend_include)),
        per_file_ignores=None if ignores is None else tuple((moved(pattern), codes) for pattern, codes in ignores),
        extend_per_file_ignores=tuple((moved(pattern), codes) for pattern, codes in overrides.extend_per_file_ignores),
    )


class _Move:
    """From patterns relative to a folder, or absolute paths, to the same relative to a folder above."""

    def __init__(self, root: str, common: str) -> None:
        self._common = os.path.abspath(common).replace(os.sep, "/").rstrip("/") + "/"
        relative = os.path.relpath(root, common).replace(os.sep, "/")
        self._folder = "" if relative == "." else re.sub(r"([\\*?\[\]])", r"\\\1", relative)

    def __call__(self, pattern: str) -> str:
        sign = "!" * pattern.startswith("!")
        plain = pattern.removeprefix("!")
        if plain.startswith("./"):
            plain = plain[1:]
        if plain.startswith(self._common) and self._common != "/":
            return f"{sign}/{plain.removeprefix(self._common)}"  # an absolute path
        # Without a `/` but at its end, a pattern matches at any depth: there is nothing to move.
        if not self._folder or "/" not in plain.rstrip("/"):
            return sign + plain
        return f"{sign}/{self._folder}/{plain.lstrip('/')}"


# --- The command line -----------------------------------------------------------------------------


def _under(values: tuple[Settings, FileSettings], source: str | None, overrides: Overrides) -> Configuration:
    """A file's values under the command line: ``select`` starts afresh, the others beat its ``ignore``."""
    settings, files = values
    root = settings.pattern_root
    select, ignore, extend_select = settings.select, settings.ignore, settings.extend_select
    if overrides.select is not None:
        select, ignore, extend_select = overrides.select, (), ()
    ignore = tuple(selector for selector in ignore if selector not in overrides.extend_select)
    ignores = settings.per_file_ignores if overrides.per_file_ignores is None else overrides.per_file_ignores
    settings = msgspec.structs.replace(
        settings,
        select=select,
        ignore=(*(ignore if overrides.ignore is None else overrides.ignore), *overrides.extend_ignore),
        extend_select=(*extend_select, *overrides.extend_select),
        per_file_ignores=(*ignores, *overrides.extend_per_file_ignores),
        fixable=(*_first(overrides.fixable, settings.fixable), *overrides.extend_fixable),
        unfixable=_first(overrides.unfixable, settings.unfixable),
        severities=(*settings.severities, *overrides.severities),
        min_severity=overrides.min_severity or settings.min_severity,
        torch_version=overrides.torch_version or settings.torch_version,
        paddle_version=overrides.paddle_version or settings.paddle_version,
    )
    files = FileSettings(
        exclude=_first(overrides.exclude, files.exclude),
        extend_exclude=(*files.extend_exclude, *overrides.extend_exclude),
        extend_include=(*files.extend_include, *overrides.extend_include),
        force_exclude=files.force_exclude if overrides.force_exclude is None else overrides.force_exclude,
        respect_gitignore=files.respect_gitignore
        if overrides.respect_gitignore is None
        else overrides.respect_gitignore,
    )
    return Configuration(root=root, source=source, settings=settings, files=files)


def _first(given: tuple[str, ...] | None, otherwise: tuple[str, ...]) -> tuple[str, ...]:
    return otherwise if given is None else given


def _is_pyproject(path: str) -> bool:
    return os.path.basename(path) == "pyproject.toml"
