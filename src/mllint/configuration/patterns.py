"""Patterns of paths, written as in ``.gitignore``: one matcher for every place where they occur.

The matcher is imported only where a pattern is more than a plain name, which costs a lookup.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_PLAIN_NAME = re.compile(r"[\w.-]+")


class Patterns:
    """Some patterns; the last that says anything about a path decides.

    Paths are relative to the folder that the patterns are relative to, with ``/``; a folder's path
    ends in ``/``.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        """Raises ``ValueError`` naming a pattern that is none."""
        patterns = tuple(patterns)
        self._names: frozenset[str] = frozenset()
        self._spec: GitIgnoreSpec | None = None
        if all(_PLAIN_NAME.fullmatch(pattern) for pattern in patterns):
            self._names = frozenset(patterns)
        else:
            self._spec = _compiled(patterns)

    @classmethod
    def lenient(cls, lines: Iterable[str]) -> "Patterns":
        """The lines of a ``.gitignore`` file; as for git, a line that is no pattern is nothing."""
        valid = []
        for line in lines:
            try:
                cls((line,))
            except ValueError:
                continue
            valid.append(line)
        return cls(valid)

    def verdict(self, path: str) -> bool | None:
        """Whether the path is matched; ``None`` where no pattern says anything about it."""
        if self._spec is not None:
            return self._spec.check_file(path).include
        # A plain name matches at any depth, and with a folder all that is in it.
        return True if not self._names.isdisjoint(path.split("/")) else None


def _compiled(patterns: tuple[str, ...]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(patterns)
    except (ValueError, re.error):
        if len(patterns) == 1:
            raise ValueError(f"`{patterns[0]}` is not a pattern") from None
    for pattern in patterns:
        _compiled((pattern,))
    raise AssertionError("each pattern is valid, but not all together")
