"""mllint: a linter for PyTorch and PaddlePaddle code.

The library's front: ``lint_source`` and ``fix_source`` take one file's source and give back
values. Importing the package loads nothing else; each name is imported when it is first asked for.
"""

import importlib
from typing import TYPE_CHECKING

from mllint.version import VERSION

if TYPE_CHECKING:
    from mllint.api import fix_source, lint_source
    from mllint.diagnostics import Applicability, Diagnostic, Edit, Fix, Location, Result, Status
    from mllint.fixer import FixResult
    from mllint.settings import Settings

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
    "Settings": "mllint.settings",
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
