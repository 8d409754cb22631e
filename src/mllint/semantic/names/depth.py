"""How deep the derivation of a value is."""


class Depth:
    """A counter that all files of a project share, so that a chain through many files is bounded too."""

    def __init__(self) -> None:
        self.value = 0
