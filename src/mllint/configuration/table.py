"""The table ``[tool.mllint]``: what may stand in it, what each key means, and what is said of a wrong one.

The structs are the one place where keys are defined: the checks, the JSON schema and the list of keys in the
documentation are made of them.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeAlias

import msgspec

from mllint.configuration.patterns import Patterns
from mllint.configuration.settings import ConfigurationError, parse_version
from mllint.diagnostics import Severity
from mllint.selectors import listed_rules, names

_BLOCK = re.compile(r"ML\d?|ALL")
_FOREIGN_KEYS = {"code-quality", "git", "rules"}
"""Keys of an older, unrelated tool that keeps its settings in the same table."""

_Strings: TypeAlias = tuple[str, ...]
_Ignores: TypeAlias = dict[str, tuple[str, ...]]


def _key(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


class LintTable(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """`[tool.mllint.lint]`: which rules run, and what is made of their findings. Rules are named by code (`ML101`),
    prefix of codes (`ML1`) or name (`discarded-tensor-result`); `ML` is all that are on by default, `ALL` all."""

    select: Annotated[_Strings | None, _key('the rules to run (default `["ML"]`)')] = None
    extend_select: Annotated[_Strings, _key("more rules beside those")] = ()
    ignore: Annotated[_Strings, _key("rules not to run")] = ()
    extend_ignore: Annotated[_Strings, _key("more rules not to run")] = ()
    per_file_ignores: Annotated[
        _Ignores,
        _key("pattern → rules not to run on files that match; `!` in front of the pattern turns it round"),
    ] = {}
    extend_per_file_ignores: Annotated[_Ignores, _key("more of them")] = {}
    severity: Annotated[
        dict[str, Severity], _key("rule → `error`, `warning` or `info`; the most exact name of a rule counts")
    ] = {}
    min_severity: Annotated[Severity, _key("findings below this severity are left out (default `info`: none)")] = (
        Severity.INFO
    )
    fixable: Annotated[_Strings | None, _key('the rules whose fixes are applied (default `["ALL"]`)')] = None
    extend_fixable: Annotated[_Strings, _key("more rules beside those")] = ()
    unfixable: Annotated[_Strings, _key("rules whose fixes are shown and never applied")] = ()
    extend_safe_fixes: Annotated[_Strings, _key("rules whose unsafe fixes are taken for safe")] = ()
    extend_unsafe_fixes: Annotated[_Strings, _key("rules whose safe fixes are taken for unsafe")] = ()


class VersionTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[tool.mllint.target-version]`: the oldest versions the code must run with, such as `"2.6"`."""

    torch: Annotated[str | None, _key("the oldest PyTorch (default: what the project's dependencies say)")] = None
    paddle: Annotated[str | None, _key("the oldest PaddlePaddle (default: likewise)")] = None


