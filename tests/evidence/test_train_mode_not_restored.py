"""ML312: evaluation mode stays until somebody switches back, and changes what is trained."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_mode_stays(torch: Any) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(), torch.nn.BatchNorm1d(2))
    network.eval()
    before = network[2].running_mean.clone()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    network(torch.randn(8, 2) + 5).sum().backward()
    optimizer.step()
    assert not network.training
    assert torch.equal(network[2].running_mean, before), "the statistics are frozen while it is trained"
    network.train()
    network(torch.randn(8, 2) + 5)
    assert not torch.equal(network[2].running_mean, before)


def test_torch_the_first_round_trains_in_another_mode(torch: Any) -> None:
    """What is switched when a round has trained it stays so, though nothing calls it until the next round."""
    network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout())
    optimizer, modes = torch.optim.SGD(network.parameters(), lr=0.1), []
    for _ in range(3):
        modes.append(network.training)
        network(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        network.eval()  # mllint: ignore[ML312] that is what is tested
    assert modes == [True, False, False]


def test_paddle_the_first_round_trains_in_another_mode(paddle: Any) -> None:
    network = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.Dropout())
    optimizer, modes = paddle.optimizer.SGD(0.1, parameters=network.parameters()), []
    for _ in range(3):
        modes.append(network.training)
        network(paddle.ones([1, 2])).sum().backward()
        optimizer.step()
        network.eval()  # mllint: ignore[ML312] that is what is tested
    assert modes == [True, False, False]


def test_torch_dropout_is_off(torch: Any) -> None:
    dropout = torch.nn.Dropout(0.5).eval()
    assert torch.equal(dropout(torch.ones(100)), torch.ones(100))
    assert not torch.equal(dropout.train()(torch.ones(100)), torch.ones(100))


def test_paddle_mode_stays(paddle: Any) -> None:
    network = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.BatchNorm1D(2))
    network.eval()
    before = network[1]._mean.numpy().copy()
    optimizer = paddle.optimizer.SGD(0.1, parameters=network.parameters())
    network(paddle.randn([8, 2]) + 5).sum().backward()
    optimizer.step()
    assert not network.training
    assert (network[1]._mean.numpy() == before).all()
    network.train()
    network(paddle.randn([8, 2]) + 5)
    assert (network[1]._mean.numpy() != before).any()


def test_from_pretrained_leaves_evaluation_mode(torch: Any, tmp_path: Any) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=10
    )
    made = transformers.BertModel(config)
    assert made.training
    assert transformers.AutoModel.from_config(config).training
    made.save_pretrained(tmp_path)
    assert not transformers.BertModel.from_pretrained(tmp_path).training
    assert not transformers.AutoModel.from_pretrained(tmp_path).training
