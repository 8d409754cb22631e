"""ML314: a layer that is made in ``forward`` is new in every call, in training mode, and nobody's parameter."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_weights_are_new_and_not_trained(torch: Any) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = torch.nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return torch.nn.Linear(4, 2)(self.encoder(x))

    net = Net().eval()
    assert sorted(net.state_dict()) == ["encoder.bias", "encoder.weight"]
    x = torch.ones(1, 4)
    assert not torch.equal(net(x), net(x))
    assert len(list(net.parameters())) == 2


def test_torch_attribute_is_made_anew_and_unknown_to_the_optimizer(torch: Any) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            self.fc = torch.nn.Linear(4, 2)
            return self.fc(x)

    net = Net()
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(1, 4))
    first = net.fc.weight
    net(torch.ones(1, 4))
    assert net.fc.weight is not first


def test_torch_modes_of_new_layers(torch: Any) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.Dropout(0.5)(x)

    assert (Net().eval()(torch.ones(1000)) == 0).any()
    assert torch.nn.BatchNorm1d(3).training
    told = torch.nn.Dropout(0.5).train(False)
    assert torch.equal(told(torch.ones(10)), torch.ones(10))


def test_torch_look_alikes_have_no_weights(torch: Any) -> None:
    nn = torch.nn
    for layer in (nn.ReLU(), nn.LayerNorm(8, elementwise_affine=False), nn.InstanceNorm1d(8), nn.Softmax(1)):
        assert [*layer.parameters(), *layer.buffers()] == []


def test_paddle_weights_are_new_and_not_trained(paddle: Any) -> None:
    class Net(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = paddle.nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return paddle.nn.Linear(4, 2)(self.encoder(x))

    net = Net()
    net.eval()
    x = paddle.ones([1, 4])
    assert not (net(x) == net(x)).all()
    assert len(net.parameters()) == 2
    assert sorted(net.state_dict()) == ["encoder.bias", "encoder.weight"]


def test_paddle_modes_of_new_layers(paddle: Any) -> None:
    class Net(paddle.nn.Layer):
        def forward(self, x: Any) -> Any:
            return paddle.nn.Dropout(0.5)(x)

    net = Net()
    net.eval()
    assert (net(paddle.ones([1000])) == 0).any()
    assert not paddle.nn.LayerNorm(8, weight_attr=False, bias_attr=False).parameters()


def test_paddle_spectral_norm_has_nothing_to_train(paddle: Any) -> None:
    parameters = paddle.nn.SpectralNorm([4, 4]).parameters()
    assert parameters
    assert all(parameter.stop_gradient for parameter in parameters)


def test_paddle_spectral_norm_made_anew_gives_something_else_each_time(paddle: Any) -> None:
    weight = paddle.randn([4, 4])
    kept = paddle.nn.SpectralNorm([4, 4])
    assert kept(weight).equal_all(kept(weight))
    assert not paddle.nn.SpectralNorm([4, 4])(weight).equal_all(paddle.nn.SpectralNorm([4, 4])(weight))
