"""ML101: the result of an operation that leaves its tensor alone is thrown away."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


# What a statement may not change. Values are compared as lists, so NaN never hides a difference.
def torch_state(x: Any) -> tuple[Any, ...]:
    return tuple(x.shape), x.dtype, x.device, x.requires_grad, x.stride(), x.data_ptr(), x.tolist()


def paddle_state(x: Any) -> tuple[Any, ...]:
    return tuple(x.shape), str(x.dtype), str(x.place), x.stop_gradient, x.numpy().tolist()


# Statements seen in real code: each gives a different tensor and leaves its receiver as it was.
TORCH_METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "to(dtype)": lambda torch, x: x.to(torch.float64),
    "to(device)": lambda torch, x: x.to("meta"),  # the one other device every build has
    "half": lambda torch, x: x.half(),
    "double": lambda torch, x: x.double(),
    "bfloat16": lambda torch, x: x.bfloat16(),
    "long": lambda torch, x: x.long(),
    "int": lambda torch, x: x.int(),
    "bool": lambda torch, x: x.bool(),
    "type": lambda torch, x: x.type(torch.int64),
    "type_as": lambda torch, x: x.type_as(torch.zeros(1, dtype=torch.int64)),
    "masked_fill": lambda torch, x: x.masked_fill(x > 0, float("-inf")),
    "masked_scatter": lambda torch, x: x.masked_scatter(x > 0, torch.zeros(4)),
    "clamp": lambda torch, x: x.clamp(0, 1),
    "clip": lambda torch, x: x.clip(0, 1),
    "unsqueeze": lambda torch, x: x.unsqueeze(0),
    "view": lambda torch, x: x.view(4),
    "reshape": lambda torch, x: x.reshape(4),
    "flatten": lambda torch, x: x.flatten(),
    "permute": lambda torch, x: x.permute(1, 0),
    "transpose": lambda torch, x: x.transpose(0, 1),
    "t": lambda torch, x: x.t(),
    "expand": lambda torch, x: x.expand(3, 2, 2),
    "repeat": lambda torch, x: x.repeat(2, 1),
    "scatter": lambda torch, x: x.scatter(0, torch.tensor([[0, 0]]), 9.0),
    "scatter_add": lambda torch, x: x.scatter_add(0, torch.tensor([[0, 0]]), torch.ones(1, 2)),
    "index_fill": lambda torch, x: x.index_fill(0, torch.tensor([0]), 9.0),
    "index_add": lambda torch, x: x.index_add(0, torch.tensor([0]), torch.ones(1, 2)),
    "index_put": lambda torch, x: x.index_put((torch.tensor([0]),), torch.tensor(9.0)),
    "add": lambda torch, x: x.add(1),
    "sub": lambda torch, x: x.sub(1),
    "mul": lambda torch, x: x.mul(2),
    "div": lambda torch, x: x.div(2),
    "abs": lambda torch, x: x.abs(),
    "exp": lambda torch, x: x.exp(),
    "relu": lambda torch, x: x.relu(),
    "sigmoid": lambda torch, x: x.sigmoid(),
    "softmax": lambda torch, x: x.softmax(0),
    "nan_to_num": lambda torch, x: x.div(0).nan_to_num(),
    "roll": lambda torch, x: x.roll(1),
    "flip": lambda torch, x: x.flip(0),
    "sort": lambda torch, x: x.sort().values,
}


@pytest.mark.parametrize("call", TORCH_METHODS.values(), ids=TORCH_METHODS)
def test_torch_method_as_a_statement_leaves_the_tensor_as_it_was(torch: Any, call: Any) -> None:
    x = torch.tensor([[-1.5, 2.0], [3.0, -4.0]])
    before = torch_state(x)
    result = call(torch, x)
    assert result is not x
    assert torch_state(x) == before
    assert result.device.type == "meta" or torch_state(result) != before


def torch_arguments(torch: Any) -> list[tuple[Any, ...]]:
    """Argument lists of which nearly every method of a 2 by 2 tensor takes one."""
    ones, mask = torch.ones(2, 2), torch.tensor([[True, False], [False, True]])
    index, square = torch.tensor([0, 1]), torch.tensor([[0, 1], [1, 0]])
    return [
        *[(), (0,), (0, 1), (torch.float64,), (2.0,), (ones,), (mask,), (mask, 9.0), (0, index)],
        *[(0, square), (0, index, 2.0), (0, square, 2.0), (0, square, ones), (0, index, ones)],
        *[(index, ones[0]), ((index,), torch.tensor(9.0)), (ones, ones), (4,), (2, 2)],
        *[(mask, ones), (index,), (0, 0, 1), (ones[0],), (ones[0], ones[0])],
    ]


def test_of_all_torch_methods_without_underscore_one_changes_its_tensor(torch: Any) -> None:
    """The trailing underscore is a promise: 330 methods run here, ``module_load`` alone changes."""
    ran, changed = set(), set()
    names = [name for name in dir(torch.Tensor) if not name.startswith("_")]
    for name in names:
        if name.endswith("_") or not callable(getattr(torch.Tensor, name)):
            continue
        for arguments in torch_arguments(torch):
            x = torch.tensor([[-1.5, 2.0], [3.0, -4.0]])
            before = torch_state(x)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    getattr(x, name)(*arguments)
            except (RuntimeError, TypeError, ValueError, IndexError, AssertionError):
                continue
            except (AttributeError, NotImplementedError, ImportError):
                continue
            ran.add(name)
            if torch_state(x) != before:
                changed.add(name)
    assert len(ran) > 300
    assert changed == {"module_load"}  # made for Module.load_state_dict, in no user's code


@pytest.mark.parametrize(
    "call",
    [
        lambda torch, x: x.cpu(),
        lambda torch, x: x.float(),
        lambda torch, x: x.to("cpu"),
        lambda torch, x: x.to(torch.float32),
        lambda torch, x: x.contiguous(),
        lambda torch, x: x.type_as(torch.zeros(1)),
    ],
    ids=["cpu", "float", "to(device)", "to(dtype)", "contiguous", "type_as"],
)
def test_torch_conversion_with_nothing_to_do_gives_the_same_object(torch: Any, call: Any) -> None:
    """Why it shows on the GPU only: on the CPU the dropped result was the tensor itself."""
    x = torch.ones(2)
    assert call(torch, x) is x


@pytest.mark.parametrize("name", ["cpu", "cuda", "to", "half", "float", "double", "bfloat16", "type", "requires_grad_"])
def test_names_shared_by_torch_tensors_and_modules(torch: Any, name: str) -> None:
    """For these the name alone never tells whether the statement works."""
    assert hasattr(torch.Tensor, name)
    assert hasattr(torch.nn.Module, name)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("half", "float16"), ("double", "float64"), ("bfloat16", "bfloat16"), ("float", "float32")],
)
def test_torch_module_is_converted_in_place(torch: Any, name: str, dtype: str) -> None:
    module = torch.nn.Linear(2, 2, dtype=torch.float16 if name == "float" else torch.float32)
    assert getattr(module, name)() is module
    assert module.weight.dtype == getattr(torch, dtype)


def test_torch_module_moves_in_place(torch: Any) -> None:
    module = torch.nn.Linear(2, 2)
    assert module.to("meta") is module
    assert module.weight.device.type == "meta"
    assert module.type(torch.float64).weight.dtype == torch.float64
    assert module.requires_grad_(False) is module
    assert not module.weight.requires_grad
    shared = torch.nn.Linear(2, 2)
    assert shared.share_memory() is shared
    assert shared.weight.is_shared()


def test_torch_containers_and_losses_move_in_place(torch: Any) -> None:
    nn = torch.nn
    for module in (
        nn.CrossEntropyLoss(weight=torch.ones(2)),
        nn.ParameterList([torch.ones(2)]),
        nn.ModuleDict({"a": nn.Linear(1, 1)}),
        nn.DataParallel(nn.Linear(1, 1)),
    ):
        module.to("meta")
        tensors = [*module.parameters(), *module.buffers()]
        assert tensors
        assert {tensor.device.type for tensor in tensors} == {"meta"}


def test_torch_packed_sequence_is_moved_out_of_place(torch: Any) -> None:
    """A PackedSequence is a tuple of tensors: the same mistake as on a tensor."""
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3, 2)])
    for moved in (packed.to("meta"), packed.double(), packed.half()):
        assert moved is not packed
    assert packed.data.device.type == "cpu"
    assert packed.data.dtype == torch.float32


def test_plain_containers_of_tensors_have_no_such_methods(torch: Any) -> None:
    for container in ([torch.ones(1)], {"a": torch.ones(1)}, (torch.ones(1),)):
        with pytest.raises(AttributeError):
            container.to("cpu")


TORCH_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "torch.clamp": lambda torch, x: torch.clamp(x, 0, 1),
    "torch.abs": lambda torch, x: torch.abs(x),
    "torch.relu": lambda torch, x: torch.relu(x),
    "torch.sigmoid": lambda torch, x: torch.sigmoid(x),
    "torch.unsqueeze": lambda torch, x: torch.unsqueeze(x, 0),
    "torch.flatten": lambda torch, x: torch.flatten(x),
    "torch.where": lambda torch, x: torch.where(x > 0, x, 0.0),
    "torch.masked_fill": lambda torch, x: torch.masked_fill(x, x > 0, 0.0),
    "F.relu": lambda torch, x: torch.nn.functional.relu(x),
    "F.normalize": lambda torch, x: torch.nn.functional.normalize(x),
    "F.softmax": lambda torch, x: torch.nn.functional.softmax(x, dim=0),
    "F.dropout": lambda torch, x: torch.nn.functional.dropout(x, 1.0),
    "F.pad": lambda torch, x: torch.nn.functional.pad(x, (1, 1)),
    "nn.ReLU()": lambda torch, x: torch.nn.ReLU()(x),
}


@pytest.mark.parametrize("call", TORCH_FUNCTIONS.values(), ids=TORCH_FUNCTIONS)
def test_torch_function_as_a_statement_leaves_its_argument(torch: Any, call: Any) -> None:
    x = torch.tensor([[-1.5, 2.0], [3.0, -4.0]])
    before = torch_state(x)
    assert torch_state(call(torch, x)) != before
    assert torch_state(x) == before


# Look-alikes: as statements these do what was meant.
TORCH_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "clamp_": lambda torch, x: x.clamp_(0, 1),
    "data.clamp_": lambda torch, x: x.data.clamp_(0, 1),
    "torch.clamp(out=)": lambda torch, x: torch.clamp(x, 0, 1, out=x),
    "torch.relu_": lambda torch, x: torch.relu_(x),
    "F.relu(inplace=True)": lambda torch, x: torch.nn.functional.relu(x, inplace=True),
    "F.relu(x, True)": lambda torch, x: torch.nn.functional.relu(x, True),
    "F.leaky_relu(x, s, True)": lambda torch, x: torch.nn.functional.leaky_relu(x, 0.1, True),
    "F.threshold(.., True)": lambda torch, x: torch.nn.functional.threshold(x, 0.1, 0.0, True),
    "F.hardtanh(.., True)": lambda torch, x: torch.nn.functional.hardtanh(x, 0.1, 0.2, True),
    "F.dropout(.., True)": lambda torch, x: torch.nn.functional.dropout(x, 1.0, True, True),
    "F.normalize(out=)": lambda torch, x: torch.nn.functional.normalize(x, out=x),
    "nn.ReLU(True)": lambda torch, x: torch.nn.ReLU(True)(x),
    "nn.init.zeros_": lambda torch, x: torch.nn.init.zeros_(x),
    "apply_": lambda torch, x: x.apply_(lambda value: value + 1),
    "requires_grad_": lambda torch, x: x.requires_grad_(),
    "resize_": lambda torch, x: x.resize_(1, 4),
    "unsqueeze_": lambda torch, x: x.unsqueeze_(0),
    "t_": lambda torch, x: x.t_(),
}


@pytest.mark.parametrize("call", TORCH_IN_PLACE.values(), ids=TORCH_IN_PLACE)
def test_torch_in_place_forms_change_the_tensor(torch: Any, call: Any) -> None:
    x = torch.tensor([[-1.5, 2.0], [3.0, -4.0]])
    before = torch_state(x)
    call(torch, x)
    assert torch_state(x) != before


def test_torch_parameter_attribute_cannot_take_the_result(torch: Any) -> None:
    """Why no fix is offered for ``self.w.clamp(...)``: the obvious assignment raises."""

    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.zeros(2))
            self.register_buffer("b", torch.zeros(2))

    module = Scaled()
    with pytest.raises(TypeError, match=r"cannot assign .* as parameter 'w'"):
        module.w = torch.clamp(module.w, 1)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        module.w.clamp_(1)
    with torch.no_grad():
        module.w.clamp_(1)
    assert module.w.tolist() == [1.0, 1.0]
    module.w = module.w.to("cpu")  # nothing to do: the Parameter itself comes back
    module.b = torch.clamp(module.b, 1)
    assert dict(module.named_buffers())["b"].tolist() == [1.0, 1.0]


def test_torch_parameter_moved_is_no_parameter_any_more(torch: Any) -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    moved = parameter.to("meta")
    assert type(moved) is torch.Tensor
    assert not moved.is_leaf
    assert parameter.device.type == "cpu"


def test_torch_wrappers_as_statements_leave_the_module_alone(torch: Any) -> None:
    model = torch.nn.Linear(2, 2)
    assert torch.compile(model) is not model
    assert model._compiled_call_impl is None
    wrapped = torch.nn.DataParallel(model)
    assert wrapped is not model
    assert wrapped.module is model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert torch.jit.script(model) is not model
    assert type(model) is torch.nn.Linear


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torch_quantization_converts_a_copy_unless_told_otherwise(torch: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    quantized = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear})
    assert quantized is not model
    assert type(model[0]) is torch.nn.Linear
    assert type(quantized[0]) is not torch.nn.Linear
    torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, inplace=True)
    assert type(model[0]) is not torch.nn.Linear


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torch_transformations_that_work_in_place(torch: Any) -> None:
    nn = torch.nn
    model = nn.Linear(2, 2)
    model.compile()
    assert model._compiled_call_impl is not None

    sequential = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3))
    nn.SyncBatchNorm.convert_sync_batchnorm(sequential)
    assert type(sequential[1]) is nn.SyncBatchNorm

    for transformation in (
        nn.utils.parametrizations.weight_norm,
        nn.utils.parametrizations.spectral_norm,
        nn.utils.spectral_norm,
    ):
        layer = nn.Linear(2, 2)
        keys = list(layer.state_dict())
        assert transformation(layer) is layer
        assert list(layer.state_dict()) != keys


# ---- paddle -----------------------------------------------------------------------------------

PADDLE_METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "astype": lambda paddle, x: x.astype("float64"),
    "cast": lambda paddle, x: x.cast("float64"),
    "masked_fill": lambda paddle, x: x.masked_fill(x > 0, float("-inf")),
    "clip": lambda paddle, x: x.clip(0, 1),
    "unsqueeze": lambda paddle, x: x.unsqueeze(0),
    "reshape": lambda paddle, x: x.reshape([4]),
    "flatten": lambda paddle, x: x.flatten(),
    "transpose": lambda paddle, x: x.transpose([1, 0]),
    "expand": lambda paddle, x: x.expand([3, 2, 2]),
    "tile": lambda paddle, x: x.tile([2, 1]),
    "view": lambda paddle, x: x.view([4]),
    "scatter": lambda paddle, x: x.scatter(paddle.to_tensor([0]), paddle.zeros([1, 2])),
    "index_fill": lambda paddle, x: x.index_fill(paddle.to_tensor([0]), 0, 9.0),
    "index_put": lambda paddle, x: x.index_put((paddle.to_tensor([0]),), paddle.to_tensor(9.0)),
    "put_along_axis": lambda paddle, x: x.put_along_axis(paddle.to_tensor([[0, 0]]), 9.0, 0),
    "gather": lambda paddle, x: x.gather(paddle.to_tensor([0])),
    "add": lambda paddle, x: x.add(x),
    "subtract": lambda paddle, x: x.subtract(x),
    "multiply": lambda paddle, x: x.multiply(x),
    "scale": lambda paddle, x: x.scale(2.0),
    "abs": lambda paddle, x: x.abs(),
    "exp": lambda paddle, x: x.exp(),
    "sort": lambda paddle, x: x.sort(),
    "paddle.clip": lambda paddle, x: paddle.clip(x, 0, 1),
    "F.relu": lambda paddle, x: paddle.nn.functional.relu(x),
    "F.softmax": lambda paddle, x: paddle.nn.functional.softmax(x),
    "F.normalize": lambda paddle, x: paddle.nn.functional.normalize(x),
}


@pytest.mark.parametrize("call", PADDLE_METHODS.values(), ids=PADDLE_METHODS)
def test_paddle_call_as_a_statement_leaves_the_tensor_as_it_was(paddle: Any, call: Any) -> None:
    x = paddle.to_tensor([[-1.5, 2.0], [3.0, -4.0]])
    before = paddle_state(x)
    result = call(paddle, x)
    assert result is not x
    assert paddle_state(x) == before
    assert paddle_state(result) != before


@pytest.mark.parametrize("name", ["half", "double", "long", "int", "bool"])
def test_paddle_cast_methods_leave_the_tensor_as_it_was(
    paddle: Any, paddle_version: tuple[int, int], name: str
) -> None:
    if paddle_version < (3, 2):
        assert not hasattr(paddle.Tensor, name)
        return
    x = paddle.to_tensor([1.5, 2.0])
    assert getattr(x, name)().dtype != x.dtype
    assert x.dtype == paddle.float32


def test_paddle_to_is_out_of_place_since_version_3(paddle: Any, paddle_version: tuple[int, int]) -> None:
    """Before 3.0 ``x.to("float64")`` changed ``x`` itself: there the statement was right."""
    x = paddle.to_tensor([1.5, 2.0])
    result = x.to("float64")
    if paddle_version < (3, 0):
        assert result is x
        assert x.dtype == paddle.float64
    else:
        assert result is not x
        assert x.dtype == paddle.float32


def test_paddle_layer_converts_in_place(paddle: Any, paddle_version: tuple[int, int]) -> None:
    layer = paddle.nn.Linear(2, 2)
    assert layer.to(dtype="float64") is layer
    assert layer.weight.dtype == paddle.float64
    assert layer.float() is layer
    assert layer.weight.dtype == paddle.float32
    if paddle_version >= (3, 3):
        for name in ("double", "half", "bfloat16"):
            layer = paddle.nn.Linear(2, 2)
            assert getattr(layer, name)() is layer
            # Where the processor has no bfloat16, Paddle warns and leaves the weights as they are.
            assert layer.weight.dtype != paddle.float32 or name == "bfloat16"


def test_paddle_layer_astype_fell_into_this_trap_itself(paddle: Any, paddle_version: tuple[int, int]) -> None:
    """Since 3.0 ``Layer.astype`` drops the converted parameters and returns self uncast."""
    layer = paddle.nn.Linear(2, 2)
    assert layer.astype("float64") is layer
    expected = paddle.float64 if paddle_version < (3, 0) else paddle.float32
    assert layer.weight.dtype == expected


PADDLE_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "clip_": lambda paddle, x: x.clip_(0, 1),
    "fill_": lambda paddle, x: x.fill_(1.0),
    "zero_": lambda paddle, x: x.zero_(),
    "cast_": lambda paddle, x: x.cast_("float64"),
    "scatter_": lambda paddle, x: x.scatter_(paddle.to_tensor([0]), paddle.zeros([1, 2])),
    "set_value": lambda paddle, x: x.set_value(paddle.zeros([2, 2])),
    "F.relu_": lambda paddle, x: paddle.nn.functional.relu_(x),
    "F.softmax_": lambda paddle, x: paddle.nn.functional.softmax_(x),
    "paddle.assign(.., out)": lambda paddle, x: paddle.assign(paddle.zeros([2, 2]), x),
    "unsqueeze_": lambda paddle, x: x.unsqueeze_(0),
}


@pytest.mark.parametrize("call", PADDLE_IN_PLACE.values(), ids=PADDLE_IN_PLACE)
def test_paddle_in_place_forms_change_the_tensor(paddle: Any, call: Any) -> None:
    x = paddle.to_tensor([[-1.5, 2.0], [3.0, -4.0]])
    before = paddle_state(x)
    call(paddle, x)
    assert paddle_state(x) != before


def test_paddle_increment_is_in_place_without_underscore(paddle: Any) -> None:
    x = paddle.ones([1])
    assert paddle.increment(x) is x
    assert x.item() == 2.0


def test_paddle_out_argument_came_with_3(paddle: Any, paddle_version: tuple[int, int]) -> None:
    x = paddle.to_tensor([-1.0, 2.0])
    if paddle_version < (3, 0):
        with pytest.raises(TypeError):
            paddle.clip(x, 0, 1, out=x)
    elif paddle_version >= (3, 3):
        paddle.clip(x, 0, 1, out=x)
        assert x.tolist() == [0.0, 1.0]


def test_paddle_has_no_inplace_keyword(paddle: Any) -> None:
    with pytest.raises(TypeError):
        paddle.nn.functional.relu(paddle.ones([1]), inplace=True)


def test_paddle_parameter_attribute_cannot_take_the_result(paddle: Any) -> None:
    class Scaled(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.w = self.create_parameter([2])
            self.register_buffer("b", paddle.zeros([2]))

    layer = Scaled()
    with pytest.raises(TypeError, match="assignment to parameter 'w'"):
        layer.w = paddle.clip(layer.w, 1.0)
    with pytest.raises(ValueError, match="stop gradient"):
        layer.w.clip_(1.0)
    with paddle.no_grad():
        layer.w.clip_(1.0)
    assert min(layer.w.tolist()) >= 1.0
    layer.b = paddle.clip(layer.b, 1.0)
    assert dict(layer.named_buffers())["b"].tolist() == [1.0, 1.0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_paddle_wrappers(paddle: Any) -> None:
    """DataParallel gives a new layer; ``to_static`` and the conversions change the old one."""
    nn = paddle.nn
    layer = nn.Linear(2, 2)
    assert paddle.DataParallel(layer) is not layer
    plain_forward = type(layer.forward)
    assert paddle.jit.to_static(layer) is layer
    assert type(layer.forward) is not plain_forward

    sequential = nn.Sequential(nn.Conv2D(3, 3, 1), nn.BatchNorm2D(3))
    nn.SyncBatchNorm.convert_sync_batchnorm(sequential)
    assert type(sequential[1]) is nn.SyncBatchNorm
    normalized = nn.Linear(2, 2)
    assert nn.utils.weight_norm(normalized) is normalized
    assert "weight_g" in normalized.state_dict()


def test_torch_load_leaves_every_module_as_it_was(torch: Any, tmp_path: Any) -> None:
    trained, fresh = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    torch.save(trained, tmp_path / "whole.pth")
    before = fresh.weight.clone()
    torch.load(tmp_path / "whole.pth", weights_only=False)
    assert torch.equal(fresh.weight, before)


def test_torch_the_name_of_a_type_on_the_cpu_takes_a_tensor_there(torch: Any) -> None:
    elsewhere = torch.ones(2, device="meta")
    assert elsewhere.type(torch.float64).device.type == "meta"
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        elsewhere.type(torch.DoubleTensor)


TOLD_BY_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "squeeze": lambda x: x.squeeze(),
    "squeeze(0)": lambda x: x.squeeze(0),
    "transpose": lambda x: x.transpose(0, 1),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "reshape": lambda x: x.reshape(-1),
}


@pytest.mark.parametrize("call", TOLD_BY_NUMBERS.values(), ids=TOLD_BY_NUMBERS)
def test_what_is_told_numbers_leaves_tensors_and_arrays_as_they_were(torch: Any, call: Any) -> None:
    """So it need not be known which of them it is. `view(-1)`, which wants a type of arrays, they refuse."""
    numpy = pytest.importorskip("numpy")
    for made in (torch.ones(1, 2), numpy.ones((1, 2))):
        before = made.shape
        assert call(made) is not made
        assert made.shape == before
    with pytest.raises(TypeError):
        numpy.ones((1, 2)).view(-1)


def test_torch_data_parallel_scatters_all_that_it_is_given(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = torch.nn.DataParallel(torch.nn.Linear(2, 2))
    scattered: list[Any] = []

    def scatter(inputs: Any, keywords: Any, devices: Any) -> Any:
        scattered.append((inputs, keywords, list(devices)))
        return (inputs,), (keywords,)

    monkeypatch.setattr(wrapper, "device_ids", [0])
    monkeypatch.setattr(wrapper, "src_device_obj", torch.device("cpu"), raising=False)
    monkeypatch.setattr(wrapper, "scatter", scatter, raising=False)
    rows = torch.rand(3, 2)
    wrapper(rows)
    wrapper(input=rows)
    assert scattered[0][0][0] is rows
    assert scattered[1][1]["input"] is rows


def test_an_index_and_what_is_copied_may_be_on_the_cpu() -> None:
    """``table[order]`` and ``weight.copy_(table)`` take from the CPU what another device has not; a sum does not.

    The one other device that every build has holds no numbers, so what is looked at is which of them raise.
    """
    torch = pytest.importorskip("torch")
    elsewhere, order = torch.empty(3, 2, device="meta"), torch.randperm(3)
    assert elsewhere[order].device == elsewhere.device
    assert elsewhere.copy_(torch.ones(3, 2)).device == elsewhere.device
    with pytest.raises(RuntimeError):
        elsewhere + torch.ones(3, 2)


def test_only_a_leaf_without_a_graph_gets_a_gradient() -> None:
    """Who sets the flag of what was computed from a leaf is refused, or finds no gradient."""
    torch = pytest.importorskip("torch")
    weight = torch.ones(2, requires_grad=True)
    computed, plain = weight * 2, torch.ones(2) * 2
    computed.detach()
    with pytest.raises(RuntimeError, match="leaf"):
        computed.requires_grad = True
    plain.detach()
    plain.requires_grad = True
    for thing in (computed.requires_grad_(), plain):
        (thing * 3).sum().backward()
    assert plain.grad.tolist() == [3.0, 3.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert computed.grad is None


def test_what_is_computed_without_gradients_has_no_graph() -> None:
    torch = pytest.importorskip("torch")
    weight = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        moved, kept = weight + 1, weight
    assert not moved.requires_grad
    assert kept.requires_grad


def test_a_shape_that_nobody_misses() -> None:
    """What is made of each number is shaped anew, one row is taken out, a comparison spreads: all without the call."""
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    picked = torch.tensor([[0], [2], [1]])
    as_they_are, squeezed = (functional.one_hot(item, 3).view(-1, 3) for item in (picked, picked.squeeze(1)))
    assert as_they_are.tolist() == squeezed.tolist()
    assert functional.one_hot(picked, 3).shape != functional.one_hot(picked.squeeze(1), 3).shape
    features = torch.rand(4, 10, 1, 1)
    assert torch.squeeze(features).tolist() == torch.squeeze(features.view(4, 10)).tolist()
    scores, limits = torch.rand(2, 3, 4, 4), torch.tensor([0.1, 0.5, 0.9]).reshape(1, -1, 1, 1)
    assert (scores > limits).tolist() == (scores > limits.expand_as(scores)).tolist()
    row = torch.rand(1, 5)
    assert torch.allclose(row, row.squeeze())


def test_a_parameter_goes_where_its_module_goes() -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(2, 2)
    layer.weight.to("meta")
    assert layer.weight.device.type == "cpu"
    layer.to("meta")
    assert layer.weight.device.type == "meta"


def test_what_is_made_on_the_cpu_or_of_a_type_stays_so() -> None:
    torch = pytest.importorskip("torch")
    made = torch.zeros(3)
    assert made.cpu() is made
    assert made.to("cpu") is made
    assert made.float() is made
    assert torch.transpose(torch.Tensor([[1, 2]]), 0, 1).dtype == torch.float32
    rows = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 2)), batch_size=2)
    assert {batch[0].device.type for batch in rows} == {"cpu"}


def test_gradients_that_are_given_back_are_put_nowhere(torch: Any) -> None:
    layer = torch.nn.Linear(3, 1)
    seen: list[Any] = []
    hidden = layer(torch.rand(2, 3))
    hidden.register_hook(seen.append)
    before = layer.weight.detach().clone()
    steps = torch.optim.SGD(layer.parameters(), lr=0.1)
    torch.autograd.grad(hidden.mean(), layer.parameters())
    steps.step()
    assert layer.weight.grad is None
    assert torch.equal(layer.weight, before)
    assert len(seen) == 1  # a hook is told of them on the way


def test_paddle_gradients_that_are_given_back_are_put_nowhere(paddle: Any) -> None:
    layer = paddle.nn.Linear(3, 1)
    before = layer.weight.numpy().copy()
    steps = paddle.optimizer.SGD(learning_rate=0.1, parameters=layer.parameters())
    paddle.grad(layer(paddle.rand([2, 3])).mean(), layer.parameters())
    steps.step()
    assert layer.weight.grad is None
    assert (layer.weight.numpy() == before).all()


def test_torch_change_in_place_spreads_by_itself(torch: Any) -> None:
    """The look-alike: what is changed keeps its shape, whatever shape the other tensor was given."""
    light, mask = torch.rand(1, 2, 2), torch.tensor([True, False, True])
    changed = [torch.ones(3, 2, 2) for _ in range(4)]
    changed[0][mask] += light
    changed[1][mask] += light.expand(2, 2, 2)
    assert torch.equal(changed[0], changed[1])
    changed[2] *= light
    changed[3] *= light.expand(3, 2, 2)
    assert torch.equal(changed[2], changed[3])
    small = torch.ones(1, 2, 2)
    assert (small + light).shape != (small + light.expand(3, 2, 2)).shape


def test_paddle_change_of_a_part_spreads_by_itself(paddle: Any) -> None:
    """The look-alike; ``+=`` of a whole tensor gives a new one there, of the shape of both."""
    light = paddle.rand([1, 2, 2])
    changed = [paddle.ones([3, 2, 2]) for _ in range(2)]
    changed[0][1:] += light
    changed[1][1:] += light.expand([2, 2, 2])
    assert changed[0].tolist() == changed[1].tolist()
    small = paddle.ones([1, 2, 2])
    small += light.expand([3, 2, 2])
    assert small.shape == [3, 2, 2]


def test_torch_tensor_of_a_tensor_is_the_same(torch: Any) -> None:
    labels = torch.tensor([1, 2])
    assert torch.as_tensor(labels) is labels


def test_paddle_loader_makes_tensors(paddle: Any, numpy: Any) -> None:
    """The look-alike: nothing is to be converted."""

    class Frames(paddle.io.Dataset):
        def __getitem__(self, index: int) -> Any:
            return numpy.zeros(3, dtype="float32"), index

        def __len__(self) -> int:
            return 2

    (seen, wanted), *_ = paddle.io.DataLoader(Frames(), batch_size=2)
    assert isinstance(seen, paddle.Tensor)
    assert paddle.to_tensor(wanted).tolist() == wanted.tolist() == [0, 1]
