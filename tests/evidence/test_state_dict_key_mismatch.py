"""ML422: the keys that are loaded are not the keys that the module has."""

# mllint: file-ignore[ML422] the mismatches are what is tested

import collections
import copy
import pathlib
import warnings
from typing import Any

import pytest

from harness.constructors import CLOSED, HEAD, net

pytestmark = pytest.mark.evidence

TORCH_KEYS = [
    *["fc.weight", "fc.bias", "bn.weight", "bn.bias"],
    *["bn.running_mean", "bn.running_var", "bn.num_batches_tracked"],
]
PADDLE_KEYS = ["fc.weight", "fc.bias", "bn.weight", "bn.bias", "bn._mean", "bn._variance"]


def prefixed(prefix: str, state: Any) -> dict[str, Any]:
    return {prefix + key: value for key, value in state.items()}


def without(key: str, state: Any) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name != key}


# ---- which keys a module has --------------------------------------------------------------------


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize(("rows", "keys"), CLOSED.values(), ids=CLOSED)
def test_torch_keys_of_constructors(rows: list[str], keys: set[str]) -> None:
    """What the model tells from the source of a constructor is what running it gives."""
    built: dict[str, Any] = {}
    exec(HEAD + net(*rows), built)
    assert set(built["Net"]().state_dict()) == keys


def test_torch_keys_of_a_module(torch_net: Any) -> None:
    assert list(torch_net().state_dict()) == TORCH_KEYS


def test_torch_keys_come_from_what_is_registered(torch: Any) -> None:
    nn = torch.nn

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.child = nn.Linear(1, 1, bias=False)
            self.again = self.child  # a second name: a second key
            self.register_buffer("kept", torch.ones(1))
            self.register_buffer("dropped", torch.ones(1), persistent=False)
            self.register_buffer("empty", None)
            self.own = nn.Parameter(torch.ones(1))
            self.register_parameter("absent", None)
            self.plain = torch.ones(1)
            self.hidden = [nn.Linear(1, 1)]
            self.table = {"a": nn.Linear(1, 1)}
            self.late = None
            self.add_module("named", nn.Linear(1, 1, bias=False))

    assert list(Mixed().state_dict()) == ["own", "kept", "child.weight", "again.weight", "named.weight"]


def test_torch_keys_of_containers(torch: Any) -> None:
    nn = torch.nn
    layer = nn.Linear(1, 1, bias=False)
    keys = {
        "0.weight": nn.Sequential(layer, nn.ReLU()),
        "a.weight": nn.Sequential(collections.OrderedDict(a=layer)),
        "1.weight": nn.ModuleList([nn.ReLU(), layer]),
        "k.weight": nn.ModuleDict({"k": layer}),
        "0": nn.ParameterList([torch.ones(1)]),
        "z": nn.ParameterDict({"z": torch.ones(1)}),
    }
    for key, container in keys.items():
        assert list(container.state_dict()) == [key]


def test_torch_switches_of_layers_remove_keys(torch: Any) -> None:
    nn = torch.nn
    assert list(nn.Linear(2, 2, bias=False).state_dict()) == ["weight"]
    assert list(nn.LayerNorm(2, bias=False).state_dict()) == ["weight"]
    assert not nn.LayerNorm(2, elementwise_affine=False).state_dict()
    assert not nn.InstanceNorm2d(2).state_dict()
    batch_norm = ["running_mean", "running_var", "num_batches_tracked"]
    assert list(nn.BatchNorm2d(2, affine=False).state_dict()) == batch_norm
    assert list(nn.BatchNorm2d(2, track_running_stats=False).state_dict()) == ["weight", "bias"]
    assert list(nn.CrossEntropyLoss(weight=torch.ones(2)).state_dict()) == ["weight"]
    assert not nn.CrossEntropyLoss().state_dict()


# ---- what a mismatch does -----------------------------------------------------------------------


def test_torch_missing_and_unexpected_keys_raise(torch: Any, torch_net: Any) -> None:
    state = torch_net().state_dict()
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "fc.bias"'):
        torch_net().load_state_dict(without("fc.bias", state))
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "x"'):
        torch_net().load_state_dict({**state, "x": torch.ones(1)})


