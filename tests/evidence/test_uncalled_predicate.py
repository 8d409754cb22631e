"""ML105: a predicate that is not called is true, whatever it would say."""

from typing import Any

import pytest

pytestmark = pytest.mark.evidence

TORCH_PREDICATES = [
    *["cuda.is_available", "cuda.is_initialized", "cuda.is_bf16_supported", "backends.mps.is_available"],
    *["backends.mps.is_built", "backends.mkl.is_available", "backends.openmp.is_available"],
    *["distributed.is_available", "distributed.is_initialized", "distributed.is_nccl_available"],
    *["distributed.is_torchelastic_launched", "is_grad_enabled", "is_inference_mode_enabled"],
    *["is_autocast_enabled", "are_deterministic_algorithms_enabled", "jit.is_scripting", "jit.is_tracing"],
    *["compiler.is_compiling"],
]
PADDLE_PREDICATES = [
    *["is_compiled_with_cuda", "is_compiled_with_rocm", "is_compiled_with_xpu", "in_dynamic_mode"],
    *["is_grad_enabled", "distributed.is_initialized", "distributed.is_available"],
]


def resolved(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


@pytest.mark.parametrize("path", TORCH_PREDICATES)
def test_torch_predicate_is_true_uncalled_and_a_bool_called(torch: Any, path: str) -> None:
    predicate = resolved(torch, path)
    assert bool(predicate) is True
    assert isinstance(predicate(), bool)


def test_torch_this_build_shows_the_difference(torch: Any) -> None:
    """What the CPU build takes for a GPU: the branch that fails later."""
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU: called and uncalled agree")
    assert "cuda" == ("cuda" if torch.cuda.is_available else "cpu")  # noqa: SIM300
    assert "cpu" == ("cuda" if torch.cuda.is_available() else "cpu")  # noqa: SIM300
    assert not torch.distributed.is_initialized()
    assert torch.distributed.is_initialized


def test_torch_tensor_predicates(torch: Any) -> None:
    x = torch.ones(2, 3).t().long()
    for name in ("is_contiguous", "is_floating_point", "is_complex", "is_shared", "is_pinned", "is_inference"):
        assert bool(getattr(x, name)) is True
    assert not x.is_contiguous()
    assert not x.is_floating_point()


def test_torch_look_alikes_that_are_attributes(torch: Any) -> None:
    """These are right without parentheses, and calling them raises."""
    x = torch.ones(1)
    for name in ("is_cuda", "is_cpu", "is_leaf", "is_sparse", "is_quantized", "requires_grad"):
        assert isinstance(getattr(x, name), bool)
        with pytest.raises(TypeError, match="not callable"):
            getattr(x, name)()
    assert isinstance(torch.nn.Linear(1, 1).training, bool)
    assert isinstance(torch.backends.cudnn.enabled, bool)


@pytest.mark.parametrize("path", PADDLE_PREDICATES)
def test_paddle_predicate_is_true_uncalled_and_a_bool_called(paddle: Any, path: str) -> None:
    predicate = resolved(paddle, path)
    assert bool(predicate) is True
    assert isinstance(predicate(), bool)


def test_paddle_this_build_shows_the_difference(paddle: Any) -> None:
    if paddle.is_compiled_with_cuda():
        pytest.skip("this build has CUDA: called and uncalled agree")
    assert paddle.is_compiled_with_cuda
    assert not paddle.is_compiled_with_cuda()


def test_paddle_look_alike_that_is_an_attribute(paddle: Any) -> None:
    assert isinstance(paddle.ones([1]).is_leaf, bool)
    assert isinstance(paddle.nn.Linear(1, 1).training, bool)


def test_torch_methods_that_switch_the_mode_are_true_in_both(torch: Any) -> None:
    net = torch.nn.Linear(2, 2).eval()
    assert net.train
    assert net.eval
    assert net.training is False
    x = torch.ones(1000)
    with pytest.raises(TypeError):  # it tells of itself
        torch.nn.functional.dropout(x, training=net.train)
    assert torch.equal(torch.nn.functional.dropout(x, training=net.training), x)


def test_paddle_methods_that_switch_the_mode_are_true_in_both(paddle: Any) -> None:
    net = paddle.nn.Linear(2, 2)
    net.eval()
    assert net.train
    assert net.eval
    assert net.training is False
    x = paddle.ones([1000])
    assert bool((paddle.nn.functional.dropout(x, training=net.train) == 0).any())
    assert bool((paddle.nn.functional.dropout(x, training=net.training) == x).all())
