"""Finding the rules and choosing among them."""

import importlib
import pkgutil
import re
from collections.abc import Iterable
from functools import cache, cached_property

import mllint.rules
from mllint.diagnostics import OWN_CODES
from mllint.dispatch import Dispatch
from mllint.rule import Rule
from mllint.selectors import UnknownSelectorError, best, is_broad, names
from mllint.syntax.gate import SIGNS

UNUSED_SUPPRESSION = ("ML002", "unused-suppression")
"""Code and name of what is no rule about code, but about the comments that silence rules."""


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of the package, sorted by code."""
    modules = pkgutil.walk_packages(mllint.rules.__path__, "mllint.rules.")
    rules = (importlib.import_module(module.name).rule for module in modules if not module.ispkg)
    return tuple(sorted(rules, key=lambda rule: rule.code))


class RuleSet:
    """The chosen rules: dispatch tables and the gate, each built once."""

    def __init__(self, rules: Iterable[Rule], *, checks_suppressions: bool = False) -> None:
        """``checks_suppressions``: whether comments that silence nothing are findings (ML002)."""
        self.rules = tuple(sorted(rules, key=lambda rule: rule.code))
        self.checks_suppressions = checks_suppressions

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the chosen rules, sorted."""
        return tuple(rule.code for rule in self.rules)

    @cached_property
    def dispatch(self) -> Dispatch:
        """Who visits what."""
        return Dispatch.of(self.rules)

    @cached_property
    def _gates(self) -> tuple[tuple[re.Pattern[bytes], re.Pattern[bytes] | None], ...]:
        """Per set of frameworks: a pattern for the frameworks, and one for the words of the handlers."""
        words: dict[frozenset[str], set[str] | None] = {}
        for rule in self.rules:
            known = words.setdefault(rule.frameworks, set())
            for subscription in rule.subscriptions:
                if known is None or not subscription.mentions:
                    words[rule.frameworks] = known = None
                else:
                    known |= subscription.mentions
        # Where a framework is enough, nothing else need be looked for in most files.
        ordered = sorted(words.items(), key=lambda item: (item[1] is not None, sorted(item[0])))
        return tuple(
            (_any_word(_signs_of(frameworks)), None if mentions is None else _any_word(mentions))
            for frameworks, mentions in ordered
        )

    def may_fire(self, data: bytes) -> bool:
        """The gate: whether any chosen rule could find anything in a file with these bytes. Never wrongly false."""
        return any(
            frameworks.search(data) and (mentions is None or mentions.search(data))
            for frameworks, mentions in self._gates
        )


def _signs_of(frameworks: frozenset[str]) -> frozenset[str]:
    """Of what a file has one if any of the frameworks plays a part in it."""
    return frameworks.union(SIGNS) if frameworks & {"torch", "paddle"} else frameworks


def _any_word(words: Iterable[str]) -> re.Pattern[bytes]:
    alternatives = b"|".join(re.escape(word.encode()) for word in sorted(words))
    return re.compile(rb"(?<![A-Za-z0-9])(?:" + alternatives + rb")")


def matches(rule: Rule, selector: str) -> bool:
    """Whether a selector (code, prefix of a code, name, or ``ALL``) names the rule."""
    return names(selector, rule.code, rule.name)


def select(select: Iterable[str], ignore: Iterable[str]) -> RuleSet:
    """The rules that ``select`` names and ``ignore`` does not.

    Among selectors that name a rule the most specific wins, and ``ignore`` wins a tie. ``ALL`` is every rule; the
    bare prefix ``ML``, which flake8 selects plugins by, leaves off what is not on by default.

    Raises:
        UnknownSelectorError: a selector names no rule and is no prefix of ``ML000``-style codes.
    """
    select, ignore = tuple(select), tuple(ignore)
    for selector in (*select, *ignore):
        if not is_selector(selector):
            raise UnknownSelectorError(selector)
    # Whether ML002 runs follows the same rules, but it does not run unless it is named.
    wanted = best((selector for selector in select if not is_broad(selector)), *UNUSED_SUPPRESSION)
    return RuleSet(
        (rule for rule in all_rules() if _specificity(rule, select) > _specificity(rule, ignore, all_count=True)),
        checks_suppressions=wanted > best(ignore, *UNUSED_SUPPRESSION),
    )


def is_selector(selector: str) -> bool:
    """Whether a selector names at least one rule, one of mllint's own codes, or a block of codes."""
    return (
        selector in ("ALL", "ML")
        or re.fullmatch(r"ML[0-9]", selector.upper()) is not None
        or selector.upper() in (*OWN_CODES, UNUSED_SUPPRESSION[0], "ML00")
        or selector == UNUSED_SUPPRESSION[1]
        or any(matches(rule, selector) for rule in all_rules())
    )


def _specificity(rule: Rule, selectors: tuple[str, ...], *, all_count: bool = False) -> int:
    """How specific the most specific selector for the rule is; 0 when none names it."""
    counting = (selector for selector in selectors if all_count or rule.is_default or selector != "ML")
    return best(counting, rule.code, rule.name)
