"""mllint: a linter for PyTorch and PaddlePaddle code.

Here is the library's front: ``lint_source`` and ``fix_source`` take one file's source and give back values. Importing
the package loads nothing else; each name is imported when it is first asked for.

From the top down, each of these imports only from those after it: the fronts (``cli``, ``flake8_plugin``, ``api``);
what the ``command`` does; ``running`` many files, and the ``output`` of it; the ``configuration``; the ``fixer`` and
the ``engine``, for one file; the ``rules``, and what they are made of (``rule``, ``context``, ``edits``); the
``semantic`` model; the ``syntax`` tree; ``knowledge`` of the frameworks, and ``diagnostics``. ``_dev`` is for who
works on mllint.
"""

import importlib
from typing import TYPE_CHECKING

from mllint.version import VERSION

if TYPE_CHECKING:
    from mllint.api import fix_source, lint_source
    from mllint.configuration.settings import Settings
    from mllint.diagnostics import Applicability, Diagnostic, Edit, Fix, Location, Result, Status
    from mllint.fixer import FixResult

__version__ = VERSION

__all__ = [
    "Applicability",
    "Diagnostic",
    "Edit",
    "Fix",
    "FixResult",
    "Location",
    "Result",
    "Settings",
    "Status",
    "__version__",
    "fix_source",
    "lint_source",
]

_HOME = {
    "Applicability": "mllint.diagnostics",
    "Diagnostic": "mllint.diagnostics",
    "Edit": "mllint.diagnostics",
    "Fix": "mllint.diagnostics",
    "FixResult": "mllint.fixer",
    "Location": "mllint.diagnostics",
    "Result": "mllint.diagnostics",
    "Settings": "mllint.configuration.settings",
    "Status": "mllint.diagnostics",
    "fix_source": "mllint.api",
    "lint_source": "mllint.api",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
