"""ML217: a layer keeps its weights for the gradient of its input, and a step changes them in place."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence

MODIFIED = "modified by an inplace operation"


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_torch_step_between(torch: Any, name: str) -> None:
    nn = torch.nn
    generator, discriminator = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = getattr(torch.optim, name)(discriminator.parameters(), lr=0.1)
    verdict = discriminator(generator(torch.rand(4, 2)))
    verdict.mean().backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match=MODIFIED):
        (-verdict.mean()).backward()


def test_torch_pass_that_no_other_loss_shares(torch: Any) -> None:
    """Actor and critic: each loss has a graph of its own, the weights are the same."""
    nn = torch.nn
    actor, critic = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    critic_loss, actor_loss = critic(torch.rand(4, 2)).mean(), -critic(actor(torch.rand(4, 2))).mean()
    critic_loss.backward()
    optimizer.step()
    with pytest.raises(RuntimeError, match=MODIFIED):
        actor_loss.backward()


def test_torch_two_layers_on_data(torch: Any) -> None:
    """The input of the second layer needs a gradient, so that it keeps its weights."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    output = model(torch.rand(4, 2))
    output.mean().backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match=MODIFIED):
        output.pow(2).mean().backward()


def test_torch_single_layer_on_data(torch: Any) -> None:
    """The look-alike: the weights of the only layer are not needed."""
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    output = model(torch.rand(4, 2))
    output.mean().backward(retain_graph=True)
    optimizer.step()
    output.pow(2).mean().backward()


def test_torch_step_without_gradients(torch: Any) -> None:
    """The look-alike: a step changes nothing as long as no pass has left a gradient."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    output = model(torch.rand(4, 2))
    optimizer.step()
    output.mean().backward()


def test_paddle_does_not_see_the_step(paddle: Any) -> None:
    nn = paddle.nn
    generator, discriminator = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = paddle.optimizer.Adam(parameters=discriminator.parameters())
    verdict = discriminator(generator(paddle.rand([4, 2])))
    verdict.mean().backward(retain_graph=True)
    optimizer.step()
    (-verdict.mean()).backward()
