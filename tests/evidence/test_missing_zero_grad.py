"""ML301: without ``zero_grad()`` every step uses the sum of all gradients so far."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


@pytest.mark.parametrize("clears", [False, True])
def test_torch_gradients_add_up(torch: Any, clears: bool) -> None:
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    moves = []
    for _ in range(3):
        before = weight.item()
        (2 * weight).sum().backward()
        optimizer.step()
        if clears:
            optimizer.zero_grad()
        moves.append(before - weight.item())
    assert moves == ([2, 2, 2] if clears else [2, 4, 6])


@pytest.mark.parametrize("clears", [False, True])
def test_paddle_gradients_add_up(paddle: Any, clears: bool) -> None:
    weight = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(0.0))
    optimizer = paddle.optimizer.SGD(1.0, parameters=[weight])
    moves = []
    for _ in range(3):
        before = weight.item()
        (2 * weight).sum().backward()
        optimizer.step()
        if clears:
            optimizer.clear_grad()
        moves.append(before - weight.item())
    assert moves == ([2, 2, 2] if clears else [2, 4, 6])


def test_torch_what_clears_too(torch: Any) -> None:
    def cleared(weight: Any, how: str) -> bool:
        (2 * weight).sum().backward()
        if how == "none":
            weight.grad = None
        elif how == "zero_":
            weight.grad.data.zero_()
        else:
            del weight.grad
        return weight.grad is None or not weight.grad.any()

    assert all(cleared(torch.zeros(1, requires_grad=True), how) for how in ("none", "zero_", "del"))


def test_torch_a_step_with_a_closure_clears_nothing(torch: Any) -> None:
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)

    def closure() -> Any:
        loss = (2 * weight).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    optimizer.step(closure)
    assert weight.item() == -6


@pytest.mark.parametrize("clears", ["in closure", "before", "never"])
def test_torch_gradients_add_up_over_the_calls_of_a_closure(torch: Any, clears: str) -> None:
    weight = torch.tensor([3.0], requires_grad=True)
    optimizer = torch.optim.LBFGS([weight], lr=0.1, max_iter=3)
    assert _are_sums(weight, optimizer, optimizer.zero_grad, clears) is (clears != "in closure")


@pytest.mark.parametrize("clears", ["in closure", "before", "never"])
def test_paddle_gradients_add_up_over_the_calls_of_a_closure(paddle: Any, clears: str) -> None:
    weight = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(3.0))
    optimizer = paddle.optimizer.LBFGS(0.1, max_iter=3, parameters=[weight])
    assert _are_sums(weight, optimizer, optimizer.clear_grad, clears) is (clears != "in closure")


def _are_sums(weight: Any, optimizer: Any, clear: Callable[[], None], clears: str) -> bool:
    """Whether the gradients of a square in the second call of a closure in one step are more than twice the weight."""
    found = []

    def closure() -> Any:
        if clears == "in closure":
            clear()
        loss = (weight * weight).sum()
        loss.backward()
        found.append((2 * weight.item(), weight.grad.item()))
        return loss

    if clears == "before":
        clear()
    optimizer.step(closure)
    assert len(found) > 1
    return any(gradient > right + 1 for right, gradient in found)


@pytest.mark.parametrize(("rounds", "calls"), [(1, 1), (2, 2), (20, 20)])
def test_how_often_a_closure_is_called_in_one_step(torch: Any, paddle: Any, rounds: int, calls: int) -> None:
    weight = torch.tensor([3.0], requires_grad=True)
    other = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(3.0))
    first = torch.optim.LBFGS([weight], lr=0.01, max_iter=rounds)
    second = paddle.optimizer.LBFGS(0.01, max_iter=rounds, parameters=[other])
    for optimizer, value, clear in ((first, weight, first.zero_grad), (second, other, second.clear_grad)):
        count = 0

        def closure(value: Any = value, clear: Callable[[], None] = clear) -> Any:
            nonlocal count
            count += 1
            clear()
            loss = (value * value).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        assert count == calls


def test_paddle_what_clears_too(paddle: Any) -> None:
    layer = paddle.nn.Linear(2, 1)
    optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    for clear in (optimizer.clear_grad, layer.clear_gradients):
        layer(paddle.ones([1, 2])).sum().backward()
        assert layer.weight.grad.abs().sum().item() > 0
        clear()
        assert layer.weight.grad is None or layer.weight.grad.abs().sum().item() == 0


def test_paddle_minimize_clears_nothing(paddle: Any) -> None:
    weight = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(0.0))
    optimizer = paddle.optimizer.SGD(1.0, parameters=[weight])
    for _ in range(2):
        loss = (2 * weight).sum()
        loss.backward()
        optimizer.minimize(loss)
    assert weight.item() == -6


@pytest.mark.parametrize("by_data", [False, True])
def test_torch_gradients_add_up_where_parameters_are_updated_by_hand(torch: Any, by_data: bool) -> None:
    weight = torch.zeros(1, requires_grad=True)
    moves = []
    for _ in range(3):
        before = weight.item()
        (2 * weight).sum().backward()
        if by_data:
            weight.data = weight.data - weight.grad
        else:
            with torch.no_grad():
                weight -= weight.grad
        moves.append(before - weight.item())
    assert moves == [2, 4, 6]


@pytest.mark.parametrize("is_cleared_before", [False, True])
def test_torch_the_loss_of_a_generator_leaves_gradients_in_its_critic(torch: Any, is_cleared_before: bool) -> None:
    generator, critic = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
    for network in (generator, critic):
        torch.nn.init.ones_(network.weight)
    optimizer = torch.optim.SGD(generator.parameters(), lr=0.0)
    critic_optimizer = torch.optim.SGD(critic.parameters(), lr=1.0)
    inputs = torch.ones(1, 1)
    (-critic(generator(inputs)).mean()).backward()
    optimizer.step()
    optimizer.zero_grad()
    if is_cleared_before:
        critic_optimizer.zero_grad()
    (4 * critic(generator(inputs).detach()).mean()).backward()
    critic_optimizer.step()
    critic_optimizer.zero_grad()
    assert 1 - critic.weight.item() == (4 if is_cleared_before else 3)


@pytest.mark.parametrize("is_cleared_before", [False, True])
def test_paddle_the_loss_of_a_generator_leaves_gradients_in_its_critic(paddle: Any, is_cleared_before: bool) -> None:
    ones = paddle.nn.initializer.Constant(1.0)
    generator, critic = (paddle.nn.Linear(1, 1, weight_attr=ones, bias_attr=False) for _ in range(2))
    optimizer = paddle.optimizer.SGD(0.0, parameters=generator.parameters())
    critic_optimizer = paddle.optimizer.SGD(1.0, parameters=critic.parameters())
    inputs = paddle.ones([1, 1])
    (-critic(generator(inputs)).mean()).backward()
    optimizer.step()
    optimizer.clear_grad()
    if is_cleared_before:
        critic_optimizer.clear_grad()
    (4 * critic(generator(inputs).detach()).mean()).backward()
    critic_optimizer.step()
    critic_optimizer.clear_grad()
    assert 1 - critic.weight.item() == (4 if is_cleared_before else 3)


def test_torch_a_step_of_its_own_clears_nothing(torch: Any) -> None:
    class Plain(torch.optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.sub_(p.grad)

    class Slower(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            super().step(closure)

    for made in (Plain, Slower):
        weight = torch.zeros(1, requires_grad=True)
        optimizer = made([weight], {"lr": 1.0}) if made is Plain else made([weight], lr=1.0)
        for expected in (-2, -6, -12):
            (2 * weight).sum().backward()
            optimizer.step()
            assert weight.item() == expected


def test_paddle_a_step_of_its_own_clears_nothing(paddle: Any) -> None:
    class Plain(paddle.optimizer.Optimizer):
        def step(self) -> None:
            for p in self._parameter_list:
                p.set_value(p - self.get_lr() * p.grad)

    weight = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(0.0))
    optimizer = Plain(learning_rate=1.0, parameters=[weight])
    for expected in (-2, -6, -12):
        (2 * weight).sum().backward()
        optimizer.step()
        assert weight.item() == expected


def test_torch_the_loss_of_another_network_adds_to_gradients_before_the_step(torch: Any) -> None:
    maker, judge = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
    real = torch.rand(4, 3)
    made = maker(torch.rand(4, 2))
    judge_loss, maker_loss = judge(real).mean() - judge(made).mean(), judge(made).mean()
    judge.zero_grad()
    judge_loss.backward(retain_graph=True)
    own = judge.weight.grad.clone()
    maker.zero_grad()
    maker_loss.backward()
    assert not torch.equal(judge.weight.grad, own)


def test_paddle_the_loss_of_another_network_adds_to_gradients_before_the_step(paddle: Any) -> None:
    maker, judge = paddle.nn.Linear(2, 3), paddle.nn.Linear(3, 1)
    real = paddle.rand([4, 3])
    made = maker(paddle.rand([4, 2]))
    judge_loss, maker_loss = judge(real).mean() - judge(made).mean(), judge(made).mean()
    judge.clear_gradients()
    judge_loss.backward(retain_graph=True)
    own = judge.weight.grad.clone()
    maker.clear_gradients()
    maker_loss.backward()
    assert not paddle.equal_all(judge.weight.grad, own).item()


def test_torch_gradients_of_an_evaluation_stay_for_the_next_step(torch: Any) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Dropout(0.0))
    network.eval()
    network(torch.full((1, 1), 5.0)).sum().backward()
    network.train()
    network(torch.ones(1, 1)).sum().backward()
    assert network[0].weight.grad.item() == 6


def test_paddle_gradients_of_an_evaluation_stay_for_the_next_step(paddle: Any) -> None:
    network = paddle.nn.Sequential(paddle.nn.Linear(1, 1, bias_attr=False), paddle.nn.Dropout(0.0))
    network.eval()
    network(paddle.full([1, 1], 5.0)).sum().backward()
    network.train()
    network(paddle.ones([1, 1])).sum().backward()
    assert float(network[0].weight.grad.sum()) == 6
