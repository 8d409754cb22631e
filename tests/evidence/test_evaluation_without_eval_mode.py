"""ML310: in training mode an evaluation is random, and writes into the statistics, under ``no_grad()`` too."""

import copy
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_statistics_take_in_validation_data(torch: Any) -> None:
    norm = torch.nn.BatchNorm1d(2)
    before = norm.running_mean.clone()
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            norm(torch.randn(8, 2) + 5)
        assert not torch.equal(norm.running_mean, before)
        before = norm.running_mean.clone()
    norm.eval()
    norm(torch.randn(8, 2) + 5)
    assert torch.equal(norm.running_mean, before)


def test_torch_dropout_goes_on(torch: Any) -> None:
    dropout = torch.nn.Dropout(0.5)
    with torch.no_grad():
        assert (dropout(torch.ones(1000)) == 0).any()


def test_torch_modules_begin_in_training_mode(torch: Any) -> None:
    network = torch.nn.Linear(2, 2)
    assert network.training
    network.load_state_dict(torch.nn.Linear(2, 2).eval().state_dict())
    assert network.training, "a state dict says nothing of the mode"


@pytest.mark.parametrize("trains", [True, False])
def test_torch_copy_has_the_mode_of_the_original(torch: Any, trains: bool) -> None:
    network = torch.nn.Sequential(torch.nn.Dropout(0.5)).train(trains)
    copied = copy.deepcopy(network)
    network.train(not trains)
    assert copied.training is trains
    assert copied[0].training is trains


def test_paddle_copy_has_the_mode_of_the_original(paddle: Any) -> None:
    network = paddle.nn.Sequential(paddle.nn.Dropout(0.5))
    trained = copy.deepcopy(network)
    network.eval()
    evaluated = copy.deepcopy(network)
    assert trained.training
    assert trained[0].training
    assert not evaluated.training
    assert not evaluated[0].training


def test_paddle_statistics_take_in_validation_data(paddle: Any) -> None:
    norm = paddle.nn.BatchNorm1D(2)
    before = norm._mean.numpy().copy()
    with paddle.no_grad():
        norm(paddle.randn([8, 2]) + 5)
    after = norm._mean.numpy().copy()
    assert (after != before).any()
    norm.eval()
    norm(paddle.randn([8, 2]) + 5)
    assert (norm._mean.numpy() == after).all()


def test_paddle_dropout_goes_on(paddle: Any) -> None:
    dropout = paddle.nn.Dropout(0.5)
    assert dropout.training
    with paddle.no_grad():
        assert (dropout(paddle.ones([1000])).numpy() == 0).any()


def test_torch_a_flag_of_forward_switches_nothing(torch: Any) -> None:
    class Chooser(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, x: Any, train: bool = True) -> Any:
            dropped = self.drop(x)
            return (dropped, None) if train else dropped

    assert (Chooser()(torch.ones(1000), train=False) == 0).any()
    assert not (Chooser().eval()(torch.ones(1000), train=True)[0] == 0).any()


def test_paddle_a_flag_of_forward_switches_nothing(paddle: Any) -> None:
    class Chooser(paddle.nn.Layer):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.drop = paddle.nn.Dropout(0.5)

        def forward(self, x: Any, train: bool = True) -> Any:
            dropped = self.drop(x)
            return (dropped, None) if train else dropped

    chooser = Chooser()
    assert (chooser(paddle.ones([1000]), train=False).numpy() == 0).any()
    chooser.eval()
    assert not (chooser(paddle.ones([1000]), train=True)[0].numpy() == 0).any()


def test_torch_loading_weights_switches_nothing(torch: Any) -> None:
    trained = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Dropout()).eval()
    network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Dropout())
    network.load_state_dict(trained.state_dict())
    assert network.training
    inputs = torch.rand(1, 64)
    assert not torch.equal(network(inputs), network(inputs))
    assert torch.equal(network.eval()(inputs), trained(inputs))


