"""What the findings in a file rest on beside the file itself: who asked the disk what."""

from collections.abc import Iterable
from typing import TypeAlias

from mllint.semantic.files.disk import Disk, Question

Facts: TypeAlias = tuple[tuple[Question, str], ...]
"""Questions to the disk with their answers."""
Asker: TypeAlias = tuple[str, bool]
"""A file, by its real path, and whether it is meant as the one that was checked, asking for those who use its code."""


class Reads:
    """The questions that were asked while the model of each file was derived, and while each file was checked.

    What one model derives from what it imports it also tells the models that ask it, and remembers. So the findings in
    a file rest on what was asked for it, and on whatever was ever asked for a file whose content was asked for.

    Who calls a function, or uses a class, in another file is asked by rules about the file that they check. Nobody
    remembers the answers beyond that check, so only the findings of that one file rest on them: else a
    change of any program would have every file looked at again from which the program imports something.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._asked: dict[str, dict[Question, None]] = {}
        self._asked_of_users: dict[str, dict[Question, None]] = {}
        self._checked = ""

    def begin(self, path: str) -> bool:
        """From now on a file is checked, by its real path; whether users were asked for while the one before was."""
        were_asked = self._checked in self._asked_of_users
        self._checked = path
        self._asked_of_users.pop(path, None)
        return were_asked

    def note(self, reader: str, question: Question) -> str:
        """Ask on behalf of a file, by its real path."""
        answer = self._disk.answer(question)
        self._asked.setdefault(reader, {})[question] = None
        return answer

    def note_of_users(self, question: Question) -> str:
        """Ask about the users of some code, on behalf of the file that is being checked, whoever needs to know."""
        answer = self._disk.answer(question)
        self._asked_of_users.setdefault(self._checked, {})[question] = None
        return answer

    def askers(self, path: str) -> tuple[Asker, ...]:
        """On whose behalf something was asked that the findings in a file may rest on, sorted."""
        of_users = self._asked_of_users.get(path, {})
        left = [path, *_contents(of_users)]
        found = set(left)
        while left:
            for other in _contents(self._asked.get(left.pop(), ())):
                if other not in found:
                    found.add(other)
                    left.append(other)
        askers = sorted((reader, False) for reader in found if reader in self._asked)
        return (*askers, (path, True)) if of_users else tuple(askers)

    def facts(self, asker: Asker) -> Facts:
        """What was asked for one file, and what the disk said, sorted."""
        return tuple((question, self._disk.answer(question)) for question in sorted(self._questions(asker)))

    def dependencies(self, path: str) -> tuple[str, ...]:
        """The other files whose content the findings in a file depend on, sorted."""
        found = {other for asker in self.askers(path) for other in _contents(self._questions(asker))}
        return tuple(sorted(found - {path}))

    def _questions(self, asker: Asker) -> dict[Question, None]:
        path, is_for_users = asker
        return (self._asked_of_users if is_for_users else self._asked).get(path, {})


def _contents(questions: Iterable[Question]) -> list[str]:
    """The files whose content is asked for."""
    return [question[1] for question in questions if question[0] == "content"]
