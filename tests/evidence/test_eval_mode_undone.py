"""ML324: `train()` reaches the parts that were put to evaluation mode before."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_train_reaches_every_part(torch: Any) -> None:
    frozen = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Dropout()).requires_grad_(False).eval()
    whole = torch.nn.Sequential(frozen, torch.nn.Linear(3, 1))
    inputs = torch.randn(64, 3) + 5
    fixed = frozen(inputs)
    assert torch.equal(frozen(inputs), fixed)
    before = frozen[0].running_mean.clone()
    whole.train()
    assert frozen.training
    assert not torch.equal(frozen(inputs), fixed), "the frozen part gives something else"
    assert not torch.equal(frozen[0].running_mean, before), "its statistics follow the new data"
    assert all(not parameter.requires_grad for parameter in frozen.parameters())


def test_torch_calls_the_train_of_its_parts(torch: Any) -> None:
    class Keeping(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.part = torch.nn.Dropout()

        def train(self, mode: bool = True) -> Any:
            super().train(mode)
            self.part.eval()
            return self

    whole = torch.nn.Sequential(Keeping())
    whole.train()
    assert whole[0].training
    assert not whole[0].part.training


def test_paddle_train_reaches_every_part(paddle: Any) -> None:
    frozen = paddle.nn.Sequential(paddle.nn.BatchNorm1D(3), paddle.nn.Dropout())
    for parameter in frozen.parameters():
        parameter.stop_gradient = True
    frozen.eval()
    whole = paddle.nn.Sequential(frozen, paddle.nn.Linear(3, 1))
    inputs = paddle.randn([64, 3]) + 5
    fixed = frozen(inputs)
    assert bool((frozen(inputs) == fixed).all())
    before = frozen[0]._mean.numpy().copy()
    whole.train()
    assert frozen.training
    assert not bool((frozen(inputs) == fixed).all())
    assert (frozen[0]._mean.numpy() != before).any()


def test_paddle_calls_no_train_of_its_parts(paddle: Any) -> None:
    class Keeping(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.part = paddle.nn.Dropout()

        def train(self, *mode: bool) -> Any:
            super().train(*mode)
            self.part.eval()
            return self

    whole = paddle.nn.Sequential(Keeping())
    whole.train()
    assert whole[0].part.training, "the flags of all parts are set from outside"
    whole[0].train()
    assert not whole[0].part.training
