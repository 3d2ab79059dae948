"""Settings that every test shares."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Parallel workers already use every core: BLAS threads on top of them only get in the way.
# The libraries read this when NumPy is first imported, which is after this file; subprocesses
# inherit it.
if "PYTEST_XDIST_WORKER" in os.environ:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

# No deadline: the first call of a kernel compiles it.
settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50
)
# The same examples in every run, so that a red build means a change and not a throw of dice.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.hookimpl(tryfirst=True)  # before pytest deselects slow tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All but each n-th case of a test marked ``quick_one_in(n)`` is slow."""
    n_seen: Counter[str] = Counter()
    for item in items:
        if mark := item.get_closest_marker("quick_one_in"):
            test = item.nodeid.partition("[")[0]
            if n_seen[test] % mark.args[0]:
                item.add_marker(pytest.mark.slow)
            n_seen[test] += 1


@pytest.fixture
def ctrl_c_works() -> Iterator[None]:
    """Python's own handler of SIGINT, also where whoever started the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
