"""ML102: a 0-d tensor is indexed as if it held a list of one number, as it did before 2018."""

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence

INDEXED: dict[str, Callable[[Any], Any]] = {
    "loss[0]": lambda loss: loss[0],
    "loss[-1]": lambda loss: loss[-1],
    "loss.data[0]": lambda loss: loss.data[0],
    "loss.detach()[0]": lambda loss: loss.detach()[0],
    "loss.data.cpu()[0]": lambda loss: loss.data.cpu()[0],
    "loss.cpu().data[0]": lambda loss: loss.cpu().data[0],
    "loss.detach().numpy()[0]": lambda loss: loss.detach().numpy()[0],
    "loss.data.cpu().numpy()[0]": lambda loss: loss.data.cpu().numpy()[0],
}

# Look-alikes: none of these picks an element of a 0-d tensor by a number.
RIGHT: dict[str, Callable[[Any], Any]] = {
    "loss.item()": lambda loss: loss.item(),
    "loss[None][0]": lambda loss: loss[None][0],
    "loss[...]": lambda loss: loss[...],
    "loss[()]": lambda loss: loss[()],
    "loss.unsqueeze(0)[0]": lambda loss: loss.unsqueeze(0)[0],
    "loss.detach().numpy().item()": lambda loss: loss.detach().numpy().item(),
    "loss.detach().numpy()[()]": lambda loss: loss.detach().numpy()[()],
    "loss.tolist()": lambda loss: loss.tolist(),
}


@pytest.fixture
def torch_loss(torch: Any) -> Any:
    weight = torch.ones(3, requires_grad=True)
    return (weight * 2).mean()


@pytest.mark.parametrize("form", INDEXED.values(), ids=INDEXED)
def test_torch_indexing_a_scalar_raises(torch_loss: Any, form: Any) -> None:
    with pytest.raises(IndexError):
        form(torch_loss)


def test_torch_message_names_the_cure(torch_loss: Any) -> None:
    with pytest.raises(IndexError, match=r"Use `tensor\.item\(\)`"):
        torch_loss.data[0]


def test_torch_numpy_of_a_loss_raises_before_the_index_does(torch_loss: Any) -> None:
    with pytest.raises(RuntimeError, match=r"requires grad"):
        torch_loss.numpy()[0]


def test_torch_scalar_can_neither_be_iterated_nor_measured_nor_sliced(torch_loss: Any) -> None:
    with pytest.raises(TypeError, match="0-d"):
        list(torch_loss)
    with pytest.raises(TypeError, match="0-d"):
        len(torch_loss)
    with pytest.raises(IndexError):
        torch_loss[:]


@pytest.mark.parametrize("form", RIGHT.values(), ids=RIGHT)
def test_torch_right_forms(torch_loss: Any, form: Any) -> None:
    assert form(torch_loss.detach()) == 2.0


def test_torch_item_is_a_python_number(torch_loss: Any) -> None:
    assert type(torch_loss.item()) is float
    assert f"{torch_loss:.1f}" == "2.0"  # a 0-d tensor can be formatted without it


@pytest.mark.parametrize(
    "reduce",
    [
        lambda torch, x: x.sum(),
        lambda torch, x: x.mean(),
        lambda torch, x: x.max(),
        lambda torch, x: x.min(),
        lambda torch, x: x.prod(),
        lambda torch, x: x.std(),
        lambda torch, x: x.var(),
        lambda torch, x: x.norm(),
        lambda torch, x: x.median(),
        lambda torch, x: x.argmax(),
        lambda torch, x: (x > 0).all(),
        lambda torch, x: (x > 0).any(),
        lambda torch, x: torch.dot(x[0], x[0]),
        lambda torch, x: torch.logsumexp(x.flatten(), 0),
        lambda torch, x: torch.nn.utils.clip_grad_norm_([x.requires_grad_()], 1.0),
        lambda torch, x: x[0][0],
        lambda torch, x: torch.tensor(1.0),
    ],
)
def test_torch_reductions_without_dim_are_scalars(torch: Any, reduce: Any) -> None:
    result = reduce(torch, torch.ones(2, 3))
    assert result.ndim == 0
    with pytest.raises(IndexError):
        result[0]


