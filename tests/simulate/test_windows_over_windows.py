"""The time of a window's result: its last moment, in the time zone of the events."""

from __future__ import annotations

import pyarrow as pa
import pytest

import slackwater as sw

MINUTE = 60_000_000_000
NS = pa.timestamp("ns")


def flow_over(*times: pa.Array) -> tuple[sw.Dataflow, sw.Stream]:
    """One source for each array of event times, merged."""
    flow = sw.Dataflow("over")
    tables = [pa.table({"ts": one, "key": [1] * len(one)}) for one in times]
    streams = [
        flow.source(f"s{n}", sw.table(table), event_time="ts") for n, table in enumerate(tables)
    ]
    return flow, streams[0] if len(streams) == 1 else flow.merge(
        *[one.select("key") for one in streams]
    )


def counted(stream: sw.Stream, length: str, **more: sw.Aggregate) -> sw.Stream:
    return stream.aggregate(window=sw.tumbling(length), n=sw.count(), **more)


def result_of(flow: sw.Dataflow, sink: str) -> pa.Table:
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        return job.result(sink)


@pytest.mark.parametrize(
    ("second", "found"),
    [("1m", [(0, 1, 3), (1, 1, 1), (2, 1, 2), (3, 1, 1)]), ("2m", [(0, 2, 4), (2, 2, 3)])],
)
def test_windows_over_windows_count_each_in_its_own_time(
    second: str, found: list[tuple[int, int, int]]
) -> None:
    minutes = [0, 0.5, 0.99, 1.5, 2, 2.5, 3]
    flow, stream = flow_over(pa.array([int(one * MINUTE) for one in minutes], NS))
    twice = counted(counted(stream, "1m"), second, rows=sw.sum("n"))
    twice.sink("out", sw.collect_sink())
    out = result_of(flow, "out")
    starts = [one.value // MINUTE for one in out["window_start"]]
    assert list(zip(starts, out["n"].to_pylist(), out["rows"].to_pylist(), strict=True)) == found


BERLIN, UTC = "Europe/Berlin", "UTC"


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        ([BERLIN], BERLIN),
        ([UTC], UTC),
        ([None], None),
        ([BERLIN, BERLIN], BERLIN),
        ([BERLIN, UTC], UTC),
        ([BERLIN, None], UTC),
    ],
)
def test_times_that_a_step_makes_have_the_time_zone_of_its_sources(
    zones: list[str | None], expected: str | None
) -> None:
    flow, stream = flow_over(*[pa.array([0, 1], pa.timestamp("ms", tz=zone)) for zone in zones])
    windows = counted(stream.select("key"), "1m")
    once_more = counted(windows, "1h")
    matches = stream.pattern(
        sw.patterns.seq(sw.patterns.event("a"), sw.patterns.event("b")), window=sw.tumbling("1m")
    )
    made = pa.timestamp("ns", tz=expected)
    for one in (windows, once_more, matches):
        assert one.schema.field("window_start").type == made
    assert once_more.schema.field("window_end").type == made
    late = windows.late()
    assert late.schema.field("late_event_time").type == made
    for number, one in enumerate((late, once_more, matches)):
        one.sink(f"out-{number}", sw.collect_sink())
    out = result_of(flow, "out-1")
    assert out.schema.field("window_start").type == made


def test_whole_numbers_as_event_times_have_no_time_zone() -> None:
    flow = sw.Dataflow("whole")
    table = sw.table(pa.table({"ts": [1], "key": [1]}))
    stream = flow.source("s", table, event_time="ts", time_unit="ns")
    assert counted(stream, "1m").schema.field("window_end").type == NS
