"""One cluster for all tests of this folder in a process: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

import slackwater as sw
from tests.support.waiting import until

GONE_S = 10.0
SOON_S = 30.0
_open: list[tuple[sw.Cluster, ExitStack]] = []


@pytest.fixture(scope="session")
def temp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The temp folder of the cluster's workers."""
    return tmp_path_factory.mktemp("jobs")


@pytest.fixture(scope="module")
def cluster(temp: Path) -> sw.Cluster:
    """Three local nodes, with the jobs of other tests in their list of ended ones.

    When they are closed, none of their processes may be left.
    """
    if not _open:
        _open.append(_opened(temp))
    return _open[0][0]


@pytest.fixture(autouse=True)
def no_socket_stays(temp: Path) -> Iterator[None]:
    """However a test's jobs end, their sockets in the temp folder go with them."""
    before = set(temp.glob("sw-*"))  # of other tests, whose processes died or are about to end
    yield
    if _open:
        for job in _open[0][0]._jobs:  # of a test that failed: its slots would take all the CPU
            if job.status == "running":
                job.stop()
    until(lambda: set(temp.glob("sw-*")) <= before, within_s=SOON_S, what="sockets to go")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close the cluster behind the last test of this folder, or before one that has its own."""
    if _open and not _stays(item.path, nextitem):
        _open.pop()[1].close()


def _stays(path: Path, nextitem: pytest.Item | None) -> bool:
    if nextitem is None or nextitem.path.parent != path.parent:
        return False
    return nextitem.get_closest_marker("spark") is None


def _opened(temp: Path) -> tuple[sw.Cluster, ExitStack]:
    here = psutil.Process()
    before = set(here.children(recursive=True))
    stack = ExitStack()

    def nothing_is_left() -> None:
        assert psutil.wait_procs(list(ours), timeout=GONE_S)[1] == []

    def note() -> None:
        ours.update(set(here.children(recursive=True)) - before)
        assert ours

    ours: set[psutil.Process] = set()
    stack.callback(nothing_is_left)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temp))
        opened = stack.enter_context(sw.Cluster.local(nodes=3))
    stack.callback(note)  # the first to be called at the end
    return opened, stack
