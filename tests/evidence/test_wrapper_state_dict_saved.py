"""ML426: a wrapper's prefix gets into the keys of the file."""

import pathlib
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


@pytest.fixture
def process_group(torch: Any, tmp_path: pathlib.Path) -> Iterator[None]:
    """One process that is a whole group, on the CPU."""
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch was built without torch.distributed")
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def prefix(plain: Any, wrapped: Any) -> str:
    """What stands in front of every key of a wrapper."""
    prefixes = {long.removesuffix(short) for long, short in zip(wrapped.state_dict(), plain.state_dict(), strict=True)}
    assert len(prefixes) == 1
    return prefixes.pop()


def test_torch_data_parallel(torch: Any, torch_net: Any) -> None:
    model = torch_net()
    wrapped = torch.nn.DataParallel(model)
    assert prefix(model, wrapped) == "module."
    assert prefix(model, wrapped.module) == ""


def test_torch_distributed_data_parallel(torch: Any, torch_net: Any, process_group: None) -> None:
    model = torch_net()
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    assert prefix(model, wrapped) == "module."
    assert prefix(model, wrapped.module) == ""
    with pytest.raises(RuntimeError, match="Missing"):
        wrapped.load_state_dict(model.state_dict())
    wrapped.module.load_state_dict(model.state_dict())


def test_torch_compile(torch: Any, torch_net: Any) -> None:
    model = torch_net()
    compiled = torch.compile(model)
    assert prefix(model, compiled) == "_orig_mod."
    assert prefix(model, compiled._orig_mod) == ""
    assert list(model.state_dict()) == list(torch_net().state_dict())  # the model itself keeps its keys


def test_torch_compiled_in_place_has_plain_keys(torch_net: Any) -> None:
    """The look-alike: ``model.compile()`` wraps nothing."""
    model = torch_net()
    model.compile()
    assert list(model.state_dict()) == list(torch_net().state_dict())


def test_torch_wrappers_in_wrappers(torch: Any, torch_net: Any) -> None:
    model = torch_net()
    assert prefix(model, torch.compile(torch.nn.DataParallel(model))) == "_orig_mod.module."
    assert prefix(model, torch.nn.DataParallel(torch.compile(model))) == "module._orig_mod."
    assert prefix(model, torch.nn.DataParallel(torch.compile(model)).module) == "_orig_mod."


def test_torch_wrapped_child_has_the_prefix_in_the_middle(torch: Any, torch_net: Any) -> None:
    model = torch_net()
    model.fc = torch.nn.DataParallel(model.fc)
    assert list(model.state_dict())[:2] == ["fc.module.weight", "fc.module.bias"]


def test_torch_averaged_model_adds_prefix_and_a_counter(torch: Any, torch_net: Any) -> None:
    averaged = torch.optim.swa_utils.AveragedModel(torch_net())
    keys = list(averaged.state_dict())
    assert keys[0] == "n_averaged"
    assert all(key.startswith("module.") for key in keys[1:])


def test_torch_scripted_module_has_plain_keys(torch: Any) -> None:
    layer = torch.nn.Linear(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert prefix(layer, torch.jit.script(layer)) == ""


def test_torch_file_of_a_wrapper_does_not_load_into_the_bare_model(
    torch: Any, torch_net: Any, tmp_path: pathlib.Path
) -> None:
    place = tmp_path / "model.pth"
    wrapped = torch.nn.DataParallel(torch_net())

    torch.save(wrapped.state_dict(), place)
    with pytest.raises(RuntimeError, match="Missing"):
        torch_net().load_state_dict(torch.load(place, weights_only=True))

    torch.save(wrapped.module.state_dict(), place)
    torch_net().load_state_dict(torch.load(place, weights_only=True))


def test_torch_ways_to_take_the_prefix_off(torch: Any, torch_net: Any) -> None:
    """Look-alikes: code that strips it, on either side."""
    state = torch.nn.DataParallel(torch_net()).state_dict()
    torch_net().load_state_dict({key[len("module.") :]: value for key, value in state.items()})
    torch_net().load_state_dict({key.replace("module.", ""): value for key, value in state.items()})
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")  # in place
    torch_net().load_state_dict(state)


def test_torch_attributes_through_the_wrappers(torch: Any, torch_net: Any) -> None:
    model = torch_net()
    with pytest.raises(AttributeError):
        _ = torch.nn.DataParallel(model).fc
    assert torch.compile(model).fc is model.fc


def test_paddle_data_parallel_adds_no_prefix(paddle: Any, paddle_net: Any) -> None:
    """Why the rule is silent for paddle."""
    layer = paddle_net()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = paddle.DataParallel(layer)
    assert prefix(layer, wrapped) == ""
    assert not hasattr(wrapped, "module")
    assert wrapped._layers is layer


def test_paddle_static_layer_has_plain_keys(paddle: Any, paddle_net: Any) -> None:
    layer = paddle_net()
    assert prefix(paddle_net(), paddle.jit.to_static(layer)) == ""