def test_torch_reductions_that_keep_something_to_index(torch: Any) -> None:
    x = torch.ones(2, 3)
    assert x.sum(0)[0].item() == 2.0
    assert x.mean(dim=1)[0].item() == 1.0
    assert x.sum(0, keepdim=True)[0].shape == (3,)
    assert x.max(0)[0].shape == (3,)  # (values, indices)
    assert torch.ones(1).data[0].item() == 1.0  # a batch of one
    assert torch.ones(4).data[0].item() == 1.0


def test_torch_reduction_over_the_only_dimension_is_a_scalar_too(torch: Any) -> None:
    """So with a ``dim`` the rank decides: unless it is known nothing can be said."""
    with pytest.raises(IndexError):
        torch.ones(3).sum(0)[0]


def losses(nn: Any) -> list[Any]:
    classes = [value for name, value in sorted(vars(nn).items()) if name.endswith("Loss")]
    return [value for value in classes if inspect.isclass(value)]


def first_that_fits(loss: Any, candidates: list[tuple[Any, ...]]) -> Any:
    for arguments in candidates:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return loss(*arguments)
        except (RuntimeError, ValueError, TypeError, IndexError, AssertionError, AttributeError):
            continue
    return None


def test_torch_every_loss_class_gives_a_scalar_unless_reduction_is_none(torch: Any) -> None:
    x = torch.rand(4, 3)
    labels, sign = torch.tensor([0, 1, 2, 0]), torch.ones(4)
    candidates: list[tuple[Any, ...]] = [
        *[(x, labels), (x, x.roll(1)), (x, x.roll(1), sign), (x, x.roll(1), x.roll(2))],
        *[(x, labels.repeat(3, 1).T), (x, x, x)],
    ]
    seen = set()
    for loss_class in losses(torch.nn):
        try:
            loss = loss_class()
        except TypeError:
            continue  # needs sizes
        result = first_that_fits(loss, candidates)
        if result is None:
            continue
        seen.add(loss_class.__name__)
        assert result.ndim == 0, loss_class
        assert first_that_fits(loss_class(reduction="none"), candidates).ndim > 0, loss_class
    assert len(seen) >= 18
    assert {"CrossEntropyLoss", "MSELoss", "BCEWithLogitsLoss", "L1Loss", "NLLLoss"} <= seen


# ---- paddle: 0-d tensors came with 2.5; the forms were right before, a loss had shape [1] -------


@pytest.fixture
def paddle_loss(paddle: Any) -> Any:
    weight = paddle.ones([3])
    weight.stop_gradient = False
    return (weight * 2).mean()


@pytest.mark.parametrize(
    "form",
    [*INDEXED.values(), lambda loss: loss.numpy()[0]],  # its numpy() asks for no detach()
    ids=[*INDEXED, "loss.numpy()[0]"],
)
def test_paddle_indexing_a_scalar_raises(paddle_loss: Any, form: Any) -> None:
    assert list(paddle_loss.shape) == []
    with pytest.raises(IndexError):
        form(paddle_loss)


def test_paddle_scalar_can_neither_be_iterated_nor_measured_nor_sliced(paddle_loss: Any) -> None:
    with pytest.raises(AssertionError, match="0-D"):
        list(paddle_loss)
    with pytest.raises(AssertionError, match="0-D"):
        len(paddle_loss)
    with pytest.raises(ValueError, match="Too many indices"):
        paddle_loss[:]


@pytest.mark.parametrize("form", RIGHT.values(), ids=RIGHT)
def test_paddle_right_forms(paddle_loss: Any, form: Any) -> None:
    assert float(form(paddle_loss)) == 2.0


def test_paddle_scalar_in_a_format_string(paddle_loss: Any, paddle_version: tuple[int, int]) -> None:
    """Another reason for ``item()``: 2.6 cannot format a tensor."""
    assert "%.1f" % paddle_loss == "2.0"  # noqa: UP031 - the form is the point
    if paddle_version < (3, 0):
        with pytest.raises(TypeError, match="format"):
            f"{paddle_loss:.1f}"
    else:
        assert f"{paddle_loss:.1f}" == "2.0"


