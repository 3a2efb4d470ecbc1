"""What all tests share: seeds that are printed, markers that skip, limits by cost."""

from __future__ import annotations

import gc
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from examples import real_data
from slackwater.runtime.simulate.ways import Ways
from tests.support.longest import is_among_longest
from tests.support.wire import through_frames

ROOT = Path(__file__).resolve().parent.parent
ON_CI = bool(os.environ.get("CI"))
# Before a test loads numpy, which reads it then: our matrices are small, and where all cores are
# busy the threads of a product wait for each other many times as long as one takes for it.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

SPARK_LIMIT_S = 300  # a first session takes 10-15 s on an idle machine, far more on a busy one

# No deadline: the machine's other work would decide. On CI every run tries the same examples;
# elsewhere each run draws others.
settings.register_profile(
    "slackwater",
    deadline=None,
    # Of each property; tests/support/examples.py has multiples of it.
    max_examples=25,
    derandomize=ON_CI,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("slackwater")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Fix Hypothesis' seed before it is used, so that it can be printed; hear Ctrl-C."""
    # A script that runs the tests with `&` has them ignore it, and some raise it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not ON_CI and config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = random.SystemRandom().randrange(2**32)


@pytest.fixture(autouse=True, scope="session")
def _simulations_make_frames() -> None:
    """Let no type pass in the simulator that a cluster's wire refuses."""
    Ways.wire = through_frames


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """A token file as it ought to be, below a home."""
    path = tmp_path / ".ray" / "auth_token"
    path.parent.mkdir()
    path.write_text("word-that-nobody-may-see")
    path.chmod(0o600)
    return path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share out files as we want it, if it is files that are shared out."""
    from tests.support.sharing import ByFile  # noqa: PLC0415 (not without xdist)

    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_report_header(config: pytest.Config) -> str:
    """Say how to repeat this run."""
    if ON_CI:
        return "hypothesis: derandomized (CI is set)"
    return f"hypothesis: repeat with --hypothesis-seed={config.getoption('hypothesis_seed')}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs data that is not here; run cheap tests first; give Spark its time."""
    absent = _absent_data()
    for item in items:
        if absent and item.get_closest_marker("data"):
            item.add_marker(pytest.mark.skip(reason=absent))
        if item.get_closest_marker("spark") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SPARK_LIMIT_S))
    items.sort(key=_cost)  # stable: within a class of cost the order stays


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the collector from what imports and collection make, which all stays.

    That is so much that to look at it again and again takes a fifth of the time of collection,
    and a good part of a test that makes many small objects.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def _cost(item: pytest.Item) -> int:
    if is_among_longest(item.path, ROOT) and not item.get_closest_marker("ray"):
        return -1
    if item.get_closest_marker("spark"):
        return 1  # where files are shared out, the longest must not come last
    return 2 if item.get_closest_marker("ray") else 0


def _absent_data() -> str:
    """Return why tests of real data are skipped, or nothing where they run."""
    if os.environ.get("DATA"):
        return ""  # whoever names a folder wants these tests: a wrong one is their error
    try:
        real_data.warsaw()
    except real_data.NoRealData as problem:
        return str(problem)
    return ""


@pytest.fixture(scope="session")
def warsaw() -> Path:
    """The folder of Warsaw's buses; for tests marked `data`."""
    return real_data.warsaw()
