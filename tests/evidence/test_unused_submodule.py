"""ML408: a submodule that ``forward`` never uses."""

import pathlib
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


@pytest.fixture
def torch_model(torch: Any) -> Any:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used = torch.nn.Linear(2, 2)
            self.unused = torch.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.used(x)

    return Net()


def train(torch: Any, model: Any) -> None:
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()


def test_torch_its_parameters_get_no_gradient(torch: Any, torch_model: Any) -> None:
    train(torch, torch_model)
    assert torch_model.used.weight.grad is not None
    assert torch_model.unused.weight.grad is None
    assert len(list(torch_model.parameters())) == 4  # and are saved, moved and counted all the same


def test_torch_distributed_training_stops_at_the_second_step(torch: Any, torch_model: Any, process_group: None) -> None:
    with pytest.raises(RuntimeError, match="Expected to have finished reduction"):
        train(torch, torch.nn.parallel.DistributedDataParallel(torch_model))


def test_torch_what_lets_it_go_on(torch: Any, torch_model: Any, process_group: None) -> None:
    parallel = torch.nn.parallel.DistributedDataParallel
    train(torch, parallel(torch_model, find_unused_parameters=True))
    train(torch, parallel(torch_model, static_graph=True))
    torch_model.unused.requires_grad_(False)
    train(torch, parallel(torch_model))


def test_paddle_its_parameters_get_no_gradient(paddle: Any) -> None:
    class Net(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.used = paddle.nn.Linear(2, 2)
            self.unused = paddle.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.used(x)

    layer = Net()
    layer(paddle.ones([1, 2])).sum().backward()
    assert layer.used.weight.grad is not None
    assert layer.unused.weight.grad is None


def test_torch_a_replaced_layer_is_gone(torch: Any) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = torch.nn.Linear(4, 3)
            self.up = torch.nn.Linear(3, 2)

    assert [(name, list(p.shape)) for name, p in Net().named_parameters()] == [("up.weight", [2, 3]), ("up.bias", [2])]


def test_paddle_a_replaced_layer_is_gone(paddle: Any) -> None:
    class Net(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.up = paddle.nn.Linear(4, 3)
            self.up = paddle.nn.Linear(3, 2)

    assert [(name, list(p.shape)) for name, p in Net().named_parameters()] == [("up.weight", [3, 2]), ("up.bias", [2])]
