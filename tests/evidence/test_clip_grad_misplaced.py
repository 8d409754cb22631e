"""ML305: gradients that are clipped after the step, or before they have been computed."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch(torch: Any) -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    clip = torch.nn.utils.clip_grad_norm_
    # Before any gradient has been computed.
    assert float(clip(model.parameters(), 1.0)) == 0
    with pytest.raises(RuntimeError):
        torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
    (100 * model(torch.ones(1, 1)).sum()).backward()
    optimizer.step()
    assert 1 - model.weight.item() == pytest.approx(10)  # the whole gradient
    assert float(clip(model.parameters(), 1.0)) == pytest.approx(100)
    assert 1 - model.weight.item() == pytest.approx(10)  # and clipping it now moves nothing
    optimizer.zero_grad()
    assert float(clip(model.parameters(), 1.0)) == 0
    (100 * model(torch.ones(1, 1)).sum()).backward()
    clip(model.parameters(), 1.0)
    optimizer.step()
    assert 1 - model.weight.item() == pytest.approx(10.1)


def test_paddle(paddle: Any) -> None:
    layer = paddle.nn.Linear(1, 1, bias_attr=False)
    layer.weight.set_value(paddle.ones([1, 1]))
    optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=layer.parameters())
    clip = paddle.nn.utils.clip_grad_norm_
    assert float(clip(layer.parameters(), 1.0)) == 0
    paddle.nn.utils.clip_grad_value_(layer.parameters(), 1.0)  # raises nothing here
    (100 * layer(paddle.ones([1, 1])).sum()).backward()
    optimizer.step()
    clip(layer.parameters(), 1.0)
    assert float(1 - layer.weight.sum()) == pytest.approx(10)
    optimizer.clear_grad()
    assert float(clip(layer.parameters(), 1.0)) == 0
    (100 * layer(paddle.ones([1, 1])).sum()).backward()
    clip(layer.parameters(), 1.0)
    optimizer.step()
    assert float(1 - layer.weight.sum()) == pytest.approx(10.1)


def test_torch_clipping_another_network_leaves_the_step_as_it_is(torch: Any) -> None:
    def stepped(*, clips: bool) -> float:
        stepping, other = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
        optimizer, of_other = torch.optim.SGD([stepping], lr=1.0), torch.optim.SGD([other], lr=1.0)
        (100 * (stepping + other)).sum().backward()
        if clips:
            torch.nn.utils.clip_grad_norm_([other], 1.0)
        optimizer.step()
        of_other.zero_grad()
        return float(stepping.item())

    assert stepped(clips=True) == stepped(clips=False) == -100


def test_torch_what_is_clipped_in_every_round_is_that_of_the_last(torch: Any) -> None:
    def gathered(*, always: bool) -> list[float]:
        model = torch.nn.Linear(2, 1, bias=False)
        for position in range(2):
            (10 * model(torch.eye(2)[[position]])).sum().backward()
            if always or position == 1:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        return list(model.weight.grad[0].tolist())

    assert gathered(always=False) == pytest.approx([0.5**0.5] * 2, abs=1e-4)
    assert gathered(always=True) == pytest.approx([0.0995, 0.9950], abs=1e-4)


def test_paddle_what_is_clipped_in_every_round_is_that_of_the_last(paddle: Any) -> None:
    def gathered(*, always: bool) -> list[float]:
        layer = paddle.nn.Linear(2, 1, bias_attr=False)
        for position in range(2):
            (10 * layer(paddle.eye(2)[position : position + 1])).sum().backward()
            if always or position == 1:
                paddle.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        return list(layer.weight.grad.flatten().tolist())

    assert gathered(always=False) == pytest.approx([0.5**0.5] * 2, abs=1e-4)
    assert gathered(always=True) == pytest.approx([0.0995, 0.9950], abs=1e-4)
