"""ML319: in dynamic mode `minimize` uses the gradients that are there, and computes none."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def setting(paddle: Any, **options: Any) -> tuple[Any, Any]:
    layer = paddle.nn.Linear(1, 1, bias_attr=False)
    layer.weight.set_value(paddle.ones([1, 1]))
    return layer, paddle.optimizer.SGD(learning_rate=0.1, parameters=layer.parameters(), **options)


def moved(layer: Any) -> float:
    return float(1 - layer.weight.sum())


def test_nothing_is_computed(paddle: Any) -> None:
    layer, optimizer = setting(paddle)
    loss = layer(paddle.ones([1, 1])).sum()
    assert optimizer.minimize(loss) == ([], [])
    assert layer.weight.grad is None
    assert moved(layer) == 0
    loss.backward()
    optimizer.minimize(loss)
    assert moved(layer) == pytest.approx(0.1)


def test_weight_decay_acts_on_cleared_gradients(paddle: Any) -> None:
    layer, optimizer = setting(paddle, weight_decay=0.5)
    loss = layer(paddle.ones([1, 1])).sum()
    optimizer.minimize(loss)
    assert moved(layer) == 0
    loss.backward()
    optimizer.clear_grad()
    optimizer.minimize(loss)
    assert moved(layer) == pytest.approx(0.05)


def test_through_a_scaler(paddle: Any) -> None:
    layer, optimizer = setting(paddle)
    scaler = paddle.amp.GradScaler(False)
    scaled = scaler.scale(layer(paddle.ones([1, 1])).sum())
    scaler.minimize(optimizer, scaled)
    assert moved(layer) == 0


def test_dynamic_mode_needs_parameters(paddle: Any) -> None:
    with pytest.raises(AttributeError):
        paddle.optimizer.SGD(learning_rate=0.1)


def test_a_static_graph_computes_them(paddle: Any) -> None:
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main, paddle.static.Program()):
            data = paddle.static.data("data", [1, 1])
            loss = paddle.static.nn.fc(data, 1).sum()
            _, gradients = paddle.optimizer.SGD(learning_rate=0.1).minimize(loss)
        assert gradients
    finally:
        paddle.disable_static()


def test_the_gradients_of_another_network_are_of_no_use(paddle: Any) -> None:
    other, _ = setting(paddle)
    other(paddle.ones([1, 1])).sum().backward()
    layer, optimizer = setting(paddle)
    optimizer.minimize(layer(paddle.ones([1, 1])).sum())
    assert moved(layer) == 0
