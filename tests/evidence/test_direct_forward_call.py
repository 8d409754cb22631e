"""ML316: ``forward`` called directly runs no hooks; calling the module gives the same result and runs them."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_hooks_are_left_out(torch: Any) -> None:
    layer, x = torch.nn.Linear(3, 2), torch.ones(1, 3)
    seen: list[str] = []
    layer.register_forward_hook(lambda module, given, result: seen.append("after"))
    layer.register_forward_pre_hook(lambda module, given: seen.append("before"))
    direct = layer.forward(x)
    assert seen == []
    assert torch.equal(layer(x), direct)
    assert seen == ["before", "after"]


def test_torch_weight_norm_is_not_computed_anew(torch: Any) -> None:
    layer, x = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2)), torch.ones(1, 3)
    before = layer(x)
    with torch.no_grad():
        layer.weight_g *= 2
    assert torch.equal(layer.forward(x), before)
    assert not torch.equal(layer(x), before)


def test_torch_lists_have_no_forward(torch: Any) -> None:
    with pytest.raises(NotImplementedError):
        torch.nn.ModuleList([torch.nn.Identity()]).forward(1)


def test_torch_own_call_is_another_thing(torch: Any) -> None:
    class Special(torch.nn.Module):
        def __call__(self, x: Any) -> Any:
            return self.forward(x) + 1

        def forward(self, x: Any) -> Any:
            return x

    assert Special().forward(1) == 1
    assert Special()(1) == 2


def test_paddle_hooks_are_left_out(paddle: Any) -> None:
    layer, x = paddle.nn.Linear(3, 2), paddle.ones([1, 3])
    seen: list[str] = []
    layer.register_forward_post_hook(lambda module, given, result: seen.append("after"))
    layer.register_forward_pre_hook(lambda module, given: seen.append("before"))
    direct = layer.forward(x)
    assert seen == []
    assert bool((layer(x) == direct).all())
    assert seen == ["before", "after"]


def test_paddle_spectral_norm_is_not_computed_anew(paddle: Any) -> None:
    layer, x = paddle.nn.utils.weight_norm(paddle.nn.Linear(3, 2)), paddle.ones([1, 3])
    before = layer(x).numpy()
    layer.weight_g.set_value(layer.weight_g * 2)
    assert (layer.forward(x).numpy() == before).all()
    assert not (layer(x).numpy() == before).all()


def test_torch_wrappers_have_hooks_as_well(torch: Any) -> None:
    wrapper, x = torch.nn.DataParallel(torch.nn.Linear(3, 2)), torch.ones(1, 3)
    seen: list[str] = []
    wrapper.register_forward_hook(lambda module, given, result: seen.append("after"))
    direct = wrapper.forward(x)
    assert seen == []
    assert torch.equal(wrapper(x), direct)
    assert seen == ["after"]


def test_paddle_wrappers_have_hooks_as_well(paddle: Any) -> None:
    wrapper, x = paddle.DataParallel(paddle.nn.Linear(3, 2)), paddle.ones([1, 3])
    seen: list[str] = []
    wrapper.register_forward_post_hook(lambda module, given, result: seen.append("after"))
    direct = wrapper.forward(x)
    assert seen == []
    assert bool((wrapper(x) == direct).all())
    assert seen == ["after"]


def test_torch_parts_of_a_dict_have_their_names(torch: Any) -> None:
    nn = torch.nn
    parts = nn.ModuleDict({"table": nn.Embedding(3, 2), "rows": nn.ModuleList([nn.Linear(2, 2)])})
    assert parts.table is parts["table"]
    assert parts.rows[0] is parts["rows"][0]


def test_paddle_parts_of_a_dict_have_their_names(paddle: Any) -> None:
    nn = paddle.nn
    parts = nn.LayerDict({"table": nn.Embedding(3, 2), "rows": nn.LayerList([nn.Linear(2, 2)])})
    assert parts.table is parts["table"]
    assert parts.rows[0] is parts["rows"][0]
