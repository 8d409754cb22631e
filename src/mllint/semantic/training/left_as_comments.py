"""Switches to evaluation mode that are left as a comment: who took them out wants training mode."""

import re
from typing import TYPE_CHECKING

from mllint.semantic.events.steps import Event
from mllint.semantic.names.scopes import Binding
from mllint.syntax.shape import dotted_path

if TYPE_CHECKING:
    from collections.abc import Iterator

_SWITCHED = re.compile(rb"^[^#\n]*\.(?:eval\(\s*\)|train\(\s*(?:mode\s*=\s*)?False)", re.MULTILINE)
"""A switch to evaluation mode that is no comment."""


def is_taken_out(forward: Event) -> bool:
    """Whether such a comment stands in a file from which a forward pass is reached, or in one beside these.

    Beside these it tells where nothing there is switched at all, and the module has the same path, an attribute.
    """
    called = None if forward.called is None else dotted_path(forward.called)
    if called is None:
        return False
    called = called.removesuffix(".forward")
    switch = _commented(called)
    if any(switch.search(frame.model.source.text.encode()) for frame in forward.frame.led_by()):
        return True
    paths = sorted(path for path in {called, *_paths_of(forward)} if "." in path and not path.startswith("self."))
    return bool(paths) and _is_taken_out_beside(forward, _commented(*paths))


def _commented(*paths: str) -> re.Pattern[bytes]:
    either = "|".join(map(re.escape, paths))
    return re.compile(rf"#[^\n]*\b(?:{either})\.eval\(".encode())


def _paths_of(forward: Event) -> "Iterator[str]":
    """How the module is written where it is handed to the function that calls it: ``validate(data, agent.policy)``."""
    thing = forward.thing
    if thing is not None and all(step.startswith(".") for step in thing.path):
        for root in thing.roots:
            if isinstance(root, Binding):
                yield root.key + "".join(thing.path)


def _is_taken_out_beside(forward: Event, switch: re.Pattern[bytes]) -> bool:
    model = forward.frame.model
    project = model.project
    if project is None or not project.is_written_near(model.path, switch):
        return False
    return not project.is_written_near(model.path, _SWITCHED)