@pytest.mark.parametrize("load", ["set_state_dict", "set_dict", "load_dict"])
def test_paddle_loading_weights_switches_nothing(paddle: Any, load: str) -> None:
    trained = paddle.nn.Sequential(paddle.nn.Linear(64, 64), paddle.nn.Dropout())
    trained.eval()
    network = paddle.nn.Sequential(paddle.nn.Linear(64, 64), paddle.nn.Dropout())
    getattr(network, load)(trained.state_dict())
    assert network.training
    inputs = paddle.rand([1, 64])
    assert not paddle.equal_all(network(inputs), network(inputs))
    network.eval()
    assert paddle.equal_all(network(inputs), trained(inputs))


def test_paddle_dropout_of_a_vgg_is_in_its_classifier(paddle: Any) -> None:
    """Why ``vgg16().features`` does the same in both modes."""
    network = paddle.vision.models.vgg16()
    asking = (paddle.nn.Dropout, paddle.nn.BatchNorm2D)
    assert not any(isinstance(layer, asking) for layer in network.features.sublayers())
    assert any(isinstance(layer, paddle.nn.Dropout) for layer in network.classifier.sublayers())


def test_paddle_ready_made_models_begin_in_training_mode(paddle: Any) -> None:
    network = paddle.vision.models.resnet18()
    assert network.training
    images = paddle.rand([2, 3, 32, 32])
    with paddle.no_grad():
        in_training = network(images)
        network.eval()
        assert not paddle.allclose(network(images), in_training)


def test_torch_children_in_another_container_are_the_same_layers(torch: Any) -> None:
    backbone = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 3))
    model = torch.nn.Sequential(*list(backbone.children())[:-1], torch.nn.Linear(3, 2))
    backbone.eval()
    assert model.training
    assert not model[1].training
    model.train()
    assert backbone[1].training


def test_paddle_children_in_another_container_are_the_same_layers(paddle: Any) -> None:
    backbone = paddle.nn.Sequential(paddle.nn.Linear(3, 3), paddle.nn.BatchNorm1D(3), paddle.nn.Linear(3, 3))
    model = paddle.nn.Sequential(*list(backbone.children())[:-1], paddle.nn.Linear(3, 2))
    backbone.eval()
    assert model.training
    assert not model[1].training
    model.train()
    assert backbone[1].training


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_torch_recurrent_networks_of_one_layer_drop_nothing(torch: Any, kind: str) -> None:
    make, x = getattr(torch.nn, kind), torch.ones(3, 2, 40)
    one, two = make(40, 40, 1, dropout=0.9), make(40, 40, 2, dropout=0.9)
    assert torch.equal(one(x)[0], one(x)[0])
    assert not torch.equal(two(x)[0], two(x)[0])


def test_torch_jit_loads_what_was_saved_in_its_mode(torch: Any, tmp_path: Path) -> None:
    for mode in (True, False):
        path = str(tmp_path / f"{mode}.pt")
        torch.jit.save(torch.jit.script(torch.nn.Dropout(0.5).train(mode)), path)
        assert torch.jit.load(path).training is mode


def test_paddle_jit_loads_in_evaluation_mode(paddle: Any, tmp_path: Path) -> None:
    network = paddle.nn.Sequential(paddle.nn.Linear(40, 40), paddle.nn.Dropout(0.5))
    network.train()
    paddle.jit.save(network, str(tmp_path / "net"), input_spec=[paddle.static.InputSpec([-1, 40])])
    loaded, x = paddle.jit.load(str(tmp_path / "net")), paddle.ones([1, 40])
    assert not loaded.training
    assert bool((loaded(x) == loaded(x)).all())


def test_torch_normalization_by_the_batch_alone_does_the_same_in_both_modes(torch: Any) -> None:
    norm = torch.nn.BatchNorm1d(2, track_running_stats=False)
    batch = torch.randn(8, 2) + 5
    assert torch.equal(norm(batch), norm.eval()(batch))


def test_torch_momentum_of_one_keeps_the_last_batch_alone(torch: Any) -> None:
    norm = torch.nn.BatchNorm1d(2, momentum=1)
    norm(torch.randn(8, 2) - 5)
    batch = torch.randn(8, 2) + 5
    norm(batch)
    assert torch.allclose(norm.running_mean, batch.mean(0))


