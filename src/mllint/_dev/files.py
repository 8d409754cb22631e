"""Which files the corpus report and the benchmark look at."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path


def python_files(paths: Iterable[Path]) -> list[Path]:
    """Every regular ``.py`` file at or below the paths, sorted; nothing is excluded but ``.git``.

    Raises:
        FileNotFoundError: a path does not exist.
    """
    found: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(path)
        found.update([path] if path.is_file() else _below(path))
    return sorted(found)


def _below(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            path = Path(root, name)
            # A link leads to a file that is seen elsewhere, or to nothing.
            if name.endswith(".py") and not path.is_symlink() and path.is_file():
                yield path
