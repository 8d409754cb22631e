"""ML313: dropout functions drop by default, whatever the mode of the module around them."""

import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from mllint.knowledge.dropouts import FUNCTIONS

pytestmark = pytest.mark.evidence


def in_evaluation(base: Any, function: Any) -> Any:
    """What a module that calls the function gives in evaluation."""
    module = type("Net", (base,), {"forward": lambda self, x: function(self, x)})()
    module.eval()
    return module


@pytest.mark.parametrize("name", ["dropout", "dropout1d", "dropout2d", "dropout3d"])
def test_torch_drops_in_evaluation(torch: Any, name: str) -> None:
    drop = getattr(torch.nn.functional, name)
    x = torch.ones(2, 64, 2, 2, 2)[:, :, 0, 0] if name == "dropout1d" else torch.ones(2, 64, 2, 2, 2)
    x = x[..., 0] if name == "dropout2d" else x
    assert (in_evaluation(torch.nn.Module, lambda self, y: drop(y, 0.5))(x) == 0).any()
    told = in_evaluation(torch.nn.Module, lambda self, y: drop(y, 0.5, training=self.training))
    assert torch.equal(told(x), x)
    assert torch.equal(told(x), drop(x, 0.5, False))


def test_torch_two_forwards_differ(torch: Any) -> None:
    net = in_evaluation(torch.nn.Module, lambda self, y: torch.nn.functional.dropout(y, 0.5))
    x = torch.ones(1000)
    assert not torch.equal(net(x), net(x))


def test_torch_attention_drops_in_evaluation(torch: Any) -> None:
    attend = torch.nn.functional.scaled_dot_product_attention
    q = torch.randn(1, 4, 16, 8)
    net = in_evaluation(torch.nn.Module, lambda self, y: attend(y, y, y, dropout_p=0.5))
    with torch.no_grad():
        assert not torch.equal(net(q), net(q))
    told = in_evaluation(torch.nn.Module, lambda self, y: attend(y, y, y, dropout_p=0.5 if self.training else 0.0))
    assert torch.equal(told(q), told(q))
    assert torch.equal(told(q), attend(q, q, q))
    with pytest.raises(TypeError):
        attend(q, q, q, dropout_p=0.5, training=False)
    with torch.no_grad():
        assert not torch.equal(attend(q, q, q, None, 0.5), attend(q, q, q))


def test_torch_look_alikes_are_off(torch: Any) -> None:
    x = torch.randn(100)
    assert torch.equal(torch.nn.functional.alpha_dropout(x, 0.5), x)
    assert torch.equal(
        torch.nn.functional.feature_alpha_dropout(torch.randn(2, 3, 4) * 0 + 1, 0.5), torch.ones(2, 3, 4)
    )
    assert torch.equal(torch.nn.functional.dropout(x, 0.0), x)


def paddle_inputs(paddle: Any, name: str) -> list[Any]:
    shape = {"dropout1d": [2, 64, 3], "dropout2d": [2, 64, 2, 2], "dropout3d": [2, 64, 2, 2, 2]}.get(name, [64, 64])
    return [paddle.ones(shape)] * (2 if name == "fused_dropout_add" else 1)


PADDLE = sorted(name for name in FUNCTIONS if name.startswith("paddle") and "attention" not in name)


@pytest.mark.parametrize("name", PADDLE)
def test_paddle_drops_in_evaluation(paddle: Any, name: str) -> None:
    import paddle.incubate.nn.functional

    drop: Any = paddle
    for part in name.split(".")[1:]:
        drop = getattr(drop, part)
    inputs = paddle_inputs(paddle, name.rpartition(".")[2])
    if name.endswith("feature_alpha_dropout"):
        inputs = [paddle.ones([2, 64, 4])]
    try:
        undropped = drop(*inputs, p=0.5, training=False)
    except RuntimeError as error:
        pytest.skip(f"no kernel on the CPU: {error}")
    net = in_evaluation(paddle.nn.Layer, lambda self, y: drop(*inputs, p=0.5))
    assert not (net(1) == undropped).all()
    told = in_evaluation(paddle.nn.Layer, lambda self, y: drop(*inputs, p=0.5, training=self.training))
    assert (told(1) == undropped).all()
    position = FUNCTIONS[name].training
    arguments = {0: inputs[0], len(inputs) - 1: inputs[-1], FUNCTIONS[name].probability: 0.5, position: False}
    assert (drop(*(arguments.get(index) for index in range((position or 0) + 1))) == undropped).all()


def test_paddle_attention_drops_in_evaluation(paddle: Any) -> None:
    attend = paddle.nn.functional.scaled_dot_product_attention
    q = paddle.randn([1, 16, 4, 8])
    net = in_evaluation(paddle.nn.Layer, lambda self, y: attend(y, y, y, dropout_p=0.5))
    assert not (net(q) == net(q)).all()
    told = in_evaluation(paddle.nn.Layer, lambda self, y: attend(y, y, y, dropout_p=0.5, training=self.training))
    assert (told(q) == told(q)).all()
    assert (attend(q, q, q, None, 0.5, False, False) == told(q)).all()


def test_paddle_takes_the_dropout_out_of_a_program(paddle: Any) -> None:
    """A program that is cloned for the evaluation drops nothing (of the former kind, which 3.x still has)."""
    script = textwrap.dedent("""
        import numpy, paddle
        paddle.enable_static()
        program = paddle.static.Program()
        with paddle.static.program_guard(program, paddle.static.Program()):
            out = paddle.nn.functional.dropout(paddle.static.data("x", [100], "float32"), 0.5)
        evaluation = program.clone(for_test=True)
        run, given = paddle.static.Executor(paddle.CPUPlace()).run, {"x": numpy.ones(100, "float32")}
        print(*(run(each, feed=given, fetch_list=[out])[0].min() for each in (program, evaluation)))
    """)
    environment = {**os.environ, "FLAGS_enable_pir_api": "0"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-2:] == ["0.0", "1.0"]
