"""The topics of the rules: the hundreds digit of a code, the folder under ``rules/``, the title."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """One block of codes and the folder of its rules."""

    digit: str
    folder: str
    title: str
    about: str

    @property
    def block(self) -> str:
        """The block as people write it, ``ML1xx``."""
        return f"ML{self.digit}xx"


TOPICS = (
    Topic("1", "tensors", "Tensors", "values, devices, dtypes"),
    Topic("2", "autograd", "Autograd", "graph, gradients, memory held by the graph"),
    Topic("3", "training", "Training", "the order and the mode of training and evaluation"),
    Topic("4", "modules", "Modules", "modules, parameters, checkpoints and state dicts"),
    Topic("5", "numerics", "Numerics", "losses, NaN, stability"),
    Topic("6", "data", "Data", "data loading, randomness, reproducibility"),
    Topic("7", "distributed", "Distributed", "several devices, several processes"),
    Topic("8", "migration", "Migration", "removed and renamed API, porting between frameworks"),
    Topic("9", "opinion", "Opinion", "advice that is not a defect; off unless selected"),
)


def topic_of(code: str) -> Topic:
    """The topic of a rule's code.

    Raises:
        ValueError: no topic has this block.
    """
    for topic in TOPICS:
        if code.startswith(f"ML{topic.digit}"):
            return topic
    raise ValueError(f"`{code}` is in no block of a topic")
