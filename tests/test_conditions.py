"""What a test comes out as where it is known what some of its names stand for."""

import libcst as cst
import pytest

from mllint.semantic.names.conditions import decided
from mllint.syntax.shape import constant


@pytest.mark.parametrize(
    ("test", "outcome"),
    [
        ("'vgg' in ('vgg', 'vgg16')", True),
        ("'vgg' in ['alex', 'squeeze']", False),
        ("'vgg' not in {'alex', 'squeeze'}", True),
        ("'vgg' not in ('vgg', other)", False),
        ("'vgg' in ('alex', other)", None),
        ("'vgg' in ('alex', *others)", None),
        ("kind in ('vgg', 'alex')", None),
        ("'vgg' in names", None),
        ("'vgg' == ('vgg',)", None),
        ("3 in (1, 2, 3) and 'a' not in ()", True),
    ],
)
def test_what_stands_in_a_display(test: str, outcome: bool | None) -> None:
    assert decided(cst.parse_expression(test), constant) is outcome
