"""What a file is called in a report that another program reads: by its path from the root of the repository."""

import os
from pathlib import Path
from urllib.parse import quote


def repository_root(*variables: str) -> str:
    """The folder that a CI service calls the project.

    That is what the first of these environment variables that is set names, else the nearest folder upward with a
    ``.git``, else the working folder.
    """
    for variable in variables:
        if os.environ.get(variable):
            return os.path.abspath(os.environ[variable])
    folder = os.getcwd()
    candidate = folder
    while not os.path.exists(os.path.join(candidate, ".git")):
        parent = os.path.dirname(candidate)
        if parent == candidate:
            return folder
        candidate = parent
    return candidate


def below(root: str, path: str) -> str | None:
    """The path from a folder, with ``/``; ``None`` where it does not lie below. ``-`` (standard input) stays."""
    if path == "-":
        return path
    absolute = os.path.abspath(path)
    for base, target in ((root, absolute), (os.path.realpath(root), os.path.realpath(absolute))):
        try:
            is_below = os.path.commonpath((base, target)) == base
        except ValueError:  # on two drives
            return None
        if is_below:
            return os.path.relpath(target, base).replace(os.sep, "/")
    return None


def uri_path(path: str) -> str:
    """A path with ``/`` as part of an address: every odd byte escaped."""
    return quote(os.fsencode(path))


def file_uri(folder_or_file: str) -> str:
    """The ``file:`` address of a path."""
    absolute = Path(os.path.abspath(folder_or_file)).as_posix()
    return f"file:///{quote(os.fsencode(absolute.lstrip('/')))}"
