"""ML311: ``eval()`` does not stop autograd; the decorator does, of functions and of generators."""

import inspect
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def test_torch_eval_records(torch: Any) -> None:
    network = torch.nn.Linear(2, 2).eval()
    assert network(torch.ones(1, 2)).grad_fn is not None
    for context in (torch.no_grad, torch.inference_mode):

        @context()
        def evaluate() -> Any:
            return network(torch.ones(1, 2))

        assert evaluate().grad_fn is None
        assert torch.is_grad_enabled()


def test_torch_activations_are_kept(torch: Any) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sigmoid(), torch.nn.Linear(2, 2)).eval()
    kept: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda item: kept.append(item) or item, lambda item: item):
        network(torch.ones(1, 2))
        assert kept
        kept.clear()
        with torch.no_grad():
            network(torch.ones(1, 2))
        assert not kept


def test_torch_frozen_parameters_record_nothing(torch: Any) -> None:
    network = torch.nn.Linear(2, 2).requires_grad_(False)
    assert network(torch.ones(1, 2)).grad_fn is None


def test_paddle_frozen_parameters_record_nothing(paddle: Any) -> None:
    network = paddle.nn.Linear(2, 2)
    assert not network(paddle.ones([1, 2])).stop_gradient
    for parameter in network.parameters():
        parameter.stop_gradient = True
    assert network(paddle.ones([1, 2])).stop_gradient


def test_torch_gradients_that_a_method_switches_off_stay_off(torch: Any) -> None:
    network = torch.nn.Linear(2, 2)

    def switch(training: bool) -> None:
        network.train(training)
        torch.set_grad_enabled(training)

    try:
        switch(training=False)
        assert network(torch.ones(1, 2)).grad_fn is None
    finally:
        switch(training=True)
    assert network(torch.ones(1, 2)).grad_fn is not None


def test_paddle_eval_records(paddle: Any) -> None:
    network = paddle.nn.Linear(2, 2)
    network.eval()
    assert not network(paddle.ones([1, 2])).stop_gradient

    @paddle.no_grad()
    def evaluate() -> Any:
        return network(paddle.ones([1, 2]))

    assert not inspect.isgeneratorfunction(evaluate)
    assert evaluate().stop_gradient
    assert not network(paddle.ones([1, 2])).stop_gradient


def test_torch_attacks_need_the_graph(torch: Any) -> None:
    """Why a loop in which something may attack the model is left alone: its fix would break the attack."""
    network = torch.nn.Linear(2, 2).eval()

    def attacked() -> Any:
        images = torch.ones(1, 2, requires_grad=True)
        (gradient,) = torch.autograd.grad(network(images).sum(), images)
        return gradient

    assert attacked().shape == (1, 2)
    with torch.no_grad(), pytest.raises(RuntimeError, match="does not require grad"):
        attacked()


def test_paddle_attacks_need_the_graph(paddle: Any) -> None:
    network = paddle.nn.Linear(2, 2)
    network.eval()

    def attacked() -> Any:
        images = paddle.ones([1, 2])
        images.stop_gradient = False
        (gradient,) = paddle.grad(network(images).sum(), images)
        return gradient

    assert attacked().shape == [1, 2]
    with paddle.no_grad(), pytest.raises(ValueError, match="does not appear in the backward graph"):
        attacked()


def test_parameters_without_gradients_record_no_graph(torch: Any) -> None:
    weight = torch.nn.Parameter(torch.rand(2, 2), requires_grad=False)
    assert (torch.rand(1, 2) @ weight).grad_fn is None


def test_torch_buffers_record_no_graph(torch: Any) -> None:
    module = torch.nn.Module()
    module.register_buffer("window", torch.ones(4))
    assert (torch.ones(4) * module.window).grad_fn is None


@pytest.mark.filterwarnings("ignore:volatile was removed")
def test_torch_inputs_that_refuse_gradients_are_recorded(torch: Any) -> None:
    """The parameters ask for the graph, whatever is said of the inputs; ``volatile`` does nothing."""
    network = torch.nn.Linear(2, 2).eval()
    assert network(torch.ones(1, 2, requires_grad=False)).grad_fn is not None
    with pytest.warns(UserWarning, match="volatile was removed"):
        volatile = torch.autograd.Variable(torch.ones(1, 2), volatile=True)
    assert network(volatile).grad_fn is not None


def test_paddle_inputs_that_refuse_gradients_are_recorded(paddle: Any) -> None:
    network = paddle.nn.Linear(2, 2)
    network.eval()
    inputs = paddle.to_tensor([[1.0, 2.0]], stop_gradient=True)
    assert not network(inputs).stop_gradient