def test_paddle_global_statistics_do_the_same_in_both_modes(paddle: Any) -> None:
    norm = paddle.nn.BatchNorm1D(2, use_global_stats=True)
    batch = paddle.randn([8, 2]) + 5
    in_training = norm(batch).numpy()
    norm.eval()
    assert (in_training == norm(batch).numpy()).all()


def test_paddle_momentum_of_one_takes_nothing_in(paddle: Any) -> None:
    norm = paddle.nn.BatchNorm1D(2, momentum=1)
    before = norm._mean.numpy().copy()
    norm(paddle.randn([8, 2]) + 5)
    assert (norm._mean.numpy() == before).all()


def test_torch_traces_stay_in_the_mode_in_which_they_were_made(torch: Any, tmp_path: Path) -> None:
    inputs = 5 * torch.randn(64, 3) + 2
    for trains in (True, False):
        norm = torch.nn.Sequential(torch.nn.BatchNorm1d(3)).train(trains)
        norm(inputs)
        torch.jit.trace(norm, inputs, check_trace=False).save(tmp_path / "traced.pt")
        loaded = torch.jit.load(tmp_path / "traced.pt").eval()
        is_normalized = loaded(inputs).mean().abs().item() < 1e-4
        assert is_normalized is trains
        dropout = torch.nn.Sequential(torch.nn.Dropout(0.5)).train(trains)
        torch.jit.trace(dropout, torch.ones(1000), check_trace=False).save(tmp_path / "traced.pt")
        loaded = torch.jit.load(tmp_path / "traced.pt").eval()
        assert bool((loaded(torch.ones(1000)) == 0).any()) is trains


def test_torch_scripts_can_be_switched(torch: Any, tmp_path: Path) -> None:
    torch.jit.script(torch.nn.Sequential(torch.nn.Dropout(0.5))).save(tmp_path / "scripted.pt")
    loaded = torch.jit.load(tmp_path / "scripted.pt")
    assert bool((loaded(torch.ones(1000)) == 0).any())
    assert not bool((loaded.eval()(torch.ones(1000)) == 0).any())


def test_paddle_saves_programs_in_evaluation_mode(paddle: Any, tmp_path: Path) -> None:
    network = paddle.nn.Sequential(paddle.nn.Dropout(0.5))
    spec = [paddle.static.InputSpec([1000])]
    paddle.jit.save(network, str(tmp_path / "saved"), input_spec=spec)
    assert not bool((paddle.jit.load(str(tmp_path / "saved"))(paddle.ones([1000])) == 0).any())


def test_torch_eval_calls_the_train_of_the_class(torch: Any) -> None:
    class Network(torch.nn.Module):  # type: ignore[misc,name-defined]
        def train(self, batches: Any, optimizer: Any) -> None:
            raise AssertionError

    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Network().eval()


def test_paddle_eval_does_not(paddle: Any) -> None:
    class Network(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def train(self, batches: Any, optimizer: Any) -> None:
            raise AssertionError

    network = Network()
    network.eval()
    assert not network.training


def test_torch_a_switch_at_the_end_of_a_round_outlives_the_loop(torch: Any) -> None:
    network = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    for _ in range(2):
        network(torch.rand(4, 2))
        network.eval()
        network.train()
    seen = int(network[0].num_batches_tracked)
    with torch.no_grad():
        network(torch.rand(4, 2))
    assert int(network[0].num_batches_tracked) == seen + 1


def test_paddle_a_switch_at_the_end_of_a_round_outlives_the_loop(paddle: Any) -> None:
    network = paddle.nn.BatchNorm1D(2)
    for _ in range(2):
        network(paddle.rand([4, 2]))
        network.eval()
        network.train()
    mean = network._mean.numpy().copy()
    with paddle.no_grad():
        network(paddle.rand([4, 2]))
    assert (network._mean.numpy() != mean).any()
