"""ML402: modules in a list, tuple, set or dict belong to nobody."""

import collections
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


@pytest.fixture
def torch_hidden(torch: Any) -> Any:
    nn = torch.nn

    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.as_list = [nn.Linear(2, 2)]
            self.as_tuple = (nn.Linear(2, 2),)
            self.as_dict = {"a": nn.Linear(2, 2)}
            self.as_ordered = collections.OrderedDict(a=nn.Linear(2, 2))
            self.as_set = {nn.Linear(2, 2)}
            self.nested = [[nn.Linear(2, 2)]]
            self.grown: list[Any] = []
            self.grown.append(nn.Linear(2, 2))
            self.weights = [nn.Parameter(torch.ones(2))]

    return Hidden


def test_torch_nothing_in_them_is_registered(torch_hidden: Any) -> None:
    module = torch_hidden()
    assert not list(module.parameters())
    assert not module.state_dict()
    assert list(module.children()) == []


def test_torch_they_are_left_behind_by_everything(torch: Any, torch_hidden: Any) -> None:
    module = torch_hidden()
    module.to("meta")
    module.eval()
    module.requires_grad_(False)
    layer = module.as_list[0]
    assert layer.weight.device.type == "cpu"
    assert layer.training
    assert layer.weight.requires_grad


def test_torch_they_never_train(torch: Any) -> None:
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self, container: Any) -> None:
            super().__init__()
            self.layers = container([nn.Linear(2, 2)])
            self.head = nn.Linear(2, 1)

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    for container, trains in ((list, False), (tuple, False), (nn.ModuleList, True)):
        net = Net(container)
        optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
        before = net.layers[0].weight.tolist()
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        assert (net.layers[0].weight.tolist() != before) is trains


def test_torch_look_alikes_that_register_later(torch: Any) -> None:
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = [nn.Linear(2, 2, bias=False)]
            self.a = nn.ModuleList(self.a)
            self.b = [nn.Linear(2, 2, bias=False)]
            self.c = nn.Sequential(*self.b)
            self.d = [nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)]
            for index, layer in enumerate(self.d):
                self.add_module(f"d{index}", layer)
            self.e = [nn.Linear(2, 2, bias=False)]
            setattr(self, "e0", self.e[0])  # noqa: B010 - the form is the point
            self.f = [nn.Linear(2, 2, bias=False)]
            self.register_module("f0", self.f[0])

    assert list(Net().state_dict()) == [
        *["a.0.weight", "c.0.weight", "d0.weight", "d1.weight", "e0.weight", "f0.weight"],
    ]


def test_torch_what_the_containers_take(torch: Any) -> None:
    """What the fix may wrap: modules, and for a dict names that are identifiers."""
    nn = torch.nn
    layer = nn.Linear(2, 2)
    assert len(nn.ModuleList(layer for _ in range(2))) == 2
    assert len(nn.ModuleList([None, layer])) == 2
    assert type(nn.ModuleList([layer, layer])[:1]) is nn.ModuleList
    for wrong in ([[layer]], [lambda x: x], [nn.Linear]):
        with pytest.raises(TypeError, match="not a Module subclass"):
            nn.ModuleList(wrong)
    with pytest.raises(TypeError):
        nn.ModuleDict({1: layer})
    with pytest.raises(KeyError):
        nn.ModuleDict({"a.b": layer})
    with pytest.raises(KeyError):
        nn.ModuleDict({"keys": layer})


# ---- paddle -------------------------------------------------------------------------------------


