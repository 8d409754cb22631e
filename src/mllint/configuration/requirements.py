"""Which framework versions a project asks for: the bounds of its dependency on each.

Read from ``pyproject.toml`` (``[project] dependencies``, or Poetry's table), ``setup.cfg`` and ``setup.py``
(``install_requires``), ``requirements.txt``, others like ``requirements-gpu.txt`` or ``requirement.txt``, conda's
``environment.yml``, ``environment-gpu.yml`` and the like, and the commands of an ``install.sh`` or ``setup_env.sh``: in
the folder of a file, or the nearest one above it, up to the root of its project. The first that names the framework
decides; where none does, a ``README`` in which such a requirement, or a version of Paddle, is written. These files only
refine what the rules say, so one that cannot be read or understood counts as one that says nothing.
"""

import codecs
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

Version = tuple[int, int]

FILES = ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt")
"""What says so, in the order of asking; then come other lists of requirements, conda's environments, and scripts."""
_REQUIREMENT_WORDS = frozenset({"requirement", "requirements"})
_ENVIRONMENT_WORDS = frozenset({"env", "environment", "conda"})
_INSTALL_WORDS = frozenset({"install", "setup"}) | _REQUIREMENT_WORDS | _ENVIRONMENT_WORDS

_PACKAGES = {
    "torch": ("torch",),
    "paddle": ("paddlepaddle", "paddlepaddle-gpu"),
}

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;#)]*)")
_CONDA_REQUIREMENT = re.compile(r"\s*-\s*[\"']?(?:[\w.-]+::)?([A-Za-z0-9][\w.-]*)\s*([^\"'#]*)")
_INSTALLED = re.compile(r"^[^#\n]*?\b(?:conda|mamba|pip3?)[ \t]+install\b((?:[^#\n\\;&|]|\\\n)*)", re.MULTILINE)
_CHANNEL = frozenset({"-c", "--channel"})
_CONDA_NAMES = {"pytorch": "torch", "pytorch-cpu": "torch", "pytorch-gpu": "torch"}
_PADDLE_NAME = r"paddle(?:paddle)?(?:[-_]gpu)?"
_WRITTEN = re.compile(
    rf"(?<![\w-])(pytorch|torch|{_PADDLE_NAME})(?:\s*`)?\s*((?:==|>=|~=|=)\s*v?\d[\w.]*)", re.IGNORECASE
)
_SAID = re.compile(rf"(?<![\w-]){_PADDLE_NAME}[\s*`:：|]*v?([1-9]\d*\.\d+)", re.IGNORECASE)
_LOWER_BOUND = re.compile(r"(?:>=|~=|===?|>|\^|~)\s*v?(\d+)(?:\.(\d+))?")
_UPPER_BOUND = re.compile(r"(<=?|~=|===?|\^|~)\s*v?(\d+)(?:\.(\d+))?(\.\d+)?")


class Bounds(NamedTuple):
    """Which versions of a framework are allowed: from ``lowest`` on, and only those below ``below``."""

    lowest: Version | None
    below: Version | None


def says_versions(name: str) -> bool:
    """Whether a file of that name may say which versions the code beside it, and below, asks for."""
    is_list = name in FILES or _is_requirements(name) or _is_environment(name)
    return is_list or _is_install_script(name) or _is_readme(name)


def _is_readme(name: str) -> bool:
    """Whether a file is named like a manual, also one of several: ``README.md``, ``README_en.md``, ``README0.md``."""
    stem, _, ending = name.lower().rpartition(".")
    return re.match("readme(?![a-z])", stem) is not None and ending in ("md", "rst", "txt")


def _is_install_script(name: str) -> bool:
    """Whether a file is named like a script that installs what the project needs: ``install.sh``, ``setup-env.sh``."""
    stem, _, ending = name.lower().rpartition(".")
    return ending == "sh" and not _INSTALL_WORDS.isdisjoint(re.split("[-_.]", stem))


def _is_environment(name: str) -> bool:
    """Whether a file is named like an environment of conda: ``environment.yml``, ``env_gpu.yaml``, ``my-conda.yml``."""
    stem, _, ending = name.lower().rpartition(".")
    return ending in ("yml", "yaml") and not _ENVIRONMENT_WORDS.isdisjoint(re.split("[-_.]", stem))


def _is_requirements(name: str) -> bool:
    """Whether a file is named like a list for pip: ``requirement.txt``, ``requirements-gpu.txt``."""
    stem, _, ending = name.lower().rpartition(".")
    return ending == "txt" and not _REQUIREMENT_WORDS.isdisjoint(re.split("[-_.]", stem))


