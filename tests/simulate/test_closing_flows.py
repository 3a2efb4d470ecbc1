"""Windows that close in time, in whole flows: by arrivals, whatever the pace, cut and place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.simulate import Simulation
from tests.support.closings import EndAndAWhile
from tests.support.flows import simulated

MS = 1_000_000
SIZE, SLIDE, WAIT, DISORDER = 2_000 * MS, 1_000 * MS, 300 * MS, 2_000 * MS
Rows = list[tuple[Any, ...]]


def events(seed: int, rows: int = 150) -> pa.Table:
    """Rows of ten seconds, up to a second and a half late; arrivals tie, and some run back."""
    chance = np.random.default_rng(seed)
    ts = np.sort(chance.integers(0, 10_000, rows))
    at = (ts + chance.integers(0, 1_500, rows)) // 50 * 50
    order = at.argsort(kind="stable")
    at = at[order] - (chance.random(rows) < 0.1) * 200
    return pa.table({"ts": ts[order] * MS, "at": at * MS, "key": chance.integers(2, 5, rows)})


TABLES = [events(1), events(2, 100)]


def closing_flow(**options: Any) -> sw.Dataflow:
    """Two sources, merged; the columns of time are not among those that the windows are made of."""
    own = {"speed": None, "replicas": 1, "late": "drop", "arrival": "at", "batch_rows": None}
    settings = own | options
    flow = sw.Dataflow("closing", deadline=options.get("deadline"))
    cut = {} if settings["batch_rows"] is None else {"batch_rows": settings["batch_rows"]}
    first, second = (
        flow.source(
            name,
            sw.table(table, **cut),
            event_time="ts",
            time_unit="ns",
            arrival=settings["arrival"],
            speed=settings["speed"],
            out_of_order=settings.get("out_of_order", "late"),
            disorder="2s",
        )
        for name, table in zip(("first", "second"), TABLES, strict=True)
    )
    merged = flow.merge(first.select("key"), second.select("key").filter(sw.col("key") < 4))
    counts = merged.aggregate(
        by="key",
        window=sw.sliding("2s", "1s"),
        n=sw.count(),
        close=settings.get("close", EndAndAWhile(WAIT)),
        late=settings["late"],
        replicas=settings["replicas"],
        name="counts",
    )
    counts.sink("out", sw.collect_sink())
    if settings.get("takes_late"):
        counts.late().sink("late", sw.collect_sink())
    return flow


def literally(wait_ns: int = WAIT, *, sorted_: bool = False) -> tuple[Rows, int]:
    """Return (key, end, rows) of each window, and how many rows missed all: a row at a time.

    A source that sorts lets a row go with the first one that is two seconds newer: so it arrives.
    """
    arrived = []
    for rank, table in enumerate(TABLES):
        newest = -(2**63)
        columns = (table[name].to_pylist() for name in ("ts", "at", "key"))
        came = []
        for ts, at, key in zip(*columns, strict=True):
            newest = max(newest, at)
            came.append((newest, ts, key))
        if sorted_:
            last = came[-1][0]
            came = [
                (min((at for at, ts, _ in came if ts >= own + DISORDER), default=last), own, key)
                for _, own, key in sorted(came, key=lambda one: one[1])
            ]
        arrived += [
            (at, rank, place_, ts, key)
            for place_, (at, ts, key) in enumerate(came)
            if rank == 0 or key < 4
        ]
    counts: dict[tuple[int, int], int] = {}
    dropped = 0
    closed_ns = -(2**63)  # windows that end by then have closed
    first = None
    for at, _, _, ts, key in sorted(arrived):
        while first is not None and first * SLIDE + SIZE + wait_ns <= at:
            closed_ns = max(closed_ns, first * SLIDE + SIZE)
            first += 1
        inside = range((ts - SIZE) // SLIDE + 1, ts // SLIDE + 1)
        first = inside[0] if first is None else min(first, inside[0])
        still = [k for k in inside if k * SLIDE + SIZE > closed_ns]
        dropped += not still
        for k in still:
            end = k * SLIDE + SIZE
            counts[key, end] = counts.get((key, end), 0) + 1
    return sorted((key, end, n) for (key, end), n in counts.items()), dropped


def rows_of(table: pa.Table) -> Rows:
    columns = [table["key"], table["window_end"].cast(pa.int64()), table["n"]]
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True))


WAYS: Sequence[dict[str, Any]] = (
    {},
    {"batch_rows": 1},
    {"batch_rows": 7, "nodes": 1},
    {"replicas": 2},
    {"replicas": 3, "speed": 20.0, "batch_rows": 11},
    {"speed": 20.0, "nodes": 1},
    {"speed": 50.0, "batch_rows": 3, "nodes": 2},
    {"out_of_order": "sort"},
    {"out_of_order": "sort", "speed": 50.0, "batch_rows": 5},
)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_rows_are_those_of_one_row_at_a_time_by_arrival_whatever_the_way(
    way: dict[str, Any],
) -> None:
    nodes = way.get("nodes", 4)
    limits = sw.Limits(max_slice_rows=20, min_slice_rows=1, credit_rows=64, gate_rows=32)
    sorts = way.get("out_of_order") == "sort"
    wait_ns = WAIT + DISORDER // 2 if sorts else WAIT
    options = {name: own for name, own in way.items() if name != "nodes"}
    flow = closing_flow(close=EndAndAWhile(wait_ns), **options)
    job, report = simulated(flow, seed=nodes, nodes=nodes, limits=limits)
    assert report.state == "done", report.error
    expected, dropped = literally(wait_ns, sorted_=sorts)
    assert rows_of(job.result("out")) == expected
    assert report.ledger.is_balanced
    assert sum(stage.late_dropped for stage in report.stages) == dropped > 0


def test_late_rows_can_be_had_as_of_any_aggregate() -> None:
    job, report = simulated(closing_flow(takes_late=True))
    late = job.result("late")
    dropped = [one for one in late["late_dropped"].to_pylist() if one]
    assert len(dropped) == literally()[1] == sum(stage.late_dropped for stage in report.stages)
    assert len(late) > len(dropped)  # some missed one of their two windows only
    used = [stage.late for stage in report.stages if stage.name == "counts"]
    assert used == [len(late) - len(dropped)]


@pytest.mark.parametrize("way", [{}, {"batch_rows": 1}, {"replicas": 2, "speed": 50.0}], ids=str)
def test_corrected_windows_come_to_all_their_rows_in_the_end(way: dict[str, Any]) -> None:
    job, report = simulated(closing_flow(late="correct", **way))
    assert report.state == "done", report.error
    found = job.result("out")
    assert max(found["revision"].to_pylist()) > 0
    last: dict[tuple[Any, Any], tuple[int, int]] = {}
    for key, end, n, revision in zip(
        *(found[name].to_pylist() for name in ("key", "window_end", "n", "revision")), strict=True
    ):
        assert (key, end) not in last or last[key, end][1] == revision - 1
        last[key, end] = (n, revision)
    whole, none = literally(wait_ns=10**12)
    assert none == 0
    assert sorted(n for n, _ in last.values()) == sorted(n for *_, n in whole)
    assert sum(stage.late_dropped for stage in report.stages) == 0


def left_at(flow: sw.Dataflow, nodes: int = 1) -> list[tuple[float, Any]]:
    """Return when what left: [(seconds from the start, rows)]."""
    plan = place(flow.name, plan_stages(flow.graph), [f"node-{n}" for n in range(nodes)])
    found: list[tuple[float, Any]] = []

    def egress(_stage: str, batch: Any, _is_end: bool) -> None:
        if batch is not None:
            found.append((run.now_ns / 1e9, batch))

    run = Simulation(plan, egress=egress)
    run.run()
    return found


def quiet_flow(*, arrival: str | None, **window: Any) -> sw.Dataflow:
    """Rows at 1 s and 2 s, then none for a minute."""
    flow = sw.Dataflow("quiet")
    rows = sw.table(pa.table({"ts": [1, 2, 62], "at": [1, 2, 62], "key": [7, 7, 7]}))
    settings: Any = {} if arrival is None else {"arrival": arrival}
    stream = flow.source("rows", rows, event_time="ts", time_unit="s", speed=1.0, **settings)
    stream.aggregate(by="key", window=sw.tumbling("10s"), n=sw.count(), **window).sink(
        "out", sw.collect_sink()
    )
    return flow


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_window_closes_though_nothing_comes(nodes: int) -> None:
    (first, rows), (_, _) = left_at(
        quiet_flow(arrival="at", close=EndAndAWhile(WAIT), name="counts"), nodes
    )
    # The first row, of second 1, comes as the run begins; words come each tenth of ten seconds.
    assert 10.3 - 1 <= first <= 10.3 - 1 + 1.1
    assert rows.columns["n"].tolist() == [2]
    # Its stimulus is when its window ended: what it waited for counts for it.
    assert rows.stimulus_time_ns.tolist() == [pytest.approx(9e9, abs=1e6)]
    (by_watermark, _), _ = left_at(quiet_flow(arrival="at", name="counts"), nodes)
    assert by_watermark == pytest.approx(61, abs=0.1)


def test_without_an_arrival_column_it_goes_by_the_clock_and_says_so() -> None:
    # By the clock the run begins at 0, and the event times are a second ahead of it.
    flow = quiet_flow(arrival=None, close=EndAndAWhile(WAIT), name="counts")
    assert "by the clock of its slot, for rows tell no arrival" in flow.explain()
    (first, rows), (_, _) = left_at(flow)
    assert first == pytest.approx(10.3, abs=0.01)  # its operator is called when it is due
    assert rows.columns["n"].tolist() == [2]


def test_behind_a_join_it_goes_by_the_clock() -> None:
    flow = sw.Dataflow("pairs")
    rows = sw.table(pa.table({"ts": [1, 2, 12], "key": [7, 7, 7]}))
    one, other = (
        flow.source(name, rows, event_time="ts", time_unit="s", arrival="ts") for name in "ab"
    )
    pairs = one.join(other, on="key", within="1s", name="pairs")
    pairs.aggregate(window=sw.tumbling("5s"), n=sw.count(), close=EndAndAWhile(0)).sink(
        "out", sw.collect_sink()
    )
    assert "for pairs tell no arrival" in flow.explain()
    job, report = simulated(flow)
    assert report.state == "done", report.error
    assert sum(job.result("out")["n"].to_pylist()) + report.ledger.late == 5


def test_new_events_and_a_sources_rows_close_together() -> None:
    flow = sw.Dataflow("both")
    rows = sw.table(pa.table({"ts": [1, 2, 12], "key": [7, 7, 7]}))
    one, other = (
        flow.source(name, rows, event_time="ts", time_unit="s", arrival="ts") for name in "ab"
    )
    pairs = one.join(other, on="key", within="1s", name="pairs").select("key", "ts")
    both = flow.merge(one, pairs, name="both")
    both.aggregate(window=sw.tumbling("5s"), n=sw.count(), close=EndAndAWhile(0)).sink(
        "out", sw.collect_sink()
    )
    job, report = simulated(flow)
    assert report.state == "done", report.error
    assert sum(job.result("out")["n"].to_pylist()) + report.ledger.late == 8


@pytest.mark.parametrize("most", [1, 3, 65_536])
@pytest.mark.parametrize("batch_rows", [1, 2, 65_536])
def test_no_cut_changes_the_time_at_which_a_row_is_found_late(batch_rows: int, most: int) -> None:
    flow = sw.Dataflow("found")
    read = sw.table(
        {"t": [1, 12, 2, 13, 25, 14], "at": [1, 12, 13, 14, 25, 26]}, batch_rows=batch_rows
    )
    rows = flow.source(
        *("s", read),
        event_time="t",
        arrival="at",
        time_unit="s",
        out_of_order="late",
        disorder="1h",
    )
    counts = rows.aggregate(
        window=sw.sliding("20s", "10s"), n=sw.count(), close=sw.closing.ignore()
    )
    counts.sink("out", sw.collect_sink())
    counts.late().select("t", found=sw.event_time()).sink("late", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow, limits=sw.Limits(max_slice_rows=most, min_slice_rows=1))
        job.wait()
        late = job.result("late").to_pylist()
    # At 13 the windows up to 10 have closed, at 26 those up to 20.
    assert [(row["t"], row["found"] + 1) for row in late] == [(2, 20 * 10**9), (14, 30 * 10**9)]
