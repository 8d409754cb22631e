"""ML404: a tensor in a plain attribute is not the module's."""

import operator
from typing import Any

import pytest

from mllint.knowledge import facts

pytestmark = pytest.mark.evidence


@pytest.fixture
def torch_module(torch: Any) -> Any:
    nn = torch.nn

    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.leaf = torch.ones(2, requires_grad=True)
            self.table = torch.ones(2)
            self.scaled = nn.Parameter(torch.ones(2)) * 0.1
            self.converted = nn.Parameter(torch.ones(2)).double()
            self.moved = nn.Parameter(torch.ones(2)).to("meta")
            # look-alikes, registered
            self.parameter = nn.Parameter(torch.ones(2))
            self.frozen = nn.Parameter(torch.ones(2)).requires_grad_(False)
            self.unmoved = nn.Parameter(torch.ones(2)).to("cpu")  # nothing to do: itself
            self.unconverted = nn.Parameter(torch.ones(2)).float()
            self.register_buffer("buffer", torch.ones(2))
            self.register_buffer("unsaved", torch.ones(2), persistent=False)
            self.register_buffer("later", None)
            self.later = torch.ones(2)

    return Holder()


REGISTERED = ["parameter", "frozen", "unmoved", "unconverted"]


def test_torch_what_is_registered(torch_module: Any) -> None:
    assert [name for name, _ in torch_module.named_parameters()] == REGISTERED
    assert list(torch_module.state_dict()) == [*REGISTERED, "buffer", "later"]
    assert [name for name, _ in torch_module.named_buffers()] == ["buffer", "unsaved", "later"]


def test_torch_plain_tensors_stay_where_they_are(torch_module: Any) -> None:
    torch_module.to("meta")
    for name in ("leaf", "table", "scaled", "converted"):
        assert getattr(torch_module, name).device.type == "cpu"
    for name in ("parameter", "buffer", "unsaved"):
        assert getattr(torch_module, name).device.type == "meta"


def test_torch_plain_tensor_meets_an_input_elsewhere(torch: Any, torch_module: Any) -> None:
    x = torch.ones(2, device="meta")
    with pytest.raises(RuntimeError, match="device"):
        x * torch_module.table
    torch_module.to("meta")
    x * torch_module.buffer


def test_torch_from_numpy_takes_arrays_only_and_stays_on_the_cpu(torch: Any, numpy: Any) -> None:
    with torch.device("meta"):
        assert torch.from_numpy(numpy.ones(2)).device.type == "cpu"
    for other in (1.0, [1.0], numpy.float64(1.0), torch.ones(2)):
        with pytest.raises(TypeError):
            torch.from_numpy(other)


def test_torch_leaf_gets_a_gradient_and_no_update(torch: Any, torch_module: Any) -> None:
    optimizer = torch.optim.SGD(torch_module.parameters(), lr=1.0)
    (torch_module.leaf.sum() + torch_module.parameter.sum()).backward()
    optimizer.step()
    assert torch_module.leaf.grad is not None
    assert torch_module.leaf.tolist() == [1.0, 1.0]
    assert torch_module.parameter.tolist() == [0.0, 0.0]


def test_torch_parameter_list_makes_parameters_of_its_own_of_plain_tensors(torch: Any) -> None:
    """They share the numbers, and the gradient goes to the tensor: a step changes nothing."""
    leaf, parameter = torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2))
    held = torch.nn.ParameterList([leaf, parameter])
    assert held[0] is not leaf
    assert held[1] is parameter  # the look-alike
    optimizer = torch.optim.SGD(held, lr=1.0)
    (leaf * parameter).sum().backward()
    optimizer.step()
    assert held[0].grad is None
    assert leaf.grad is not None
    assert leaf.tolist() == [1.0, 1.0]
    assert parameter.tolist() == [0.0, 0.0]


