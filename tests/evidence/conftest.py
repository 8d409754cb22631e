"""The frameworks as fixtures: a test that asks for one that is absent is skipped, and says so.

Each fixture gives the imported module with its random numbers seeded, so every test starts alike.
A difference between versions is stated in the test by asking ``paddle_version``.
"""

import importlib.util
import warnings
from types import ModuleType
from typing import Any

import pytest


def imported(name: str, reason: str) -> ModuleType:
    """The module ``name``; skips the test where it is not installed.

    Whether it is installed is looked up, not tried: a framework that is there and fails to import
    has to fail the tests, not to skip them.
    """
    if importlib.util.find_spec(name) is None:
        pytest.skip(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # importing paddle warns about compilers it did not find
        return importlib.import_module(name)


@pytest.fixture
def torch() -> Any:
    module: Any = imported("torch", "PyTorch is not installed")
    module.manual_seed(0)
    return module


@pytest.fixture
def paddle() -> Any:
    module: Any = imported("paddle", "PaddlePaddle is not installed")
    module.seed(0)
    return module


@pytest.fixture
def numpy() -> Any:
    return imported("numpy", "NumPy is not installed")


@pytest.fixture
def paddle_version(paddle: Any) -> tuple[int, int]:
    major, minor = paddle.__version__.split(".")[:2]
    return int(major), int(minor)


@pytest.fixture
def torch_net(torch: Any) -> Any:
    """A module class with parameters and buffers: seven keys in its state dict."""

    class Net(torch.nn.Module):
        def __init__(self, width: int = 3) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(2, width)
            self.bn = torch.nn.BatchNorm1d(width)

        def forward(self, x: Any) -> Any:
            return self.bn(self.fc(x))

    return Net


@pytest.fixture
def paddle_net(paddle: Any) -> Any:
    """The same class for paddle: six keys, its BatchNorm counts no batches."""

    class Net(paddle.nn.Layer):
        def __init__(self, width: int = 3) -> None:
            super().__init__()
            self.fc = paddle.nn.Linear(2, width)
            self.bn = paddle.nn.BatchNorm1D(width)

        def forward(self, x: Any) -> Any:
            return self.bn(self.fc(x))

    return Net
