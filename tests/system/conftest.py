"""One cluster for all these tests while they follow each other: starting one takes seconds."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

import slackwater as sw

GONE_S = 10.0
_open: list[tuple[sw.Cluster, ExitStack]] = []


@pytest.fixture(scope="module")
def cluster() -> sw.Cluster:
    """Three local nodes, with the jobs of other tests in their list of ended ones.

    When they are closed, none of their processes may be left.
    """
    if not _open:
        _open.append(_opened())
    return _open[0][0]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close the cluster behind a file, unless the next one begins with it, too."""
    if _open and not _stays(item.path, nextitem):
        _open.pop()[1].close()


def _stays(path: Path, nextitem: pytest.Item | None) -> bool:
    if nextitem is None or nextitem.path == path:
        return nextitem is not None
    is_of_us = nextitem.path.parent == path.parent  # Spark's tests have another one
    return is_of_us and "cluster" in getattr(nextitem, "fixturenames", ())


def _opened() -> tuple[sw.Cluster, ExitStack]:
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
    opened = stack.enter_context(sw.Cluster.local(nodes=3))
    stack.callback(note)  # the first to be called at the end
    return opened, stack