def test_torch_buffer_that_is_not_persistent_keeps_the_keys_of_checkpoints(torch: Any) -> None:
    """Why the fix for a table writes ``persistent=False``: old files still load strictly."""

    class Before(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.ones(2)
            self.fc = torch.nn.Linear(1, 1)

    class After(torch.nn.Module):
        def __init__(self, persistent: bool) -> None:
            super().__init__()
            self.register_buffer("table", torch.ones(2), persistent=persistent)
            self.fc = torch.nn.Linear(1, 1)

    After(persistent=False).load_state_dict(Before().state_dict())
    with pytest.raises(RuntimeError, match="Missing"):
        After(persistent=True).load_state_dict(Before().state_dict())


# ---- paddle: a plain tensor becomes a buffer by itself ---------------------------------------------


@pytest.fixture
def paddle_layer(paddle: Any) -> Any:
    class Holder(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.leaf = paddle.ones([2])
            self.leaf.stop_gradient = False
            self.table = paddle.ones([2])
            self.scaled = self.create_parameter([2]) * 0.1
            self.parameter = self.create_parameter([2])
            self.created = paddle.create_parameter([2], "float32")
            self.register_buffer("buffer", paddle.ones([2]))

    return Holder()


def test_paddle_what_is_registered(paddle_layer: Any) -> None:
    """Neither trained nor saved, and yet a buffer (one that is not persistable)."""
    assert [name for name, _ in paddle_layer.named_parameters()] == ["parameter", "created"]
    assert list(paddle_layer.state_dict()) == ["parameter", "created", "buffer"]
    assert {name for name, _ in paddle_layer.named_buffers()} == {"leaf", "table", "scaled", "buffer"}


def test_paddle_plain_tensors_are_converted_with_the_layer(paddle: Any, paddle_layer: Any) -> None:
    """Unlike in torch: moving or converting the layer reaches them."""
    paddle_layer.to(dtype="float64")
    for name in ("leaf", "table", "parameter", "buffer"):
        assert getattr(paddle_layer, name).dtype == paddle.float64


def test_paddle_leaf_gets_a_gradient_and_no_update(paddle: Any, paddle_layer: Any) -> None:
    optimizer = paddle.optimizer.SGD(1.0, parameters=paddle_layer.parameters())
    before = paddle_layer.parameter.tolist()
    (paddle_layer.leaf.sum() + paddle_layer.parameter.sum()).backward()
    optimizer.step()
    assert paddle_layer.leaf.tolist() == [1.0, 1.0]
    assert paddle_layer.parameter.tolist() != before


def test_paddle_parameter_class_came_with_3_2(paddle: Any, paddle_version: tuple[int, int]) -> None:
    """So the fix writes ``create_parameter`` for a lower target."""
    assert hasattr(paddle.nn, "Parameter") is (paddle_version >= (3, 2))


def test_type_gives_the_parameter_itself_where_it_is_of_that_type(torch: Any) -> None:
    """So that it is registered, unlike one of another type."""
    parameter = torch.nn.Parameter(torch.rand(2))
    assert parameter.type(torch.FloatTensor) is parameter
    assert not isinstance(parameter.type(torch.float16), torch.nn.Parameter)


def test_torch_type_goes_where_the_name_of_the_type_says(torch: Any) -> None:
    table, elsewhere = torch.ones(2), torch.ones(2, device="meta")
    assert table.type_as(elsewhere).device.type == "meta"
    assert elsewhere.type() == "torch.meta.FloatTensor"  # the name has the device in it: "torch.cuda.FloatTensor"
    assert table.type() == "torch.FloatTensor"
    if not torch.cuda.is_available():
        for kind in ("torch.cuda.FloatTensor", torch.cuda.FloatTensor):
            with pytest.raises((RuntimeError, AssertionError), match=r"CUDA|cuda"):  # it would go there
                table.type(kind)
    assert elsewhere.type(torch.float64).device.type == "meta"  # a dtype leaves it where it is


def test_torch_what_a_method_makes_is_no_parameter(torch: Any) -> None:
    """A tensor that asks for gradients is none, whoever makes it, and also where it is moved before."""

    class Scale(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.scale = self.make()

        def make(self) -> Any:
            return torch.zeros(3, requires_grad=True).to("cpu")

    scale = Scale()
    assert not list(scale.parameters())
    assert not scale.state_dict()
    scale.scale.sum().backward()
    assert scale.scale.grad.tolist() == [1.0, 1.0, 1.0]


def test_torch_random_numbers_are_not_loaded(torch: Any) -> None:
    class Net(torch.nn.Module):
        def __init__(self, is_saved: bool) -> None:
            super().__init__()
            drawn = torch.randn(8).to("cpu")
            if is_saved:
                self.register_buffer("waves", drawn)
            else:
                self.waves = drawn

        def forward(self, x: Any) -> Any:
            return x * self.waves

    x = torch.ones(8)
    for is_saved in (True, False):
        first, second = Net(is_saved), Net(is_saved)
        second.load_state_dict(first.state_dict())  # no complaint
        assert torch.equal(first(x), second(x)) == is_saved


def test_paddle_random_numbers_are_not_loaded(paddle: Any) -> None:
    class Net(paddle.nn.Layer):
        def __init__(self, is_saved: bool) -> None:
            super().__init__()
            drawn = paddle.randn([8])
            if is_saved:
                self.register_buffer("waves", drawn)
            else:
                self.waves = drawn

        def forward(self, x: Any) -> Any:
            return x * self.waves

    x = paddle.ones([8])
    for is_saved in (True, False):
        first, second = Net(is_saved), Net(is_saved)
        second.set_state_dict(first.state_dict())
        assert bool((first(x) == second(x)).all()) == is_saved


def test_torch_assigning_what_registering_gives_undoes_it(torch: Any) -> None:
    nn = torch.nn
    registered = {
        "register_buffer": torch.ones(2),
        "register_parameter": nn.Parameter(torch.ones(2)),
        "add_module": nn.Linear(2, 2),
        "register_module": nn.Linear(2, 2),
    }
    for method, value in registered.items():
        module = nn.Module()
        module.thing = getattr(module, method)("thing", value)
        assert module.thing is None
        assert not module.state_dict()


def test_paddle_assigning_what_registering_gives(paddle: Any) -> None:
    layer = paddle.nn.Layer()
    layer.thing = layer.register_buffer("thing", paddle.ones([2]))
    assert layer.thing is None
    assert not layer.state_dict()
    layer.fc = layer.add_sublayer("fc", paddle.nn.Linear(2, 2))
    layer.weight = layer.add_parameter("weight", layer.create_parameter([2]))
    assert len(layer.state_dict()) == 3


def test_an_item_with_dimensions_is_not_zero_dimensional_any_more(torch: Any) -> None:
    x, weights = torch.ones(2, 2, device="meta"), torch.ones(2)
    assert (x * weights[0]).device.type == "meta"
    with pytest.raises(RuntimeError, match="device"):
        x * weights[0].view(1, 1)


def test_torch_what_is_assigned_to_a_buffer_of_the_base_is_one(torch: Any) -> None:
    nn = torch.nn
    for base, name in (
        (nn.modules.loss._WeightedLoss, "weight"),
        (nn.CrossEntropyLoss, "weight"),
        (nn.BCEWithLogitsLoss, "pos_weight"),
    ):
        loss = base()
        assert not loss.state_dict()
        setattr(loss, name, torch.ones(2))
        loss.table = torch.ones(2)
        assert list(loss.state_dict()) == [name]
        loss.to("meta")
        assert (getattr(loss, name).device.type, loss.table.device.type) == ("meta", "cpu")


def test_torch_private_bases_register_what_their_public_subclasses_do(torch: Any) -> None:
    given: dict[str, tuple[Any, ...]] = {
        "_ConvNd": (3, 3, (3,), (1,), (0,), (1,), False, (0,), 1, True, "zeros"),
        "_ConvTransposeNd": (3, 3, (3,), (1,), (0,), (1,), True, (0,), 1, True, "zeros"),
        "Conv2d": (3, 3, 3),
        "ConvTranspose2d": (3, 3, 3),
        **dict.fromkeys(("_NormBase", "_BatchNorm", "_InstanceNorm", "BatchNorm2d", "InstanceNorm2d"), (3,)),
    }
    for pair in facts.PUBLIC_SUBCLASSES.items():
        base, subclass = (operator.attrgetter(name.removeprefix("torch."))(torch) for name in pair)
        made = [kind(*given.get(kind.__name__, ())) for kind in (base, subclass)]
        names = [{*it._parameters, *it._buffers} for it in made]
        assert issubclass(subclass, base)
        assert names[0] == names[1]


def test_paddle_losses_register_nothing(paddle: Any) -> None:
    loss = paddle.nn.CrossEntropyLoss()
    loss.weight = paddle.ones([2])
    assert not loss.state_dict()


def test_torch_registers_parameters_only(torch: Any) -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    for computed in (parameter.to("meta"), parameter.double(), parameter * 0.1):
        with pytest.raises(TypeError, match=r"cannot assign .* to parameter 'w'"):
            torch.nn.Module().register_parameter("w", computed)
    for same in (parameter.to("cpu"), parameter.float()):
        assert same is parameter
        torch.nn.Module().register_parameter("w", same)


def test_paddle_adds_parameters_only(paddle: Any) -> None:
    layer = paddle.nn.Layer()
    parameter = layer.create_parameter([3])
    for computed in (parameter.astype("float64"), parameter * 0.1):
        with pytest.raises(TypeError, match="should be a Parameter"):
            layer.add_parameter("w", computed)
    layer.add_parameter("w", parameter.astype("float32"))


def test_torch_initializers_give_the_leaf_itself(torch: Any) -> None:
    leaf = torch.empty(2, 2, requires_grad=True)
    assert torch.nn.init.xavier_normal_(leaf) is leaf
    assert leaf.is_leaf


def test_torch_a_type_alone_moves_nothing(torch: Any) -> None:
    x = torch.ones(2, device="meta")
    assert torch.ones(2).to(torch.float64).device.type == "cpu"
    assert torch.ones(2).to(x.dtype).device.type == "cpu"
    assert torch.ones(2).to(x).device.type == "meta"  # as the whole tensor


def test_torch_tables_of_numbers_are_made_on_the_cpu_whatever_is_done_with_them(torch: Any) -> None:
    x = torch.ones(2, device="meta")
    rows, _ = torch.meshgrid(torch.arange(2), torch.arange(2), indexing="ij")
    with pytest.raises(RuntimeError, match="device"):
        x * rows
    x * torch.tensor(0.5)  # 0-d: works on every device
    for shaped in (torch.tensor(0.5).view(1), torch.tensor(0.5)[None], torch.tensor(0.5).reshape(-1)):
        with pytest.raises(RuntimeError, match="device"):
            x * shaped


def test_torch_a_distribution_wants_its_parameters_on_one_device(torch: Any) -> None:
    normal = torch.distributions.Normal
    mean = torch.ones(3, device="meta")
    assert normal(mean, torch.ones(3, device="meta"), validate_args=False).rsample().shape == (3,)
    with pytest.raises(RuntimeError, match="device"):
        normal(mean, torch.ones(3), validate_args=False).rsample()


def test_torch_networks_that_build_their_layers_have_weights(torch: Any) -> None:
    nn = torch.nn
    layers = (nn.TransformerEncoderLayer(4, 2), nn.TransformerDecoderLayer(4, 2))
    built = (nn.Transformer(4, 2, 1, 1), nn.TransformerEncoder(layers[0], 1), nn.TransformerDecoder(layers[1], 1))
    assert all(any(True for _ in network.parameters()) for network in built)


def test_paddle_networks_that_build_their_layers_have_weights(paddle: Any) -> None:
    nn, models = paddle.nn, paddle.vision.models
    layers = (nn.TransformerEncoderLayer(4, 2, 4), nn.TransformerDecoderLayer(4, 2, 4))
    cell = nn.GRUCell(2, 2)
    built = (
        nn.Transformer(4, 2, 1, 1), nn.TransformerEncoder(layers[0], 1), nn.TransformerDecoder(layers[1], 1),
        nn.RNN(cell), nn.BiRNN(cell, nn.GRUCell(2, 2)), models.LeNet(), models.MobileNetV1(), models.SqueezeNet("1.0"),
    )  # fmt: skip
    assert all(network.parameters() for network in built)


def test_torch_a_mask_outside_of_the_buffers_does_not_move(torch: Any) -> None:
    network = torch.nn.Transformer(4, 2, 1, 1)
    network.ahead = torch.zeros(2, 2)
    network.to("meta")
    assert {parameter.device.type for parameter in network.parameters()} == {"meta"}
    assert network.ahead.device.type == "cpu"


def test_torch_state_that_is_kept_up_to_date_is_not_saved(torch: Any) -> None:
    class Mean(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.mean, self.rows = torch.zeros(2), torch.zeros(3, 2)

        def forward(self, x: Any) -> Any:
            self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
            self.rows[0] = x[0]
            return x - self.mean

    module = Mean()
    module(torch.ones(4, 2))
    assert module.mean.tolist() == [0.5, 0.5]
    assert not module.state_dict()


def test_paddle_state_that_is_kept_up_to_date_is_not_saved(paddle: Any) -> None:
    class Mean(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.mean, self.rows = paddle.zeros([2]), paddle.zeros([3, 2])

        def forward(self, x: Any) -> Any:
            self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
            self.rows[0] = x[0]
            return x - self.mean

    layer = Mean()
    layer(paddle.ones([4, 2]))
    assert layer.mean.tolist() == [0.5, 0.5]
    assert {name for name, _ in layer.named_buffers()} == {"mean", "rows"}
    assert not layer.state_dict()


def test_torch_value_computed_of_parameters_once(torch: Any) -> None:
    class Ratio(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.high, self.low = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
            self.ratio = self.high / self.low

        def forward(self, x: Any) -> Any:
            return x * self.ratio

    module = Ratio()
    module(torch.ones(1)).sum().backward()
    torch.nn.init.constant_(module.high, 4.0)
    assert module(torch.ones(1)).item() == 1
    with pytest.raises(RuntimeError, match="second time"):
        module(torch.ones(1)).sum().backward()


def test_paddle_value_computed_of_parameters_once(paddle: Any) -> None:
    class Ratio(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            one = paddle.nn.initializer.Constant(1.0)
            self.high = self.create_parameter([1], default_initializer=one)
            self.low = self.create_parameter([1], default_initializer=one)
            self.ratio = self.high / self.low

        def forward(self, x: Any) -> Any:
            return x * self.ratio

    layer = Ratio()
    layer(paddle.ones([1])).sum().backward()
    layer.high.set_value(paddle.to_tensor([4.0]))
    assert layer(paddle.ones([1])).item() == 1
    with pytest.raises(SystemError, match="backward twice"):
        layer(paddle.ones([1])).sum().backward()


def test_torch_buffer_registered_late_cannot_be_loaded(torch: Any) -> None:
    class Late(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            self.register_buffer("lead", x[0])
            return x - self.lead

    module = Late()
    module(torch.ones(3, 2))
    with pytest.raises(RuntimeError, match="Unexpected key"):
        Late().load_state_dict(module.state_dict())


def test_paddle_buffer_registered_late_is_left_out(paddle: Any) -> None:
    class Late(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            self.register_buffer("lead", x[0])
            return x - self.lead

    layer, new = Late(), Late()
    layer(paddle.ones([3, 2]))
    missing, unexpected = new.set_state_dict(layer.state_dict())
    assert (missing, unexpected) == ([], ["lead"])
    assert not new.state_dict()


def test_torch_leaves_in_a_list_or_dict_get_gradients_and_no_update(torch: Any) -> None:
    class Blend(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scales = [torch.ones(2, requires_grad=True)]
            self.shifts = {"first": torch.zeros(2, requires_grad=True)}
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.layer(x) * self.scales[0] + self.shifts["first"]

    blend = Blend()
    assert [name for name, _ in blend.named_parameters()] == ["layer.weight", "layer.bias"]
    optimizer = torch.optim.SGD(blend.parameters(), lr=1.0)
    blend(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert blend.shifts["first"].grad is not None
    assert (blend.shifts["first"] == 0).all()
    assert (blend.scales[0] == 1).all()


def test_paddle_leaves_in_a_list_get_gradients_and_no_update(paddle: Any) -> None:
    class Blend(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.shifts = [paddle.to_tensor([0.0, 0.0], stop_gradient=False)]
            self.layer = paddle.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.layer(x) + self.shifts[0]

    blend = Blend()
    assert len(blend.parameters()) == len(blend.layer.parameters())
    optimizer = paddle.optimizer.SGD(1.0, parameters=blend.parameters())
    blend(paddle.ones([1, 2])).sum().backward()
    optimizer.step()
    assert blend.shifts[0].grad is not None
    assert (blend.shifts[0] == 0).all()


def test_torch_zeros_and_ones_that_are_no_parameters_have_no_effect(torch: Any) -> None:
    class Shine(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.gloss, self.tint = torch.ones(2), torch.zeros(2)

        def forward(self, x: Any) -> Any:
            return x * self.gloss + self.tint

    shine, given = Shine(), torch.rand(3, 2)
    assert list(shine.parameters()) == []
    assert (shine(given) == given).all()


def test_paddle_zeros_and_ones_that_are_no_parameters_have_no_effect(paddle: Any) -> None:
    class Shine(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.gloss, self.tint = paddle.ones([2]), paddle.zeros([2])

        def forward(self, x: Any) -> Any:
            return x * self.gloss + self.tint

    shine, given = Shine(), paddle.rand([3, 2])
    assert shine.parameters() == []
    assert bool((shine(given) == given).all())


def test_torch_a_tensor_in_the_place_of_a_parameter_raises(torch: Any) -> None:
    layer = torch.nn.Conv2d(1, 1, 3, bias=False)
    for name in ("weight", "bias"):
        with pytest.raises(TypeError, match="cannot assign"):
            setattr(layer, name, torch.ones(1))
    with pytest.raises(TypeError, match="cannot assign"):
        layer.register_parameter("scale", torch.ones(1))
    del layer.weight
    layer.weight = torch.ones(1)
    assert list(layer.parameters()) == []


def test_paddle_a_tensor_in_the_place_of_a_parameter_raises(paddle: Any) -> None:
    layer = paddle.nn.Conv2D(1, 1, 3, bias_attr=False)
    with pytest.raises(TypeError, match="should be of type Parameter"):
        layer.weight = paddle.ones([1, 1, 3, 3])
    with pytest.raises(TypeError, match="should be a Parameter"):
        layer.add_parameter("scale", paddle.ones([1]))
    layer.bias = paddle.ones([1])
    assert len(layer.parameters()) == 1


def test_paddle_an_initializer_fills_a_plain_tensor_that_is_not_saved(paddle: Any) -> None:
    class Tagged(paddle.nn.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.mark = paddle.zeros([3])
            draw = paddle.nn.initializer.TruncatedNormal(std=0.02)
            draw(self.mark)

    one, other = Tagged(), Tagged()
    assert one.mark.any().item()
    assert not one.state_dict()
    assert not paddle.equal_all(one.mark, other.mark).item()
