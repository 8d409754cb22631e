"""ML211: a loss made of choices and steps has no gradient to give."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence

# Each takes (framework, out): `out` is a 2 by 3 result that hangs on the weight.
TORCH_RAISING: dict[str, Callable[[Any, Any], Any]] = {
    "argmax": lambda torch, out: out.argmax(1).float().mean(),
    "comparison": lambda torch, out: (out > 0).float().mean(),
    "equality": lambda torch, out: (out.argmax(1) == 0).sum().float(),
    "int cast": lambda torch, out: out.int().float().mean(),
    "bool cast": lambda torch, out: out.bool().float().mean(),
    "indices of topk": lambda torch, out: out.topk(1, dim=1)[1].float().mean(),
    "indices of max": lambda torch, out: out.max(1)[1].float().mean(),
    "indices of sort": lambda torch, out: out.sort(1)[1].float().mean(),
    "one_hot": lambda torch, out: torch.nn.functional.one_hot(out.argmax(1), 3).float().mean(),
    "where of constants": lambda torch, out: torch.where(out > 0, 1.0, 0.0).mean(),
    "through a list": lambda torch, out: torch.tensor(out.tolist()).mean(),
    "through numpy": lambda torch, out: torch.from_numpy(out.detach().numpy()).mean(),
    "multinomial": lambda torch, out: torch.multinomial(out.softmax(1), 1).float().mean(),
    "count_nonzero": lambda torch, out: out.count_nonzero().float(),
}
TORCH_ZERO: dict[str, Callable[[Any, Any], Any]] = {
    "round": lambda torch, out: out.round().mean(),
    "sign": lambda torch, out: out.sign().mean(),
    "floor": lambda torch, out: out.floor().mean(),
    "ceil": lambda torch, out: out.ceil().mean(),
    "trunc": lambda torch, out: out.trunc().mean(),
    "bernoulli": lambda torch, out: torch.bernoulli(out.sigmoid()).mean(),
}
TORCH_RIGHT: dict[str, Callable[[Any, Any], Any]] = {
    "values of max": lambda torch, out: out.max(1)[0].mean(),
    "values of topk": lambda torch, out: out.topk(1, dim=1)[0].mean(),
    "mask times output": lambda torch, out: ((out > 0).float() * out + out).mean(),
    "straight through": lambda torch, out: ((out.round() - out).detach() + out).mean(),
    "frac": lambda torch, out: out.frac().mean(),
    "cross entropy of argmax labels": lambda torch, out: torch.nn.functional.cross_entropy(out, out.argmax(1)),
}


@pytest.fixture
def torch_weight(torch: Any) -> Any:
    return torch.randn(3, 3, requires_grad=True)


@pytest.mark.parametrize("make", TORCH_RAISING.values(), ids=TORCH_RAISING)
def test_torch_backward_raises(torch: Any, torch_weight: Any, make: Any) -> None:
    with pytest.raises(RuntimeError, match="does not require grad"):
        make(torch, torch.ones(2, 3) @ torch_weight).backward()


@pytest.mark.parametrize("make", TORCH_ZERO.values(), ids=TORCH_ZERO)
def test_torch_gradient_is_zero_in_silence(torch: Any, torch_weight: Any, make: Any) -> None:
    make(torch, torch.ones(2, 3) @ torch_weight).backward()
    assert torch_weight.grad is not None
    assert not torch_weight.grad.any()


@pytest.mark.parametrize("make", TORCH_RIGHT.values(), ids=TORCH_RIGHT)
def test_torch_look_alikes_that_learn(torch: Any, torch_weight: Any, make: Any) -> None:
    make(torch, torch.ones(2, 3) @ torch_weight).backward()
    assert torch_weight.grad.any()


def test_torch_flag_on_the_loss_silences_the_error(torch: Any, torch_weight: Any) -> None:
    out = torch.ones(2, 3) @ torch_weight
    for loss in (
        (out > 0).float().mean().requires_grad_(),
        torch.autograd.Variable((out > 0).float().mean(), requires_grad=True),
        torch.tensor((out > 0).float().mean().item(), requires_grad=True),
    ):
        loss.backward()
        assert torch_weight.grad is None


PADDLE_SILENT: dict[str, Callable[[Any, Any], Any]] = {
    "argmax": lambda paddle, out: out.argmax(1).astype("float32").mean(),
    "comparison": lambda paddle, out: (out > 0).astype("float32").mean(),
    "one_hot": lambda paddle, out: paddle.nn.functional.one_hot(out.argmax(1), 3).mean(),
    "where of constants": lambda paddle, out: paddle.where(out > 0, paddle.ones([2, 3]), paddle.zeros([2, 3])).mean(),
    "through numpy": lambda paddle, out: paddle.to_tensor(out.numpy()).mean(),
    "bernoulli": lambda paddle, out: paddle.bernoulli(paddle.nn.functional.sigmoid(out)).mean(),
    "accuracy": lambda paddle, out: paddle.metric.accuracy(out, paddle.zeros([2, 1], dtype="int64")),
}
PADDLE_ZERO: dict[str, Callable[[Any, Any], Any]] = {
    name: lambda paddle, out, name=name: getattr(out, name)().mean()
    for name in ("round", "sign", "floor", "ceil", "trunc")
}


@pytest.fixture
def paddle_weight(paddle: Any) -> Any:
    weight = paddle.randn([3, 3])
    weight.stop_gradient = False
    return weight


@pytest.mark.parametrize("make", PADDLE_SILENT.values(), ids=PADDLE_SILENT)
def test_paddle_backward_does_nothing_and_does_not_raise(paddle: Any, paddle_weight: Any, make: Any) -> None:
    make(paddle, paddle.ones([2, 3]) @ paddle_weight).backward()
    assert paddle_weight.grad is None


@pytest.mark.parametrize("make", PADDLE_ZERO.values(), ids=PADDLE_ZERO)
def test_paddle_gradient_is_zero_in_silence(paddle: Any, paddle_weight: Any, make: Any) -> None:
    make(paddle, paddle.ones([2, 3]) @ paddle_weight).backward()
    assert not paddle_weight.grad.numpy().any()


def test_paddle_casts_are_differentiable(paddle: Any, paddle_weight: Any) -> None:
    """The look-alike: a cast to whole numbers passes the gradient on, itself cast to whole numbers."""
    out = paddle.ones([2, 3]) @ paddle_weight
    out.astype("int64").astype("float32").sum().backward()
    assert paddle_weight.grad.numpy().any()


def test_paddle_other_look_alikes_that_learn(paddle: Any, paddle_weight: Any) -> None:
    out = paddle.ones([2, 3]) @ paddle_weight
    (out.topk(1)[0].mean() + (out * (out > 0).astype("float32")).mean()).backward()
    assert paddle_weight.grad.numpy().any()
