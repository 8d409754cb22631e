"""What the values of options mean, and what is said of those that mean nothing.

Each function is a callback of click: it gets the values of one option as they were written.
"""

from typing import Any

import click

from mllint.configuration.patterns import Patterns
from mllint.configuration.settings import ConfigurationError, parse_version
from mllint.configuration.table import check_selectors
from mllint.diagnostics import Severity


class Failure(click.ClickException):
    """Something that ends the run before any file is looked at."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Say what it is on standard error."""
        click.echo(f"mllint: error: {self.message}", err=True)


def selectors(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
    """Codes from an option that may be repeated and may hold several, separated by commas."""
    selectors = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    _check(selectors, parameter)
    # Given but empty (`--ignore ''`) is not the same as not given.
    return selectors if values else None


def target_versions(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
    """Versions by framework."""
    versions = {}
    for value in values:
        framework, _, version = value.partition("=")
        try:
            if framework not in ("torch", "paddle"):
                raise ValueError(f"`{value}` is not of the form `torch=2.6` or `paddle=3.0`")
            parse_version(version)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
        versions[framework] = version
    return versions


def jobs(context: click.Context, parameter: click.Parameter, value: str) -> int | None:
    """A number of processes; ``None`` stands for ``auto``."""
    if value == "auto":
        return None
    if not value.isdecimal() or int(value) == 0:
        raise click.BadParameter(f"`{value}` is neither `auto` nor a number from 1 up")
    return int(value)


def file_ignores(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
    """Patterns, each with the selectors of one or several rules."""
    ignores: dict[str, tuple[str, ...]] = {}
    for value in values:
        pattern, _, text = value.rpartition(":")
        selectors = tuple(part.strip() for part in text.split(",") if part.strip())
        if not pattern or not selectors:
            raise click.BadParameter(f"`{value}` is not of the form `tests/*:ML101,ML2`")
        _check(selectors, parameter)
        _check_patterns((pattern.removeprefix("!"),), parameter)
        ignores[pattern] = (*ignores.get(pattern, ()), *selectors)
    return tuple(ignores.items()) if values else None


def patterns(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
    """Patterns of paths, separated by commas."""
    patterns = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    _check_patterns(patterns, parameter)
    return patterns if values else None


def severities(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Any:
    """Pairs of a selector and a severity."""
    severities = []
    for value in values:
        selector, _, name = value.partition("=")
        if name not in list(Severity):
            allowed = ", ".join(Severity)
            raise click.BadParameter(f"`{value}` is not of the form `ML101=error` (severities: {allowed})")
        _check((selector,), parameter)
        severities.append((selector, Severity(name)))
    return tuple(severities)


def _check(selectors: tuple[str, ...], parameter: click.Parameter) -> None:
    try:
        check_selectors(selectors, parameter.opts[-1])
    except ConfigurationError as error:
        raise Failure(str(error)) from None


def _check_patterns(patterns: tuple[str, ...], parameter: click.Parameter) -> None:
    try:
        Patterns(patterns)
    except ValueError as error:
        raise Failure(f"{parameter.opts[-1]}: {error}") from None
