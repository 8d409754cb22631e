"""ML303: of four batches only the last one counts where the gradients are cleared in every round."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence

BATCHES = (1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize("place", ["first", "last", "after the step"])
def test_torch(torch: Any, place: str) -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for number, batch in enumerate(BATCHES):
        if place == "first":
            optimizer.zero_grad()
        (model(torch.full((1, 1), batch)).sum() / 4).backward()
        if (number + 1) % 4 == 0:
            optimizer.step()
            if place == "after the step":
                optimizer.zero_grad()
        if place == "last":
            optimizer.zero_grad()
    used = sum(BATCHES) if place == "after the step" else BATCHES[-1]
    assert model.weight.item() == pytest.approx(-used / 4)


@pytest.mark.parametrize("place", ["first", "last", "after the step"])
def test_paddle(paddle: Any, place: str) -> None:
    layer = paddle.nn.Linear(1, 1, bias_attr=False)
    layer.weight.set_value(paddle.zeros([1, 1]))
    optimizer = paddle.optimizer.SGD(learning_rate=1.0, parameters=layer.parameters())
    for number, batch in enumerate(BATCHES):
        if place == "first":
            layer.clear_gradients()
        (layer(paddle.full([1, 1], batch)).sum() / 4).backward()
        if (number + 1) % 4 == 0:
            optimizer.step()
            if place == "after the step":
                optimizer.clear_grad()
        if place == "last":
            optimizer.clear_grad()
    used = sum(BATCHES) if place == "after the step" else BATCHES[-1]
    assert float(layer.weight.sum()) == pytest.approx(-used / 4)
