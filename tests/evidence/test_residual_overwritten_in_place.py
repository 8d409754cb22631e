"""ML214: an activation in place changes the tensor that is added back, and nothing raises."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_activated_tensor_is_added(torch: Any) -> None:
    data = torch.tensor([-1.0, 2.0])
    relu = torch.nn.ReLU(inplace=True)
    for activate in (relu, lambda x: torch.nn.functional.relu(x, inplace=True), torch.relu_, lambda x: x.relu_()):
        x = data.clone()
        out = activate(x) * 3
        assert (out + x).tolist() == [0.0, 8.0]  # not [-1.0, 8.0]
    assert (torch.nn.ReLU()(data) * 3 + data).tolist() == [-1.0, 8.0]


def test_torch_another_name_is_the_same_tensor(torch: Any) -> None:
    x = torch.tensor([-1.0, 2.0])
    identity = x
    x = torch.nn.functional.relu(x, inplace=True)
    assert identity is x
    assert (identity + 0).tolist() == [0.0, 2.0]


def test_torch_sequential_that_begins_in_place_changes_its_input(torch: Any) -> None:
    nn = torch.nn
    x = torch.tensor([[-1.0, 2.0]], requires_grad=True) * 1.0
    body = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(2, 2))
    (x + body(x)).sum().backward()  # nothing raises
    assert x[0, 0] == 0


def test_torch_block_that_begins_in_place_changes_what_an_identity_gives(torch: Any) -> None:
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(2, 2))

        def forward(self, x: Any) -> Any:
            return self.body(x)

    for same in (nn.Identity(), nn.Sequential()):
        x = torch.tensor([[-1.0, 2.0]], requires_grad=True) * 1.0
        (Block()(x) + same(x)).sum().backward()  # nothing raises
        assert x[0, 0] == 0


def test_torch_activating_twice_changes_nothing(torch: Any) -> None:
    x = torch.relu(torch.tensor([-1.0, 2.0]))
    assert torch.relu(x).equal(x)


def test_paddle_activated_tensor_is_added(paddle: Any) -> None:
    x = paddle.to_tensor([-1.0, 2.0])
    out = paddle.nn.functional.relu_(x) * 3
    assert (out + x).tolist() == [0.0, 8.0]
    with pytest.raises(TypeError):
        paddle.nn.ReLU(inplace=True)
