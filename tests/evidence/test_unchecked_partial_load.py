"""ML423: a load that may leave everything as it was, and nobody looks at what it says."""

import warnings
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_not_strict_may_load_nothing_without_a_word(torch: Any, torch_net: Any) -> None:
    source, target = torch_net(), torch_net()
    before = target.fc.weight.clone()
    state = {"module." + key: value for key, value in source.state_dict().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = target.load_state_dict(state, strict=False)
    assert torch.equal(target.fc.weight, before)
    # the return value is the only witness
    assert "fc.weight" in result.missing_keys
    assert "module.fc.weight" in result.unexpected_keys


def test_torch_strict_is_the_second_positional_argument(torch_net: Any) -> None:
    assert torch_net().load_state_dict({}, False).missing_keys


def test_torch_good_forms_see_what_was_missed(torch_net: Any) -> None:
    model = torch_net()
    state = {key: value for key, value in model.state_dict().items() if not key.startswith("fc.")}
    result = model.load_state_dict(state, strict=False)
    assert result.missing_keys == ["fc.weight", "fc.bias"]
    assert not result.unexpected_keys
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert (missing, unexpected) == (result.missing_keys, result.unexpected_keys)


def test_torch_strict_load_needs_no_look_at_the_result(torch_net: Any) -> None:
    """The look-alike: the default raises by itself."""
    with pytest.raises(RuntimeError):
        torch_net().load_state_dict({})


def test_paddle_default_load_may_load_nothing_with_warnings_only(paddle_net: Any) -> None:
    source, target = paddle_net(), paddle_net()
    before = target.fc.weight.tolist()
    state = {"module." + key: value for key, value in source.state_dict().items()}
    with pytest.warns(UserWarning, match="Skip loading"):
        missing, unexpected = target.set_state_dict(state)
    assert target.fc.weight.tolist() == before
    assert len(missing) == len(unexpected) == len(state)


def test_paddle_surplus_keys_are_seen_in_the_result_only(paddle: Any, paddle_net: Any) -> None:
    layer = paddle_net()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert layer.set_state_dict({**layer.state_dict(), "head.w": paddle.ones([1])}) == ([], ["head.w"])


def test_paddle_own_dict_loads_in_full(paddle_net: Any) -> None:
    """The look-alike: what the same class saved has nothing to report."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert paddle_net().set_state_dict(paddle_net().state_dict()) == ([], [])


def test_paddle_load_state_dict_not_strict_keeps_quiet_too(paddle_net: Any, paddle_version: tuple[int, int]) -> None:
    if paddle_version < (3, 3):
        pytest.skip("Layer.load_state_dict came with paddle 3.3")
    with pytest.warns(UserWarning, match="Skip loading"):
        result = paddle_net().load_state_dict({}, strict=False)
    assert len(result.missing_keys) == 6
