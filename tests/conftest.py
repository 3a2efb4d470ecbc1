"""What all tests share: seeds that are printed, markers that skip, limits by cost."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.longest import is_among_longest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
ON_CI = bool(os.environ.get("CI"))
SPARK_LIMIT_S = 300  # a first session takes 10-15 s on an idle machine, far more on a busy one

# No deadline: the machine's other work would decide. On CI every run tries the same examples.
settings.register_profile(
    "slackwater",
    deadline=None,
    max_examples=60,  # of each property; tests/support/examples.py has a multiple of it
    derandomize=ON_CI,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("slackwater")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Fix Hypothesis' seed before it is used, so that it can be printed."""
    if not ON_CI and config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = random.SystemRandom().randrange(2**32)


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
    for item in items:
        if item.get_closest_marker("shared") and not SHARED.is_dir():
            item.add_marker(
                pytest.mark.skip(
                    reason="needs the data in ../shared, which is not beside the project"
                )
            )
        if item.get_closest_marker("spark") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SPARK_LIMIT_S))
    items.sort(key=_cost)  # stable: within a class of cost the order stays


def _cost(item: pytest.Item) -> int:
    if is_among_longest(item.path, ROOT) and not item.get_closest_marker("ray"):
        return -1
    if item.get_closest_marker("spark"):
        return 1  # where files are shared out, the longest must not come last
    return 2 if item.get_closest_marker("ray") else 0


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data sets; for tests marked `shared`."""
    return SHARED / "data"