class Requirements:
    """Which versions the files of projects are made for; each folder is looked at once."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, str], dict[str, Bounds]] = {}
        self._said: _Said = {}

    def of(self, path: str, root: str) -> dict[str, str]:
        """The lowest version of each framework that what stands nearest to a file allows, if it says so.

        ``root`` is that of its project. Keys are ``torch`` and ``paddle``, values like ``"2.6"``.
        """
        return _lowest_of(self._bounds(path, root))

    def below(self, path: str, root: str) -> dict[str, str]:
        """The version of each framework below which what stands nearest to a file stays, if it says so."""
        return {name: _text(asked.below) for name, asked in self._bounds(path, root).items() if asked.below}

    def _bounds(self, path: str, root: str) -> dict[str, Bounds]:
        folder = os.path.dirname(os.path.abspath(path))
        key = (folder, root)
        if key not in self._asked:
            self._asked[key] = _asked_in(_folders(os.path.realpath(folder), root), self._said)
        return self._asked[key]


def _folders(folder: str, root: str) -> list[str]:
    """A folder and those above it up to a root; the root alone where it is none of them."""
    folders = [folder]
    while folder != root:
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return [root]
        folders.append(folder)
    return folders


def lower_bounds(*folders: str) -> dict[str, str]:
    """The lowest version of each framework that the first of some folders allows which names it, if it says so.

    Keys are ``torch`` and ``paddle``, values like ``"2.6"``.
    """
    return _lowest_of(_asked_in(list(folders), {}))


def _lowest_of(asked: dict[str, Bounds]) -> dict[str, str]:
    return {name: _text(bounds.lowest) for name, bounds in asked.items() if bounds.lowest}


def _asked_in(folders: list[str], said: "_Said") -> dict[str, Bounds]:
    """What the first of some folders that names each framework asks for; ``said`` remembers what stands in each."""
    asked: dict[str, Bounds] = {}
    for framework in _PACKAGES:
        told = (
            _read_once(folder, readers, said).get(framework) for readers in (_LISTS, _MANUALS) for folder in folders
        )
        found = next((bounds for bounds in told if bounds is not None), None)
        if found is not None:
            asked[framework] = found
    return asked


def _text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def lower_bound(specifier: str) -> Version | None:
    """The lowest version that ``>=2.1,<3``, ``~=2.1.0``, ``==2.1.*`` or ``^2.1`` allows, if any."""
    bounds = [
        (int(match[1]), int(match[2] or 0))
        for part in specifier.split(",")
        if (match := _LOWER_BOUND.match(part.strip()))
    ]
    return max(bounds, default=None)


def upper_bound(specifier: str) -> Version | None:
    """The version below which ``>=2.1,<2.6``, ``<=2.5``, ``~=2.1.0``, ``==2.1.*`` or ``^2.1`` stay, if any."""
    bounds: list[Version] = []
    for part in specifier.split(","):
        match = _UPPER_BOUND.match(part.strip())
        if match is None:
            continue
        sign, major, minor = match[1], int(match[2]), int(match[3] or 0)
        if sign == "<":
            bounds.append((major, minor) if not match[4] else (major, minor + 1))
        elif match[3] is None or (sign == "^" and major > 0) or (sign == "~=" and match[4] is None):
            bounds.append((major + 1, 0))
        else:
            bounds.append((major, minor + 1))
    return min(bounds, default=None)


def _read_once(folder: str, readers: "tuple[_Reader, ...]", said: "_Said") -> dict[str, Bounds]:
    """What the first file of a folder that names each framework allows."""
    key = (folder, readers)
    if key not in said:
        said[key] = _read_bounds(folder, readers) if _named(folder, says_versions) else {}
    return said[key]


def _read_bounds(folder: str, readers: "tuple[_Reader, ...]") -> dict[str, Bounds]:
    found: dict[str, Bounds] = {}
    for read in readers:
        asked = [(name.lower().replace("_", "-"), specifier) for name, specifier in read(folder)]
        for framework, packages in _PACKAGES.items():
            specifiers = [specifier for name, specifier in asked if name in packages]
            if specifiers and framework not in found:
                # Lines for several platforms: the code must run with all that any of them allows, and one without
                # a bound allows everything.
                lowest = [lower_bound(specifier) for specifier in specifiers]
                below = [upper_bound(specifier) for specifier in specifiers]
                found[framework] = Bounds(_if_all(min, lowest), _if_all(max, below))
    return found


def _if_all(choose: Callable[[list[Version]], Version], bounds: list[Version | None]) -> Version | None:
    known = [bound for bound in bounds if bound is not None]
    return choose(known) if len(known) == len(bounds) else None


def _split(requirements: Iterable[object]) -> Iterator[tuple[str, str]]:
    """Name and specifier of each requirement line."""
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement) if isinstance(requirement, str) else None
        if match:
            yield match[1], match[2].strip()


def _from_pyproject(root: str) -> Iterator[tuple[str, str]]:
    import tomllib

    try:
        with open(os.path.join(root, "pyproject.toml"), "rb") as file:
            table = tomllib.load(file)
    except (OSError, ValueError):
        return
    dependencies = _get(table, "project", "dependencies")
    if isinstance(dependencies, list):
        yield from _split(dependencies)
    poetry = _get(table, "tool", "poetry", "dependencies")
    for name, value in poetry.items() if isinstance(poetry, dict) else ():
        specifier = _get(value, "version") if isinstance(value, dict) else value
        if isinstance(specifier, str):
            # Poetry reads a bare version as a caret.
            yield name, f"^{specifier}" if specifier[:1].isdigit() else specifier


def _get(table: Any, *keys: str) -> object:
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    found: object = table
    return found


def _from_setup_cfg(root: str) -> Iterator[tuple[str, str]]:
    text = _read(os.path.join(root, "setup.cfg"))
    if "install_requires" not in text:
        return
    import configparser

    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
        requirements = parser.get("options", "install_requires", fallback="")
    except configparser.Error:
        return
    yield from _split(requirements.splitlines())


def _from_setup_py(root: str) -> Iterator[tuple[str, str]]:
    """What ``setup(install_requires=[...])`` lists where it stands written in the call, or in a list by that name."""
    text = _read(os.path.join(root, "setup.py"))
    if "install_requires" not in text:
        return
    import ast

    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lists: dict[str, ast.expr] = {}
    given: ast.expr | None = None
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List() | ast.Tuple() as value):
                lists[name] = value
            case ast.keyword(arg="install_requires", value=value):
                given = value
    given = lists.get(given.id) if isinstance(given, ast.Name) else given
    if isinstance(given, (ast.List, ast.Tuple)):
        yield from _split(item.value for item in given.elts if isinstance(item, ast.Constant))


def _from_requirements_txt(root: str) -> Iterator[tuple[str, str]]:
    return _from_requirements(os.path.join(root, "requirements.txt"))


def _from_other_requirements(root: str) -> Iterator[tuple[str, str]]:
    for name in _named(root, _is_requirements):
        yield from _from_requirements(os.path.join(root, name))


def _from_requirements(path: str) -> Iterator[tuple[str, str]]:
    lines = _read(path).splitlines()
    yield from _split(line for line in lines if not line.lstrip().startswith(("#", "-")))


def _named(root: str, is_meant: Callable[[str], bool]) -> list[str]:
    try:
        return sorted(name for name in os.listdir(root) if is_meant(name))
    except OSError:
        return []


def _from_environment(root: str) -> Iterator[tuple[str, str]]:
    """The dependencies of conda's environments, those for pip included, row by row: ``- pytorch=1.10.2``.

    ``=1.10`` (or a blank) means ``==1.10.*``; a build may follow, and the channel stand before the name.
    """
    for name in _named(root, _is_environment):
        section = ""
        for line in _read(os.path.join(root, name)).splitlines():
            if line[:1].isalpha():
                section = line.partition(":")[0]
            match = _CONDA_REQUIREMENT.match(line) if section == "dependencies" else None
            if match:
                specifier = re.sub(r"^=?(?=\d)", "==", match[2].strip())
                yield _CONDA_NAMES.get(match[1].lower(), match[1]), specifier


def _from_install_script(folder: str) -> Iterator[tuple[str, str]]:
    """What ``pip install`` and ``conda install`` are given."""
    for name in _named(folder, _is_install_script):
        for given in _INSTALLED.findall(_read(os.path.join(folder, name))):
            words = given.replace("\\\n", " ").split()
            for before, word in itertools.pairwise(["", *words]):
                match = _REQUIREMENT.match(word.strip("\"'"))
                if match and before not in _CHANNEL:
                    yield _CONDA_NAMES.get(match[1].lower(), match[1]), re.sub(r"^=(?=\d)", "==", match[2].strip())


def _from_readme(folder: str) -> Iterator[tuple[str, str]]:
    """What a README writes as a requirement, ``torch==1.10.1`` or ``PyTorch >= 1.7``, and which Paddle it says it is
    for: ``PaddlePaddle 2.3.2``, where it writes no requirement of that; a bare name says nothing.
    """
    for name in _named(folder, _is_readme):
        text = _read(os.path.join(folder, name))
        written = [(_framework_of(word), specifier) for word, specifier in _WRITTEN.findall(text)]
        yield from ((package, re.sub(r"^=(?=[\s\d])", "==", specifier)) for package, specifier in written)
        if all(package == "torch" for package, _ in written):
            yield from (("paddlepaddle", f"=={version}") for version in _SAID.findall(text))


def _framework_of(word: str) -> str:
    return "torch" if word.lower().endswith("torch") else "paddlepaddle"


def _read(path: str) -> str:
    """The text of a file; empty where there is none. What PowerShell writes into a file is UTF-16, as its mark says."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return ""
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_wide else "utf-8-sig", errors="replace")


_Reader = Callable[[str], Iterator[tuple[str, str]]]
_LISTS: tuple[_Reader, ...] = (
    _from_pyproject,
    _from_setup_cfg,
    _from_setup_py,
    _from_requirements_txt,
    _from_other_requirements,
    _from_environment,
    _from_install_script,
)
_MANUALS: tuple[_Reader, ...] = (_from_readme,)
_Said = dict[tuple[str, tuple[_Reader, ...]], dict[str, Bounds]]
"""What the files of each folder say, by those that are read."""
