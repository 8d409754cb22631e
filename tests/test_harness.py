"""The harness itself: markers are read as written, variants are the same program, checks can fail."""

import pytest

from harness.cases import Expected, MarkerError, all_cases, read_markers
from harness.style import assert_style
from harness.variants import VARIANTS, aliased, from_imported, spelled_out
from mllint.syntax.source import Source


def test_markers() -> None:
    markers = read_markers(
        b"""\
# variants: off, because the alias is the point
a()  # expect: ML101
b()  # expect: ML101[unsafe], ML102 , ML103[none]  # and a word
c()  # a word  # expect: ML101[display]
d(  # ok: ML101 a reason
)  # expect[-1]: ML104
text = "# expect: ML105"
""",
        "any.py",
    )
    assert markers.expected == (
        Expected(2, "ML101", None),
        Expected(3, "ML101", "unsafe"),
        Expected(3, "ML102", None),
        Expected(3, "ML103", "none"),
        Expected(4, "ML101", "display"),
        Expected(5, "ML104", None),
    )
    assert markers.ok == ((5, "ML101"),)
    assert markers.variants_off


@pytest.mark.parametrize(
    "comment",
    [
        "# expect ML101",
        "# expect: ML1",
        "# expect: ML101[sure]",
        "# expect: discarded-tensor-result",
        "# ok: ML101",
        "# ok: because",
    ],
)
def test_malformed_markers_are_errors(comment: str) -> None:
    with pytest.raises(MarkerError, match=r"any\.py:2"):
        read_markers(f"\nx = 1  {comment}\n".encode(), "any.py")


@pytest.mark.xdist_group("of this test")
def test_tests_of_a_case_run_in_one_process(request: pytest.FixtureRequest) -> None:
    # Else what is found in a fixture is worked out anew in each process: with pytest 9.2 nothing said so.
    if getattr(request.config.option, "loadgroup", False):
        assert request.node.nodeid.endswith("@of this test"), "pytest-xdist does not see the groups of tests"


PROGRAM = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import (
    DataLoader,
    Dataset as Base,
)


def f(x: "torch.Tensor", zeros):
    return nn.Linear(1, 2)(torch.ones(1) + torch.zeros(1)), DataLoader, Base
"""


def test_aliased_variant() -> None:
    assert (
        aliased(PROGRAM)
        == """\
import torch as torch_alias
import torch.nn as nn_alias
import torch.nn.functional as F_alias
from torch.utils.data import (
    DataLoader,
    Dataset as Base,
)


def f(x: "torch_alias.Tensor", zeros):
    return nn_alias.Linear(1, 2)(torch_alias.ones(1) + torch_alias.zeros(1)), DataLoader, Base
"""
    )


def test_from_imported_variant() -> None:
    assert (
        from_imported(PROGRAM)
        == """\
import torch; from torch import ones, zeros as torch_zeros
import torch.nn as nn; from torch.nn import Linear
import torch.nn.functional as F
from torch.utils.data import (
    DataLoader,
    Dataset as Base,
)


def f(x: "torch.Tensor", zeros):
    return Linear(1, 2)(ones(1) + torch_zeros(1)), DataLoader, Base
"""
    )


def test_spelled_out_variant() -> None:
    assert (
        spelled_out(PROGRAM)
        == """\
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch; import torch.utils.data





def f(x: "torch.Tensor", zeros):
    return nn.Linear(1, 2)(torch.ones(1) + torch.zeros(1)), torch.utils.data.DataLoader, torch.utils.data.Dataset
"""
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_other_bindings_are_left_alone(variant: str) -> None:
    text = "import torch\n\n\ndef f(torch):\n    return torch.zeros(1)\n"
    assert VARIANTS[variant](text) is None
    assert VARIANTS[variant]("import os\n\nos.getcwd()\n") is None


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_rewrite_some_fixtures(variant: str) -> None:
    texts = [Source.from_bytes(case.data, case.id).text for case in all_cases()[::4]]
    assert sum(VARIANTS[variant](text) is not None for text in texts) >= len(texts) / 3


@pytest.mark.parametrize(
    "text",
    ["", "Upper case", "a full stop.", "a `backtick is missing", "two\nlines", " blank", "x" * 89],
)
def test_style_is_enforced(text: str) -> None:
    with pytest.raises(AssertionError):
        assert_style(text, 88)


@pytest.mark.parametrize("text", ["`x` is y", "NaN is unequal", "lower case", "0-d tensor"])
def test_style_lets_pass(text: str) -> None:
    assert_style(text, 88)
