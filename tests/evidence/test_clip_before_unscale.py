"""ML306: gradients that are clipped while they are scaled are divided by the factor afterwards."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

pytestmark = pytest.mark.evidence


def torch_update(torch: Any, between: Callable[[Any, Any, Any], object], *, enabled: bool = True) -> float:
    """How far a weight moves in one step of a rate of 0.1 and a gradient of 1, with something done before the step."""
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0, enabled=enabled)
    scaler.scale(model(torch.ones(1, 1)).sum()).backward()
    between(model, optimizer, scaler)
    scaler.step(optimizer)
    scaler.update()
    return float(1 - model.weight.item())


def test_torch(torch: Any) -> None:
    clip = torch.nn.utils.clip_grad_norm_
    assert torch.amp.GradScaler("cpu").get_scale() == 65536.0

    def clip_only(model: Any, optimizer: Any, scaler: Any) -> None:
        assert float(clip(model.parameters(), 1.0)) == 65536.0

    assert torch_update(torch, clip_only) == pytest.approx(0.1 / 65536, rel=0.1)
    assert torch_update(
        torch, lambda model, optimizer, scaler: torch.nn.utils.clip_grad_value_(model.parameters(), 1.0)
    ) == pytest.approx(0.1 / 65536, rel=0.1)

    def unscale_first(model: Any, optimizer: Any, scaler: Any) -> None:
        scaler.unscale_(optimizer)
        assert float(clip(model.parameters(), 1.0)) == pytest.approx(1.0)

    assert torch_update(torch, unscale_first) == pytest.approx(0.1)

    def unscale_last(model: Any, optimizer: Any, scaler: Any) -> None:
        clip(model.parameters(), 1.0)
        scaler.unscale_(optimizer)

    assert torch_update(torch, unscale_last) == pytest.approx(0.1 / 65536, rel=0.1)


def test_torch_what_is_right(torch: Any) -> None:
    clip = torch.nn.utils.clip_grad_norm_
    limit_too = torch_update(torch, lambda model, _, scaler: clip(model.parameters(), 1.0 * scaler.get_scale()))
    assert limit_too == pytest.approx(0.1, rel=1e-3)
    measured = torch_update(torch, lambda model, _, scaler: clip(model.parameters(), float("inf")))
    assert measured == pytest.approx(0.1)
    idle = torch_update(torch, lambda model, _, scaler: clip(model.parameters(), 1.0), enabled=False)
    assert idle == pytest.approx(0.1, rel=1e-3)


@contextmanager
def paddle_on_gpu(paddle: Any) -> Iterator[None]:
    """Let a scaler believe that it is on a GPU, in float16: elsewhere Paddle switches it off."""
    from paddle.amp import grad_scaler

    place = mock.Mock()
    place.is_gpu_place.return_value = True
    with (
        mock.patch.object(grad_scaler, "_dygraph_tracer", return_value=mock.Mock(_expected_place=place)),
        mock.patch.object(grad_scaler, "amp_global_state", return_value=mock.Mock(amp_dtype="float16")),
    ):
        yield


def paddle_update(paddle: Any, between: Callable[[Any, Any, Any], object], **options: Any) -> float:
    layer = paddle.nn.Linear(1, 1, bias_attr=False)
    layer.weight.set_value(paddle.ones([1, 1]))
    optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=layer.parameters(), **options)
    with paddle_on_gpu(paddle):
        scaler = paddle.amp.GradScaler(init_loss_scaling=65536.0)
        scaler.scale(layer(paddle.ones([1, 1])).sum()).backward()
        between(layer, optimizer, scaler)
        scaler.step(optimizer)
        scaler.update()
    return float(1 - layer.weight.sum())


def test_paddle(paddle: Any) -> None:
    clip = paddle.nn.utils.clip_grad_norm_
    assert paddle_update(paddle, lambda layer, optimizer, scaler: clip(layer.parameters(), 1.0)) == pytest.approx(
        0.1 / 65536, rel=0.1
    )

    def unscale_first(layer: Any, optimizer: Any, scaler: Any) -> None:
        scaler.unscale_(optimizer)
        clip(layer.parameters(), 1.0)

    assert paddle_update(paddle, unscale_first) == pytest.approx(0.1, rel=1e-3)
    in_the_step = paddle_update(paddle, lambda *_: None, grad_clip=paddle.nn.ClipGradByNorm(1.0))
    assert in_the_step == pytest.approx(0.1, rel=1e-3)


def test_torch_bfloat16_is_scaled_too(torch: Any) -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    scaler = torch.amp.GradScaler("cpu")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.ones(1, 1)).sum()
    scaler.scale(loss).backward()
    assert float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)) == 65536.0


def test_paddle_scaler_switches_itself_off_in_bfloat16(paddle: Any) -> None:
    with paddle_on_gpu(paddle):
        scaler = paddle.amp.GradScaler(init_loss_scaling=65536.0)
    from paddle.amp import grad_scaler

    with mock.patch.object(grad_scaler, "amp_global_state", return_value=mock.Mock(amp_dtype="bfloat16")):
        loss = paddle.ones([1])
        with pytest.warns(UserWarning, match="disable by default"):
            assert scaler.scale(loss).item() == 1.0
