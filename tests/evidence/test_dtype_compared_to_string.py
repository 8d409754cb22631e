"""ML104: a tensor's dtype is an object that equals no string."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


@pytest.mark.parametrize("name", ["float32", "torch.float32", "float", "fp32"])
def test_torch_dtype_equals_no_string(torch: Any, name: str) -> None:
    x = torch.ones(1)
    assert (x.dtype == name) is False
    assert (x.dtype != name) is True
    assert x.dtype not in (name, "float16")
    assert x.dtype not in {name: 1}


def test_torch_right_forms(torch: Any) -> None:
    x = torch.ones(1)
    assert x.dtype == torch.float32
    assert x.dtype is torch.float
    assert str(x.dtype) == "torch.float32"
    assert x.type() == "torch.FloatTensor"
    assert x.dtype.is_floating_point
    assert torch.get_default_dtype() != "float32"


def test_torch_dtype_equals_no_numpy_dtype_either(torch: Any, numpy: Any) -> None:
    x = torch.ones(1)
    assert x.dtype != numpy.float32
    assert x.dtype != numpy.dtype("float32")


def test_numpy_dtype_does_equal_its_name(numpy: Any) -> None:
    """The look-alike: idiomatic there."""
    assert numpy.zeros(1).dtype == "float64"


def test_torch_string_methods_raise(torch: Any) -> None:
    with pytest.raises(TypeError):
        _ = "float" in torch.ones(1).dtype
    assert "float" in str(torch.ones(1).dtype)


@pytest.mark.parametrize("name", ["float32", "paddle.float32", "FP32"])
def test_paddle_dtype_equals_no_string(paddle: Any, name: str) -> None:
    x = paddle.ones([1])
    assert (x.dtype == name) is False
    assert (x.dtype != name) is True
    assert x.dtype not in (name, "float16")


def test_paddle_right_forms(paddle: Any, numpy: Any) -> None:
    x = paddle.ones([1])
    assert x.dtype == paddle.float32
    assert x.dtype in (paddle.float16, paddle.float32)
    assert str(x.dtype) == "paddle.float32"
    assert x.numpy().dtype == "float32"


def test_paddle_look_alikes_that_are_strings(paddle: Any) -> None:
    """The default dtype and a layer's own ``_dtype`` are strings: comparing them is right."""
    assert paddle.get_default_dtype() == "float32"
    assert paddle.nn.Linear(1, 1)._dtype == "float32"
