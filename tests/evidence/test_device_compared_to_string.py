"""ML103: a tensor's device is an object that equals no string."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence

NEVER_TRUE: dict[str, Callable[[Any], bool]] = {
    "==": lambda x: x.device == "cpu",
    "== with index": lambda x: x.device == "cpu:0",
    "in tuple": lambda x: x.device in ("cuda", "cpu"),
    "in dict": lambda x: x.device in {"cpu": 1},
    "not !=": lambda x: (x.device != "cpu") is False,
}


@pytest.mark.parametrize("compare", NEVER_TRUE.values(), ids=NEVER_TRUE)
def test_torch_device_equals_no_string(torch: Any, compare: Any) -> None:
    assert compare(torch.ones(1)) is False
    assert compare(next(torch.nn.Linear(1, 1).parameters())) is False


def test_torch_comparison_with_its_own_name_is_false_on_every_device(torch: Any) -> None:
    for name in ("cpu", "meta"):
        x = torch.ones(1, device=name)
        assert x.device != name
        assert x.device.type == name
        assert x.device == torch.device(name)
    assert torch.device("cuda") != "cuda"


def test_torch_right_forms(torch: Any) -> None:
    x = torch.ones(1)
    assert x.device.type == "cpu"
    assert str(x.device) == "cpu"
    assert f"{x.device}" == "cpu"
    assert x.device == torch.device("cpu")
    assert x.is_cpu
    assert not x.is_cuda


def test_torch_device_with_and_without_index_differ(torch: Any) -> None:
    """So ``torch.device("cuda")`` is no fix for ``== "cuda"``; the type is."""
    assert torch.device("cuda") != torch.device("cuda:0")
    assert torch.device("cuda:0").type == torch.device("cuda").type == "cuda"
    assert torch.device("cuda:1").index == 1


def test_torch_string_methods_raise(torch: Any) -> None:
    """Not silent, so not this rule's business."""
    x = torch.ones(1)
    with pytest.raises(TypeError):
        _ = "cpu" in x.device
    with pytest.raises(AttributeError):
        x.device.startswith("cpu")


def test_paddle_place_equals_no_string(paddle: Any) -> None:
    x = paddle.ones([1])
    assert x.place != "cpu"
    assert x.place != "Place(cpu)"
    assert x.place not in ("cpu", "gpu")


def test_paddle_right_forms(paddle: Any, paddle_version: tuple[int, int]) -> None:
    x = paddle.ones([1])
    assert x.place.is_cpu_place()
    assert not x.place.is_gpu_place()
    assert str(x.place) == "Place(cpu)"
    assert paddle.get_device() == "cpu"  # of the process, and a string
    if paddle_version < (3, 1):
        # two places never compare equal there, not even one with itself
        assert x.place != paddle.CPUPlace()
        assert x.place != x.place
    else:
        assert x.place == paddle.CPUPlace()


def test_paddle_device_is_a_string_since_3_3(paddle: Any, paddle_version: tuple[int, int]) -> None:
    """The look-alike: there ``x.device == "cpu"`` is right; before, tensors had no ``device``."""
    x = paddle.ones([1])
    if paddle_version < (3, 3):
        assert not hasattr(x, "device")
    else:
        assert x.device == "cpu"
        assert isinstance(x.device, str)
