"""The bound of a pattern that sheds is on the latency of its flow, not of its own queue."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.shedding.counts import SheddingCounts
from slackwater.runtime.shedding.settings import Drops
from slackwater.runtime.simulate import LinkModel

MS = 1_000_000
BOUND_MS = 400
ROWS = 10_000
PAIR_NS = 600_000
WINDOWS = 4  # over each event: 0.6 ms for each, and an event a 2 ms, is a fifth too much


class Feed:
    """Gives 50 rows when it is asked, and every third time none: what waits in it is not seen."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows, self._next, self._asked = rows, 0, 0

    def describe(self) -> str:
        return "a feed"

    def schema(self) -> pa.Schema:
        return self._rows.schema

    def open(self) -> Feed:
        return Feed(self._rows)

    def poll(self) -> pa.RecordBatch | sw.connectors.EndOfInput | None:
        self._asked += 1
        if self._asked % 3 == 0:
            return None
        first, self._next = self._next, self._next + 50
        if first >= self._rows.num_rows:
            return sw.connectors.END_OF_INPUT
        return self._rows.slice(first, 50).combine_chunks().to_batches()[0]

    def close(self) -> None:
        """Nothing is open."""


def flow(
    rows: int = ROWS, *, held: str | None = None, drops: Drops = "pairs", is_polled: bool = False
) -> sw.Dataflow:
    """Types 0, 1, 2 come first in a window, by turns; what follows is in no match.

    The source puts rows in order, which takes as long as `held`.
    """
    at = np.arange(rows) % 50
    kinds = np.where(at < 6, at // 2, 3 + at % 3)
    table = pa.table({"ts": np.arange(rows) * 2 * MS, "kind": kinds})
    made = sw.Dataflow("bound")
    events = made.source(
        "events",
        Feed(table) if is_polled else sw.table(table),
        event_time="ts",
        time_unit="ns",
        speed=1.0,
        **({} if held is None else {"disorder": held, "out_of_order": "sort"}),
    )
    steps = [sw.patterns.event(f"e{kind}", of_type=kind) for kind in range(3)]
    shed = sw.shedding.espice(f"{BOUND_MS}ms", f=0.8, drops=drops)
    events.pattern(
        sw.patterns.seq(*steps),
        type="kind",
        window=sw.patterns.count_window(200, every=200 // WINDOWS),
        matches=1,
        shed=shed,
        name="found",
    ).sink("out", sw.collect_sink())
    return made


def ran(delay_ms: int) -> tuple[JobReport, SheddingCounts]:
    """Run it with the sink so far away."""
    host = sw.Simulation(
        nodes=2,
        seed=3,
        cost=sw.testing.CostModel(per_row_ns=0, per_slice_ns=0, per_comparison_ns=PAIR_NS),
        link=LinkModel(delay_ns=delay_ms * MS),
    )
    placement = {"events": "node-1", "found": "node-1", "out": "node-2"}
    report = host.submit(flow(), placement=placement).wait()
    assert report.ledger.is_balanced
    (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
    return report, counts


def worst_behind_start_ms(report: JobReport, *, from_s: int) -> float:
    """Return the worst latency of results from a second on: before, nobody has told the rest."""
    (sink,) = report.sinks
    return max(one.max_ns for one in sink.series.bins() if one.start_ns >= from_s * 1e9) / MS


def test_what_a_link_behind_the_operator_takes_is_in_the_bound() -> None:
    report, counts = ran(delay_ms=200)
    assert counts.dropped > 0
    assert 200 * MS <= counts.rest_ns < BOUND_MS * MS
    assert worst_behind_start_ms(report, from_s=3) <= BOUND_MS


def test_where_all_of_the_bound_is_behind_the_operator_it_says_so() -> None:
    _, counts = ran(delay_ms=BOUND_MS + 50)
    assert counts.rest_ns > BOUND_MS * MS
    assert "elsewhere" in counts.reason


@pytest.mark.parametrize(
    ("held", "drops"), [("300ms", "pairs"), ("1s", "pairs"), ("1s", "stretches")]
)
def test_events_that_were_held_to_be_put_in_order_are_not_dropped_for_that(
    held: str, drops: Drops
) -> None:
    """At a third of what can be done; within the bound, or above it, which is said."""
    cost = sw.testing.CostModel(per_row_ns=0, per_slice_ns=0, per_comparison_ns=PAIR_NS // 4)
    report = sw.Simulation(nodes=1, cost=cost).submit(flow(2_500, held=held, drops=drops)).wait()
    (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
    assert (counts.dropped, counts.passed_over, report.ledger.out > 0) == (0, 0, True)
    assert ("elsewhere" in counts.reason) == (held == "1s")


@pytest.mark.parametrize("is_polled", [False, True])
def test_overload_is_met_whether_rows_wait_at_the_gate_or_in_a_feed(is_polled: bool) -> None:
    """Half as much again as can be done: a row takes 3 ms, and one comes each 2 ms."""
    cost = sw.testing.CostModel(per_row_ns=0, per_slice_ns=0, stages={"found": 3 * MS})
    made = flow(8_000, drops="stretches", is_polled=is_polled)
    report = sw.Simulation(nodes=1, cost=cost).submit(made).wait()
    assert report.ledger.is_balanced
    (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
    assert 0.25 < counts.passed_over / 8_000 < 0.45
    assert counts.shed == counts.passed_over
    assert counts.slowest_ns <= BOUND_MS * MS
    assert report.sinks[0].latency.max_ns <= BOUND_MS * MS
    assert report.sinks[0].rows > 20


def test_what_a_gate_held_for_a_late_stream_is_not_dropped_for_that() -> None:
    """The gate lets old and young go together: the old have not waited for the pattern."""
    made = sw.Dataflow("late")
    sides = []
    for name, late_ns in (("now", 0), ("late", 1_000 * MS)):
        at = np.arange(1_000) * 4 * MS
        came = at + late_ns * np.arange(1_000) // 1_000
        table = pa.table({"ts": at, "came": came, "kind": np.arange(1_000) % 3})
        sides.append(
            made.source(
                name, sw.table(table), event_time="ts", arrival="came", time_unit="ns", speed=1.0
            )
        )
    sides[0].merge(sides[1]).pattern(
        sw.patterns.seq(*[sw.patterns.event(f"e{kind}", of_type=kind) for kind in range(3)]),
        type="kind",
        window=sw.patterns.count_window(200, every=50),
        shed=sw.shedding.espice(f"{BOUND_MS}ms", f=0.8, drops="pairs"),
        name="found",
    ).sink("out", sw.collect_sink())
    cost = sw.testing.CostModel(per_row_ns=1_000, per_slice_ns=0)
    report = sw.Simulation(nodes=1, cost=cost).submit(made).wait()
    (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
    assert counts.dropped == 0
    assert "elsewhere" in counts.reason


@pytest.mark.parametrize("replicas", [1, 5])
def test_a_replica_that_seldom_gets_rows_sheds_none(replicas: int) -> None:
    """Rows of the last look were done long before the next one, and are not that old."""
    rng = np.random.default_rng(9)
    rows = 1_000
    table = pa.table(
        {
            "ts": np.sort(rng.integers(0, 60_000, rows)),
            "key": rng.integers(0, 40, rows),
            "kind": rng.integers(0, 3, rows),
        }
    )
    made = sw.Dataflow("seldom")
    stream = made.source("rows", sw.table(table), event_time="ts", time_unit="ms", speed=1.0)
    kinds = [sw.patterns.event(name, where=sw.col("kind") == n) for n, name in enumerate("ab")]
    stream.pattern(
        sw.patterns.seq(*kinds),
        by="key",
        window=sw.tumbling("3s"),
        shed=sw.shedding.espice(latency="200ms"),
        replicas=replicas,
    ).sink("out", sw.collect_sink())
    report = sw.Simulation(nodes=3).submit(made).wait()
    ages = [stage.shedding.slowest_ns for stage in report.stages if stage.shedding is not None]
    assert len(ages) == replicas
    assert max(ages) < 2 * MS
    assert report.ledger.counts.of_job()["shed"] == 0
