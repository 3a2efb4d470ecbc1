"""A feature of events that shedding may go by: used where it spares matches, and not where not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

import slackwater as sw
from slackwater.report.operator_tables import feature_text, shedding_columns
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.shedding.counts import SheddingCounts

MS = 1_000_000
CALM, BUSY, TOGETHER = 10_000, 6_000, 20
PAIR_NS = 300_000
WINDOWS = 2  # over each event: 0.6 ms of work; one comes each 2 ms, then each 0.4 ms

PLAIN, WITH_FEATURE = "utility (type, place)", "utility (type, place, feature)"
FEATURES: dict[str, Expr | None] = {
    "none": None,
    "heat": sw.col("heat") > 8,
    "dice": sw.col("dice"),
}


def flow(feature: Expr | None) -> sw.Dataflow:
    """Two types, one as good as the other: an event matters if it is hot. Dice tell nothing."""
    chance = np.random.default_rng(6)
    rows = CALM + BUSY
    times = np.cumsum(np.where(np.arange(rows) < CALM, 2 * MS, int(0.4 * MS)))
    table = pa.table(
        {
            "ts": times[np.arange(rows) // TOGETHER * TOGETHER],
            "kind": chance.integers(0, 2, rows),
            "heat": chance.integers(0, 10, rows),
            "dice": chance.choice(["one", "two", "three", "four"], rows),
            "unread": np.arange(rows),
        }
    )
    made = sw.Dataflow("features")
    hot = [
        sw.patterns.event(f"e{kind}", of_type=kind, where=sw.col("heat") > 8) for kind in range(2)
    ]
    made.source("events", sw.table(table), event_time="ts", time_unit="ns", speed=1.0).pattern(
        sw.patterns.seq(*hot),
        type="kind",
        window=sw.patterns.count_window(40, every=40 // WINDOWS),
        shed=sw.shedding.espice("400ms", drops="pairs", feature=feature),
        name="found",
    ).select("events", name="told").sink("out", sw.collect_sink())
    return made


@cache
def ran(name: str, pair_ns: int = PAIR_NS) -> tuple[JobReport, SheddingCounts, int]:
    """Run it with one of the features; return the report, what was shed, and matches."""
    cost = sw.testing.CostModel(per_row_ns=0, per_slice_ns=0, per_comparison_ns=pair_ns)
    report = sw.Simulation(nodes=1, cost=cost, seed=3).submit(flow(FEATURES[name])).wait()
    assert report.ledger.is_balanced
    (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
    (sink,) = report.sinks
    return report, counts, sink.rows


def test_a_feature_that_decides_what_matters_is_found_out_and_spares_matches() -> None:
    _, calm, every = ran("none", 0)
    _, plain, kept_without = ran("none")
    report, counts, kept = ran("heat")
    assert (calm.dropped, plain.ranked.keys()) == (0, {PLAIN})
    assert kept_without < 0.95 * every
    assert kept > 0.99 * every
    assert counts.ranked.keys() == {WITH_FEATURE}
    assert counts.dropped > 0.9 * plain.dropped  # as much was dropped
    columns = dict(shedding_columns(report.stages))
    assert columns["ranked by"] == [WITH_FEATURE]
    told = feature_text(counts)
    assert told is not None
    assert told.startswith('feature col("heat") > 8 is used: of ')


def test_a_feature_that_is_noise_is_not_used_and_all_is_as_without_it() -> None:
    _, plain, kept_without = ran("none")
    report, counts, kept = ran("dice")
    assert counts.ranked == plain.ranked
    assert (kept, counts.dropped, counts.spells) == (kept_without, plain.dropped, plain.spells)
    assert dict(shedding_columns(report.stages))["ranked by"] == [PLAIN]
    assert "is not used" in (feature_text(counts) or "")


def test_a_step_reads_what_its_feature_does_and_no_more() -> None:
    """Though nothing that leaves needs it: columns that nobody reads never leave the source."""
    needed = flow(sw.col("dice")).needed_columns()["events"]
    assert needed == {"kind", "heat", "dice"}
    assert flow(None).needed_columns()["events"] == {"kind", "heat"}
