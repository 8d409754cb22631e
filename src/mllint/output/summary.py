"""The sentence at the end, for people: what was found, what was mended, what could be."""

from collections import Counter
from collections.abc import Iterable, Iterator

from mllint.diagnostics import Diagnostic


def summary(remaining: Iterable[Diagnostic], *, fixed: int, files: int, fixing: bool, unsafe: bool) -> str:
    """What came of a run over ``files`` files, of which ``fixed`` findings were mended."""
    remaining = list(remaining)
    found = len(remaining)
    if found == 0 and fixed == 0:
        return f"No findings in {number(files, 'file')}."
    if fixed:
        sentence = f"Fixed {number(fixed, 'finding')}, {found} left."
    else:
        places = len({diagnostic.path for diagnostic in remaining})
        sentence = f"{number(found, 'finding')} in {number(places, 'file')}."
    return " ".join((sentence, *_hints(remaining, fixing=fixing, unsafe=unsafe)))


def diff_summary(fixed: int, files: int) -> str:
    """What ``--diff`` shows."""
    if fixed == 0:
        return "Nothing to fix."
    return f"Would fix {number(fixed, 'finding')} in {number(files, 'file')}."


def fix_summary(fixed: int, files: int) -> str:
    """What ``--fix-only`` did."""
    if fixed == 0:
        return "Nothing to fix."
    return f"Fixed {number(fixed, 'finding')} in {number(files, 'file')}."


def annotation_summary(silenced: int, files: int, left: int) -> str:
    """What ``--add-noqa`` or ``--add-ignore`` did."""
    return f"Silenced {number(silenced, 'finding')} with comments in {number(files, 'file')}, {left} left."


def listed_fixes(fixed: Iterable[tuple[str, Iterable[Diagnostic]]]) -> Iterator[str]:
    """What was mended, by file and rule, a line each."""
    for path, diagnostics in sorted(fixed):
        counts = Counter((item.code, item.name) for item in diagnostics)
        if counts:
            yield f"{path}:"
        for (code, name), count in sorted(counts.items()):
            yield f"  {count} × {code} {name}"


def _hints(remaining: list[Diagnostic], *, fixing: bool, unsafe: bool) -> list[str]:
    fixes = [diagnostic.fix.applicability for diagnostic in remaining if diagnostic.fix is not None]
    fixable = sum(applicability.allows(unsafe) for applicability in fixes)
    hidden = sum(applicability.allows(True) for applicability in fixes) - fixable
    hints = []
    if fixable and not fixing:
        hints.append(f"{fixable} fixable with `--fix`.")
    if hidden:
        hints.append(f"{number(hidden, 'hidden fix', 'hidden fixes')} can be enabled with `--unsafe-fixes`.")
    return hints


def number(count: int, singular: str, plural: str = "") -> str:
    """A count with its noun."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"
