"""ML205: a context manager that is made and not entered changes nothing."""

import contextlib
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


def torch_modes(torch: Any) -> tuple[Any, ...]:
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.is_anomaly_enabled(),
        torch.get_default_device(),
        torch.backends.cudnn.enabled,
        torch.serialization.get_safe_globals(),
        torch.get_rng_state().tolist(),
    )


@pytest.fixture
def torch(torch: Any) -> Iterator[Any]:
    """Some of the look-alikes do act, on the whole process: put back what they changed."""
    yield torch
    torch.set_grad_enabled(True)
    torch.autograd.set_detect_anomaly(False)
    torch.set_default_device(None)


@pytest.fixture
def paddle(paddle: Any) -> Iterator[Any]:
    yield paddle
    paddle.set_grad_enabled(True)


TORCH_NOTHING: dict[str, Callable[[Any], Any]] = {
    "no_grad": lambda torch: torch.no_grad(),
    "autograd.no_grad": lambda torch: torch.autograd.no_grad(),
    "enable_grad": lambda torch: torch.enable_grad(),
    "inference_mode": lambda torch: torch.inference_mode(),
    "autocast": lambda torch: torch.autocast("cpu"),
    "amp.autocast": lambda torch: torch.amp.autocast("cpu"),
    "cpu.amp.autocast": lambda torch: torch.cpu.amp.autocast(),
    "detect_anomaly": lambda torch: torch.autograd.detect_anomaly(),
    "device": lambda torch: torch.device("meta"),
    "fork_rng": lambda torch: torch.random.fork_rng(),
    "profile": lambda torch: torch.profiler.profile(),
    "cuda.device": lambda torch: torch.cuda.device(0),
    "sdpa_kernel": lambda torch: torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
    "save_on_cpu": lambda torch: torch.autograd.graph.save_on_cpu(),
    "cudnn.flags": lambda torch: torch.backends.cudnn.flags(enabled=False),
    "safe_globals": lambda torch: torch.serialization.safe_globals([torch.nn.Linear]),
    "record_function": lambda torch: torch.profiler.record_function("step"),
    "cuda.stream": lambda torch: torch.cuda.stream(None),
    "optimized_execution": lambda torch: torch.jit.optimized_execution(False),
}
TORCH_ACTING: dict[str, Callable[[Any], Any]] = {
    "set_grad_enabled": lambda torch: torch.set_grad_enabled(False),
    "autograd.set_grad_enabled": lambda torch: torch.autograd.set_grad_enabled(False),
    "set_detect_anomaly": lambda torch: torch.autograd.set_detect_anomaly(True),
    "set_default_device": lambda torch: torch.set_default_device("meta"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", TORCH_NOTHING.values(), ids=TORCH_NOTHING)
def test_torch_statement_changes_nothing(torch: Any, make: Any) -> None:
    before = torch_modes(torch)
    make(torch)
    assert torch_modes(torch) == before


@pytest.mark.parametrize("make", TORCH_ACTING.values(), ids=TORCH_ACTING)
def test_torch_statement_that_acts_at_once(torch: Any, make: Any) -> None:
    """Look-alikes: they can also be entered, and work as plain calls."""
    before = torch_modes(torch)[:-1]
    make(torch)
    assert torch_modes(torch)[:-1] != before


def test_torch_graph_is_built_after_the_statement(torch: Any) -> None:
    torch.no_grad()
    model = torch.nn.Linear(2, 1)
    assert model(torch.ones(1, 2)).grad_fn is not None
    with torch.no_grad():
        assert model(torch.ones(1, 2)).grad_fn is None


def test_torch_entered_by_other_means(torch: Any) -> None:
    """Look-alikes: an exit stack, and a call of ``__enter__``."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        assert not torch.is_grad_enabled()
    context = torch.no_grad()
    context.__enter__()
    assert not torch.is_grad_enabled()
    context.__exit__(None, None, None)
    assert torch.is_grad_enabled()


def test_torch_no_sync_as_statement_leaves_the_synchronisation_on(torch: Any, tmp_path: pathlib.Path) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        model.no_sync()
        assert model.require_backward_grad_sync
        with model.no_sync():
            assert not model.require_backward_grad_sync
    finally:
        torch.distributed.destroy_process_group()


PADDLE_NOTHING: dict[str, Callable[[Any], Any]] = {
    "no_grad": lambda paddle: paddle.no_grad(),
    "autograd.no_grad": lambda paddle: paddle.autograd.no_grad(),
    "enable_grad": lambda paddle: paddle.enable_grad(),
    "auto_cast": lambda paddle: paddle.amp.auto_cast(),
    "program_guard": lambda paddle: paddle.static.program_guard(paddle.static.Program()),
    "unique_name.guard": lambda paddle: paddle.utils.unique_name.guard("prefix/"),
}


@pytest.mark.parametrize("make", PADDLE_NOTHING.values(), ids=PADDLE_NOTHING)
def test_paddle_statement_changes_nothing(paddle: Any, make: Any) -> None:
    program = paddle.static.default_main_program()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(paddle)
    assert paddle.is_grad_enabled()
    assert paddle.static.default_main_program() is program
    assert not paddle.utils.unique_name.generate("x").startswith("prefix")
    assert not paddle.nn.Linear(1, 1)(paddle.ones([1, 1])).stop_gradient


def test_paddle_statement_that_acts_at_once(paddle: Any) -> None:
    paddle.set_grad_enabled(False)
    assert not paddle.is_grad_enabled()
