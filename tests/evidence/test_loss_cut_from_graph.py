"""ML204: a loss that is made anew has no history; its ``backward()`` reaches no parameter."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence

# (framework, loss) -> what backward() is called on
TORCH_SILENT: dict[str, Callable[[Any, Any], Any]] = {
    "torch.tensor(loss, requires_grad=True)": lambda torch, loss: torch.tensor(loss, requires_grad=True),
    "Variable(loss, requires_grad=True)": lambda torch, loss: torch.autograd.Variable(loss, requires_grad=True),
    "loss.detach().requires_grad_()": lambda torch, loss: loss.detach().requires_grad_(),
    "loss.data.requires_grad_()": lambda torch, loss: loss.data.requires_grad_(),
    "torch.tensor(loss.item(), ..)": lambda torch, loss: torch.tensor(loss.item(), requires_grad=True),
    "torch.tensor([a, b], ..).sum()": lambda torch, loss: torch.tensor([loss, loss], requires_grad=True).sum(),
    "torch.FloatTensor([loss])": lambda torch, loss: torch.FloatTensor([loss]).requires_grad_(),
    "nn.Parameter(loss)": lambda torch, loss: torch.nn.Parameter(loss),
}
TORCH_RAISING: dict[str, Callable[[Any, Any], Any]] = {
    "torch.tensor(loss)": lambda torch, loss: torch.tensor(loss),
    "torch.Tensor([loss])": lambda torch, loss: torch.Tensor([loss]),
    "Variable(loss)": lambda torch, loss: torch.autograd.Variable(loss),
    "loss.detach()": lambda torch, loss: loss.detach(),
    "loss.data": lambda torch, loss: loss.data,
}
TORCH_RIGHT: dict[str, Callable[[Any, Any], Any]] = {
    "loss": lambda torch, loss: loss,
    "loss.requires_grad_()": lambda torch, loss: loss.requires_grad_(),
    "torch.as_tensor(loss)": lambda torch, loss: torch.as_tensor(loss),
    "loss.clone()": lambda torch, loss: loss.clone(),
    "loss.cpu()": lambda torch, loss: loss.cpu(),
    "loss.double()": lambda torch, loss: loss.double(),
    "torch.stack([a, b]).sum()": lambda torch, loss: torch.stack([loss, loss]).sum(),
    "sum([a, b])": lambda torch, loss: sum([loss, loss]),
}


@pytest.fixture
def torch_weight(torch: Any) -> Any:
    return torch.ones(2, requires_grad=True)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("remake", TORCH_SILENT.values(), ids=TORCH_SILENT)
def test_torch_backward_succeeds_and_no_gradient_arrives(torch: Any, torch_weight: Any, remake: Any) -> None:
    remake(torch, (torch_weight * 2).sum()).backward()
    assert torch_weight.grad is None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("remake", TORCH_SILENT.values(), ids=TORCH_SILENT)
def test_torch_output_that_is_made_anew_takes_no_gradient_to_the_model(
    torch: Any, torch_weight: Any, remake: Any
) -> None:
    output = remake(torch, (torch_weight * 2).sum())
    torch.nn.functional.mse_loss(output.reshape(-1), torch.zeros(output.numel())).backward()
    assert torch_weight.grad is None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("remake", TORCH_RAISING.values(), ids=TORCH_RAISING)
def test_torch_backward_raises_without_the_flag(torch: Any, torch_weight: Any, remake: Any) -> None:
    """These announce themselves."""
    with pytest.raises(RuntimeError, match="does not require grad"):
        remake(torch, (torch_weight * 2).sum()).backward()


@pytest.mark.parametrize("remake", TORCH_RIGHT.values(), ids=TORCH_RIGHT)
def test_torch_forms_that_keep_the_graph(torch: Any, torch_weight: Any, remake: Any) -> None:
    remake(torch, (torch_weight * 2).sum()).backward()
    assert torch_weight.grad is not None


def test_torch_flag_on_a_live_loss_raises(torch_weight: Any) -> None:
    """``loss.requires_grad = True`` is silent only where the graph is cut already."""
    loss = (torch_weight * 2).sum()
    with pytest.raises(RuntimeError, match="leaf variables"):
        loss.requires_grad = True
    loss = loss.detach()
    loss.requires_grad = True
    loss.backward()
    assert torch_weight.grad is None


def test_torch_loss_made_under_no_grad(torch: Any, torch_weight: Any) -> None:
    with torch.no_grad():
        loss = (torch_weight * 2).sum()
    with pytest.raises(RuntimeError, match="does not require grad"):
        loss.backward()
    loss.requires_grad_(True)  # pasted to silence the error: now it is silent
    loss.backward()
    assert torch_weight.grad is None


def test_torch_decorator_switches_gradients_on_under_no_grad(torch: Any, torch_weight: Any) -> None:
    doubled = torch.enable_grad()(lambda: torch_weight * 2)
    with torch.no_grad():
        made = doubled()
    made.sum().backward()
    assert torch_weight.grad is not None


def test_torch_model_does_not_learn(torch: Any) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = model.weight.tolist()
    loss = model(torch.ones(1, 2)).pow(2).mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loss = torch.tensor(loss, requires_grad=True)
    loss.backward()
    optimizer.step()
    assert model.weight.tolist() == before


def test_torch_sum_learns_through_its_other_part_only(torch: Any) -> None:
    first, second = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cut = torch.tensor(second.sum(), requires_grad=True)
    (first.sum() + cut).backward()
    assert first.grad is not None
    assert second.grad is None


# ---- paddle: nothing of it raises -----------------------------------------------------------------

PADDLE_SILENT: dict[str, Callable[[Any, Any], Any]] = {
    "to_tensor(loss, stop_gradient=False)": lambda paddle, loss: paddle.to_tensor(loss, stop_gradient=False),
    "to_tensor(loss)": lambda paddle, loss: paddle.to_tensor(loss),
    "to_tensor(loss.item())": lambda paddle, loss: paddle.to_tensor(loss.item()),
    "to_tensor([a, b]).sum()": lambda paddle, loss: paddle.to_tensor([loss, loss]).sum(),
    "loss.detach()": lambda paddle, loss: loss.detach(),
}
PADDLE_RIGHT: dict[str, Callable[[Any, Any], Any]] = {
    "loss": lambda paddle, loss: loss,
    "paddle.assign(loss)": lambda paddle, loss: paddle.assign(loss),
    "loss.clone()": lambda paddle, loss: loss.clone(),
    "loss.cpu()": lambda paddle, loss: loss.cpu(),
    "paddle.stack([a, b]).sum()": lambda paddle, loss: paddle.stack([loss, loss]).sum(),
}


@pytest.fixture
def paddle_weight(paddle: Any) -> Any:
    weight = paddle.ones([2])
    weight.stop_gradient = False
    return weight


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("remake", PADDLE_SILENT.values(), ids=PADDLE_SILENT)
def test_paddle_backward_does_nothing_and_does_not_raise(paddle: Any, paddle_weight: Any, remake: Any) -> None:
    remake(paddle, (paddle_weight * 2).sum()).backward()
    assert paddle_weight.grad is None


@pytest.mark.parametrize("remake", PADDLE_RIGHT.values(), ids=PADDLE_RIGHT)
def test_paddle_forms_that_keep_the_graph(paddle: Any, paddle_weight: Any, remake: Any) -> None:
    remake(paddle, (paddle_weight * 2).sum()).backward()
    assert paddle_weight.grad is not None


def test_paddle_loss_made_under_no_grad_is_silent_at_once(paddle: Any, paddle_weight: Any) -> None:
    with paddle.no_grad():
        loss = (paddle_weight * 2).sum()
    loss.backward()
    assert paddle_weight.grad is None


def test_paddle_decorator_switches_gradients_on_under_no_grad(paddle: Any, paddle_weight: Any) -> None:
    doubled = paddle.enable_grad()(lambda: paddle_weight * 2)
    with paddle.no_grad():
        made = doubled()
    made.sum().backward()
    assert paddle_weight.grad is not None


def test_paddle_loss_that_is_stopped(paddle: Any, paddle_weight: Any) -> None:
    loss = (paddle_weight * 2).sum()
    loss.stop_gradient = True
    loss.backward()
    assert paddle_weight.grad is None


def test_paddle_data_of_a_loss(paddle: Any, paddle_weight: Any, paddle_version: tuple[int, int]) -> None:
    """``.data`` cuts the graph since 3.1 only."""
    (paddle_weight * 2).sum().data.backward()
    assert (paddle_weight.grad is None) is (paddle_version >= (3, 1))


def test_paddle_loss_of_what_no_grad_computed_is_silent(paddle: Any, paddle_weight: Any) -> None:
    with paddle.no_grad():
        output = paddle_weight * 2
    paddle.nn.functional.mse_loss(output, paddle.zeros_like(output)).backward()
    assert paddle_weight.grad is None


def test_torch_loss_of_what_no_grad_computed_raises(torch: Any, torch_weight: Any) -> None:
    with torch.no_grad():
        output = torch_weight * 2
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.nn.functional.mse_loss(output, torch.zeros_like(output)).backward()


@pytest.mark.parametrize("cut", ["detach", "item"])
def test_torch_part_that_is_cut_adds_a_number_and_no_gradient(torch: Any, torch_weight: Any, cut: str) -> None:
    part = getattr((torch_weight * 5).sum(), cut)() * 0.1
    ((torch_weight * 2).sum() + part).backward()
    assert torch_weight.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("cut", ["detach", "item"])
def test_paddle_part_that_is_cut_adds_a_number_and_no_gradient(paddle: Any, paddle_weight: Any, cut: str) -> None:
    part = getattr((paddle_weight * 5).sum(), cut)() * 0.1
    ((paddle_weight * 2).sum() + part).backward()
    assert paddle_weight.grad.tolist() == [2.0, 2.0]


def test_torch_loss_of_outputs_that_are_cut_changes_no_gradient(torch: Any, torch_weight: Any) -> None:
    output, target = torch_weight * 2, torch.zeros(2)
    loss = torch.nn.MSELoss()(output, target)
    (alone,) = torch.autograd.grad(loss, torch_weight, retain_graph=True)
    (loss + torch.nn.MSELoss()(output.detach(), target)).backward()
    assert torch.equal(torch_weight.grad, alone)


def test_torch_loss_class_that_returns_from_within_no_grad(torch: Any, torch_weight: Any) -> None:
    class SumLoss(torch.nn.Module):  # type: ignore[misc]
        def forward(self, output: Any) -> Any:
            with torch.no_grad():
                return output.sum()

    loss = SumLoss()(torch_weight * 2)
    with pytest.raises(RuntimeError, match="does not require grad"):
        loss.backward()
    (loss + (torch_weight * 3).sum()).backward()
    assert torch_weight.grad.tolist() == [3.0, 3.0]


def test_paddle_loss_class_that_returns_from_within_no_grad(paddle: Any, paddle_weight: Any) -> None:
    class SumLoss(paddle.nn.Layer):  # type: ignore[misc]
        def forward(self, output: Any) -> Any:
            with paddle.no_grad():
                return output.sum()

    loss = SumLoss()(paddle_weight * 2)
    loss.backward()
    assert paddle_weight.grad is None
    (loss + (paddle_weight * 3).sum()).backward()
    assert paddle_weight.grad.tolist() == [3.0, 3.0]


def test_torch_loss_class_that_gives_back_a_copy_teaches_nothing(torch: Any, torch_weight: Any) -> None:
    class CopyLoss(torch.nn.Module):  # type: ignore[misc]
        def forward(self, output: Any) -> Any:
            return torch.tensor(output.sum().item(), requires_grad=True)

    CopyLoss()(torch_weight * 2).backward()
    assert torch_weight.grad is None


def test_paddle_loss_class_that_gives_back_a_copy_teaches_nothing(paddle: Any, paddle_weight: Any) -> None:
    class CopyLoss(paddle.nn.Layer):  # type: ignore[misc]
        def forward(self, output: Any) -> Any:
            return paddle.to_tensor((output.numpy() ** 2).sum())

    CopyLoss()(paddle_weight * 2).backward()
    assert paddle_weight.grad is None


def test_torch_loss_of_an_output_that_was_taken_off_raises(torch: Any) -> None:
    layer = torch.nn.Linear(2, 1)
    for take in (
        lambda out: out.detach(),
        lambda out: out.data,
        lambda out: torch.from_numpy(out.detach().numpy()),
    ):
        loss = torch.nn.functional.mse_loss(take(layer(torch.rand(3, 2))), torch.rand(3, 1))
        with pytest.raises(RuntimeError, match="does not require grad"):
            loss.backward()


def test_paddle_loss_of_an_output_that_was_taken_off_is_silent(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 1)
    loss = paddle.nn.functional.mse_loss(layer(paddle.rand((3, 2))).detach(), paddle.rand((3, 1)))
    loss.backward()
    assert layer.weight.grad is None


def test_torch_what_is_computed_of_a_cut_tensor_alone_has_no_graph(torch: Any) -> None:
    net = torch.nn.Linear(2, 2)
    cut = net(torch.ones(1, 2)).detach()
    for loss in (cut.pow(2).mean(), cut.abs().clamp(min=1e-8).log().sum()):
        with pytest.raises(RuntimeError):
            loss.backward()


def test_paddle_what_is_computed_of_a_cut_tensor_alone_has_no_graph(paddle: Any) -> None:
    net = paddle.nn.Linear(2, 2)
    net(paddle.ones([1, 2])).detach().pow(2).mean().backward()
    assert net.weight.grad is None


@pytest.mark.parametrize("create_graph", [False, True])
def test_torch_gradients_without_graph_add_a_constant(torch: Any, create_graph: bool) -> None:
    weight, inputs = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    output = weight * inputs * inputs
    (slope,) = torch.autograd.grad(output.sum(), inputs, retain_graph=True, create_graph=create_graph)
    assert slope.requires_grad is create_graph
    (output.sum() + slope.pow(2).sum()).backward()
    alone = 9.0  # what the output alone gives; the slope is 2 * weight * inputs, its square has 8 * weight * inputs**2
    assert weight.grad.item() == alone + (8 * 2.0 * 9.0 if create_graph else 0.0)


@pytest.mark.parametrize("create_graph", [False, True])
def test_paddle_gradients_without_graph_add_a_constant(paddle: Any, create_graph: bool) -> None:
    weight = paddle.to_tensor([2.0], stop_gradient=False)
    inputs = paddle.to_tensor([3.0], stop_gradient=False)
    output = weight * inputs * inputs
    (slope,) = paddle.grad(output.sum(), inputs, retain_graph=True, create_graph=create_graph)
    assert slope.stop_gradient is not create_graph
    (output.sum() + slope.pow(2).sum()).backward()
    assert weight.grad.item() == 9.0 + (8 * 2.0 * 9.0 if create_graph else 0.0)


def test_functional_losses_of_outputs_that_are_cut_have_no_graph(torch: Any, paddle: Any) -> None:
    cloth = torch.nn.Linear(2, 1)(torch.rand(4, 2))
    entropy = torch.nn.functional.binary_cross_entropy_with_logits
    assert not entropy(cloth.detach(), torch.ones(4, 1)).requires_grad
    assert entropy(cloth, torch.ones(4, 1)).requires_grad
    cloth = paddle.nn.Linear(2, 1)(paddle.rand([4, 2]))
    entropy = paddle.nn.functional.binary_cross_entropy_with_logits
    assert entropy(cloth.detach(), paddle.ones([4, 1])).stop_gradient
    assert not entropy(cloth, paddle.ones([4, 1])).stop_gradient


def test_torch_backward_raises_where_all_parameters_are_frozen(torch: Any) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    for parameter in net.parameters():
        parameter.requires_grad = False
    with pytest.raises(RuntimeError, match="does not require grad"):
        net(torch.ones(4, 3)).mean().backward()


def test_paddle_training_changes_nothing_where_all_parameters_are_frozen(paddle: Any) -> None:
    net = paddle.nn.Sequential(paddle.nn.Linear(3, 2), paddle.nn.Linear(2, 1))
    for parameter in net.parameters():
        parameter.stop_gradient = True
    before = [parameter.numpy().copy() for parameter in net.parameters()]
    optimizer = paddle.optimizer.AdamW(0.1, parameters=net.parameters())
    net(paddle.ones([4, 3])).mean().backward()
    optimizer.step()
    assert all((old == new.numpy()).all() for old, new in zip(before, net.parameters(), strict=True))
