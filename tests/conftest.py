"""Settings of all tests."""

import os

from hypothesis import HealthCheck, settings

# The same examples every time: a failure in the test command is a fact, not a matter of luck.
# `HYPOTHESIS_PROFILE=explore` looks further, for as long as one has patience.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile(
    "explore",
    deadline=None,
    max_examples=5000,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
