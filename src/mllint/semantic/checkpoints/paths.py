"""The paths of files as far as they are known, and when two of them are the same."""

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

# Around the name of a part that is not known.
_MARK = "\0"
# As it looks in a pattern.
_SUFFIX = re.compile(r"\\\.[a-z]{2,4}")
# Only a training writes such files in Paddle: weights come from anywhere.
_OF_TRAINING = re.compile(r"\.pd(?:opt|ema|states)$")
_OF_OTHERS = re.compile("pre[-_ ]?train|backbone|imagenet|init", re.IGNORECASE)
"""What paths, and the options that hold them, are called where the weights are somebody else's."""
_MIN_LETTERS = 3
"""How many letters of a file's name must be known before it says anything."""


@dataclass(frozen=True)
class Path:
    """A path: text in which the parts that are not known stand as names between marks.

    Two such names are alike only where they stand for the same value.
    """

    text: str

    @classmethod
    def unknown(cls, name: str) -> "Path":
        """A path of which only that it is the value with this name is known."""
        return cls(f"{_MARK}{name.replace('/', '|')}{_MARK}")

    @cached_property
    def is_literal(self) -> bool:
        """Whether every part is known."""
        return _MARK not in self.text

    @cached_property
    def known(self) -> list[str]:
        """The texts between the parts that are not known."""
        return self.text.split(_MARK)[::2]

    def with_known(self, change: Callable[[str], str]) -> "Path":
        """The path with something done to each of these texts, in their order."""
        pieces = self.text.split(_MARK)
        return Path(_MARK.join(piece if index % 2 else change(piece) for index, piece in enumerate(pieces)))

    def replaced(self, old: str, new: str) -> "Path | None":
        """The path with a text in the place of another, where that is in what is known of it."""
        if not old or not any(old in piece for piece in self.known):
            return None
        return self.with_known(lambda piece: piece.replace(old, new))

    @cached_property
    def is_blank(self) -> bool:
        """Whether no letter of it is known."""
        return not re.sub(f"{_MARK}[^{_MARK}]*{_MARK}", "", self.text).strip("./")

    @cached_property
    def is_of_others(self) -> bool:
        """Whether a name in it tells that somebody else has made the file."""
        return _OF_OTHERS.search(self.text) is not None

    @cached_property
    def normal(self) -> str:
        """The path without needless parts."""
        return posixpath.normpath(self.text.replace("\\", "/")) if self.text else ""

    @cached_property
    def _parts(self) -> tuple[str, str]:
        folder, _, name = self.normal.rpartition("/")
        return folder, name

    @cached_property
    def is_ending(self) -> bool:
        """Whether no more is known of it than how it ends: ``path + "_critic"``."""
        return self.normal.startswith(_MARK) and not self._parts[0]

    def may_be_told_by(self, other: "Path") -> bool:
        """Whether what is known of two paths may tell, in different files of the code, that they are one.

        An ending does not, unless the rest is spelled alike, too: ``f"{args.name}_best.pth"``.
        """
        if self.normal == other.normal or not (self.is_ending or other.is_ending):
            return True
        spelled, as_there = (re.sub(f"@[^{_MARK}]*{_MARK}", _MARK, path.normal) for path in (self, other))
        return spelled == as_there and all("." in name for name in spelled.split(_MARK)[1::2])

    @cached_property
    def folders(self) -> list[str]:
        """The folders around the file, the outermost first, where the innermost is known."""
        folders = self._parts[0].split("/")
        return [] if _MARK in folders[-1] else [folder for folder in folders if folder not in ("", ".")]

    @cached_property
    def unknown_folder(self) -> str | None:
        """The name of the value that gives the folder of the file, where no more is known of that."""
        found = re.fullmatch(f"{_MARK}([^{_MARK}]*){_MARK}", self._parts[0].rpartition("/")[2])
        return None if found is None else found[1]

    @property
    def _is_in_any_folder(self) -> bool:
        return _MARK in self._parts[0] or self.is_ending

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = re.split(f"{_MARK}[^{_MARK}]*{_MARK}", self._parts[1])
        return re.compile(".+".join(map(re.escape, pieces)), re.DOTALL)

    def is_same_as(self, other: "Path") -> bool:
        """Whether the two surely name one file.

        Where folders are not known, a file's name of some length stands for the whole: ``out_dir + "/best.pth"``
        and ``os.path.join(args.out, "best.pth")``. So does a name with a gap: ``f"epoch_{n}.pth"``.
        """
        if self.normal == other.normal:
            return bool(self.text)
        if (self.is_literal and other.is_literal) or self.is_of_others is not other.is_of_others:
            return False
        (folder, name), (other_folder, other_name) = self._parts, other._parts
        if folder != other_folder and not (self._is_in_any_folder or other._is_in_any_folder):
            return False
        if _are_apart(folder, other_folder):
            return False
        if _MARK not in name and _MARK not in other_name:
            return name == other_name and _is_telling(name)
        if _MARK in name and _MARK in other_name:
            is_told = _is_telling(name) or (folder == other_folder and _have_one_in_common(name, other_name))
            return self._pattern.pattern == other._pattern.pattern and is_told
        return self._may_cover(other) or other._may_cover(self)

    def is_wider_than(self, other: "Path") -> bool:
        """Whether what is known of a name holds of another of which more is known, in the same folder.

        ``f"runs/{net}.pth"`` is wider than ``f"runs/{net}-{size}.pth"``.
        """
        (folder, name), (other_folder, other_name) = self._parts, other._parts
        filled = re.sub(f"{_MARK}[^{_MARK}]*{_MARK}", "-", other_name)
        is_there = folder == other_folder != "" and _is_telling(name) and _MARK in name and _MARK in other_name
        return is_there and self._pattern.fullmatch(filled) is not None

    def is_nearly(self, other: "Path") -> bool:
        """Whether two paths that are not the same differ in a slip only.

        That is a suffix that one lacks (``last`` and ``last.pth``, ``last.pth`` and ``last.pth.tar``), or one letter
        in the name of a folder (``weight/last.pth`` and ``weights/last.pth``).
        """
        (folder, name), (other_folder, other_name) = self._parts, other._parts
        if not _is_telling(name) or not _is_telling(other_name):
            return False
        pattern, other_pattern = self._pattern.pattern, other._pattern.pattern
        is_alike = folder == other_folder or _MARK in folder + other_folder
        if pattern == other_pattern:
            return folder != other_folder and _has_one_more_letter(*sorted((folder, other_folder), key=len))
        short, long = sorted((pattern, other_pattern), key=len)
        suffix = long.removeprefix(short)
        return is_alike and suffix != long and _SUFFIX.fullmatch(suffix) is not None

    def is_alike(self, other: "Path") -> bool:
        """Whether the names of two files are one, but for what is not known of them: ``net.pt``, ``net_{epoch}.pt``."""
        names = [
            re.sub(f"[-_]*(?:{_MARK}[^{_MARK}]*{_MARK})+", "", path.normal.rpartition("/")[2]) for path in (self, other)
        ]
        return names[0] == names[1] and _is_telling(names[0])

    @property
    def shown(self) -> str:
        """The path as a message shows it."""
        return re.sub(f"{_MARK}[^{_MARK}]*{_MARK}", "...", self.text)

    def has_other_folder(self, other: "Path") -> bool:
        """Whether the folder of only one of the two is known: they may be of two runs that write alike."""
        (folder, _), (other_folder, _) = self._parts, other._parts
        return all((folder, other_folder)) and (_MARK in folder) is not (_MARK in other_folder)

    def _may_cover(self, other: "Path") -> bool:
        """Whether the other's name, which is known, is one that this name, of which a part is not, may stand for."""
        name, other_name = self._parts[1], other._parts[1]
        if _MARK in other_name or _MARK not in name:
            return False
        if not _is_telling(name):
            return self._may_number(other)
        return self._pattern.fullmatch(other_name) is not None

    def _may_number(self, other: "Path") -> bool:
        """Whether a number is all that sets the other's name apart from this, in a folder of some length.

        ``f"checkpoints/{step}.model"`` and ``"checkpoints/600000.model"``.
        """
        (folder, _), (other_folder, other_name) = self._parts, other._parts
        if folder != other_folder or _MARK in folder or not _is_telling(folder):
            return False
        numbered = self._pattern.pattern.replace(".+", r"\d+")
        return re.fullmatch(numbered, other_name) is not None


