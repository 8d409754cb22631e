"""ML406: a ``forward`` that returns nothing gives None to whatever comes next."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_result_is_none_and_fails_later(torch: Any) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            x = self.fc(x)

    x = torch.ones(1, 2)
    assert Net()(x) is None
    with pytest.raises(TypeError, match="NoneType"):
        torch.nn.Sequential(Net(), torch.nn.Linear(2, 2))(x)
    with pytest.raises(AttributeError, match="NoneType"):
        Net()(x).sum()


def test_paddle_result_is_none_and_fails_later(paddle: Any) -> None:
    class Net(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.fc = paddle.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            x = self.fc(x)

    x = paddle.ones([1, 2])
    assert Net()(x) is None
    with pytest.raises((ValueError, TypeError), match="None"):
        paddle.nn.Sequential(Net(), paddle.nn.Linear(2, 2))(x)
