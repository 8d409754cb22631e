"""The sentence at the end, for people: what was found, what was mended, what could be."""

from collections.abc import Iterable

from mllint.diagnostics import Diagnostic


def summary(remaining: Iterable[Diagnostic], *, fixed: int, files: int, fixing: bool, unsafe: bool) -> str:
    """What came of a run over ``files`` files, of which ``fixed`` findings were mended."""
    remaining = list(remaining)
    found = len(remaining)
    if found == 0 and fixed == 0:
        return f"No findings in {_number(files, 'file')}."
    if fixed:
        sentence = f"Fixed {_number(fixed, 'finding')}, {found} left."
    else:
        places = len({diagnostic.path for diagnostic in remaining})
        sentence = f"{_number(found, 'finding')} in {_number(places, 'file')}."
    return " ".join((sentence, *_hints(remaining, fixing=fixing, unsafe=unsafe)))


def diff_summary(fixed: int, files: int) -> str:
    """What ``--diff`` shows."""
    if fixed == 0:
        return "Nothing to fix."
    return f"Would fix {_number(fixed, 'finding')} in {_number(files, 'file')}."


def _hints(remaining: list[Diagnostic], *, fixing: bool, unsafe: bool) -> list[str]:
    fixes = [diagnostic.fix.applicability for diagnostic in remaining if diagnostic.fix is not None]
    fixable = sum(applicability.allows(unsafe) for applicability in fixes)
    hidden = sum(applicability.allows(True) for applicability in fixes) - fixable
    hints = []
    if fixable and not fixing:
        hints.append(f"{fixable} fixable with `--fix`.")
    if hidden:
        hints.append(f"{_number(hidden, 'hidden fix', 'hidden fixes')} can be enabled with `--unsafe-fixes`.")
    return hints


def _number(count: int, singular: str, plural: str = "") -> str:
    return f"{count} {singular if count == 1 else plural or singular + 's'}"
