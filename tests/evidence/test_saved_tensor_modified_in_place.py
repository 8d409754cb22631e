"""ML215: what each operation keeps for ``backward()``, and that changing it in place raises there."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mllint.knowledge import saved_tensors
from mllint.knowledge.saved_tensors import Saved

pytestmark = pytest.mark.evidence

SQUARE, ROW, IMAGE, BATCH = (3, 3), (3,), (1, 2, 4, 4), (2, 3, 3)
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "max_pool1d": ((1, 2, 4),),
    "max_pool2d": (IMAGE,),
    "avg_pool2d": (IMAGE,),
    "mv": (SQUARE, ROW),
    "dot": (ROW, ROW),
    "bmm": (BATCH, BATCH),
    "outer": (ROW, ROW),
    "adaptive_max_pool2d": (IMAGE,),
    "instance_norm": (IMAGE,),
    "conv2d": (IMAGE, (2, 2, 3, 3)),
    "conv3d": ((1, 2, 4, 4, 4), (2, 2, 3, 3, 3)),
}
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "pow": (2,),
    "softmax": (-1,),
    "log_softmax": (-1,),
    "logsumexp": (-1,),
    "clamp": (0.3, 0.6),
    "clip": (0.3, 0.6),
    "max_pool1d": (2,),
    "max_pool2d": (2,),
    "avg_pool2d": (2,),
    "adaptive_max_pool2d": (2,),
    "softmin": (-1,),
    "cumprod": (0,),
    "logcumsumexp": (0,),
    "layer_norm": ([3],),
}
TWO = frozenset({"cdist", "pairwise_distance"}).union(
    name for name, saved in saved_tensors._OPERATIONS.items() if any(1 in pair for pair in saved.inputs)
)


def made(framework: Any, shape: tuple[int, ...], *, attached: bool) -> Any:
    """A tensor between 0.25 and 0.75 that is no leaf."""
    leaf = framework.rand(shape) * 0.5 + 0.25
    if attached:
        leaf.stop_gradient = False
        if hasattr(leaf, "requires_grad_"):
            leaf.requires_grad_()
    return leaf * 1.0


def change(framework: Any, tensor: Any) -> None:
    with framework.no_grad():
        if hasattr(tensor, "scale_"):
            tensor.scale_(1.0)
        else:
            tensor.add_(0)


def function(framework: Any, name: str) -> Callable[..., Any] | None:
    homes = (framework.nn.functional, framework, framework.Tensor)
    found: list[Callable[..., Any]] = [home.__dict__[name] for home in homes if callable(home.__dict__.get(name))]
    return found[0] if found else getattr(framework.Tensor, name, None)


def raises(framework: Any, name: str, needs: int, touched: int | None) -> bool:
    """Whether the backward pass raises where one input needs a gradient, and an input or the result was changed."""
    shapes = SHAPES.get(name, (SQUARE, SQUARE) if name in TWO else (SQUARE,))
    inputs = [made(framework, shape, attached=position == needs) for position, shape in enumerate(shapes)]
    run = function(framework, name)
    assert run is not None
    result = run(*inputs, *ARGUMENTS.get(name, ()))
    total = result.sum()
    change(framework, result if touched is None else inputs[touched])
    try:
        total.backward()
    except RuntimeError as error:
        return "version" in str(error)
    return False


def rows(framework: Any) -> Iterator[tuple[str, Saved]]:
    for name, saved in saved_tensors._OPERATIONS.items():
        if function(framework, name) is not None:
            yield name, saved


def kept(framework: Any, name: str, saved: Saved) -> bool:
    """Whether everything that the row says is kept is kept."""
    needing = range(2 if name in TWO else 1)
    results = all(raises(framework, name, needs, None) for needs in needing) if saved.result else True
    return results and all(raises(framework, name, needs, touched) for touched, needs in saved.inputs)


def test_torch_keeps_what_the_table_says(torch: Any) -> None:
    assert [name for name, saved in rows(torch) if not kept(torch, name, saved)] == []


def test_paddle_keeps_what_the_table_says(paddle: Any) -> None:
    assert [name for name, saved in rows(paddle) if not kept(paddle, name, saved)] == []


def test_torch_keeps_nothing_else(torch: Any) -> None:
    for name, saved in rows(torch):
        needing = range(2 if name in TWO else 1)
        if not saved.result:
            assert not any(raises(torch, name, needs, None) for needs in needing), name


@pytest.mark.parametrize("name", ["neg", "floor", "cumsum", "add", "clone"])
def test_torch_some_keep_nothing_at_all(torch: Any, name: str) -> None:
    inputs = [made(torch, SQUARE, attached=True) for _ in range(1 + (name == "add"))]
    result = getattr(torch, name)(*inputs, *((0,) if name == "cumsum" else ()))
    total = result.sum()
    for tensor in (*inputs, result):
        change(torch, tensor)
    total.backward()


def test_torch_layers_keep_their_input_for_their_own_weights(torch: Any) -> None:
    made_with = {"Linear": (3, 3), "PReLU": (), "LayerNorm": (3,), "GroupNorm": (1, 3)}
    sizes = {"1d": (2, 3, 4), "2d": (2, 3, 4, 4), "3d": (2, 3, 4, 4, 4)}
    for name in sorted(saved_tensors._WEIGHTED):
        layer_class = getattr(torch.nn, name, None)
        if layer_class is None:
            continue  # of Paddle
        arguments = made_with.get(name, (3,) if "Norm" in name else (3, 3, 1))
        data = torch.rand(sizes.get(name[-2:], (2, 3)))
        total = layer_class(*arguments)(data).sum()
        data += 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            total.backward()


def test_paddle_layers_keep_their_input_for_their_own_weights(paddle: Any) -> None:
    made_with = {"Linear": (3, 3), "PReLU": (), "LayerNorm": (3,), "GroupNorm": (1, 3)}
    sizes = {"1D": (2, 3, 4), "2D": (2, 3, 4, 4), "3D": (2, 3, 4, 4, 4)}
    for name in sorted(saved_tensors._WEIGHTED):
        layer_class = getattr(paddle.nn, name, None)
        if layer_class is None or not name.endswith(("D", "Norm", "PReLU", "Linear", "Transpose")):
            continue  # of torch, or an old name there
        arguments = made_with.get(name, (3,) if "Norm" in name else (3, 3, 1))
        size = next((size for word, size in sizes.items() if word in name), (2, 3))
        data = paddle.rand(size)
        total = layer_class(*arguments)(data).sum()
        data[0] = 1.0
        with pytest.raises(RuntimeError, match="inplace"):
            total.backward()


def test_torch_layers_are_the_operations_that_the_table_says(torch: Any) -> None:
    for layer, name in saved_tensors._LAYERS.items():
        layer_class = getattr(torch.nn, layer, None)
        saved = saved_tensors.operation(name)
        if layer_class is None or saved is None or "Pool" in layer:
            continue
        data = made(torch, SQUARE, attached=True)
        result = layer_class()(data)
        total = result.sum()
        change(torch, result if saved.result else data)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            total.backward()


def test_torch_activations_in_place_keep_what_they_give(torch: Any) -> None:
    for name in sorted(saved_tensors._IN_PLACE):
        run = getattr(torch, f"{name}_", None) or getattr(torch.nn.functional, f"{name}_")
        result = run(made(torch, SQUARE, attached=True))
        total = result.sum()
        change(torch, result)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            total.backward()


def test_torch_views_count_changes_together(torch: Any) -> None:
    arguments: dict[str, Any] = {
        "view": (9,), "permute": (1, 0), "transpose": (0, 1), "unsqueeze": (0,), "narrow": (0, 0, 1),
        "select": (0, 0), "swapaxes": (0, 1),
    }  # fmt: skip
    for name in sorted(saved_tensors.VIEWS):
        data = made(torch, SQUARE, attached=False)
        given = (data,) if name == "view_as" else arguments.get(name, ())
        view = getattr(data, name)(*given)
        before = view._version
        data += 1
        assert view._version == before + 1, name
    for copy in (torch.rand(3, 3).clone(), torch.rand(3, 3)[[0]]):
        assert copy._version == 0


def test_paddle_views_count_changes_together(paddle: Any) -> None:
    for name, arguments in {"squeeze": (), "unsqueeze": (0,), "reshape": ([9],), "flatten": ()}.items():
        data = made(paddle, SQUARE, attached=True)
        assert name in saved_tensors.PADDLE_VIEWS
        total = (getattr(data, name)(*arguments) ** 2).sum()
        data[0] = 1.0
        with pytest.raises(RuntimeError, match="inplace"):
            total.backward()


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "x += y": lambda torch, x: x.__iadd__(1),
    "x[0] = v": lambda torch, x: x.__setitem__(0, 0.0),
    "x[mask] = v": lambda torch, x: x.__setitem__(x > 0.5, 0.0),
    "x.mul_(v)": lambda torch, x: x.mul_(2),
    "x.zero_()": lambda torch, x: x.zero_(),
    "relu in place": lambda torch, x: torch.nn.functional.relu(x, inplace=True),
    "dropout in place": lambda torch, x: torch.nn.functional.dropout(x, 0.5, inplace=True),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_torch_every_form_of_a_change_raises(torch: Any, form: Any) -> None:
    kept_result = torch.sigmoid(made(torch, SQUARE, attached=True))
    form(torch, kept_result)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept_result.sum().backward()


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_torch_also_without_gradients(torch: Any, form: Any) -> None:
    kept_result = torch.sigmoid(made(torch, SQUARE, attached=True))
    with torch.no_grad():
        form(torch, kept_result)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept_result.sum().backward()


def test_torch_the_right_side_runs_before_the_change(torch: Any) -> None:
    layer = torch.nn.Linear(3, 3)
    states = torch.zeros(4, 3)
    states[1] = layer(states[0])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        states.sum().backward()
    items = [torch.zeros(3)]
    items[0] += layer(items[0])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        items[0].sum().backward()


def test_torch_what_is_written_through_data_is_not_seen(torch: Any) -> None:
    kept_result = torch.sigmoid(made(torch, SQUARE, attached=True))
    kept_result.data.zero_()
    kept_result.sum().backward()


def test_torch_sequential_with_a_dropout_in_place_behind_an_activation(torch: Any) -> None:
    nn = torch.nn
    stack = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(0.5, inplace=True))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        stack(torch.rand(2, 3)).sum().backward()
    nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Dropout(0.5))(torch.rand(2, 3)).sum().backward()
    nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(0.0, inplace=True))(torch.rand(2, 3)).sum().backward()


def test_paddle_changes(paddle: Any) -> None:
    functional = paddle.nn.functional
    kept_result = functional.sigmoid(made(paddle, SQUARE, attached=True))
    same = kept_result
    same += 1  # a new tensor
    assert same is not kept_result
    same.sum().backward()
    for form in (
        lambda x: x.__setitem__(0, 0.0),
        lambda x: x.add_(paddle.ones(SQUARE)),
        functional.relu_,
    ):
        kept_result = functional.sigmoid(made(paddle, SQUARE, attached=True))
        form(kept_result)
        with pytest.raises(RuntimeError, match="inplace"):
            kept_result.sum().backward()


SEVERAL: dict[str, Callable[[Any], Any]] = {
    "chunk": lambda x: x.chunk(2),
    "split": lambda x: x.split(2),
    "split_with_sizes": lambda x: x.split_with_sizes([1, 3]),
    "unbind": lambda x: x.unbind(0),
}


def test_torch_all_functions_of_several_views_are_tried() -> None:
    assert set(SEVERAL) == saved_tensors.SEVERAL_VIEWS


@pytest.mark.parametrize("several", SEVERAL.values(), ids=SEVERAL)
def test_torch_one_of_several_views_cannot_be_changed(torch: Any, several: Callable[[Any], Any]) -> None:
    with_graph = made(torch, (4, 3), attached=True)
    for form in (lambda x: x.mul_(2.0), lambda x: x[..., :1].zero_(), lambda x: torch.relu_(x)):
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            form(several(with_graph)[0])
        form(several(made(torch, (4, 3), attached=False))[0])


@pytest.mark.parametrize("give", [lambda x: x.tensor_split(2), lambda x: (x[:2], x[2:]), lambda x: x.unsafe_chunk(2)])
def test_torch_other_views_can_be_changed(torch: Any, give: Callable[[Any], Any]) -> None:
    first, _ = give(made(torch, (4, 3), attached=True))
    first.mul_(2.0)
    first.sum().backward()


def test_torch_what_a_loop_hands_on_raises_after_its_first_round(torch: Any) -> None:
    hidden = torch.relu(made(torch, (3,), attached=True))
    for _ in range(1):
        hidden += made(torch, (3,), attached=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        hidden.sum().backward()


def test_torch_a_loss_of_the_same_sources_shows_the_graph(torch: Any) -> None:
    for attached in ((True, False), (False, True), (True, True)):
        first, second = (made(torch, (2, 2), attached=item) for item in attached)
        out = torch.cat([first, second])
        similar = torch.exp(out @ out.t())
        similar[torch.eye(4).bool()] = 0.0
        loss = -torch.log((first * second).sum() / similar.sum())
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


@pytest.mark.parametrize("asks", [False, True])
def test_torch_factor_that_takes_the_type_of_a_weight_hangs_on_no_graph(torch: Any, asks: bool) -> None:
    """A product keeps a factor for the gradient of the other one; ``type_as`` and ``to`` take no graph over."""
    weight = torch.ones(1, requires_grad=True)
    factor = weight if asks else torch.ones(1).type_as(weight).to(weight).expand_as(weight)
    assert factor.requires_grad is asks
    x = torch.ones(2, 3, requires_grad=True) * 2
    x[:, 1:] = x[:, 1:] * factor
    if asks:
        with pytest.raises(RuntimeError, match="inplace"):
            x.sum().backward()
    else:
        x.sum().backward()


def test_torch_what_a_tensor_takes_in_keeps_it(torch: Any) -> None:
    conv = torch.nn.Conv2d(3, 3, (1, 3), padding=(0, 1))
    data = torch.rand(1, 3, 4, 4)
    x = torch.nn.functional.conv2d(data, torch.rand(3, 3, 1, 1))  # no gradient: the weights of `conv` alone want one
    x[:, :, 1:2].add_(torch.relu(conv(x[:, :, 0:1])))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()
    y = conv(data)
    y.mul_(torch.sigmoid(conv(y)))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = conv(data)
    y.add_(conv(y).detach()).sum().backward()


def test_torch_dropout_in_place_behind_an_activation_without_a_name(torch: Any) -> None:
    nn = torch.nn
    linear, relu = nn.Linear(3, 3), nn.ReLU(inplace=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        nn.Dropout(0.1, inplace=True)(relu(linear(torch.rand(2, 3)))).sum().backward()
    nn.Dropout(0.0, inplace=True)(relu(linear(torch.rand(2, 3)))).sum().backward()
    relu(nn.Dropout(0.1, inplace=True)(linear(torch.rand(2, 3)))).sum().backward()


def test_paddle_what_a_tensor_takes_in(paddle: Any) -> None:
    functional, linear = paddle.nn.functional, paddle.nn.Linear(3, 3)
    data = paddle.rand([4, 3])
    y = linear(data)
    y.multiply_(functional.sigmoid(linear(y)))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    z = linear(data)
    z[0:1].add_(linear(z[1:2]))  # a part: what it takes in hands no gradient on
    z.sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        functional.relu_(functional.sigmoid(linear(data))).sum().backward()


def test_torch_layers_keep_an_input_that_needs_a_gradient(torch: Any) -> None:
    sizes = {"1d": (2, 3, 4), "2d": (2, 3, 4, 4), "3d": (2, 3, 4, 4, 4)}
    for name in sorted(saved_tensors._KEEPING):
        layer_class = getattr(torch.nn, name, None)
        if layer_class is None:
            continue  # of Paddle
        for attached in (True, False):
            data = made(torch, sizes[name[-2:]], attached=attached)
            total = layer_class(3 if "Norm" in name else 1)(data).sum() + torch.ones((), requires_grad=True)
            change(torch, data)
            if attached:
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    total.backward()
            else:
                total.backward()


def test_paddle_normalizations_keep_an_input_that_needs_a_gradient(paddle: Any) -> None:
    sizes = {"1D": (2, 3, 4), "2D": (2, 3, 4, 4), "3D": (2, 3, 4, 4, 4)}
    for name in ("InstanceNorm1D", "InstanceNorm2D", "InstanceNorm3D"):
        data = made(paddle, sizes[name[-2:]], attached=True)
        total = getattr(paddle.nn, name)(3)(data).sum()
        change(paddle, data)
        with pytest.raises(RuntimeError, match="inplace"):
            total.backward()


def test_torch_block_that_adds_to_its_input_raises_also_for_data(torch: Any) -> None:
    layer = torch.nn.Conv2d(3, 3, 3, padding=1)
    images = torch.rand(1, 3, 4, 4)
    images += layer(images)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        images.sum().backward()


def test_torch_sum_with_a_layer_behind_it_hangs_on_its_graph_through_methods(torch: Any) -> None:
    scores = torch.nn.Linear(3, 3)(torch.rand(2, 3)).masked_fill(torch.zeros(2, 3, dtype=torch.bool), -1.0)
    weights = torch.softmax(scores, dim=-1)
    weights += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        weights.sum().backward()


def test_torch_dropout_of_nothing_changes_nothing_in_place(torch: Any) -> None:
    weights = torch.softmax(torch.rand(2, 3, requires_grad=True), dim=-1)
    torch.nn.Dropout(0.0, inplace=True)(weights).sum().backward()


def test_torch_part_that_does_not_lie_together_is_kept_as_well(torch: Any) -> None:
    tokens = torch.nn.Linear(4, 4)(torch.rand(2, 3, 4))
    tokens[:, 0:1] = torch.nn.LayerNorm(4)(tokens[:, 0:1])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        tokens.sum().backward()


@pytest.mark.parametrize(("name", "raises"), [("LayerNorm", False), ("Linear", True)])
def test_paddle_norm_keeps_a_copy_of_a_part_that_does_not_lie_together(paddle: Any, name: str, *, raises: bool) -> None:
    layer = paddle.nn.LayerNorm(4) if name == "LayerNorm" else paddle.nn.Linear(4, 4)
    tokens = paddle.nn.Linear(4, 4)(paddle.rand([2, 3, 4]))
    tokens[:, 0:1] = layer(tokens[:, 0:1])
    if not raises:
        tokens.sum().backward()
        return
    with pytest.raises(RuntimeError, match="inplace"):
        tokens.sum().backward()