def _have_one_in_common(*names: str) -> bool:
    """Whether two names, alike in what is known of them, have one value in the same place: ``f"{run}_{epoch}"``.

    Something known must stand between the values: the first may be a folder in ``folder + name``.
    """
    one, other = (name.split(_MARK) for name in names)
    is_parted = all(one[2:-1:2]) and all(other[2:-1:2])
    return is_parted and any(left == right for left, right in zip(one[1::2], other[1::2], strict=False))


def _are_apart(*folders: str) -> bool:
    """Whether the innermost of two folders are known, and not the same: ``out_dir + "/vae"``, ``out_dir + "/gan"``."""
    one, other = (folder.rpartition("/")[2] for folder in folders)
    return bool(one and other) and one != other and _MARK not in one + other


def _has_one_more_letter(short: str, long: str) -> bool:
    """Whether a text is another with one letter put into a word."""
    if len(long) != len(short) + 1:
        return False
    at = next((index for index, letter in enumerate(short) if letter != long[index]), len(short))
    around = long[max(at - 1, 0) : at]
    return long[at].islower() and around.isalpha() and long[:at] + long[at + 1 :] == short


def joined(*parts: Path | None) -> Path | None:
    """The parts as folders and a file in them."""
    if not parts or any(part is None for part in parts):
        return None
    return Path("/".join(part.text.rstrip("/") for part in parts if part is not None and part.text))


def _is_telling(name: str) -> bool:
    """Whether what is known of a file's name, its suffix aside, sets it apart."""
    known = re.sub(f"{_MARK}[^{_MARK}]*{_MARK}", "", name)
    if _OF_TRAINING.search(known):
        return True
    stem = re.sub(r"(\.[A-Za-z]+)+$", "", known)
    return len(re.findall(r"[A-Za-z]", stem)) >= _MIN_LETTERS
