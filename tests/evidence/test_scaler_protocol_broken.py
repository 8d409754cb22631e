"""ML317: what a loss scaler does when its calls do not belong together."""

# mllint: file-ignore[ML317] the broken protocols are what is tested

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

pytestmark = pytest.mark.evidence


def torch_setting(torch: Any) -> tuple[Any, Any, Any]:
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")


def torch_loss(torch: Any, model: Any) -> Any:
    return model(torch.ones(1, 1)).sum()


def test_torch_step_past_the_scaler(torch: Any) -> None:
    model, optimizer, scaler = torch_setting(torch)
    scaler.scale(torch_loss(torch, model)).backward()
    optimizer.step()
    assert 1 - model.weight.item() == pytest.approx(0.1 * 65536)
    model, optimizer, scaler = torch_setting(torch)
    scaler.scale(torch_loss(torch, model)).backward()
    scaler.unscale_(optimizer)
    optimizer.step()
    assert 1 - model.weight.item() == pytest.approx(0.1)
    scaler.update()


def test_torch_step_of_the_scaler_divides_what_is_not_divided_yet(torch: Any) -> None:
    for is_unscaled_before in (False, True):
        model, optimizer, scaler = torch_setting(torch)
        scaler.scale(torch_loss(torch, model)).backward()
        if is_unscaled_before:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        assert 1 - model.weight.item() == pytest.approx(0.1)


def test_torch_adam_divides_the_factor_out_but_takes_steps_that_overflowed(torch: Any) -> None:
    model, _, scaler = torch_setting(torch)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    scaler.scale(torch_loss(torch, model)).backward()
    optimizer.step()
    assert 1 - model.weight.item() == pytest.approx(0.1)
    for steps_through_scaler in (True, False):
        model, _, scaler = torch_setting(torch)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        scaler.scale(torch_loss(torch, model) * 1e38).backward()
        if steps_through_scaler:
            scaler.step(optimizer)
        else:
            optimizer.step()
        assert bool(torch.isfinite(model.weight).all()) is steps_through_scaler


def test_torch_without_update(torch: Any) -> None:
    model, optimizer, scaler = torch_setting(torch)
    scaler.scale(torch_loss(torch, model)).backward()
    scaler.step(optimizer)
    assert 1 - model.weight.item() == pytest.approx(0.1)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)


def test_torch_update_left_out_in_a_round(torch: Any) -> None:
    model, optimizer, scaler = torch_setting(torch)
    for is_unscaled in (True, False):
        scaler.scale(torch_loss(torch, model)).backward()
        if is_unscaled:
            scaler.unscale_(optimizer)
        else:
            scaler.step(optimizer)
        optimizer.zero_grad()
        scaler.scale(torch_loss(torch, model)).backward()
        with pytest.raises(RuntimeError, match="already been called"):
            scaler.unscale_(optimizer) if is_unscaled else scaler.step(optimizer)
        scaler.update()


def test_torch_loss_not_scaled(torch: Any) -> None:
    model, optimizer, scaler = torch_setting(torch)
    torch_loss(torch, model).backward()
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    scaler.scale(torch.zeros(()))
    scaler.step(optimizer)
    assert 1 - model.weight.item() == pytest.approx(0.1 / 65536, rel=0.1)


def test_torch_unscaled_twice(torch: Any) -> None:
    model, optimizer, scaler = torch_setting(torch)
    scaler.scale(torch_loss(torch, model)).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    scaler.update()
    scaler.scale(torch_loss(torch, model)).backward()
    scaler.unscale_(optimizer)


def test_torch_disabled(torch: Any) -> None:
    model, optimizer, _ = torch_setting(torch)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    scaler.scale(torch_loss(torch, model)).backward()
    optimizer.step()
    assert 1 - model.weight.item() == pytest.approx(0.1)
    scaler.step(optimizer)
    scaler.step(optimizer)
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


@contextmanager
def paddle_on_gpu() -> Iterator[None]:
    """Let a scaler believe that it is on a GPU, in float16: elsewhere Paddle switches it off."""
    from paddle.amp import grad_scaler

    place = mock.Mock()
    place.is_gpu_place.return_value = True
    with (
        mock.patch.object(grad_scaler, "_dygraph_tracer", return_value=mock.Mock(_expected_place=place)),
        mock.patch.object(grad_scaler, "amp_global_state", return_value=mock.Mock(amp_dtype="float16")),
    ):
        yield


