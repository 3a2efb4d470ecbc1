"""Nodes that run something else than the submitter are refused, by name, before a job starts."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.actors.nodes.connecting import Driver
from slackwater.actors.nodes.local import LocalNodes
from slackwater.actors.nodes.placement import NodeInfo, list_nodes
from slackwater.actors.nodes.versions import check_nodes, own_versions
from slackwater.runtime.errors import ClusterError

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def local() -> Iterator[LocalNodes]:
    with LocalNodes(2) as opened:
        yield opened


@pytest.fixture
def nodes(local: LocalNodes) -> Iterator[list[NodeInfo]]:
    driver = Driver(local.address, local.environment)
    yield list_nodes()
    driver.close()


def test_own_versions_name_what_a_job_stands_on() -> None:
    assert list(own_versions()) == ["python", "ray", "pyarrow", "numpy", "slackwater"]
    assert "none" not in own_versions().values()


def test_equal_nodes_are_taken_and_soon_once_they_are_warm(nodes: list[NodeInfo]) -> None:
    check_nodes(nodes)
    began_s = time.monotonic()
    check_nodes(nodes)
    assert time.monotonic() - began_s < 5.0


def test_a_node_that_differs_is_named_with_both_versions(nodes: list[NodeInfo]) -> None:
    expected = {**own_versions(), "pyarrow": "9.9.9", "slackwater": "7.0.0"}
    ours = own_versions()
    said = (
        f"node 'node-2' has pyarrow {ours['pyarrow']} where the submitter has 9.9.9, "
        f"slackwater {ours['slackwater']} where the submitter has 7.0.0. .*pip install .*"
        "pyarrow==9.9.9 .*slackwater==7.0.0"
    )
    with pytest.raises(ClusterError, match=said) as refused:
        check_nodes(nodes[1:], expected=expected)
    assert "node-1" not in str(refused.value)


def test_a_node_that_cannot_say_is_refused(nodes: list[NodeInfo]) -> None:
    gone = replace(nodes[0], name="gone", node_id="ab" * 28)
    with pytest.raises(ClusterError, match="node 'gone' could not name its versions"):
        check_nodes([*nodes, gone])


def test_a_job_is_refused_before_it_starts(
    local: LocalNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in local.environment.items():
        monkeypatch.setenv(name, value)
    flow = sw.Dataflow("numbers")
    events = pa.table({"ts": pa.array([1, 2], pa.timestamp("ns"))})
    flow.source("numbers", sw.table(events), event_time="ts").sink("out", sw.collect_sink())
    with sw.Cluster.connect(local.address) as cluster:
        monkeypatch.setattr(platform, "python_version", lambda: "3.11.99")
        with pytest.raises(
            ClusterError, match=r"node 'node-1' has python .* submitter has 3\.11\.99"
        ):
            cluster.submit(flow)
        monkeypatch.undo()
        assert cluster.submit(flow, detach=False).wait(60).state == "done"
