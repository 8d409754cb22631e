"""What a run would do, without doing it: ``--show-files`` and ``--show-settings``."""

import os
from collections.abc import Iterable, Iterator, Mapping

import click

from mllint.configuration.files import Resolver
from mllint.configuration.requirements import Requirements
from mllint.configuration.settings import Configuration, ConfigurationError
from mllint.output.style import printable
from mllint.running.discovery import discover
from mllint.semantic.files.project_root import ProjectRoots


def show_files(paths: Iterable[str], resolver: Resolver) -> int:
    """Print the files that would be checked, and give the exit code: 2 where a configuration cannot be used or no
    path exists.
    """
    discovery = discover(paths, resolver)
    for error in discovery.configuration_errors:
        click.echo(f"mllint: error: {printable(str(error))}", err=True)
    for problem in discovery.unreadable:
        click.echo(f"mllint: error: {printable(problem.path)}: {problem.reason}", err=True)
    for file in discovery.files:
        click.echo(printable(file.path))
    return 2 if discovery.configuration_errors or discovery.nothing_exists else 0


def show_settings(paths: Iterable[str], resolver: Resolver) -> int:
    """Print the settings that hold for each path, in the form of ``mllint.toml``, and give the exit code.

    With the versions that the project of the path asks for, where no setting names one.
    """
    failed, roots, requirements = False, ProjectRoots(), Requirements()
    for path in paths:
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        try:
            configuration = resolver.for_folder(folder)
        except ConfigurationError as error:
            click.echo(f"mllint: error: {printable(str(error))}", err=True)
            failed = True
        else:
            inside = path if not os.path.isdir(path) else os.path.join(path, "any.py")
            asked = requirements.of(inside, str(roots.of(inside)))
            click.echo("\n".join(_lines(path, configuration, asked)))
    return 2 if failed else 0


def _lines(path: str, configuration: Configuration, asked: Mapping[str, str]) -> Iterator[str]:
    settings, files = configuration.settings, configuration.files
    yield f"# {printable(path)}: {printable(configuration.source or 'defaults and options')}"
    yield f"# patterns are relative to {printable(configuration.root)}"
    yield _pair("exclude", (*files.exclude, *files.extend_exclude))
    if files.extend_include:
        yield _pair("extend-include", files.extend_include)
    yield _pair("force-exclude", files.force_exclude)
    yield _pair("respect-gitignore", files.respect_gitignore)
    yield ""
    yield "[target-version]"
    for framework, version in (("torch", settings.torch_version), ("paddle", settings.paddle_version)):
        if version is not None:
            yield _pair(framework, version)
        elif framework in asked:
            yield f"{_pair(framework, asked[framework])}  # what the project asks for"
    yield ""
    yield "[lint]"
    yield _pair("select", (*settings.select, *settings.extend_select))
    yield _pair("ignore", settings.ignore)
    yield _pair("fixable", settings.fixable)
    yield _pair("unfixable", settings.unfixable)
    yield _pair("extend-safe-fixes", settings.extend_safe_fixes)
    yield _pair("extend-unsafe-fixes", settings.extend_unsafe_fixes)
    yield _pair("min-severity", settings.min_severity.value)
    for key, values in (
        ("per-file-ignores", _joined(settings.per_file_ignores)),
        ("severity", {selector: severity.value for selector, severity in settings.severities}),
    ):
        yield ""
        yield f"[lint.{key}]"
        yield from (_pair(_value(name), value) for name, value in values.items())
    yield ""


def _joined(ignores: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """A pattern may be given twice: in a file and on the command line."""
    joined: dict[str, tuple[str, ...]] = {}
    for pattern, selectors in ignores:
        joined[pattern] = (*joined.get(pattern, ()), *selectors)
    return joined


def _pair(key: str, value: object) -> str:
    return f"{key} = {_value(value)}"


def _value(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    text = printable(str(value)).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
