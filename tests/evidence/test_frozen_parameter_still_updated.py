"""ML213: an optimizer moves a frozen parameter as long as it has a gradient, be it zero."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence

SETTINGS = {
    "SGD": ("SGD", {}),
    "SGD with weight decay": ("SGD", {"weight_decay": 0.1}),
    "SGD with momentum": ("SGD", {"momentum": 0.9}),
    "Adam": ("Adam", {}),
    "AdamW": ("AdamW", {"weight_decay": 0.1}),
    "NAdam": ("NAdam", {}),
    "RAdam": ("RAdam", {}),
    "Adamax": ("Adamax", {}),
    "RMSprop with weight decay": ("RMSprop", {"weight_decay": 0.1}),
    "RMSprop with momentum": ("RMSprop", {"momentum": 0.9}),
    "Adagrad with weight decay": ("Adagrad", {"weight_decay": 0.1}),
}


def torch_moves(torch: Any, name: str, clear: str | None) -> bool:
    """Trains a step, clears the gradients, freezes the layer; whether the next step moves it."""
    optimizer_name, settings = SETTINGS[name]
    model = torch.nn.Linear(2, 2)
    optimizer = getattr(torch.optim, optimizer_name)(model.parameters(), lr=0.1, **settings)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    if clear is not None:
        optimizer.zero_grad(set_to_none=clear == "none")
    for parameter in model.parameters():
        parameter.requires_grad = False
    before = model.weight.tolist()
    optimizer.step()
    return bool(model.weight.tolist() != before)


@pytest.mark.parametrize("name", SETTINGS)
def test_torch_stale_gradient_moves_it(torch: Any, name: str) -> None:
    assert torch_moves(torch, name, clear=None)


@pytest.mark.parametrize("name", SETTINGS)
def test_torch_zero_gradient_moves_it_unless_the_optimizer_is_plain(torch: Any, name: str) -> None:
    """Weight decay, momentum and Adam's averages need no gradient."""
    assert torch_moves(torch, name, clear="zero") is (name != "SGD")


@pytest.mark.parametrize("name", SETTINGS)
def test_torch_without_gradient_it_stays(torch: Any, name: str) -> None:
    """The default of ``zero_grad`` since 2.0: such parameters are skipped, weight decay and all."""
    assert not torch_moves(torch, name, clear="none")


def test_torch_zero_grad_sets_to_none_by_default(torch: Any) -> None:
    model = torch.nn.Linear(2, 2)
    for target in (model, torch.optim.SGD(model.parameters(), lr=0.1)):
        model(torch.ones(1, 2)).sum().backward()
        target.zero_grad()
        assert model.weight.grad is None


def test_torch_frozen_from_the_start_it_stays(torch: Any) -> None:
    """The look-alike: weight decay does not reach what never had a gradient."""
    backbone, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    backbone.requires_grad_(False)
    optimizer = torch.optim.AdamW([*backbone.parameters(), *head.parameters()], weight_decay=0.1)
    before = backbone.weight.tolist()
    head(backbone(torch.ones(1, 2))).sum().backward()
    optimizer.step()
    assert backbone.weight.tolist() == before


def test_torch_called_under_no_grad_it_moves_on(torch: Any) -> None:
    """No flag is set, but no gradient comes any more: zeros stay behind."""
    body, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=0.1)
    weights = []
    for epoch in range(4):
        optimizer.zero_grad(set_to_none=False)
        with torch.set_grad_enabled(epoch < 2):
            features = body(torch.ones(1, 2))
        head(features).sum().backward()
        optimizer.step()
        weights.append(body.weight.tolist())
    assert weights[1] != weights[2] != weights[3]


PADDLE_SETTINGS = {
    "SGD with weight decay": ("SGD", {"weight_decay": 0.1}),
    "Momentum": ("Momentum", {}),
    "Adam": ("Adam", {}),
    "AdamW": ("AdamW", {}),
    "Adamax": ("Adamax", {}),
    "NAdam": ("NAdam", {}),
    "RAdam": ("RAdam", {}),
    "RMSProp with momentum": ("RMSProp", {"momentum": 0.9}),
    "Adagrad with weight decay": ("Adagrad", {"weight_decay": 0.1}),
}


@pytest.mark.parametrize("name", PADDLE_SETTINGS)
@pytest.mark.parametrize("zero", [True, False])
def test_paddle_called_under_no_grad_it_moves_on_unless_the_gradient_is_none(
    paddle: Any, name: str, zero: bool
) -> None:
    optimizer_name, settings = PADDLE_SETTINGS[name]
    body, head = paddle.nn.Linear(2, 2), paddle.nn.Linear(2, 2)
    parameters = [*body.parameters(), *head.parameters()]
    optimizer = getattr(paddle.optimizer, optimizer_name)(learning_rate=0.1, parameters=parameters, **settings)
    weights = []
    for epoch in range(4):
        with paddle.set_grad_enabled(epoch < 2):
            features = body(paddle.ones([1, 2]))
        head(features).sum().backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=zero)
        weights.append(body.weight.tolist())
    assert (weights[1] != weights[3]) is zero


def paddle_moves(paddle: Any, clear: str | None, frozen: bool) -> bool:
    layer = paddle.nn.Linear(2, 2)
    optimizer = paddle.optimizer.AdamW(0.1, parameters=layer.parameters(), weight_decay=0.1)
    layer(paddle.ones([1, 2])).sum().backward()
    optimizer.step()
    if clear is not None:
        optimizer.clear_grad(set_to_zero=clear == "zero")
    for parameter in layer.parameters():
        parameter.stop_gradient = frozen
    before = layer.weight.tolist()
    optimizer.step()
    return bool(layer.weight.tolist() != before)


@pytest.mark.parametrize("clear", [None, "zero", "none"])
def test_paddle_stopped_parameter_never_moves(paddle: Any, clear: str | None) -> None:
    """Paddle's ``step`` looks at the flag, not only at the gradient."""
    assert not paddle_moves(paddle, clear, frozen=True)


def test_paddle_parameter_without_flag_moves_on_zero_gradients(paddle: Any) -> None:
    """``clear_grad()`` leaves zeros by default, so what the loss no longer reaches keeps decaying."""
    assert paddle_moves(paddle, "zero", frozen=False)
    assert not paddle_moves(paddle, "none", frozen=False)


def test_paddle_clear_grad_leaves_zeros(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 2)
    layer(paddle.ones([1, 2])).sum().backward()
    paddle.optimizer.SGD(0.1, parameters=layer.parameters()).clear_grad()
    assert layer.weight.grad is not None
    assert not layer.weight.grad.numpy().any()


def test_torch_cleared_by_hand(torch: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for number in range(3):
        if number == 2:
            model[0].requires_grad_(False)  # mllint: ignore[ML213] that is what is tested
            before = model[0].weight.tolist()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.grad.zero_()
    assert model[0].weight.tolist() != before
