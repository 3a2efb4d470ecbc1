"""Notebooks: cells run in a real kernel, as Jupyter would run them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

CELL_MAY_TAKE_S = 120.0

FLOW = """
import pyarrow as pa, slackwater as sw
flow = sw.Dataflow("cell")
rows = pa.table({"t": range(30), "n": range(30)})
seconds = flow.source("s", sw.table(rows), event_time="t", time_unit="s", arrival="t", speed=1.0)
more = sw.col("n").map_elements(lambda n: n + 1, returns="int64")
seconds.with_columns(more=more).sink("out", sw.collect_sink())
"""


class Kernel:
    """A notebook without a browser."""

    def __init__(self, home: Path) -> None:
        self._manager = KernelManager(transport="ipc", connection_file=str(home / "k.json"))
        self._manager.start_kernel(env={**os.environ, "IPYTHONDIR": str(home)})
        self._client: BlockingKernelClient = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=CELL_MAY_TAKE_S)

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def run(self, cell: str, *, interrupt_when_shown: str = "") -> list[dict[str, Any]]:
        """Run a cell; return the messages that a notebook draws it from."""
        sent = self._client.execute(cell)
        drawn: list[dict[str, Any]] = []
        while True:
            message = self._client.get_iopub_msg(timeout=CELL_MAY_TAKE_S)
            if message["parent_header"].get("msg_id") != sent:
                continue
            if message["content"].get("execution_state") == "idle":
                return drawn
            drawn.append({"is": message["msg_type"], **message["content"]})
            if interrupt_when_shown and interrupt_when_shown in str(drawn[-1]):
                interrupt_when_shown = ""
                self._manager.interrupt_kernel()


@pytest.fixture
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    made = Kernel(tmp_path_factory.mktemp("k"))  # short: its sockets are files here
    yield made
    made.close()


def shown(drawn: list[dict[str, Any]], kind: str) -> list[str]:
    """Return the texts of a kind of message; HTML before plain text."""
    data = [one["data"] for one in drawn if one["is"] == kind]
    return [one.get("text/html") or one["text/plain"] for one in data]


def errors(drawn: list[dict[str, Any]]) -> list[str]:
    return [one["ename"] for one in drawn if one["is"] == "error"]


def test_a_cell_shows_flow_job_and_progress_and_ends_without_the_progress(kernel: Kernel) -> None:
    assert errors(kernel.run(FLOW)) == []
    assert "cell" in shown(kernel.run("flow"), "execute_result")[0]
    drawn = kernel.run(
        "nodes = sw.Simulation()\njob = nodes.submit(flow)\n_ = job.wait(progress=True)"
    )
    assert errors(drawn) == []
    assert "in 30" in shown(drawn, "display_data")[0]
    assert shown(drawn, "update_display_data")[-1].endswith("></pre>")
    assert "30 in = 30 out" in shown(kernel.run("job"), "execute_result")[0]


@pytest.mark.ray
@pytest.mark.timeout(180)
def test_an_interrupted_cell_leaves_the_job_on_ray_running(kernel: Kernel) -> None:
    assert errors(kernel.run(FLOW)) == []
    kernel.run("nodes = sw.Cluster.local(nodes=1)\njob = nodes.submit(flow)")
    drawn = kernel.run("job.wait(progress=True)", interrupt_when_shown="results")
    assert errors(drawn) == ["KeyboardInterrupt"]
    assert shown(drawn, "update_display_data")[-1].endswith("></pre>")
    assert "'running'" in shown(kernel.run("job.metrics.state"), "execute_result")[0]
    kernel.run("job.stop()\nleft = job.wait().ledger")
    rows = shown(kernel.run('job.result("out").to_pylist()[0]'), "execute_result")
    assert "'more': 1" in rows[0]
    assert errors(kernel.run("assert left.entered == left.out + left.in_flight, left")) == []
    kernel.run("nodes.close()")
