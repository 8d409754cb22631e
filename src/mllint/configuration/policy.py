"""What the settings make of a rule's findings: how bad they are, and how far their fixes are trusted."""

from functools import lru_cache
from itertools import chain

import msgspec

from mllint.configuration.settings import Settings
from mllint.diagnostics import Applicability, Diagnostic, Result, Severity
from mllint.selectors import UnknownSelectorError, best, names, specificity


class Policy:
    """The part of some settings that is about findings, ready to be applied to many."""

    def __init__(self, settings: Settings) -> None:
        """Raises ``UnknownSelectorError`` where a selector names no rule."""
        self._settings = settings
        self._is_plain = (
            settings.fixable == ("ALL",)
            and not settings.unfixable
            and not settings.extend_safe_fixes
            and not settings.extend_unsafe_fixes
            and not settings.severities
            and settings.min_severity is Severity.INFO
        )
        if not self._is_plain:
            _check(settings)

    def judge(self, result: Result) -> Result:
        """The result with each finding as the settings have it; those below ``min_severity`` are gone.

        What is said about mllint's own work stays as it is: it cannot be switched off.
        """
        if self._is_plain or not (result.diagnostics or result.suppressed):
            return result
        return msgspec.structs.replace(
            result, diagnostics=self._judged(result.diagnostics), suppressed=self._judged(result.suppressed)
        )

    def _judged(self, diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        judged = (item if item.is_own else self._judged_one(item) for item in diagnostics)
        lowest = self._settings.min_severity.rank
        return tuple(item for item in judged if item.is_own or item.severity.rank >= lowest)

    def _judged_one(self, item: Diagnostic) -> Diagnostic:
        severity = self._severity(item.code, item.name, item.severity)
        fix = item.fix
        if fix is not None:
            applicability = self._applicability(item, fix.applicability)
            if applicability is not fix.applicability:
                fix = msgspec.structs.replace(fix, applicability=applicability)
        if severity is item.severity and fix is item.fix:
            return item
        return msgspec.structs.replace(item, severity=severity, fix=fix)

    def shows(self, code: str, name: str, own: Severity) -> bool:
        """Whether findings of a rule with this severity of its own are reported at all."""
        return self._severity(code, name, own).rank >= self._settings.min_severity.rank

    def _severity(self, code: str, name: str, own: Severity) -> Severity:
        severity, exactness = own, 0
        for selector, wanted in self._settings.severities:
            # Of two that are equally exact the later one counts: the command line comes last.
            if names(selector, code, name) and specificity(selector, name) >= exactness:
                severity, exactness = wanted, specificity(selector, name)
        return severity

    def _applicability(self, item: Diagnostic, own: Applicability) -> Applicability:
        settings = self._settings
        if best(settings.fixable, item.code, item.name) <= best(settings.unfixable, item.code, item.name):
            return Applicability.DISPLAY
        if own is Applicability.DISPLAY:
            return own
        safe = best(settings.extend_safe_fixes, item.code, item.name)
        unsafe = best(settings.extend_unsafe_fixes, item.code, item.name)
        if safe > unsafe:
            return Applicability.SAFE
        return Applicability.UNSAFE if unsafe else own


def _check(settings: Settings) -> None:
    from mllint.registry import is_selector

    lists = (settings.fixable, settings.unfixable, settings.extend_safe_fixes, settings.extend_unsafe_fixes)
    for selector in (*chain(*lists), *(selector for selector, _ in settings.severities)):
        if not is_selector(selector):
            raise UnknownSelectorError(selector)


@lru_cache(maxsize=64)
def policy_of(settings: Settings) -> Policy:
    """The policy of some settings.

    Raises:
        UnknownSelectorError: a selector names no rule.
    """
    return Policy(settings)