def test_torch_has_loaded_the_rest_before_it_raises(torch: Any, torch_net: Any) -> None:
    """Whoever catches the error goes on with a module that is half loaded."""
    source, target = torch_net(), torch_net()
    with pytest.raises(RuntimeError):
        target.load_state_dict(without("fc.bias", source.state_dict()))
    assert torch.equal(target.fc.weight, source.fc.weight)
    assert not torch.equal(target.fc.bias, source.fc.bias)


@pytest.mark.parametrize("strict", [True, False])
def test_torch_size_mismatch_raises_with_and_without_strict(torch_net: Any, strict: bool) -> None:
    with pytest.raises(RuntimeError, match=r"size mismatch for fc\.weight"):
        torch_net(4).load_state_dict(torch_net(3).state_dict(), strict=strict)


def test_torch_one_element_loads_into_a_scalar_and_not_the_reverse(torch: Any) -> None:
    def module(value: Any) -> Any:
        result = torch.nn.Module()
        result.register_parameter("w", torch.nn.Parameter(value))
        return result

    module(torch.tensor(0.0)).load_state_dict({"w": torch.ones(1)})
    with pytest.raises(RuntimeError, match="size mismatch"):
        module(torch.ones(1)).load_state_dict({"w": torch.tensor(0.0)})


def test_torch_dtype_is_converted_in_silence_and_arrays_are_refused(torch: Any, torch_net: Any) -> None:
    model, state = torch_net(), torch_net().state_dict()
    model.load_state_dict({key: value.double() for key, value in state.items()})
    assert model.fc.weight.dtype == torch.float32
    with pytest.raises(RuntimeError, match=r"received <class 'numpy\.ndarray'>"):
        model.load_state_dict({key: value.numpy() for key, value in state.items()})


def test_torch_checkpoint_in_place_of_its_state_dict(torch_net: Any) -> None:
    checkpoint = {"model": torch_net().state_dict(), "epoch": 1}
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "model", "epoch"'):
        torch_net().load_state_dict(checkpoint)
    result = torch_net().load_state_dict(checkpoint, strict=False)
    assert len(result.missing_keys) == 6  # all that can be missed
    torch_net().load_state_dict(checkpoint["model"])
    with pytest.raises(KeyError):
        torch_net().load_state_dict(checkpoint["state_dict"])


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "model."])
def test_torch_prefix_on_one_side_only(torch_net: Any, prefix: str) -> None:
    state = torch_net().state_dict()
    with pytest.raises(RuntimeError, match="Missing"):
        torch_net().load_state_dict(prefixed(prefix, state))
    result = torch_net().load_state_dict(prefixed(prefix, state), strict=False)
    assert len(result.missing_keys) == 6
    assert len(result.unexpected_keys) == 7
    stripped = {key.removeprefix(prefix): value for key, value in prefixed(prefix, state).items()}
    torch_net().load_state_dict(stripped)
    replaced = {key.replace(prefix, ""): value for key, value in prefixed(prefix, state).items()}
    torch_net().load_state_dict(replaced)


def test_torch_plain_keys_into_a_wrapper(torch: Any, torch_net: Any) -> None:
    state = torch_net().state_dict()
    for wrapper in (torch.nn.DataParallel(torch_net()), torch.compile(torch_net())):
        with pytest.raises(RuntimeError, match="Missing"):
            wrapper.load_state_dict(state)
    torch.nn.DataParallel(torch_net()).module.load_state_dict(state)
    torch.nn.DataParallel(torch_net()).load_state_dict(prefixed("module.", state))
    compiled = torch.compile(torch_net())
    compiled.load_state_dict(compiled.state_dict())


def test_torch_named_parameters_lack_the_buffers(torch_net: Any) -> None:
    model = torch_net()
    with pytest.raises(RuntimeError, match=r"running_mean"):
        model.load_state_dict(dict(model.named_parameters()))


