"""ML501: nothing equals NaN, NaN included; and which ``isnan`` takes what."""

# ruff: noqa: FURB171, SIM201, SIM300 - the comparisons are what is tested
# mllint: file-ignore[ML501] the comparisons are what is tested

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence

NAN = float("nan")


# ---- numbers ------------------------------------------------------------------------------------


def test_number_equals_no_nan() -> None:
    for nan in (float("nan"), float("NaN"), math.nan):
        assert not (NAN == nan)
        assert NAN != nan
        assert not any((NAN < nan, NAN > nan, NAN <= nan, NAN >= nan))


def test_number_is_compared_to_itself_rightly() -> None:
    """The look-alike: ``x != x`` is true for NaN alone."""
    assert NAN != NAN
    assert math.isnan(NAN)
    assert not math.isnan(3)


def test_identity_holds_for_the_constant_and_for_no_computed_value() -> None:
    """Why ``is`` and ``in`` look right when they are tried out with the constant."""
    computed = float("inf") - float("inf")
    assert math.isnan(computed)
    assert computed is not math.nan
    assert computed not in [math.nan]
    constant = math.nan
    assert constant is math.nan
    assert constant in [math.nan]
    assert [computed].count(math.nan) == 0


def test_math_isnan_takes_numbers_only() -> None:
    for wrong in (None, "nan", [1.0]):
        with pytest.raises(TypeError):
            math.isnan(wrong)


# ---- numpy --------------------------------------------------------------------------------------


def test_numpy_comparison_is_false_everywhere(numpy: Any) -> None:
    x = numpy.array([NAN, 1.0])
    assert not (x == numpy.nan).any()
    assert (x != numpy.nan).all()
    assert numpy.nan not in x
    assert x[0] is not numpy.nan
    assert x[0] not in [numpy.nan]
    assert numpy.where(x == numpy.nan)[0].size == 0


def test_numpy_isnan(numpy: Any) -> None:
    x = numpy.array([NAN, 1.0])
    assert numpy.isnan(x).tolist() == [True, False]
    assert (~numpy.isnan(x)).tolist() == [False, True]
    assert (x != x).tolist() == [True, False]
    assert numpy.isnan(NAN)
    assert numpy.isnan([1.0, NAN]).tolist() == [False, True]
    assert numpy.isnan(numpy.array([1])).tolist() == [False]
    for wrong in (None, "nan", numpy.array([None])):
        with pytest.raises(TypeError):
            numpy.isnan(wrong)


def test_numpy_old_spellings_are_gone_in_2(numpy: Any) -> None:
    for name in ("NaN", "NAN"):
        assert hasattr(numpy, name) is numpy.__version__.startswith("1.")


def test_math_isnan_and_arrays(numpy: Any) -> None:
    """``math.isnan`` is no fix for an array: of one element it depends on the version, of more it raises."""
    assert math.isnan(numpy.float32("nan"))
    assert math.isnan(numpy.array(NAN))
    with pytest.raises(TypeError):
        math.isnan(numpy.array([1.0, NAN]))


# ---- torch --------------------------------------------------------------------------------------

TORCH_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "x == float('nan')": lambda torch, x: x == float("nan"),
    "x == math.nan": lambda torch, x: x == math.nan,
    "x == torch.nan": lambda torch, x: x == torch.nan,
    "nan == x": lambda torch, x: float("nan") == x,
    "x == torch.tensor(nan)": lambda torch, x: x == torch.tensor(NAN),
    "x.eq(nan)": lambda torch, x: x.eq(NAN),
    "torch.eq(x, nan)": lambda torch, x: torch.eq(x, NAN),
    "not x != nan": lambda torch, x: ~(x != NAN),
    "not x.ne(nan)": lambda torch, x: ~x.ne(NAN),
}


@pytest.mark.parametrize("compare", TORCH_COMPARISONS.values(), ids=TORCH_COMPARISONS)
def test_torch_comparison_is_false_everywhere(torch: Any, compare: Any) -> None:
    x = torch.tensor([1.0, NAN])
    assert compare(torch, x).tolist() == [False, False]
    assert torch.isnan(x).tolist() == [False, True]


def test_torch_identity_and_membership_are_false(torch: Any) -> None:
    x, loss = torch.tensor([1.0, NAN]), torch.tensor(NAN)
    assert loss is not torch.nan
    assert loss.item() is not math.nan
    assert loss not in [torch.nan]
    assert loss.item() not in [math.nan]
    assert NAN not in x
    assert 1.0 in x
    assert torch.nan is math.nan  # one object: `math.nan in [torch.nan]` is True