def test_torch_one_of_two_networks_is_frozen(torch: Any) -> None:
    frozen, other = torch.nn.Linear(2, 2).requires_grad_(False), torch.nn.Linear(2, 2)
    assert frozen(torch.ones(1, 2)).grad_fn is None
    assert other(frozen(torch.ones(1, 2))).grad_fn is not None
    assert torch.nn.functional.mse_loss(frozen(torch.ones(1, 2)), torch.ones(1, 2)).grad_fn is None


def test_paddle_a_state_that_stops_gradients_is_no_parameter(paddle: Any) -> None:
    network = paddle.nn.SimpleRNN(2, 2)
    network.eval()
    state = paddle.zeros([1, 1, 2])
    state.stop_gradient = True
    assert not network(paddle.ones([1, 1, 2]), state)[0].stop_gradient


def test_paddle_loaded_programs_keep_no_graph_of_their_parameters(paddle: Any, tmp_path: Path) -> None:
    network = paddle.nn.Linear(2, 2)
    path = str(tmp_path / "network")
    paddle.jit.save(network, path, input_spec=[paddle.static.InputSpec([None, 2], "float32")])
    loaded = paddle.jit.load(path)
    loaded.eval()
    loaded(paddle.ones([1, 2])).sum().backward()
    assert all(parameter.grad is None for parameter in loaded.parameters())
    loaded.train()
    loaded(paddle.ones([1, 2])).sum().backward()
    assert all(parameter.grad is not None for parameter in loaded.parameters())


def test_torch_what_has_a_graph_cannot_be_read_as_an_array(torch: Any) -> None:
    """Where the code reads an output like that, there is none; in Paddle there may be."""
    network = torch.nn.Linear(2, 2).eval()
    with pytest.raises(RuntimeError, match="requires grad"):
        network(torch.ones(1, 2)).max(dim=0)[0].cpu().numpy()
    network(torch.ones(1, 2)).max(dim=0)[1].numpy()
    network.requires_grad_(False)
    network(torch.ones(1, 2)).numpy()


def test_paddle_what_has_a_graph_can_be_read_as_an_array(paddle: Any) -> None:
    output = paddle.nn.Linear(2, 2)(paddle.ones([1, 2]))
    assert not output.stop_gradient
    assert output.numpy().shape == (1, 2)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:torch.quantize_per")
def test_torch_programs_to_infer_with_record_no_graph(torch: Any) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).eval()
    program = torch.jit.script(network)
    assert program(torch.ones(1, 2)).grad_fn is not None
    assert torch.jit.freeze(program)(torch.ones(1, 2)).grad_fn is None
    assert torch.jit.optimize_for_inference(torch.jit.script(network))(torch.ones(1, 2)).grad_fn is None
    quantized = torch.ao.quantization.quantize_dynamic(network, {torch.nn.Linear})
    assert quantized(torch.ones(1, 2)).grad_fn is None


def test_torch_frozen_parts_record_nothing(torch: Any) -> None:
    parts = [torch.nn.Linear(2, 2).requires_grad_(False) for _ in range(2)]
    assert torch.nn.Sequential(*parts)(torch.ones(1, 2)).grad_fn is None
    assert torch.nn.Sequential(*parts, torch.nn.Linear(2, 2))(torch.ones(1, 2)).grad_fn is not None


def test_torch_a_comprehension_keeps_the_graph_of_every_batch(torch: Any) -> None:
    network = torch.nn.Linear(2, 2).eval()
    kept = [network(batch) for batch in torch.ones(3, 1, 2)]
    assert all(output.grad_fn is not None for output in kept)
    torch.cat(kept).sum().backward()
    assert (network.bias.grad == len(kept)).all()  # the graph of each of them was still there


def test_paddle_a_comprehension_keeps_the_graph_of_every_batch(paddle: Any) -> None:
    network = paddle.nn.Linear(2, 2)
    network.eval()
    kept = [network(batch) for batch in paddle.ones([3, 1, 2])]
    assert not any(output.stop_gradient for output in kept)
    paddle.concat(kept).sum().backward()
    assert (network.bias.grad == len(kept)).all()


def test_torch_a_method_that_calls_layers_records_a_graph(torch: Any) -> None:
    class Estimator(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def appraise(self, looks: Any) -> Any:
            return self.layer(looks)

    assert Estimator().eval().appraise(torch.ones(1, 2)).grad_fn is not None


def test_paddle_a_method_that_calls_layers_records_a_graph(paddle: Any) -> None:
    class Estimator(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.layer = paddle.nn.Linear(2, 2)

        def appraise(self, looks: Any) -> Any:
            return self.layer(looks)

    estimator = Estimator()
    estimator.eval()
    assert not estimator.appraise(paddle.ones([1, 2])).stop_gradient
