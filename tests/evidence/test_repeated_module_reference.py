"""ML403: ``[layer] * n`` is one layer, n times."""

import copy
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def counts(module: Any) -> tuple[int, int]:
    """How many parameters a module trains, and how many keys it saves."""
    return len(list(module.parameters())), len(module.state_dict())


def test_torch_one_set_of_weights_under_many_names(torch: Any) -> None:
    nn = torch.nn
    for module in (nn.ModuleList([nn.Linear(2, 2)] * 3), nn.Sequential(*[nn.Linear(2, 2)] * 3)):
        assert len(module) == 3
        assert counts(module) == (2, 6)
        assert module[0] is module[2]


def test_torch_containers_and_modules_that_are_given_one_layer_again_and_again(torch: Any) -> None:
    nn = torch.nn
    layer, grown, chained, named = nn.Linear(2, 2), nn.ModuleList(), nn.Sequential(), nn.Module()
    for index in range(3):
        grown.append(layer)
        chained.append(layer)
        named.add_module(f"block{index}", layer)
    for module in (grown, chained, named):
        assert counts(module) == (2, 6)


def test_paddle_containers_and_layers_that_are_given_one_layer_again_and_again(paddle: Any) -> None:
    nn = paddle.nn
    layer, grown, named = nn.Linear(2, 2), nn.LayerList(), nn.Layer()
    for index in range(3):
        grown.append(layer)
        named.add_sublayer(f"block{index}", layer)
    for module in (grown, named):
        assert counts(module) == (2, 6)


def test_torch_one_each(torch: Any) -> None:
    nn = torch.nn
    assert counts(nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])) == (6, 6)
    assert counts(nn.ModuleList([copy.deepcopy(layer) for layer in [nn.Linear(2, 2)] * 3])) == (6, 6)


def test_torch_batch_norm_shares_its_statistics_as_well(torch: Any) -> None:
    module = torch.nn.Sequential(*[torch.nn.BatchNorm1d(2)] * 2)
    module(torch.randn(4, 2))
    assert module[0].num_batches_tracked.item() == 2


def test_torch_layers_without_weights_may_be_repeated(torch: Any) -> None:
    """The look-alikes."""
    nn = torch.nn
    for layer in (nn.ReLU(), nn.Dropout(0.1), nn.Identity(), nn.Flatten(), nn.MaxPool2d(2)):
        assert counts(nn.ModuleList([layer] * 3)) == (0, 0)
    assert counts(nn.ModuleList([nn.PReLU()] * 3)) == (1, 3)  # this one has a weight


def test_torch_checkpoint_of_the_repeated_layer_fits_the_repaired_model(torch: Any) -> None:
    """All keys are there, so the fix loses no checkpoint; the numbers do change from then on."""
    nn = torch.nn
    repeated = nn.ModuleList([nn.Linear(2, 2)] * 3)
    repaired = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    repaired.load_state_dict(repeated.state_dict())
    assert torch.equal(repaired[0].weight, repaired[2].weight)


def test_paddle_one_set_of_weights_under_many_names(paddle: Any) -> None:
    nn = paddle.nn
    for module in (nn.LayerList([nn.Linear(2, 2)] * 3), nn.Sequential(*[nn.Linear(2, 2)] * 3)):
        assert counts(module) == (2, 6)
        assert module[0] is module[2]
    assert counts(nn.LayerList([nn.Linear(2, 2) for _ in range(3)])) == (6, 6)
    assert counts(nn.LayerList([nn.ReLU()] * 3)) == (0, 0)


def test_torch_shallow_copy_has_the_same_weights(torch: Any) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    shallow, deep = copy.copy(net), copy.deepcopy(net)
    opt = torch.optim.SGD(net.parameters(), lr=1.0)
    net(torch.ones(1, 2)).sum().backward()
    opt.step()
    assert torch.equal(shallow[0].weight, net[0].weight)
    assert not torch.equal(deep[0].weight, net[0].weight)
    assert next(iter(shallow.parameters())) is next(iter(net.parameters()))


def test_paddle_shallow_copy_has_the_same_weights(paddle: Any) -> None:
    net = paddle.nn.Sequential(paddle.nn.Linear(2, 2))
    shallow, deep = copy.copy(net), copy.deepcopy(net)
    opt = paddle.optimizer.SGD(1.0, parameters=net.parameters())
    net(paddle.ones([1, 2])).sum().backward()
    opt.step()
    assert bool((shallow[0].weight == net[0].weight).all())
    assert not bool((deep[0].weight == net[0].weight).all())
    assert shallow.parameters()[0] is net.parameters()[0]
