"""How often each rule found something."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from mllint.diagnostics import Diagnostic
from mllint.output.machine import render, render_line
from mllint.output.style import Style


class Count(msgspec.Struct, frozen=True):
    """The findings of one rule: how many, and how many of them ``--fix`` would mend."""

    code: str
    name: str
    count: int
    fixable_count: int


def counts(diagnostics: Iterable[Diagnostic], *, unsafe: bool) -> list[Count]:
    """One entry a rule, the most frequent first."""
    total: Counter[tuple[str, str]] = Counter()
    fixable: Counter[tuple[str, str]] = Counter()
    for diagnostic in diagnostics:
        key = (diagnostic.code, diagnostic.name)
        total[key] += 1
        if diagnostic.fix is not None and diagnostic.fix.applicability.allows(unsafe):
            fixable[key] += 1
    entries = [Count(*key, count, fixable[key]) for key, count in total.items()]
    return sorted(entries, key=lambda entry: (-entry.count, entry.code))


def as_text(entries: Iterable[Count], style: Style) -> list[str]:
    """Number, code, whether all (``[*]``) or some (``[-]``) are fixable, name: a line a rule."""
    entries = list(entries)
    digits = max((len(str(entry.count)) for entry in entries), default=0)
    return [
        f"{entry.count:>{digits}}  {style.code(entry.code)}  {_mark(entry, style)}  {entry.name}" for entry in entries
    ]


def as_json(entries: Iterable[Count]) -> str:
    """The same as an array of objects."""
    return render([_object(entry) for entry in entries])


def as_json_lines(entries: Iterable[Count]) -> list[str]:
    """The same with an object on each line."""
    return [render_line(_object(entry)) for entry in entries]


def _object(entry: Count) -> dict[str, object]:
    return {
        "code": entry.code,
        "name": entry.name,
        "count": entry.count,
        "fixable": entry.fixable_count > 0,
        "fixable_count": entry.fixable_count,
    }


def _mark(entry: Count, style: Style) -> str:
    if entry.fixable_count == 0:
        return "[ ]"
    return f"[{style.hint('*' if entry.fixable_count == entry.count else '-')}]"
