"""What the findings in a file rest on beside the file itself: who asked the disk what."""

from typing import TypeAlias

from mllint.semantic.files.disk import Disk, Question

Facts: TypeAlias = tuple[tuple[Question, str], ...]
"""Questions to the disk with their answers."""


class Reads:
    """The questions that were asked while the model of each file was derived.

    What one model derives it also tells the models that ask it, and remembers. So the findings in a file rest on what
    was asked for it, and on whatever was ever asked for a file whose content was asked for.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._asked: dict[str, dict[Question, None]] = {}

    def note(self, reader: str, question: Question) -> str:
        """Ask on behalf of a file, by its real path."""
        answer = self._disk.answer(question)
        self._asked.setdefault(reader, {})[question] = None
        return answer

    def readers(self, path: str) -> tuple[str, ...]:
        """The file and all files on whose behalf something was asked that its findings may rest on, sorted."""
        found = {path}
        left = [path]
        while left:
            for kind, *arguments in self._asked.get(left.pop(), ()):
                if kind == "content" and arguments[0] not in found:
                    found.add(arguments[0])
                    left.append(arguments[0])
        return tuple(sorted(reader for reader in found if reader in self._asked))

    def facts(self, reader: str) -> Facts:
        """What was asked for one file, and what the disk said, sorted."""
        return tuple((question, self._disk.answer(question)) for question in sorted(self._asked.get(reader, ())))

    def dependencies(self, path: str) -> tuple[str, ...]:
        """The other files whose content the findings in a file depend on, sorted."""
        found = {
            question[1] for reader in self.readers(path) for question in self._asked[reader] if question[0] == "content"
        }
        return tuple(sorted(found - {path}))