class Table(LintTable, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """`[tool.mllint]`. The keys of `[tool.mllint.lint]` may stand here too."""

    lint: LintTable = LintTable()
    target_version: VersionTable = VersionTable()
    extend: Annotated[
        str | None, _key("another configuration file, relative to this one, that this one is laid over")
    ] = None
    exclude: Annotated[
        _Strings | None, _key("files and folders not looked into (default: build folders, environments, caches)")
    ] = None
    extend_exclude: Annotated[_Strings, _key("more of them beside those")] = ()
    extend_include: Annotated[
        _Strings, _key('files in folders that are checked beside `.py` and `.pyi`, such as `["*.ipynb"]`')
    ] = ()
    force_exclude: Annotated[bool, _key("leave excluded files out even if they are named on the command line")] = False
    respect_gitignore: Annotated[bool, _key("leave out what `.gitignore` names (default `true`)")] = True


def keys_of(struct: type[msgspec.Struct]) -> set[str]:
    """The keys of a table as they are written."""
    return {field.encode_name for field in msgspec.structs.fields(struct)}


def described_keys() -> Iterator[tuple[str, str]]:
    """Every key with its table in front (``lint.select``), and what it means."""
    tables: tuple[tuple[str, type[msgspec.Struct]], ...] = (
        ("", Table),
        ("lint.", LintTable),
        ("target-version.", VersionTable),
    )
    for prefix, struct in tables:
        for field in msgspec.structs.fields(struct):
            of_lint = struct is Table and field.encode_name in keys_of(LintTable)
            for meta in getattr(field.type, "__metadata__", ()):
                if not of_lint:
                    yield f"{prefix}{field.encode_name}", meta.description


def schema() -> dict[str, Any]:
    """The JSON schema of ``mllint.toml``, and of the table ``[tool.mllint]``."""
    made = msgspec.json.schema(Table)
    for table in made["$defs"].values():
        # Before Python 3.13 the text of a class is indented as it stands in the source.
        table["description"] = inspect.cleandoc(table["description"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mllint",
        **made,
    }


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


def checked(table: Mapping[str, Any], where: str, prefix: str) -> dict[str, Any]:
    """The table in its one normal form: right keys and kinds, the keys of ``lint`` under ``lint``.

    ``prefix`` is what the keys are called in ``where`` (``tool.mllint``).

    Raises:
        ConfigurationError: an unknown key, or a value that cannot be.
    """
    _check_keys(table, Table, where, prefix)
    for key, struct in (("lint", LintTable), ("target-version", VersionTable)):
        if isinstance(table.get(key), dict):
            _check_keys(table[key], struct, where, _joined(prefix, key))
    try:
        values = msgspec.convert(table, Table)
    except msgspec.ValidationError as error:
        raise ConfigurationError(where, _wrong_value(str(error), prefix)) from None
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
    for key, selectors in _selectors(values):
        check_selectors(selectors, where, key=_joined(prefix, key))
    return _normal(table, where, prefix)


def _normal(table: Mapping[str, Any], where: str, prefix: str) -> dict[str, Any]:
    lint = dict(table.get("lint", {}))
    normal = {key: value for key, value in table.items() if key not in keys_of(LintTable)}
    for key in sorted(keys_of(LintTable) & table.keys()):
        if key in lint:
            both = f"`{_joined(prefix, key)}` and `{_joined(prefix, 'lint')}.{key}`"
            raise ConfigurationError(where, f"{both} are both given")
        lint[key] = table[key]
    return {**normal, "lint": lint}


def _wrong_value(error: str, prefix: str) -> str:
    what, _, path = error.partition(" - at `$.")
    key = _joined(prefix, path.rstrip("`").partition("[")[0])
    value = re.fullmatch(r"Invalid enum value '(.*)'", what)
    if value is not None:
        allowed = [severity.value for severity in Severity]
        return f"`{key}`: `{value[1]}` is no severity ({_hint(value[1], allowed)})"
    what = what.replace(" | null", "").replace("`object`", "`table`")
    return f"`{key}`: {what}".lower()


def check_selectors(selectors: Iterable[str], where: str, *, key: str = "") -> None:
    """See that each selector names a rule, one of mllint's own codes or a block of codes.

    The rules are imported for this only where a selector is none that their files show. ``where`` is the file or
    option that the selectors stand in, ``key`` the key there.

    Raises:
        ConfigurationError: one does not.
    """
    for selector in selectors:
        if _BLOCK.fullmatch(selector) or any(names(selector, *rule) for rule in listed_rules()):
            continue
        from mllint import registry

        if not selector or not registry.is_selector(selector):
            import difflib

            known = [name for rule in registry.all_rules() for name in (rule.code, rule.name)]
            close = difflib.get_close_matches(selector, known, 1)
            hint = f"did you mean `{close[0]}`?" if close else "`mllint rule --all` lists all rules"
            place = f"`{key}`: " if key else ""
            raise ConfigurationError(where, f"{place}`{selector}` names no rule; {hint}")


def _selectors(values: Table) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every key that holds selectors, and these."""
    for prefix, table in (("", values), ("lint.", values.lint)):
        for key in (
            "select", "extend-select", "ignore", "extend-ignore", "fixable", "extend-fixable", "unfixable",
            "extend-safe-fixes", "extend-unsafe-fixes",
        ):  # fmt: skip
            yield f"{prefix}{key}", getattr(table, key.replace("-", "_")) or ()
        yield f"{prefix}severity", tuple(table.severity)
        for selectors in table.per_file_ignores.values():
            yield f"{prefix}per-file-ignores", selectors
        for selectors in table.extend_per_file_ignores.values():
            yield f"{prefix}extend-per-file-ignores", selectors


def _patterns(values: Table) -> dict[str, tuple[str, ...]]:
    """The patterns of a table by their keys."""
    found = {
        "exclude": values.exclude or (),
        "extend-exclude": values.extend_exclude,
        "extend-include": values.extend_include,
    }
    for key in ("per-file-ignores", "extend-per-file-ignores"):
        field = key.replace("-", "_")
        ignores = {**getattr(values, field), **getattr(values.lint, field)}
        found[key] = tuple(pattern.removeprefix("!") for pattern in ignores)
    return found


def _check_keys(table: Mapping[str, Any], struct: type[msgspec.Struct], where: str, prefix: str) -> None:
    allowed = sorted(keys_of(struct))
    for key in sorted(table.keys() - keys_of(struct)):
        if key in _FOREIGN_KEYS:
            hint = "it belongs to an older, unrelated tool that used the same table"
        elif key == "tool" and not prefix:
            hint = "in this file the keys stand without `tool.mllint`"
        else:
            hint = _hint(key, allowed)
        raise ConfigurationError(where, f"unknown key `{_joined(prefix, key)}` ({hint})")


def _hint(text: str, allowed: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(text, allowed, 1)
    meant = f"did you mean `{close[0]}`? " if close else ""
    return f"{meant}allowed: {', '.join(allowed)}"


def _joined(prefix: str, key: str) -> str:
    return f"{prefix}.{key}" if prefix else key
