"""Findings that are accepted for now: a committed file that counts them, so that a run reports only what is new.

The file holds, for each source file and each rule, how many findings there were: ``{"src/a.py": {"ML101": 2}}``. Counts
and not lines, so that it does not change when lines move. While a file has no more findings of a rule than that, none
of them is reported; as soon as it has more, all are, since nobody can tell which of them is the new one.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mllint.configuration.policy import policy_of
from mllint.configuration.settings import ConfigurationError, Settings
from mllint.diagnostics import Diagnostic, Result
from mllint.running.runner import Outcome, Task, chosen_rules
from mllint.running.writer import WriteError, put
from mllint.selectors import names

DEFAULT_NAME = "mllint-suppressions.json"

Counts = dict[str, dict[str, int]]


class Stale(msgspec.Struct, frozen=True):
    """An entry that accepts more findings than there are."""

    path: str
    code: str
    accepted: int
    found: int


class Baseline(msgspec.Struct, frozen=True):
    """What is accepted, and the file that says so; paths in it are relative to the file's folder."""

    path: str
    counts: Mapping[str, Mapping[str, int]] = {}

    @property
    def folder(self) -> str:
        """The folder that the paths are relative to."""
        return os.path.dirname(os.path.abspath(self.path))

    def key_of(self, path: str) -> str:
        """What a file is called in the baseline."""
        return os.path.relpath(path, self.folder).replace(os.sep, "/")

    def hidden_codes_of(self, result: Result) -> frozenset[str]:
        """The same for a result."""
        return self.hidden_codes(result.path, result.diagnostics)

    def hidden_codes(self, path: str, diagnostics: Iterable[Diagnostic]) -> frozenset[str]:
        """The rules of which none of these findings of a file is to be reported."""
        accepted = self.counts.get(self.key_of(path)) if self.counts else None
        if not accepted:
            return frozenset()
        found = Counter(item.code for item in diagnostics if not item.is_own)
        return frozenset(code for code, count in found.items() if count <= accepted.get(code, 0))

    def without_accepted(self, outcome: Outcome) -> Outcome:
        """The outcome without the findings that are accepted."""
        if not self.counts:
            return outcome
        unfixed = None if outcome.unfixed is None else self._shown(outcome.unfixed)
        return msgspec.structs.replace(outcome, result=self._shown(outcome.result), unfixed=unfixed)

    def _shown(self, result: Result) -> Result:
        hidden = self.hidden_codes(result.path, result.diagnostics)
        left = tuple(item for item in result.diagnostics if item.code not in hidden)
        return msgspec.structs.replace(result, diagnostics=left) if hidden else result

    def stale(self, tasks: Sequence[Task], outcomes: Iterable[Outcome], paths: Iterable[str]) -> list[Stale]:
        """The entries that accept more than was found: of the files that were checked and the rules that were run on
        them, and of files below the given paths that are gone.
        """
        if not self.counts:
            return []
        found = self._found(outcomes)
        checked = {self.key_of(task.path): task for task in tasks}
        folders = [self.key_of(path) for path in paths]
        stale = []
        for key, accepted in sorted(self.counts.items()):
            task = checked.get(key)
            if task is None and (os.path.exists(os.path.join(self.folder, key)) or not _is_below(key, folders)):
                continue
            for code, count in sorted(accepted.items()):
                here = found.get(key, {}).get(code, 0)
                if here < count and (task is None or _could_be_found(code, task.settings, task.path)):
                    stale.append(Stale(key, code, count, here))
        return stale

    def pruned(self, stale: Iterable[Stale]) -> "Baseline":
        """The baseline with stale entries lowered to what there is."""
        counts = {key: dict(accepted) for key, accepted in self.counts.items()}
        for entry in stale:
            counts[entry.path][entry.code] = entry.found
        return Baseline(self.path, counts)

    def accepting(self, outcomes: Iterable[Outcome], selectors: Sequence[str]) -> "Baseline":
        """The baseline with everything accepted that was found of the rules that the selectors name."""
        counts = {key: dict(accepted) for key, accepted in self.counts.items()}
        for outcome in outcomes:
            key = self.key_of(outcome.result.path)
            found = Counter(
                item.code
                for item in outcome.result.diagnostics
                if not item.is_own and any(names(selector, item.code, item.name) for selector in selectors)
            )
            if found:
                counts[key] = {**counts.get(key, {}), **found}
        return Baseline(self.path, counts)

    def write(self) -> None:
        """Write the file; nothing where there is no entry and no file.

        Raises:
            ConfigurationError: it cannot be written.
        """
        kept = {
            key: {code: count for code, count in sorted(accepted.items()) if count}
            for key, accepted in sorted(self.counts.items())
        }
        kept = {key: accepted for key, accepted in kept.items() if accepted}
        if not kept and not os.path.exists(self.path):
            return
        try:
            put(self.path, f"{json.dumps(kept, indent=2)}\n".encode())
        except WriteError as error:
            raise ConfigurationError(self.path, str(error)) from None

    def _found(self, outcomes: Iterable[Outcome]) -> Counts:
        return {
            self.key_of(outcome.result.path): Counter(item.code for item in outcome.result.diagnostics)
            for outcome in outcomes
        }


def locate() -> str:
    """The baseline that holds in the working folder: the nearest one upward within the repository, else the one that
    would be made here.
    """
    folder = os.getcwd()
    candidate = folder
    while True:
        path = os.path.join(candidate, DEFAULT_NAME)
        if os.path.isfile(path):
            return path if candidate != folder else DEFAULT_NAME
        parent = os.path.dirname(candidate)
        if parent == candidate or os.path.exists(os.path.join(candidate, ".git")):
            return DEFAULT_NAME
        candidate = parent


def load(path: str | None, *, may_be_missing: bool = False) -> Baseline:
    """The baseline in a file; without a ``path``, the one that holds here, which may be missing.

    Raises:
        ConfigurationError: it cannot be read, or is not what mllint writes.
    """
    may_be_missing = may_be_missing or path is None
    path = path or locate()
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        if may_be_missing:
            return Baseline(path)
        raise ConfigurationError(path, "there is no such file; `--suppress-all` makes it") from None
    except OSError as error:
        raise ConfigurationError(path, f"cannot be read: {(error.strerror or str(error)).lower()}") from None
    try:
        return Baseline(path, msgspec.convert(json.loads(data), Counts))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            path, f"is not a list of suppressions ({error}); it holds `{{FILE: {{CODE: COUNT}}}}`"
        ) from None


def _is_below(key: str, folders: Iterable[str]) -> bool:
    return any(folder == "." or key == folder or key.startswith(f"{folder}/") for folder in folders)


def _could_be_found(code: str, settings: Settings, path: str) -> bool:
    """Whether this run would have reported findings of a rule in a file; so too if there is no such rule any more."""
    from mllint import registry

    rules = {rule.code: rule for rule in registry.all_rules()}
    if code == registry.UNUSED_SUPPRESSION[0]:
        return chosen_rules(settings, path).checks_suppressions
    if code not in rules:
        return True
    rule = rules[code]
    if code not in chosen_rules(settings, path).codes:
        return False
    return policy_of(settings).shows(rule.code, rule.name, rule.severity)
