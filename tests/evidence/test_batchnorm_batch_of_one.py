"""ML315: ``BatchNorm`` in training mode raises for a single value per channel."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence
MESSAGE = "Expected more than 1 value per channel when training"


def test_torch_flat(torch: Any) -> None:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.ReLU())
    with pytest.raises(ValueError, match=MESSAGE):
        model(torch.randn(1, 8))
    assert model(torch.randn(2, 8)).shape == (2, 4)
    assert nn.BatchNorm1d(4)(torch.randn(1, 4, 3)).shape == (1, 4, 3)
    model.eval()
    assert model(torch.randn(1, 8)).shape == (1, 4)


def test_torch_pooled(torch: Any) -> None:
    nn = torch.nn
    model = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4))
    with pytest.raises(ValueError, match=MESSAGE):
        model(torch.randn(1, 8, 5, 5))
    assert nn.BatchNorm2d(8)(torch.randn(1, 8, 5, 5)).shape == (1, 8, 5, 5)


def test_torch_without_running_statistics_it_raises_in_evaluation_too(torch: Any) -> None:
    norm = torch.nn.BatchNorm1d(4, track_running_stats=False).eval()
    with pytest.raises(ValueError, match=MESSAGE):
        norm(torch.randn(1, 4))


def test_torch_loader_makes_batches_of_one_unless_it_is_told(torch: Any) -> None:
    loader = torch.utils.data.DataLoader([torch.zeros(4), torch.ones(4)])
    assert [batch.shape for batch in loader] == [(1, 4), (1, 4)]


def test_paddle_does_not_raise(paddle: Any) -> None:
    nn = paddle.nn
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1D(4))
    assert model(paddle.randn([1, 8])).shape == [1, 4]


def test_torch_one_sample_made_a_batch(torch: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4))
    with pytest.raises(ValueError, match=MESSAGE):
        model(torch.zeros(8).unsqueeze(0))