def test_torch_persistence_of_a_buffer_changes_the_keys(torch: Any) -> None:
    class Buffered(torch.nn.Module):
        def __init__(self, persistent: bool) -> None:
            super().__init__()
            self.register_buffer("mask", torch.ones(2), persistent=persistent)

    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "mask"'):
        Buffered(False).load_state_dict(Buffered(True).state_dict())
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "mask"'):
        Buffered(True).load_state_dict(Buffered(False).state_dict())


# ---- num_batches_tracked: the one key that may be missing ----------------------------------------


def test_torch_batch_counter_may_be_missing_from_a_dict_without_versions(torch_net: Any) -> None:
    """Files from before 0.4.1 load strictly: what carries no version is taken to be old."""
    torch_net().load_state_dict(without("bn.num_batches_tracked", torch_net().state_dict()))


def test_torch_batch_counter_is_missed_in_a_dict_that_says_its_version(
    torch: Any, torch_net: Any, tmp_path: pathlib.Path
) -> None:
    torch.save(torch_net().state_dict(), tmp_path / "m.pth")
    for state in (torch_net().state_dict(), torch.load(tmp_path / "m.pth", weights_only=True)):
        assert state._metadata["bn"] == {"version": 2}
        del state["bn.num_batches_tracked"]
        with pytest.raises(RuntimeError, match="num_batches_tracked"):
            torch_net().load_state_dict(state)


def test_torch_which_copies_keep_the_versions(torch_net: Any) -> None:
    state = torch_net().state_dict()
    assert hasattr(copy.deepcopy(state), "_metadata")
    for plain in (dict(state), state.copy(), collections.OrderedDict(state), {**state}):
        assert not hasattr(plain, "_metadata")


def test_torch_surplus_batch_counter_is_unexpected(torch: Any) -> None:
    """The other direction: a file with the counter into a layer that counts nothing."""
    source = torch.nn.BatchNorm1d(2)
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        torch.nn.BatchNorm1d(2, track_running_stats=False).load_state_dict(source.state_dict())


# ---- the wrong object's dict -----------------------------------------------------------------------


@pytest.fixture
def torch_training(torch: Any, torch_net: Any) -> Any:
    """Model, optimizer, scheduler and scaler as a training script has them."""
    model = torch_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    return model, optimizer, scheduler, torch.amp.GradScaler("cpu")


