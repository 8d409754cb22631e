"""ML206: the class of a context manager is not a context manager."""

import contextlib
from typing import Any

import pytest

pytestmark = pytest.mark.evidence


@pytest.mark.parametrize("name", ["no_grad", "enable_grad", "inference_mode", "autocast", "set_grad_enabled", "device"])
def test_torch_with_statement_raises(torch: Any, name: str) -> None:
    with pytest.raises(TypeError, match="context manager protocol"), getattr(torch, name):
        pass


@pytest.mark.parametrize("name", ["no_grad", "enable_grad", "inference_mode"])
def test_torch_decorator_works_with_and_without_call(torch: Any, name: str) -> None:
    """The look-alike: torch's own classes take the function themselves."""

    def state() -> tuple[bool, bool]:
        return torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    manager = getattr(torch, name)
    with manager():
        expected = state()
    assert manager(state)() == expected
    assert manager()(state)() == expected

    class Holder:
        @manager
        def method(self) -> tuple[bool, bool]:
            return state()

    assert Holder().method() == expected


def test_torch_autocast_as_bare_decorator_raises_at_once(torch: Any) -> None:
    with pytest.raises(ValueError, match="device_type"):
        torch.autocast(lambda x: x)


@pytest.mark.filterwarnings("ignore")
def test_torch_cuda_autocast_as_bare_decorator_takes_the_function_for_its_first_argument(torch: Any) -> None:
    ran = []
    decorated = torch.cuda.amp.autocast(lambda x: ran.append(x))
    assert isinstance(decorated, torch.cuda.amp.autocast)
    with contextlib.suppress(TypeError):  # what it is given now must be a function to decorate
        decorated(torch.ones(1))
    assert not ran


@pytest.mark.parametrize("name", ["no_grad", "autocast"])
def test_torch_stack_does_not_enter_a_class(torch: Any, name: str) -> None:
    with contextlib.ExitStack() as stack, pytest.raises((TypeError, AttributeError)):
        stack.enter_context(getattr(torch, name))


@pytest.mark.parametrize("name", ["no_grad", "enable_grad", "set_grad_enabled"])
def test_paddle_with_statement_raises(paddle: Any, name: str) -> None:
    with pytest.raises(TypeError, match="context manager protocol"), getattr(paddle, name):
        pass
    with pytest.raises(TypeError, match="context manager protocol"), paddle.amp.auto_cast:
        pass


@pytest.mark.parametrize("name", ["no_grad", "enable_grad"])
def test_paddle_bare_decorator_raises_at_the_definition(paddle: Any, name: str) -> None:
    """Unlike torch's: the file cannot even be imported."""
    manager = getattr(paddle, name)
    with pytest.raises(TypeError, match="takes no arguments"):

        @manager
        def bare() -> None:
            """Never made."""

    assert manager()(paddle.is_grad_enabled)() is (name == "enable_grad")


def test_paddle_bare_decorator_of_its_own_modules_works(paddle: Any) -> None:
    """The look-alike: a function of the same name takes the function itself."""
    for module in (paddle.base.dygraph, paddle.base.dygraph.base, paddle.framework.base):

        @module.no_grad
        def bare() -> bool:
            return bool(paddle.is_grad_enabled())

        assert bare() is False


def test_paddle_bare_auto_cast_gives_a_function_in_place_of_the_result(paddle: Any) -> None:
    """With one argument nothing raises: the argument is taken for the function to decorate."""
    decorated = paddle.amp.auto_cast(lambda x: x + 1)
    result = decorated(1)
    assert callable(result)
    assert result != 2
