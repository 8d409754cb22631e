"""The library: one file's source in, values out.

Both functions raise nothing whatever the source is, print nothing, and touch no file but the
sibling files of a project whose root the settings name.
"""

import os
from pathlib import Path

import msgspec

from mllint.configuration.settings import Settings
from mllint.diagnostics import Diagnostic, Location, Result, Severity, Status
from mllint.fixer import FixResult
from mllint.running.runner import fix, lint
from mllint.selectors import UnknownSelectorError
from mllint.semantic.project import Project
from mllint.syntax.source import bytes_of


def lint_source(source: bytes | str, path: str = "<string>", settings: Settings | None = None) -> Result:
    """The findings in a file with this source.

    ``path`` is what the file is called in the findings; with ``settings.project_root`` it also says
    from where imports are looked up. A selector that names no rule gives a result with one ML000.
    """
    settings = settings or Settings()
    data = _bytes(source)
    project = _project(settings, path)
    try:
        return _with_dependencies(lint(data, path, settings, project), project)
    except UnknownSelectorError as error:
        return _misconfigured(path, error)


def fix_source(
    source: bytes | str,
    path: str = "<string>",
    settings: Settings | None = None,
    *,
    unsafe: bool = False,
) -> FixResult:
    """A file's source with what can be mended mended, and what remains to be said about it.

    ``FixResult.data`` is bytes, as the file would hold them; where nothing changed, those of the
    source. ``unsafe`` applies also the fixes that may change behaviour.
    """
    settings = settings or Settings()
    data = _bytes(source)
    project = _project(settings, path)
    try:
        fixed = fix(data, lint(data, path, settings, project), settings, project, unsafe=unsafe)
        return msgspec.structs.replace(fixed, result=_with_dependencies(fixed.result, project))
    except UnknownSelectorError as error:
        return FixResult(data, (), _misconfigured(path, error), str(error))


def _with_dependencies(result: Result, project: Project | None) -> Result:
    if project is None:
        return result
    found = project.reads.dependencies(str(project.disk.real(result.path)))
    return msgspec.structs.replace(result, dependencies=found)


def _project(settings: Settings, path: str) -> Project | None:
    """Where imports are looked up. A name that no file can have has no surroundings."""
    root = settings.project_root
    if root is None or not (_can_be_a_path(root) and _can_be_a_path(path)):
        return None
    return Project(Path(root).resolve())


def _can_be_a_path(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _bytes(source: bytes | str) -> bytes:
    return bytes_of(source) if isinstance(source, str) else bytes(source)


def _misconfigured(path: str, error: UnknownSelectorError) -> Result:
    start = Location(1, 1)
    diagnostic = Diagnostic(
        code="ML000",
        name="internal-error",
        message=str(error),
        help="write a code, a prefix of a code, the name of a rule or `ALL`",
        path=path,
        location=start,
        end_location=start,
        noqa_row=1,
        severity=Severity.ERROR,
    )
    return Result(path, Status.INTERNAL_ERROR, (diagnostic,))
