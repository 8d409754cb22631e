"""ML002: comments that silence nothing.

A comment is judged only by what this run could know: a code counts as unused if every rule that it names was run on
this file and none of them found anything there that the comment would silence. Codes of other tools, and comments
without codes, are nobody's business here.
"""

import re
from collections.abc import Sequence

import msgspec

from mllint.diagnostics import OWN_CODES, Applicability, Diagnostic, Edit, Fix, Result
from mllint.registry import UNUSED_SUPPRESSION, RuleSet, all_rules
from mllint.syntax.source import Source, syntax_tree
from mllint.syntax.suppressions import Directive, Selector, Suppressions

_CODE, _NAME = UNUSED_SUPPRESSION
_LONGEST_LIST = 45
"""How much of a message the codes may take."""
_DIRECTIVE = re.compile(
    r"(?:noqa|type:|flake8|mllint|ruff|pylint|isort|fmt:|yapf|nosec|pragma|pyright|mypy|pyre|pytype|coding)",
    re.IGNORECASE,
)


def is_python(text: str) -> bool:
    """Whether a text is a program: in what is none, nothing can be said about its comments."""
    try:
        syntax_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def with_unused_suppressions(result: Result, source: Source, suppressions: Suppressions, rules: RuleSet) -> Result:
    """The result with a finding for each comment of which something silences nothing."""
    found = [
        diagnostic
        for directive in (*suppressions.own, *suppressions.noqa)
        if (unused := _unused(directive, (*result.diagnostics, *result.suppressed), source, rules))
        for diagnostic in [_diagnostic(directive, unused, source)]
    ]
    if not found:
        return result
    reported, suppressed = list(result.diagnostics), list(result.suppressed)
    for item in found:
        row = source.unplaced(item.location).row
        (suppressed if suppressions.silences(item.code, row, item.name) else reported).append(item)
    return msgspec.structs.replace(
        result,
        diagnostics=tuple(sorted(reported, key=lambda item: item.sort_key)),
        suppressed=tuple(sorted(suppressed, key=lambda item: item.sort_key)),
    )


def _unused(directive: Directive, found: Sequence[Diagnostic], source: Source, rules: RuleSet) -> list[Selector]:
    here = [item for item in found if directive.reaches(source.unplaced(item.location).row)]
    return [
        selector
        for selector in directive.selectors
        if _is_ours(selector, directive)
        and _could_be_used(selector, rules)
        and not any(selector.names(item.code, item.name) for item in here)
    ]


def _is_ours(selector: Selector, directive: Directive) -> bool:
    """Whether a selector is mllint's: in brackets all are, in a ``noqa`` those that begin with our letters."""
    return directive.is_own or re.fullmatch(r"ML[0-9]+", selector.text, re.IGNORECASE) is not None


def _could_be_used(selector: Selector, rules: RuleSet) -> bool:
    """Whether every rule that a selector names has run. Of what mllint says about its own work nobody can tell."""
    if any(selector.names(code, None) for code in (*OWN_CODES, _CODE)) or selector.text == _NAME:
        return False
    run = set(rules.codes)
    return all(rule.code in run for rule in all_rules() if selector.names(rule.code, rule.name))


def _diagnostic(directive: Directive, unused: Sequence[Selector], source: Source) -> Diagnostic:
    shown = ", ".join(f"`{selector.text}`" for selector in unused)
    if len(shown) > _LONGEST_LIST:
        shown = f"{len(unused)} rules"
    every = len(unused) == len(directive.selectors)
    location = source.placed(source.location(directive.start))
    return Diagnostic(
        code=_CODE,
        name=_NAME,
        message=f"this suppression of {shown} silences nothing",
        help="remove the suppression" if every else f"remove {shown} from the suppression",
        path=source.path,
        location=location,
        end_location=source.placed(source.location(directive.end)),
        noqa_row=location.row,
        fix=_fix(directive, unused, source),
    )


def _fix(directive: Directive, unused: Sequence[Selector], source: Source) -> Fix | None:
    """Take out what is unused; other codes and any other text of the comment stay."""
    kept = [selector for selector in directive.selectors if selector not in unused]
    if kept:
        first, last = directive.selectors[0], directive.selectors[-1]
        return _edited(source, first.start, last.end, ", ".join(selector.text for selector in kept))
    text = source.text
    start, end = directive.comment
    before, after = text[start : directive.start].rstrip(), text[directive.end : end].strip()
    if after and not after.startswith("#"):
        # What was the reason is now a remark; it must not be taken for an instruction to some tool.
        if _DIRECTIVE.match(after):
            return None
        after = f"# {after}"
    rest = "  ".join(filter(None, (before, after)))
    if rest:
        return _edited(source, start, end, rest)
    line = source.line_starts[directive.row - 1]
    if text[line:start].strip():
        return _edited(source, len(text[:start].rstrip(" \t\f")), end, "")
    following = source.line_starts[directive.row] if directive.row < len(source.line_starts) else end
    return _edited(source, line, following, "")


def _edited(source: Source, start: int, end: int, content: str) -> Fix:
    places = (source.placed(source.location(offset)) for offset in (start, end))
    edit = Edit(start, end, content, *places)
    return Fix("remove what silences nothing", Applicability.SAFE, (edit,))
