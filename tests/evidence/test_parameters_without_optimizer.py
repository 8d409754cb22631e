"""ML218: an optimizer changes what it is given, whatever it is called, and what two are given is moved twice."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_network_without_optimizer_stays_as_it_is(torch: Any) -> None:
    encoder, decoder = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    encoder_optimizer = torch.optim.SGD(encoder.parameters(), lr=0.5)
    decoder_optimizer = torch.optim.SGD(encoder.parameters(), lr=0.5)
    begun, kept = encoder.weight.detach().clone(), decoder.weight.detach().clone()
    decoder(encoder(torch.ones(1, 2))).sum().backward()
    assert decoder.weight.grad is not None
    encoder_optimizer.step()
    once = encoder.weight.detach().clone()
    decoder_optimizer.step()
    assert torch.allclose(encoder.weight - once, once - begun)
    assert not torch.equal(once, begun)
    assert torch.equal(decoder.weight, kept)


def test_paddle_network_without_optimizer_stays_as_it_is(paddle: Any) -> None:
    encoder, decoder = paddle.nn.Linear(2, 2), paddle.nn.Linear(2, 1)
    encoder_optimizer = paddle.optimizer.SGD(0.5, parameters=encoder.parameters())
    decoder_optimizer = paddle.optimizer.SGD(0.5, parameters=encoder.parameters())
    begun, kept = encoder.weight.clone(), decoder.weight.clone()
    decoder(encoder(paddle.ones([1, 2]))).sum().backward()
    assert decoder.weight.grad is not None
    encoder_optimizer.step()
    once = encoder.weight.clone()
    decoder_optimizer.step()
    assert paddle.allclose(encoder.weight - once, once - begun, atol=1e-6)
    assert not paddle.equal_all(once, begun)
    assert paddle.equal_all(decoder.weight, kept)


def test_torch_group_that_is_not_given_sets_nothing(torch: Any) -> None:
    body, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
    groups = [{"params": body.parameters(), "lr": 0.5}]
    lost = {"params": head.parameters(), "lr": 0.5}
    kept = head.weight.detach().clone()
    optimizer = torch.optim.SGD(groups, lr=0.1)
    head(body(torch.ones(1, 2))).sum().backward()
    optimizer.step()
    assert torch.equal(head.weight, kept)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1]
    optimizer = torch.optim.SGD([lost], lr=0.1)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5]


def test_torch_part_that_is_made_later_is_not_trained(torch: Any) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    net[1] = torch.nn.Linear(2, 1)
    net[0].bias = torch.nn.Parameter(torch.zeros(2))
    begun = [p.detach().clone() for p in net.parameters()]
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    changed = [not torch.equal(p, old) for p, old in zip(net.parameters(), begun, strict=True)]
    assert changed == [True, False, False, False]
    assert net[1].weight.grad is not None


def test_paddle_part_that_is_made_later_is_not_trained(paddle: Any) -> None:
    net = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.Linear(2, 1))
    optimizer = paddle.optimizer.SGD(0.5, parameters=net.parameters())
    net[1] = paddle.nn.Linear(2, 1)
    begun = [p.clone() for p in net.parameters()]
    net(paddle.ones([1, 2])).sum().backward()
    optimizer.step()
    changed = [not bool((p == old).all()) for p, old in zip(net.parameters(), begun, strict=True)]
    assert changed == [True, True, False, False]
