"""What is said of files that a merge, a converter or a notebook has left rows in that are no Python."""

import pytest

from mllint.api import lint_source
