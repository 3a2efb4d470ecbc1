"""The simulator itself: repeatable, in virtual time, and never silently stuck."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import JobStopped, SettingError, SlackwaterError
from slackwater.runtime.model import NS_PER_SECOND
from tests.support.endless import SilentInput
from tests.support.own_inputs import Feed

TIMES = pa.table({"ts": pa.array([k * NS_PER_SECOND for k in range(20)], pa.int64())})


def paced(events: sw.connectors.Input, **options: float) -> sw.Dataflow:
    flow = sw.Dataflow("paced")
    flow.source("events", events, event_time="ts", speed=options.get("speed", 1.0)).sink(
        "out", sw.collect_sink()
    )
    return flow


def test_a_paced_replay_takes_its_time_in_virtual_time() -> None:
    report = sw.Simulation(nodes=2).submit(paced(sw.table(TIMES), speed=2.0)).wait()
    assert 9.5 <= report.elapsed_s < 9.6
    assert report.host == "simulator"


def test_latency_is_work_and_distance_and_nothing_else() -> None:
    host = sw.Simulation(
        nodes=2,
        cost=sw.testing.CostModel(per_slice_ns=1_000_000, per_row_ns=0),
        link=sw.testing.LinkModel(delay_ns=5_000_000),
    )
    report = host.submit(paced(sw.table(TIMES)), placement={"out": "node-2"}).wait()
    # A slice at the source, the link, a slice at the sink.
    assert report.sinks[0].latency.quantile(0.5) == pytest.approx(7_000_000, rel=0.01)


def test_one_seed_gives_one_run() -> None:
    def once(seed: int) -> object:
        host = sw.Simulation(
            nodes=2,
            seed=seed,
            cost=sw.testing.CostModel(jitter=5),
            link=sw.testing.LinkModel(jitter_ns=10**7),
        )
        return host.submit(paced(sw.table(TIMES))).wait().to_json()

    assert once(1) == once(1)
    assert once(1) != once(2)


def test_a_run_that_cannot_go_on_says_who_waits_for_whom() -> None:
    flow = sw.Dataflow("stuck")
    left = flow.source("left", sw.table(TIMES), event_time="ts")
    right = flow.source("right", SilentInput(sw.table(TIMES.slice(0, 0))), event_time="ts")
    left.merge(right, name="both").sink("out", sw.collect_sink())
    with pytest.raises(JobStopped, match="both waits for right"):
        sw.Simulation().submit(flow).wait()


def test_costs_and_delays_cannot_be_negative() -> None:
    with pytest.raises(SettingError):
        sw.testing.CostModel(jitter=-1)
    with pytest.raises(SettingError):
        sw.testing.LinkModel(delay_ns=-1)


def test_what_is_told_of_a_step_is_told_of_its_replicas() -> None:
    flow = sw.Dataflow("dear")
    rows = pa.table({"ts": range(1_000), "key": [n % 8 for n in range(1_000)]})
    source = flow.source("rows", sw.table(rows), event_time="ts", time_unit="ms")
    source.dedupe("key", within="1s", replicas=2, name="once").sink("out", sw.collect_sink())
    cost = sw.testing.CostModel(per_slice_ns=0, per_row_ns=0, stages={"once": 1_000_000})
    report = sw.Simulation(nodes=1, cost=cost).submit(flow).wait()
    took_ns = sum(one.service_ns for one in report.stages if one.kind == "dedupe")
    assert took_ns == pytest.approx(1_000 * 1_000_000, rel=0.01)


@pytest.mark.parametrize("gap", ["of its history", "with rows held for order"])
def test_a_gap_in_the_history_of_a_source_is_no_standing_still(gap: str) -> None:
    flow = sw.Dataflow("gap")
    seconds = {"talks": [*range(100)], "pauses": [*range(10), *range(90, 100)]}
    order: dict[str, Any] = {}
    if gap == "with rows held for order":
        order = {"out_of_order": "sort", "disorder": "3s"}
    talks, pauses = (
        flow.source(
            name, sw.table({"ts": times}), event_time="ts", time_unit="s", speed=1.0, **order
        )
        for name, times in seconds.items()
    )
    talks.merge(pauses, name="both").sink("out", sw.collect_sink())
    job = sw.Simulation(nodes=2).submit(flow)
    report = job._run.run(until_ns=60 * NS_PER_SECOND)
    both = next(stage for stage in report.stages if stage.name == "both")
    assert both.still_ns is not None
    assert both.still_ns > 40 * NS_PER_SECOND
    assert both.waiting_for == ["pauses"]
    assert report.standstills == []
    assert report.sinks[0].old_s is None


def leave(*_: object) -> Any:
    sys.exit(3)


def leaves_in_poll() -> Iterator[pa.RecordBatch]:
    yield leave()


@pytest.mark.parametrize("whose", ["map", "batches", "callback", "at_end", "source"])
def test_a_function_that_calls_exit_fails_its_job_by_step_and_line(whose: str) -> None:
    schema = pa.schema([("t", pa.int64())])
    flow = sw.Dataflow("leaves")
    feed = Feed(leaves_in_poll) if whose == "source" else sw.table({"t": [1, 2]})
    stream = flow.source("source", feed, event_time="t")
    if whose == "map":
        stream = stream.map_rows(leave, schema, name="map")
    if whose == "batches":
        stream = stream.map_batches(leave, schema, name="batches")
    stream.sink(
        "out",
        sw.callback_sink(
            leave if whose == "callback" else lambda _: None,
            at_end=leave if whose == "at_end" else None,
        ),
    )
    step = whose if whose in ("map", "batches", "source") else "out"
    job = sw.Simulation(nodes=1).submit(flow)
    with pytest.raises(SlackwaterError, match=rf"'{step}'.*SystemExit") as caught:
        job.wait()
    assert whose == "source" or "SystemExit(3); to end the job, raise" in str(caught.value)
    assert re.search(r"in leave\n *sys\.exit\(3\)", str(caught.value))
    assert job.status == job.report().state == "failed"
    assert f"'{step}'" in str(job.report().error)
    with pytest.raises(SlackwaterError, match=rf"'{step}'.*SystemExit"):
        job.wait()
