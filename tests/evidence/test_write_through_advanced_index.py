"""ML106: indexing with a mask, a list or a tensor of numbers copies; what is written goes nowhere."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def assign(part: Any, index: Any) -> None:
    part[index] = 99.0


TORCH_LOST: dict[str, Callable[[Any, Any], Any]] = {
    "x[mask][0] = v": lambda torch, x: assign(x[x > 2], 0),
    "x[mask][:2] = v": lambda torch, x: assign(x[x > 2], slice(2)),
    "x[list][0] = v": lambda torch, x: assign(x[[0, 1]], 0),
    "x[tensor][0] = v": lambda torch, x: assign(x[torch.tensor([0])], 0),
    "x[:, list][0] = v": lambda torch, x: assign(x[:, [0]], 0),
    "x[mask].add_(v)": lambda torch, x: x[x > 2].add_(1),
    "x[mask].zero_()": lambda torch, x: x[x > 2].zero_(),
    "x[mask].clamp_(v)": lambda torch, x: x[x > 2].clamp_(max=0),
    "x[list].fill_(v)": lambda torch, x: x[[0]].fill_(9.0),
    "x[tensor].fill_(v)": lambda torch, x: x[torch.tensor([0])].fill_(9.0),
    "x[0, tensor].fill_(v)": lambda torch, x: x[0, torch.tensor([0])].fill_(9.0),
    "x[range].fill_(v)": lambda torch, x: x[range(1)].fill_(9.0),
    "x[mask].copy_(y)": lambda torch, x: x[x > 2].copy_(torch.zeros(3)),
    "x.masked_select(mask).fill_(v)": lambda torch, x: x.masked_select(x > 2).fill_(9.0),
    "x.index_select(..).fill_(v)": lambda torch, x: x.index_select(0, torch.tensor([0])).fill_(9.0),
    "x[tuple of tensors].fill_(v)": lambda torch, x: x[torch.where(x > 2)].fill_(9.0),
    "x[0-d mask].fill_(v)": lambda torch, x: x[torch.tensor(True)].fill_(9.0),
    "x[bool][..] = v": lambda torch, x: assign(x[float(x.max()) < 9], slice(2)),
    "x[bool].fill_(v)": lambda torch, x: x[float(x.max()) > 9].fill_(9.0),
    "x[bool, :2].fill_(v)": lambda torch, x: x[float(x.max()) < 9, :2].fill_(9.0),
    "x[mask].data.fill_(v)": lambda torch, x: x[x > 2].data.fill_(9.0),
    "x.view(-1)[tensor].fill_(v)": lambda torch, x: x.view(-1)[torch.tensor([0])].fill_(9.0),
    "init.zeros_(x[list])": lambda torch, x: torch.nn.init.zeros_(x[[0, 1]]),
    "x[topk indexes].fill_(v)": lambda torch, x: x[torch.topk(x[:, 0], 1)[1]].fill_(9.0),
    "x[sort indexes].fill_(v)": lambda torch, x: x[x[:, 0].sort().indices].fill_(9.0),
    "x[randint].fill_(v)": lambda torch, x: x[torch.randint(0, 1, (1,))].fill_(9.0),
    "x.gather(..).fill_(v)": lambda torch, x: x.gather(0, torch.tensor([[0]])).fill_(9.0),
}

# Look-alikes: the first index is basic and gives a view, or there is one index only.
TORCH_WRITTEN: dict[str, Callable[[Any, Any], Any]] = {
    "x[0][mask] = v": lambda torch, x: assign(x[0], x[0] >= 0),
    "x[0][0] = v": lambda torch, x: assign(x[0], 0),
    "x[0:1][0] = v": lambda torch, x: assign(x[0:1], 0),
    "x[None][0] = v": lambda torch, x: assign(x[None], 0),
    "x[..., 0][0] = v": lambda torch, x: assign(x[..., 0], 0),
    "x[mask] = v": lambda torch, x: assign(x, x > 2),
    "x[list] = v": lambda torch, x: assign(x, [0]),
    "x[0].fill_(v)": lambda torch, x: x[0].fill_(9.0),
    "x[:, 0].fill_(v)": lambda torch, x: x[:, 0].fill_(9.0),
    "x[0-d tensor].fill_(v)": lambda torch, x: x[torch.tensor(0)].fill_(9.0),  # as a number
    "x.view(-1).fill_(v)": lambda torch, x: x.view(-1).fill_(9.0),
    "x.select(0, 0).fill_(v)": lambda torch, x: x.select(0, 0).fill_(9.0),
    "x.narrow(..).fill_(v)": lambda torch, x: x.narrow(0, 0, 1).fill_(9.0),
    "x.masked_fill_(..)": lambda torch, x: x.masked_fill_(x > 2, 9.0),
    "x.index_fill_(..)": lambda torch, x: x.index_fill_(0, torch.tensor([0]), 9.0),
    "x.data[mask] = v": lambda torch, x: assign(x.data, x > 2),
}


@pytest.mark.parametrize("write", TORCH_LOST.values(), ids=TORCH_LOST)
def test_torch_write_is_lost(torch: Any, write: Any) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    write(torch, x)
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize("write", TORCH_WRITTEN.values(), ids=TORCH_WRITTEN)
def test_torch_write_arrives(torch: Any, write: Any) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    write(torch, x)
    assert x.tolist() != [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_torch_augmented_assignment(torch: Any) -> None:
    """``x[mask] += v`` stores what it computed; one index further it is lost again."""
    x = torch.zeros(3)
    x[x == 0] += 1
    assert x.tolist() == [1.0, 1.0, 1.0]
    x[x == 1][0] += 1
    assert x.tolist() == [1.0, 1.0, 1.0]
    x[[0, 0]] += 1  # and an index that comes twice counts once
    assert x.tolist() == [2.0, 1.0, 1.0]


def test_numpy_does_the_same(numpy: Any) -> None:
    x = numpy.arange(6.0).reshape(2, 3)
    assign(x[x > 2], 0)
    assign(x[[0, 1]], 0)
    x[x > 2].sort()
    x[numpy.array([0])].fill(9.0)
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assign(x[0], x[0] > 1)
    assert x[0].tolist() == [0.0, 1.0, 99.0]
    assign(x[0:1], 0)
    assert x[0].tolist() == [99.0, 99.0, 99.0]


PADDLE_LOST: dict[str, Callable[[Any, Any], Any]] = {
    "x[mask][0] = v": lambda paddle, x: assign(x[x > 2], 0),
    "x[list][0] = v": lambda paddle, x: assign(x[[0, 1]], 0),
    "x[tensor][0] = v": lambda paddle, x: assign(x[paddle.to_tensor([0])], 0),
    "x[mask].fill_(v)": lambda paddle, x: x[x > 2].fill_(9.0),
    "x[list].fill_(v)": lambda paddle, x: x[[0]].fill_(9.0),
    "x[mask].zero_()": lambda paddle, x: x[x > 2].zero_(),
    "x.numpy().fill(v)": lambda paddle, x: x.numpy().fill(9.0),  # a copy; a view in torch
    "x.chunk(2)[0].fill_(v)": lambda paddle, x: x.chunk(2)[0].fill_(9.0),  # a view in torch
}
PADDLE_WRITTEN: dict[str, Callable[[Any, Any], Any]] = {
    "x[0][0] = v": lambda paddle, x: assign(x[0], 0),
    "x[0:1][0] = v": lambda paddle, x: assign(x[0:1], 0),
    "x[None][0] = v": lambda paddle, x: assign(x[None], 0),
    "x[..., 0][0] = v": lambda paddle, x: assign(x[..., 0], 0),
    "x[0][mask] = v": lambda paddle, x: assign(x[0], x[0] >= 0),
    "x[mask] = v": lambda paddle, x: assign(x, x > 2),
    "x[0].fill_(v)": lambda paddle, x: x[0].fill_(9.0),
    "x[0-d tensor].fill_(v)": lambda paddle, x: x[paddle.to_tensor(0)].fill_(9.0),
}


@pytest.mark.parametrize("write", PADDLE_LOST.values(), ids=PADDLE_LOST)
def test_paddle_write_is_lost(paddle: Any, write: Any) -> None:
    x = paddle.arange(6.0).reshape([2, 3])
    write(paddle, x)
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize("write", PADDLE_WRITTEN.values(), ids=PADDLE_WRITTEN)
def test_paddle_write_arrives(paddle: Any, write: Any) -> None:
    x = paddle.arange(6.0).reshape([2, 3])
    write(paddle, x)
    assert x.tolist() != [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_torch_state_dict_is_made_anew(torch: Any) -> None:
    module = torch.nn.Linear(2, 2)
    module.state_dict()["weight"] = torch.zeros(2, 2)
    module.state_dict().update(weight=torch.zeros(2, 2))
    del module.state_dict()["weight"]
    module.state_dict().pop("bias")
    assert set(module.state_dict()) == {"weight", "bias"}
    assert not (module.weight == 0).any()
    module.state_dict()["weight"].copy_(torch.zeros(2, 2))
    assert (module.weight == 0).all()
    module.state_dict()["weight"][:] = 1
    module.state_dict()["weight"] += 1
    assert (module.weight == 2).all()


def test_torch_state_of_an_optimizer_has_copies_of_its_groups(torch: Any) -> None:
    module = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    optimizer.state_dict()["param_groups"][0]["lr"] = 5.0
    optimizer.state_dict()["param_groups"][0]["lr"] *= 5.0
    assert optimizer.param_groups[0]["lr"] == 0.1
    optimizer.state_dict()["state"] = {0: {}}
    assert not optimizer.state_dict()["state"]
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    scheduler.state_dict()["last_epoch"] = 9
    assert scheduler.last_epoch == 0


def test_paddle_state_dict_is_made_anew(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 2)
    layer.state_dict()["weight"] = paddle.zeros([2, 2])
    layer.state_dict().update(weight=paddle.zeros([2, 2]))
    del layer.state_dict()["weight"]
    assert set(layer.state_dict()) == {"weight", "bias"}
    assert not (layer.weight == 0).any()
    layer.state_dict()["weight"].set_value(paddle.zeros([2, 2]))
    assert (layer.weight == 0).all()
    optimizer = paddle.optimizer.Adam(parameters=layer.parameters())
    optimizer.state_dict()["LR_Scheduler"] = {"last_epoch": 3}
    assert "LR_Scheduler" not in optimizer.state_dict()
    scheduler = paddle.optimizer.lr.StepDecay(0.1, 3)
    scheduler.state_dict()["last_epoch"] = 9
    assert scheduler.last_epoch == 0
