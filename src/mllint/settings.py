"""What a project wants of mllint: from ``[tool.mllint]`` and the command line to frozen values.

The nearest ``pyproject.toml`` that has a ``[tool.mllint]`` table (or ``mllint.toml``,
``.mllint.toml``, which win beside it) decides for a file; nothing is merged with files further up.
The command line is laid over it.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from mllint.patterns import Patterns

CONFIGURATION_FILES = (".mllint.toml", "mllint.toml", "pyproject.toml")
"""Names of configuration files; the first of them that a folder has decides."""

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

_BLOCK = re.compile(r"ML\d?|ALL")
_VERSION = re.compile(r"(\d+)(?:\.(\d+)(?:[.+a-z]\w*)*)?")
_FOREIGN_KEYS = {"code-quality", "git", "rules"}
"""Keys of an older, unrelated tool that keeps its settings in the same table."""


class ConfigurationError(Exception):
    """A setting that cannot be used; ``where`` is the file or option that it stands in."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}")
        self.where = where


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides the findings in one file. Hashable and picklable.

    ``select``, ``ignore`` and ``extend_select`` hold codes, prefixes of codes, rule names or
    ``ALL``. ``per_file_ignores`` are pairs of a pattern (as in ``.gitignore``; ``!`` in front
    turns it round) and selectors; patterns are relative to ``pattern_root``. ``torch_version`` and
    ``paddle_version`` (``"2.6"``) are the oldest framework the code must run with.
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
    torch_version: str | None = None
    paddle_version: str | None = None
    project_root: str | None = None

    def __post_init__(self) -> None:
        for version in (self.torch_version, self.paddle_version):
            if version is not None:
                parse_version(version)
        for pattern, _ in self.per_file_ignores:
            Patterns((pattern.removeprefix("!"),))


class FileSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What decides which files are looked at."""

    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
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
    torch_version: str | None = None
    paddle_version: str | None = None
    force_exclude: bool | None = None
    tables: tuple[Mapping[str, Any], ...] = ()


class _LintTable(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """``[tool.mllint.lint]``."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = {}


class _VersionTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[tool.mllint.target-version]``."""

    torch: str | None = None
    paddle: str | None = None


class _Table(_LintTable, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """``[tool.mllint]``. The keys of ``[tool.mllint.lint]`` may stand here too."""

    lint: _LintTable = _LintTable()
    target_version: _VersionTable = _VersionTable()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True


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
    if os.path.basename(path) != "pyproject.toml":
        return content
    tool = content.get("tool")
    table = tool.get("mllint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigurationError(path, "`tool.mllint` must be a table")
    return table


def parse_inline(setting: str) -> Mapping[str, Any]:
    """The table that one ``KEY = VALUE`` of the command line means.

    Raises:
        ConfigurationError: it is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(setting)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError("--config", f"`{setting}` is not valid TOML: {error}") from None


def configuration(
    table: Mapping[str, Any], source: str | None, root: str, overrides: Overrides | None = None
) -> Configuration:
    """The values of a ``[tool.mllint]`` table, under the overrides.

    Raises:
        ConfigurationError: an unknown key, or a value of the wrong kind.
    """
    overrides = overrides or Overrides()
    in_pyproject = source is not None and os.path.basename(source) == "pyproject.toml"
    merged = _checked(table, source or "settings", "tool.mllint" if in_pyproject else "")
    for inline in overrides.tables:
        merged = _laid_over(merged, _checked(inline, "--config", ""))
    values = msgspec.convert(merged, _Table)
    settings = Settings(
        select=DEFAULT_SELECT if values.lint.select is None else values.lint.select,
        ignore=values.lint.ignore,
        extend_select=values.lint.extend_select,
        per_file_ignores=tuple(values.lint.per_file_ignores.items()),
        pattern_root=root,
        torch_version=overrides.torch_version or values.target_version.torch,
        paddle_version=overrides.paddle_version or values.target_version.paddle,
    )
    files = FileSettings(
        exclude=DEFAULT_EXCLUDE if values.exclude is None else values.exclude,
        extend_exclude=values.extend_exclude,
        force_exclude=values.force_exclude if overrides.force_exclude is None else overrides.force_exclude,
        respect_gitignore=values.respect_gitignore,
    )
    return Configuration(root=root, source=source, settings=_overridden(settings, overrides), files=files)


def parse_version(text: str) -> tuple[int, int]:
    """``"2.6"`` or ``"2.6.1"`` as ``(2, 6)``.

    Raises:
        ValueError: the text is no such version.
    """
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is not a version such as `2.6`")
    return int(match[1]), int(match[2] or 0)