def paddle_setting(paddle: Any, **options: Any) -> tuple[Any, Any, Any]:
    layer = paddle.nn.Linear(1, 1, bias_attr=False)
    layer.weight.set_value(paddle.ones([1, 1]))
    optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=layer.parameters())
    return layer, optimizer, paddle.amp.GradScaler(init_loss_scaling=65536.0, **options)


def paddle_loss(paddle: Any, layer: Any) -> Any:
    return layer(paddle.ones([1, 1])).sum()


def moved(layer: Any) -> float:
    return float(1 - layer.weight.sum())


def test_paddle_step_past_the_scaler(paddle: Any) -> None:
    with paddle_on_gpu():
        for method in ("step", "minimize"):
            layer, optimizer, scaler = paddle_setting(paddle)
            scaled = scaler.scale(paddle_loss(paddle, layer))
            scaled.backward()
            optimizer.step() if method == "step" else optimizer.minimize(scaled)
            assert moved(layer) == pytest.approx(0.1 * 65536)


def test_paddle_step_of_the_scaler_divides_what_is_not_divided_yet(paddle: Any) -> None:
    with paddle_on_gpu():
        for is_unscaled_before in (False, True):
            layer, optimizer, scaler = paddle_setting(paddle)
            scaler.scale(paddle_loss(paddle, layer)).backward()
            if is_unscaled_before:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            assert moved(layer) == pytest.approx(0.1)


def test_paddle_minimize_steps_and_updates(paddle: Any) -> None:
    with paddle_on_gpu():
        layer, optimizer, scaler = paddle_setting(paddle)
        for step in (1, 2):
            scaled = scaler.scale(paddle_loss(paddle, layer))
            scaled.backward()
            scaler.minimize(optimizer, scaled)
            assert moved(layer) == pytest.approx(0.1 * step)
            optimizer.clear_grad()


def test_paddle_without_update(paddle: Any) -> None:
    with paddle_on_gpu():
        layer, optimizer, scaler = paddle_setting(paddle)
        scaler.scale(paddle_loss(paddle, layer)).backward()
        scaler.step(optimizer)
        with pytest.raises(RuntimeError, match="already been called"):
            scaler.step(optimizer)
        layer, optimizer, scaler = paddle_setting(paddle, use_dynamic_loss_scaling=False)
        for _ in range(3):
            scaler.scale(paddle_loss(paddle, layer)).backward()
            scaler.step(optimizer)
            optimizer.clear_grad()
        assert moved(layer) == pytest.approx(0.3)


def test_paddle_update_left_out_in_a_round(paddle: Any) -> None:
    with paddle_on_gpu():
        layer, optimizer, scaler = paddle_setting(paddle)
        for is_unscaled in (True, False):
            scaler.scale(paddle_loss(paddle, layer)).backward()
            if is_unscaled:
                scaler.unscale_(optimizer)
            else:
                scaler.step(optimizer)
            optimizer.clear_grad()
            scaler.scale(paddle_loss(paddle, layer)).backward()
            with pytest.raises(RuntimeError, match="already been called"):
                scaler.unscale_(optimizer) if is_unscaled else scaler.step(optimizer)
            scaler.update()


def test_paddle_loss_not_scaled(paddle: Any) -> None:
    with paddle_on_gpu():
        layer, optimizer, scaler = paddle_setting(paddle)
        paddle_loss(paddle, layer).backward()
        scaler.step(optimizer)
        assert moved(layer) == pytest.approx(0.1 / 65536, rel=0.1)


def test_paddle_unscaled_twice(paddle: Any) -> None:
    with paddle_on_gpu():
        layer, optimizer, scaler = paddle_setting(paddle)
        scaler.scale(paddle_loss(paddle, layer)).backward()
        scaler.unscale_(optimizer)
        with pytest.raises(RuntimeError, match="already been called"):
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        with pytest.raises(RuntimeError, match="after step"):
            scaler.unscale_(optimizer)
