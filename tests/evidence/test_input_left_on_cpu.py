"""ML107: the model was moved, its input was not.

There is no GPU where these tests run. The device "meta" stands in for it: a tensor on it holds no
values, everything else about moving and mixing devices is the same. Paddle has no such device:
nothing is shown for it here.
"""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_module_moves_itself_and_the_tensor_does_not(torch: Any) -> None:
    model, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
    model.to("meta")
    x.to("meta")
    assert model.weight.device.type == "meta"
    assert x.device.type == "cpu"


@pytest.mark.parametrize("layer", ["Linear", "BatchNorm1d", "LSTM", "GRU", "PReLU"])
def test_torch_layer_with_weights_refuses_an_input_elsewhere(torch: Any, layer: str) -> None:
    model = getattr(torch.nn, layer)(*((2, 2) if layer in ("Linear", "LSTM", "GRU") else (2,))).to("meta")
    with pytest.raises(RuntimeError, match="device"):
        model(torch.ones(3, 2))
    model(torch.ones(3, 2, device="meta"))


def test_torch_layer_without_weights_takes_any_input(torch: Any) -> None:
    """The look-alike: what holds no tensor has no device."""
    for layer in (torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.MSELoss(), torch.nn.Softmax(dim=0)):
        layer.to("meta")
        x = torch.ones(2)
        assert layer(*((x, x) if isinstance(layer, torch.nn.MSELoss) else (x,))).device.type == "cpu"


def test_torch_loss_wants_both_on_one_device(torch: Any) -> None:
    output = torch.ones(2, 2, device="meta")
    with pytest.raises(RuntimeError, match="device"):
        torch.nn.CrossEntropyLoss()(output, torch.tensor([0, 1]))
    with pytest.raises(RuntimeError, match="device"):
        torch.nn.MSELoss()(output, torch.ones(2, 2))
    torch.nn.CrossEntropyLoss()(output, torch.tensor([0, 1]).to("meta"))


def test_torch_operands_on_two_devices(torch: Any) -> None:
    there = torch.ones(2, device="meta")
    for operation in (
        lambda: there + torch.ones(2),
        lambda: torch.cat([there, torch.ones(2)]),
        lambda: torch.stack([there, torch.ones(2)]),
    ):
        with pytest.raises(RuntimeError, match="device"):
            operation()


def test_torch_look_alikes_that_may_mix_devices(torch: Any) -> None:
    """Numbers, 0-d tensors and indices may stay on the CPU."""
    there = torch.ones(2, device="meta")
    for result in (there * 2, there + torch.tensor(1.0), torch.tensor(1.0) * there, there[torch.tensor([0])]):
        assert result.device.type == "meta"
    there[0] = torch.tensor(1.0)


def test_torch_good_forms(torch: Any) -> None:
    model = torch.nn.Linear(2, 2).to("meta")
    x = torch.ones(1, 2)
    assert model(x.to("meta")).device.type == "meta"
    x = x.to("meta")
    assert model(x).device.type == "meta"
    assert model(x.new_zeros(1, 2)).device.type == "meta"
    assert model(torch.zeros_like(x)).device.type == "meta"


def test_torch_layers_refuse_what_they_are_given_beside_their_input(torch: Any) -> None:
    nn = torch.nn
    there, here = torch.ones(5, 1, 8, device="meta"), torch.ones(5, 1, 8)
    state, step = torch.zeros(1, 1, 8), torch.zeros(1, 8)
    for call in (
        lambda: nn.RNN(8, 8, device="meta")(there, state),
        lambda: nn.GRU(8, 8, device="meta")(there, state),
        lambda: nn.LSTM(8, 8, device="meta")(there, (state, state)),
        lambda: nn.RNNCell(8, 8, device="meta")(there[0], step),
        lambda: nn.GRUCell(8, 8, device="meta")(there[0], step),
        lambda: nn.LSTMCell(8, 8, device="meta")(there[0], (step, step)),
        lambda: nn.MultiheadAttention(8, 2, device="meta")(there, here, there),
        lambda: nn.MultiheadAttention(8, 2, device="meta")(there, there, here),
        lambda: nn.TransformerDecoderLayer(8, 2, device="meta")(there, here),
    ):
        with pytest.raises(RuntimeError, match="device"):
            call()
