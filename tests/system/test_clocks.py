"""Nodes whose clocks disagree: what is measured is true, within the error that is stated.

All nodes are this machine, so the true time of everything is known here: a step in the sources'
slots stamps each row with it, and the sink writes down when the row came. Between those two, and
so at least as long, lies what the job measures: from the row's stimulus, just before the stamp,
to its egress, just behind the sink's call.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.engine.recorder import Recorder
from slackwater.actors.jobs.job import RayJob
from slackwater.actors.nodes.placement import list_nodes
from slackwater.runtime.model import Int64Array, format_ns
from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput

pytestmark = pytest.mark.ray

MS, MINUTE, HOUR = 10**6, 60 * 10**9, 3_600 * 10**9
LIMIT_S = 60.0
ROWS, EVERY_NS = 100, 5 * MS
SCHEMA = pa.schema([("ts", pa.timestamp("ns")), ("n", pa.int64())])
EVENTS = pa.table(
    [pa.array(np.arange(ROWS) * EVERY_NS, SCHEMA[0].type), np.arange(ROWS)], SCHEMA.names
)
TIMED = {"paced": "from paced", "polled": "from polled"}  # {source: its sink}
PLACES = {"paced": "node-1", "polled": "node-2", **dict.fromkeys(TIMED.values(), "node-3")}
NOISE_NS = 3 * MS
"""What the luckiest row may have beside the stamped time: the work of a slice, and a nap."""


@dataclass(frozen=True)
class TrickleInput:
    """A row every 5 ms, by the true clock; it cannot say when the next one comes."""

    def describe(self) -> str:
        return "a trickle"

    def schema(self) -> pa.Schema:
        return SCHEMA

    def open(self) -> TrickleReader:
        return TrickleReader()


class TrickleReader:
    def __init__(self) -> None:
        self._next, self._due_ns = 0, 0

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        if self._next == ROWS:
            return END_OF_INPUT
        if time.monotonic_ns() < self._due_ns:
            return None
        self._due_ns = time.monotonic_ns() + EVERY_NS
        self._next += 1
        return EVENTS.slice(self._next - 1, 1).combine_chunks().to_batches()[0]

    def close(self) -> None:
        self._next = ROWS


def stamp(columns: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**columns, "stamp_ns": np.full(len(columns["n"]), time.time_ns())}


@dataclass(frozen=True)
class Run:
    """What a run says, and what is true of it."""

    report: sw.JobReport
    rows: pa.Table
    """What both sources gave, in order, without the stamps."""
    true_ns: Mapping[str, Int64Array]
    """{sink: time from stamp to sink, of each row}."""

    def sink(self, name: str) -> sw.SinkReport:
        return next(sink for sink in self.report.sinks if sink.name == name)

    def link_ns(self, name: str) -> float:
        link = next(one for one in self.report.channels if one.name == name)
        return link.link_ns / link.messages


def run(cluster: sw.Cluster, folder: Path, shifts: Mapping[str, int]) -> Run:
    flow = sw.Dataflow("shifted")
    paced = flow.source("paced", sw.table(EVENTS), event_time="ts", speed=1)
    polled = flow.source("polled", TrickleInput(), event_time="ts")
    schema = SCHEMA.append(pa.field("stamp_ns", pa.int64()))
    recorders = {name: Recorder(str(folder / f"{name}.arrow")) for name in TIMED.values()}
    plain = []
    for source in (paced, polled):
        stamped = source.map_batches(stamp, schema=schema)
        sink = TIMED[source.name]
        stamped.sink(sink, recorders[sink].sink())
        plain.append(stamped.select("ts", "n"))
    plain[0].merge(plain[1], name="both").sink("all", sw.collect_sink())

    plan = cluster.plan(flow, placement={**PLACES, "both": "node-3", "all": "node-3"})
    where = {node.name: node for node in list_nodes()}
    nodes = {slot: where[slot] for slot in plan.slot_names}
    job = RayJob(plan, nodes=nodes, clock_shifts=shifts).start()
    assert job.wait(LIMIT_S)
    true_ns = {}
    for name, recorder in recorders.items():
        seen = recorder.read()
        true_ns[name] = seen["egress_ns"] - seen["stamp_ns"]
    return Run(job.report(), job.collected("all"), true_ns)


@pytest.fixture(scope="module")
def unshifted(cluster: sw.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(cluster, tmp_path_factory.mktemp("unshifted"), {})


def check_latencies(seen: Run) -> None:
    for name, true_ns in seen.true_ns.items():
        sink = seen.sink(name)
        assert sink.latency.count == len(true_ns) == ROWS
        # Each row's latency is longer than its true time, less the error; so are these.
        assert sink.latency.min_ns >= true_ns.min() - sink.error_ns
        assert sink.latency.max_ns >= true_ns.max() - sink.error_ns
        assert sink.latency.sum_ns / ROWS >= true_ns.mean() - sink.error_ns
        # By how much it is longer, no clock decides, but how busy the machine is. A clock that is
        # wrong makes each of them longer, also the one that no pause has touched.
        assert sink.latency.min_ns <= float(np.median(true_ns)) + sink.error_ns + NOISE_NS


def test_within_one_clock_there_is_no_error(unshifted: Run) -> None:
    check_latencies(unshifted)
    assert [sink.error_ns for sink in unshifted.report.sinks] == [0, 0, 0]
    assert {channel.error_ns for channel in unshifted.report.channels} == {0}
    assert [clock.node for clock in unshifted.report.clocks] == ["node-1", "node-2", "node-3"]
    assert all(clock.is_reference and not clock.exchanges for clock in unshifted.report.clocks)


@pytest.mark.parametrize(("second_ns", "third_ns"), [(-5 * MS, HOUR)], ids=format_ns)
def test_latencies_between_shifted_clocks_are_true_within_the_stated_error(
    cluster: sw.Cluster, unshifted: Run, tmp_path: Path, second_ns: int, third_ns: int
) -> None:
    shifts = {"node-2": second_ns, "node-3": third_ns}
    seen = run(cluster, tmp_path, shifts)
    check_latencies(seen)
    assert seen.rows.equals(unshifted.rows)
    assert len(seen.rows) == 2 * ROWS

    clocks = {clock.node: clock for clock in seen.report.clocks}
    assert clocks["node-1"].is_reference
    for node, by_ns in shifts.items():
        assert clocks[node].offset_ns + by_ns == pytest.approx(0, abs=clocks[node].error_ns + MS)
        assert clocks[node].exchanges >= 8
    errors = {node: clock.largest_error_ns for node, clock in clocks.items()}
    assert seen.sink("from paced").error_ns == errors["node-3"]
    assert seen.sink("from polled").error_ns == errors["node-2"] + errors["node-3"]
    assert 0 < seen.sink("all").error_ns < 500 * MS

    for channel in seen.report.channels:
        known_ns = unshifted.link_ns(channel.name)
        apart_ns = abs(seen.link_ns(channel.name) - known_ns)
        assert apart_ns <= channel.error_ns + 500 * MS  # means, which one pause does move
    assert seen.report.elapsed_s < LIMIT_S


@dataclass(frozen=True)
class SetBack:
    """What a wall clock is ahead of the true one: set back by an hour once a file is there."""

    flag: Path

    def __call__(self) -> int:
        return -HOUR if self.flag.exists() else 0


def raise_flag(flag: Path, columns: Mapping[str, Any]) -> Mapping[str, Any]:
    if columns["n"].max() >= ROWS // 10:
        flag.touch()
    return columns


def test_a_wall_clock_that_is_set_back_stops_no_paced_source_and_is_told(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    flag = tmp_path / "set back"
    flow = sw.Dataflow("set back")
    paced = flow.source("paced", sw.table(EVENTS), event_time="ts", speed=1)
    mapped = paced.map_batches(partial(raise_flag, flag), schema=SCHEMA, name="mapped")
    mapped.merge(name="gate").sink("all", sw.collect_sink())
    plan = cluster.plan(flow, placement={"gate": "node-2"})
    where = {node.name: node for node in list_nodes()}
    nodes = {slot: where[slot] for slot in plan.slot_names}
    shifts = dict.fromkeys(where, SetBack(flag))
    job = RayJob(plan, nodes=nodes, clock_shifts=shifts).start()
    assert job.wait(LIMIT_S)
    report = job.report()
    assert flag.exists()
    assert report.sinks[0].rows == ROWS
    assert report.sinks[0].latency.max_ns < MINUTE
    assert report.sinks[0].latency.below_zero == 0
    assert all(clock.is_reference and clock.steps == 1 for clock in report.clocks)
    (note,) = [note for note in report.notes if "clock" in note]
    assert note.startswith(f"the clock of {', '.join(report.nodes)} was set back by 60.0 min ")
    assert report.elapsed_s < LIMIT_S