def test_torch_model_and_optimizer_swapped(torch_training: Any) -> None:
    model, optimizer, _, scaler = torch_training
    with pytest.raises(RuntimeError, match='"state", "param_groups"'):
        model.load_state_dict(optimizer.state_dict())
    with pytest.raises(KeyError, match="param_groups"):
        optimizer.load_state_dict(model.state_dict())
    with pytest.raises(KeyError, match="param_groups"):
        optimizer.load_state_dict({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    with pytest.raises(KeyError):
        scaler.load_state_dict(optimizer.state_dict())


def test_torch_scheduler_takes_any_dict_in_silence(torch_training: Any) -> None:
    """It updates its ``__dict__``: a checkpoint's wrong entry is noticed by nobody."""
    _, optimizer, scheduler, _ = torch_training
    epoch = scheduler.last_epoch
    for wrong in (optimizer.state_dict(), {"epoch": 7}, {}):
        scheduler.load_state_dict(wrong)
    assert scheduler.last_epoch == epoch
    assert scheduler.epoch == 7
    assert "param_groups" in vars(scheduler)


def test_torch_optimizer_of_other_groups_and_of_another_class(torch: Any, torch_training: Any) -> None:
    model, optimizer, _, _ = torch_training
    with pytest.raises(ValueError, match="different number of parameter groups"):
        torch.optim.SGD([{"params": [p]} for p in model.parameters()]).load_state_dict(optimizer.state_dict())
    with pytest.raises(ValueError, match="doesn't match the size"):
        torch.optim.SGD([model.fc.weight]).load_state_dict(optimizer.state_dict())
    torch.optim.Adam(model.parameters()).load_state_dict(optimizer.state_dict())  # silent


# ---- paddle: nearly all of it is silent ------------------------------------------------------------


def loaded(layer: Any, state: Any) -> tuple[Any, int]:
    """What ``set_state_dict`` gave back, and how many warnings it printed."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = layer.set_state_dict(state)
    return result, sum("Skip loading" in str(warning.message) for warning in seen)


def test_paddle_keys_of_a_layer(paddle_net: Any) -> None:
    assert list(paddle_net().state_dict()) == PADDLE_KEYS


def test_paddle_batch_norm_statistics_are_parameters(paddle_net: Any) -> None:
    """So ``dict(named_parameters())`` is complete here, and ``named_buffers()`` empty."""
    layer = paddle_net()
    assert [name for name, _ in layer.named_parameters()] == PADDLE_KEYS
    assert not list(layer.named_buffers())


def test_paddle_keys_come_from_what_is_registered(paddle: Any) -> None:
    nn = paddle.nn

    class Mixed(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.child = nn.Linear(1, 1, bias_attr=False)
            self.again = self.child
            self.register_buffer("kept", paddle.ones([1]))
            self.register_buffer("dropped", paddle.ones([1]), persistable=False)
            self.own = self.create_parameter([1])
            self.other = paddle.create_parameter([1], "float32")
            self.plain = paddle.ones([1])
            self.hidden = [nn.Linear(1, 1)]

    assert list(Mixed().state_dict()) == ["own", "other", "kept", "child.weight", "again.weight"]


def test_paddle_keys_of_layers_and_containers(paddle: Any) -> None:
    nn = paddle.nn
    layer = nn.Linear(1, 1, bias_attr=False)
    keys = {
        ("0.weight",): nn.Sequential(layer, nn.ReLU()),
        ("a.weight",): nn.Sequential(("a", layer)),
        ("1.weight",): nn.LayerList([nn.ReLU(), layer]),
        ("0",): nn.ParameterList([paddle.create_parameter([1], "float32")]),
        ("_weight",): nn.PReLU(),
        ("scale", "bias"): nn.InstanceNorm2D(2),
        ("_mean", "_variance"): nn.BatchNorm2D(2, weight_attr=False, bias_attr=False),
        (): nn.LayerNorm(2, weight_attr=False, bias_attr=False),
    }
    for expected, module in keys.items():
        assert tuple(module.state_dict()) == expected
    # a recurrent layer lists its weights under both names
    assert len(nn.LSTM(2, 2).state_dict()) == 8


def test_paddle_missing_keys_warn_and_are_skipped(paddle_net: Any) -> None:
    layer = paddle_net()
    assert loaded(layer, without("fc.bias", layer.state_dict())) == ((["fc.bias"], []), 1)


def test_paddle_unexpected_keys_do_not_even_warn(paddle: Any, paddle_net: Any) -> None:
    layer = paddle_net()
    assert loaded(layer, {**layer.state_dict(), "x": paddle.ones([1])}) == (([], ["x"]), 0)


def test_paddle_sizes_that_differ_warn_and_are_skipped(paddle_net: Any) -> None:
    (missing, unexpected), warned = loaded(paddle_net(4), paddle_net(3).state_dict())
    assert missing == unexpected == PADDLE_KEYS
    assert warned == len(PADDLE_KEYS)


@pytest.mark.parametrize("prefix", ["module.", "_layers.", "model."])
def test_paddle_prefix_on_one_side_loads_nothing(paddle_net: Any, prefix: str) -> None:
    layer = paddle_net()
    before = layer.fc.weight.tolist()
    (missing, unexpected), _ = loaded(layer, prefixed(prefix, paddle_net().state_dict()))
    assert missing == PADDLE_KEYS
    assert len(unexpected) == len(PADDLE_KEYS)
    assert layer.fc.weight.tolist() == before


def test_paddle_checkpoint_in_place_of_its_state_dict_loads_nothing(paddle_net: Any) -> None:
    (missing, unexpected), _ = loaded(paddle_net(), {"model": paddle_net().state_dict(), "epoch": 1})
    assert missing == PADDLE_KEYS
    assert unexpected == ["model", "epoch"]


def test_paddle_transposed_square_weight_loads_in_silence(paddle: Any, numpy: Any) -> None:
    """A torch file: ``Linear.weight`` is stored the other way round, which only a shape can tell."""
    assert loaded(paddle.nn.Linear(3, 3), {"weight": numpy.zeros((3, 3), "float32"), "bias": numpy.zeros(3, "float32")})
    result, warned = loaded(paddle.nn.Linear(2, 3), {"weight": numpy.zeros((3, 2), "float32")})
    assert "weight" in result[0]
    assert warned == 2  # the weight's shape and the missing bias


def test_paddle_dtype_raises_and_arrays_are_fine(paddle_net: Any) -> None:
    state = paddle_net().state_dict()
    with pytest.raises(AssertionError, match="dtype not match"):
        paddle_net().set_state_dict({key: value.astype("float64") for key, value in state.items()})
    assert loaded(paddle_net(), {key: value.numpy() for key, value in state.items()}) == (([], []), 0)


def test_paddle_load_state_dict_is_strict(paddle_net: Any, paddle_version: tuple[int, int]) -> None:
    """The method that 3.3 took over from torch raises like torch's, shapes included."""
    if paddle_version < (3, 3):
        pytest.skip("Layer.load_state_dict came with paddle 3.3")
    layer = paddle_net()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "fc.bias"'):
            layer.load_state_dict(without("fc.bias", layer.state_dict()))
        with pytest.raises(RuntimeError):
            paddle_net(4).load_state_dict(layer.state_dict())
        result = layer.load_state_dict(without("fc.bias", layer.state_dict()), strict=False)
    assert result.missing_keys == ["fc.bias"]


def test_paddle_set_state_dict_knows_no_strict(paddle_net: Any) -> None:
    """Its second positional argument is another switch: ``False`` there loads nothing."""
    layer = paddle_net()
    with pytest.raises(TypeError, match="strict"):
        layer.set_state_dict(layer.state_dict(), strict=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        missing, _ = layer.set_state_dict(layer.state_dict(), False)
    assert len(missing) == len(PADDLE_KEYS)


def paddle_step(paddle: Any, layer: Any, optimizer: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer(paddle.ones([4, 2])).sum().backward()
        optimizer.step()


def test_paddle_fresh_optimizer_takes_any_dict_and_fails_at_the_first_step(paddle: Any, paddle_net: Any) -> None:
    """A model's dict is found out far from its load: "... should in state dict"."""
    for wrong in (paddle_net().state_dict(), {"epoch": paddle.ones([1])}):
        layer = paddle_net()
        optimizer = paddle.optimizer.Momentum(0.1, 0.9, parameters=layer.parameters())
        optimizer.set_state_dict(wrong)
        with pytest.raises(AssertionError, match="should in state dict"):
            paddle_step(paddle, layer, optimizer)


def test_paddle_stepped_optimizer_refuses_a_model(paddle: Any, paddle_net: Any) -> None:
    layer = paddle_net()
    optimizer = paddle.optimizer.Momentum(0.1, 0.9, parameters=layer.parameters())
    paddle_step(paddle, layer, optimizer)
    with pytest.raises(AssertionError, match="not found"):
        optimizer.set_state_dict(layer.state_dict())
    optimizer.set_state_dict(optimizer.state_dict())


def test_paddle_model_takes_the_optimizer_dict_with_warnings(paddle: Any, paddle_net: Any) -> None:
    layer = paddle_net()
    optimizer = paddle.optimizer.Momentum(0.1, 0.9, parameters=layer.parameters())
    paddle_step(paddle, layer, optimizer)
    (missing, unexpected), _ = loaded(paddle_net(), optimizer.state_dict())
    assert missing == PADDLE_KEYS
    assert unexpected == list(optimizer.state_dict())


def test_paddle_scheduler_refuses_other_dicts(paddle: Any, paddle_net: Any) -> None:
    scheduler = paddle.optimizer.lr.StepDecay(0.1, step_size=2)
    for wrong in ({}, {"epoch": 1}, paddle_net().state_dict()):
        with pytest.raises(RuntimeError, match="last_epoch"):
            scheduler.set_state_dict(wrong)


def test_paddle_data_parallel_has_and_takes_plain_keys(paddle: Any, paddle_net: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = paddle.DataParallel(paddle_net())
    assert list(wrapped.state_dict()) == PADDLE_KEYS
    state = paddle_net().state_dict()
    wrapped.set_state_dict(state)
    assert wrapped.state_dict()["fc.weight"].tolist() == state["fc.weight"].tolist()
    # its parameters do have the prefix
    assert next(name for name, _ in wrapped.named_parameters()) == "_layers.fc.weight"


# ---- a state dict is no module ------------------------------------------------------------------


def test_torch_what_was_saved_as_a_state_dict_is_no_module(torch: Any, torch_net: Any, tmp_path: pathlib.Path) -> None:
    place = tmp_path / "net.pth"
    torch.save(torch_net().state_dict(), place)
    read = torch.load(place, weights_only=True)
    for method in ("eval", "train", "to", "cuda", "parameters", "state_dict", "load_state_dict"):
        with pytest.raises(AttributeError):
            getattr(read, method)
    with pytest.raises(TypeError, match="not callable"):
        read(torch.ones(1, 2))


def test_paddle_what_was_saved_as_a_state_dict_is_no_layer(
    paddle: Any, paddle_net: Any, tmp_path: pathlib.Path
) -> None:
    place = str(tmp_path / "net.pdparams")
    paddle.save(paddle_net().state_dict(), place)
    read = paddle.load(place)
    for method in ("eval", "train", "to", "parameters", "state_dict", "set_state_dict"):
        with pytest.raises(AttributeError):
            getattr(read, method)


def test_torch_a_path_without_its_suffix_is_another_file(torch: Any, torch_net: Any, tmp_path: pathlib.Path) -> None:
    torch.save(torch_net().state_dict(), tmp_path / "net.pth")
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "net", weights_only=True)


def test_paddle_only_layers_and_schedulers_have_the_short_names(paddle: Any) -> None:
    optimizers = paddle.optimizer
    for kind in (optimizers.SGD, optimizers.Momentum, optimizers.Adam, optimizers.AdamW, optimizers.Lamb):
        assert hasattr(kind, "set_state_dict")
        assert not any(hasattr(kind, name) for name in ("set_dict", "load_dict"))
    assert hasattr(optimizers.lr.LRScheduler, "set_dict")
    assert all(hasattr(paddle.nn.Layer, name) for name in ("set_dict", "load_dict", "set_state_dict"))


def test_torch_a_dict_that_is_unpacked_gives_its_keys(torch: Any, torch_net: Any, tmp_path: pathlib.Path) -> None:
    torch.save(torch_net().state_dict(), tmp_path / "net.pth")
    with pytest.raises(ValueError, match="too many values to unpack"):
        _weights, _steps = torch.load(tmp_path / "net.pth", weights_only=True)
    torch.save(torch.nn.Linear(1, 1).state_dict(), tmp_path / "linear.pth")
    weights, steps = torch.load(tmp_path / "linear.pth", weights_only=True)
    assert (weights, steps) == ("weight", "bias")


def test_paddle_a_dict_that_is_unpacked_gives_its_keys(paddle: Any, paddle_net: Any, tmp_path: pathlib.Path) -> None:
    place = str(tmp_path / "net.pdparams")
    paddle.save(paddle_net().state_dict(), place)
    with pytest.raises(ValueError, match="too many values to unpack"):
        _weights, _steps = paddle.load(place)
    paddle.save(paddle.nn.Linear(1, 1).state_dict(), place)
    with pytest.raises((AttributeError, TypeError)):
        paddle.nn.Linear(1, 1).set_state_dict(next(iter(paddle.load(place))))


def test_torch_state_dict_loads_nothing(torch: Any, torch_net: Any) -> None:
    net, given = torch_net(), torch_net().state_dict()
    before = copy.deepcopy(net.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.state_dict(given)
    for key, value in net.state_dict().items():
        assert torch.equal(value, before[key])
        assert torch.equal(value, given[key])


def test_paddle_state_dict_loads_nothing(paddle: Any, paddle_net: Any) -> None:
    net, given = paddle_net(), paddle_net().state_dict()
    before = {key: value.numpy().copy() for key, value in net.state_dict().items()}
    net.state_dict(given)
    for key, value in net.state_dict().items():
        assert (value.numpy() == before[key]).all()
        assert (given[key].numpy() == before[key]).all()


def test_torch_lists_of_states_raise(torch_training: Any) -> None:
    for target, error in zip(torch_training[:3], (TypeError, TypeError, ValueError), strict=True):
        states = [target.state_dict()]
        with pytest.raises(error):
            target.load_state_dict(states)


def test_paddle_lists_of_states_raise(paddle: Any, paddle_net: Any) -> None:
    layer = paddle_net()
    optimizer = paddle.optimizer.Momentum(0.1, 0.9, parameters=layer.parameters())
    paddle_step(paddle, layer, optimizer)
    layers, optimizers = [layer.state_dict()], [optimizer.state_dict()]
    with pytest.raises(AttributeError):
        layer.set_state_dict(layers)
    with pytest.raises(AssertionError, match="not found"):
        optimizer.set_state_dict(optimizers)


# ---- state_dict in place of load_state_dict ------------------------------------------------------


def test_torch_state_dict_copies_into_what_it_is_given(torch: Any, torch_net: Any) -> None:
    model = torch_net()
    before, kept = copy.deepcopy(model.state_dict()), torch_net().state_dict()
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        model.state_dict(kept)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert all(kept[key].data_ptr() == value.data_ptr() for key, value in model.state_dict().items())


def test_paddle_state_dict_copies_into_what_it_is_given(paddle: Any, paddle_net: Any) -> None:
    model = paddle_net()
    before, kept = copy.deepcopy(model.state_dict()), paddle_net().state_dict()
    model.state_dict(kept)
    assert all(bool(paddle.equal_all(value, before[key])) for key, value in model.state_dict().items())
    assert all(kept[key] is value for key, value in model.state_dict().items())


# ---- what is no path, and what is wrapped twice --------------------------------------------------


def test_torch_load_refuses_a_state_dict(torch: Any, torch_net: Any, tmp_path: pathlib.Path) -> None:
    place = tmp_path / "kept.pt"
    torch.save({"student": torch_net().state_dict(), "step": 3}, place)
    kept = torch.load(place, weights_only=True)
    with pytest.raises(AttributeError, match="seek"):
        torch.load(kept["student"], weights_only=True)


def test_paddle_load_refuses_a_state_dict(paddle: Any, paddle_net: Any, tmp_path: pathlib.Path) -> None:
    place = str(tmp_path / "kept.pdparams")
    paddle.save({"student": paddle_net().state_dict(), "step": 3}, place)
    kept = paddle.load(place)
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        paddle.load(kept["student"])


def test_torch_keys_of_a_module_that_is_wrapped_again(torch: Any, torch_net: Any) -> None:
    net = torch.nn.DataParallel(torch_net())
    again = torch.nn.DataParallel(net)
    assert all(key.startswith("module.module.") for key in again.state_dict())
    with pytest.raises(RuntimeError, match="Missing key"):
        again.load_state_dict(net.state_dict())
    again.module.load_state_dict(net.state_dict())


# ---- parts of a module ---------------------------------------------------------------------------


def test_torch_keys_of_a_part_that_is_wrapped(torch: Any, torch_net: Any) -> None:
    plain, parts = torch_net(), torch_net()
    parts.fc = torch.nn.DataParallel(parts.fc)
    assert {key for key in parts.state_dict() if key.startswith("fc.")} == {"fc.module.weight", "fc.module.bias"}
    with pytest.raises(RuntimeError, match=r"Missing key.*fc\.module\.weight"):
        parts.load_state_dict(plain.state_dict())
    with pytest.raises(RuntimeError, match=r"Unexpected key.*fc\.module\.weight"):
        plain.load_state_dict(parts.state_dict())
    parts.fc.module.load_state_dict(plain.fc.state_dict())


def test_torch_an_entry_that_holds_a_state_is_no_scheduler(
    torch: Any, torch_training: Any, tmp_path: pathlib.Path
) -> None:
    scheduler = torch_training[2]
    torch.save({"epoch": 3, "scheduler": scheduler.state_dict()}, tmp_path / "last.pt")
    found = torch.load(tmp_path / "last.pt", weights_only=True)["scheduler"]
    with pytest.raises(AttributeError, match="step"):
        found.step()