@pytest.mark.parametrize(
    "reduce",
    [
        lambda paddle, x: x.sum(),
        lambda paddle, x: x.mean(),
        lambda paddle, x: x.max(),
        lambda paddle, x: x.min(),
        lambda paddle, x: x.std(),
        lambda paddle, x: x.argmax(),
        lambda paddle, x: paddle.norm(x),
        lambda paddle, x: (x > 0).all(),
        lambda paddle, x: paddle.dot(x[0], x[0]),
        lambda paddle, x: x[0][0],
        lambda paddle, x: paddle.to_tensor(1.0),
        lambda paddle, x: x.numel(),  # a tensor in paddle, a number in torch
        lambda paddle, x: paddle.metric.accuracy(x, paddle.zeros([2, 1], dtype="int64")),
    ],
)
def test_paddle_reductions_without_axis_are_scalars(paddle: Any, reduce: Any) -> None:
    result = reduce(paddle, paddle.ones([2, 3]))
    assert list(result.shape) == []
    with pytest.raises(IndexError):
        result[0]


def test_paddle_reductions_that_keep_something_to_index(paddle: Any) -> None:
    assert paddle.ones([2, 3]).sum(0)[0].item() == 2.0
    assert paddle.ones([1]).numpy()[0] == 1.0


def test_paddle_every_loss_class_gives_a_scalar_unless_reduction_is_none(paddle: Any) -> None:
    x = paddle.rand([4, 3])
    labels, sign = paddle.to_tensor([0, 1, 2, 0]), paddle.ones([4])
    candidates: list[tuple[Any, ...]] = [
        *[(x, labels), (x, x.roll(1)), (x, x.roll(1), sign), (x, x.roll(1), x.roll(2))],
        *[(x, x, x)],
    ]
    seen = set()
    for loss_class in losses(paddle.nn):
        try:
            loss = loss_class()
        except TypeError:
            continue  # needs sizes
        result = first_that_fits(loss, candidates)
        if result is None:
            continue
        seen.add(loss_class.__name__)
        assert result.ndim == 0, loss_class
        assert first_that_fits(loss_class(reduction="none"), candidates).ndim > 0, loss_class
    assert len(seen) >= 15
    assert {"CrossEntropyLoss", "MSELoss", "BCEWithLogitsLoss", "L1Loss", "NLLLoss"} <= seen


@pytest.mark.filterwarnings("ignore")
def test_paddle_losses_that_do_not_reduce(paddle: Any) -> None:
    functional = paddle.nn.functional
    x, labels = paddle.rand([4, 3]), paddle.to_tensor([[0], [1], [2], [0]])
    assert functional.softmax_with_cross_entropy(x, labels).ndim == 2
    assert functional.square_error_cost(x, x).ndim == 2
    assert functional.log_loss(x[:, :1], x[:, :1]).ndim == 2


REDUCTIONS = ("sum", "mean", "amax", "logsumexp", "prod")


@pytest.mark.parametrize("name", REDUCTIONS)
def test_torch_what_has_no_dimension_keeps_none_when_one_is_reduced(torch_loss: Any, name: str) -> None:
    for options in ({"dim": 0}, {"dim": -1}, {"dim": 0, "keepdim": True}):
        assert getattr(torch_loss, name)(**options).shape == ()
    values, places = torch_loss.max(0)
    assert values.shape == places.shape == ()


@pytest.mark.parametrize("name", REDUCTIONS)
def test_paddle_what_has_no_dimension_keeps_none_when_one_is_reduced(paddle: Any, name: str) -> None:
    loss = paddle.mean(paddle.ones([3]))
    for options in ({"axis": 0}, {"axis": -1}, {"axis": 0, "keepdim": True}):
        reduced = getattr(paddle, name)(loss, **options)
        assert reduced.shape == []
        with pytest.raises(IndexError):
            reduced.numpy()[0]


def test_a_size_of_a_shape_is_a_number(torch: Any, paddle: Any) -> None:
    for x in (torch.ones(3, 2), paddle.ones([3, 2])):
        size = x.shape[0]
        assert isinstance(size, int)
        assert (x.sum() / size).ndim == 0