def _overridden(settings: Settings, overrides: Overrides) -> Settings:
    """The command line over a file: ``select`` starts afresh, the others beat its ``ignore``."""
    select, ignore, extend_select = settings.select, settings.ignore, settings.extend_select
    if overrides.select is not None:
        select, ignore, extend_select = overrides.select, (), ()
    ignore = tuple(selector for selector in ignore if selector not in overrides.extend_select)
    return msgspec.structs.replace(
        settings,
        select=select,
        ignore=ignore if overrides.ignore is None else overrides.ignore,
        extend_select=(*extend_select, *overrides.extend_select),
    )


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        nested = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _laid_over(merged[key], value) if nested else value
    return merged


def _checked(table: Mapping[str, Any], where: str, prefix: str) -> dict[str, Any]:
    """The table in its one normal form: right keys and kinds, the keys of ``lint`` under ``lint``.

    ``prefix`` is what the keys are called in ``where`` (``tool.mllint``).
    """
    _check_keys(table, _Table, where, prefix)
    for key, struct in (("lint", _LintTable), ("target-version", _VersionTable)):
        if isinstance(table.get(key), dict):
            _check_keys(table[key], struct, where, _joined(prefix, key))
    try:
        values = msgspec.convert(table, _Table)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$.")
        what = what.replace(" | null", "").replace("`object`", "`table`")
        raise ConfigurationError(where, f"`{_joined(prefix, path.rstrip('`'))}`: {what}".lower()) from None
    for framework in ("torch", "paddle"):
        version = getattr(values.target_version, framework)
        try:
            parse_version(version or "0")
        except ValueError as error:
            key = _joined(prefix, f"target-version.{framework}")
            raise ConfigurationError(where, f"`{key}`: {error}") from None
    for key, patterns in _patterns(values).items():
        try:
            Patterns(patterns)
        except ValueError as error:
            raise ConfigurationError(where, f"`{_joined(prefix, key)}`: {error}") from None
    check_selectors(_selectors(values), where)
    lint = dict(table.get("lint", {}))
    normal = {key: value for key, value in table.items() if key not in _keys(_LintTable)}
    for key in _keys(_LintTable) & table.keys():
        if key in lint:
            both = f"`{_joined(prefix, key)}` and `{_joined(prefix, 'lint')}.{key}`"
            raise ConfigurationError(where, f"{both} are both given")
        lint[key] = table[key]
    return {**normal, "lint": lint}


def check_selectors(selectors: Iterable[str], where: str) -> None:
    """See that each selector names a rule, one of mllint's own codes or a block of codes.

    The rules are imported for this only where a selector is more than the name of a block.

    Raises:
        ConfigurationError: one does not; ``where`` is the file or option that it stands in.
    """
    for selector in selectors:
        if _BLOCK.fullmatch(selector):
            continue
        from mllint import registry

        if not selector or not registry.is_selector(selector):
            import difflib

            known = [name for rule in registry.all_rules() for name in (rule.code, rule.name)]
            close = difflib.get_close_matches(selector, known, 1)
            hint = f"; did you mean `{close[0]}`?" if close else ""
            raise ConfigurationError(where, f"`{selector}` names no rule{hint}")


def _selectors(values: _Table) -> Iterator[str]:
    """Every selector of a table."""
    for table in (values, values.lint):
        yield from (*(table.select or ()), *table.ignore, *table.extend_select)
        for selectors in table.per_file_ignores.values():
            yield from selectors


def _patterns(values: _Table) -> dict[str, tuple[str, ...]]:
    """The patterns of a table by their keys."""
    ignores = {**values.per_file_ignores, **values.lint.per_file_ignores}
    return {
        "exclude": values.exclude or (),
        "extend-exclude": values.extend_exclude,
        "per-file-ignores": tuple(pattern.removeprefix("!") for pattern in ignores),
    }


def _check_keys(table: Mapping[str, Any], struct: type[msgspec.Struct], where: str, prefix: str) -> None:
    allowed = sorted(_keys(struct))
    for key in sorted(table.keys() - _keys(struct)):
        if key in _FOREIGN_KEYS:
            hint = "it belongs to an older, unrelated tool that used the same table"
        else:
            import difflib

            close = difflib.get_close_matches(key, allowed, 1)
            hint = f"did you mean `{close[0]}`?" if close else ""
            hint += f"{' ' if hint else ''}allowed: {', '.join(allowed)}"
        raise ConfigurationError(where, f"unknown key `{_joined(prefix, key)}` ({hint})")


def _keys(struct: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(struct)}


def _joined(prefix: str, key: str) -> str:
    return f"{prefix}.{key}" if prefix else key
