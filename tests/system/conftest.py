"""One cluster for all tests of a file; starting one takes longer than most runs."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

import slackwater as sw

GONE_S = 10.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[sw.Cluster]:
    """Three local nodes; when they are closed, none of their processes may be left."""
    here = psutil.Process()
    before = set(here.children(recursive=True))
    with sw.Cluster.local(nodes=3) as opened:
        yield opened
        ours = set(here.children(recursive=True)) - before
        assert ours
    assert psutil.wait_procs(list(ours), timeout=GONE_S)[1] == []
