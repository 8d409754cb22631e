"""Real code: ``MLLINT_CORPUS=~/code pytest -m corpus``.

Whatever stands in the folder: nothing crashes, hangs or takes long, and fixes hold what they
promise. Whether the findings are right is judged by a person: ``python -m mllint._dev corpus``.
"""

import os
from pathlib import Path

import pytest

from mllint._dev.corpus import examine, is_broken
from mllint._dev.files import python_files
from mllint.diagnostics import Status

pytestmark = pytest.mark.corpus

SECONDS = 10.0


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
def test_real_code(unsafe: bool) -> None:
    folder = os.environ.get("MLLINT_CORPUS")
    if folder is None:
        pytest.skip("MLLINT_CORPUS names no folder")
    reports = examine(
        python_files([Path(folder).expanduser()]),
        ("ML",),
        jobs=os.cpu_count() or 1,
        fixes=True,
        unsafe=unsafe,
    )
    analysed = [report for report in reports if report.result and report.result.status is Status.OK]
    assert len(analysed) >= 100, "too few files to say anything"
    assert any(report.result.diagnostics for report in analysed if report.result)
    assert [report.path for report in reports if is_broken(report)] == []
    assert [report.path for report in reports if report.seconds > SECONDS] == []