def test_paddle_nothing_in_them_is_registered(paddle: Any) -> None:
    nn = paddle.nn

    class Hidden(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.as_list = [nn.Linear(2, 2)]
            self.as_tuple = (nn.Linear(2, 2),)
            self.as_dict = {"a": nn.Linear(2, 2)}
            self.weights = [paddle.create_parameter([2], "float32")]

    layer = Hidden()
    assert not layer.parameters()
    assert not layer.state_dict()
    layer.eval()
    layer.to(dtype="float64")
    assert layer.as_list[0].training
    assert layer.as_list[0].weight.dtype == paddle.float32


def test_paddle_look_alikes_that_register_later(paddle: Any) -> None:
    nn = paddle.nn

    def linear() -> Any:
        return nn.Linear(2, 2, bias_attr=False)

    class Net(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.a = [linear()]
            self.a = nn.LayerList(self.a)
            self.b = [linear()]
            self.c = nn.Sequential(*self.b)
            self.d = [linear()]
            self.add_sublayer("d0", self.d[0])
            self.e = [linear()]
            setattr(self, "e0", self.e[0])  # noqa: B010 - the form is the point
            self.f = nn.LayerDict({"a": linear()})

    assert list(Net().state_dict()) == ["a.0.weight", "c.0.weight", "d0.weight", "e0.weight", "f.a.weight"]


def test_paddle_what_the_containers_take(paddle: Any) -> None:
    nn = paddle.nn
    layer = nn.Linear(2, 2)
    assert len(nn.LayerList(layer for _ in range(2))) == 2
    for wrong in ([[layer]], [lambda x: x]):
        with pytest.raises(AssertionError):
            nn.LayerList(wrong)
    with pytest.raises(TypeError):
        nn.LayerDict({1: layer}).state_dict()  # made without complaint


def test_torch_a_plain_list_cannot_take_the_place_of_a_registered_one(torch: Any) -> None:
    module = torch.nn.Module()
    module.weights = torch.nn.ParameterList()
    with pytest.raises(TypeError, match="cannot assign"):
        module.weights = [torch.ones(1)]


def test_paddle_a_plain_list_cannot_take_the_place_of_a_registered_one(paddle: Any) -> None:
    layer = paddle.nn.Layer()
    layer.parts = paddle.nn.LayerList()
    with pytest.raises(TypeError, match="should be of type Layer"):
        layer.parts = [paddle.ones([1])]


def test_torch_weights_set_by_name_are_registered(torch: Any) -> None:
    net = torch.nn.Module()
    net.cells = [torch.nn.Linear(3, 3)]
    assert list(net.parameters()) == []
    for name in ("weight_0",):
        setattr(net, name, net.cells[0].weight)
    net.register_parameter("bias_0", net.cells[0].bias)
    assert [name for name, _ in net.named_parameters()] == ["weight_0", "bias_0"]
    assert net.cells[0].double().weight is net.weight_0


def test_paddle_weights_set_by_name_are_registered(paddle: Any) -> None:
    net = paddle.nn.Layer()
    net.cells = [paddle.nn.Linear(3, 3)]
    assert net.parameters() == []
    for name in ("weight_0",):
        setattr(net, name, net.cells[0].weight)
    net.add_parameter("bias_0", net.cells[0].bias)
    assert [name for name, _ in net.named_parameters()] == ["weight_0", "bias_0"]


@pytest.mark.parametrize(("framework", "register"), [("torch", "add_module"), ("paddle", "add_sublayer")])
def test_what_forward_registers_of_a_dict(framework: str, register: str, request: pytest.FixtureRequest) -> None:
    package = request.getfixturevalue(framework)
    base = package.nn.Module if framework == "torch" else package.nn.Layer

    class Net(base):  # type: ignore[misc, valid-type]
        def __init__(self, name: str) -> None:
            super().__init__()
            self.heads: dict[int, Any] = {}
            self.name = name

        def forward(self, x: Any) -> Any:
            if 2 not in self.heads:
                self.heads[2] = package.nn.Linear(2, 1)
                if self.name == "add":
                    getattr(self, register)("head", self.heads[2])
                elif self.name == "set":
                    self.head = self.heads[2]
            return self.heads[2](x)

    for name, is_registered in (("add", True), ("set", True), ("none", False)):
        net = Net(name)
        net(package.ones([1, 2]))
        assert set(net.state_dict()) == ({"head.weight", "head.bias"} if is_registered else set())


@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_modules_with_an_optimizer_of_their_own_train(framework: str, request: pytest.FixtureRequest) -> None:
    package = request.getfixturevalue(framework)
    base = package.nn.Module if framework == "torch" else package.nn.Layer

    class Estimator(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.layer = package.nn.Linear(2, 1)
            if framework == "torch":
                self.optimizer = package.optim.SGD(self.parameters(), lr=1.0)
            else:
                self.optimizer = package.optimizer.SGD(1.0, parameters=self.parameters())

    class Net(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.estimators = [Estimator()]

    net = Net()
    assert not list(net.parameters())
    estimator = net.estimators[0]
    before = estimator.layer.weight.tolist()
    estimator.layer(package.ones([1, 2])).sum().backward()
    estimator.optimizer.step()
    assert estimator.layer.weight.tolist() != before


def test_paddle_adding_a_layer_gives_it_back(paddle: Any) -> None:
    net = paddle.nn.Layer()
    layer = paddle.nn.Linear(2, 2)
    assert net.add_sublayer("fc", layer) is layer
    assert len(net.parameters()) == 2
