"""Names that are nearly the same: how many letters apart two words are."""

_SHORTEST = 4
"""The letters of a word in which another one is a slip."""


def distance(first: str, second: str) -> int:
    """How many letters must be added, dropped, replaced or swapped with the next to make one word of another."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        before, last, row = row, before, [i]
        for j, other in enumerate(second, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != other)))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other:
                row[j] = min(row[j], last[j - 2] + 1)
    return row[-1]


def is_slip(one: str, other: str) -> bool:
    """Whether two names are the same but for a slip in one of their words: ``lr_shceduler`` and ``lr_scheduler``.

    What tells them apart on purpose is shorter, a number, or an ending: ``scheduler_g`` and ``scheduler_d``.
    """
    words, others = one.split("_"), other.split("_")
    differing = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
    if len(words) != len(others) or len(differing) != 1:
        return False
    ((first, second),) = differing
    is_inside = first[:1] == second[:1] and first[-1:] == second[-1:] and min(len(first), len(second)) >= _SHORTEST
    return is_inside and (first + second).isalpha() and distance(first, second) == 1
