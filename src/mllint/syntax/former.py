"""Programs that only Python before 3.7 can run, in which ``async`` is a name: ``tensor.cuda(async=True)``.

PyTorch had this argument until 0.4 and calls it ``non_blocking`` since. Much code of that time says nothing else that a
later Python does not understand, so the rest of it can be checked.
"""

import ast
import re

from mllint.syntax.source import syntax_tree

_ARGUMENT = re.compile(r"(?<=[(,\s])async(?=\s*=[^=])")
_STAND_IN = "asynk"
"""As long as the word itself, so that everything keeps its place."""


def former_argument(text: str) -> int | None:
    """The offset of the first such argument, in a text that is no program for its sake; ``None`` in any other."""
    found = _ARGUMENT.search(text) if "async" in text else None
    if found is None:
        return None
    try:
        syntax_tree(text)
    except SyntaxError:
        return found.start()
    except (ValueError, RecursionError, MemoryError):
        pass  # Python gives up on this text for another reason
    return None


def readable_tree(text: str) -> ast.Module:
    """The tree of a text, also where such arguments are in it; raises what ``ast`` raises."""
    try:
        return syntax_tree(text)
    except SyntaxError:
        if "async" not in text or _ARGUMENT.search(text) is None:
            raise
    tree = syntax_tree(_ARGUMENT.sub(_STAND_IN, text))
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == _STAND_IN:
            node.arg = "async"
    return tree
