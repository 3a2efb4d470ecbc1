"""A query in the simulator under more than can be done: its matches, and how old events are."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

import slackwater as sw
from benchmarks.patterns.queries import Asked
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.shedding import Espice
from slackwater.runtime.shedding.counts import SheddingCounts

CALM = 0.5
"""Of what can be done, while it is trained."""


@dataclass(frozen=True)
class Ran:
    """A run of a query.

    Attributes:
        matches: {(start of the window in ns, its events)}.
        worst_s, mean_s: latency of results of the surge.
        counts: of shedding.
        course: (second, worst latency in s) of results, by when their stimulus came.
    """

    matches: frozenset[tuple[int, str]]
    worst_s: float
    mean_s: float
    counts: SheddingCounts
    course: list[tuple[float, float]]

    @property
    def stated(self) -> float | None:
        """The recall that the report states."""
        lost = self.counts.lost_share
        return None if lost is None else 1 - lost

    @property
    def shed_from_ns(self) -> float:
        """Windows that begin after that were opened when shedding had begun.

        Events are as old by then as what leaves is.
        """
        began_s = (self.counts.began_ns or 0) / 1e9
        return 1e9 * next((at_s for at_s, old_s in self.course if at_s + old_s >= began_s), began_s)


def ran(
    asked: Asked,
    shed: Espice,
    each_ns: float,
    *,
    training_s: float,
    over: float,
    seed: int,
) -> Ran:
    """Run a query in the simulator, at half of what can be done and then at more than that.

    Args:
        asked: the query.
        shed: what is shed, and when.
        each_ns: what each event, or pair of it and a window, takes after the training.
        training_s: how long the training is.
        over: so many times what can be done is the rest.
        seed: of the simulation.
    """
    flow = sw.Dataflow(asked.name)
    rows = flow.source("events", sw.table(asked.rows), event_time="time", time_unit="ns", speed=1.0)
    found = asked.build(rows, shed)
    found.sink("out", sw.collect_sink())
    calm = CALM / over
    surge_ns = training_s * 1e9

    def load(now_ns: int) -> float:
        return calm if now_ns < surge_ns else 1.0

    cost = sw.testing.CostModel(
        per_row_ns=0, per_slice_ns=0, per_comparison_ns=each_ns, load={found.name: load}
    )
    job = sw.Simulation(nodes=1, seed=seed, cost=cost).submit(flow)
    report = job.wait()
    assert report.ledger.is_balanced, report.ledger
    table: pa.Table = job.result("out")
    starts = table["window_start"].cast(pa.int64()).to_pylist()
    matches = frozenset(zip(starts, table["events"].to_pylist(), strict=True))
    worst_s, mean_s = _latency(report, training_s)
    (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
    course = [(one.start_ns / 1e9, one.max_ns / 1e9) for one in report.sinks[0].series.bins()]
    return Ran(matches, worst_s, mean_s, counts, course)


def _latency(report: JobReport, from_s: float) -> tuple[float, float]:
    """Return the worst and mean latency of results whose stimulus came from then on."""
    (sink,) = report.sinks
    bins = [one for one in sink.series.bins() if one.start_ns >= from_s * 1e9]
    rows = sum(one.count for one in bins)
    mean_ns = sum(one.count * one.p50_ns for one in bins) / max(rows, 1)
    return max((one.max_ns for one in bins), default=0) / 1e9, mean_ns / 1e9
