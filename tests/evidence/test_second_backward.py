"""ML216: a graph is freed as ``backward()`` walks it, and cannot be walked a second time."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def torch_networks(torch: Any) -> tuple[Any, Any]:
    nn = torch.nn
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)), nn.Linear(2, 1)


def paddle_networks(paddle: Any) -> tuple[Any, Any]:
    nn = paddle.nn
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)), nn.Linear(2, 1)


def test_torch_generator_in_both_losses(torch: Any) -> None:
    generator, discriminator = torch_networks(torch)
    fake = generator(torch.rand(4, 2))
    discriminator(fake).mean().backward()
    loss = -discriminator(fake).mean()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


@pytest.mark.parametrize("detach", [True, False])
def test_torch_detached_or_kept(torch: Any, detach: bool) -> None:
    generator, discriminator = torch_networks(torch)
    fake = generator(torch.rand(4, 2))
    discriminator(fake.detach() if detach else fake).mean().backward(retain_graph=not detach)
    (-discriminator(fake).mean()).backward()


def test_torch_total_over_rounds(torch: Any) -> None:
    model, _ = torch_networks(torch)
    total = model(torch.rand(4, 2)).mean()
    total.backward()
    total += model(torch.rand(4, 2)).mean()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        total.backward()


def test_torch_single_layer(torch: Any) -> None:
    """One layer is enough: it keeps its input."""
    output = torch.nn.Linear(2, 2)(torch.rand(4, 2))
    output.mean().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        output.pow(2).mean().backward()


def test_torch_graph_that_keeps_nothing(torch: Any) -> None:
    """The look-alike: a sum keeps nothing, and goes a second time."""
    weight = torch.zeros(3, requires_grad=True)
    loss = weight.sum()
    loss.backward()
    loss.backward()
    assert weight.grad.tolist() == [2, 2, 2]


def test_paddle_layer_in_both_losses(paddle: Any) -> None:
    generator, discriminator = paddle_networks(paddle)
    fake = generator(paddle.rand([4, 2]))
    discriminator(fake).mean().backward()
    with pytest.raises(SystemError, match="backward twice for the same subgraph"):
        (-discriminator(fake).mean()).backward()


@pytest.mark.parametrize("detach", [True, False])
def test_paddle_detached_or_kept(paddle: Any, detach: bool) -> None:
    generator, discriminator = paddle_networks(paddle)
    fake = generator(paddle.rand([4, 2]))
    discriminator(fake.detach() if detach else fake).mean().backward(retain_graph=not detach)
    (-discriminator(fake).mean()).backward()


def test_paddle_total_over_rounds(paddle: Any) -> None:
    model, _ = paddle_networks(paddle)
    total = model(paddle.rand([4, 2])).mean()
    total.backward()
    total = total + model(paddle.rand([4, 2])).mean()
    with pytest.raises(SystemError, match="backward twice for the same subgraph"):
        total.backward()


def walk_total_twice(framework: Any, total: Any) -> None:
    criterion, model = framework.nn.MSELoss(), framework.nn.Linear(3, 1)
    for _ in range(2):
        total = total + criterion(model(framework.rand([2, 3])), framework.rand([2, 1]))
        total.backward()


def test_torch_total_of_a_loss_function(torch: Any) -> None:
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        walk_total_twice(torch, 0)


def test_paddle_total_of_a_loss_function(paddle: Any) -> None:
    with pytest.raises((RuntimeError, SystemError), match="backward twice for the same subgraph"):
        walk_total_twice(paddle, paddle.zeros([1]))


LOSSES = (
    "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss", "HingeEmbeddingLoss",
    "HuberLoss", "KLDivLoss", "L1Loss", "MarginRankingLoss", "MSELoss", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
    "TripletMarginLoss",
)  # fmt: skip


def loss_of(framework: Any, name: str, reduction: str) -> Any:
    """A loss of a tensor that a sum has computed, which keeps nothing itself."""
    leaf = framework.rand([4, 3])
    leaf.stop_gradient = False
    if hasattr(leaf, "requires_grad_"):
        leaf.requires_grad_()
    classes = framework.arange(4) % 3
    other, sign = framework.rand([4, 3]), framework.ones([4, 3])
    given = {
        "CrossEntropyLoss": (classes,), "NLLLoss": (classes,), "MultiMarginLoss": (classes,),
        "CosineEmbeddingLoss": (other, framework.ones([4])), "MarginRankingLoss": (other, sign),
        "TripletMarginLoss": (other, other * 2), "GaussianNLLLoss": (other, sign),
        "MultiLabelMarginLoss": (sign.long() if hasattr(sign, "long") else sign,),
    }.get(name, (other,))  # fmt: skip
    return getattr(framework.nn, name)(reduction=reduction)(leaf + 0, *given)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_torch_losses_keep_what_they_are_given(torch: Any, name: str, reduction: str) -> None:
    loss = loss_of(torch, name, reduction)
    loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        (loss * 2).backward()


@pytest.mark.parametrize("name", ["L1Loss", "MSELoss", "SmoothL1Loss", "KLDivLoss"])
def test_paddle_losses_keep_what_they_are_given(paddle: Any, name: str) -> None:
    loss = loss_of(paddle, name, "mean")
    loss.backward()
    with pytest.raises((RuntimeError, SystemError), match="backward twice for the same subgraph"):
        (loss * 2).backward()


def test_torch_operation_that_keeps_its_result(torch: Any) -> None:
    rates = torch.zeros(3, requires_grad=True)
    scale = rates.exp()
    scale.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        scale.max().backward()


def test_torch_sum_keeps_nothing(torch: Any) -> None:
    moved = torch.zeros(3, requires_grad=True) + 1
    moved.sum().backward()
    moved.mean().backward()


def test_paddle_optimizer_only_collects_gradients(paddle: Any) -> None:
    net = paddle.nn.Linear(2, 2)
    optimizer = paddle.optimizer.Momentum(0.1, parameters=net.parameters())
    loss = net(paddle.ones([1, 2])).sum()
    loss.backward()
    pairs = optimizer.backward(loss, parameters=net.parameters())
    assert [gradient.shape for _, gradient in pairs] == [[2, 2], [2]]


def test_torch_pass_that_is_repeated_doubles_the_gradients(torch: Any) -> None:
    layer, x = torch.nn.Linear(3, 1), torch.rand(4, 3)
    layer(x).abs().mean().backward()
    once = layer.weight.grad.clone()
    layer.zero_grad()
    loss = layer(x).abs().mean()
    loss.backward(retain_graph=True)
    loss.backward()
    assert torch.allclose(layer.weight.grad, 2 * once)


def test_paddle_pass_that_is_repeated_doubles_the_gradients(paddle: Any) -> None:
    layer, x = paddle.nn.Linear(3, 1), paddle.rand([4, 3])
    layer(x).abs().mean().backward()
    once = layer.weight.grad.clone()
    layer.clear_gradients()
    loss = layer(x).abs().mean()
    loss.backward(retain_graph=True)
    loss.backward()
    assert paddle.allclose(layer.weight.grad, 2 * once)