SHAPES: list[tuple[int, ...]] = [(), (4,), (2, 4), (1, 4), (2, 4, 4), (2, 4, 4, 4), (1, 4, 4, 4, 4)]
"""Of what a layer may be given; the first has no dimension."""


def built(layer: Any) -> Any:
    """A layer of four of everything, or of nothing; ``None`` where that does not do."""
    for arguments in ((), (4,), (4, 4), (4, 4, 1)):
        try:
            return layer(*arguments)
        except (TypeError, ValueError, RuntimeError, AssertionError, AttributeError):
            continue
    return None


def ranks_of(layer: Any, ones: Any) -> set[int]:
    """How many dimensions that has which a layer gives for the shapes that it takes."""
    ranks = set()
    for shape in SHAPES:
        for data in (ones(shape), ones(shape) > 0):
            given = layer(data) if takes(layer, data) else None
            ranks |= {given.ndim} if given is not None and hasattr(given, "ndim") else set()
    return ranks


def takes(layer: Any, data: Any) -> bool:
    try:
        layer(data)
    except Exception:  # noqa: BLE001 - of whatever kind
        return False
    return True


@pytest.mark.filterwarnings("ignore")
def test_torch_what_a_layer_with_weights_gives_has_a_dimension(torch: Any) -> None:
    seen = {}
    for name in sorted(vars(torch.nn)):
        layer = built(getattr(torch.nn, name)) if inspect.isclass(getattr(torch.nn, name)) else None
        if isinstance(layer, torch.nn.Module) and layer.state_dict():
            seen[name] = ranks_of(layer.eval(), torch.ones)
    assert {"Linear", "Conv2d", "LayerNorm", "BatchNorm1d", "PReLU"} <= {name for name, ranks in seen.items() if ranks}
    assert [name for name, ranks in seen.items() if 0 in ranks] == ["PReLU"]


@pytest.mark.filterwarnings("ignore")
def test_torch_what_a_layer_without_weights_is_given_keeps_a_dimension(torch: Any) -> None:
    for name in sorted(vars(torch.nn)):
        layer = built(getattr(torch.nn, name)) if inspect.isclass(getattr(torch.nn, name)) else None
        if isinstance(layer, torch.nn.Module) and not layer.state_dict() and not name.endswith("Loss"):
            given = [layer(torch.ones(shape)) for shape in SHAPES[1:] if takes(layer, torch.ones(shape))]
            assert all(item.ndim > 0 for item in given if hasattr(item, "ndim")), name


@pytest.mark.filterwarnings("ignore")
def test_paddle_what_a_layer_with_weights_gives_has_a_dimension(paddle: Any) -> None:
    seen = {}
    for name in ("Linear", "Conv1D", "Conv2D", "Conv3D", "BatchNorm1D", "BatchNorm2D", "LayerNorm", "GroupNorm",
                 "InstanceNorm1D", "InstanceNorm2D", "Conv2DTranspose", "PReLU"):  # fmt: skip
        layer = built(getattr(paddle.nn, name))
        layer.eval()
        seen[name] = ranks_of(layer, paddle.ones)
    assert {"Linear", "Conv2D", "LayerNorm", "BatchNorm1D"} <= {name for name in seen if seen[name]}
    assert [name for name, ranks in seen.items() if 0 in ranks] in (["PReLU"], [])


def test_backward_takes_one_number_in_two_dimensions(torch: Any) -> None:
    head = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Sigmoid())
    loss = -torch.log(torch.clamp(head(torch.ones(1, 3)), min=1e-5, max=1.0))
    loss.backward()
    assert loss.shape == (1, 1)
    assert loss.data[0].shape == (1,)


def test_paddle_backward_takes_one_number_in_two_dimensions(paddle: Any) -> None:
    head = paddle.nn.Sequential(paddle.nn.Linear(3, 1), paddle.nn.Sigmoid())
    loss = -paddle.log(paddle.clip(head(paddle.ones([1, 3])), min=1e-5, max=1.0))
    loss.backward()
    assert loss.shape == [1, 1]
    assert loss.numpy()[0].shape == (1,)
