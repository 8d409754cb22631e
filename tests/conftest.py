"""Settings of all tests."""

import importlib.util
import os
import signal
from pathlib import Path

import pytest

# Nothing that a test runs may find what another test, or the user, has left in the cache.
os.environ["MLLINT_NO_CACHE"] = "1"

# A shell that starts the tests in the background has them ignore Ctrl-C, and what they start would ignore it, too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests of what the frameworks do run in an environment that has little else.
if importlib.util.find_spec("hypothesis") is not None:
    from hypothesis import HealthCheck, settings

    every_check = list(HealthCheck)
    # The same examples every time: a failure in the test command is a fact, not a matter of luck.
    settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=every_check)
    # Looks further, for as long as one has patience.
    settings.register_profile(
        "explore",
        deadline=None,
        max_examples=5000,
        print_blob=True,
        suppress_health_check=every_check,
    )
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A third of the modules are about the frameworks: a run that leaves these out need not import them."""
    return True if collection_path.name == "evidence" and "not evidence" in config.option.markexpr else None