def test_torch_mask_made_by_comparison_masks_nothing(torch: Any) -> None:
    x = torch.tensor([1.0, NAN])
    assert x.masked_fill(x == torch.nan, 0.0).isnan().any()
    assert x[x == torch.nan].numel() == 0
    assert x.masked_fill(torch.isnan(x), 0.0).tolist() == [1.0, 0.0]


def test_torch_right_forms(torch: Any) -> None:
    x = torch.tensor([1.0, NAN])
    for found in (torch.isnan(x), x.isnan(), x != x):
        assert found.tolist() == [False, True]
    assert (~torch.isnan(x)).tolist() == [True, False]
    assert torch.isnan(torch.tensor(NAN))
    assert not torch.isnan(torch.tensor(1.0))
    assert torch.isnan(torch.tensor([1])).tolist() == [False]
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(torch.isnan(x))  # as `if x == nan` did, unless there is one element


def test_torch_isnan_takes_tensors_only(torch: Any, numpy: Any) -> None:
    for wrong in (NAN, numpy.float32("nan"), numpy.array([NAN]), [NAN]):
        with pytest.raises(TypeError, match="must be Tensor"):
            torch.isnan(wrong)


def test_torch_math_isnan_takes_one_element(torch: Any) -> None:
    assert math.isnan(torch.tensor(NAN))
    assert math.isnan(torch.tensor([[NAN]]))
    assert not math.isnan(torch.tensor(3))
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        math.isnan(torch.tensor([1.0, NAN]))


def test_torch_numpy_isnan_is_no_fix_for_a_tensor(torch: Any, numpy: Any) -> None:
    """It gives 0 and 1 as bytes, whose ``~`` is 255 and 254; in the graph it raises."""
    x = torch.tensor([1.0, NAN])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy 2 calls torch's __array_wrap__ deprecated
        found = numpy.isnan(x)
    assert isinstance(found, torch.Tensor)
    assert found.dtype == torch.uint8
    assert (~found).tolist() == [255, 254]
    with pytest.raises(RuntimeError, match="requires grad"):
        numpy.isnan(x.requires_grad_())


def test_torch_whole_tensors_with_nan_are_never_equal(torch: Any) -> None:
    x = torch.tensor([1.0, NAN])
    assert not torch.equal(x, x)
    assert not torch.allclose(x, x)
    assert torch.allclose(x, x, equal_nan=True)


# ---- paddle -------------------------------------------------------------------------------------


def test_paddle_comparison_is_false_everywhere(paddle: Any) -> None:
    x = paddle.to_tensor([1.0, NAN])
    for found in (x == NAN, math.nan == x, paddle.equal(x, paddle.to_tensor(NAN))):
        assert found.tolist() == [False, False]
    assert (x != NAN).tolist() == [True, True]


def test_paddle_identity_and_membership_are_false(paddle: Any) -> None:
    x, loss = paddle.to_tensor([1.0, NAN]), paddle.to_tensor(NAN)
    assert loss is not math.nan
    assert loss.item() not in [math.nan]
    assert NAN not in x
    assert 1.0 in x


def test_paddle_nan_came_with_3(paddle: Any, paddle_version: tuple[int, int]) -> None:
    assert hasattr(paddle, "nan") is (paddle_version >= (3, 0))
    if paddle_version >= (3, 0):
        assert paddle.nan is math.nan
        assert not (paddle.to_tensor([NAN]) == paddle.nan).any()


def test_paddle_right_forms(paddle: Any) -> None:
    x = paddle.to_tensor([1.0, NAN])
    for found in (paddle.isnan(x), x.isnan(), x != x):
        assert found.tolist() == [False, True]
    assert (~paddle.isnan(x)).tolist() == [True, False]
    assert bool(paddle.isnan(paddle.to_tensor(NAN)))


def test_paddle_isnan_takes_tensors_only(paddle: Any, numpy: Any) -> None:
    for wrong in (NAN, numpy.array([NAN])):
        with pytest.raises((ValueError, TypeError), match="must be Tensor"):
            paddle.isnan(wrong)


def test_paddle_numpy_isnan_never_takes_a_tensor(paddle: Any, numpy: Any) -> None:
    x = paddle.to_tensor([1.0, NAN])
    with pytest.raises(TypeError, match="ufunc"):
        numpy.isnan(x)
    assert numpy.isnan(x.numpy()).tolist() == [False, True]


def test_paddle_math_isnan_takes_a_scalar(paddle: Any) -> None:
    assert math.isnan(paddle.to_tensor(NAN))
    with pytest.raises((AssertionError, TypeError, ValueError)):
        math.isnan(paddle.to_tensor([1.0, NAN]))
