"""What users write themselves, on Ray: it is heard, and a source that waits holds up nobody."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from examples import own_output
from slackwater.runtime.errors import SinkError
from slackwater.runtime.measure.ledger import imbalances
from tests.support.own_inputs import Feed, Refilling, stuck, talking
from tests.support.own_outputs import Prints
from tests.support.silence import silent_flow, was_in_time

pytestmark = pytest.mark.ray


def test_prints_are_heard_by_step_and_a_source_that_never_returns_holds_up_nobody(
    cluster: sw.Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    flow = sw.Dataflow("own-code")
    numbers = flow.source("numbers", sw.table({"t": list(range(50))}), event_time="t")
    numbers.map_rows(talking, pa.schema([("t", pa.int64())]), name="talk").sink(
        "out", sw.collect_sink()
    )
    flow.source("feed", Feed(stuck), event_time="t").sink("more", sw.collect_sink())
    job = cluster.submit(flow, placement={"*": "node-1"})
    deadline_s = time.monotonic() + 30
    while any(sink.rows < rows for sink, rows in zip(job.report().sinks, (50, 2), strict=True)):
        assert time.monotonic() < deadline_s, "rows pass while a poll of the same slot waits"
    job.stop()
    report = job.report()
    assert report.state == "stopped"
    (note,) = [note for note in report.notes if "Feed, a custom input" in note]
    assert "source 'feed'" in note
    assert "has ended without it" in note
    assert job.result("out").num_rows == 50
    printed = capfd.readouterr()
    assert printed.out == "", "that is the driver's own"
    lines = printed.err.splitlines()
    assert lines.count("[feed] reading two rows") == 1
    assert [line for line in lines if line.startswith("[talk]")] == [
        f"[talk] {said} {n}" for n in range(3) for said in ("seen", "odd:")
    ]


def test_a_print_sink_prints_on_the_drivers_stdout_and_csv_is_written_beside_it(
    cluster: sw.Cluster, temp: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flow = sw.Dataflow("printed")
    numbers = flow.source("numbers", sw.table({"t": list(range(900))}), event_time="t")
    numbers.sink("out", sw.print_sink(limit=3))
    numbers.filter(sw.col("t") < 2).sink("file", sw.csv_sink(temp / "rows", sep=";"))
    report = cluster.submit(flow, placement={"*": "node-2"}).wait()
    assert not imbalances(report)
    lines = capfd.readouterr().out.splitlines()
    assert lines == ["[out] t", "[out] 0", "[out] 1", "[out] 2", "[out] … and 897 more"]
    assert (temp / "rows" / "part-00000001.csv").read_text() == "t\n0\n1\n"


def test_an_output_of_ones_own_writes_on_its_node_and_its_error_comes_home(
    cluster: sw.Cluster, temp: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(temp / "buses.db")
    job = cluster.submit(own_output.flow(path), placement={"*": "node-2"})
    report = job.wait()
    assert own_output.table(path) == [("7", 0.0), ("7", 2.0), ("12", 4.0)]
    assert not imbalances(report)
    assert (report.sinks[0].rows, report.ledger.out) == (3, 3)
    assert report.sinks[0].latency.quantile(0.5) > 0
    flow = sw.Dataflow("unlucky")
    numbers = flow.source("numbers", sw.table({"t": list(range(50))}), event_time="t")
    numbers.sink("mine", Prints())
    with pytest.raises(SinkError) as caught:
        cluster.submit(flow, placement={"*": "node-2"}).wait()
    said = str(caught.value)
    assert "sink 'mine': PrintsSink.write raised ValueError: 13 brings bad luck, at " in said
    assert 'raise ValueError("13 brings bad luck")' in said
    lines = capfd.readouterr().err.splitlines()
    assert "[mine] opened for mine ['t']" in lines
    assert sum("[mine] aborted: sink 'mine': PrintsSink.write" in line for line in lines) == 1


def test_buffers_of_users_are_theirs_to_write_to_and_no_row_is_lost(cluster: sw.Cluster) -> None:
    totals = np.zeros(100)

    def total(columns: dict[str, Any]) -> dict[str, Any]:
        totals[columns["t"]] += 1
        return {"t": columns["t"], "times": totals[columns["t"]]}

    flow = sw.Dataflow("own-buffers")
    rows = flow.source("rows", Refilling(), event_time="t", time_unit="s")
    rows.map_batches(total, {"t": "int64", "times": "float64"}).sink("out", sw.collect_sink())
    job = cluster.submit(flow, placement={"*": "node-1"})
    job.wait(timeout=60.0)
    assert job.result("out").to_pylist() == [{"t": t, "times": 1.0} for t in range(12)]


def test_an_alert_of_silence_comes_on_ray_though_all_is_silent(cluster: sw.Cluster) -> None:
    job = cluster.submit(silent_flow(idle="100ms"), placement={"*": "node-1"})
    job.wait(timeout=60.0)
    assert was_in_time(job)
